"""Leases: work that any process on any machine may take, but only one at a time.

A row of such a table has a state, a holder and the end of its lease. A process that takes it writes its name
as the holder, renews the lease while it works, and removes it at the end. A lease that has expired means that
its holder was killed or cut off; the work becomes free, and another process repeats it. Rows are changed in
writing transactions, of which there is one at a time, so two processes never hold the same row.
"""

import os
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Column, Connection, Index, Integer, String, Table, delete, insert, select, update

from webdepot.database import Moment, metadata

takeovers = Table(
    "takeovers",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", Moment, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("subject", String(200), nullable=False),
    Column("lost_by", String(100), nullable=False),
    Column("taken_by", String(100), nullable=False),
    Index("ix_takeovers_kind_subject", "kind", "subject"),
)
"""Work whose holder stopped responding, and its new holder (empty until there is one). Only shown to people;
no code depends on it.
"""
_MOST_TAKEOVERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    at: datetime
    kind: str
    subject: str
    lost_by: str
    taken_by: str


def name_holder() -> str:
    """A new name for a process that holds leases: its machine, its number, and something unique."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(4)}"


def renew(
    connection: Connection, table: Table, numbers: Sequence[int], *, holder: str, until: datetime, state: str
) -> list[int]:
    """Renew the leases of rows in this state; returns those that are still held. A missing one was taken by
    another process.
    """
    wanted = (table.c.id.in_(list(numbers)), table.c.holder == holder, table.c.state == state)
    renewed = update(table).where(*wanted).values(lease_ends_at=until).returning(table.c.id)
    return list(connection.execute(renewed).scalars())


def note_lost(connection: Connection, kind: str, subject: str, *, lost_by: str, now: datetime) -> None:
    """Record that the holder of a lease stopped responding."""
    values = {"at": now, "kind": kind, "subject": subject, "lost_by": lost_by, "taken_by": ""}
    number = connection.execute(insert(takeovers).values(**values).returning(takeovers.c.id)).scalar_one()
    connection.execute(delete(takeovers).where(takeovers.c.id <= number - _MOST_TAKEOVERS))


def note_taken(connection: Connection, kind: str, subject: str, *, taken_by: str) -> None:
    """Record who took over work whose holder stopped responding; does nothing for other work."""
    open_rows = (takeovers.c.kind == kind, takeovers.c.subject == subject, takeovers.c.taken_by == "")
    connection.execute(update(takeovers).where(*open_rows).values(taken_by=taken_by))


def latest_takeovers(connection: Connection, limit: int) -> list[Takeover]:
    chosen = select(takeovers).order_by(takeovers.c.id.desc()).limit(limit)
    return [
        Takeover(at=row.at, kind=row.kind, subject=row.subject, lost_by=row.lost_by, taken_by=row.taken_by)
        for row in connection.execute(chosen)
    ]


def is_expired(lease_ends_at: datetime | None, now: datetime) -> bool:
    return lease_ends_at is None or lease_ends_at <= now
