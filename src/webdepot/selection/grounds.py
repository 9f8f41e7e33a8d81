"""Grounds of a target in the database. A ground is never changed, only ended; each is stored with the person
who recorded it, the reason, and the access rules that came with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from sqlalchemy import Connection, Row, insert, select, update

from webdepot.errors import InputError, NotFound
from webdepot.model import TargetId
from webdepot.selection.permission_basis import Ground, PermissionBasis
from webdepot.selection.tables import grounds


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptGround:
    """A ground as recorded in the database."""

    id: int
    target: TargetId
    basis: PermissionBasis
    conditions: Mapping[str, object] = field(default_factory=dict)
    rules: tuple[int, ...] = ()
    """Numbers of the access rules that came with it."""
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
    """End a ground now; it stays in the history. NotFound if it does not exist or has already ended."""
    row = connection.execute(
        update(grounds)
        .where(grounds.c.id == number, grounds.c.ended_at.is_(None))
        .values(ended_at=now, ended_by=agent[:200], ended_reason=reason)
        .returning(*grounds.c)
    ).one_or_none()
    if row is None:
        raise NotFound(f"There is no ground {number} that could be ended. It may have ended already.")
    return _kept(row)


def every(connection: Connection, target: TargetId) -> list[KeptGround]:
    """All grounds of a target, oldest first, including those that have ended."""
    return [
        _kept(row)
        for row in connection.execute(
            select(grounds).where(grounds.c.target == target).order_by(grounds.c.id)
        )
    ]


def not_ended(connection: Connection, target: TargetId) -> list[KeptGround]:
    """Grounds that have not been ended; their last day may still be in the past."""
    return [kept for kept in every(connection, target) if kept.ended_at is None]


def expired(connection: Connection, today: date) -> list[KeptGround]:
    """Grounds whose last day has passed and that have not been ended yet."""
    chosen = select(grounds).where(
        grounds.c.ended_at.is_(None), grounds.c.until != "", grounds.c.until < today.isoformat()
    )
    return [_kept(row) for row in connection.execute(chosen.order_by(grounds.c.id))]


def _kept(row: Row[tuple[object, ...]]) -> KeptGround:
    values = row._mapping
    return KeptGround(
        id=values["id"],
        target=TargetId(values["target"]),
        basis=PermissionBasis(
            ground=Ground(values["ground"]),
            since=date.fromisoformat(values["since"]),
            until=date.fromisoformat(values["until"]) if values["until"] else None,
            reason=values["reason"],
        ),
        conditions=values["conditions"],
        rules=tuple(values["rules"]),
        letter=values["letter"],
        agent=values["agent"],
        at=values["at"],
        ended_at=values["ended_at"],
        ended_by=values["ended_by"],
        ended_reason=values["ended_reason"],
    )
