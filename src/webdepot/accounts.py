"""People, their roles and their sessions. Passwords are hashed with Argon2id; a session is a random token kept as a hash.

A stolen copy of the database opens no session and tells no password.
"""

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from sqlalchemy import JSON, Column, ForeignKey, Integer, String, Table, delete, insert, select, update

from webdepot.database import Database, Moment, metadata
from webdepot.errors import Conflict, InputError, NotFound

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1000

people = Table(
    "people",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("password_hash", String(300), nullable=False),
    Column("roles", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
)

sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("person", Integer, ForeignKey("people.id"), nullable=False, index=True),
    Column("ends_at", Moment, nullable=False),
)


class Role(StrEnum):
    READER = "reader"
    CURATOR = "curator"
    REVIEWER = "reviewer"
    RIGHTS_OFFICER = "rights officer"
    ADMINISTRATOR = "administrator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    name: str
    roles: frozenset[Role]


def add(database: Database, name: str, password: str, roles: Iterable[Role], now: datetime) -> Person:
    """A new person; Conflict when the name is taken, InputError when the name or password will not do."""
    person = Person(name=name.strip(), roles=frozenset(roles))
    if not person.name or len(person.name) > 100 or not person.name.isprintable():
        raise InputError("A name needs 1 to 100 printable characters.")
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InputError(f"A password needs {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters.")
    hashed = PasswordHasher().hash(password)
    with database.transaction() as connection:
        if connection.execute(select(people.c.id).where(people.c.name == person.name)).first():
            raise Conflict(f"There is already a person named {person.name}.")
        roles_kept = sorted(role.value for role in person.roles)
        connection.execute(insert(people).values(name=person.name, password_hash=hashed, roles=roles_kept, created_at=now))
    return person


def set_password(database: Database, name: str, password: str) -> None:
    """Change a password and end all sessions of that person."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InputError(f"A password needs {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters.")
    hashed = PasswordHasher().hash(password)
    with database.transaction() as connection:
        row = connection.execute(select(people.c.id).where(people.c.name == name)).one_or_none()
        if row is None:
            raise NotFound(f"There is no person named {name}. List them: webdepot account list")
        connection.execute(update(people).where(people.c.id == row.id).values(password_hash=hashed))
        connection.execute(delete(sessions).where(sessions.c.person == row.id))


def every(database: Database) -> list[Person]:
    with database.reading() as connection:
        rows = connection.execute(select(people.c.name, people.c.roles).order_by(people.c.name)).all()
    return [Person(name=row.name, roles=frozenset(map(Role, row.roles))) for row in rows]


def sign_in(database: Database, name: str, password: str, now: datetime, *, hours: int = 12) -> str | None:
    """A new session's token, or None. Takes as long for an unknown name as for a wrong password."""
    with database.reading() as connection:
        row = connection.execute(select(people.c.id, people.c.password_hash).where(people.c.name == name.strip())).one_or_none()
    hashed = row.password_hash if row else _nobodys_hash()
    try:
        PasswordHasher().verify(hashed, password[:LONGEST_PASSWORD])
    except (Argon2Error, InvalidHashError):
        return None
    if row is None:
        return None
    token = secrets.token_urlsafe(32)
    with database.transaction() as connection:
        connection.execute(delete(sessions).where(sessions.c.ends_at < now))
        ends_at = now + timedelta(hours=hours)
        connection.execute(insert(sessions).values(token_hash=_token_hash(token), person=row.id, ends_at=ends_at))
    return token


def find_session(database: Database, token: str, now: datetime) -> Person | None:
    """Who holds this token, while its session lasts."""
    chosen = (
        select(people.c.name, people.c.roles)
        .join(sessions, sessions.c.person == people.c.id)
        .where(sessions.c.token_hash == _token_hash(token), sessions.c.ends_at >= now)
    )
    with database.reading() as connection:
        row = connection.execute(chosen).one_or_none()
    return Person(name=row.name, roles=frozenset(map(Role, row.roles))) if row else None


def sign_out(database: Database, token: str) -> None:
    with database.transaction() as connection:
        connection.execute(delete(sessions).where(sessions.c.token_hash == _token_hash(token)))


def _token_hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


@lru_cache(maxsize=1)
def _nobodys_hash() -> str:
    """A hash of a password nobody has, made with today's parameters so that verifying it costs the same."""
    return PasswordHasher().hash(secrets.token_urlsafe(32))
