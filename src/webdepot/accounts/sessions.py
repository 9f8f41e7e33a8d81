"""Sessions of people: how a request of a browser shows who sends it. Programs have keys (`api_keys`).

Only hashes of tokens are stored: a stolen copy of the database opens no session.
Every change is an event with before and after, in the same transaction. The tables are in `accounts`.
"""

import hashlib
import hmac
import secrets
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
    note,
    read_roles,
    stored_roles,
)
from webdepot.accounts.roles import Role
from webdepot.accounts.tables import people, sessions
from webdepot.database import Database
from webdepot.errors import Conflict, NotFound
from webdepot.provenance import difference

MOST_SESSIONS = 10
"""Open sessions of one person; a further sign-in ends the one that began first."""
SEEN_EVERY = timedelta(minutes=5)
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
            connection.execute(delete(sessions).where(sessions.c.token_hash == token_hash(instead_of)))
        others = select(sessions.c.token_hash).where(sessions.c.person == row["id"])
        newest_first = others.order_by(sessions.c.began_at.desc().nulls_last(), sessions.c.token_hash)
        too_many = connection.execute(newest_first.offset(MOST_SESSIONS - 1)).scalars().all()
        connection.execute(delete(sessions).where(sessions.c.token_hash.in_(too_many)))
        connection.execute(insert(sessions).values(token_hash=token_hash(token), person=row["id"], **values))
        detail = {"before": {}, "after": {"session": token_hash(token)[:16], "address": address[:60]}}
        note(connection, row["name"], "signed in", now, row["name"], detail=detail)
    return token


def find_session(database: Database, token: str, now: datetime) -> Person | None:
    """The person signed in with this token; None if the session has ended."""
    hashed = token_hash(token)
    chosen = (
        select(people.c.name, people.c.roles, sessions.c.seen_at)
        .join(sessions, sessions.c.person == people.c.id)
        .where(sessions.c.token_hash == hashed, sessions.c.ends_at >= now, people.c.closed_at.is_(None))
    )
    with database.reading() as connection:
        row = connection.execute(chosen).one_or_none()
    if row is None:
        return None
    if row.seen_at is not None and now - row.seen_at > SEEN_EVERY:
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
    return token_hash(token)[:16]


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
    hashed = token_hash(token)
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


def token_hash(token: str) -> str:
    """What is stored of a token or a key."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


@lru_cache(maxsize=1)
def _nobodys_hash() -> str:
    """The hash of a random password, with the current parameters: verifying against it takes equally long."""
    return PasswordHasher().hash(secrets.token_urlsafe(32))
