"""Usage counts without personal data: no IP address, no session, no browser, and of the time only the month.

The metrics are those of COUNTER 5 (https://cop5.projectcounter.org) that can be counted this way; those that
need a session (unique items, double clicks) are left out. A *site* is a host without `www.`, and empty for
searches. Requests of robots are not counted.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from sqlalchemy import Connection, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite

from webdepot.access.policy import AccessPoint
from webdepot.access.tables import usage, usage_of_pages

MOST_PAGES = 2000
"""Different pages counted between two writes; further pages count only for their site."""
_LONGEST_URL = 2000
_ROBOT = re.compile(
    r"bot\b|bots\b|crawl|spider|slurp|archiver|headlesschrome|curl/|wget|python-|httpx|java/|libwww|go-http",
    re.IGNORECASE,
)


class Metric(StrEnum):
    REQUESTS = "Total_Item_Requests"
    """Archived pages that were opened."""
    INVESTIGATIONS = "Total_Item_Investigations"
    """The same, and lists of versions and comparisons."""
    SEARCHES = "Searches_Platform"
    REFUSED = "No_License"
    """An access rule refused the page (451)."""
    IN_USE = "Limit_Exceeded"
    """Another reader had a page that is lent to one at a time (423)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What a count is about."""

    month: str
    """2026-03"""
    metric: Metric
    collection: str
    site: str = ""
    access_point: AccessPoint = AccessPoint.PUBLIC
    country: str = ""


@dataclass(slots=True)
class PendingUses:
    """Counts that are not written yet. Not thread-safe."""

    uses: Counter[Use] = field(default_factory=Counter)
    pages: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(month, collection, address)"""

    def note(self, use: Use, url: str = "") -> None:
        self.uses[use] += 1
        page = (use.month, use.collection, url[:_LONGEST_URL])
        if url and use.metric is Metric.REQUESTS and (page in self.pages or len(self.pages) < MOST_PAGES):
            self.pages[page] += 1


def is_robot(user_agent: str) -> bool:
    return not user_agent or _ROBOT.search(user_agent) is not None


def write(connection: Connection, pending: PendingUses) -> None:
    """Add the counts to the stored ones."""
    _add(
        connection,
        usage,
        [
            {
                "month": use.month,
                "metric": use.metric.value,
                "collection": use.collection,
                "site": use.site[:255],
                "access_point": use.access_point.value,
                "country": use.country,
                "count": count,
            }
            for use, count in pending.uses.items()
        ],
    )
    _add(
        connection,
        usage_of_pages,
        [
            {
                "month": month,
                "collection": collection,
                "digest": hashlib.sha256(url.encode()).hexdigest(),
                "url": url,
                "count": count,
            }
            for (month, collection, url), count in pending.pages.items()
        ],
    )


def _add(connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    keys = [column.name for column in table.primary_key]
    for row in rows:
        new = insert(table).values(**row)
        added = {"count": table.c.count + new.excluded.count}
        connection.execute(new.on_conflict_do_update(index_elements=keys, set_=added))


def find(connection: Connection, first: str, last: str) -> list[tuple[Use, int]]:
    """Every count of the months from `first` to `last`, both included."""
    wanted = select(usage).where(usage.c.month >= first, usage.c.month <= last)
    rows = connection.execute(
        wanted.order_by(usage.c.site, usage.c.collection, usage.c.access_point, usage.c.metric, usage.c.month)
    )
    return [
        (
            Use(
                month=row["month"],
                metric=Metric(row["metric"]),
                collection=row["collection"],
                site=row["site"],
                access_point=AccessPoint(row["access_point"]),
                country=row["country"],
            ),
            row["count"],
        )
        for row in rows.mappings()
    ]


def top_pages(connection: Connection, first: str, last: str, limit: int) -> list[tuple[str, int]]:
    """The pages that were opened most."""
    total = func.sum(usage_of_pages.c.count).label("total")
    wanted = (
        select(usage_of_pages.c.url, total)
        .where(usage_of_pages.c.month >= first, usage_of_pages.c.month <= last)
        .group_by(usage_of_pages.c.url)
        .order_by(total.desc(), usage_of_pages.c.url)
        .limit(limit)
    )
    return [(row[0], int(row[1])) for row in connection.execute(wanted)]


def sum_by(counts: Iterable[tuple[Use, int]], name: str, metric: Metric) -> dict[str, int]:
    """Counts of one metric, summed by the field `name` of `Use`, the highest first."""
    sums: Counter[str] = Counter()
    for use, count in counts:
        if use.metric is metric:
            sums[str(getattr(use, name))] += count
    return dict(sums.most_common())
