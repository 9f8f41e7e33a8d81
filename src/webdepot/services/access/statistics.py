"""Usage statistics: counted while people read, shown to staff, and exported as a COUNTER-like table.

Counts are kept in memory for some seconds before they are written, so that reading a page does not write to
the database; a crash loses those seconds.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from threading import Lock, Timer

from webdepot.access import usage
from webdepot.access.policy import AccessPoint
from webdepot.access.usage import Metric, PendingUses, Use
from webdepot.archive import Archive
from webdepot.errors import InputError

log = logging.getLogger(__name__)
WRITE_AFTER_S = 20.0
MOST_PENDING = 500
TOP = 50
_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])\Z", re.ASCII)


class Counter:
    """Collects counts from many threads and writes them `write_after_s` seconds after the first of them."""

    def __init__(self, archive: Archive, *, write_after_s: float = WRITE_AFTER_S) -> None:
        self._archive = archive
        self._write_after_s = write_after_s
        self._lock = Lock()
        self._pending = PendingUses()
        self._timer: Timer | None = None

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
            is_full = len(self._pending.uses) > MOST_PENDING
            if self._timer is None:
                self._timer = Timer(self._write_after_s, self._write_when_due)
                self._timer.daemon = True
                self._timer.start()
        if is_full:
            self.write()

    def write(self) -> None:
        """Write all pending counts now."""
        with self._lock:
            pending, self._pending = self._pending, PendingUses()
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if pending.uses:
            with self._archive.database.transaction() as connection:
                usage.write(connection, pending)

    def _write_when_due(self) -> None:
        try:
            self.write()
        except Exception:
            log.exception("uses were not counted")


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageReport:
    """Usage in some months."""

    first: str
    last: str
    months: Sequence[str]
    counts: Sequence[tuple[Use, int]]
    pages: Sequence[tuple[str, int]]
    """Pages opened most: address and how often."""

    def total(self, metric: Metric) -> int:
        return sum(count for use, count in self.counts if use.metric is metric)

    def by(self, name: str, metric: Metric) -> Mapping[str, int]:
        return usage.sum_by(self.counts, name, metric)


def report(archive: Archive, *, first: str = "", last: str = "") -> UsageReport:
    """Usage in the months from `first` to `last`, written like 2026-03; by default the last twelve.
    InputError if one is not a month.
    """
    today = archive.clock().date()
    last = last or f"{today:%Y-%m}"
    first = first or _back(last if _MONTH.match(last) else f"{today:%Y-%m}", 11)
    for month in (first, last):
        if not _MONTH.match(month):
            raise InputError(f"{month[:30]!r} is not a month. Write it like 2026-03.")
    if first > last:
        raise InputError(f"The last month ({last}) is before the first ({first}). Swap them.")
    months = tuple(_between(first, last))
    if len(months) > 600:
        raise InputError("The period is longer than fifty years. Choose a shorter one.")
    with archive.database.reading() as connection:
        counts = usage.find(connection, first, last)
        pages = usage.top_pages(connection, first, last, TOP)
    return UsageReport(first=first, last=last, months=months, counts=counts, pages=pages)


def table(report: UsageReport, *, archive_name: str, today: date) -> Iterator[Sequence[str]]:
    """A title report like that of COUNTER 5: a header, then a row for each site, collection, access point,
    country and metric.
    """
    yield ("Report_Name", "Usage of archived sites")
    yield ("Report_ID", "TR (COUNTER-like)")
    yield ("Institution_Name", archive_name)
    yield ("Reporting_Period", f"begin_date={report.first}; end_date={report.last}")
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
        *report.months,
    )
    rows: dict[tuple[str, ...], dict[str, int]] = {}
    for use, count in report.counts:
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
        yield (*place, str(sum(counts.values())), *(str(counts.get(month, 0)) for month in report.months))


def _between(first: str, last: str) -> Iterator[str]:
    month = first
    while month <= last:
        yield month
        month = _back(month, -1)


def _back(month: str, steps: int) -> str:
    at = int(month[:4]) * 12 + int(month[5:]) - 1 - steps
    return f"{max(at, 0) // 12:04d}-{max(at, 0) % 12 + 1:02d}"
