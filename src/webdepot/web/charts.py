"""Bar charts and trend lines as the templates draw them, each bar with a description and a link."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from webdepot.access.timeline import Bar
from webdepot.web.language import Language
from webdepot.web.replay import address


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBar:
    label: str
    """Below the bar; empty where labels would overlap."""
    words: str
    """Its description, for a tooltip and for screen readers."""
    height: float
    href: str
    is_current: bool
    moment: str = ""
    """Its year or month, for scripts."""
    value: str = ""
    """Above the bar; empty where values would overlap."""


def of_versions(
    bars: Sequence[Bar], *, collection: str, url: str, current: str, spoken: Language
) -> list[DrawnBar]:
    """Versions of an address; each bar links to its first capture. Months are labelled with the year when it
    begins.
    """
    by_month = bool(bars) and "-" in bars[0].label
    drawn = []
    for at, bar in enumerate(bars):
        begins_year = (
            not by_month or bar.label.endswith("-01") or (at == 0 and bars[-1].label[:4] == bar.label[:4])
        )
        drawn.append(
            DrawnBar(
                label=bar.label[:4] if begins_year and (by_month or at % (len(bars) // 8 + 1) == 0) else "",
                words=spoken.count("versions.spark_bar", bar.count, label=_month(bar.label, spoken)),
                height=bar.height,
                href=address.path_of(collection, bar.timestamp, url) if bar.timestamp else "",
                is_current=bool(current) and current.startswith(bar.label.replace("-", "")),
            )
        )
    return drawn


def of_captures(
    months: Mapping[int, int],
    volume: Mapping[int, int] | None,
    *,
    by_month: bool,
    link: Callable[[str], str],
    chosen: tuple[str, str],
    spoken: Language,
) -> list[DrawnBar]:
    """Matching captures by year or month, including years and months without any. With `volume` (all captures
    by month) heights are shares of it.
    """
    if not months:
        return []
    size = 1 if by_month else 100
    counts, whole = _sum(months, size), _sum(volume or {}, size)
    span = _span(min(counts), max(counts), by_month=by_month)
    heights = {at: counts.get(at, 0) / (max(whole.get(at, 0), 1) if volume is not None else 1) for at in span}
    highest = max(heights.values()) or 1
    return [
        DrawnBar(
            label=name[:4]
            if (place % (len(span) // 8 + 1) == 0 and not by_month) or (by_month and name.endswith("-01"))
            else "",
            words=spoken.count("search.year_bar", counts.get(at, 0), year=_month(name, spoken)),
            height=heights[at] / highest if volume is not None else (heights[at] / highest) ** 0.5,
            href=link(name) if counts.get(at) else "",
            is_current=bool(chosen[0] or chosen[1])
            and (chosen[0] or "0") <= name
            and name[: len(chosen[1] or name)] <= (chosen[1] or "9"),
            moment=name,
        )
        for place, (at, name) in enumerate((at, _name(at, by_month=by_month)) for at in span)
    ]


def _sum(months: Mapping[int, int], size: int) -> dict[int, int]:
    sums: dict[int, int] = {}
    for month, count in months.items():
        sums[month // size] = sums.get(month // size, 0) + count
    return sums


def _span(first: int, last: int, *, by_month: bool) -> list[int]:
    span = range(first, last + 1)
    return [at for at in span if 1 <= at % 100 <= 12] if by_month else list(span)


def _name(at: int, *, by_month: bool) -> str:
    return f"{at // 100:04d}-{at % 100:02d}" if by_month else f"{at:04d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnTrend:
    """Lines over the years in a drawing of 1000 by 300."""

    years: Sequence[int]
    lines: Sequence[tuple[str, Sequence[str]]]
    """(term, points of each part of its line): a line is interrupted in a year without harvests."""
    labels: Sequence[tuple[float, int]]
    """(x, year)"""
    highest: float


def of_trend(
    words: Mapping[str, Mapping[int, int]], volume: Mapping[int, int], *, relative: bool
) -> DrawnTrend:
    """Terms over the years, as numbers of captures or as shares of all captures of the year. A year without
    harvests has no value.
    """
    years = list(range(min(volume), max(volume) + 1)) if volume else []
    values = {
        word: [
            counts.get(year, 0) / (volume[year] if relative else 1) if volume.get(year) else None
            for year in years
        ]
        for word, counts in words.items()
    }
    highest = max((value for line in values.values() for value in line if value is not None), default=0) or 1
    step = 1000 / max(len(years) - 1, 1)
    lines = [(word, _parts(line, step, highest)) for word, line in values.items()]
    every = len(years) // 10 + 1
    labels = [(place * step, year) for place, year in enumerate(years) if place % every == 0]
    return DrawnTrend(years=years, lines=lines, labels=labels, highest=highest)


def _parts(values: Sequence[float | None], step: float, highest: float) -> list[str]:
    """The parts of a line between its gaps. A single year is a short stroke, since a point would not be
    drawn.
    """
    parts: list[str] = []
    for is_gap, group in groupby(enumerate(values), key=lambda placed: placed[1] is None):
        if is_gap:
            continue
        points = [(place * step, 290 - 270 * (value or 0) / highest) for place, value in group]
        points = (
            [(points[0][0] - 4, points[0][1]), (points[0][0] + 4, points[0][1])]
            if len(points) == 1
            else points
        )
        parts.append(" ".join(f"{x:.1f},{y:.1f}" for x, y in points))
    return parts


def _month(label: str, spoken: Language) -> str:
    year, _, month = label.partition("-")
    return f"{spoken.months[int(month) - 1]} {year}" if month else year
