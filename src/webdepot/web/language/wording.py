"""Findings and reasons in the reader's language.

A reason has a key and values (`webdepot.reasons`), a finding a code and facts, which may be reasons. Reasons
in crawl logs, and what older versions stored, are English sentences only. To translate one, a page matches
the sentence with the English text, takes the values of its placeholders and puts them into the text of its
own language (`quality.words`, `formats.words`, `quality.reasons` in the tables of texts). Values such as
messages of a library, or what a person typed, stay as they are.
"""

import re
from collections.abc import Mapping
from datetime import date
from enum import Enum
from functools import cache, lru_cache
from typing import Any

from webdepot.model import Finding
from webdepot.reasons import LOGGED, TOGETHER, Choice, Reason
from webdepot.selection.permission_basis import Ground
from webdepot.text.patterns import LinearPattern
from webdepot.web.language.language import DEFAULT, Language, load

_GAP = re.compile(r"\\{(\w+)\\}")
_NUMBERS = frozenset(
    {"count", "all", "most", "parts", "depth", "year", "wrong", "tried", "factor", "first", "last"}
)
"""Placeholders that hold only numbers, so that text typed by a person is not taken for a sentence of ours."""

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
"""Sentences that older archives have stored without a key. Their placeholders hold only numbers, so that text
typed by a person is not taken for one of them.
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
"""Earlier English wording of the sentences above, as older archives have it."""
_ABOUT_THE_NETWORK = frozenset({"seed_unreachable", "seed_robots"})
_ROBOTS_FAILED = "robots.txt could not be fetched: "
_ENUMERATIONS = {
    "TargetState": "targets.state_",
    "Ground": "targets.ground_",
    "LetterKind": "letters.kind_",
    "LetterState": "letters.state_",
    "CaseState": "cases.state_",
    "HarvestState": "status.state_",
    "TurnState": "schedule.turn_",
    "act of a target": "event_values.act_",
    "act of a case": "event_values.act_",
    "Decision": "cases.decision_",
}


def of_finding(language: Language, finding: Finding) -> str:
    """The message of a finding in the language, filled with the finding's facts; the English message if its
    text is not in the table. If the finding has no facts, the values are taken from the English message.
    """
    component, _, code = finding.code.partition(".")
    key = f"formats.words.{code}" if component == "formats" else f"quality.words.{code}"
    return (
        _said_by_facts(language, key, finding.facts)
        or _said(language, key, finding.message)
        or finding.message
    )


def of_reason(language: Language, reason: str) -> str:
    """A reason in the language: a `Reason` by its key; one or several sentences stored without a key by
    matching them with the English texts. Other text is returned unchanged.
    """
    if isinstance(reason, Reason):
        return _reason(language, reason)
    translated, rest = [], reason
    while rest:
        for key, sentence in _sentences():
            match = _reason_pattern(sentence).match(rest)
            if match:
                translated.append(_filled(language, key, match.groupdict()))
                rest = rest[match.end() :].lstrip()
                break
        else:
            return reason
    return " ".join(translated)


def of_rule(language: Language, rule: str) -> str:
    """The rule that decided whether a target may be harvested: a ground, or another rule's name."""
    if rule in tuple(Ground):
        return _value(language, Ground(rule))
    known = f"reasons.rule_{rule.replace(' ', '_')}"
    return language.texts.get(known, rule)


def of_scope_rule(language: Language, rule: str) -> str:
    """The rule that decided whether an address is harvested; a rule of a profile as it is written there."""
    return language.texts.get(f"scope_rules.{rule.replace(' ', '_')}", rule)


def of_said(language: Language, area: str, text: str) -> str:
    """The translation of an English sentence of the program that is stored, or computed in English: evidence,
    reasons of the scope, notes of the registry, messages of events. `area` names its texts (`said.AREA`).
    Other text, such as what people wrote, is returned unchanged.
    """
    if language.code == DEFAULT or not text:
        return text
    sentence = _find_sentence(area, text)
    if sentence is None:
        return text
    key, values = sentence
    return language.texts[key].format(**{name: _number(language, value) for name, value in values.items()})


def of_field(language: Language, name: str) -> str:
    """The name of a value in the detail of an event."""
    code = name.removeprefix("quality.")
    known = language.texts.get(f"fields.{name.replace(' ', '_')}")
    return known or language.texts.get(f"quality.codes.{code}", name)


def of_action(language: Language, action: str) -> str:
    """The action of an event."""
    return language.texts.get(f"actions.{re.sub('[^a-z]+', '_', action)}", action)


def of_kind(language: Language, kind: str) -> str:
    """The kind of thing that an event is about."""
    return language.texts.get(f"kinds.{kind.replace(' ', '_')}", kind)


