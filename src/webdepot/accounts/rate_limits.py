"""Rate limits: how many attempts were made under a name within a period, over all portals of an archive.

Names may contain the network that somebody comes from. Only a checksum is stored, and not for longer than the
longest window.
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, select

from webdepot.accounts.tables import attempts
from webdepot.database import Database

LONGEST = timedelta(hours=1)
"""Attempts that are older are forgotten."""


def is_limited(database: Database, limits: Mapping[str, int], *, since: datetime) -> bool:
    """Whether one of the names has reached its limit since then."""
    with database.reading() as connection:
        return _is_limited(connection, limits, since)


def note(database: Database, names: Iterable[str], now: datetime) -> None:
    """Count an attempt under each of these names."""
    with database.transaction() as connection:
        _note(connection, names, now)


def note_unless_limited(
    database: Database, limits: Mapping[str, int], now: datetime, *, since: datetime
) -> bool:
    """Count an attempt under each of these names, unless one has reached its limit. Returns whether it
    was counted; False means that a limit is reached.
    """
    if is_limited(database, limits, since=since):  # without a write, as somebody may try very often
        return False
    with database.transaction() as connection:
        if _is_limited(connection, limits, since):
            return False
        _note(connection, limits, now)
    return True


def _is_limited(connection: Connection, limits: Mapping[str, int], since: datetime) -> bool:
    return any(
        connection.execute(
            select(func.count())
            .select_from(attempts)
            .where(attempts.c.name_hash == _hash(name), attempts.c.at > since)
        ).scalar_one()
        >= most
        for name, most in limits.items()
    )


def _note(connection: Connection, names: Iterable[str], now: datetime) -> None:
    connection.execute(delete(attempts).where(attempts.c.at <= now - LONGEST))
    connection.execute(insert(attempts), [{"name_hash": _hash(name), "at": now} for name in names])


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
