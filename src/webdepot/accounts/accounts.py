"""People who may sign in, and their passwords (hashed with Argon2id). Every change is an event with before
and after, in the same transaction. What they may do is in `roles`, their sessions and keys in `sessions`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from sqlalchemy import (
    Connection,
    RowMapping,
    delete,
    func,
    insert,
    select,
    update,
)

from webdepot.accounts.roles import Role
from webdepot.accounts.tables import api_keys, people, sessions
from webdepot.database import Database
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.provenance import Event, append, difference

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    name: str
    roles: frozenset[Role]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A person, as administrators see them."""

    name: str
    roles: frozenset[Role]
    created_at: datetime
    closed_at: datetime | None
    external: str
    """Issuer and subject of a person who signs in at a provider; empty if they have a password here."""
    sessions: int
    keys: int


def add(
    database: Database, name: str, password: str, roles: Iterable[Role], now: datetime, *, by: str = ""
) -> Person:
    """Add a person. Conflict if the name is taken, InputError if the name or password is not acceptable."""
    person = Person(name=_checked_name(name), roles=frozenset(roles))
    hashed = _hashed(password)
    with database.transaction() as connection:
        insert_person(connection, person, hashed, now, external=None, by=by)
    return person


def insert_person(
    connection: Connection, person: Person, hashed: str, now: datetime, *, external: str | None, by: str
) -> None:
    """Add a person with a password hash, or with `external` and none. Conflict if the name is taken."""
    if connection.execute(select(people.c.id).where(people.c.name == person.name)).first():
        raise Conflict(f"There is already a person named {person.name}. Choose another name.")
    kept = stored_roles(person.roles)
    connection.execute(
        insert(people).values(
            name=person.name, password_hash=hashed, roles=kept, created_at=now, external=external
        )
    )
    note(connection, person.name, "added", now, by, detail=difference({}, {"roles": kept}))


def set_password(
    database: Database, name: str, password: str, *, now: datetime | None = None, by: str = ""
) -> None:
    """Change a password and end all sessions of that person."""
    hashed = _hashed(password)
    with database.transaction() as connection:
        row = get_row(connection, name)
        connection.execute(update(people).where(people.c.id == row["id"]).values(password_hash=hashed))
        connection.execute(delete(sessions).where(sessions.c.person == row["id"]))
        if now is not None:
            # Neither the password nor its hash is recorded, only that it changed.
            had = {"password": "set" if row["password_hash"] else "none"}
            note(
                connection,
                name,
                "password changed",
                now,
                by,
                detail={"before": had, "after": {"password": "changed", "sessions": 0}},
            )


def has_password(database: Database, name: str, password: str) -> bool:
    """Whether this is the person's current password; asked for before they change it."""
    with database.reading() as connection:
        return is_password(get_row(connection, name)["password_hash"], password)


def set_roles(database: Database, name: str, roles: Iterable[Role], now: datetime, *, by: str) -> Person:
    """Change a person's roles, from their next request on. Conflict if no administrator would be left."""
    person = Person(name=name, roles=frozenset(roles))
    with database.transaction() as connection:
        row = get_row(connection, name)
        _keep_an_administrator(connection, row, person.roles)
        connection.execute(
            update(people).where(people.c.id == row["id"]).values(roles=stored_roles(person.roles))
        )
        detail = difference(
            {"roles": stored_roles(read_roles(row["roles"]))}, {"roles": stored_roles(person.roles)}
        )
        note(connection, name, "roles changed", now, by, detail=detail)
    return person


def close(database: Database, name: str, now: datetime, *, by: str) -> None:
    """Close an account: no more signing in, sessions and keys end. Their past actions keep their name."""
    with database.transaction() as connection:
        row = get_row(connection, name)
        _keep_an_administrator(connection, row, frozenset())
        connection.execute(update(people).where(people.c.id == row["id"]).values(closed_at=now))
        connection.execute(delete(sessions).where(sessions.c.person == row["id"]))
        keys = [
            key_detail(each)
            for each in connection.execute(select(api_keys).where(api_keys.c.person == row["id"])).mappings()
        ]
        connection.execute(delete(api_keys).where(api_keys.c.person == row["id"]))
        note(
            connection,
            name,
            "closed",
            now,
            by,
            detail=difference({"closed": False, "keys": keys}, {"closed": True, "keys": []}),
        )


