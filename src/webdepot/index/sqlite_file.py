"""A SQLite file that contains an index: connections by thread, transactions, versions, and errors.

Any number of threads may read, each on its own connection; one writes at a time. The file records which
version made it; another version is refused, since an index is rebuilt and never migrated.
https://sqlite.org/wal.html
"""

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from webdepot import durable, sqlite_wal
from webdepot.errors import Conflict, CorruptData, NoSpace

PATIENCE_S = 60
"""How long to wait for another writer."""
WRITING_CACHE_KB = 16_384
READING_CACHE_KB = 1024
"""Small, because each thread of a server has a connection. The system's page cache serves all of them."""
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
        self._threads = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        durable.make_folders(path.parent)
        with self.errors():
            try:
                self._prepare(tables, {name: str(value) for name, value in made_with.items()})
            except BaseException:
                self.close()
                raise

    def rows(self, query: str, values: Mapping[str, Any]) -> list[Any]:
        """All rows of a query, read at once: no read transaction is left open."""
        try:
            return self.connection().execute(query, values).fetchall()
        except sqlite3.DatabaseError:
            with self.errors():
                raise

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction, all or nothing; other writers wait."""
        with self._writing, self.errors():
            connection = self.connection()
            connection.execute(f"PRAGMA cache_size = -{WRITING_CACHE_KB}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                connection.execute(f"PRAGMA cache_size = -{READING_CACHE_KB}")

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Several queries on one state of the file; temporary tables may be written."""
        with self.errors():
            connection = self.connection()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def connection(self) -> sqlite3.Connection:
        """The connection of this thread."""
        connection: sqlite3.Connection | None = getattr(self._threads, "connection", None)
        if connection is None:
            # `close` may close it from any thread; only its own thread uses it.
            connection = sqlite3.connect(
                self._path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False
            )
            with self._lock:
                self._open.append(connection)
            sqlite_wal.turn_on(connection, patience_s=PATIENCE_S)
            # FULL, not NORMAL, which may lose the last containers in a power cut: a command that has reported
            # success must have left them findable.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA cache_size = -{READING_CACHE_KB}")
            connection.execute("PRAGMA temp_store = MEMORY")
            self._threads.connection = connection
        return connection

    def close(self) -> None:
        """Close every connection; the next use opens new ones."""
        with self._lock:
            while self._open:
                self._open.pop().close()
        self._threads = threading.local()

    def _prepare(self, tables: str, made_with: Mapping[str, str]) -> None:
        with self.transaction() as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                connection.execute(
                    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
                )
                for statement in tables.split(";\n"):
                    connection.execute(statement)
                connection.executemany("INSERT INTO meta VALUES (?, ?)", made_with.items())
            stored = dict(connection.execute("SELECT name, value FROM meta"))
        if stored != made_with:
            old, new = (
                ", ".join(f"{name} {value}" for name, value in versions.items())
                for versions in (stored, made_with)
            )
            raise Conflict(
                f"The {self._what} {self._path} was made by another version of Webdepot "
                f"({old}; this one has {new}). {REBUILD}"
            )

    @contextmanager
    def errors(self) -> Iterator[None]:
        """SQLite's errors as our own, with advice."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise CorruptData(
                    f"The {self._what} {self._path} is damaged ({error}). {REBUILD}", where=str(self._path)
                ) from error
            if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                raise NoSpace(
                    f"The {self._what} {self._path} cannot be written: {error}. "
                    "Make room or give write permission."
                ) from error
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Conflict(
                    f"Another process is writing the {self._what} {self._path}. "
                    "Try again when it has finished."
                ) from error
            raise
