"""When is a target harvested? Frequencies, time windows and next dates as pure functions; times of day are
those of one time zone.

    frequency    first day, time        the dates
    weekly       2026-03-31, 22:00      every seventh day at 22:00, in summer and in winter
    monthly      2026-01-31, 22:00      the 31st, or the last day of a shorter month; never drifting
    cron         0 3 * * MON-FRI        as Debian's cron reads it, not before the first day
                                        (https://github.com/cuu508/cronsim)

A window (22:00-06:00) says at which hours a harvest may run: a harvest that is due outside it waits until it
opens; a harvest that is still running at its end stops and resumes in the next one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from webdepot.errors import ConfigError, InputError
from webdepot.model import TargetId

_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d\Z")
_DAY = timedelta(days=1)
LONGEST_CRON = 100


class Frequency(StrEnum):
    ONCE = "once"
    DAILY = "daily"
    WEEKLY = "weekly"
    FORTNIGHTLY = "fortnightly"
    MONTHLY = "monthly"
    QUARTERLY = "quarterly"
    HALF_YEARLY = "half-yearly"
    YEARLY = "yearly"
    CRON = "cron"


_DAYS = {Frequency.DAILY: 1, Frequency.WEEKLY: 7, Frequency.FORTNIGHTLY: 14}
_MONTHS = {Frequency.MONTHLY: 1, Frequency.QUARTERLY: 3, Frequency.HALF_YEARLY: 6, Frequency.YEARLY: 12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """The rule for the dates of a plan."""

    frequency: Frequency
    first_on: date
    at_time: time = time(3)
    cron: str = ""
    last_on: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestWindow:
    """Hours of the day in which a harvest may run; across midnight if `closes` is before `opens`."""

    opens: time
    closes: time

    def has(self, at: time) -> bool:
        return (
            self.opens <= at < self.closes
            if self.opens < self.closes
            else at >= self.opens or at < self.closes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How and when one target is harvested."""

    target: TargetId
    dates: Dates
    window: HarvestWindow | None = None
    profile: str = ""
    """Name of a profile; empty means the configuration."""
    is_active: bool = True
    next_at: datetime | None = None
    last_at: datetime | None = None
    changed_by: str = ""
    changed_at: datetime | None = None


def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"[schedule] timezone = {name!r} is not a time zone. Write it like Europe/Amsterdam."
        ) from error


def read_dates(
    frequency: str, *, first_on: str, at_time: str = "", cron: str = "", last_on: str = ""
) -> Dates:
    """The rule for dates from the fields of a form; InputError names the field that is wrong."""
    try:
        chosen = Frequency(frequency)
    except ValueError:
        raise InputError(f"{frequency[:30]!r} is not a frequency. Known: {', '.join(Frequency)}.") from None
    expression = " ".join(cron.split())
    if chosen is Frequency.CRON:
        _check_cron(expression)
    elif expression:
        raise InputError(f"A cron expression needs the frequency cron, not {chosen.value}.")
    first, last = _day(first_on, "first day"), _day(last_on, "last day") if last_on else None
    if last is not None and last < first:
        raise InputError(f"The last day {last} is before the first day {first}.")
    return Dates(
        frequency=chosen, first_on=first, at_time=_time(at_time or "03:00"), cron=expression, last_on=last
    )


def read_window(opens: str, closes: str) -> HarvestWindow | None:
    """The window from two times of day; None if both are empty."""
    if not opens and not closes:
        return None
    if not opens or not closes:
        raise InputError("A time window needs both an opening and a closing time.")
    if opens == closes:
        raise InputError("A time window cannot open and close at the same time.")
    return HarvestWindow(opens=_time(opens), closes=_time(closes))


def next_after(dates: Dates, after: datetime, zone: ZoneInfo) -> datetime | None:
    """The first date after a moment; None if there is none."""
    for day, at in _dates_from(dates, after.astimezone(zone).date() - _DAY, after, zone):
        if dates.last_on is not None and day > dates.last_on:
            return None
        if at > after:
            return at
    return None


def last_before(dates: Dates, first: datetime, now: datetime, zone: ZoneInfo) -> tuple[datetime, int]:
    """The latest date between `first` and now, and how many dates before it were missed."""
    latest, missed = first, 0
    while (
        (following := next_after(dates, latest, zone)) is not None and following <= now and missed < 100_000
    ):
        latest, missed = following, missed + 1
    return latest, missed


def opening(window: HarvestWindow | None, moment: datetime, zone: ZoneInfo) -> datetime:
    """The moment itself if the window is open then, otherwise the next opening."""
    if window is None:
        return moment
    local = moment.astimezone(zone)
    if window.has(local.time()):
        return moment
    day = local.date() if local.time() < window.opens else local.date() + _DAY
    return _moment(day, window.opens, zone)


