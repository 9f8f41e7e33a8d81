"""Copies: which package is in which place, when it was last read, and with what result.

    waiting ──> whole <──> damaged ──> lost
       │          │                      no place has a good copy of some file
       └──────────┴──> whole again by repair from another place

`copy_tallies` has the number and bytes of copies by place and state, updated in the same transaction, so that
the status of a million packages is a few rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, delete, func, insert, literal, select, tuple_, update

from webdepot.database import Moment
from webdepot.depot import places
from webdepot.depot.places import MAIN
from webdepot.depot.tables import copies, tallies
from webdepot.model import PackageId


class CopyState(StrEnum):
    WAITING = "waiting"
    """To be copied there, or to be updated to the newest version."""
    WHOLE = "whole"
    DAMAGED = "damaged"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    place: str
    package: PackageId
    version: int
    state: CopyState
    size_bytes: int
    checked_at: datetime
    """When every byte of it was last read, or since when it has been waiting."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyTally:
    place: str
    state: CopyState
    copies: int
    size_bytes: int


def record(connection: Connection, copy: Copy) -> None:
    """Write the current facts of a copy; they replace the earlier ones."""
    before = find(connection, copy.place, copy.package)
    values = {
        "version": copy.version,
        "state": copy.state.value,
        "size_bytes": copy.size_bytes,
        "checked_at": copy.checked_at,
        "note": copy.note,
    }
    if before is None:
        connection.execute(insert(copies).values(place=copy.place, package=copy.package, **values))
    else:
        connection.execute(
            update(copies)
            .where(copies.c.place == copy.place, copies.c.package == copy.package)
            .values(**values)
        )
        _count(connection, before, -1)
    _count(connection, copy, +1)


def forget(connection: Connection, place: str, package: PackageId) -> None:
    before = find(connection, place, package)
    if before is not None:
        connection.execute(delete(copies).where(copies.c.place == place, copies.c.package == package))
        _count(connection, before, -1)


def forget_place(connection: Connection, place: str) -> None:
    connection.execute(delete(copies).where(copies.c.place == place))
    connection.execute(delete(tallies).where(tallies.c.place == place))


def expect(
    connection: Connection, package: PackageId, *, version: int, size_bytes: int, now: datetime
) -> None:
    """Record an object that is complete in the main place and has to be copied to all others."""
    for name in (MAIN, *(place.name for place in places.every(connection))):
        is_main = name == MAIN
        copy = Copy(
            place=name,
            package=package,
            version=version if is_main else 0,
            state=CopyState.WHOLE if is_main else CopyState.WAITING,
            size_bytes=size_bytes,
            checked_at=now,
        )
        record(connection, copy)


def expect_all(connection: Connection, place: str, now: datetime) -> int:
    """Mark everything that only the main place has as waiting for this place; return the number."""
    main, there = copies.alias(), copies.alias()
    has = select(there.c.package).where(there.c.place == place, there.c.package == main.c.package).exists()
    missing = (main.c.place == MAIN) & ~has
    count, size_bytes = connection.execute(
        select(func.count(), func.coalesce(func.sum(main.c.size_bytes), 0)).where(missing)
    ).one()
    rows = select(
        literal(place),
        main.c.package,
        literal(0),
        literal(CopyState.WAITING.value),
        main.c.size_bytes,
        literal(now, Moment),
        literal(""),
    ).where(missing)
    names = ["place", "package", "version", "state", "size_bytes", "checked_at", "note"]
    connection.execute(insert(copies).from_select(names, rows))
    _add(connection, place, CopyState.WAITING, int(count), int(size_bytes))
    return int(count)


def due(
    connection: Connection, *, before: datetime, place: str = "", after: Copy | None = None, limit: int
) -> list[Copy]:
    """Copies not read since `before`, the oldest check first; `after` is the last of the page before."""
    chosen = select(copies).where(copies.c.checked_at < before, copies.c.state != CopyState.WAITING.value)
    if place:
        chosen = chosen.where(copies.c.place == place)
    if after is not None:
        order = tuple_(copies.c.checked_at, copies.c.place, copies.c.package)
        chosen = chosen.where(
            order > tuple_(literal(after.checked_at, Moment), literal(after.place), literal(after.package))
        )
    return _copies(
        connection, chosen.order_by(copies.c.checked_at, copies.c.place, copies.c.package).limit(limit)
    )


def in_state(
    connection: Connection, states: Sequence[CopyState], *, place: str = "", after: str = "", limit: int
) -> list[Copy]:
    """Copies in one of these states by place and package; `after` is the last package of the page before."""
    chosen = select(copies).where(copies.c.state.in_([state.value for state in states]))
    if place:
        chosen = chosen.where(copies.c.place == place, copies.c.package > after)
    return _copies(connection, chosen.order_by(copies.c.place, copies.c.package).limit(limit))


def of_package(connection: Connection, package: PackageId) -> list[Copy]:
    return _copies(connection, select(copies).where(copies.c.package == package).order_by(copies.c.place))


def find(connection: Connection, place: str, package: PackageId) -> Copy | None:
    row = (
        connection.execute(select(copies).where(copies.c.place == place, copies.c.package == package))
        .mappings()
        .one_or_none()
    )
    return _copy(row) if row else None


def oldest_check(connection: Connection, place: str) -> datetime | None:
    """When the copy whose last check is the oldest was read."""
    chosen = select(copies.c.checked_at).where(copies.c.place == place).order_by(copies.c.checked_at).limit(1)
    return connection.execute(chosen).scalar_one_or_none()


def tally(connection: Connection) -> list[CopyTally]:
    rows = connection.execute(
        select(tallies).where(tallies.c.copies > 0).order_by(tallies.c.place, tallies.c.state)
    ).mappings()
    return [CopyTally(**dict(row) | {"state": CopyState(row["state"])}) for row in rows]


def _count(connection: Connection, copy: Copy, sign: int) -> None:
    _add(connection, copy.place, copy.state, sign, sign * copy.size_bytes)


def _add(connection: Connection, place: str, state: CopyState, count: int, size_bytes: int) -> None:
    values = {"copies": tallies.c.copies + count, "size_bytes": tallies.c.size_bytes + size_bytes}
    changed = connection.execute(
        update(tallies).where(tallies.c.place == place, tallies.c.state == state.value).values(**values)
    )
    if changed.rowcount == 0:
        connection.execute(
            insert(tallies).values(place=place, state=state.value, copies=count, size_bytes=size_bytes)
        )


def _copies(connection: Connection, chosen: Select[Any]) -> list[Copy]:
    return [_copy(row) for row in connection.execute(chosen).mappings()]


def _copy(row: RowMapping) -> Copy:
    return Copy(**dict(row) | {"package": PackageId(row["package"]), "state": CopyState(row["state"])})
