"""Findings and reasons in the reader's language.

They are kept as English sentences, since depot, command line and machines read them too. A page finds the gaps of the English text in
the sentence and fills the same gaps of its own (`quality.words`, `formats.words`, `quality.reasons` in the tables of texts). What
stands in a gap, such as a library's own words, stays as it is.
"""

import re
from datetime import date
from functools import cache

from webdepot.model import Finding
from webdepot.reasons import Reason
from webdepot.selection.permission import Ground
from webdepot.selection.states import TargetState
from webdepot.web.language import Language, load

_GAP = re.compile(r"\\{(\w+)\\}")

_REASONS = ("nothing", "within", "whole", "seeds", "queue", "parts", "links", "false", "digests", "differs", "truncated")


def of_finding(language: Language, finding: Finding) -> str:
    """What was found, in the language; the English words where the text is not known."""
    room, _, code = finding.code.partition(".")
    key = f"formats.words.{code}" if room == "formats" else f"quality.words.{code}"
    return _said(language, key, finding.message) or finding.message


def of_reason(language: Language, reason: str) -> str:
    """Why something is as it is: a `Reason` by its key; sentences that were kept without one by their gaps, one or several."""
    if isinstance(reason, Reason):
        shown = {name: _value(language, value) for name, value in reason.values.items()}
        return language.texts[f"reasons.{reason.key}"].format(**shown)
    keys = [f"quality.reasons.{name}" for name in _REASONS]
    said, rest = [], reason
    while rest:
        for key in keys:
            found = _pattern(key, whole=False).match(rest)
            if found:
                said.append(_filled(language, key, found.groupdict()))
                rest = rest[found.end() :].lstrip()
                break
        else:
            return reason
    return " ".join(said)


def of_rule(language: Language, rule: str) -> str:
    """What decided at the gate: a ground, or what there is none for."""
    if rule in tuple(Ground):
        return _value(language, Ground(rule))
    known = f"reasons.rule_{rule.replace(' ', '_')}"
    return language.texts.get(known, rule)


def _value(language: Language, value: object) -> str:
    """A day, a number, a state, a ground or another reason as the language writes it."""
    match value:
        case TargetState():
            return language.texts[f"targets.state_{value.name.lower()}"]
        case Ground():
            return language.texts[f"targets.ground_{value.name.lower()}"]
        case date():
            return language.day(value)
        case int():
            return language.number(value)
        case _:
            return of_reason(language, str(value)) if not isinstance(value, Reason) else of_reason(language, value)


def _said(language: Language, key: str, words: str) -> str:
    if key not in load("en").texts:
        return ""
    found = _pattern(key, whole=True).match(words)
    return _filled(language, key, found.groupdict()) if found else ""


def _filled(language: Language, key: str, facts: dict[str, str]) -> str:
    if "pages" in facts:
        count = re.match(r"(\d+) ", facts["pages"])
        facts["pages"] = language.count("quality.pages", int(count[1]) if count else 1)
    return language.texts[key].format(**facts)


@cache
def _pattern(key: str, *, whole: bool) -> re.Pattern[str]:
    """The English text with its gaps as groups; a number in a reason, anything in a finding."""
    gap = r"(?P<\1>.*)" if whole else r"(?P<\1>[\\d%]+)"
    return re.compile(_GAP.sub(gap, re.escape(load("en").texts[key])) + (r"\Z" if whole else ""), re.S)