def reopen(database: Database, name: str, now: datetime, *, by: str) -> None:
    """Open a closed account again."""
    with database.transaction() as connection:
        row = get_row(connection, name)
        connection.execute(update(people).where(people.c.id == row["id"]).values(closed_at=None))
        note(connection, name, "reopened", now, by, detail=difference({"closed": True}, {"closed": False}))


def every(database: Database) -> list[Person]:
    """Everybody, by name."""
    with database.reading() as connection:
        rows = connection.execute(select(people.c.name, people.c.roles).order_by(people.c.name)).all()
    return [Person(name=row.name, roles=read_roles(row.roles)) for row in rows]


def accounts(database: Database, now: datetime) -> list[Account]:
    """Everybody, by name, with their number of open sessions and keys."""
    open_sessions = (
        select(sessions.c.person, func.count().label("count"))
        .where(sessions.c.ends_at >= now)
        .group_by(sessions.c.person)
    )
    keys = select(api_keys.c.person, func.count().label("count")).group_by(api_keys.c.person)
    with database.reading() as connection:
        rows = connection.execute(select(people).order_by(people.c.name)).mappings().all()
        session_counts = {row.person: row[1] for row in connection.execute(open_sessions)}
        key_counts = {row.person: row[1] for row in connection.execute(keys)}
    return [
        Account(
            name=row["name"],
            roles=read_roles(row["roles"]),
            created_at=row["created_at"],
            closed_at=row["closed_at"],
            external=row["external"] or "",
            sessions=session_counts.get(row["id"], 0),
            keys=key_counts.get(row["id"], 0),
        )
        for row in rows
    ]


# --- also used by `sessions` ---


def key_detail(row: RowMapping) -> dict[str, object]:
    """A row of `api_keys` for an event: without the key's text or hash."""
    return {
        "number": row["id"],
        "key": row["label"],
        "roles": stored_roles(read_roles(row["roles"])),
        "ends_at": row["ends_at"].isoformat() if row["ends_at"] else "",
    }


def get_row(connection: Connection, name: str) -> RowMapping:
    """The row of a person; NotFound if there is none."""
    row = connection.execute(select(people).where(people.c.name == name)).mappings().one_or_none()
    if row is None:
        raise NotFound(f"There is no person named {name}. List them: webdepot account list")
    return row


def _keep_an_administrator(connection: Connection, row: RowMapping, roles: frozenset[Role]) -> None:
    if Role.ADMINISTRATOR in roles or Role.ADMINISTRATOR not in read_roles(row["roles"]):
        return
    others = connection.execute(
        select(people.c.roles).where(people.c.id != row["id"], people.c.closed_at.is_(None))
    ).scalars()
    if not any(Role.ADMINISTRATOR in read_roles(held) for held in others):
        raise Conflict(f"{row['name']} is the only administrator. Make another person administrator first.")


def free_name(connection: Connection, wanted: str) -> str:
    """The wanted name, or if it is taken the first free one of `NAME 2`, `NAME 3` …"""
    name = "".join(char for char in wanted if char.isprintable()).strip()[:90] or "guest"
    taken = set(
        connection.execute(
            select(people.c.name).where(people.c.name.startswith(name, autoescape=True))
        ).scalars()
    )
    return (
        name
        if name not in taken
        else next(
            f"{name} {number}" for number in range(2, len(taken) + 3) if f"{name} {number}" not in taken
        )
    )


def _checked_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > 100 or not name.isprintable():
        raise InputError("A name needs 1 to 100 printable characters.")
    return name


def _hashed(password: str) -> str:
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InputError(f"A password needs {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters.")
    return PasswordHasher().hash(password)


def is_password(hashed: str, password: str) -> bool:
    """Whether a password matches its stored hash."""
    try:
        return PasswordHasher().verify(hashed, password[:LONGEST_PASSWORD])
    except (Argon2Error, InvalidHashError):
        return False


def stored_roles(roles: Iterable[Role]) -> list[str]:
    """Roles as the database stores them."""
    return sorted(role.value for role in roles)


def read_roles(stored: Iterable[str]) -> frozenset[Role]:
    """Roles from the database. Old archives have `rights officer`, whose work two other roles now share."""
    return frozenset(
        role
        for name in stored
        for role in ((Role.CURATOR, Role.REVIEWER) if name == "rights officer" else (Role(name),))
    )


def note(
    connection: Connection,
    name: str,
    action: str,
    now: datetime,
    by: str,
    *,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Append an event about a person."""
    append(
        connection,
        Event(
            at=now,
            agent=by or "webdepot",
            action=action,
            subject_kind="person",
            subject=name,
            detail=detail or {},
        ),
    )
