"""Sessions of people and API keys of programs: how a request shows who sends it.

Only hashes of tokens and keys are stored: a stolen copy of the database opens no session and reveals no key.
Every change is an event with before and after, in the same transaction. The tables are in `accounts`.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from argon2 import PasswordHasher
from sqlalchemy import RowMapping, delete, insert, select, update

from webdepot.accounts.accounts import (
    Person,
    free_name,
    get_row,
    insert_person,
    is_password,
    key_detail,
    note,
    read_roles,
    stored_roles,
)
from webdepot.accounts.roles import Role
from webdepot.accounts.tables import api_keys, people, sessions
from webdepot.database import Database
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.provenance import difference

KEY_PREFIX = "wdk_"
"""Starts every key, so that secret scanners find one that was published by mistake."""
MOST_SESSIONS = 10
"""Open sessions of one person; a further sign-in ends the one that began first."""
_SEEN_EVERY = timedelta(minutes=5)
"""How often the time of the last use is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    id: str
    """The first 16 digits of the token's hash: enough to end the session, useless for using it."""
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
    """The token of a new session, or None. Takes as long for an unknown name as for a wrong password.

    `instead_of` is the token the browser had before; that session ends, so that nobody can sign a person in
    to a session they already hold (session fixation).
    """
    with database.reading() as connection:
        row = connection.execute(select(people).where(people.c.name == name.strip())).mappings().one_or_none()
    verified = is_password(
        row["password_hash"] if row and row["password_hash"] else _nobodys_hash(), password
    )
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
    """The token of a new session for a person who signed in at an identity provider. Their account is created
    on the first visit. Conflict if it is closed.

    People are recognised by `external` (issuer and subject) only: if another account has the same name, the
    new one gets a different name. `roles` None leaves the roles as they are; a new account is a reader then.
    """
    with database.transaction() as connection:
        row = connection.execute(select(people).where(people.c.external == external)).mappings().one_or_none()
        if row is None:
            person = Person(name=free_name(connection, name), roles=roles or frozenset({Role.READER}))
            insert_person(connection, person, "", now, external=external, by=external)
        elif roles is not None and roles != read_roles(row["roles"]):
            connection.execute(
                update(people).where(people.c.id == row["id"]).values(roles=stored_roles(roles))
            )
            detail = difference(
                {"roles": stored_roles(read_roles(row["roles"]))}, {"roles": stored_roles(roles)}
            )
            note(connection, row["name"], "roles changed", now, external, detail=detail)
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
        others = select(sessions.c.token_hash).where(sessions.c.person == row["id"])
        newest_first = others.order_by(sessions.c.began_at.desc().nulls_last(), sessions.c.token_hash)
        too_many = connection.execute(newest_first.offset(MOST_SESSIONS - 1)).scalars().all()
        connection.execute(delete(sessions).where(sessions.c.token_hash.in_(too_many)))
        connection.execute(insert(sessions).values(token_hash=_token_hash(token), person=row["id"], **values))
        detail = {"before": {}, "after": {"session": _token_hash(token)[:16], "address": address[:60]}}
        note(connection, row["name"], "signed in", now, row["name"], detail=detail)
    return token


def find_session(database: Database, token: str, now: datetime) -> Person | None:
    """The person signed in with this token; None if the session has ended."""
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
    return Person(name=row.name, roles=read_roles(row.roles))


def sessions_of(database: Database, name: str, now: datetime) -> list[Session]:
    """The open sessions of a person, newest first."""
    with database.reading() as connection:
        chosen = select(sessions).where(
            sessions.c.person == get_row(connection, name)["id"], sessions.c.ends_at >= now
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
    """The `Session.id` of a token."""
    return _token_hash(token)[:16]


def end_session(database: Database, name: str, session: str, now: datetime, *, by: str) -> None:
    """End one session of a person, or all if `session` is empty. NotFound if it is not theirs."""
    with database.transaction() as connection:
        wanted = [sessions.c.person == get_row(connection, name)["id"]]
        if session:
            wanted.append(sessions.c.token_hash.startswith(session[:16], autoescape=True))
        ended = connection.execute(delete(sessions).where(*wanted)).rowcount
        if session and (not ended or len(session) < 16):
            raise NotFound(f"{name} has no such session. List them: webdepot account sessions {name}")
        note(
            connection,
            name,
            "sessions ended",
            now,
            by,
            detail={"before": {"sessions": ended}, "after": {"sessions": 0}},
        )


def sign_out(database: Database, token: str, now: datetime) -> None:
    """End the session of a token."""
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
            note(
                connection,
                name,
                "signed out",
                now,
                name,
                detail={"before": {"session": hashed[:16]}, "after": {}},
            )


# --- browsers in which somebody has signed in before ---


def make_device(database: Database, name: str) -> str:
    """A token for a browser in which this person has just signed in. It is signed with the hash of their
    password: nothing is stored, and a new password makes it void.
    """
    with database.reading() as connection:
        hashed: str = get_row(connection, name.strip())["password_hash"]
    nonce = secrets.token_hex(16)
    return f"{nonce}.{_sign_device(hashed, nonce)}"


def find_device(database: Database, name: str, token: str) -> str:
    """The name of a browser in which this person has signed in before; empty if the token is not theirs."""
    nonce, _, signature = token.partition(".")
    if len(nonce) != 32 or not signature:
        return ""
    with database.reading() as connection:
        chosen = select(people.c.password_hash).where(people.c.name == name.strip())
        hashed = connection.execute(chosen).scalar_one_or_none()
    is_known = bool(hashed) and hmac.compare_digest(
        signature.encode("utf-8", "replace"), _sign_device(str(hashed), nonce).encode()
    )
    return nonce if is_known else ""


def _sign_device(hashed: str, nonce: str) -> str:
    return hmac.new(hashed.encode(), f"device {nonce}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


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
        adding = insert(api_keys).values(person=row["id"], key_hash=_token_hash(text), **values)
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
        .where(api_keys.c.key_hash == _token_hash(text), people.c.closed_at.is_(None))
    )
    with database.reading() as connection:
        row = connection.execute(chosen).one_or_none()
    if row is None or (row.ends_at is not None and row.ends_at < now):
        return None
    if row.used_at is None or now - row.used_at > _SEEN_EVERY:
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


# --- parts ---


def _key(row: RowMapping) -> ApiKey:
    return ApiKey(
        id=row["id"],
        label=row["label"],
        roles=read_roles(row["roles"]),
        created_at=row["created_at"],
        ends_at=row["ends_at"],
        used_at=row["used_at"],
    )


def _token_hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


@lru_cache(maxsize=1)
def _nobodys_hash() -> str:
    """The hash of a random password, with the current parameters: verifying against it takes equally long."""
    return PasswordHasher().hash(secrets.token_urlsafe(32))
