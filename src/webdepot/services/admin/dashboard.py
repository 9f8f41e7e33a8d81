"""The staff dashboard: work that waits, running harvests, failures, totals, and growth by month.

The database does all counting, mostly with an index. Documents and sizes by month come from the counts stored
with each harvest.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import String, func, select

from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.depot import copies
from webdepot.depot.copies import CopyState
from webdepot.formats import report
from webdepot.formats.report import FormatShare
from webdepot.harvest.tables import harvests
from webdepot.model import HarvestState
from webdepot.provenance import Event, EventFilter, Outcome, page
from webdepot.selection import cases, letter_rows, scheduled_harvests, target_list
from webdepot.selection.cases import CaseState
from webdepot.selection.scheduled_harvests import TurnState
from webdepot.selection.states import LetterState, TargetState
from webdepot.selection.tables import schedules as plans

DAYS = 30
MOST_FORMATS = 8
MOST_FAILURES = 8
_BAD = (HarvestState.FAILED, HarvestState.STOPPED, HarvestState.REJECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCount:
    on: date
    good: int
    waiting: int
    """Finished, but not yet reviewed."""
    bad: int
    """Failed, stopped or rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthCount:
    month: str
    harvests: int
    documents: int
    size_bytes: int
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    at: datetime
    targets: Mapping[TargetState, int]
    letters: Mapping[LetterState, int]
    cases: Mapping[CaseState, int]
    harvests: Mapping[HarvestState, int]
    turns: Mapping[TurnState, int]
    due_in_a_day: int
    plans: int
    containers: int
    container_bytes: int
    captures: int
    formats: Sequence[FormatShare]
    """Those with the most bytes."""
    days: Sequence[DayCount]
    """Harvests that started on each of the last thirty days."""
    copies: Mapping[CopyState, int]
    disk_free_bytes: int
    disk_total_bytes: int
    failures: Sequence[Event]
    """The newest."""


def overview(archive: Archive) -> Overview:
    now = archive.clock()
    disk = shutil.disk_usage(archive.home)
    with archive.database.reading() as connection:
        by_state = {
            row[0]: row[1]
            for row in connection.execute(select(harvests.c.state, func.count()).group_by(harvests.c.state))
        }
        active = (plans.c.is_active.is_(True),)
        due = (*active, plans.c.next_at <= now + timedelta(days=1))
        containers, container_bytes = locations.totals(connection)
        held: dict[CopyState, int] = {}
        for tally in copies.tally(connection):
            held[tally.state] = held.get(tally.state, 0) + tally.copies
        return Overview(
            at=now,
            targets=target_list.counts(connection),
            letters=letter_rows.counts(connection),
            cases=cases.counts(connection),
            harvests={state: by_state.get(state.value, 0) for state in HarvestState},
            turns=scheduled_harvests.counts(connection),
            due_in_a_day=connection.execute(select(func.count()).select_from(plans).where(*due)).scalar_one(),
            plans=connection.execute(select(func.count()).select_from(plans).where(*active)).scalar_one(),
            containers=containers,
            container_bytes=container_bytes,
            captures=archive.captures.total(),
            formats=sorted(report.shares(connection), key=lambda share: -share.size_bytes)[:MOST_FORMATS],
            days=_days(archive, now),
            copies=held,
            disk_free_bytes=disk.free,
            disk_total_bytes=disk.total,
            failures=[
                event
                for _, event in page(
                    connection, EventFilter(outcome=Outcome.FAILURE.value), limit=MOST_FAILURES
                )
            ],
        )


def months(archive: Archive) -> list[MonthCount]:
    """Harvests, documents, bytes and errors of each month."""
    month = func.substr(harvests.c.started_at, 1, 7, type_=String)
    counted = [
        func.coalesce(func.sum(harvests.c.counts[name].as_integer()), 0)
        for name in ("fetched", "bytes", "errors")
    ]
    chosen = select(month, func.count(), *counted).group_by(month).order_by(month)
    with archive.database.reading() as connection:
        return [
            MonthCount(
                month=row[0],
                harvests=row[1],
                documents=int(row[2]),
                size_bytes=int(row[3]),
                errors=int(row[4]),
            )
            for row in connection.execute(chosen)
        ]


def figures(overview: Overview) -> list[dict[str, object]]:
    """The overview as rows: section, name, value."""
    rows: list[tuple[str, str, object]] = []
    for section, counts in (
        ("targets", overview.targets),
        ("letters", overview.letters),
        ("cases", overview.cases),
        ("harvests", overview.harvests),
        ("turns", overview.turns),
        ("copies", overview.copies),
    ):
        rows += [(section, state.value, count) for state, count in counts.items()]
    rows += [
        ("plans", "active", overview.plans),
        ("plans", "due in a day", overview.due_in_a_day),
        ("archive", "containers", overview.containers),
        ("archive", "bytes in containers", overview.container_bytes),
        ("archive", "captures", overview.captures),
        ("disk", "free bytes", overview.disk_free_bytes),
        ("disk", "total bytes", overview.disk_total_bytes),
    ]
    rows += [
        (f"formats: {share.name or share.mime}", "bytes", share.size_bytes) for share in overview.formats
    ]
    rows += [
        (f"day {day.on}", name, value)
        for day in overview.days
        for name, value in (("good", day.good), ("waiting", day.waiting), ("bad", day.bad))
    ]
    return [{"section": section, "name": name, "value": value} for section, name, value in rows]


def _days(archive: Archive, now: datetime) -> list[DayCount]:
    first = (now - timedelta(days=DAYS - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
    day = func.substr(harvests.c.started_at, 1, 10, type_=String)
    chosen = (
        select(day, harvests.c.state, func.count())
        .where(harvests.c.started_at >= first)
        .group_by(day, harvests.c.state)
    )
    counts: dict[str, dict[HarvestState, int]] = {}
    with archive.database.reading() as connection:
        for text, state, count in connection.execute(chosen):
            counts.setdefault(text, {})[HarvestState(state)] = count
    days = []
    for number in range(DAYS):
        on = (first + timedelta(days=number)).date()
        states = counts.get(on.isoformat(), {})
        good = states.get(HarvestState.KEPT, 0) + states.get(HarvestState.RUNNING, 0)
        days.append(
            DayCount(
                on=on,
                good=good,
                waiting=states.get(HarvestState.FINISHED, 0),
                bad=sum(states.get(state, 0) for state in _BAD),
            )
        )
    return days
