"""Plans in the database: one for each target. The turns that come from them are in `scheduled_harvests`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import StrEnum

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from webdepot.model import TargetId
from webdepot.selection.plan_dates import Dates, Frequency, HarvestWindow, Plan
from webdepot.selection.tables import schedules, targets
from webdepot.selection.target_words import having

ROWS = 50
_BATCH = 200
_OFTEN = 50
"""A day counts as frequent if at least one plan in this many has a date on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A plan with the name of its target, for lists."""

    plan: Plan
    name: str


class PlanSort(StrEnum):
    NEXT = "next"
    NAME = "name"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFilter:
    frequency: Frequency | None = None
    is_active: bool | None = None
    words: str = ""
    sort: PlanSort = PlanSort.NEXT
    page: int = 1


def save(connection: Connection, plan: Plan) -> None:
    """Store the plan of a target; it replaces an earlier one."""
    values = {
        "frequency": plan.dates.frequency.value,
        "first_on": plan.dates.first_on.isoformat(),
        "at_time": _hours(plan.dates.at_time),
        "cron": plan.dates.cron,
        "last_on": plan.dates.last_on.isoformat() if plan.dates.last_on else "",
        "window_opens": _hours(plan.window.opens) if plan.window else "",
        "window_closes": _hours(plan.window.closes) if plan.window else "",
        "profile": plan.profile,
        "is_active": plan.is_active,
        "next_at": plan.next_at,
        "last_at": plan.last_at,
        "changed_by": plan.changed_by[:200],
        "changed_at": plan.changed_at,
    }
    if (
        connection.execute(
            update(schedules).where(schedules.c.target == plan.target).values(**values)
        ).rowcount
        == 0
    ):
        connection.execute(insert(schedules).values(target=plan.target, **values))


def remove(connection: Connection, target: TargetId) -> None:
    connection.execute(delete(schedules).where(schedules.c.target == target))


def find(connection: Connection, target: TargetId) -> Plan | None:
    row = connection.execute(select(schedules).where(schedules.c.target == target)).mappings().one_or_none()
    return _plan(row) if row else None


def due(connection: Connection, now: datetime, limit: int) -> list[Plan]:
    """Active plans whose date has come, longest due first."""
    chosen = (
        select(schedules)
        .where(schedules.c.is_active.is_(True), schedules.c.next_at <= now)
        .order_by(schedules.c.next_at)
        .limit(limit)
    )
    return [_plan(row) for row in connection.execute(chosen).mappings()]


def set_dates(
    connection: Connection, target: TargetId, *, next_at: datetime | None, last_at: datetime
) -> None:
    connection.execute(
        update(schedules).where(schedules.c.target == target).values(next_at=next_at, last_at=last_at)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPage:
    """One page of the list of plans."""

    rows: Sequence[PlanRow]
    total: int | None
    """None if counting would take longer than the page itself: when the list is filtered by text."""
    has_more: bool


def listing(connection: Connection, wanted: PlanFilter) -> PlanPage:
    """One page of plans, filtered and sorted in the database."""
    joined = schedules.join(targets, targets.c.id == schedules.c.target)
    where, offset = _where(wanted), (max(wanted.page, 1) - 1) * ROWS
    order = (
        (targets.c.name, targets.c.id)
        if wanted.sort is PlanSort.NAME
        else (schedules.c.next_at.is_(None), schedules.c.next_at)
    )
    rows = select(schedules, targets.c.name).select_from(joined).order_by(*order)
    if wanted.sort is PlanSort.NAME or wanted.words:
        page = connection.execute(rows.where(*where).limit(ROWS + 1).offset(offset)).mappings().all()
    else:
        # First the numbers, in the order of the index; plans without a next date come last.
        numbers = _numbers_by_next(connection, where, offset)
        page = connection.execute(rows.where(schedules.c.target.in_(numbers))).mappings().all()
    total = (
        None
        if wanted.words
        else connection.execute(select(func.count()).select_from(schedules).where(*where)).scalar_one()
    )
    has_more = len(page) > ROWS if total is None else offset + ROWS < total
    return PlanPage(rows=[_plan_row(row) for row in page[:ROWS]], total=total, has_more=has_more)


def _numbers_by_next(connection: Connection, where: Sequence[ColumnElement[bool]], offset: int) -> list[int]:
    base = select(schedules.c.target).where(*where)
    dated = (
        base.where(schedules.c.next_at.is_not(None))
        .order_by(schedules.c.next_at, schedules.c.target)
        .limit(ROWS)
        .offset(offset)
    )
    numbers = list(connection.execute(dated).scalars())
    if len(numbers) < ROWS:
        with_date = connection.execute(
            select(func.count()).select_from(schedules).where(*where, schedules.c.next_at.is_not(None))
        ).scalar_one()
        rest = base.where(schedules.c.next_at.is_(None)).order_by(schedules.c.target)
        numbers += connection.execute(
            rest.limit(ROWS - len(numbers)).offset(max(offset - with_date, 0))
        ).scalars()
    return numbers


def _where(wanted: PlanFilter) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = []
    if wanted.frequency:
        where.append(schedules.c.frequency == wanted.frequency.value)
    where.append(
        schedules.c.is_active.is_(wanted.is_active)
        if wanted.is_active is not None
        else schedules.c.is_active.in_((True, False))
    )
    return where + having(wanted.words)


def day_groups(connection: Connection) -> Iterator[tuple[Dates, int]]:
    """The different rules for dates of active plans, and how many plans have each: a calendar of very many
    plans is counted from these.
    """
    kept = schedules.c
    grouped = (
        select(kept.frequency, kept.cron, kept.first_on, kept.last_on, func.count().label("plans"))
        .where(kept.is_active.is_(True))
        .group_by(kept.frequency, kept.cron, kept.first_on, kept.last_on)
    )
    for row in connection.execute(grouped):
        last = date.fromisoformat(row.last_on) if row.last_on else None
        yield (
            Dates(
                frequency=Frequency(row.frequency),
                first_on=date.fromisoformat(row.first_on),
                cron=row.cron,
                last_on=last,
            ),
            row.plans,
        )


def on_day(
    connection: Connection,
    counted: Sequence[tuple[Dates, int]],
    falls: Callable[[Dates], bool],
    *,
    limit: int,
    after: int = 0,
) -> list[PlanRow]:
    """Active plans with a date on a certain day, in the order of their targets' numbers. `counted` is the
    result of `day_groups`.

    If many plans have one, the first few are found by reading plan after plan; if few have one, by querying
    for the rules for dates they have in common.
    """
    groups = [(dates, count) for dates, count in counted if falls(dates)]
    is_often = sum(count for _, count in groups) * _OFTEN >= sum(count for _, count in counted)
    known = [dates for dates, _ in groups]
    numbers = (
        _read_through(connection, known, limit, after)
        if is_often
        else _query_groups(connection, known, limit, after)
    )
    chosen = select(schedules, targets.c.name).join(targets, targets.c.id == schedules.c.target)
    rows = connection.execute(
        chosen.where(schedules.c.target.in_(numbers)).order_by(schedules.c.target)
    ).mappings()
    return [_plan_row(row) for row in rows]


def _read_through(connection: Connection, groups: Sequence[Dates], limit: int, after: int) -> list[int]:
    kept, numbers = schedules.c, list[int]()
    known = {
        (dates.frequency.value, dates.cron, dates.first_on.isoformat(), _text(dates.last_on))
        for dates in groups
    }
    columns = (kept.target, kept.is_active, kept.frequency, kept.cron, kept.first_on, kept.last_on)
    while len(numbers) < limit:
        rows = connection.execute(
            select(*columns).where(kept.target > after).order_by(kept.target).limit(_BATCH * 5)
        ).all()
        numbers += [
            row.target
            for row in rows
            if row.is_active and (row.frequency, row.cron, row.first_on, row.last_on) in known
        ]
        if len(rows) < _BATCH * 5:
            break
        after = rows[-1].target
    return numbers[:limit]


def _query_groups(connection: Connection, groups: Sequence[Dates], limit: int, after: int) -> list[int]:
    numbers: list[int] = []
    for at in range(0, len(groups), _BATCH):
        wanted = or_(*(_in_group(dates) for dates in groups[at : at + _BATCH]))
        chosen = select(schedules.c.target).where(
            schedules.c.is_active.is_(True), schedules.c.target > after, wanted
        )
        numbers += connection.execute(chosen.order_by(schedules.c.target).limit(limit)).scalars()
    return sorted(numbers)[:limit]


def _in_group(dates: Dates) -> ColumnElement[bool]:
    kept = schedules.c
    return and_(
        kept.frequency == dates.frequency.value,
        kept.cron == dates.cron,
        kept.first_on == dates.first_on.isoformat(),
        kept.last_on == _text(dates.last_on),
    )


def _text(day: date | None) -> str:
    return day.isoformat() if day else ""


def _plan_row(row: RowMapping) -> PlanRow:
    return PlanRow(plan=_plan(row), name=row["name"])


def _plan(row: RowMapping) -> Plan:
    window = None
    if row["window_opens"]:
        window = HarvestWindow(
            opens=time.fromisoformat(row["window_opens"]), closes=time.fromisoformat(row["window_closes"])
        )
    return Plan(
        target=TargetId(row["target"]),
        dates=Dates(
            frequency=Frequency(row["frequency"]),
            first_on=date.fromisoformat(row["first_on"]),
            at_time=time.fromisoformat(row["at_time"]),
            cron=row["cron"],
            last_on=date.fromisoformat(row["last_on"]) if row["last_on"] else None,
        ),
        window=window,
        profile=row["profile"],
        is_active=row["is_active"],
        next_at=row["next_at"],
        last_at=row["last_at"],
        changed_by=row["changed_by"],
        changed_at=row["changed_at"],
    )


def _hours(at: time) -> str:
    return at.strftime("%H:%M")
