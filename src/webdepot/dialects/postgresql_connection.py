"""Connections to a PostgreSQL server, and our messages for its errors: for the database and for the capture
index.
"""

from typing import Any

import psycopg
from psycopg import errors as refusals
from psycopg.types.string import StrDumper
from sqlalchemy import URL, make_url

from webdepot import query_budget
from webdepot.errors import ConfigError, Conflict, NoSpace, RemoteError, WebdepotError

PATIENCE_S = 30
CONNECTED = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "webdepot",
}
_SESSION = f"""
    SET lock_timeout = '{PATIENCE_S}s';
    SET tcp_keepalives_idle = 5;
    SET tcp_keepalives_interval = 2;
    SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = 10000
"""
"""For each connection. The server must notice soon that a machine is cut off: until then it keeps the locks
of a transaction that was under way, and others wait for them. Its own settings are hours.
"""
_OLDEST_VERSION = 120_000
_NOT_LET_IN = ("authentication failed", "no password supplied")
_MISCONFIGURED = ("does not exist", "could not translate")
"""Parts of the driver's messages when a connection cannot be opened and waiting will not help; it gives no
codes for these errors.
"""


def address_of(url: str, password: str) -> URL:
    """The address of a database for SQLAlchemy, with the password."""
    named = make_url(url).set(drivername="postgresql+psycopg")
    return named.set(password=password) if password else named


def connect(address: URL) -> "psycopg.Connection[Any]":
    """A connection outside of SQLAlchemy, without transactions of its own (autocommit)."""
    arguments, options = address.get_dialect()().create_connect_args(address)
    return psycopg.connect(*arguments, **{**CONNECTED, **options}, autocommit=True)


class _WithoutNul(StrDumper):
    def dump(self, obj: str) -> Any:
        return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)


def prepare(connection: "psycopg.Connection[Any]") -> None:
    """Make a new connection ready; ConfigError if the server is too old."""
    if connection.info.server_version < _OLDEST_VERSION:
        raise ConfigError(
            f"The database server is PostgreSQL {connection.info.server_version // 10_000}; Webdepot needs "
            f"{_OLDEST_VERSION // 10_000} or later."
        )
    connection.adapters.register_dumper(str, _WithoutNul)
    was, connection.autocommit = connection.autocommit, True
    connection.execute(_SESSION.encode())
    connection.autocommit = was


def explain(cause: BaseException | None, where: str) -> WebdepotError | None:
    """Our error if the disk, the server or the budget is the reason; None for a program error. `where` is the
    address of the database, without the password.
    """
    match cause:
        case refusals.QueryCanceled() if query_budget.left_s() is not None:
            return query_budget.too_expensive()
        case refusals.LockNotAvailable():
            return Conflict(
                f"Another process has been writing to {where} for {PATIENCE_S} seconds. Wait for it, or stop "
                "it, and try again."
            )
        case refusals.DeadlockDetected() | refusals.SerializationFailure():
            return Conflict(
                f"Another process changed the same rows of {where} at the same time. Nothing was changed. "
                "Try again."
            )
        case refusals.DiskFull() | refusals.ReadOnlySqlTransaction():
            return NoSpace(
                f"The database {where} cannot be written; its disk is full or it is read-only. "
                "What was saved is safe. Make room there, then run the same command again."
            )
        case refusals.TooManyConnections():
            return RemoteError(
                f"The database {where} has too many connections. Raise max_connections there, or run fewer "
                "portals and workers.",
                retry=True,
            )
        case psycopg.OperationalError() if any(phrase in str(cause) for phrase in _NOT_LET_IN):
            return ConfigError(
                f"The database {where} cannot be opened: {_one_line(cause)}. Set the password in the "
                "environment (WEBDEPOT_DATABASE_PASSWORD), or correct [database] in webdepot.toml."
            )
        case psycopg.OperationalError() if any(phrase in str(cause) for phrase in _MISCONFIGURED):
            return ConfigError(
                f"The database {where} cannot be opened: {_one_line(cause)}. Correct [database] in "
                "webdepot.toml, or create it: createdb NAME"
            )
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return RemoteError(
                f"The database {where} does not answer: {_one_line(cause)}. What was saved is safe. "
                "Try again when it is running.",
                retry=True,
            )
    return None


def _one_line(error: BaseException) -> str:
    """Its message without the question that psycopg adds, "Is the server running on that host …?"."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(line for line in lines if not line.startswith("Is the server running")).rstrip(".")
