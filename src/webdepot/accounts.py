"""People, their roles, their sessions and their keys. Passwords are hashed with Argon2id; a session or key is
kept as a hash.

A stolen copy of the database opens no session and tells no password and no key. Every change is an event with
before and after, in the same transaction.

reader         a reader with saved searches         reviewer       accepts and rejects harvests, decides complaints
partner        another institution: nominates       administrator  all of it, and the accounts
curator        selects, asks owners, plans, harvests
"""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from sqlalchemy import (
    JSON,
    Column,
    Connection,
    ForeignKey,
    Integer,
    RowMapping,
    String,
    Table,
    delete,
    func,
    insert,
    select,
    update,
)

from webdepot.database import Database, Moment, metadata
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.provenance import Event, append, difference

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1000
KEY_PREFIX = "wdk_"
"""Begins every key, so that scanners of source code find one that was published."""
_SEEN_EVERY = timedelta(minutes=5)

people = Table(
    "people",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("password_hash", String(300), nullable=False),
    Column("roles", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("closed_at", Moment),
    Column("external", String(500), index=True),
)

sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("person", Integer, ForeignKey("people.id"), nullable=False, index=True),
    Column("ends_at", Moment, nullable=False),
    Column("began_at", Moment),
    Column("seen_at", Moment),
    Column("device", String(300)),
    Column("address", String(60)),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("person", Integer, ForeignKey("people.id"), nullable=False, index=True),
    Column("label", String(100), nullable=False),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("roles", JSON, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("ends_at", Moment),
    Column("used_at", Moment),
)


class Role(StrEnum):
    READER = "reader"
    PARTNER = "partner"
    CURATOR = "curator"
    REVIEWER = "reviewer"
    ADMINISTRATOR = "administrator"


STAFF = frozenset({Role.CURATOR, Role.REVIEWER, Role.ADMINISTRATOR})
"""Whoever works for the archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    name: str
    roles: frozenset[Role]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A person as administrators see them."""

    name: str
    roles: frozenset[Role]
    created_at: datetime
    closed_at: datetime | None
    external: str
    """Issuer and subject of a person who signs in elsewhere; empty for a password of ours."""
    sessions: int
    keys: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    id: str
    """The beginning of the token's hash: enough to end it, of no use to open it."""
    began_at: datetime | None
    seen_at: datetime | None
    ends_at: datetime
    device: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    id: int
    label: str
    roles: frozenset[Role]
    created_at: datetime
    ends_at: datetime | None
    used_at: datetime | None


# --- people ---


def add(
    database: Database, name: str, password: str, roles: Iterable[Role], now: datetime, *, by: str = ""
) -> Person:
    """A new person; Conflict when the name is taken, InputError when the name or password will not do."""
    person = Person(name=_checked_name(name), roles=frozenset(roles))
    hashed = _hashed(password)
    with database.transaction() as connection:
        _insert(connection, person, hashed, now, external=None, by=by)
    return person


def _insert(
    connection: Connection, person: Person, hashed: str, now: datetime, *, external: str | None, by: str
) -> None:
    if connection.execute(select(people.c.id).where(people.c.name == person.name)).first():
        raise Conflict(f"There is already a person named {person.name}.")
    kept = _kept(person.roles)
    connection.execute(
        insert(people).values(
            name=person.name, password_hash=hashed, roles=kept, created_at=now, external=external
        )
    )
    _note(connection, person.name, "added", now, by, detail=difference({}, {"roles": kept}))


def set_password(
    database: Database, name: str, password: str, *, now: datetime | None = None, by: str = ""
) -> None:
    """Change a password and end all sessions of that person."""
    hashed = _hashed(password)
    with database.transaction() as connection:
        row = _row(connection, name)
        connection.execute(update(people).where(people.c.id == row["id"]).values(password_hash=hashed))
        connection.execute(delete(sessions).where(sessions.c.person == row["id"]))
        if now is not None:
            # Never the password, nor its hash: that there was one, and since when there is another.
            had = {"password": "set" if row["password_hash"] else "none"}
            _note(
                connection,
                name,
                "password changed",
                now,
                by,
                detail={"before": had, "after": {"password": "set anew", "sessions": 0}},
            )


def has_password(database: Database, name: str, password: str) -> bool:
    """Whether this is their password now; for those who change it themselves."""
    with database.reading() as connection:
        return _verified(_row(connection, name)["password_hash"], password)


def set_roles(database: Database, name: str, roles: Iterable[Role], now: datetime, *, by: str) -> Person:
    """Other roles, from the next request on. Conflict when nobody would be administrator any more."""
    person = Person(name=name, roles=frozenset(roles))
    with database.transaction() as connection:
        row = _row(connection, name)
        _keep_an_administrator(connection, row, person.roles)
        connection.execute(update(people).where(people.c.id == row["id"]).values(roles=_kept(person.roles)))
        detail = difference({"roles": _kept(_roles(row["roles"]))}, {"roles": _kept(person.roles)})
        _note(connection, name, "roles changed", now, by, detail=detail)
    return person


def close(database: Database, name: str, now: datetime, *, by: str) -> None:
    """Nobody signs in as this person any more; sessions and keys end. What they did stays theirs."""
    with database.transaction() as connection:
        row = _row(connection, name)
        _keep_an_administrator(connection, row, frozenset())
        connection.execute(update(people).where(people.c.id == row["id"]).values(closed_at=now))
        connection.execute(delete(sessions).where(sessions.c.person == row["id"]))
        keys = [
            _told(_key(each))
            for each in connection.execute(select(api_keys).where(api_keys.c.person == row["id"])).mappings()
        ]
        connection.execute(delete(api_keys).where(api_keys.c.person == row["id"]))
        _note(
            connection,
            name,
            "closed",
            now,
            by,
            detail=difference({"closed": False, "keys": keys}, {"closed": True, "keys": []}),
        )


def reopen(database: Database, name: str, now: datetime, *, by: str) -> None:
    with database.transaction() as connection:
        row = _row(connection, name)
        connection.execute(update(people).where(people.c.id == row["id"]).values(closed_at=None))
        _note(connection, name, "reopened", now, by, detail=difference({"closed": True}, {"closed": False}))


def every(database: Database) -> list[Person]:
    with database.reading() as connection:
        rows = connection.execute(select(people.c.name, people.c.roles).order_by(people.c.name)).all()
    return [Person(name=row.name, roles=_roles(row.roles)) for row in rows]


def accounts(database: Database, now: datetime) -> list[Account]:
    """Everybody, with how many sessions and keys they have."""
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
            roles=_roles(row["roles"]),
            created_at=row["created_at"],
            closed_at=row["closed_at"],
            external=row["external"] or "",
            sessions=session_counts.get(row["id"], 0),
            keys=key_counts.get(row["id"], 0),
        )
        for row in rows
    ]


