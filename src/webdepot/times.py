"""Moments in an archive: aware UTC datetimes inside, 14-digit timestamps in indexes and addresses.

A timestamp is `YYYYMMDDhhmmss` in UTC, as in CDX, WARC tools and replay addresses. A shorter one means a
period: `2019` is the whole year. RFC 7089 (Memento) needs HTTP dates, WARC 1.1 needs ISO 8601 with Z.

A leap second (`:60`) is read as the second before it: datetimes have none, and the order of captures must not
change.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

Clock = Callable[[], datetime]

_DIGITS = re.compile(r"[0-9]{1,14}\Z", re.ASCII)
_ISO = re.compile(
    r"\d{4}(?:-\d\d(?:-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:[Zz]|[+-]\d\d:?[0-5]\d)?)?)?)?",
    re.ASCII,
)
_TYPED_DATES = (
    re.compile(r"(?P<year>\d{4})(?:(?P<month>\d\d)(?P<day>\d\d)?)?", re.ASCII),
    re.compile(r"(?P<year>\d{4})[-./](?P<month>\d{1,2})(?:[-./](?P<day>\d{1,2}))?", re.ASCII),
    re.compile(r"(?:(?P<day>\d{1,2})[-./])?(?P<month>\d{1,2})[-./](?P<year>\d{4})", re.ASCII),
)
EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` to `end`, both included, to the second."""

    start: datetime = EARLIEST
    end: datetime = LATEST

    def __contains__(self, moment: datetime) -> bool:
        return self.start <= moment <= self.end


def utc_now() -> datetime:
    """The current time; code that needs it takes a `Clock`, which is this function by default."""
    return datetime.now(UTC)


def to_timestamp(moment: datetime) -> str:
    """The 14 digits of an aware moment; fractions of a second are cut, never rounded up into the future."""
    at = _utc(moment)
    # As one number: strftime takes ten times as long, and does not pad years before 1000 on every platform.
    date = (at.year * 100 + at.month) * 100 + at.day
    return f"{((date * 100 + at.hour) * 100 + at.minute) * 100 + at.second:014d}"


def from_timestamp(digits: str) -> datetime:
    """The first moment of the period that 4 to 14 digits name; ValueError for anything that is not a date."""
    return period_of(digits).start


def moment_of(timestamp: str) -> datetime:
    """The first moment of a timestamp; `EARLIEST` for invalid timestamps, which foreign indexes contain."""
    try:
        return from_timestamp(timestamp)
    except ValueError:
        return EARLIEST


@lru_cache(maxsize=4096)
def http_date(timestamp: str) -> str:
    """A timestamp as an HTTP date; `EARLIEST` for an invalid one."""
    return to_http(moment_of(timestamp))


