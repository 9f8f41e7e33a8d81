"""Pages that one reader at a time may see, as deposit laws ask of reading rooms: a rule with the answer `lend` says which.

Whoever opens such a page has it, at that terminal, for as long as the page stays open and some minutes more; everybody else is told so
(423). Only pages are held, not their pictures: two pages of one site share those. Staff are never kept out and keep nobody out.
"""

from collections.abc import Sequence
from datetime import timedelta

from webdepot.access import policy, rules, seats
from webdepot.access.policy import AccessPoint, Reader, RuleAnswer
from webdepot.access.seats import Held
from webdepot.archive import Archive
from webdepot.errors import Conflict, NotFound
from webdepot.model import Capture
from webdepot.provenance import Event, append
from webdepot.url import from_typed
from webdepot.url import key as key_of


class InUse(Conflict):
    """Another reader has the page."""

    http_status = 423

    def __init__(self, url: str, minutes: int) -> None:
        super().__init__(f"{url} is being read at another place, and one reader at a time may see it. Try again in {minutes} minutes.")
        self.key = "errors.text_423"
        self.values = {"minutes": str(minutes)}


def has_lent(archive: Archive) -> bool:
    """Whether there is any rule that lends: where there is none, nobody's terminal matters."""
    return archive.database.remembered("access rules", rules.by_prefix).lends


def is_lent(archive: Archive, capture: Capture, reader: Reader) -> bool:
    """Whether this reader gets this capture only while nobody else has it."""
    known = archive.database.remembered("access rules", rules.by_prefix)
    if not known.lends or reader.access_point is AccessPoint.STAFF or not _is_page(capture):
        return False
    speaking = known.speaking_about(capture.key)
    decisive = policy.decisive(capture.key, capture.timestamp, speaking, reader, archive.clock().date())
    return decisive is not None and decisive.answer is RuleAnswer.LEND


def hold(archive: Archive, capture: Capture, reader: Reader) -> bool:
    """Hold a page that is lent, or go on holding it; whether it is one. InUse when another reader has it."""
    if not is_lent(archive, capture, reader):
        return False
    now = archive.clock()
    until = now + timedelta(minutes=archive.config.web.lend_minutes)
    with archive.database.transaction() as connection:
        held = seats.take(connection, capture.key, capture.url, reader.seat, now=now, until=until)
    if held is not None:
        raise InUse(capture.url, max(round((held.until - now).total_seconds() / 60), 1))
    return True


def leave(archive: Archive, url: str, reader: Reader) -> None:
    """The page was closed at this reader's terminal."""
    if has_lent(archive):
        with archive.database.transaction() as connection:
            seats.leave(connection, key_of(url), reader.seat)


def free(archive: Archive, typed: str) -> None:
    """Take a page from a reader who left it open; NotFound when nobody has it."""
    key = key_of(from_typed(typed))
    with archive.database.transaction() as connection:
        if not seats.free(connection, key):
            raise NotFound(f"Nobody has {typed[:200]} open. See: webdepot rule lent")
        append(
            connection,
            Event(
                at=archive.clock(), agent=archive.agent, action="freed", subject_kind="lent page", subject=key[:200], message=typed[:200]
            ),
        )


def every(archive: Archive) -> Sequence[Held]:
    """Pages that readers have open now."""
    with archive.database.reading() as connection:
        return seats.every(connection, archive.clock())


def _is_page(capture: Capture) -> bool:
    return "html" in capture.mime or capture.mime in ("application/pdf", "warc/revisit")
