"""Saved searches: a person's named queries, each with a token that opens its feed without signing in."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, delete, insert, select

from webdepot.access.tables import saved_searches
from webdepot.errors import InputError, NotFound
from webdepot.reasons import said

MOST_SAVED = 200
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedSearch:
    token: str
    person: str
    name: str
    query: str
    collection: str
    created_at: datetime


def save(
    connection: Connection, person: str, *, name: str, query: str, collection: str, now: datetime
) -> SavedSearch:
    """Save a search; InputError if it is empty or the person has too many."""
    if not query.strip():
        raise InputError("The search is empty. Enter something to look for before you save it.")
    if len(of_person(connection, person)) >= MOST_SAVED:
        raise InputError(f"A person can save at most {MOST_SAVED} searches. Remove one first.")
    values = {
        "token": secrets.token_urlsafe(16),
        "person": person,
        "name": (name.strip() or query)[:LONGEST_NAME],
        "query": query,
    }
    row = connection.execute(
        insert(saved_searches)
        .values(**values, collection=collection, created_at=now)
        .returning(*saved_searches.c)
    )
    return _search(row.mappings().one())


def of_person(connection: Connection, person: str) -> Sequence[SavedSearch]:
    query = select(saved_searches).where(saved_searches.c.person == person).order_by(saved_searches.c.id)
    return [_search(row) for row in connection.execute(query).mappings()]


def get(connection: Connection, token: str) -> SavedSearch:
    row = (
        connection.execute(select(saved_searches).where(saved_searches.c.token == token))
        .mappings()
        .one_or_none()
    )
    if row is None:
        raise NotFound(
            said("missing_search", "This saved search does not exist; its owner may have removed it.")
        )
    return _search(row)


def remove(connection: Connection, person: str, token: str) -> None:
    """Remove a search of this person; nothing happens if it belongs to another."""
    connection.execute(
        delete(saved_searches).where(saved_searches.c.token == token, saved_searches.c.person == person)
    )


def _search(row: RowMapping) -> SavedSearch:
    return SavedSearch(
        **{name: row[name] for name in ("token", "person", "name", "query", "collection", "created_at")}
    )
