"""The database on a PostgreSQL server (12 or later), for an archive on several machines.

It gives the guarantees that the rest of the program expects from SQLite:

- One writer at a time. A writing transaction first takes an advisory lock, which ends with it, so what it
  reads stays true until it commits (https://www.postgresql.org/docs/current/explicit-locking.html).
- A reading transaction sees one moment: REPEATABLE READ, READ ONLY.
- Commits of every machine are noticed. A writing transaction ends with NOTIFY; each process listens on a
  connection of its own and checks it before it uses a cached value. While that connection is broken, nothing
  is cached.
- Migrations run once: under another advisory lock.
- PostgreSQL does not allow NUL in texts, but foreign pages contain it: it is stored as U+FFFD, as HTML
  parsers do.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, MetaData, create_engine, event, func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from webdepot import query_budget
from webdepot.dialects.postgresql_connection import (
    CONNECTED,
    PATIENCE_S,
    address_of,
    connect,
    explain,
    prepare,
)
from webdepot.errors import WebdepotError

_WRITING, _UPGRADING = 8_247_340_001, 8_247_340_002
"""Numbers of our advisory locks. A database belongs to one archive, so they are the same in all."""
_CHANNEL = "webdepot_commits"
_SURE_FOR_S = 0.05
"""How long a silent connection is assumed to work before it is tested: for so long, old values can be used
after the connection was cut silently.
"""


class PostgresqlDialect:
    """See `ports.DatabaseDialect`."""

    def __init__(self, url: str, password: str) -> None:
        named = address_of(url, password)
        self._where = named.render_as_string()  # without the password
        self.engine = create_engine(
            named,
            poolclass=QueuePool,
            pool_size=5,
            max_overflow=40,
            pool_timeout=PATIENCE_S,
            pool_pre_ping=True,  # the server may have been restarted
            connect_args=CONNECTED,
            use_native_hstore=False,  # a new connection would query it first
        )
        event.listen(self.engine, "connect", lambda connection, _record: prepare(connection))
        self._commits = _Commits(self.engine)

    @property
    def reading_options(self) -> Mapping[str, Any]:
        return {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}

    def begin_writing(self, connection: Connection) -> None:
        connection.execute(_LOCK, {"number": _WRITING})

    def end_writing(self, connection: Connection) -> None:
        connection.execute(_NOTIFY)

    def written(self) -> None:
        # Our own notification may still be on its way.
        self._commits.count()

    def limited(self, connection: Connection) -> AbstractContextManager[None]:
        return _limited(connection)

    def state(self) -> object | None:
        return self._commits.state()

    @contextmanager
    def one_upgrade(self) -> Iterator[None]:
        # Not in a transaction of ours: migrations have their own.
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("SET lock_timeout = 0"))  # another machine may upgrade for minutes
            connection.execute(text("SELECT pg_advisory_lock(:number)"), {"number": _UPGRADING})
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:number)"), {"number": _UPGRADING})
                connection.invalidate()  # its lock_timeout is not that of others

    def restart_ids(self, connection: Connection) -> None:
        known = MetaData()
        known.reflect(connection)
        for table in known.sorted_tables:
            column = table.autoincrement_column
            if column is None:
                continue
            sequence = connection.scalar(select(func.pg_get_serial_sequence(table.name, column.name)))
            highest = connection.scalar(select(func.max(column)))
            if sequence is not None and highest is not None:
                connection.execute(select(func.setval(sequence, highest)))

    def explain(self, error: DBAPIError) -> WebdepotError | None:
        return explain(error.orig, self._where)

    def close(self) -> None:
        self._commits.close()
        self.engine.dispose()


_LOCK = text("SELECT pg_advisory_xact_lock(:number)")
_NOTIFY = text(f"NOTIFY {_CHANNEL}")


class _Commits:
    """Detects commits to the database by any process of any machine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None
        self._count = 0
        """Changes with each commit, and with each new connection: what happened in between is not known."""
        self._sure_until_s = 0.0

    def count(self) -> None:
        """A transaction of this process was committed."""
        with self._lock:
            self._count += 1

    def state(self) -> object | None:
        """A value that every commit changes; None if it is unknown, because the server does not answer."""
        with self._lock:
            try:
                if self._connection is None:
                    self._open()
                assert self._connection is not None  # noqa: S101 - just opened
                self._look(self._connection)
            except (psycopg.Error, OSError):
                self._close()
                return None
            return self._count

    def _open(self) -> None:
        self._connection = connect(self._engine.url)
        self._connection.execute(f"LISTEN {_CHANNEL}")  # type: ignore[call-overload,unused-ignore]
        self._connection.add_notify_handler(self._notified)  # those that arrive with the answer to a query
        self._count += 1
        self._sure_until_s = time.monotonic() + _SURE_FOR_S

    def _notified(self, _notification: object) -> None:
        self._count += 1

    def _look(self, connection: psycopg.Connection[Any]) -> None:
        if time.monotonic() >= self._sure_until_s:
            connection.execute("SELECT 1")  # raises if the connection is broken; also fetches notifications
            self._sure_until_s = time.monotonic() + _SURE_FOR_S
        low = connection.pgconn
        low.consume_input()
        while low.notifies() is not None:
            self._count += 1

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


@contextmanager
def _limited(connection: Connection) -> Iterator[None]:
    left_s = query_budget.left_s()
    if left_s is not None:
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {max(1, int(left_s * 1000))}")
    yield