def is_open(window: HarvestWindow | None, moment: datetime, zone: ZoneInfo) -> bool:
    return window is None or window.has(moment.astimezone(zone).time())


def falls_on(dates: Dates, day: date, zone: ZoneInfo) -> bool:
    """Whether one of the dates is on this day."""
    if day < dates.first_on or (dates.last_on is not None and day > dates.last_on):
        return False
    if dates.frequency is Frequency.ONCE:
        return day == dates.first_on
    if dates.frequency in _DAYS:
        return (day - dates.first_on).days % _DAYS[dates.frequency] == 0
    if dates.frequency in _MONTHS:
        months = _months_between(dates.first_on, day)
        return months % _MONTHS[dates.frequency] == 0 and _add_months(dates.first_on, months) == day
    at = next(_cron(dates.cron, _moment(day, time(), zone) - timedelta(seconds=1), zone), None)
    return at is not None and at.astimezone(zone).date() == day


def days_between(dates: Dates, first: date, last: date, zone: ZoneInfo) -> Iterator[date]:
    """The days from `first` to `last` that have a date; every day is tested only for cron expressions."""
    end = min(last, dates.last_on) if dates.last_on is not None else last
    if dates.frequency in _DAYS:
        step = _DAYS[dates.frequency]
        elapsed = max((first - dates.first_on).days, 0)
        day = dates.first_on + timedelta(days=-(-elapsed // step) * step)
        while day <= end:
            yield day
            day += timedelta(days=step)
    elif dates.frequency in _MONTHS:
        step = _MONTHS[dates.frequency]
        for number in range(
            max(_months_between(dates.first_on, first) // step, 0),
            max(_months_between(dates.first_on, end) // step, -1) + 1,
        ):
            if first <= (day := _add_months(dates.first_on, number * step)) <= end:
                yield day
    else:
        for number in range((end - first).days + 1):
            if falls_on(dates, first + timedelta(days=number), zone):
                yield first + timedelta(days=number)


def _dates_from(
    dates: Dates, start: date, after: datetime, zone: ZoneInfo
) -> Iterator[tuple[date, datetime]]:
    """Days and moments in order, beginning at or before `start`."""
    first = dates.first_on
    if dates.frequency is Frequency.ONCE:
        yield first, _moment(first, dates.at_time, zone)
    elif dates.frequency in _DAYS:
        step = _DAYS[dates.frequency]
        day = first + timedelta(days=max((start - first).days // step, 0) * step)
        while True:
            yield day, _moment(day, dates.at_time, zone)
            day += timedelta(days=step)
    elif dates.frequency in _MONTHS:
        step = _MONTHS[dates.frequency]
        number = max(_months_between(first, start) // step - 1, 0)
        while True:
            day = _add_months(first, number * step)
            yield day, _moment(day, dates.at_time, zone)
            number += 1
    else:
        earliest = max(after, _moment(first, time(), zone) - timedelta(seconds=1))
        for at in _cron(dates.cron, earliest, zone):
            yield at.astimezone(zone).date(), at


def _cron(expression: str, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    try:
        for at in CronSim(expression, after.astimezone(zone)):
            yield at.astimezone(UTC)
    except CronSimError:
        return


def _check_cron(expression: str) -> None:
    if len(expression) > LONGEST_CRON or len(expression.split()) != 5:
        raise InputError(
            "A cron expression must have five fields: minute hour day month weekday, as in 0 3 * * MON."
        )
    try:
        next(CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration) as error:
        raise InputError(
            f"{expression!r} is not a valid cron expression, or it never occurs: {error}. "
            "Write it like 0 3 * * MON."
        ) from error


def _moment(day: date, at: time, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, at, tzinfo=zone).astimezone(UTC)


def _months_between(first: date, other: date) -> int:
    return (other.year - first.year) * 12 + other.month - first.month


def _add_months(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    following = date(year + (month == 11), (month + 1) % 12 + 1, 1)
    return date(year, month + 1, min(day.day, (following - _DAY).day))


def _day(text: str, what: str) -> date:
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        raise InputError(f"{text[:30]!r} is not a {what}. Write it like 2027-01-31.") from None
    if not 1990 <= day.year <= 2200:
        raise InputError(f"The {what} {day} must be between 1990 and 2200.")
    return day


def _time(text: str) -> time:
    if not _TIME.match(text.strip()):
        raise InputError(f"{text[:10]!r} is not a time of day. Write it like 22:30.")
    return time.fromisoformat(text.strip())
