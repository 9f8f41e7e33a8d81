"""Plans and turns as the database knows them. A turn is one date of a plan: it comes, is taken by one scheduler, and ends.

Whoever works on a turn holds a lease that it renews; a lease that has run out means that its holder was killed, and the turn can be
taken by another. A turn is taken in one statement that asks for its state, so two schedulers never have the same one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Connection, RowMapping, String, and_, delete, exists, func, insert, or_, select, update

from webdepot.errors import NotFound
from webdepot.model import TargetId
from webdepot.selection.schedule import Dates, Frequency, Plan, Window
from webdepot.selection.tables import schedules, targets, turns
from webdepot.states import Machine, Step

ROWS = 50


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
        Step(act="come", before=(), after=_T.WAITING, words="A date of a plan has come, or a person wants a harvest now."),
        Step(act="take", before=(_T.WAITING,), after=_T.RUNNING, words="A scheduler takes it, with a lease."),
        Step(act="finish", before=(_T.RUNNING,), after=_T.DONE, words="The harvest has ended and was checked."),
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
        Step(act="skip", before=(_T.WAITING,), after=_T.SKIPPED, words="A person took it out, or the plan was paused."),
        Step(act="retry", before=(_T.FAILED, _T.REFUSED, _T.SKIPPED), after=_T.WAITING, words="A person wants it tried again."),
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
class Planned:
    """A row of the list of plans."""

    plan: Plan
    name: str
    target_state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A row of the list of turns."""

    turn: Turn
    name: str


class Sort(StrEnum):
    NEXT = "next"
    NAME = "name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    frequency: Frequency | None = None
    is_active: bool | None = None
    words: str = ""
    sort: Sort = Sort.NEXT
    page: int = 1


# --- plans --------------------------------------------------------------------------------------------------------------


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
    if connection.execute(update(schedules).where(schedules.c.target == plan.target).values(**values)).rowcount == 0:
        connection.execute(insert(schedules).values(target=plan.target, **values))


def remove(connection: Connection, target: TargetId) -> None:
    connection.execute(delete(schedules).where(schedules.c.target == target))


def find(connection: Connection, target: TargetId) -> Plan | None:
    row = connection.execute(select(schedules).where(schedules.c.target == target)).mappings().one_or_none()
    return _plan(row) if row else None


def due(connection: Connection, now: datetime, limit: int) -> list[Plan]:
    """Active plans whose date has come, the longest due first."""
    chosen = select(schedules).where(schedules.c.is_active.is_(True), schedules.c.next_at <= now).order_by(schedules.c.next_at).limit(limit)
    return [_plan(row) for row in connection.execute(chosen).mappings()]


def move_on(connection: Connection, target: TargetId, *, next_at: datetime | None, last_at: datetime) -> None:
    connection.execute(update(schedules).where(schedules.c.target == target).values(next_at=next_at, last_at=last_at))


def listing(connection: Connection, asked: Filter) -> tuple[list[Planned], int]:
    """A page of plans and how many there are; filtered, sorted and counted in the database."""
    joined = schedules.join(targets, targets.c.id == schedules.c.target)
    where = _where(asked)
    counted = joined if asked.words else schedules
    total = connection.execute(select(func.count()).select_from(counted).where(*where)).scalar_one()
    order = (targets.c.name, targets.c.id) if asked.sort is Sort.NAME else (schedules.c.next_at.is_(None), schedules.c.next_at)
    if asked.sort is Sort.NEXT and not asked.words:
        # Numbers along the index first: those without a next date stand last and are few.
        numbers = _numbers_by_next(connection, where, (max(asked.page, 1) - 1) * ROWS)
        chosen = (
            select(schedules, targets.c.name, targets.c.state).select_from(joined).where(schedules.c.target.in_(numbers)).order_by(*order)
        )
    else:
        chosen = select(schedules, targets.c.name, targets.c.state).select_from(joined).where(*where).order_by(*order)
        chosen = chosen.limit(ROWS).offset((max(asked.page, 1) - 1) * ROWS)
    rows = connection.execute(chosen).mappings()
    return [Planned(plan=_plan(row), name=row["name"], target_state=row["state"]) for row in rows], total


