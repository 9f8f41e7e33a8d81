"""The database: SQLAlchemy Core on a SQLite file by default, or on a PostgreSQL server.

Tables are in the `tables.py` of the component that owns them and register with `metadata`. Only the Alembic
migrations in `migrations/` create and change the schema; `upgrade` runs them and refuses a home written by a
newer version.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    Connection,
    Dialect,
    Engine,
    MetaData,
    Row,
    String,
    Text,
    TextClause,
    TypeDecorator,
    inspect,
)
from sqlalchemy.exc import DBAPIError

from webdepot.dialects.sqlite import SqliteDialect
from webdepot.errors import ConfigError, Conflict
from webdepot.ports.database import DatabaseDialect
from webdepot.reasons import from_kept, to_kept
from webdepot.times import from_iso

if TYPE_CHECKING:
    from alembic.config import Config as AlembicConfig

_MIGRATIONS = Path(__file__).parent / "migrations"
_MOST_REMEMBERED = 10_000
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

    def __init__(self, url: str, *, password: str = "") -> None:
        self.url = url
        self._dialect = _open_dialect(url, password)
        self.engine = self._dialect.engine
        self._remembered: dict[str, tuple[object, Any]] = {}
        self._threads = threading.local()

    @classmethod
    def in_file(cls, path: Path) -> "Database":
        return cls(f"sqlite:///{path}")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction, all or nothing; durable when the block ends. There is one at a time, in all
        processes and machines: what it reads stays true until it ends.
        """
        with self._explained():
            with self.engine.begin() as connection:
                self._dialect.begin_writing(connection)
                yield connection
                if connection.in_transaction():  # the caller may have rolled back what it only tried
                    self._dialect.end_writing(connection)
            self._dialect.written()

    @contextmanager
    def leasing(self) -> Iterator[Connection]:
        """A transaction on rows that belong to one process at a time, such as leases: all or nothing and
        durable, but other processes can write at the same time, and none is notified of the commit. Each
        statement must check in its WHERE clause that it may change the row. For PostgreSQL.
        """
        with self._explained(), self.engine.begin() as connection:
            yield connection

    def line(self) -> "StatementLine":
        """A connection for single statements; close it. For PostgreSQL."""
        return StatementLine(self.engine, self._explained)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent view without a write lock. TooExpensive when the budget of the request is spent."""
        with (
            self._explained(),
            self.engine.connect().execution_options(**self._dialect.reading_options) as connection,
            self._dialect.limited(connection),
        ):
            yield connection

    def remembered(self, name: str, read: Callable[[Connection], Value]) -> Value:
        """The result of `read`, cached under that name until any process commits. For small facts that every
        request needs.
        """
        # The state is read before the value: a commit in between makes the value new and the state old, never
        # the other way round.
        state = getattr(self._threads, "moment", None) or self._dialect.state()
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
        self._threads.moment = self._dialect.state()
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

            with self._explained(), self._dialect.one_upgrade():
                alembic.command.upgrade(_alembic(self.engine), "head")

    def revision(self) -> str | None:
        """The number of the last migration of the database; None for an empty one."""
        with self.reading() as connection:
            if not inspect(connection).has_table("alembic_version"):
                return None
            return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()

    def restart_ids(self, connection: Connection) -> None:
        """Give new rows ids above the existing ones: needed after rows were inserted with ids."""
        self._dialect.restart_ids(connection)

    def close(self) -> None:
        self._dialect.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of the database server or the disk into our own errors; others are program errors and
        pass unchanged.
        """
        try:
            yield
        except DBAPIError as error:
            explained = self._dialect.explain(error)
            if explained is None:
                raise
            raise explained from error


class StatementLine:
    """A connection of its own for statements that are sent often, each a transaction: no round trips to try
    the connection, to begin and to commit. Threads may share it; it runs one statement at a time. After an
    error it connects again for the next one.
    """

    def __init__(self, engine: Engine, explained: Callable[[], AbstractContextManager[None]]) -> None:
        self._engine = engine
        self._explained = explained
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def run(self, statement: TextClause, values: Mapping[str, object]) -> Sequence[Row[Any]]:
        """The rows of a statement. After RemoteError it is unknown whether it was committed."""
        with self._lock, self._explained():
            if self._connection is None:
                self._connection = self._open()
            try:
                rows = self._connection.execute(statement, values).all()
                self._connection.commit()  # only for SQLAlchemy; nothing is sent
            except BaseException:
                self._drop()
                raise
            return rows

    def close(self) -> None:
        """Close it; a statement that still waits for the server is left alone."""
        if self._lock.acquire(timeout=1.0):
            try:
                self._drop()
            finally:
                self._lock.release()

    def _open(self) -> Connection:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        # Each statement is planned once: that takes longer than to run it.
        connection.connection.driver_connection.prepare_threshold = 0  # type: ignore[union-attr]
        connection.exec_driver_sql("SET plan_cache_mode = force_generic_plan")
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.invalidate()  # its settings are not for others
            self._connection.close()
        self._connection = None


def _open_dialect(url: str, password: str) -> DatabaseDialect:
    if url.startswith("sqlite:"):
        return SqliteDialect(url)
    try:  # only then: the driver is part of webdepot[cluster]
        from webdepot.dialects.postgresql import PostgresqlDialect
    except ImportError as error:
        raise ConfigError(
            "The driver for PostgreSQL is not installed. Install it: pip install 'webdepot[cluster]'"
        ) from error
    return PostgresqlDialect(url, password)


def _alembic(engine: Engine) -> "AlembicConfig":
    from alembic.config import Config as AlembicConfig

    config = AlembicConfig()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["engine"] = engine
    return config
