"""Bars over time as the templates draw them: with words for each bar and a place to go."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from webdepot.access.timeline import Bar
from webdepot.web import address
from webdepot.web.language import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBar:
    label: str
    """Under the bar; empty where labels would crowd."""
    words: str
    height: float
    href: str
    is_current: bool


def of_versions(bars: Sequence[Bar], *, collection: str, url: str, current: str, spoken: Language) -> list[DrawnBar]:
    """Versions of an address; each bar leads to its first capture. Months are labelled by the year they begin."""
    by_month = bool(bars) and "-" in bars[0].label
    drawn = []
    for at, bar in enumerate(bars):
        begins_year = not by_month or bar.label.endswith("-01") or (at == 0 and bars[-1].label[:4] == bar.label[:4])
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


def of_years(years: Mapping[int, int], *, link: Callable[[int], str], current: int | None, spoken: Language) -> list[DrawnBar]:
    """Found captures by year, the years between without any too."""
    if not years:
        return []
    highest = max(years.values())
    span = range(min(years), max(years) + 1)
    return [
        DrawnBar(
            label=str(year) if (year - span[0]) % (len(span) // 8 + 1) == 0 else "",
            words=spoken.count("search.year_bar", years.get(year, 0), year=str(year)),
            height=(years.get(year, 0) / highest) ** 0.5,
            href=link(year) if years.get(year) else "",
            is_current=year == current,
        )
        for year in span
    ]


def _month(label: str, spoken: Language) -> str:
    year, _, month = label.partition("-")
    return f"{spoken.months[int(month) - 1]} {year}" if month else year
