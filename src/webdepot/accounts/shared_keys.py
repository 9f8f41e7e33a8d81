"""Keys that all portals of an archive sign with, so that one accepts what another gave out.

A key is for one purpose and one day (UTC), and is removed two days later: a stolen copy of the database
cannot be used to forge signatures of other days.
"""

import secrets
from datetime import date, datetime, timedelta

from sqlalchemy import Connection, delete, insert, select

from webdepot.accounts.tables import shared_keys
from webdepot.database import Database

_KEPT_FOR = timedelta(days=2)


def get(database: Database, purpose: str, now: datetime) -> bytes:
    """The key of today, created if it is the first use."""
    known = find(database, purpose, now.date())
    if known is not None:
        return known
    name = _name(purpose, now.date())
    with database.transaction() as connection:
        value = _read(connection, name)  # another portal may have been first
        if value is None:
            old = (shared_keys.c.name.like(f"{purpose} %"), shared_keys.c.created_at < now - _KEPT_FOR)
            connection.execute(delete(shared_keys).where(*old))
            value = secrets.token_hex(32)
            connection.execute(insert(shared_keys).values(name=name, value=value, created_at=now))
    return bytes.fromhex(value)


def find(database: Database, purpose: str, day: date) -> bytes | None:
    """The key of a day."""
    name = _name(purpose, day)
    value = database.remembered(f"key {name}", lambda connection: _read(connection, name))
    return bytes.fromhex(value) if value is not None else None


def _name(purpose: str, day: date) -> str:
    return f"{purpose} {day.isoformat()}"


def _read(connection: Connection, name: str) -> str | None:
    return connection.execute(
        select(shared_keys.c.value).where(shared_keys.c.name == name)
    ).scalar_one_or_none()
