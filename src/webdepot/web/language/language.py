"""The languages of the portal: a table of texts for each (`texts/*.toml`), and dates, numbers and sizes as it
writes them.

The language of an answer is the one that `?lang=` asks for, else the cookie's, else the best of
Accept-Language (RFC 9110, 12.5.4), else English. All tables have the same keys; a test checks it.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import date as calendar_day
from functools import cache
from importlib.resources import files
from typing import Any

from webdepot import times
from webdepot.times import moment_of

CODES = ("en", "nl", "de")
DEFAULT = "en"
_RANGE = re.compile(
    r"\s*+([a-zA-Z]{1,8})(?:-[a-zA-Z0-9-]{1,40})?\s*+(?:;\s*+q\s*+=\s*+([01](?:\.\d{0,3})?))?\s*+\Z"
)


@dataclass(frozen=True, slots=True)
class Language:
    """A language: its texts, and the names of months and days."""

    code: str
    texts: Mapping[str, str]
    months: tuple[str, ...]
    short_months: tuple[str, ...]
    days: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.texts["language.name"]

    def say(self, key: str, **values: object) -> str:
        """The text of a key; numbers among the values are written as the language writes them."""
        shown = {name: self.number(value) if type(value) is int else value for name, value in values.items()}
        return self.texts[key].format(**shown)

    def count(self, key: str, count: int, **values: object) -> str:
        """The text for one thing or for several."""
        return self.say(f"{key}.{'one' if count == 1 else 'other'}", count=count, **values)

    def number(self, value: int) -> str:
        return f"{value:,}".replace(",", self.texts["language.thousands"])

    def size(self, size_bytes: int) -> str:
        """A number of bytes with up to three digits and a decimal unit."""
        value, unit = float(size_bytes), "B"
        for unit in ("B", "kB", "MB", "GB", "TB", "PB"):
            if value < 1000 or unit == "PB":
                break
            value /= 1000
        digits = 0 if unit == "B" or value >= 100 else 1
        return f"{value:.{digits}f}".replace(".", self.texts["language.decimal"]) + f"\u00a0{unit}"

    def share(self, share: float) -> str:
        """A share between 0 and 1 as a percentage."""
        return f"{100 * share:.1f}".replace(".", self.texts["language.decimal"]) + "\u00a0%"

    def decimal(self, value: float, digits: int = 1) -> str:
        return (
            f"{value:,.{digits}f}".replace(",", "\0")
            .replace(".", self.texts["language.decimal"])
            .replace("\0", self.texts["language.thousands"])
        )

    def date(self, moment: datetime | str) -> str:
        return self._moment("language.date", moment)

    def day(self, day: calendar_day) -> str:
        """A calendar day without a time, such as a deadline."""
        return self.texts["language.date"].format(
            day=day.day, month=self.months[day.month - 1], year=day.year
        )

    def short_day(self, day: calendar_day) -> str:
        """A day of the current year where there is little room, such as below a chart."""
        return self.texts["language.short_date"].format(day=day.day, month=self.short_months[day.month - 1])

    def short_month(self, month: str) -> str:
        """A month as in 2026-11, where there is little room."""
        return f"{self.short_months[int(month[5:7]) - 1]} {month[:4]}"

    def day_of(self, text: str) -> str:
        """A whole ISO date as people write it; anything else (a year, the name of an issue) unchanged."""
        try:
            return self.day(calendar_day.fromisoformat(text)) if len(text) == len("2024-04-18") else text
        except ValueError:
            return text

    def dated_title(self, title: str) -> str:
        """A title of ours that ends with an ISO date, such as that of a package, with the date in words."""
        before, comma, last = title.rpartition(", ")
        return f"{before}{comma}{self.day_of(last)}"

    def moment(self, moment: datetime | str) -> str:
        return self._moment("language.moment", moment)

    def _moment(self, key: str, moment: datetime | str) -> str:
        at = moment_of(moment) if isinstance(moment, str) else moment.astimezone(UTC)
        month = self.months[at.month - 1]
        return self.texts[key].format(
            day=at.day, month=month, year=at.year, hour=f"{at.hour:02d}", minute=f"{at.minute:02d}"
        )


@cache
def load(code: str) -> Language:
    """A language by its code; its table is read once."""
    tree = tomllib.loads((files("webdepot.web") / "texts" / f"{code}.toml").read_text(encoding="utf-8"))
    # Taken out of the table first: all its other values are texts.
    names = [tuple(tree["language"].pop(name)) for name in ("months", "short_months", "days")]
    return Language(code, dict(_flat(tree)), *names)


_NAMED_DATE = re.compile(
    r"(?:(?P<day>[0-9]{1,2})\.?\s+)?(?P<month>[^\W\d_]{3,})\.?(?:\s+(?P<after>[0-9]{1,2})\s*,)?\s+(?P<year>[0-9]{4})"
)


def read_date(text: str) -> str:
    """`times.read_date`, and dates with the name of the month as the portal writes them, in any of its
    languages: `1 January 2010`, `1. Januar 2010`, `12 mrt 2010`, `Jan 1, 2010`. ValueError for
    others.
    """
    match = _NAMED_DATE.fullmatch(" ".join(text[:60].split()))
    if match is None or (match["day"] and match["after"]):
        return times.read_date(text)
    named = match["month"].lower()
    for code in CODES:
        language = load(code)
        for number, (month, short) in enumerate(
            zip(language.months, language.short_months, strict=True), start=1
        ):
            if month.lower().startswith(named) or short.lower().rstrip(".") == named:
                day = match["day"] or match["after"]
                return times.read_date(f"{match['year']}-{number}" + (f"-{day}" if day else ""))
    return times.read_date(text)


def name_of(code: str, spoken: Language) -> str:
    """The name of a language, given by its code of two letters; a code without a name as it is."""
    return spoken.texts.get(f"language_names.{code.partition('-')[0]}", code)


def choose(*, asked: str | None, cookie: str | None, accept: str | None) -> Language:
    """The language of an answer: `asked` is from the query, `accept` the header Accept-Language."""
    for code in (asked, cookie):
        if code in CODES:
            return load(code)
    return load(_best_of(accept or ""))


def _best_of(accept: str) -> str:
    best, weight = DEFAULT, 0.0
    for part in accept[:1000].split(","):
        match = _RANGE.match(part)
        if match and match[1].lower() in CODES and float(match[2] or 1) > weight:
            best, weight = match[1].lower(), float(match[2] or 1)
    return best


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    texts: list[tuple[str, str]] = []
    for name, value in tree.items():
        texts += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return texts
