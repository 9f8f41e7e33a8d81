"""Pages that one reader at a time may see, as deposit laws ask of reading rooms: a rule with the answer
`lend` says which.

Whoever opens such a page has it, at that terminal, for as long as the page stays open and some minutes more;
everybody else is told so (423). Only pages are held, not their pictures: two pages of one site share those.
Staff are never kept out and keep nobody out.

A page in use is asked for many times a minute: its words, its frame, parts of it, a sign of life from its
banner. That its reader has it is written anew only when a quarter of the time has passed; until then it is
read, and remembered until anybody, in any process, commits anything. So a page that staff took back, or that
was left at another server, is not shown for a moment longer.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from webdepot.access import seats
from webdepot.access.policy import AccessPoint, Reader
from webdepot.access.seats import Held
from webdepot.archive import Archive
from webdepot.errors import Conflict, NotFound
from webdepot.model import Capture
from webdepot.provenance import append, difference
from webdepot.services.access import gate
from webdepot.url import from_typed
from webdepot.url import key as key_of

RENEWED_BELOW = 0.75
"""A seat with a smaller share of its time left is written anew. A reader who goes away without a word keeps
the page at least so long.
"""


class InUse(Conflict):
    """Another reader has the page."""

    http_status = 423

    def __init__(self, url: str, minutes: int) -> None:
        super().__init__(
            f"{url} is being read at another place, and one reader at a time may see it. Try again in {minutes} minutes."
        )
        self.key = "errors.text_423"
        self.values = {"minutes": str(minutes)}


def is_lent(archive: Archive, capture: Capture, reader: Reader) -> bool:
    """Whether this reader gets this capture only while nobody else has it."""
    if reader.access_point is AccessPoint.STAFF or not _is_page(capture):
        return False
    return gate.is_lent(archive, capture, reader)


def hold(archive: Archive, capture: Capture, reader: Reader) -> bool:
    """Hold a page that is lent, or go on holding it; whether it is one. InUse when another reader has it."""
    if not is_lent(archive, capture, reader):
        return False
    now, lasting = archive.clock(), timedelta(minutes=archive.config.web.lend_minutes)
    held = _find_held(archive, capture.key)
    if held is None or held.until <= now or (held.is_of(reader.seat) and _is_to_renew(held, now, lasting)):
        with archive.database.transaction() as connection:
            held = seats.take(connection, capture.key, capture.url, reader.seat, now=now, until=now + lasting)
    if held is not None and not held.is_of(reader.seat):
        raise InUse(capture.url, max(round((held.until - now).total_seconds() / 60), 1))
    return True


def needs_no_writing(archive: Archive, capture: Capture, reader: Reader) -> bool:
    """Whether `hold` would answer from memory, or from one look into the database."""
    if not is_lent(archive, capture, reader):
        return True
    held, now = _find_held(archive, capture.key), archive.clock()
    if held is None or held.until <= now or not held.is_of(reader.seat):
        return False
    return not _is_to_renew(held, now, timedelta(minutes=archive.config.web.lend_minutes))


def _find_held(archive: Archive, key: str) -> Held | None:
    return archive.database.remembered(f"seat {key}", lambda connection: seats.find(connection, key))


def _is_to_renew(held: Held, now: datetime, lasting: timedelta) -> bool:
    """Whether a quarter of its time has passed. Where the time has been made shorter since, that counts at
    once.
    """
    return not lasting * RENEWED_BELOW < held.until - now <= lasting


def leave(archive: Archive, url: str, reader: Reader) -> None:
    """The page was closed at this reader's terminal."""
    if gate.has_lending_rules(archive):
        with archive.database.transaction() as connection:
            seats.leave(connection, key_of(url), reader.seat)


def free(archive: Archive, typed: str) -> None:
    """Take a page from a reader who left it open; NotFound when nobody has it."""
    key = key_of(from_typed(typed))
    with archive.database.transaction() as connection:
        held = seats.free(connection, key)
        if held is None:
            raise NotFound(f"Nobody has {typed[:200]} open. See: webdepot rule lent")
        # Not by whom: which terminal reads what is nobody's business afterwards.
        before = {"taken_at": held.taken_at.isoformat(), "until": held.until.isoformat()}
        append(
            connection,
            archive.event(
                "freed", "lent page", key[:200], message=typed[:200], detail=difference(before, {})
            ),
        )


def every(archive: Archive) -> Sequence[Held]:
    """Pages that readers have open now."""
    with archive.database.reading() as connection:
        return seats.every(connection, archive.clock())


def _is_page(capture: Capture) -> bool:
    return "html" in capture.mime or capture.mime in ("application/pdf", "warc/revisit")
