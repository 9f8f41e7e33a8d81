"""Leases: work that any process of any machine may take, but one at a time does.

A row of such a table has a state, a holder and the end of its lease. A process that takes it writes its name
as the holder, renews the lease while it works, and removes it at the end. A lease that has expired means that
its holder was killed or cut off; the work waits again, and another process repeats it. Rows are changed in
writing transactions, of which there is one at a time, so two processes never hold the same row.
"""

import os
import secrets
import socket
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, Table, update


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


def is_expired(lease_ends_at: datetime | None, now: datetime) -> bool:
    return lease_ends_at is None or lease_ends_at <= now
