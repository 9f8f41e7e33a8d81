"""Reasons in words that know what they say: an English sentence for records, command line and machines, and a
key with values for pages.

A `Reason` is a text like any other; whoever prints it needs to know no more. A page finds the same sentence
in its own language under `reasons.KEY` and writes days, numbers and states the language's way. What a person
typed is a plain text and stays as typed.

Columns of the type `database.Said` keep both, version 1:

    sentence                                   a plain text, and everything that was kept before there were keys
    sentence U+001F {"key": …, "values": …}    a reason; in values a day is {"day": "2026-01-31"}, a member of an enumeration
                                               {"one_of": "Ground", "name": "CONSENT", "text": "consent"}, a
                                               reason again {"key": …, "values": …, "text": …}, and texts,
                                               numbers and lists are themselves

The mark is taken out of what people type, so nobody can write a reason into a form.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from enum import Enum
from typing import Any

TOGETHER = "together"
"""The key of several reasons, one after the other."""
_MARK = "\x1f"


class Reason(str):
    """The English sentence, with the key and the values that it was made from."""

    key: str
    values: Mapping[str, Any]

    __slots__ = ("key", "values")

    def __new__(cls, text: str, key: str, values: Mapping[str, Any]) -> "Reason":
        made = super().__new__(cls, text)
        made.key, made.values = key, values
        return made

    def __getnewargs__(self) -> tuple[str, str, Mapping[str, Any]]:  # type: ignore[override]  # str's has the text alone
        return str(self), self.key, self.values


class Choice(str):
    """A member of an enumeration, read again from where only its names were kept."""

    one_of: str
    name: str

    __slots__ = ("name", "one_of")

    def __new__(cls, text: str, one_of: str, name: str) -> "Choice":
        made = super().__new__(cls, text)
        made.one_of, made.name = one_of, name
        return made

    def __getnewargs__(self) -> tuple[str, str, str]:  # type: ignore[override]  # str's has the text alone
        return str(self), self.one_of, self.name


def said(key: str, text: str, **values: Any) -> Reason:
    """The sentence `text` with its gaps filled; days as in 2026-01-31."""
    shown = {name: value.isoformat() if isinstance(value, date) else value for name, value in values.items()}
    return Reason(text.format(**shown), key, values)


def together(reasons: Sequence[str]) -> str:
    """Several reasons in one text; each is said in its own words."""
    given = [reason for reason in reasons if reason]
    return Reason(" ".join(given), TOGETHER, {"parts": given}) if len(given) > 1 else (given or [""])[0]


def cut(text: str, longest: int) -> str:
    """What a person typed, without blanks around it and not too long; a reason stays what it is."""
    return text if isinstance(text, Reason) else text.strip()[:longest]


def to_kept(text: str) -> str:
    """A text as it is kept."""
    if not isinstance(text, Reason):
        return text.replace(_MARK, " ")
    return f"{text.replace(_MARK, ' ')}{_MARK}{json.dumps(_plain(text, with_text=False), ensure_ascii=False)}"


def from_kept(kept: str) -> str:
    """A text as it was before it was kept. One whose key cannot be read is its sentence."""
    text, mark, rest = kept.partition(_MARK)
    if not mark:
        return kept
    try:
        return _reason(text, json.loads(rest))
    except ValueError:
        return text


def to_told(text: str) -> dict[str, object]:
    """A text for a JSON document: `reason`, the sentence; and of a reason `reason_said`, its key and values."""
    return {
        "reason": str(text),
        **({"reason_said": _plain(text, with_text=False)} if isinstance(text, Reason) else {}),
    }


def from_told(told: Mapping[str, Any]) -> str:
    """The text of `to_told`; documents that know the sentence alone give the sentence."""
    text, said_ = str(told["reason"]), told.get("reason_said")
    return _reason(text, said_) if said_ is not None else text


def _reason(text: str, facts: Any) -> str:
    try:
        return Reason(text, facts["key"], {name: _read(value) for name, value in facts["values"].items()})
    except (ValueError, KeyError, TypeError, AttributeError):
        return text


def _plain(value: object, *, with_text: bool = True) -> object:
    match value:
        case Reason():
            made = {"key": value.key, "values": {name: _plain(inner) for name, inner in value.values.items()}}
            return {**made, "text": str(value)} if with_text else made
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
