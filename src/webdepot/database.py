"""The database: SQLAlchemy Core on SQLite (WAL) by default; nothing in the schema that PostgreSQL could not do.

Tables stand in the `tables.py` of the room that owns them and register with `metadata`. The schema is made and changed by
the Alembic migrations in `migrations/` alone; `upgrade` runs them and refuses a home that a newer version has written.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Dialect, Engine, MetaData, String, TypeDecorator, create_engine, event, inspect
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from webdepot.errors import Conflict, NoSpace, WebdepotError
from webdepot.times import from_iso

if TYPE_CHECKING:
    from alembic.config import Config as AlembicConfig

_MIGRATIONS = Path(__file__).parent / "migrations"
_MOST_REMEMBERED = 10_000
_SETTLED_S = 1.0
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
    """An aware UTC datetime, kept as ISO 8601 text with microseconds: sorts as text, reads the same on every engine."""

    impl = String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        return None if value is None else value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        return None if value is None else from_iso(value)


class Database:
    """Connections and transactions. Any thread may use it; each transaction has its own connection."""

    def __init__(self, url: str) -> None:
        self.url = url
        # SQLite opens a file in microseconds; a pool would only keep handles of a home that may be moved or removed.
        self.engine = create_engine(url, poolclass=NullPool)
        if self.engine.dialect.name == "sqlite":
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_immediate)
        self._remembered: dict[str, tuple[object, Any]] = {}
        file = self.engine.url.database if self.engine.dialect.name == "sqlite" else None
        self._files = (file, f"{file}-wal") if file else ()

    @classmethod
    def in_file(cls, path: Path) -> "Database":
        return cls(f"sqlite:///{path}")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All of it or nothing; durable when the block ends."""
        with _in_words(self.url), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent view without a write lock."""
        with _in_words(self.url), self.engine.connect().execution_options(webdepot_reading=True) as connection:
            yield connection

    def remembered(self, name: str, read: Callable[[Connection], Value]) -> Value:
        """What `read` gives, kept under that name until anybody commits anything. For small facts asked for on every request."""
        state = self._state()
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

    def _state(self) -> object | None:
        """A value that every commit of any process changes: times and sizes of SQLite's files. None when it cannot be told.

        File times have ticks of some milliseconds, so a state that is younger than a second may still change unseen.
        """
        seen: list[tuple[int, int, int]] = []
        settled_at = time.time() - _SETTLED_S
        for file in self._files:
            try:
                stat = os.stat(file)  # noqa: PTH116 - asked for on every request; a Path costs more than the question
            except OSError:
                continue
            if stat.st_mtime > settled_at:
                return None
            seen.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        return tuple(seen) or None

    def upgrade(self) -> None:
        """Bring the schema to this version; Conflict when a newer version has written it."""
        known = sorted(path.name[:4] for path in (_MIGRATIONS / "versions").glob("[0-9][0-9][0-9][0-9]_*.py"))
        current = self.revision()
        if current is not None and current not in known:
            raise Conflict(
                f"The database {self.engine.url.render_as_string()} was written by a newer version of Webdepot (schema {current}). "
                "Nothing was changed. Install that version or a later one: pip install --upgrade webdepot"
            )
        if known and current != known[-1]:
            # Alembic takes a third of a second to import: only where there is something to do.
            import alembic.command

            alembic.command.upgrade(_alembic(self.engine), "head")

    def revision(self) -> str | None:
        """The number of the migration that the database stands at; None for an empty one."""
        with self.reading() as connection:
            if not inspect(connection).has_table("alembic_version"):
                return None
            return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()

    def close(self) -> None:
        self.engine.dispose()


@contextmanager
def _in_words(url: str) -> Iterator[None]:
    """What SQLite says of the disk, as our own errors; anything else is a fault in the program and passes."""
    try:
        yield
    except OperationalError as error:
        explained = explain(str(error.orig), url)
        if explained is None:
            raise
        raise explained from error


def explain(message: str, where: str) -> WebdepotError | None:
    """The error for a person behind a message of SQLite; None when it is no matter of the disk."""
    remedy = "What was acknowledged is safe. Make room or give write permission, then run the same command again."
    if "disk is full" in message:
        return NoSpace(f"The disk is full: {where}. {remedy}")
    if "readonly" in message or "unable to open database file" in message or "disk I/O error" in message:
        return NoSpace(f"The database cannot be written; the disk is full or read-only: {where}. {remedy}")
    if "database is locked" in message:
        return Conflict(f"Another process keeps {where} locked. Wait for it, or stop it, and try again.")
    return None


def _alembic(engine: Engine) -> "AlembicConfig":
    from alembic.config import Config as AlembicConfig

    config = AlembicConfig()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["engine"] = engine
    return config


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # Python's own transaction handling commits behind our back before some statements; SQLAlchemy's recipe turns it off.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout = 30000")
    cursor.execute("PRAGMA journal_mode = WAL")
    # FULL, not NORMAL: in WAL mode NORMAL may lose the last commits in a power cut.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_immediate(connection: Connection) -> None:
    # A deferred transaction that reads first and writes later fails at once when another writer came between.
    reading = connection.get_execution_options().get("webdepot_reading", False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
