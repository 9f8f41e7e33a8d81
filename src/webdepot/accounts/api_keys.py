"""API keys: how a request of a program shows who sends it.

Only the hash of a key is stored: a stolen copy of the database reveals no key. Every change is an event with
before and after, in the same transaction.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import RowMapping, delete, insert, select, update

from webdepot.accounts.accounts import Person, get_row, key_detail, note, read_roles, stored_roles
from webdepot.accounts.roles import Role
from webdepot.accounts.sessions import SEEN_EVERY, token_hash
from webdepot.accounts.tables import api_keys, people
from webdepot.database import Database
from webdepot.errors import InputError, NotFound

KEY_PREFIX = "wdk_"
"""Starts every key, so that secret scanners find one that was published by mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    id: int
    label: str
    roles: frozenset[Role]
    created_at: datetime
    ends_at: datetime | None
    used_at: datetime | None


def make_key(
    database: Database,
    name: str,
    label: str,
    roles: Iterable[Role],
    now: datetime,
    *,
    days: int = 0,
    by: str = "",
) -> tuple[ApiKey, str]:
    """Create a key; returns it with its text, which is not stored and cannot be shown again.

    Its roles must be among those of the person. `days` 0 means that it does not expire.
    """
    chosen, label = frozenset(roles), label.strip()[:100]
    if not label or not label.isprintable():
        raise InputError("A key needs a label that says what it is for.")
    if not chosen:
        raise InputError("A key needs at least one role.")
    text = KEY_PREFIX + secrets.token_urlsafe(32)
    with database.transaction() as connection:
        row = get_row(connection, name)
        missing = chosen - read_roles(row["roles"])
        if missing:
            raise InputError(
                f"{name} does not have the role {', '.join(sorted(missing))}, so a key cannot have it either."
            )
        values = {
            "label": label,
            "roles": stored_roles(chosen),
            "created_at": now,
            "ends_at": now + timedelta(days=days) if days else None,
        }
        adding = insert(api_keys).values(person=row["id"], key_hash=token_hash(text), **values)
        key = connection.execute(adding.returning(api_keys)).mappings().one()
        note(connection, name, "key made", now, by or name, detail={"before": {}, "after": key_detail(key)})
    return _key(key), text


def find_key(database: Database, text: str, now: datetime) -> Person | None:
    """The owner of a key, with the roles that both the key and the person have; None if it is not valid."""
    if not text.startswith(KEY_PREFIX) or len(text) > 200:
        return None
    chosen = (
        select(
            people.c.name,
            people.c.roles,
            api_keys.c.id,
            api_keys.c.roles.label("key_roles"),
            api_keys.c.ends_at,
            api_keys.c.used_at,
        )
        .join(api_keys, api_keys.c.person == people.c.id)
        .where(api_keys.c.key_hash == token_hash(text), people.c.closed_at.is_(None))
    )
    with database.reading() as connection:
        row = connection.execute(chosen).one_or_none()
    if row is None or (row.ends_at is not None and row.ends_at < now):
        return None
    if row.used_at is None or now - row.used_at > SEEN_EVERY:
        with database.transaction() as connection:
            connection.execute(update(api_keys).where(api_keys.c.id == row.id).values(used_at=now))
    return Person(name=row.name, roles=read_roles(row.roles) & read_roles(row.key_roles))


def keys_of(database: Database, name: str) -> list[ApiKey]:
    """The keys of a person, oldest first."""
    with database.reading() as connection:
        chosen = (
            select(api_keys)
            .where(api_keys.c.person == get_row(connection, name)["id"])
            .order_by(api_keys.c.id)
        )
        return [_key(row) for row in connection.execute(chosen).mappings()]


def revoke_key(database: Database, name: str, key: int, now: datetime, *, by: str) -> None:
    """Delete a key; it is refused from now on. NotFound if the person has no such key."""
    with database.transaction() as connection:
        wanted = (api_keys.c.person == get_row(connection, name)["id"], api_keys.c.id == key)
        row = connection.execute(select(api_keys).where(*wanted)).mappings().one_or_none()
        if row is None:
            raise NotFound(f"{name} has no key {key}. List them: webdepot account keys {name}")
        connection.execute(delete(api_keys).where(*wanted))
        note(connection, name, "key revoked", now, by, detail={"before": key_detail(row), "after": {}})


def _key(row: RowMapping) -> ApiKey:
    return ApiKey(
        id=row["id"],
        label=row["label"],
        roles=read_roles(row["roles"]),
        created_at=row["created_at"],
        ends_at=row["ends_at"],
        used_at=row["used_at"],
    )
