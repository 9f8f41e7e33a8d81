"""Scheduled harvests in the database. In the code, each is a turn: one date of a plan, which comes due,
is taken by one scheduler, and ends.

The scheduler that works on a turn holds a lease (`webdepot.leases`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, RowMapping, String, exists, func, insert, select, update

from webdepot import leases
from webdepot.errors import NotFound
from webdepot.model import TargetId
from webdepot.reasons import said
from webdepot.selection.tables import targets, turns
from webdepot.states import Machine, Step

ROWS = 50
LEASED = "turn"
"""The kind of these leases."""


class TurnState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    SKIPPED = "skipped"


_T = TurnState
TURN = Machine(
    noun="scheduled harvest",
    steps=(
        Step(
            act="add",
            before=(),
            after=_T.WAITING,
            meaning="A date of a plan has come, or a person requested a harvest now.",
        ),
        Step(
            act="take", before=(_T.WAITING,), after=_T.RUNNING, meaning="A scheduler takes it, with a lease."
        ),
        Step(
            act="finish",
            before=(_T.RUNNING,),
            after=_T.DONE,
            meaning="The harvest has ended and was checked.",
        ),
        Step(
            act="give back",
            before=(_T.RUNNING,),
            after=_T.WAITING,
            meaning="Its time window ended, its scheduler stopped or was killed, "
            "or an attempt failed and will be repeated.",
        ),
        Step(act="fail", before=(_T.RUNNING,), after=_T.FAILED, meaning="The last attempt failed."),
        Step(
            act="refuse",
            before=(_T.WAITING, _T.RUNNING),
            after=_T.REFUSED,
            meaning="The target may not be harvested; the reason says what is missing.",
        ),
        Step(
            act="skip",
            before=(_T.WAITING,),
            after=_T.SKIPPED,
            meaning="A person skipped it, or the plan was paused.",
        ),
        Step(
            act="retry",
            before=(_T.FAILED, _T.REFUSED, _T.SKIPPED),
            after=_T.WAITING,
            meaning="A person requested another attempt.",
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
class TurnRow:
    """A turn with the name of its target, for lists."""

    turn: Turn
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPage:
    """One page of the list of turns."""

    rows: Sequence[TurnRow]
    has_more: bool


def add(
    connection: Connection, target: TargetId, due_at: datetime, *, not_before: datetime, reason: str = ""
) -> Turn | None:
    """Create the turn for this date; None if it exists already."""
    if connection.execute(
        select(turns.c.id).where(turns.c.target == target, turns.c.due_at == due_at)
    ).first():
        return None
    values = {
        "state": TURN.after(None, "add", "scheduled harvest").value,
        "not_before": not_before,
        "tries": 0,
        "holder": "",
        "reason": reason,
    }
    added = connection.execute(insert(turns).values(target=target, due_at=due_at, **values).returning(turns))
    return _turn(added.mappings().one())


def has_open(connection: Connection, target: TargetId) -> bool:
    """Whether a turn of this target is waiting or running."""
    wanted = (turns.c.target == target, turns.c.state.in_((TurnState.WAITING.value, TurnState.RUNNING.value)))
    return connection.execute(select(exists().where(*wanted))).scalar_one()


def get(connection: Connection, turn: int) -> Turn:
    row = connection.execute(select(turns).where(turns.c.id == turn)).mappings().one_or_none()
    if row is None:
        raise NotFound(
            said(
                "missing_turn",
                "There is no scheduled harvest {turn}. List them: webdepot schedule queue",
                turn=str(turn),
            )
        )
    return _turn(row)


def count_running(connection: Connection, now: datetime) -> int:
    """How many turns are held now, by any scheduler; expired leases do not count."""
    wanted = (turns.c.state == TurnState.RUNNING.value, turns.c.lease_ends_at > now)
    return connection.execute(select(func.count()).select_from(turns).where(*wanted)).scalar_one()


def take(connection: Connection, now: datetime, *, holder: str, lease: timedelta, limit: int) -> list[Turn]:
    """Take up to `limit` waiting turns for this holder, longest waiting first. Two turns of one target are
    never held at the same time.
    """
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
        if row is not None:
            leases.note_taken(connection, LEASED, str(number), taken_by=holder)
        if row is not None and row["target"] not in taken:
            taken[row["target"]] = _turn(row)
        elif row is not None:
            connection.execute(
                update(turns).where(turns.c.id == number).values(state=TurnState.WAITING.value, holder="")
            )
    return list(taken.values())


def renew(connection: Connection, numbers: Sequence[int], *, holder: str, until: datetime) -> list[int]:
    """Renew leases; returns the turns that are still held. A missing one was taken by another scheduler."""
    return leases.renew(connection, turns, numbers, holder=holder, until=until, state=TurnState.RUNNING.value)


def held(connection: Connection) -> list[Turn]:
    """Turns that a scheduler has taken, whether it is still alive or not."""
    chosen = select(turns).where(turns.c.state == TurnState.RUNNING.value)
    return [_turn(row) for row in connection.execute(chosen).mappings()]


def set_harvest(connection: Connection, turn: int, harvest: str) -> None:
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
    """Take one step; Conflict if `TURN` does not allow it from the current state."""
    current = get(connection, turn.id)
    state = TURN.after(current.state, act, f"Scheduled harvest {turn.id}")
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


def listing(connection: Connection, state: TurnState | None, *, page: int = 1) -> TurnPage:
    """One page of turns: waiting and running ones in their order, ended ones newest first."""
    where = [turns.c.state == state.value] if state else []
    is_open = state in (TurnState.WAITING, TurnState.RUNNING)
    order = (turns.c.not_before, turns.c.id) if is_open else (turns.c.due_at.desc(), turns.c.id.desc())
    numbered = (
        select(turns.c.id).where(*where).order_by(*order).limit(ROWS + 1).offset((max(page, 1) - 1) * ROWS)
    )
    numbers = list(connection.execute(numbered).scalars())
    chosen = (
        select(turns, targets.c.name)
        .join(targets, targets.c.id == turns.c.target)
        .where(turns.c.id.in_(numbers[:ROWS]))
        .order_by(*order)
    )
    rows = [TurnRow(turn=_turn(row), name=row["name"]) for row in connection.execute(chosen).mappings()]
    return TurnPage(rows=rows, has_more=len(numbers) > ROWS)


def of_target(connection: Connection, target: TargetId, limit: int) -> list[Turn]:
    """Turns of a target, newest first."""
    chosen = select(turns).where(turns.c.target == target).order_by(turns.c.due_at.desc()).limit(limit)
    return [_turn(row) for row in connection.execute(chosen).mappings()]


def count_by_day(
    connection: Connection, first: datetime, after: datetime, zone: ZoneInfo
) -> dict[date, dict[TurnState, int]]:
    """How many turns of each state came due on each day of a time zone, from `first` to before `after`."""
    hour = func.substr(turns.c.due_at, 1, 13, type_=String)
    grouped = (
        select(hour, turns.c.state, func.count())
        .where(turns.c.due_at >= first, turns.c.due_at < after)
        .group_by(hour, turns.c.state)
    )
    days: dict[date, dict[TurnState, int]] = {}
    for text, state, count in connection.execute(grouped):
        day = datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC).astimezone(zone).date()
        states = days.setdefault(day, {})
        states[TurnState(state)] = states.get(TurnState(state), 0) + count
    return days


def counts(connection: Connection) -> dict[TurnState, int]:
    """How many turns are in each state, without those that are done: there are very many, and no page shows
    their number.
    """
    counted = select(func.count()).select_from(turns)
    states = [state for state in TurnState if state is not TurnState.DONE]
    return {
        state: connection.execute(counted.where(turns.c.state == state.value)).scalar_one()
        for state in states
    }


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
