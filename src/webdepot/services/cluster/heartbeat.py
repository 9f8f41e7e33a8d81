"""A process reports that it is alive: a row that is renewed every ten seconds, from a thread of its own.

Only with a database server. On one machine no other process needs it, and each write to a SQLite file would
invalidate the caches of all processes.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sqlalchemy.exc import SQLAlchemyError

from webdepot import leases
from webdepot.archive import Archive
from webdepot.engine import process_rows
from webdepot.engine.process_rows import WorkerRole, WorkerRow
from webdepot.errors import WebdepotError
from webdepot.version import VERSION

log = logging.getLogger(__name__)
EVERY_S = 10.0


@contextmanager
def shown(archive: Archive, role: WorkerRole) -> Iterator[None]:
    """Show this process as long as the block runs."""
    if not archive.config.database.url:
        yield
        return
    now = archive.clock()
    row = WorkerRow(
        name=leases.name_holder(),
        role=role,
        machine=archive.config.cluster.machine_name,
        version=VERSION,
        began_at=now,
        seen_at=now,
    )
    stop = threading.Event()
    thread = threading.Thread(target=_beat, args=(archive, row, stop), name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _beat(archive: Archive, row: WorkerRow, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            with archive.database.leasing() as connection:
                process_rows.show(connection, replace(row, seen_at=archive.clock()))
        except (WebdepotError, SQLAlchemyError) as error:  # the next beat tries again
            log.warning("the process could not report that it is alive", extra={"error": str(error)})
        stop.wait(EVERY_S)
    try:
        with archive.database.leasing() as connection:
            process_rows.remove(connection, row.name)
    except (WebdepotError, SQLAlchemyError) as error:
        log.warning("the process could not sign off", extra={"error": str(error)})
