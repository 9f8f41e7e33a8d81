"""The database in a SQLite file (the default): write-ahead log, one writer at a time, nothing to administer.

https://sqlite.org/wal.html
"""

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from webdepot import durable, query_budget
from webdepot.dialects import sqlite_wal
from webdepot.errors import Conflict, NoSpace, WebdepotError

_PATIENCE_S = 30


class SqliteDialect:
    """See `ports.DatabaseDialect`."""

    def __init__(self, url: str) -> None:
        # SQLite opens a file in microseconds; a pool would only keep files open in a home that may be moved.
        self.engine = create_engine(url, poolclass=NullPool)
        event.listen(self.engine, "connect", _prepare)
        event.listen(self.engine, "begin", _begin_immediate)
        self._where = url
        self._file = Path(self.engine.url.database) if self.engine.url.database else None
        self._commits = _Commits(self._file) if self._file else None

    @property
    def reading_options(self) -> Mapping[str, Any]:
        return {"webdepot_reading": True}

    def begin_writing(self, connection: Connection) -> None:
        """Nothing to do: the transaction has begun with BEGIN IMMEDIATE."""

    def end_writing(self, connection: Connection) -> None:
        """Nothing to do: SQLite counts commits itself."""

    def written(self) -> None:
        """Nothing to do: see `_Commits`."""

    def limited(self, connection: Connection) -> AbstractContextManager[None]:
        raw = connection.connection.dbapi_connection
        return query_budget.limited(raw) if isinstance(raw, sqlite3.Connection) else nullcontext()

    def state(self) -> object | None:
        return self._commits.state() if self._commits else None

    @contextmanager
    def one_upgrade(self) -> Iterator[None]:
        if self._file is None:
            yield
            return
        lock = self._file.with_name(f"{self._file.name}.upgrade")
        with durable.locked(lock):
            try:
                yield
            finally:
                lock.unlink()

    def restart_ids(self, connection: Connection) -> None:
        """Nothing to do: the next id of a table is one more than its highest."""

    def explain(self, error: DBAPIError) -> WebdepotError | None:
        if str(error.orig) == "interrupted":
            query_budget.check()
        return explain(str(error.orig), self._where)

    def close(self) -> None:
        if self._commits:
            self._commits.close()
        self.engine.dispose()


def explain(message: str, where: str) -> WebdepotError | None:
    """Our error for a message of SQLite; None if it is not about the disk."""
    remedy = "What was saved is safe. Make room or give write permission, then run the same command again."
    if "disk is full" in message:
        return NoSpace(f"The disk is full: {where}. {remedy}")
    if "readonly" in message or "unable to open database file" in message or "disk I/O error" in message:
        return NoSpace(f"The database cannot be written; the disk is full or read-only: {where}. {remedy}")
    if "database is locked" in message:
        return Conflict(f"Another process has locked {where}. Wait for it, or stop it, and try again.")
    return None


class _Commits:
    """Detects commits to a SQLite file by any process, on a connection used for nothing else.

    Uses SQLite's own counter (https://sqlite.org/pragma.html#pragma_data_version), not the times of its
    files: these change when a commit is written, which may be seconds before it is visible if the disk is
    busy, and two commits may have the same time.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None
        self._times_opened = 0
        """Counters of two connections cannot be compared."""

    def state(self) -> object | None:
        """A value that every commit changes; None if it is unknown, because the file does not exist yet."""
        with self._lock:
            try:
                stat = self._file.stat()
                identity = (stat.st_dev, stat.st_ino)
                if self._opened != identity:  # replaced by another file, as from a backup
                    self._open(identity)
                assert self._connection is not None  # noqa: S101 - just opened
                return self._times_opened, self._connection.execute("PRAGMA data_version").fetchone()[0]
            except (OSError, sqlite3.Error):
                self._close()
                return None

    def _open(self, which: tuple[int, int]) -> None:
        self._close()
        self._connection = sqlite3.connect(
            self._file, timeout=0, isolation_level=None, check_same_thread=False
        )
        self._opened = which
        self._times_opened += 1

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._opened = None


def _prepare(connection: Any, _record: object) -> None:
    # Python's own transaction handling commits unasked before some statements; SQLAlchemy's recipe turns it
    # off.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {_PATIENCE_S * 1000}")
    sqlite_wal.turn_on(cursor, patience_s=_PATIENCE_S)
    # FULL, not NORMAL: in WAL mode NORMAL may lose the last commits in a power cut.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_immediate(connection: Connection) -> None:
    # A deferred transaction that reads first and writes later fails at once if another process wrote between.
    reading = connection.get_execution_options().get("webdepot_reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
