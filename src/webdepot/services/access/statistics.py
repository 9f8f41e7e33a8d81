"""Statistics of use: counted while people read, looked at by staff, given to others as a COUNTER-like table.

Counts wait in memory for some seconds before they are written, so that reading costs no writing; a crash
loses those seconds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from threading import Lock

from webdepot.access import usage
from webdepot.access.policy import AccessPoint
from webdepot.access.usage import Metric, Pending, Use
from webdepot.archive import Archive
from webdepot.errors import InputError

WAIT_S = 20.0
MOST_WAITING = 500
TOP = 50
_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])\Z", re.ASCII)


class Counter:
    """Takes notes from many threads and writes them now and then."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._lock = Lock()
        self._pending = Pending()
        self._since: datetime | None = None

    def counts(self, user_agent: str) -> bool:
        """Whether requests with this user agent are counted: those of robots are not."""
        return not usage.is_robot(user_agent)

    def note(
        self,
        metric: Metric,
        *,
        collection: str,
        site: str = "",
        url: str = "",
        point: AccessPoint,
        country: str = "",
    ) -> None:
        now = self._archive.clock()
        use = Use(
            month=f"{now:%Y-%m}",
            metric=metric,
            collection=collection,
            site=site,
            access_point=point,
            country=country,
        )
        with self._lock:
            self._pending.note(use, url)
            self._since = self._since or now
            is_due = (now - self._since).total_seconds() > WAIT_S or len(self._pending.uses) > MOST_WAITING
        if is_due:
            self.write()

    def write(self) -> None:
        """Everything that waits, now."""
        with self._lock:
            pending, self._pending, self._since = self._pending, Pending(), None
        if pending.uses:
            with self._archive.database.transaction() as connection:
                usage.write(connection, pending)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was used in some months."""

    first: str
    last: str
    months: Sequence[str]
    found: Sequence[tuple[Use, int]]
    pages: Sequence[tuple[str, int]]
    """Opened most: address and how often."""

    def total(self, metric: Metric) -> int:
        return sum(count for use, count in self.found if use.metric is metric)

    def by(self, name: str, metric: Metric) -> Mapping[str, int]:
        return usage.summed(self.found, name, metric)


def report(archive: Archive, *, first: str = "", last: str = "") -> Report:
    """The months from `first` to `last` as 2026-03; the last twelve where nothing is said. InputError when
    one is no month.
    """
    today = archive.clock().date()
    last = last or f"{today:%Y-%m}"
    first = first or _back(last if _MONTH.match(last) else f"{today:%Y-%m}", 11)
    for month in (first, last):
        if not _MONTH.match(month):
            raise InputError(f"{month[:30]!r} is no month. Write it like 2026-03.")
    if first > last:
        raise InputError(f"The statistics would end ({last}) before they begin ({first}).")
    months = tuple(_between(first, last))
    if len(months) > 600:
        raise InputError("Statistics are given for fifty years at most.")
    with archive.database.reading() as connection:
        found = usage.find(connection, first, last)
        pages = usage.top_pages(connection, first, last, TOP)
    return Report(first=first, last=last, months=months, found=found, pages=pages)


def table(made: Report, *, archive_name: str, today: date) -> Iterator[Sequence[str]]:
    """A title report in the manner of COUNTER 5: head, then a row for each site, collection, access point,
    country and metric.
    """
    yield ("Report_Name", "Usage of archived sites")
    yield ("Report_ID", "TR (COUNTER-like)")
    yield ("Institution_Name", archive_name)
    yield ("Reporting_Period", f"begin_date={made.first}; end_date={made.last}")
    yield ("Created", today.isoformat())
    yield ("Exceptions", "No sessions are kept: double clicks are counted, unique items are not")
    yield ()
    yield (
        "Title",
        "Collection",
        "Access_Point",
        "Country",
        "Metric_Type",
        "Reporting_Period_Total",
        *made.months,
    )
    rows: dict[tuple[str, ...], dict[str, int]] = {}
    for use, count in made.found:
        place: tuple[str, ...] = (
            use.site,
            use.collection,
            use.access_point.value,
            use.country,
            use.metric.value,
        )
        months = rows.setdefault(place, {})
        months[use.month] = months.get(use.month, 0) + count
    for place, counts in rows.items():
        yield (*place, str(sum(counts.values())), *(str(counts.get(month, 0)) for month in made.months))


def _between(first: str, last: str) -> Iterator[str]:
    month = first
    while month <= last:
        yield month
        month = _back(month, -1)


def _back(month: str, steps: int) -> str:
    at = int(month[:4]) * 12 + int(month[5:]) - 1 - steps
    return f"{max(at, 0) // 12:04d}-{max(at, 0) % 12 + 1:02d}"
