"""A SQLite file that contains an index: connections, transactions, versions, and errors.

Any number of threads may read at the same time, each on a connection that it borrows for one query; one
writes at a time. There are as many connections as there were queries at once, and at most `MOST_IDLE` wait
for the next: a connection belongs to no thread, so that threads may come and go. The file records which
version made it; another version is refused, since an index is rebuilt and never migrated.
https://sqlite.org/wal.html

Writers of all processes wait for one another at `NAME.lock`, however long that takes: the captures of a large
container are one transaction. A process that has the file open notices when a rebuild has replaced it, and
opens the new one.
"""

import json
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from webdepot import durable, query_budget
from webdepot.dialects import sqlite_wal
from webdepot.errors import Conflict, CorruptData, NoSpace

PATIENCE_S = 60
"""How long to wait for SQLite's own locks."""
WRITING_CACHE_KB = 16_384
READING_CACHE_KB = 1024
"""Small, because a server has several connections. The system's page cache serves all of them."""
MOST_IDLE = 12
"""Connections that are kept for the next queries."""
REBUILD = "The containers are not affected. Rebuild the index: webdepot index rebuild"


def discard(path: Path) -> None:
    """Remove a file with the files of SQLite beside it; a process that has them open can still read them."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


class SqliteFile:
    """One file. Conflict if another version made it, CorruptData if it is damaged, NoSpace if it cannot be
    written.
    """

    def __init__(self, path: Path, *, what: str, tables: str, made_with: Mapping[str, int]) -> None:
        self._path = path
        self._what = what
        self._tables = tables
        self._made_with = {name: str(value) for name, value in made_with.items()}
        self._opened: tuple[int, int] | None = None
        """Device and inode of the file that connections are open to."""
        self._idle: deque[sqlite3.Connection] = deque()
        self._transaction = threading.local()
        """`connection`: of the transaction that this thread is in; `is_writer`: whether it holds the lock of
        writers.
        """
        self._generation = 0
        """Incremented when all connections are closed: a connection in use at that time is closed when it is
        returned.
        """
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        durable.make_folders(path.parent)
        self._prepare()

    def rows(self, query: str, values: Mapping[str, Any]) -> list[Any]:
        """All rows of a query, read at once: no read transaction is left open. In a transaction of this
        thread it sees what that has written. TooExpensive when the budget of the request is spent.
        """
        try:
            held: sqlite3.Connection | None = getattr(self._transaction, "connection", None)
            if held is not None:
                return held.execute(query, values).fetchall()
            with self._borrow() as connection, query_budget.limited(connection):
                return connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError:
            with self.errors():
                raise

    def names_in(self, table: str, names: Iterable[str]) -> frozenset[str]:
        """Those of these names that a table has, each found by its index."""
        query = f"SELECT name FROM {table} WHERE name IN (SELECT value FROM json_each(:names))"  # noqa: S608 - our own
        return frozenset(name for (name,) in self.rows(query, {"names": json.dumps(list(names))}))

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction, all or nothing; other writers wait."""
        with self._writing, self._only_writer(), self.errors(), self._borrow() as connection:
            connection.execute(f"PRAGMA cache_size = -{WRITING_CACHE_KB}")
            connection.execute("BEGIN IMMEDIATE")
            self._transaction.connection = connection
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._transaction.connection = None
                connection.execute(f"PRAGMA cache_size = -{READING_CACHE_KB}")

    @contextmanager
    def _only_writer(self) -> Iterator[None]:
        """Wait for the writers of other processes. SQLite would give up after some time. A writer that finds
        a new file without tables creates them, so a thread may enter twice.
        """
        if getattr(self._transaction, "is_writer", False):
            yield
            return
        try:
            lock = durable.acquire(self._path.with_name(f"{self._path.name}.lock"))
        except OSError as error:
            raise self._not_writable(error) from error
        with lock:
            self._transaction.is_writer = True
            try:
                yield
            finally:
                self._transaction.is_writer = False

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Several queries on one state of the file; temporary tables may be written. The block may end in
        another thread than it began. TooExpensive when the budget of the request is spent.
        """
        with self.errors(), self._borrow() as connection, query_budget.limited(connection):
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close every connection; the next use opens new ones."""
        with self._lock:
            self._generation += 1
            while self._idle:
                self._idle.pop().close()

    @contextmanager
    def _borrow(self) -> Iterator[sqlite3.Connection]:
        generation, connection = self._generation, self._take()
        try:
            yield connection
        finally:
            self._give_back(connection, generation)

    def _take(self) -> sqlite3.Connection:
        """An idle connection, the one used last, or a new one; to the file that has our name now. If there is
        none, a rebuild has removed it: idle connections can still read it.
        """
        now = self._identity()
        if now != self._opened and (now is not None or not self._idle):
            self.close()
            self._prepare()
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def _identity(self) -> tuple[int, int] | None:
        """Device and inode of the file with our name; None if there is none."""
        try:
            facts = os.stat(self._path)  # noqa: PTH116 - on every query
        except FileNotFoundError:
            return None
        return facts.st_dev, facts.st_ino

    def _give_back(self, connection: sqlite3.Connection, generation: int) -> None:
        with self._lock:
            if generation == self._generation and len(self._idle) < MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _connect(self) -> sqlite3.Connection:
        # Threads use it one after another; SQLite itself is built for that.
        connection = sqlite3.connect(
            self._path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False
        )
        try:
            sqlite_wal.turn_on(connection, patience_s=PATIENCE_S)
            # FULL, not NORMAL, which may lose the last containers in a power cut: a command that has reported
            # success must have left them findable.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA cache_size = -{READING_CACHE_KB}")
            connection.execute("PRAGMA temp_store = MEMORY")
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self) -> None:
        """Create the tables of a new file; Conflict if another version created it."""
        try:
            with self.errors():
                stored = self._versions() or self._make()
                self._opened = self._identity()
        except BaseException:
            self.close()
            raise
        if stored != self._made_with:
            old, new = (
                ", ".join(f"{name} {value}" for name, value in versions.items())
                for versions in (stored, self._made_with)
            )
            self.close()
            raise Conflict(
                f"The {self._what} {self._path} was made by another version of Webdepot "
                f"({old}; this one has {new}). {REBUILD}"
            )

    def _versions(self) -> dict[str, str]:
        """The versions that created the file, read without waiting for a writer; empty if it has no tables
        yet.
        """
        with closing(self._connect()) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                return {}
            return dict(connection.execute("SELECT name, value FROM meta"))

    def _make(self) -> dict[str, str]:
        with self._only_writer(), closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                connection.execute(
                    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
                )
                for statement in self._tables.split(";\n"):
                    connection.execute(statement)
                connection.executemany("INSERT INTO meta VALUES (?, ?)", self._made_with.items())
            stored = dict(connection.execute("SELECT name, value FROM meta"))
            connection.execute("COMMIT")
        return stored

    def _not_writable(self, error: Exception) -> NoSpace:
        return NoSpace(
            f"The {self._what} {self._path} cannot be written: {error}. "
            "Free some space or give write permission."
        )

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Convert SQLite's errors to our own, with advice."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise CorruptData(
                    f"The {self._what} {self._path} is damaged ({error}). {REBUILD}", where=str(self._path)
                ) from error
            if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise self._not_writable(error) from error
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Conflict(
                    f"Another process is writing the {self._what} {self._path}. "
                    "Try again when it has finished."
                ) from error
            raise
