"""Plans and turns as the database knows them. A turn is one date of a plan: it comes, is taken by one
scheduler, and ends.

Whoever works on a turn holds a lease that it renews; a lease that has run out means that its holder was
killed, and the turn can be taken by another. A turn is taken in one statement that asks for its state, so two
schedulers never have the same one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    String,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from webdepot.errors import NotFound
from webdepot.model import TargetId
from webdepot.selection.schedule import Dates, Frequency, HarvestWindow, Plan
from webdepot.selection.tables import schedules, targets, turns
from webdepot.selection.targets import having
from webdepot.states import Machine, Step

ROWS = 50
_PORTION = 200
_OFTEN = 50
"""One plan of so many, or more, is often."""


class TurnState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    SKIPPED = "skipped"


_T = TurnState
TURN = Machine(
    noun="turn",
    steps=(
        Step(
            act="come",
            before=(),
            after=_T.WAITING,
            words="A date of a plan has come, or a person wants a harvest now.",
        ),
        Step(act="take", before=(_T.WAITING,), after=_T.RUNNING, words="A scheduler takes it, with a lease."),
        Step(
            act="finish", before=(_T.RUNNING,), after=_T.DONE, words="The harvest has ended and was checked."
        ),
        Step(
            act="give back",
            before=(_T.RUNNING,),
            after=_T.WAITING,
            words="Its window ended, its scheduler stopped or was killed, or a try failed and another will be made.",
        ),
        Step(act="fail", before=(_T.RUNNING,), after=_T.FAILED, words="The last try brought nothing."),
        Step(
            act="refuse",
            before=(_T.WAITING, _T.RUNNING),
            after=_T.REFUSED,
            words="The target may not be harvested; the reason says what is missing.",
        ),
        Step(
            act="skip",
            before=(_T.WAITING,),
            after=_T.SKIPPED,
            words="A person took it out, or the plan was paused.",
        ),
        Step(
            act="retry",
            before=(_T.FAILED, _T.REFUSED, _T.SKIPPED),
            after=_T.WAITING,
            words="A person wants it tried again.",
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    id: int
    target: TargetId
    due_at: datetime
    state: TurnState
    not_before: datetime
    tries: int
    holder: str
    lease_ends_at: datetime | None
    harvest: str
    reason: str
    began_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A row of the list of plans."""

    plan: Plan
    name: str
    target_state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """A row of the list of turns."""

    turn: Turn
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


# --- plans ---


def save(connection: Connection, plan: Plan) -> None:
    """A target has one plan: this one, from now on."""
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
    """Active plans whose date has come, the longest due first."""
    chosen = (
        select(schedules)
        .where(schedules.c.is_active.is_(True), schedules.c.next_at <= now)
        .order_by(schedules.c.next_at)
        .limit(limit)
    )
    return [_plan(row) for row in connection.execute(chosen).mappings()]


