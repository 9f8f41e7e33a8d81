"""Processes that serve an archive, as rows: portals, workers for jobs and schedulers report that they are
alive.

A row says nothing about leases. It is for people who watch the machines, and for commands that must not run
while others do. A process that ends removes its row; the row of one that was killed stays for a day.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection, delete, insert, select, update

from webdepot.engine.tables import workers

SILENT_AFTER = timedelta(seconds=30)
"""A process that did not report for this long counts as dead."""
_FORGET_AFTER = timedelta(days=1)


class WorkerRole(StrEnum):
    PORTAL = "portal"
    BATCH = "batch"
    SCHEDULER = "scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    name: str
    role: WorkerRole
    machine: str
    version: str
    began_at: datetime
    seen_at: datetime

    def is_alive(self, now: datetime) -> bool:
        return now - self.seen_at < SILENT_AFTER


def show(connection: Connection, worker: WorkerRow) -> None:
    """Store that a process is alive."""
    own = workers.c.name == worker.name
    if connection.execute(update(workers).where(own).values(seen_at=worker.seen_at)).rowcount == 0:
        values = {
            "name": worker.name,
            "role": worker.role.value,
            "machine": worker.machine,
            "version": worker.version,
            "began_at": worker.began_at,
            "seen_at": worker.seen_at,
        }
        connection.execute(insert(workers).values(**values))
        connection.execute(delete(workers).where(workers.c.seen_at < worker.seen_at - _FORGET_AFTER))


def remove(connection: Connection, name: str) -> None:
    connection.execute(delete(workers).where(workers.c.name == name))


def every(connection: Connection) -> Sequence[WorkerRow]:
    """All processes seen in the last day, by role and machine."""
    chosen = select(workers).order_by(workers.c.role, workers.c.machine, workers.c.began_at)
    return [
        WorkerRow(**{**row, "role": WorkerRole(row["role"])}) for row in connection.execute(chosen).mappings()
    ]
