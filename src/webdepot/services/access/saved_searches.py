"""Searches that people save under a name. The token of a saved search opens its feed without signing in."""

from collections.abc import Sequence

from webdepot.access import saved_search_rows
from webdepot.access.saved_search_rows import SavedSearch
from webdepot.archive import Archive


def save(archive: Archive, person: str, *, name: str, query: str, collection: str) -> SavedSearch:
    """Save a search. InputError when the query is empty or the person has saved too many."""
    with archive.database.transaction() as connection:
        return saved_search_rows.save(
            connection, person, name=name, query=query, collection=collection, now=archive.clock()
        )


def remove(archive: Archive, person: str, token: str) -> None:
    """Remove a search of this person; nothing happens when the token is of somebody else's search."""
    with archive.database.transaction() as connection:
        saved_search_rows.remove(connection, person, token)


def list_of(archive: Archive, person: str) -> Sequence[SavedSearch]:
    """The searches of a person, the oldest first."""
    with archive.database.reading() as connection:
        return saved_search_rows.of_person(connection, person)


def get(archive: Archive, token: str) -> SavedSearch:
    """The search of a token; NotFound when there is none."""
    with archive.database.reading() as connection:
        return saved_search_rows.get(connection, token)
