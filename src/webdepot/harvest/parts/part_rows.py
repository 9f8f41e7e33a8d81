"""Parts of harvests as rows of the database, taken by harvesters of any machine.

    offer ─> waiting ─ take (lease) ─> running ─ release ─> idle ─ offer, take ─> …
               ^                          │  └── release ──> ended ─ offer ─> …
               └───── release ────────────┘

- idle: nothing waits. It is taken again if links were handed to it or an order was given.
- ended: a person stopped the harvest, a limit was reached, or the part failed too often. It is taken again
  only if it is offered again.

Each taking has a generation of its own. Everything that a harvester writes about its part names the
generation: one that lost its lease gets `PartLost` and can no longer change anything. Times are always those
of the database server. The statements need PostgreSQL.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    RowMapping,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    literal_column,
    not_,
    or_,
    select,
    text,
    update,
)

from webdepot import leases
from webdepot.database import StatementLine
from webdepot.harvest.tables import handed_links, harvest_orders, parts

CHECKPOINT_AGE = "checkpoint_age_s"
"""Key in `live`: seconds since the last checkpoint when the lease was renewed."""
LEASED = "part"
"""The kind of these leases."""
MOST_TRIES = 50
"""A part that was taken this many times without reaching a checkpoint ends: it may be the cause of the
crashes.
"""
FAILURE_TRIES = 10
"""How many of these tries are counted when the part fails, or when only its process dies."""
NOW: ColumnElement[float] = literal_column("extract(epoch from clock_timestamp())::float8", Float)


class PartState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    IDLE = "idle"
    ENDED = "ended"


class PartLost(Exception):
    """The lease of a part has ended, or another harvester has the part: this one must send no more
    requests.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLease:
    """A part that this process holds."""

    harvest: str
    part: int
    count: int
    holder: str
    generation: int
    checkpoint: int
    """The number of the last checkpoint; 0 if there is none."""
    spans: tuple[tuple[int, int], ...]
    """(generation, its last checkpoint) for all checkpoints, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    """A part as others see it."""

    part: int
    state: PartState
    holder: str
    machine: str
    is_live: bool
    """Whether its holder has renewed its lease in time."""
    left_s: float
    """Time until its lease ends; negative if it has ended."""
    generation: int
    checkpoint: int
    spans: tuple[tuple[int, int], ...]
    """As in `PartLease`."""
    live: Mapping[str, Any]
    result: Mapping[str, Any]
    reason: str
    is_stopping: bool
    is_done: bool
    """Whether nobody holds it and it has nothing to do. A harvest is over when this is true of all its
    parts.
    """

    def silent_s(self, lease_s: float) -> float:
        """Time since its holder renewed the lease; 0 if nobody holds it."""
        return max(lease_s - self.left_s, 0.0) if self.state is PartState.RUNNING else 0.0

    def checkpoint_age_s(self, lease_s: float) -> float:
        """Time since its last checkpoint; 0 if nobody holds it, or there is nothing to store."""
        age_s = float(self.live.get(CHECKPOINT_AGE, 0.0))
        return age_s + self.silent_s(lease_s) if age_s else 0.0


# --- the harvest ---


def offer(
    connection: Connection, harvest: str, count: int, *, needs_browser: bool, again: bool = True
) -> None:
    """Offer the parts of a harvest. If it was offered before, parts that ended are offered again if `again`
    is set; otherwise nothing changes, because only the process that watched it has died. In a writing
    transaction.
    """
    known = set(connection.scalars(select(parts.c.part).where(parts.c.harvest == harvest)))
    if not known:
        now_s = connection.scalar(select(NOW))
        rows = [
            _new_row(harvest, number, count, needs_browser=needs_browser, now_s=now_s or 0.0)
            for number in range(count)
        ]
        connection.execute(insert(parts), rows)
        return
    if not again:
        return
    is_released = parts.c.state.in_([PartState.IDLE.value, PartState.ENDED.value])
    connection.execute(
        update(parts)
        .where(parts.c.harvest == harvest, is_released)
        .values(state=PartState.WAITING.value, idle=False, tries=0, offered_at_s=NOW, reason="")
    )
    connection.execute(update(parts).where(parts.c.harvest == harvest).values(stopping=False))


def stop(connection: Connection, harvest: str) -> None:
    """Have all parts end at a checkpoint; those that no harvester holds end now."""
    is_free = or_(parts.c.state != PartState.RUNNING.value, parts.c.until_s < NOW)
    connection.execute(
        update(parts)
        .where(parts.c.harvest == harvest)
        .values(
            stopping=True,
            state=case((is_free, PartState.ENDED.value), else_=parts.c.state),
            holder=case((is_free, ""), else_=parts.c.holder),
            idle=or_(parts.c.idle, is_free),
        )
    )


def _new_row(
    harvest: str, number: int, count: int, *, needs_browser: bool, now_s: float
) -> dict[str, object]:
    return {
        "harvest": harvest,
        "part": number,
        "count": count,
        "needs_browser": needs_browser,
        "offered_at_s": now_s,
        "state": PartState.WAITING.value,
        "holder": "",
        "machine": "",
        "until_s": 0.0,
        "generation": 0,
        "checkpoint": 0,
        "spans": [],
        "tries": 0,
        "obeyed": 0,
        "idle": False,
        "stopping": False,
        "fetched": 0,
        "pages": 0,
        "size_bytes": 0,
        "live": {},
        "result": {},
        "reason": "",
        "watcher": "",
        "watched_until_s": 0.0,
    }


def of_harvest(connection: Connection, harvest: str) -> list[PartRow]:
    """The parts of a harvest; none if it is not shared."""
    is_live = and_(parts.c.state == PartState.RUNNING.value, parts.c.until_s > NOW).label("is_live")
    is_done = not_(or_(parts.c.state.in_(_OPEN), _has_new())).label("is_done")
    left_s = (parts.c.until_s - NOW).label("left_s")
    chosen = select(parts, is_live, left_s, is_done).where(parts.c.harvest == harvest).order_by(parts.c.part)
    return [_row(row) for row in connection.execute(chosen).mappings()]


def _row(row: RowMapping) -> PartRow:
    return PartRow(
        part=row["part"],
        state=PartState(row["state"]),
        holder=row["holder"],
        machine=row["machine"],
        is_live=row["is_live"],
        left_s=float(row["left_s"]),
        generation=row["generation"],
        checkpoint=row["checkpoint"],
        spans=tuple((generation, last) for generation, last in row["spans"]),
        live=row["live"],
        result=row["result"],
        reason=row["reason"],
        is_stopping=row["stopping"],
        is_done=row["is_done"],
    )


def is_over(connection: Connection, harvest: str) -> bool:
    """Whether no part is held, has anything to do, or can still be given anything."""
    return not connection.scalar(
        select(exists().where(parts.c.harvest == harvest, or_(parts.c.state.in_(_OPEN), _has_new())))
    )


_OPEN = (PartState.WAITING.value, PartState.RUNNING.value)


def _has_new() -> ColumnElement[bool]:
    """Whether an idle part has been given something to do: links of other parts, or orders."""
    links = exists().where(handed_links.c.harvest == parts.c.harvest, handed_links.c.part == parts.c.part)
    orders = exists().where(
        harvest_orders.c.harvest == parts.c.harvest, harvest_orders.c.number > parts.c.obeyed
    )
    return and_(parts.c.state == PartState.IDLE.value, or_(links, orders))


def watch(connection: Connection, harvest: str, watcher: str, *, lease_s: float) -> bool:
    """Become or stay the process that ends a harvest; False if another one is."""
    is_free = or_(parts.c.watcher.in_(["", watcher]), parts.c.watched_until_s < NOW)
    renewed = (
        update(parts)
        .where(parts.c.harvest == harvest, parts.c.part == 0, is_free)
        .values(watcher=watcher, watched_until_s=NOW + lease_s)
    )
    return connection.execute(renewed).rowcount == 1


def stop_watching(connection: Connection, harvest: str, watcher: str) -> None:
    own = (parts.c.harvest == harvest, parts.c.watcher == watcher)
    connection.execute(update(parts).where(*own).values(watcher="", watched_until_s=0.0))


def find_unwatched(connection: Connection) -> list[str]:
    """Harvests whose parts are all over, but whose watching process was killed before it could end them."""
    is_alone = and_(parts.c.part == 0, parts.c.watched_until_s < NOW, parts.c.state.not_in(_OPEN))
    harvests = connection.scalars(select(parts.c.harvest).where(is_alone)).all()
    return [harvest for harvest in harvests if is_over(connection, harvest)]


def harvests_of(connection: Connection) -> set[str]:
    """The harvests that have parts."""
    return set(connection.scalars(select(parts.c.harvest).where(parts.c.part == 0)))


def forget(connection: Connection, harvest: str) -> None:
    """Remove all rows of a harvest that is in the depot."""
    for table in (parts, handed_links, harvest_orders):
        connection.execute(delete(table).where(table.c.harvest == harvest))


# --- a harvester ---

_LOOK = text(
    """
    SELECT EXISTS (SELECT FROM parts WHERE state = 'waiting'
        OR state = 'running' AND until_s < extract(epoch from clock_timestamp())
        OR state = 'idle' AND (
            EXISTS (SELECT FROM handed_links AS links
                WHERE links.harvest = parts.harvest AND links.part = parts.part)
            OR EXISTS (SELECT FROM harvest_orders AS orders
                WHERE orders.harvest = parts.harvest AND orders.number > parts.obeyed))
    ) AS can_take,
    (SELECT count(*) FROM harvest_orders WHERE harvest = ANY (CAST(:harvests AS varchar[]))) AS orders
    """
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWork:
    """What is new for a harvester."""

    can_take: bool
    """Whether there may be a part to take."""
    orders: int
    """How many orders were given to the harvests whose parts it has."""


def look(line: StatementLine, harvests: Collection[str]) -> NewWork:
    """What is new for a harvester that has parts of these harvests. Quick, because harvesters ask it all the
    time.
    """
    (row,) = line.run(_LOOK, {"harvests": sorted(harvests)})
    return NewWork(can_take=row.can_take, orders=row.orders)


def take(
    connection: Connection, *, holder: str, machine: str, lease_s: float, has_browser: bool
) -> PartLease | None:
    """Take a part that waits or whose harvester stopped responding; None if there is none. Parts that this
    machine had before come first: their files may still be here.
    """
    is_abandoned = and_(parts.c.state == PartState.RUNNING.value, parts.c.until_s < NOW)
    chosen = (
        select(parts)
        .where(
            or_(parts.c.state == PartState.WAITING.value, is_abandoned, _has_new()),
            or_(~parts.c.needs_browser, literal(has_browser)),
        )
        .order_by((parts.c.machine == machine).desc(), parts.c.offered_at_s, parts.c.part)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = connection.execute(chosen).mappings().one_or_none()
    if row is None:
        return None
    wanted = (parts.c.harvest == row["harvest"], parts.c.part == row["part"])
    if row["tries"] >= MOST_TRIES:
        reason = row["reason"] or (
            "The part was started too often without reaching a checkpoint: its harvesters were stopped or "
            "killed. Look for the cause in their logs, then resume the harvest."
        )
        ended = {"state": PartState.ENDED.value, "holder": "", "reason": reason}
        connection.execute(update(parts).where(*wanted).values(**ended))
        return None
    values = {
        "state": PartState.RUNNING.value,
        "holder": holder,
        "machine": machine,
        "until_s": NOW + lease_s,
        "generation": row["generation"] + 1,
        "tries": row["tries"] + 1,
        "idle": False,
    }
    connection.execute(update(parts).where(*wanted).values(**values))
    if row["state"] == PartState.RUNNING.value:
        name = f"{row['harvest']} {row['part'] + 1}"
        leases.note_lost(connection, LEASED, name, lost_by=row["holder"], now=datetime.now(UTC))
        leases.note_taken(connection, LEASED, name, taken_by=holder)
    return PartLease(
        harvest=row["harvest"],
        part=row["part"],
        count=row["count"],
        holder=holder,
        generation=row["generation"] + 1,
        checkpoint=row["checkpoint"],
        spans=tuple((generation, last) for generation, last in row["spans"]),
    )


def release(
    connection: Connection,
    lease: PartLease,
    state: PartState,
    *,
    result: Mapping[str, object] | None = None,
    reason: str = "",
    numbers: Mapping[str, object] | None = None,
) -> None:
    """Give a part back, with its result if it has one, or with the reason why it failed. Turns at servers
    that it still has become free.
    """
    values: dict[str, object] = {"state": state.value, "holder": "", "until_s": 0.0, "reason": reason}
    if result is not None:
        values |= {"result": dict(result)}
    if reason:
        values |= {"tries": parts.c.tries + FAILURE_TRIES}
    is_idle = state is not PartState.WAITING
    _change(connection, lease, {**values, "idle": is_idle, **(numbers or {})})


def _change(connection: Connection, lease: PartLease, values: Mapping[str, object]) -> None:
    own = (
        parts.c.harvest == lease.harvest,
        parts.c.part == lease.part,
        parts.c.generation == lease.generation,
        parts.c.holder == lease.holder,
    )
    if connection.execute(update(parts).where(*own).values(**values)).rowcount != 1:
        raise lost(lease)


def lost(lease: PartLease) -> PartLost:
    return PartLost(f"Another harvester has part {lease.part} of harvest {lease.harvest}.")


# --- orders ---


def add_order(connection: Connection, harvest: str, line: str) -> int:
    """Add an order, as a line of `orders.jsonl`; return its number. In a writing transaction."""
    highest = select(func.coalesce(func.max(harvest_orders.c.number), 0))
    number = int(connection.scalar(highest.where(harvest_orders.c.harvest == harvest)) or 0) + 1
    connection.execute(insert(harvest_orders).values(harvest=harvest, number=number, line=line))
    return number


def orders_of(connection: Connection, harvest: str) -> list[tuple[int, str]]:
    chosen = select(harvest_orders.c.number, harvest_orders.c.line).where(harvest_orders.c.harvest == harvest)
    return [(row.number, row.line) for row in connection.execute(chosen.order_by(harvest_orders.c.number))]