def period_of(digits: str) -> Period:
    """The period that 4, 6, 8, 10, 12 or 14 digits name: a year, month, day, hour, minute or second. Of an
    odd number of digits the last is ignored.
    """
    if not _DIGITS.match(digits) or len(digits) < 4:
        raise ValueError(f"{digits!r} is not a timestamp: 4 to 14 digits YYYYMMDDhhmmss are needed")
    digits = digits[: len(digits) // 2 * 2]
    parts = [int(digits[:4]), *(int(digits[at : at + 2]) for at in range(4, len(digits), 2))]
    year, month, day, hour, minute, second = [*parts, *(1, 1, 0, 0, 0)[len(parts) - 1 :]]
    start = datetime(year, month, day, hour, minute, _no_leap(second), tzinfo=UTC)
    match len(parts):
        case 1:
            end = start.replace(month=12, day=31, hour=23, minute=59, second=59)
        case 2:
            end = (
                (start + timedelta(days=31)).replace(day=1) - timedelta(seconds=1)
                if (year, month) != (9999, 12)
                else LATEST
            )
        case 3:
            end = start.replace(hour=23, minute=59, second=59)
        case 4:
            end = start.replace(minute=59, second=59)
        case 5:
            end = start.replace(second=59)
        case _:
            end = start
    return Period(start, end)


def read_date(text: str) -> str:
    """The digits YYYY, YYYYMM or YYYYMMDD of a date as people type it: `2010`, `2010-01`, `2010-01-31`,
    `31.1.2010`, `31-1-2010`, `1/2010`. The day is before the month. ValueError for anything else.
    """
    typed = text.strip()[:40]
    for mark in "-./":
        typed = mark.join(part.strip() for part in typed.split(mark))
    for form in _TYPED_DATES:
        if match := form.fullmatch(typed):
            month, day = (f"{int(part):02d}" if part else "" for part in (match["month"], match["day"]))
            digits = match["year"] + month + day
            period_of(digits)  # a day that exists
            return digits
    raise ValueError(f"{text!r} is not a date: write 2010, 2010-01, 2010-01-31 or 31-1-2010")


# The few records and log lines of a page have the same moment.
@lru_cache(maxsize=256)
def to_iso(moment: datetime) -> str:
    """`2026-11-15T09:02:51Z`: WARC 1.0's form, valid in 1.1, ISO 8601 and RFC 3339."""
    return f"{_utc(moment).isoformat()[:19]}Z"


@lru_cache(maxsize=256)
def to_iso_milliseconds(moment: datetime) -> str:
    """`2026-11-15T09:02:51.120Z`; smaller fractions are cut."""
    at = _utc(moment)
    return f"{at.isoformat()[:19]}.{at.microsecond // 1000:03d}Z"


def from_iso(text: str) -> datetime:
    """Read W3C-DTF (a year alone up to nanoseconds and an offset); without an offset the text means UTC."""
    iso = text.strip().upper()
    if not _ISO.fullmatch(iso):
        raise ValueError(f"{text!r} is not an ISO 8601 date")
    if len(iso) < 10:
        iso += "-01-01"[len(iso) - 4 :]
    elif iso[16:19] == ":60":
        iso = f"{iso[:17]}59{iso[19:]}"
    try:
        moment = datetime.fromisoformat(iso)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is outside the years 1 to 9999") from None


def to_http(moment: datetime) -> str:
    """`Sun, 15 Nov 2026 09:02:51 GMT` (RFC 9110, 5.6.7)."""
    from email.utils import format_datetime  # slow to load, and rarely needed

    return format_datetime(_utc(moment), usegmt=True)


def from_http(text: str) -> datetime:
    """Read an HTTP date in any of its three forms; ValueError for anything else."""
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (TypeError, IndexError, OverflowError, ValueError) as error:
        raise ValueError(f"{text!r} is not an HTTP date") from error


def written_at(path: Path) -> datetime:
    """When a file was last written, to the second, between `EARLIEST` and `LATEST`."""
    seconds = max(int(path.stat().st_mtime), int(EARLIEST.timestamp()))
    return datetime.fromtimestamp(min(seconds, int(LATEST.timestamp())), UTC)


def gap_s(one: str, other: str) -> int:
    """The time between two 14-digit timestamps in seconds; invalid months and days count as 1."""
    return abs(_seconds(one) - _seconds(other))


def _seconds(timestamp: str) -> int:
    """Seconds on one scale, for comparison only: old indexes contain months and days `00` and hours `24`,
    which must not stop a look-up.
    """
    digits = timestamp.ljust(14, "0")
    day = datetime(
        min(max(int(digits[:4]), 1), 9999), min(max(int(digits[4:6]), 1), 12), 1, tzinfo=UTC
    ).toordinal()
    day += max(int(digits[6:8]), 1) - 1
    return ((day * 24 + int(digits[8:10])) * 60 + int(digits[10:12])) * 60 + int(digits[12:14])


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; moments must be aware")
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def _no_leap(second: int) -> int:
    return 59 if second == 60 else second
