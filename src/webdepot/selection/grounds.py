"""Grounds of a target in the database: never changed, only ended; each with who recorded it, why, and the
rules of access it made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from sqlalchemy import Connection, Row, insert, select, update

from webdepot.errors import InputError, NotFound
from webdepot.model import TargetId
from webdepot.selection.permission import Ground, PermissionBasis
from webdepot.selection.tables import grounds


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptGround:
    """A ground as it was recorded."""

    id: int
    target: TargetId
    basis: PermissionBasis
    conditions: Mapping[str, object] = field(default_factory=dict)
    rules: tuple[int, ...] = ()
    """Numbers of the rules of access that came with it."""
    letter: int | None
    agent: str
    at: datetime
    ended_at: datetime | None = None
    ended_by: str = ""
    ended_reason: str = ""


def add(
    connection: Connection,
    target: TargetId,
    basis: PermissionBasis,
    *,
    agent: str,
    now: datetime,
    letter: int | None = None,
    conditions: Mapping[str, object] | None = None,
    rules: Sequence[int] = (),
) -> KeptGround:
    if basis.until is not None and basis.until < basis.since:
        raise InputError(f"The ground ends on {basis.until}, before it begins on {basis.since}.")
    values = {
        "target": target,
        "ground": basis.ground.value,
        "since": basis.since.isoformat(),
        "until": basis.until.isoformat() if basis.until else "",
        "reason": basis.reason,
        "conditions": dict(conditions or {}),
        "rules": list(rules),
        "letter": letter,
        "agent": agent[:200],
        "at": now,
        "ended_by": "",
        "ended_reason": "",
    }
    return _kept(connection.execute(insert(grounds).values(**values).returning(*grounds.c)).one())


def end(connection: Connection, number: int, *, agent: str, reason: str, now: datetime) -> KeptGround:
    """It counts no more, from now on; it stays in the history. NotFound when it does not hold."""
    row = connection.execute(
        update(grounds)
        .where(grounds.c.id == number, grounds.c.ended_at.is_(None))
        .values(ended_at=now, ended_by=agent[:200], ended_reason=reason)
        .returning(*grounds.c)
    ).one_or_none()
    if row is None:
        raise NotFound(f"There is no ground {number} that could be ended.")
    return _kept(row)


def set_rules(connection: Connection, number: int, rules: Sequence[int]) -> None:
    connection.execute(update(grounds).where(grounds.c.id == number).values(rules=list(rules)))


def every(connection: Connection, target: TargetId) -> list[KeptGround]:
    """All of them, oldest first, also those that ended."""
    return [
        _kept(row)
        for row in connection.execute(
            select(grounds).where(grounds.c.target == target).order_by(grounds.c.id)
        )
    ]


def holding(connection: Connection, target: TargetId) -> list[KeptGround]:
    """Those that nobody ended; their own days may be over."""
    return [kept for kept in every(connection, target) if kept.ended_at is None]


def past_their_day(connection: Connection, today: date) -> list[KeptGround]:
    """Grounds with a last day that is over and that nobody ended yet."""
    chosen = select(grounds).where(
        grounds.c.ended_at.is_(None), grounds.c.until != "", grounds.c.until < today.isoformat()
    )
    return [_kept(row) for row in connection.execute(chosen.order_by(grounds.c.id))]


def _kept(row: Row[tuple[object, ...]]) -> KeptGround:
    got = row._mapping
    return KeptGround(
        id=got["id"],
        target=TargetId(got["target"]),
        basis=PermissionBasis(
            ground=Ground(got["ground"]),
            since=date.fromisoformat(got["since"]),
            until=date.fromisoformat(got["until"]) if got["until"] else None,
            reason=got["reason"],
        ),
        conditions=got["conditions"],
        rules=tuple(got["rules"]),
        letter=got["letter"],
        agent=got["agent"],
        at=got["at"],
        ended_at=got["ended_at"],
        ended_by=got["ended_by"],
        ended_reason=got["ended_reason"],
    )