# --- sessions ---


def sign_in(
    database: Database,
    name: str,
    password: str,
    now: datetime,
    *,
    hours: int = 12,
    device: str = "",
    address: str = "",
    instead_of: str = "",
) -> str | None:
    """A new session's token, or None. Takes as long for an unknown name as for a wrong password.

    `instead_of` is a token that the browser had before: it is worth nothing afterwards, whoever gave it to
    the browser.
    """
    with database.reading() as connection:
        row = connection.execute(select(people).where(people.c.name == name.strip())).mappings().one_or_none()
    verified = _verified(row["password_hash"] if row and row["password_hash"] else _nobodys_hash(), password)
    if row is None or not verified or not row["password_hash"] or row["closed_at"] is not None:
        return None
    return _begin(database, row, now, hours=hours, device=device, address=address, instead_of=instead_of)


def sign_in_external(
    database: Database,
    external: str,
    name: str,
    roles: frozenset[Role] | None,
    now: datetime,
    *,
    hours: int = 12,
    device: str = "",
    address: str = "",
    instead_of: str = "",
) -> str:
    """The session of a person whom another service vouches for; made on their first visit. Conflict when the
    account is closed.

    People are known by `external` (issuer and subject) alone: a name that somebody here has already is made
    another one, never joined to it. `roles` None leaves the roles as they are, readers at first.
    """
    with database.transaction() as connection:
        row = connection.execute(select(people).where(people.c.external == external)).mappings().one_or_none()
        if row is None:
            person = Person(name=_free_name(connection, name), roles=roles or frozenset({Role.READER}))
            _insert(connection, person, "", now, external=external, by=external)
        elif roles is not None and roles != _roles(row["roles"]):
            connection.execute(update(people).where(people.c.id == row["id"]).values(roles=_kept(roles)))
            detail = difference({"roles": _kept(_roles(row["roles"]))}, {"roles": _kept(roles)})
            _note(connection, row["name"], "roles changed", now, external, detail=detail)
        row = connection.execute(select(people).where(people.c.external == external)).mappings().one()
    if row["closed_at"] is not None:
        raise Conflict(f"The account {row['name']} is closed. Ask an administrator to open it again.")
    return _begin(database, row, now, hours=hours, device=device, address=address, instead_of=instead_of)


