"""Who may do what, and what was done: the audit trail of every change."""

from collections.abc import Iterator

from webdepot import provenance
from webdepot.archive import Archive
from webdepot.provenance import Event, EventFilter

_BATCH = 1000


def trail(
    archive: Archive, asked: EventFilter, *, limit: int, older_than: int = 0
) -> list[tuple[int, Event]]:
    """Events with their numbers, newest first, a page at a time."""
    with archive.database.reading() as connection:
        return provenance.page(connection, asked, limit=limit, older_than=older_than)


def iter_trail(archive: Archive, asked: EventFilter) -> Iterator[Event]:
    """As `trail`, all of it, a page at a time: whoever reads may be slow and on other threads."""
    older_than = 0
    while page := trail(archive, asked, limit=_BATCH, older_than=older_than):
        yield from (event for _, event in page)
        older_than = page[-1][0]


def known_actions(archive: Archive) -> list[str]:
    with archive.database.reading() as connection:
        return provenance.actions(connection)
