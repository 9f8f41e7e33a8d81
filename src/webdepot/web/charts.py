"""Bar charts and trend lines as the templates draw them, each bar with a description and a link."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from webdepot.access.timeline import Bar
from webdepot.harvest.report.pace import HarvestPace
from webdepot.web.language.language import Language
from webdepot.web.replay import address

MOST_YEARS = 40
"""Years in a chart of all captures."""


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
class TrendDot:
    """The value of a term in one year."""

    x: float
    y: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnTrend:
    """Lines over the years, in SVG units of a drawing of 1000 by 300."""

    years: Sequence[int]
    lines: Sequence[tuple[str, Sequence[str], Sequence[TrendDot]]]
    """(term, points of each part of its line, dots): a line is interrupted in a year without harvests, and a
    year alone is only a dot.
    """
    labels: Sequence[tuple[float, int]]
    """(x, year)"""
    ticks: Sequence[tuple[float, str]]
    """(y, value) of the vertical axis."""
    rows: Sequence[tuple[str, int | None]]
    """Rows of the table: label, and the year; None for years in a row without harvests."""


def of_trend(
    words: Mapping[str, Mapping[int, int]], volume: Mapping[int, int], *, relative: bool, spoken: Language
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
    step_x, step_value = 1000 / max(len(years) - 1, 1), _tick_step(highest, is_whole=not relative)
    ticks = [number * step_value for number in range(math.ceil(highest / step_value - 1e-9) + 1)]

    def written(value: float) -> str:
        return spoken.share(value) if relative else spoken.number(round(value))

    def drawn(line: Sequence[float | None]) -> tuple[list[str], list[TrendDot]]:
        dots = [
            TrendDot(x=place * step_x, y=_height(value, ticks[-1]), words=f"{years[place]}: {written(value)}")
            for place, value in enumerate(line)
            if value is not None
        ]
        return _parts(line, step_x, ticks[-1]), dots

    every = len(years) // 10 + 1
    return DrawnTrend(
        years=years,
        lines=[(word, *drawn(line)) for word, line in values.items()],
        labels=[(place * step_x, year) for place, year in enumerate(years) if place % every == 0],
        ticks=[(_height(value, ticks[-1]), written(value)) for value in ticks],
        rows=_rows(years, volume),
    )


def _tick_step(highest: float, *, is_whole: bool) -> float:
    """The distance of values on the axis: 1, 2 or 5 times a power of ten, for at most six values."""
    magnitude = 10.0 ** math.floor(math.log10(highest / 5))
    step = next(size * magnitude for size in (1, 2, 5, 10) if size * magnitude * 5 >= highest * (1 - 1e-9))
    return max(step, 1.0) if is_whole else step


def _height(value: float, top: float) -> float:
    return 290 - 270 * value / top


def _parts(values: Sequence[float | None], step: float, top: float) -> list[str]:
    """The parts of a line between its gaps, of two years or more."""
    parts: list[str] = []
    for is_gap, group in groupby(enumerate(values), key=lambda placed: placed[1] is None):
        points = [] if is_gap else [(place * step, _height(value or 0, top)) for place, value in group]
        if len(points) > 1:
            parts.append(" ".join(f"{x:.1f},{y:.1f}" for x, y in points))
    return parts


def _rows(years: Sequence[int], volume: Mapping[int, int]) -> list[tuple[str, int | None]]:
    """A row for each year with harvests, and one for the years between two of them."""
    rows: list[tuple[str, int | None]] = []
    for has_harvests, group in groupby(years, key=lambda year: bool(volume.get(year))):
        several = list(group)
        if has_harvests:
            rows += [(str(year), year) for year in several]
        else:
            label = str(several[0]) if len(several) == 1 else f"{several[0]}–{several[-1]}"
            rows.append((label, None))
    return rows


def of_years(years: Mapping[int, int], *, spoken: Language) -> list[DrawnBar]:
    """All captures by year, including years without any; the last `MOST_YEARS`."""
    if not years:
        return []
    last = max(years)
    span = range(max(min(years), last - MOST_YEARS + 1), last + 1)
    highest = max(years.values())
    return [
        DrawnBar(
            label=str(year) if place % (len(span) // 6 + 1) == 0 else "",
            words=spoken.count("browse.year_bar", years.get(year, 0), year=str(year)),
            height=years.get(year, 0) / highest,
            href="",
            is_current=False,
        )
        for place, year in enumerate(span)
    ]


def _month(label: str, spoken: Language) -> str:
    year, _, month = label.partition("-")
    return f"{spoken.months[int(month) - 1]} {year}" if month else year


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPace:
    """Pages a minute over the time of a harvest, in SVG units of a drawing of 1000 by 100."""

    points: str
    words: str
    """What the line shows, in a sentence."""
    highest: int
    minutes: float


def of_pace(pace: HarvestPace, elapsed_s: float, spoken: Language) -> DrawnPace | None:
    """The line of a harvest; None before it has two points."""
    rates = pace.per_minute(elapsed_s)
    if len(rates) < 2:
        return None
    highest = max(rates)
    peak_s = min((rates.index(highest) + 1) * pace.step_s, elapsed_s)
    scale, step = max(highest, 1.0), 1000 / (len(rates) - 1)
    sentence = spoken.say(
        "running.pace_words",
        now=round(rates[-1]),
        mean=round(60 * pace.pages[-1] / max(elapsed_s, 1.0)),
        highest=round(highest),
        minutes=spoken.decimal(peak_s / 60),
    )
    return DrawnPace(
        points=" ".join(
            f"{place * step:.1f},{98 - 94 * rate / scale:.1f}" for place, rate in enumerate(rates)
        ),
        words=sentence,
        highest=round(highest),
        minutes=elapsed_s / 60,
    )