def move_on(connection: Connection, target: TargetId, *, next_at: datetime | None, last_at: datetime) -> None:
    connection.execute(
        update(schedules).where(schedules.c.target == target).values(next_at=next_at, last_at=last_at)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPage:
    rows: Sequence[PlanRow]
    total: int | None
    """None where counting would take longer than the page: those with certain words."""
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPage:
    rows: Sequence[TurnRow]
    has_more: bool


def listing(connection: Connection, asked: PlanFilter) -> PlanPage:
    """A page of plans, filtered and sorted in the database."""
    joined = schedules.join(targets, targets.c.id == schedules.c.target)
    where, offset = _where(asked), (max(asked.page, 1) - 1) * ROWS
    order = (
        (targets.c.name, targets.c.id)
        if asked.sort is PlanSort.NAME
        else (schedules.c.next_at.is_(None), schedules.c.next_at)
    )
    rows = select(schedules, targets.c.name, targets.c.state).select_from(joined).order_by(*order)
    if asked.sort is PlanSort.NAME or asked.words:
        found = connection.execute(rows.where(*where).limit(ROWS + 1).offset(offset)).mappings().all()
    else:
        # Numbers along the index first; those without a next date stand last.
        numbers = _numbers_by_next(connection, where, offset)
        found = connection.execute(rows.where(schedules.c.target.in_(numbers))).mappings().all()
    total = (
        None
        if asked.words
        else connection.execute(select(func.count()).select_from(schedules).where(*where)).scalar_one()
    )
    made = [PlanRow(plan=_plan(row), name=row["name"], target_state=row["state"]) for row in found[:ROWS]]
    return PlanPage(
        rows=made, total=total, has_more=len(found) > ROWS if total is None else offset + ROWS < total
    )


def _numbers_by_next(connection: Connection, where: Sequence[ColumnElement[bool]], offset: int) -> list[int]:
    base = select(schedules.c.target).where(*where)
    dated = (
        base.where(schedules.c.next_at.is_not(None))
        .order_by(schedules.c.next_at, schedules.c.target)
        .limit(ROWS)
        .offset(offset)
    )
    found = list(connection.execute(dated).scalars())
    if len(found) < ROWS:
        with_date = connection.execute(
            select(func.count()).select_from(schedules).where(*where, schedules.c.next_at.is_not(None))
        ).scalar_one()
        rest = base.where(schedules.c.next_at.is_(None)).order_by(schedules.c.target)
        found += connection.execute(
            rest.limit(ROWS - len(found)).offset(max(offset - with_date, 0))
        ).scalars()
    return found


def _where(asked: PlanFilter) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = []
    if asked.frequency:
        where.append(schedules.c.frequency == asked.frequency.value)
    where.append(
        schedules.c.is_active.is_(asked.is_active)
        if asked.is_active is not None
        else schedules.c.is_active.in_((True, False))
    )
    return where + having(asked.words)


def day_groups(connection: Connection) -> Iterator[tuple[Dates, int]]:
    """Active plans by what decides their days, and how many there are of each: a calendar of very many plans
    is counted from these.
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
    """Active plans of which a date falls on a day, by the number of their targets. `counted` is what
    `day_groups` gives.

    Where many plans do, the first few are found by looking at plan after plan; where few do, by what they
    have in common.
    """
    groups = [(dates, count) for dates, count in counted if falls(dates)]
    is_often = sum(count for _, count in groups) * _OFTEN >= sum(count for _, count in counted)
    known = [dates for dates, _ in groups]
    numbers = (
        _looked_through(connection, known, limit, after)
        if is_often
        else _in_common(connection, known, limit, after)
    )
    chosen = select(schedules, targets.c.name, targets.c.state).join(
        targets, targets.c.id == schedules.c.target
    )
    rows = connection.execute(
        chosen.where(schedules.c.target.in_(numbers)).order_by(schedules.c.target)
    ).mappings()
    return [PlanRow(plan=_plan(row), name=row["name"], target_state=row["state"]) for row in rows]


def _looked_through(connection: Connection, groups: Sequence[Dates], limit: int, after: int) -> list[int]:
    kept, found = schedules.c, list[int]()
    known = {
        (dates.frequency.value, dates.cron, dates.first_on.isoformat(), _text(dates.last_on))
        for dates in groups
    }
    columns = (kept.target, kept.is_active, kept.frequency, kept.cron, kept.first_on, kept.last_on)
    while len(found) < limit:
        rows = connection.execute(
            select(*columns).where(kept.target > after).order_by(kept.target).limit(_PORTION * 5)
        ).all()
        found += [
            row.target
            for row in rows
            if row.is_active and (row.frequency, row.cron, row.first_on, row.last_on) in known
        ]
        if len(rows) < _PORTION * 5:
            break
        after = rows[-1].target
    return found[:limit]


def _in_common(connection: Connection, groups: Sequence[Dates], limit: int, after: int) -> list[int]:
    found: list[int] = []
    for at in range(0, len(groups), _PORTION):
        wanted = or_(*(_in_group(dates) for dates in groups[at : at + _PORTION]))
        chosen = select(schedules.c.target).where(
            schedules.c.is_active.is_(True), schedules.c.target > after, wanted
        )
        found += connection.execute(chosen.order_by(schedules.c.target).limit(limit)).scalars()
    return sorted(found)[:limit]


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


# --- turns ---


def come(
    connection: Connection, target: TargetId, due_at: datetime, *, not_before: datetime, reason: str = ""
) -> Turn | None:
    """A turn for this date; None when there is one already."""
    if connection.execute(
        select(turns.c.id).where(turns.c.target == target, turns.c.due_at == due_at)
    ).first():
        return None
    values = {
        "state": TURN.after(None, "come", "turn").value,
        "not_before": not_before,
        "tries": 0,
        "holder": "",
        "reason": reason,
    }
    made = connection.execute(insert(turns).values(target=target, due_at=due_at, **values).returning(turns))
    return _turn(made.mappings().one())


def has_open(connection: Connection, target: TargetId) -> bool:
    """Does a turn of this target wait or run?"""
    wanted = (turns.c.target == target, turns.c.state.in_((TurnState.WAITING.value, TurnState.RUNNING.value)))
    return connection.execute(select(exists().where(*wanted))).scalar_one()


def get(connection: Connection, turn: int) -> Turn:
    row = connection.execute(select(turns).where(turns.c.id == turn)).mappings().one_or_none()
    if row is None:
        raise NotFound(f"There is no turn {turn}. List them: webdepot schedule queue")
    return _turn(row)


def count_running(connection: Connection, now: datetime) -> int:
    """How many are held now, by whomever; leases that ran out do not count."""
    wanted = (turns.c.state == TurnState.RUNNING.value, turns.c.lease_ends_at > now)
    return connection.execute(select(func.count()).select_from(turns).where(*wanted)).scalar_one()


def take(connection: Connection, now: datetime, *, holder: str, lease: timedelta, limit: int) -> list[Turn]:
    """The turns that now belong to this holder: those that wait longest. Of one target never two at once."""
    busy = select(turns.c.target).where(turns.c.state == TurnState.RUNNING.value)
    chosen = (
        select(turns.c.id)
        .where(
            turns.c.state == TurnState.WAITING.value, turns.c.not_before <= now, turns.c.target.not_in(busy)
        )
        .order_by(turns.c.not_before, turns.c.id)
        .limit(limit)
    )
    taken: dict[int, Turn] = {}
    for number in connection.execute(chosen).scalars().all():
        values = {
            "state": TurnState.RUNNING.value,
            "holder": holder,
            "lease_ends_at": now + lease,
            "began_at": now,
            "reason": "",
        }
        still = (turns.c.id == number, turns.c.state == TurnState.WAITING.value)
        row = (
            connection.execute(
                update(turns).where(*still).values(**values, tries=turns.c.tries + 1).returning(turns)
            )
            .mappings()
            .one_or_none()
        )
        if row is not None and row["target"] not in taken:
            taken[row["target"]] = _turn(row)
        elif row is not None:
            connection.execute(
                update(turns).where(turns.c.id == number).values(state=TurnState.WAITING.value, holder="")
            )
    return list(taken.values())


def renew(connection: Connection, numbers: Sequence[int], *, holder: str, until: datetime) -> list[int]:
    """Leases that were renewed; one that is missing was lost to another."""
    wanted = (
        turns.c.id.in_(list(numbers)),
        turns.c.holder == holder,
        turns.c.state == TurnState.RUNNING.value,
    )
    return list(
        connection.execute(
            update(turns).where(*wanted).values(lease_ends_at=until).returning(turns.c.id)
        ).scalars()
    )


def abandoned(connection: Connection, now: datetime) -> list[Turn]:
    """Turns whose holder did not renew its lease."""
    chosen = select(turns).where(turns.c.state == TurnState.RUNNING.value, turns.c.lease_ends_at <= now)
    return [_turn(row) for row in connection.execute(chosen).mappings()]


def bind(connection: Connection, turn: int, harvest: str) -> None:
    connection.execute(update(turns).where(turns.c.id == turn).values(harvest=harvest))


def move(
    connection: Connection,
    turn: Turn,
    act: str,
    now: datetime,
    *,
    reason: str = "",
    not_before: datetime | None = None,
    forget_harvest: bool = False,
) -> None:
    """To another state; Conflict where no row of `TURN` leads there from where it is now."""
    current = get(connection, turn.id)
    state = TURN.after(current.state, act, f"Turn {turn.id}")
    ended = state not in (TurnState.WAITING, TurnState.RUNNING)
    values: dict[str, object] = {
        "state": state.value,
        "reason": reason,
        "holder": "",
        "lease_ends_at": None,
        "ended_at": now if ended else None,
    }
    if not_before is not None:
        values["not_before"] = not_before
    if forget_harvest:
        values["harvest"] = None
    if act == "retry":
        values["tries"] = 0
    connection.execute(update(turns).where(turns.c.id == turn.id).values(**values))


def queue(connection: Connection, state: TurnState | None, *, page: int = 1) -> TurnPage:
    """A page of turns: what waits and runs in its order, what has ended the newest first."""
    where = [turns.c.state == state.value] if state else []
    is_open = state in (TurnState.WAITING, TurnState.RUNNING)
    order = (turns.c.not_before, turns.c.id) if is_open else (turns.c.due_at.desc(), turns.c.id.desc())
    numbers = (
        select(turns.c.id).where(*where).order_by(*order).limit(ROWS + 1).offset((max(page, 1) - 1) * ROWS)
    )
    found = list(connection.execute(numbers).scalars())
    chosen = (
        select(turns, targets.c.name)
        .join(targets, targets.c.id == turns.c.target)
        .where(turns.c.id.in_(found[:ROWS]))
        .order_by(*order)
    )
    rows = [TurnRow(turn=_turn(row), name=row["name"]) for row in connection.execute(chosen).mappings()]
    return TurnPage(rows=rows, has_more=len(found) > ROWS)


def of_target(connection: Connection, target: TargetId, limit: int) -> list[Turn]:
    chosen = select(turns).where(turns.c.target == target).order_by(turns.c.due_at.desc()).limit(limit)
    return [_turn(row) for row in connection.execute(chosen).mappings()]


def of_harvest(connection: Connection, harvest: str) -> Turn | None:
    row = (
        connection.execute(
            select(turns).where(turns.c.harvest == harvest).order_by(turns.c.id.desc()).limit(1)
        )
        .mappings()
        .one_or_none()
    )
    return _turn(row) if row else None


def by_day(
    connection: Connection, first: datetime, after: datetime, zone: ZoneInfo
) -> dict[date, dict[TurnState, int]]:
    """How many turns of each state fell due on each day of a zone, from `first` to before `after`."""
    hour = func.substr(turns.c.due_at, 1, 13, type_=String)
    grouped = (
        select(hour, turns.c.state, func.count())
        .where(turns.c.due_at >= first, turns.c.due_at < after)
        .group_by(hour, turns.c.state)
    )
    found: dict[date, dict[TurnState, int]] = {}
    for text, state, count in connection.execute(grouped):
        day = datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC).astimezone(zone).date()
        states = found.setdefault(day, {})
        states[TurnState(state)] = states.get(TurnState(state), 0) + count
    return found


def counts(connection: Connection) -> dict[TurnState, int]:
    """How many turns are in each state, but for those that are done: these are all the rest, and nobody waits
    for them.
    """
    asked = select(func.count()).select_from(turns)
    states = [state for state in TurnState if state is not TurnState.DONE]
    return {
        state: connection.execute(asked.where(turns.c.state == state.value)).scalar_one() for state in states
    }


# --- rows ---


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


def _turn(row: RowMapping) -> Turn:
    names = (
        "id",
        "due_at",
        "not_before",
        "tries",
        "holder",
        "lease_ends_at",
        "reason",
        "began_at",
        "ended_at",
    )
    values = {name: row[name] for name in names}
    return Turn(
        target=TargetId(row["target"]), state=TurnState(row["state"]), harvest=row["harvest"] or "", **values
    )


def _hours(at: time) -> str:
    return at.strftime("%H:%M")
