"""Findings and reasons in the reader's language.

A reason has a key and values (`webdepot.reasons`). Findings, and reasons stored by older versions, are kept
as English sentences, since the depot, the command line and other programs read them too. To translate one, a
page matches the sentence with the English text, takes the values out of its gaps and puts them into the text
of its own language (`quality.words`, `formats.words`, `quality.reasons` in the tables of texts). Values such
as messages of a library, or what a person typed, stay as they are.
"""

import re
from collections.abc import Mapping
from datetime import date
from enum import Enum
from functools import cache
from typing import Any

from webdepot.model import Finding
from webdepot.patterns import LinearPattern
from webdepot.reasons import TOGETHER, Choice, Reason
from webdepot.selection.permission import Ground
from webdepot.web.language import Language, load

_GAP = re.compile(r"\\{(\w+)\\}")

_QUALITY = (
    "nothing",
    "within",
    "whole",
    "seeds",
    "queue",
    "parts",
    "links",
    "false",
    "digests",
    "differs",
    "truncated",
)
_ENDINGS = (
    "fetched_all",
    "reached_all",
    "stopped",
    "given_up",
    "limit_pages",
    "limit_bytes",
    "limit_time",
    "left_waiting",
)
_KEPT_AS_SENTENCES = (
    *(f"quality.reasons.{name}" for name in _QUALITY),
    *(f"reasons.{name}" for name in _ENDINGS),
)
"""Of older homes; their placeholders hold only numbers, so that nothing that a person typed is taken for one
of them.
"""
_EARLIER_SENTENCES = {
    "quality.reasons.nothing": "The harvest brought nothing.",
    "quality.reasons.within": (
        "{documents} documents, {noted} of their parts and links absent or broken: within the limits."
    ),
    "quality.reasons.seeds": "{count} of the seeds did not answer.",
    "quality.reasons.false": (
        "{count} pages are not what they should be, more than {limit} of {documents} documents."
    ),
    "quality.reasons.digests": "{count} answers are not what their records state.",
    "quality.reasons.differs": "It differs much from the last harvests.",
    "quality.reasons.truncated": "{count} answers are not whole, more than {limit} of {documents} documents.",
}
"""Earlier English wording of the sentences above, as older homes have it."""
_ENUMERATIONS = {
    "TargetState": "targets.state_",
    "Ground": "targets.ground_",
    "LetterKind": "letters.kind_",
    "LetterState": "letters.state_",
    "CaseState": "cases.state_",
    "HarvestState": "status.state_",
    "TurnState": "schedule.turn_",
    "act of a target": "targets.act_",
    "act of a case": "cases.act_",
    "Decision": "cases.decision_",
}


def of_finding(language: Language, finding: Finding) -> str:
    """The message of a finding in the language; the English message if its text is not in the table.

    A message that an earlier version of the program worded differently is filled from the finding's facts.
    """
    component, _, code = finding.code.partition(".")
    key = f"formats.words.{code}" if component == "formats" else f"quality.words.{code}"
    return (
        _said(language, key, finding.message)
        or _said_by_facts(language, key, finding.facts)
        or finding.message
    )


def of_reason(language: Language, reason: str) -> str:
    """Why something is as it is: a `Reason` by its key; sentences that were kept without one by their gaps,
    one or several.
    """
    if isinstance(reason, Reason):
        return _reason(language, reason)
    said, rest = [], reason
    while rest:
        for key, sentence in _sentences():
            found = _reason_pattern(sentence).match(rest)
            if found:
                said.append(_filled(language, key, found.groupdict()))
                rest = rest[found.end() :].lstrip()
                break
        else:
            return reason
    return " ".join(said)


def of_rule(language: Language, rule: str) -> str:
    """The rule that decided whether a target may be harvested: a ground, or another rule's name."""
    if rule in tuple(Ground):
        return _value(language, Ground(rule))
    known = f"reasons.rule_{rule.replace(' ', '_')}"
    return language.texts.get(known, rule)


def of_action(language: Language, action: str) -> str:
    """The action of an event."""
    return language.texts.get(f"actions.{re.sub('[^a-z]+', '_', action)}", action)


def of_kind(language: Language, kind: str) -> str:
    """The kind of thing that an event is about."""
    return language.texts.get(f"kinds.{kind.replace(' ', '_')}", kind)


def _reason(language: Language, reason: Reason) -> str:
    if reason.key == TOGETHER:
        return " ".join(_value(language, part) for part in reason.values["parts"])
    text = language.texts.get(f"reasons.{reason.key}") or language.texts.get(reason.key)
    if text is None:  # written by a later version of the program
        return str(reason)
    return text.format(**{name: _value(language, value) for name, value in reason.values.items()})


def _value(language: Language, value: object) -> str:
    """A day, a number, a state, a ground or another reason as the language writes it."""
    match value:
        case Reason():
            return _reason(language, value)
        case Choice():
            return _member(language, value.one_of, value.name, str(value))
        case Enum():
            return _member(language, type(value).__name__, value.name, str(value.value))
        case date():
            return language.day(value)
        case int():
            return language.number(value)
        case list() | tuple():
            return ", ".join(_value(language, each) for each in value)
        case _:
            return str(value)


def _member(language: Language, one_of: str, name: str, otherwise: str) -> str:
    """The text of a member of an enumeration."""
    return language.texts.get(f"{_ENUMERATIONS.get(one_of, '')}{name.lower()}", otherwise)


def _said(language: Language, key: str, words: str) -> str:
    if key not in load("en").texts:
        return ""
    facts = _finding_pattern(load("en").texts[key]).find_groups(words)
    return _filled(language, key, facts) if facts is not None else ""


def _said_by_facts(language: Language, key: str, facts: Mapping[str, Any]) -> str:
    gaps = set(re.findall(r"{(\w+)}", language.texts.get(key, "")))
    if key not in language.texts or not gaps <= facts.keys():
        return ""
    return _filled(language, key, {name: _value(language, facts[name]) for name in gaps})


def _filled(language: Language, key: str, facts: dict[str, str]) -> str:
    if "pages" in facts:
        count = re.match(r"(\d+) ", facts["pages"])
        facts["pages"] = language.count("quality.pages", int(count[1]) if count else 1)
    return language.texts[key].format(**facts)


@cache
def _sentences() -> tuple[tuple[str, str], ...]:
    """Keys and English sentences that were kept without a key, in the current and in the earlier wording."""
    now = tuple((key, load("en").texts[key]) for key in _KEPT_AS_SENTENCES)
    return (*now, *_EARLIER_SENTENCES.items())


@cache
def _finding_pattern(text: str) -> LinearPattern:
    """The English text with its gaps as groups. They hold anything, also words of a hostile file."""
    return LinearPattern("(?s)" + _GAP.sub(r"(?P<\1>.*)", re.escape(text)))


@cache
def _reason_pattern(text: str) -> re.Pattern[str]:
    """The English text with its gaps as groups, which are numbers."""
    return re.compile(_GAP.sub(r"(?P<\1>\\d+(?:[.,]\\d+)*%?)", re.escape(text)))
