"""A SQLite file that holds an index: connections by thread, transactions, versions, and errors in words.

Any number of threads read, each on its own connection; one writes at a time. The file says which version made
it; one of another version is refused, since an index is rebuilt and never migrated.
https://sqlite.org/wal.html
"""

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from webdepot import wal
from webdepot.errors import Conflict, CorruptData, NoSpace

PATIENCE_S = 60
"""So long one waits for others who write."""
WRITING_CACHE_KB = 16_384
READING_CACHE_KB = 1024
"""Each thread of a server has a connection: what one keeps is kept as often as there are threads. The
system's page cache is behind it.
"""
REBUILD = "The containers are not touched. Make the index anew: webdepot index rebuild"


def discard(path: Path) -> None:
    """Remove a file with what SQLite keeps beside it; what another process has open stays readable to it."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


class SqliteFile:
    """One file. Conflict when another version made it, CorruptData when it is damaged, NoSpace when it cannot
    be written.
    """

    def __init__(self, path: Path, *, what: str, tables: str, made_with: Mapping[str, int]) -> None:
        self._path = path
        self._what = what
        self._threads = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
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

    def has_rows(self, query: str, values: Sequence[Any]) -> bool:
        """Whether a query has any row at all; a third of the time of `rows`."""
        try:
            return self.connection().execute(query, values).fetchone() is not None
        except sqlite3.DatabaseError:
            with self.errors():
                raise

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it or nothing; others wait."""
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
        """This thread's own."""
        connection: sqlite3.Connection | None = getattr(self._threads, "connection", None)
        if connection is None:
            # Closed by `close` from whatever thread; used by its own thread alone.
            connection = sqlite3.connect(
                self._path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False
            )
            with self._lock:
                self._open.append(connection)
            wal.turn_on(connection, patience_s=PATIENCE_S)
            # A power cut may lose the last containers, which `index update` then adds again; it never damages
            # the file.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA cache_size = -{READING_CACHE_KB}")
            connection.execute("PRAGMA temp_store = MEMORY")
            self._threads.connection = connection
        return connection

    def close(self) -> None:
        """Closes every connection; the next use opens new ones."""
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
            found = dict(connection.execute("SELECT name, value FROM meta"))
        if found != made_with:
            said, wanted = (
                ", ".join(f"{name} {value}" for name, value in versions.items())
                for versions in (found, made_with)
            )
            raise Conflict(
                f"The {self._what} {self._path} was made by another version of Webdepot ({said}; this one has {wanted}). {REBUILD}"
            )

    @contextmanager
    def errors(self) -> Iterator[None]:
        """SQLite's errors in words for a person."""
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
                    f"The {self._what} {self._path} cannot be written: {error}. Make room or give write permission."
                ) from error
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise Conflict(
                    f"The {self._what} {self._path} is being written by another process. Try again when it is done."
                ) from error
            raise