def _numbers_by_next(connection: Connection, where: Sequence[ColumnElement[bool]], offset: int) -> list[int]:
    base = select(schedules.c.target).where(*where)
    dated = base.where(schedules.c.next_at.is_not(None)).order_by(schedules.c.next_at, schedules.c.target).limit(ROWS).offset(offset)
    found = list(connection.execute(dated).scalars())
    if len(found) < ROWS:
        with_date = connection.execute(
            select(func.count()).select_from(schedules).where(*where, schedules.c.next_at.is_not(None))
        ).scalar_one()
        rest = base.where(schedules.c.next_at.is_(None)).order_by(schedules.c.target)
        found += connection.execute(rest.limit(ROWS - len(found)).offset(max(offset - with_date, 0))).scalars()
    return found


def _where(asked: Filter) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = []
    if asked.frequency:
        where.append(schedules.c.frequency == asked.frequency.value)
    where.append(schedules.c.is_active.is_(asked.is_active) if asked.is_active is not None else schedules.c.is_active.in_((True, False)))
    return where + [targets.c.name.icontains(word, autoescape=True) for word in asked.words.split()[:8]]


def day_groups(connection: Connection) -> Iterator[tuple[Dates, int]]:
    """Active plans by what decides their days, and how many there are of each: a calendar of very many plans is counted from these."""
    kept = schedules.c
    grouped = (
        select(kept.frequency, kept.cron, kept.first_on, kept.last_on, func.count().label("plans"))
        .where(kept.is_active.is_(True))
        .group_by(kept.frequency, kept.cron, kept.first_on, kept.last_on)
    )
    for row in connection.execute(grouped):
        last = date.fromisoformat(row.last_on) if row.last_on else None
        yield Dates(frequency=Frequency(row.frequency), first_on=date.fromisoformat(row.first_on), cron=row.cron, last_on=last), row.plans


def of_groups(connection: Connection, groups: Sequence[Dates], *, limit: int, after: int = 0) -> list[Planned]:
    """Active plans of some groups, by the number of their targets."""
    kept, found = schedules.c, list[RowMapping]()
    # In portions: a database takes only so many conditions at once.
    for at in range(0, len(groups), 200):
        wanted = [
            and_(
                kept.frequency == group.frequency.value,
                kept.cron == group.cron,
                kept.first_on == group.first_on.isoformat(),
                kept.last_on == (group.last_on.isoformat() if group.last_on else ""),
            )
            for group in groups[at : at + 200]
        ]
        numbers = select(kept.target).where(kept.is_active.is_(True), kept.target > after, or_(*wanted)).order_by(kept.target).limit(limit)
        chosen = (
            select(schedules, targets.c.name, targets.c.state).join(targets, targets.c.id == kept.target).where(kept.target.in_(numbers))
        )
        found += connection.execute(chosen).mappings()
    rows = sorted(found, key=lambda row: row["target"])[:limit]
    return [Planned(plan=_plan(row), name=row["name"], target_state=row["state"]) for row in rows]


# --- turns --------------------------------------------------------------------------------------------------------------


def come(connection: Connection, target: TargetId, due_at: datetime, *, not_before: datetime, reason: str = "") -> Turn | None:
    """A turn for this date; None when there is one already."""
    if connection.execute(select(turns.c.id).where(turns.c.target == target, turns.c.due_at == due_at)).first():
        return None
    values = {"state": TURN.after(None, "come", "turn").value, "not_before": not_before, "tries": 0, "holder": "", "reason": reason}
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
        .where(turns.c.state == TurnState.WAITING.value, turns.c.not_before <= now, turns.c.target.not_in(busy))
        .order_by(turns.c.not_before, turns.c.id)
        .limit(limit)
    )
    taken: dict[int, Turn] = {}
    for number in connection.execute(chosen).scalars().all():
        values = {"state": TurnState.RUNNING.value, "holder": holder, "lease_ends_at": now + lease, "began_at": now, "reason": ""}
        still = (turns.c.id == number, turns.c.state == TurnState.WAITING.value)
        row = (
            connection.execute(update(turns).where(*still).values(**values, tries=turns.c.tries + 1).returning(turns))
            .mappings()
            .one_or_none()
        )
        if row is not None and row["target"] not in taken:
            taken[row["target"]] = _turn(row)
        elif row is not None:
            connection.execute(update(turns).where(turns.c.id == number).values(state=TurnState.WAITING.value, holder=""))
    return list(taken.values())


