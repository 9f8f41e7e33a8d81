"""Pages that one reader at a time may see, as deposit laws require of reading rooms. A rule with the answer
`lend` says which pages these are.

A reader who opens such a page holds it, at that terminal, while the page is open and for some minutes after;
other readers get status 423. Only pages are held, not their images: two pages of one site share those. Staff
can always open a page, and do not hold it.

A page in use is requested many times a minute: the page, its frame, its parts, and a keep-alive request from
the banner. The hold is extended in the database only when a quarter of its time has passed; until then it is
only read, and cached until any process commits anything. So a page that staff freed, or that was closed
through another server process, is released at once.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from webdepot.access import lending_seats
from webdepot.access.lending_seats import HeldPage
from webdepot.access.policy import AccessPoint, Reader
from webdepot.archive import Archive
from webdepot.errors import Conflict, NotFound
from webdepot.model import Capture
from webdepot.provenance import append, difference
from webdepot.services.access import gate
from webdepot.url import from_typed
from webdepot.url import key as key_of

RENEWED_BELOW = 0.75
"""A hold with a smaller share of its time left is extended. A reader who leaves without closing the page
keeps it for at least this share.
"""


class InUse(Conflict):
    """Another reader has the page."""

    http_status = 423

    def __init__(self, url: str, minutes: int) -> None:
        super().__init__(
            f"Another reader has {url} open, and only one reader at a time may see it. "
            f"Try again in {minutes} minutes."
        )
        self.key = "errors.text_423"
        self.values = {"minutes": str(minutes)}


def _is_lent_page(archive: Archive, capture: Capture, reader: Reader) -> bool:
    """Whether this reader may see this capture only while nobody else has it open."""
    if reader.access_point is AccessPoint.STAFF or not _is_page(capture):
        return False
    return gate.is_lent(archive, capture, reader)


def hold(archive: Archive, capture: Capture, reader: Reader) -> bool:
    """Hold a lent page or extend the hold; return whether it is lent. InUse if another reader has it."""
    if not _is_lent_page(archive, capture, reader):
        return False
    now, duration = archive.clock(), timedelta(minutes=archive.config.web.lend_minutes)
    held = _find_held(archive, capture.key)
    if held is None or held.until <= now or (held.is_of(reader.seat) and _needs_renewal(held, now, duration)):
        with archive.database.transaction() as connection:
            held = lending_seats.take(
                connection, capture.key, capture.url, reader.seat, now=now, until=now + duration
            )
    if held is not None and not held.is_of(reader.seat):
        raise InUse(capture.url, max(round((held.until - now).total_seconds() / 60), 1))
    return True


def needs_no_writing(archive: Archive, capture: Capture, reader: Reader) -> bool:
    """Whether `hold` would answer without writing to the database."""
    if not _is_lent_page(archive, capture, reader):
        return True
    held, now = _find_held(archive, capture.key), archive.clock()
    if held is None or held.until <= now or not held.is_of(reader.seat):
        return False
    return not _needs_renewal(held, now, timedelta(minutes=archive.config.web.lend_minutes))


def _find_held(archive: Archive, key: str) -> HeldPage | None:
    return archive.database.remembered(f"seat {key}", lambda connection: lending_seats.find(connection, key))


def _needs_renewal(held: HeldPage, now: datetime, duration: timedelta) -> bool:
    """Whether a quarter of its time has passed, or the configured time has been shortened since."""
    return not duration * RENEWED_BELOW < held.until - now <= duration


def leave(archive: Archive, url: str, reader: Reader) -> None:
    """End the hold of a page that was closed at this reader's terminal."""
    if gate.has_lending_rules(archive):
        with archive.database.transaction() as connection:
            lending_seats.leave(connection, key_of(url), reader.seat)


def free(archive: Archive, typed: str) -> None:
    """End the hold of a reader who left a page open; NotFound if nobody has it."""
    key = key_of(from_typed(typed))
    with archive.database.transaction() as connection:
        held = lending_seats.free(connection, key)
        if held is None:
            raise NotFound(f"Nobody has {typed[:200]} open. See: webdepot rule lent")
        # Not which terminal: what somebody read must not be recorded.
        before = {"taken_at": held.taken_at.isoformat(), "until": held.until.isoformat()}
        append(
            connection,
            archive.event(
                "freed", "lent page", key[:200], message=typed[:200], detail=difference(before, {})
            ),
        )


def every(archive: Archive) -> Sequence[HeldPage]:
    """Lent pages that readers have open now."""
    with archive.database.reading() as connection:
        return lending_seats.every(connection, archive.clock())


def _is_page(capture: Capture) -> bool:
    return "html" in capture.mime or capture.mime in ("application/pdf", "warc/revisit")