def _reason(language: Language, reason: Reason) -> str:
    if reason.key == TOGETHER:
        return " ".join(_value(language, part) for part in reason.values["parts"])
    if reason.key == LOGGED:
        return of_said(language, "scope", str(reason))
    text = language.texts.get(f"reasons.{reason.key}") or language.texts.get(reason.key)
    if text is None:  # written by a later version of the program
        return str(reason)
    values = reason.values
    if reason.key in _ABOUT_THE_NETWORK and isinstance(values.get("detail"), str):
        values = {**values, "detail": of_failure(language, values["detail"])}
    try:
        return text.format(**{name: _value(language, value) for name, value in values.items()})
    except KeyError:  # values that another program wrote
        return str(reason)


def of_failure(language: Language, text: str) -> str:
    """Why a server could not be reached, in words of libcurl or the crawler; rare ones stay English."""
    before, _, detail = text.partition(_ROBOTS_FAILED)
    if before or not detail:
        return of_said(language, "network", text)
    return language.texts["said.network.robots"].format(detail=of_failure(language, detail))


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
        case float():
            return language.decimal(value)
        case list() | tuple():
            return ", ".join(_value(language, each) for each in value)
        case _:
            return str(value)


def _member(language: Language, one_of: str, name: str, otherwise: str) -> str:
    """The text of a member of an enumeration."""
    return language.texts.get(f"{_ENUMERATIONS.get(one_of, '')}{name.lower()}", otherwise)


def _said(language: Language, key: str, text: str) -> str:
    if key not in load("en").texts:
        return ""
    facts = _finding_pattern(load("en").texts[key]).find_groups(text)
    return _filled(language, key, facts) if facts is not None else ""


def _said_by_facts(language: Language, key: str, facts: Mapping[str, Any]) -> str:
    gaps = set(re.findall(r"{(\w+)}", language.texts.get(key, "")))
    if key not in language.texts or not gaps <= facts.keys():
        return ""
    return _filled(language, key, {name: _value(language, facts[name]) for name in gaps})


@lru_cache(maxsize=4096)
def _find_sentence(area: str, text: str) -> tuple[str, dict[str, str]] | None:
    """The key of the sentence that matches the text, and the values of its placeholders."""
    for key, pattern in _sentences_about(area):
        values = pattern.find_groups(text)
        if values is not None:
            return key, values
    return None


@cache
def _sentences_about(area: str) -> tuple[tuple[str, LinearPattern], ...]:
    """Keys and patterns of an area, the most specific first."""
    texts = {key: text for key, text in load(DEFAULT).texts.items() if key.startswith(f"said.{area}.")}
    ordered = sorted(texts.items(), key=lambda item: -len(re.sub(r"{\w+}", "", item[1])))
    return tuple((key, LinearPattern(_GAP.sub(_group_of, re.escape(text)))) for key, text in ordered)


def _group_of(gap: re.Match[str]) -> str:
    return rf"(?P<{gap[1]}>{r'[0-9.,]+' if gap[1] in _NUMBERS else '.+'})"


def _number(language: Language, text: str) -> str:
    """A number in a sentence as the language writes it; anything else unchanged."""
    if re.fullmatch(r"\d+|\d{1,3}(?:,\d{3})+", text):
        return language.number(int(text.replace(",", "")))
    if re.fullmatch(r"\d+\.\d", text):
        return language.decimal(float(text))
    return text


def _filled(language: Language, key: str, facts: dict[str, str]) -> str:
    for name in ("detail", "now", "usual"):
        if name in facts:
            facts[name] = _number(language, of_said(language, "scope", facts[name]))
    if "pages" in facts:
        count = re.match(r"([\d,]+) ", facts["pages"])
        facts["pages"] = language.count("quality.pages", int(count[1].replace(",", "")) if count else 1)
    return language.texts[key].format(**facts)


@cache
def _sentences() -> tuple[tuple[str, str], ...]:
    """Keys and English sentences that were kept without a key, in the current and in the earlier wording."""
    now = tuple((key, load("en").texts[key]) for key in _KEPT_AS_SENTENCES)
    return (*now, *_EARLIER_SENTENCES.items())


@cache
def _finding_pattern(text: str) -> LinearPattern:
    """The English text with its placeholders as groups, which match anything, also text of a hostile file."""
    return LinearPattern("(?s)" + _GAP.sub(r"(?P<\1>.*)", re.escape(text)))


@cache
def _reason_pattern(text: str) -> re.Pattern[str]:
    """The English text with its placeholders as groups, which match only numbers."""
    return re.compile(_GAP.sub(r"(?P<\1>\\d+(?:[.,]\\d+)*%?)", re.escape(text)))
