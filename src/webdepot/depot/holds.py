"""Holds: reasons why a package may not be withdrawn. A legal hold is in force until it is released; retention
ends a number of years after the deposit.

Both apply to a package or to a whole collection, with a date, a person and a reason. A release is dated too,
and its row stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, RowMapping, insert, select, update

from webdepot.depot.tables import holds
from webdepot.errors import NotFound


class HoldKind(StrEnum):
    LEGAL = "legal"
    RETENTION = "retention"


class HoldScope(StrEnum):
    PACKAGE = "package"
    COLLECTION = "collection"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    id: int = 0
    kind: HoldKind
    scope: HoldScope
    subject: str
    """Identifier of the package, or name of the collection."""
    reason: str
    agent: str
    placed_at: datetime
    until: datetime | None = None
    """When it ends without being released; None if it does not."""
    years: int | None = None
    """Of retention: how long after the deposit of each package."""
    released_at: datetime | None = None
    released_by: str = ""


def place(connection: Connection, hold: Hold) -> Hold:
    values = {
        "kind": hold.kind.value,
        "scope": hold.scope.value,
        "subject": hold.subject,
        "reason": hold.reason,
        "agent": hold.agent,
        "placed_at": hold.placed_at,
        "until": hold.until,
        "years": hold.years,
        "released_at": None,
        "released_by": "",
    }
    return _hold(connection.execute(insert(holds).values(**values).returning(holds)).mappings().one())


def release(connection: Connection, number: int, *, agent: str, now: datetime) -> Hold:
    """End a hold; NotFound if there is none, or it was released before."""
    chosen = (
        update(holds)
        .where(holds.c.id == number, holds.c.released_at.is_(None))
        .values(released_at=now, released_by=agent)
    )
    row = connection.execute(chosen.returning(holds)).mappings().one_or_none()
    if row is None:
        raise NotFound(f"There is no active hold {number}. See: webdepot package hold --list")
    return _hold(row)


def every(connection: Connection) -> list[Hold]:
    return [_hold(row) for row in connection.execute(select(holds).order_by(holds.c.id)).mappings()]


def active(
    connection: Connection, *, package: str, collection: str, stored_at: datetime, now: datetime
) -> Sequence[Hold]:
    """The holds that currently forbid the withdrawal of this package."""
    subject = ((holds.c.scope == HoldScope.PACKAGE.value) & (holds.c.subject == package)) | (
        (holds.c.scope == HoldScope.COLLECTION.value) & (holds.c.subject == collection)
    )
    rows = connection.execute(
        select(holds).where(subject, holds.c.released_at.is_(None)).order_by(holds.c.id)
    ).mappings()
    return [hold for hold in map(_hold, rows) if _is_active(hold, stored_at, now)]


def _is_active(hold: Hold, stored_at: datetime, now: datetime) -> bool:
    if hold.until is not None and now >= hold.until:
        return False
    return hold.years is None or now < _years_later(stored_at, hold.years)


def _years_later(moment: datetime, years: int) -> datetime:
    try:
        return moment.replace(year=moment.year + years)
    except ValueError:  # 29 February
        return moment.replace(year=moment.year + years, month=3, day=1)


def _hold(row: RowMapping) -> Hold:
    return Hold(**dict(row) | {"kind": HoldKind(row["kind"]), "scope": HoldScope(row["scope"])})
