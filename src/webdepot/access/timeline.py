"""Captures as a calendar and as a sparkline: pure arithmetic on captures that the index has counted by day.

Memory grows with the number of days on which something was captured, not with the number of captures.
"""

import calendar
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from webdepot.ports.captures import Tally

MOST_BARS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarDay:
    number: int
    count: int = 0
    timestamp: str = ""
    """Of the day's first capture."""
    is_changed: bool = False
    """Whether a capture of this day has other bytes than the one before it; known only for the year that was
    asked for.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    number: int
    count: int
    weeks: tuple[tuple[CalendarDay | None, ...], ...]
    """Rows of seven days, Monday first; None outside the month."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Year:
    number: int
    count: int
    timestamp: str
    """Of the year's first capture; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar of a sparkline: a month or a year."""

    label: str
    """`2019` or `2019-03`."""
    count: int
    height: float
    """Share of the highest bar (0 to 1), as a square root: one capture stays visible beside a thousand."""
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    total: int
    first: str
    last: str
    days: dict[str, CalendarDay]
    """By `YYYYMMDD`."""

    @property
    def years(self) -> tuple[Year, ...]:
        """Every year from the first to the last, including those without captures."""
        if not self.days:
            return ()
        counts: dict[int, int] = {}
        firsts: dict[int, str] = {}
        for date, day in self.days.items():
            year = int(date[:4])
            counts[year] = counts.get(year, 0) + day.count
            firsts.setdefault(year, day.timestamp)
        return tuple(
            Year(number=year, count=counts.get(year, 0), timestamp=firsts.get(year, ""))
            for year in range(int(self.first[:4]), int(self.last[:4]) + 1)
        )


def of(tallies: Iterable[Tally]) -> Timeline:
    """The timeline of one key, from its captures counted by day, in order of time."""
    counted = list(tallies)
    days = {
        tally.label: CalendarDay(
            number=int(tally.label[6:]), count=tally.count, timestamp=tally.first, is_changed=tally.changed
        )
        for tally in counted
    }
    first, last = (counted[0].first, counted[-1].last) if counted else ("", "")
    return Timeline(total=sum(tally.count for tally in counted), first=first, last=last, days=days)


def months(timeline: Timeline, year: int) -> tuple[Month, ...]:
    """The twelve months of a year as weeks of days."""
    twelve = []
    for number in range(1, 13):
        # 1 AD is the first year Python's calendar can lay out in whole weeks.
        weeks = calendar.monthcalendar(max(year, 1), number)
        rows = tuple(tuple(_day(timeline, year, number, day) for day in week) for week in weeks)
        count = sum(day.count for row in rows for day in row if day)
        twelve.append(Month(number=number, count=count, weeks=rows))
    return tuple(twelve)


def bars(timeline: Timeline) -> Sequence[Bar]:
    """A sparkline from the first to the last capture: by month if that fits, else by year."""
    if not timeline.days:
        return ()
    start, stop = (int(edge[:4]) * 12 + int(edge[4:6]) - 1 for edge in (timeline.first, timeline.last))
    by_month = stop - start < MOST_BARS
    width = 6 if by_month else 4
    counts: dict[str, int] = {}
    firsts: dict[str, str] = {}
    for date, day in timeline.days.items():
        counts[date[:width]] = counts.get(date[:width], 0) + day.count
        firsts.setdefault(date[:width], day.timestamp)
    labels = (
        [f"{month // 12:04d}{month % 12 + 1:02d}" for month in range(start, stop + 1)]
        if by_month
        else [f"{year:04d}" for year in range(start // 12, stop // 12 + 1)]
    )
    highest = max(counts.values())
    return [
        Bar(
            label=f"{label[:4]}-{label[4:]}" if by_month else label,
            count=counts.get(label, 0),
            height=(counts.get(label, 0) / highest) ** 0.5,
            timestamp=firsts.get(label, ""),
        )
        for label in labels
    ]


def _day(timeline: Timeline, year: int, month: int, day: int) -> CalendarDay | None:
    if day == 0:
        return None
    return timeline.days.get(f"{year:04d}{month:02d}{day:02d}", CalendarDay(number=day))