def _begin(
    database: Database,
    row: RowMapping,
    now: datetime,
    *,
    hours: int,
    device: str,
    address: str,
    instead_of: str,
) -> str:
    token = secrets.token_urlsafe(32)
    values = {
        "began_at": now,
        "seen_at": now,
        "ends_at": now + timedelta(hours=hours),
        "device": device[:300],
        "address": address[:60],
    }
    with database.transaction() as connection:
        connection.execute(delete(sessions).where(sessions.c.ends_at < now))
        if instead_of:
            connection.execute(delete(sessions).where(sessions.c.token_hash == _token_hash(instead_of)))
        connection.execute(insert(sessions).values(token_hash=_token_hash(token), person=row["id"], **values))
        detail = {"before": {}, "after": {"session": _token_hash(token)[:16], "address": address[:60]}}
        _note(connection, row["name"], "signed in", now, row["name"], detail=detail)
    return token


def find_session(database: Database, token: str, now: datetime) -> Person | None:
    """Who holds this token, while its session lasts."""
    hashed = _token_hash(token)
    chosen = (
        select(people.c.name, people.c.roles, sessions.c.seen_at)
        .join(sessions, sessions.c.person == people.c.id)
        .where(sessions.c.token_hash == hashed, sessions.c.ends_at >= now, people.c.closed_at.is_(None))
    )
    with database.reading() as connection:
        row = connection.execute(chosen).one_or_none()
    if row is None:
        return None
    if row.seen_at is not None and now - row.seen_at > _SEEN_EVERY:
        with database.transaction() as connection:
            connection.execute(update(sessions).where(sessions.c.token_hash == hashed).values(seen_at=now))
    return Person(name=row.name, roles=_roles(row.roles))


def sessions_of(database: Database, name: str, now: datetime) -> list[Session]:
    with database.reading() as connection:
        chosen = select(sessions).where(
            sessions.c.person == _row(connection, name)["id"], sessions.c.ends_at >= now
        )
        rows = connection.execute(chosen.order_by(sessions.c.began_at.desc())).mappings().all()
    return [
        Session(
            id=row["token_hash"][:16],
            began_at=row["began_at"],
            seen_at=row["seen_at"],
            ends_at=row["ends_at"],
            device=row["device"] or "",
            address=row["address"] or "",
        )
        for row in rows
    ]


def session_id(token: str) -> str:
    """As in `Session.id`, of the token itself."""
    return _token_hash(token)[:16]


def end_session(database: Database, name: str, session: str, now: datetime, *, by: str) -> None:
    """End one session of a person; an empty `session` means all of them. NotFound when it is not theirs."""
    with database.transaction() as connection:
        wanted = [sessions.c.person == _row(connection, name)["id"]]
        if session:
            wanted.append(sessions.c.token_hash.startswith(session[:16], autoescape=True))
        ended = connection.execute(delete(sessions).where(*wanted)).rowcount
        if session and (not ended or len(session) < 16):
            raise NotFound("There is no such session.")
        _note(
            connection,
            name,
            "sessions ended",
            now,
            by,
            detail={"before": {"sessions": ended}, "after": {"sessions": 0}},
        )


def sign_out(database: Database, token: str, now: datetime) -> None:
    hashed = _token_hash(token)
    with database.transaction() as connection:
        chosen = (
            select(people.c.name)
            .join(sessions, sessions.c.person == people.c.id)
            .where(sessions.c.token_hash == hashed)
        )
        name = connection.execute(chosen).scalar_one_or_none()
        connection.execute(delete(sessions).where(sessions.c.token_hash == hashed))
        if name is not None:
            _note(
                connection,
                name,
                "signed out",
                now,
                name,
                detail={"before": {"session": hashed[:16]}, "after": {}},
            )


# --- keys for programs ---


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
    """A key and its text, which is told this once. Its roles are among those of the person. `days` 0 means
    without an end.
    """
    asked, label = frozenset(roles), label.strip()[:100]
    if not label or not label.isprintable():
        raise InputError("A key needs a label that says what it is for.")
    if not asked:
        raise InputError("A key needs at least one role.")
    text = KEY_PREFIX + secrets.token_urlsafe(32)
    with database.transaction() as connection:
        row = _row(connection, name)
        if not asked <= _roles(row["roles"]):
            raise InputError(
                f"{name} does not have the role {', '.join(sorted(asked - _roles(row['roles'])))}; a key cannot have it either."
            )
        values = {
            "label": label,
            "roles": _kept(asked),
            "created_at": now,
            "ends_at": now + timedelta(days=days) if days else None,
        }
        made = connection.execute(
            insert(api_keys)
            .values(person=row["id"], key_hash=_token_hash(text), **values)
            .returning(api_keys)
        )
        key = _key(made.mappings().one())
        _note(connection, name, "key made", now, by or name, detail={"before": {}, "after": _told(key)})
    return key, text


