"""Reasons in words that know what they say: an English sentence for records, command line and machines, and a key with values for pages.

A `Reason` is a text like any other; whoever keeps or prints it needs to know no more. A page finds the same sentence in its own language
under `reasons.KEY` and writes days, numbers and states the language's way.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any


class Reason(str):
    """The English sentence, with the key and the values that it was made from."""

    key: str
    values: Mapping[str, Any]

    __slots__ = ("key", "values")

    def __new__(cls, text: str, key: str, values: Mapping[str, Any]) -> "Reason":
        made = super().__new__(cls, text)
        made.key, made.values = key, values
        return made


def said(key: str, text: str, **values: Any) -> Reason:
    """The sentence `text` with its gaps filled; days as in 2026-01-31."""
    shown = {name: value.isoformat() if isinstance(value, date) else value for name, value in values.items()}
    return Reason(text.format(**shown), key, values)
