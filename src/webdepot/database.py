"""The database: SQLAlchemy Core on SQLite (WAL) by default; the schema uses nothing that PostgreSQL lacks.

Tables are in the `tables.py` of the component that owns them and register with `metadata`. Only the Alembic
migrations in `migrations/` create and change the schema; `upgrade` runs them and refuses a home written by a
newer version.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    Connection,
    Dialect,
    Engine,
    MetaData,
    String,
    Text,
    TypeDecorator,
    create_engine,
    event,
    inspect,
)
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from webdepot import query_budget, sqlite_wal
from webdepot.errors import Conflict, NoSpace, WebdepotError
from webdepot.reasons import from_kept, to_kept
from webdepot.times import from_iso

if TYPE_CHECKING:
    from alembic.config import Config as AlembicConfig

_MIGRATIONS = Path(__file__).parent / "migrations"
_MOST_REMEMBERED = 10_000
_PATIENCE_S = 30
Value = TypeVar("Value")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Moment(TypeDecorator[datetime]):
    """An aware UTC datetime, stored as ISO 8601 text with microseconds: sorts as text, the same in every
    database.
    """

    impl = String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        return None if value is None else value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        return None if value is None else from_iso(value)


class Said(TypeDecorator[str]):
    """A text that may be a `Reason`: stored with its key and values, and read as a reason again."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else to_kept(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:
        return None if value is None else from_kept(value)


class Database:
    """Connections and transactions. Any thread may use it; each transaction has its own connection."""

    def __init__(self, url: str) -> None:
        self.url = url
        # SQLite opens a file in microseconds; a pool would only keep files open in a home that may be moved.
        self.engine = create_engine(url, poolclass=NullPool)
        if self.engine.dialect.name == "sqlite":
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_immediate)
        self._remembered: dict[str, tuple[object, Any]] = {}
        self._threads = threading.local()
        self._commits = (
            _Commits(self.engine.url.database)
            if self.engine.dialect.name == "sqlite" and self.engine.url.database
            else None
        )

    @classmethod
    def in_file(cls, path: Path) -> "Database":
        return cls(f"sqlite:///{path}")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction, all or nothing; durable when the block ends."""
        with _explained(self.url), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent view without a write lock. TooExpensive when the budget of the request is spent."""
        with (
            _explained(self.url),
            self.engine.connect().execution_options(webdepot_reading=True) as connection,
            _limited(connection),
        ):
            yield connection

    def remembered(self, name: str, read: Callable[[Connection], Value]) -> Value:
        """The result of `read`, cached under that name until any process commits. For small facts that every
        request needs.
        """
        # The state is read before the value: a commit in between makes the value new and the state old, never
        # the other way round.
        state = getattr(self._threads, "moment", None) or (self._commits.state() if self._commits else None)
        known = self._remembered.get(name)
        if known is not None and state is not None and known[0] == state:
            value: Value = known[1]
            return value
        with self.reading() as connection:
            value = read(connection)
        if state is not None:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[name] = (state, value)
        return value

    @contextmanager
    def at_one_moment(self) -> Iterator[None]:
        """Check for commits only once for everything that this thread has `remembered` in the block. Nothing
        may be written in it.

        For requests that take less than a millisecond: a commit meanwhile counts from the next request on.
        """
        self._threads.moment = self._commits.state() if self._commits else None
        try:
            yield
        finally:
            self._threads.moment = None

    def upgrade(self) -> None:
        """Bring the schema to this version; Conflict if a newer version has written it."""
        known = sorted(path.name[:4] for path in (_MIGRATIONS / "versions").glob("[0-9][0-9][0-9][0-9]_*.py"))
        current = self.revision()
        if current is not None and current not in known:
            raise Conflict(
                f"The database {self.engine.url.render_as_string()} was written by a newer version "
                f"of Webdepot (schema {current}). Nothing was changed. "
                "Install that version or a later one: pip install --upgrade webdepot"
            )
        if known and current != known[-1]:
            # Alembic takes a third of a second to import: only if there is something to do.
            import alembic.command

            alembic.command.upgrade(_alembic(self.engine), "head")

    def revision(self) -> str | None:
        """The number of the last migration of the database; None for an empty one."""
        with self.reading() as connection:
            if not inspect(connection).has_table("alembic_version"):
                return None
            return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()

    def close(self) -> None:
        if self._commits:
            self._commits.close()
        self.engine.dispose()


class _Commits:
    """Detects commits to a SQLite file by any process, on a connection used for nothing else.

    Uses SQLite's own counter (https://sqlite.org/pragma.html#pragma_data_version), not the times of its
    files: these change when a commit is written, which may be seconds before it is visible if the disk is
    busy, and two commits may have the same time.
    """

    def __init__(self, file: str) -> None:
        self._file = Path(file)
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


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """SQLite's errors about the disk as our own errors; others are program errors and pass unchanged."""
    try:
        yield
    except OperationalError as error:
        if str(error.orig) == "interrupted":
            query_budget.check()
        explained = explain(str(error.orig), url)
        if explained is None:
            raise
        raise explained from error


def _limited(connection: Connection) -> AbstractContextManager[None]:
    """Queries that end when the budget of the request is spent."""
    raw = connection.connection.dbapi_connection
    return query_budget.limited(raw) if isinstance(raw, sqlite3.Connection) else nullcontext()


def explain(message: str, where: str) -> WebdepotError | None:
    """Our error for a message of SQLite; None if it is not about the disk."""
    remedy = (
        "Everything acknowledged is safe. Make room or give write permission, then run the same command "
        "again."
    )
    if "disk is full" in message:
        return NoSpace(f"The disk is full: {where}. {remedy}")
    if "readonly" in message or "unable to open database file" in message or "disk I/O error" in message:
        return NoSpace(f"The database cannot be written; the disk is full or read-only: {where}. {remedy}")
    if "database is locked" in message:
        return Conflict(f"Another process has locked {where}. Wait for it, or stop it, and try again.")
    return None


def _alembic(engine: Engine) -> "AlembicConfig":
    from alembic.config import Config as AlembicConfig

    config = AlembicConfig()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["engine"] = engine
    return config


def _prepare_sqlite(connection: Any, _record: object) -> None:
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