def find_key(database: Database, text: str, now: datetime) -> Person | None:
    """Who stands behind a key: with the roles that both the key and the person have."""
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
        .where(api_keys.c.key_hash == _token_hash(text), people.c.closed_at.is_(None))
    )
    with database.reading() as connection:
        row = connection.execute(chosen).one_or_none()
    if row is None or (row.ends_at is not None and row.ends_at < now):
        return None
    if row.used_at is None or now - row.used_at > _SEEN_EVERY:
        with database.transaction() as connection:
            connection.execute(update(api_keys).where(api_keys.c.id == row.id).values(used_at=now))
    return Person(name=row.name, roles=_roles(row.roles) & _roles(row.key_roles))


def keys_of(database: Database, name: str) -> list[ApiKey]:
    with database.reading() as connection:
        chosen = (
            select(api_keys).where(api_keys.c.person == _row(connection, name)["id"]).order_by(api_keys.c.id)
        )
        return [_key(row) for row in connection.execute(chosen).mappings()]


def revoke_key(database: Database, name: str, key: int, now: datetime, *, by: str) -> None:
    with database.transaction() as connection:
        wanted = (api_keys.c.person == _row(connection, name)["id"], api_keys.c.id == key)
        row = connection.execute(select(api_keys).where(*wanted)).mappings().one_or_none()
        if row is None:
            raise NotFound(f"{name} has no key {key}.")
        connection.execute(delete(api_keys).where(*wanted))
        _note(connection, name, "key revoked", now, by, detail={"before": _told(_key(row)), "after": {}})


# --- parts ---


def _told(key: ApiKey) -> dict[str, object]:
    """A key for the record: never its text nor its hash."""
    return {
        "number": key.id,
        "key": key.label,
        "roles": _kept(key.roles),
        "ends_at": key.ends_at.isoformat() if key.ends_at else "",
    }


def _key(row: RowMapping) -> ApiKey:
    return ApiKey(
        id=row["id"],
        label=row["label"],
        roles=_roles(row["roles"]),
        created_at=row["created_at"],
        ends_at=row["ends_at"],
        used_at=row["used_at"],
    )


def _row(connection: Connection, name: str) -> RowMapping:
    row = connection.execute(select(people).where(people.c.name == name)).mappings().one_or_none()
    if row is None:
        raise NotFound(f"There is no person named {name}. List them: webdepot account list")
    return row


def _keep_an_administrator(connection: Connection, row: RowMapping, roles: frozenset[Role]) -> None:
    if Role.ADMINISTRATOR in roles or Role.ADMINISTRATOR not in _roles(row["roles"]):
        return
    others = connection.execute(
        select(people.c.roles).where(people.c.id != row["id"], people.c.closed_at.is_(None))
    ).scalars()
    if not any(Role.ADMINISTRATOR in _roles(held) for held in others):
        raise Conflict(f"{row['name']} is the only administrator. Make another person administrator first.")


def _free_name(connection: Connection, wanted: str) -> str:
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


def _verified(hashed: str, password: str) -> bool:
    try:
        return PasswordHasher().verify(hashed, password[:LONGEST_PASSWORD])
    except (Argon2Error, InvalidHashError):
        return False


def _kept(roles: Iterable[Role]) -> list[str]:
    return sorted(role.value for role in roles)


def _roles(kept: Iterable[str]) -> frozenset[Role]:
    # The rights officer of the first homes: their work is now shared by those two.
    return frozenset(
        role
        for name in kept
        for role in ((Role.CURATOR, Role.REVIEWER) if name == "rights officer" else (Role(name),))
    )


def _note(
    connection: Connection,
    name: str,
    action: str,
    now: datetime,
    by: str,
    *,
    detail: Mapping[str, object] | None = None,
) -> None:
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


def _token_hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


@lru_cache(maxsize=1)
def _nobodys_hash() -> str:
    """A hash of a password nobody has, made with today's parameters so that verifying it costs the same."""
    return PasswordHasher().hash(secrets.token_urlsafe(32))
