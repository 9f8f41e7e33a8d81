"""A schema of a PostgreSQL database that contains an index: connections, transactions, versions, errors.

Any number of threads and processes may read and write at the same time. Each query and each transaction
borrows a connection; at most `MOST_IDLE` wait for the next. If the server was restarted, a query is repeated
once on a new connection. The schema records which version made it; another version is refused, since an index
is rebuilt and never migrated.
"""

import math
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors as refusals
from psycopg.types.numeric import Int8Dumper

from webdepot import query_budget
from webdepot.dialects.postgresql_connection import address_of, connect, explain, prepare
from webdepot.errors import ConfigError, Conflict, WebdepotError
from webdepot.index.sqlite_file import REBUILD

MOST_IDLE = 12
"""Connections that are kept for the next queries."""
_MAKING = 8_247_340_003
"""Number of the advisory lock under which a schema is created or removed."""
# The plans are fixed, as far as PostgreSQL allows it: an index that grows quickly has no good statistics, and
# planning a query takes longer than running it.
# Writers wait for one another however long that takes.
_SETTINGS = """
SET search_path = {name}; SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off;
SET enable_mergejoin = off; SET max_parallel_workers_per_gather = 0; SET jit = off; SET lock_timeout = 0;
SET plan_cache_mode = force_generic_plan
"""


@dataclass(slots=True)
class _Line:
    """A connection and its time limit for a query in seconds; 0 is none."""

    connection: psycopg.Connection[Any]
    limit_s: int = 0


class PostgresqlSchema:
    """One schema. Conflict if another version made it, ConfigError if the database cannot be opened,
    RemoteError if the server does not answer.
    """

    def __init__(
        self, url: str, password: str, *, name: str, what: str, tables: str, made_with: Mapping[str, int]
    ) -> None:
        self._address = address_of(url, password)
        self._where = self._address.render_as_string()  # without the password
        self._name = name
        self._what = what
        self._tables = tables
        self._made_with = {key: str(value) for key, value in made_with.items()}
        self._idle: deque[_Line] = deque()
        self._lock = threading.Lock()
        self._prepare()

    def rows(self, query: bytes, values: Mapping[str, Any]) -> list[Any]:
        """All rows of a query. TooExpensive if the budget of the request is exceeded."""
        with self._explained():
            line = self._take()
            try:
                rows = _rows(line, query, values)
            except psycopg.OperationalError:
                if not line.connection.broken:
                    self._give_back(line)
                    raise
                # The server was restarted, or the connection was cut: others of that time are dead, too.
                self.close()
                line = self._connect()
                rows = _rows(line, query, values)
            except BaseException:
                self._give_back(line)
                raise
            self._give_back(line)
            return rows

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """A transaction, all or nothing; others may run at the same time."""
        with self._explained():
            self.rows(b"SELECT 1", {})  # replaces idle connections that are dead
            line = self._take()
            try:
                if line.limit_s:
                    _set_limit(line, 0)
                with line.connection.transaction():
                    yield line.connection
            finally:
                self._give_back(line)

    def close(self) -> None:
        """Close idle connections; the next use opens new ones."""
        with self._lock:
            lines, self._idle = self._idle, deque()
        for line in lines:
            line.connection.close()

    def _take(self) -> _Line:
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _give_back(self, line: _Line) -> None:
        with self._lock:
            if not line.connection.closed and len(self._idle) < MOST_IDLE:
                self._idle.append(line)
                return
        line.connection.close()

    def _connect(self) -> _Line:
        connection = connect(self._address)
        try:
            prepare(connection)
            # All numbers are sent as one type: a statement is prepared once, not for each size of a number.
            connection.adapters.register_dumper(int, Int8Dumper)
            connection.execute(_SETTINGS.format(name=self._name).encode())
        except BaseException:
            connection.close()
            raise
        return _Line(connection)

    def _prepare(self) -> None:
        """Create the tables in a new schema; Conflict if another version created it."""
        with self._explained(), connect(self._address) as connection:
            prepare(connection)
            connection.execute(f"SET search_path = {self._name}".encode())
            stored = self._versions(connection) or self._make(connection)
        if stored != self._made_with:
            old, new = (
                ", ".join(f"{name} {value}" for name, value in sorted(versions.items()))
                for versions in (stored, self._made_with)
            )
            raise Conflict(
                f"The {self._what} in {self._where} was made by another version of Webdepot "
                f"({old}; this one has {new}). {REBUILD}"
            )

    def _versions(self, connection: psycopg.Connection[Any]) -> dict[str, str]:
        """The versions that created the schema; empty if it does not exist yet."""
        (table,) = connection.execute(b"SELECT to_regclass(%s)", (f"{self._name}.meta",)).fetchone() or (
            None,
        )
        return dict(connection.execute(b"SELECT name, value FROM meta").fetchall()) if table else {}

    def _make(self, connection: psycopg.Connection[Any]) -> dict[str, str]:
        with connection.transaction():
            connection.execute(b"SET LOCAL lock_timeout = 0")
            connection.execute(b"SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            if stored := self._versions(connection):
                return stored
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._name}".encode())
            connection.execute(b"CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL)")
            connection.execute(self._tables.encode())
            with connection.cursor() as cursor:
                cursor.executemany(b"INSERT INTO meta VALUES (%s, %s)", list(self._made_with.items()))
        return self._made_with

    def _explained(self) -> AbstractContextManager[None]:
        return _explained(self._where)


def discard(url: str, password: str, name: str) -> None:
    """Remove a schema, whatever version created it; the next use creates it again."""
    address = address_of(url, password)
    with _explained(address.render_as_string()), connect(address) as connection, connection.transaction():
        connection.execute(b"SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
        connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())


@contextmanager
def _explained(where: str) -> Iterator[None]:
    """Convert errors of the server to our own errors, with advice; others are program errors and pass
    unchanged.
    """
    try:
        yield
    except psycopg.Error as error:
        explained = _explain(error, where)
        if explained is None:
            raise
        raise explained from error


def _explain(error: psycopg.Error, where: str) -> WebdepotError | None:
    match error:
        case refusals.InsufficientPrivilege():
            return ConfigError(
                f"An index cannot be created in {where}: {error.diag.message_primary}. Ask the owner of "
                "the database to run there: GRANT CREATE ON DATABASE NAME TO USER"
            )
        case refusals.UndefinedTable() | refusals.InvalidSchemaName():
            return Conflict(f"The index in {where} was removed by another process. {REBUILD}")
    return explain(error, where)


def _rows(line: _Line, query: bytes, values: Mapping[str, Any]) -> list[Any]:
    left_s = query_budget.left_s()
    if left_s is not None:
        query_budget.check()
    # In whole seconds: the limit of a connection then rarely changes.
    limit_s = 0 if left_s is None else math.ceil(left_s)
    if limit_s != line.limit_s:
        _set_limit(line, limit_s)
    return line.connection.execute(query, values, binary=True).fetchall()


def _set_limit(line: _Line, limit_s: int) -> None:
    line.connection.execute(f"SET statement_timeout = {limit_s * 1000}".encode())
    line.limit_s = limit_s
