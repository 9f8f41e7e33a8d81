"""The audit trail: who changed what, and when."""

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
    """All events, newest first. They are read a page at a time: the consumer may be slow, or on other
    threads.
    """
    older_than = 0
    while page := trail(archive, asked, limit=_BATCH, older_than=older_than):
        yield from (event for _, event in page)
        older_than = page[-1][0]


def known_actions(archive: Archive) -> list[str]:
    with archive.database.reading() as connection:
        return provenance.actions(connection)
