"""Translatable messages: an English sentence for records, command line and programs, together with a key and
values for pages in other languages.

A `Reason` is a `str`, and can be printed like any other. A page looks up the sentence in its own language
under `reasons.KEY`, and formats dates, numbers and states for that language. Text typed by a person is a
plain `str`, and stays as typed.

Columns of the type `database.Said` store both (version 1):

    sentence                                   plain text, and everything stored before there were keys
    sentence U+001F {"key": …, "values": …}    a reason

In the values a date is {"day": "2026-01-31"}, an enum member {"one_of": "Ground", "name": "CONSENT", "text":
"consent"}, a reason {"key": …, "values": …, "text": …}; strings, numbers and lists are unchanged. U+001F is
removed from text that people type, so that nobody can enter a reason into a form.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from enum import Enum
from typing import Any

TOGETHER = "together"
"""The key of several reasons in one text."""
LOGGED = "logged"
"""The key of a sentence from a crawl log, which has English sentences only: pages look it up by its text."""
_MARK = "\x1f"


class Reason(str):
    """An English sentence, with the key and the values it was made from."""

    key: str
    values: Mapping[str, Any]

    __slots__ = ("key", "values")

    def __new__(cls, text: str, key: str, values: Mapping[str, Any]) -> "Reason":
        reason = super().__new__(cls, text)
        reason.key, reason.values = key, values
        return reason

    def __getnewargs__(self) -> tuple[str, str, Mapping[str, Any]]:  # type: ignore[override]  # for pickle
        return str(self), self.key, self.values


class Choice(str):
    """An enum member read from storage, where only its names are stored."""

    one_of: str
    name: str

    __slots__ = ("name", "one_of")

    def __new__(cls, text: str, one_of: str, name: str) -> "Choice":
        choice = super().__new__(cls, text)
        choice.one_of, choice.name = one_of, name
        return choice

    def __getnewargs__(self) -> tuple[str, str, str]:  # type: ignore[override]  # for pickle
        return str(self), self.one_of, self.name


def said(key: str, text: str, **values: Any) -> Reason:
    """A reason: `text` is an English sentence with {placeholders} for the values; dates are shown as
    2026-01-31, integers as 20,553. A number that is a name, such as that of a job, is given as text.
    """
    return Reason(text.format(**{name: _shown(value) for name, value in values.items()}), key, values)


def _shown(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return f"{value:,}" if type(value) is int else value


def together(reasons: Sequence[str]) -> str:
    """Several reasons joined to one text, in which each can still be translated."""
    parts = [reason for reason in reasons if reason]
    return Reason(" ".join(parts), TOGETHER, {"parts": parts}) if len(parts) > 1 else (parts or [""])[0]


def logged(sentence: str) -> Reason:
    """A reason for an English sentence from a crawl log."""
    return Reason(sentence, LOGGED, {})


def cut(text: str, longest: int) -> str:
    """Typed text, stripped and cut to a length; a reason is returned unchanged."""
    return text if isinstance(text, Reason) else text.strip()[:longest]


def to_kept(text: str) -> str:
    """A text or reason as stored in the database."""
    if not isinstance(text, Reason):
        return text.replace(_MARK, " ")
    return f"{text.replace(_MARK, ' ')}{_MARK}{json.dumps(_plain(text, with_text=False), ensure_ascii=False)}"


def from_kept(kept: str) -> str:
    """A text or reason from the database; only the sentence if the rest cannot be read."""
    text, mark, rest = kept.partition(_MARK)
    if not mark:
        return kept
    try:
        return _reason(text, json.loads(rest))
    except ValueError:
        return text


def to_told(text: str) -> dict[str, object]:
    """JSON fields: `reason`, the sentence, and for a reason also `reason_said`, its key and values."""
    return {
        "reason": str(text),
        **({"reason_said": _plain(text, with_text=False)} if isinstance(text, Reason) else {}),
    }


def from_told(told: Mapping[str, Any]) -> str:
    """The text or reason from the fields of `to_told`; older documents have only the sentence."""
    text, facts = str(told["reason"]), told.get("reason_said")
    return _reason(text, facts) if facts is not None else text


def to_plain(facts: Mapping[str, Any]) -> dict[str, object]:
    """Named values as stored in JSON."""
    return {name: _plain(value) for name, value in facts.items()}


def from_plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Named values as `to_plain` stored them; older documents have only strings and numbers."""
    return {name: _read(value) for name, value in facts.items()}


def _reason(text: str, facts: Any) -> str:
    try:
        return Reason(text, facts["key"], {name: _read(value) for name, value in facts["values"].items()})
    except (ValueError, KeyError, TypeError, AttributeError):
        return text


def _plain(value: object, *, with_text: bool = True) -> object:
    match value:
        case Reason():
            facts = {
                "key": value.key,
                "values": {name: _plain(inner) for name, inner in value.values.items()},
            }
            return {**facts, "text": str(value)} if with_text else facts
        case Choice():
            return {"one_of": value.one_of, "name": value.name, "text": str(value)}
        case Enum():
            return {"one_of": type(value).__name__, "name": value.name, "text": str(value.value)}
        case date():
            return {"day": value.isoformat()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case int() | float():
            return value
        case _:
            return str(value)


def _read(value: Any) -> Any:
    match value:
        case {"day": str(day)}:
            return date.fromisoformat(day)
        case {"one_of": str(one_of), "name": str(name), "text": str(text)}:
            return Choice(text, one_of, name)
        case {"key": str(key), "values": dict(values), "text": str(text)}:
            return Reason(text, key, {name: _read(inner) for name, inner in values.items()})
        case list():
            return [_read(inner) for inner in value]
        case _:
            return value