def renew(connection: Connection, numbers: Sequence[int], *, holder: str, until: datetime) -> list[int]:
    """Leases that were renewed; one that is missing was lost to another."""
    wanted = (turns.c.id.in_(list(numbers)), turns.c.holder == holder, turns.c.state == TurnState.RUNNING.value)
    return list(connection.execute(update(turns).where(*wanted).values(lease_ends_at=until).returning(turns.c.id)).scalars())


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


def queue(connection: Connection, state: TurnState | None, *, page: int = 1) -> tuple[list[Queued], int]:
    """A page of turns and how many there are: what waits and runs in its order, what has ended the newest first."""
    where = [turns.c.state == state.value] if state else []
    total = connection.execute(select(func.count()).select_from(turns).where(*where)).scalar_one()
    order = (
        (turns.c.not_before, turns.c.id) if state in (TurnState.WAITING, TurnState.RUNNING) else (turns.c.due_at.desc(), turns.c.id.desc())
    )
    numbers = select(turns.c.id).where(*where).order_by(*order).limit(ROWS).offset((max(page, 1) - 1) * ROWS)
    chosen = select(turns, targets.c.name).join(targets, targets.c.id == turns.c.target).where(turns.c.id.in_(numbers)).order_by(*order)
    return [Queued(turn=_turn(row), name=row["name"]) for row in connection.execute(chosen).mappings()], total


def of_target(connection: Connection, target: TargetId, limit: int) -> list[Turn]:
    chosen = select(turns).where(turns.c.target == target).order_by(turns.c.due_at.desc()).limit(limit)
    return [_turn(row) for row in connection.execute(chosen).mappings()]


def of_harvest(connection: Connection, harvest: str) -> Turn | None:
    row = connection.execute(select(turns).where(turns.c.harvest == harvest).order_by(turns.c.id.desc()).limit(1)).mappings().one_or_none()
    return _turn(row) if row else None


def by_day(connection: Connection, first: datetime, after: datetime, zone: ZoneInfo) -> dict[date, dict[TurnState, int]]:
    """How many turns of each state fell due on each day of a zone, from `first` to before `after`."""
    hour = func.substr(turns.c.due_at, 1, 13, type_=String)
    grouped = select(hour, turns.c.state, func.count()).where(turns.c.due_at >= first, turns.c.due_at < after).group_by(hour, turns.c.state)
    found: dict[date, dict[TurnState, int]] = {}
    for text, state, count in connection.execute(grouped):
        day = datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC).astimezone(zone).date()
        states = found.setdefault(day, {})
        states[TurnState(state)] = states.get(TurnState(state), 0) + count
    return found


def counts(connection: Connection) -> dict[TurnState, int]:
    found = {row[0]: row[1] for row in connection.execute(select(turns.c.state, func.count()).group_by(turns.c.state))}
    return {state: found.get(state.value, 0) for state in TurnState}


# --- rows ---------------------------------------------------------------------------------------------------------------


def _plan(row: RowMapping) -> Plan:
    window = None
    if row["window_opens"]:
        window = Window(opens=time.fromisoformat(row["window_opens"]), closes=time.fromisoformat(row["window_closes"]))
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
    names = ("id", "due_at", "not_before", "tries", "holder", "lease_ends_at", "reason", "began_at", "ended_at")
    values = {name: row[name] for name in names}
    return Turn(target=TargetId(row["target"]), state=TurnState(row["state"]), harvest=row["harvest"] or "", **values)


def _hours(at: time) -> str:
    return at.strftime("%H:%M")
