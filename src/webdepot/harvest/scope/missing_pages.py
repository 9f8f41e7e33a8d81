"""Hosts that say 200 to everything ("soft 404"): what they answer for a page that cannot exist, and which
answers are that one again.

Such an answer has links of its own, relative to an address that is none, and so leads to as many more as one
cares to ask for. Order of steps:

1. A host that gives the same payload again and again, or of which addresses are guessed, is asked once for an
   address that nobody can have made (`ask`). The question stands in the log, but its answer is no page of the
   site and not kept.
2. Where that answer is a page, its shape is remembered with the frontier: without words that have digits in
   them, and without the address itself, which such pages like to repeat.
3. A later answer of that shape (`is_one`) is kept as any other, but its links are not followed, and as a
   guess it was wrong. Seeds are never taken for one: many hosts show their front page instead.
"""

import re
from hashlib import blake2b

from webdepot.harvest.frontier import origin_of
from webdepot.harvest.politeness.turns import Turns
from webdepot.model import Candidate, Hop, Visit
from webdepot.ports import Frontier
from webdepot.url import Url

SUSPICIOUS = 10
"""So many answers of a host must have been the same as an earlier one."""
MOST_HOSTS = 10_000
_READ_BYTES = 1 << 20
_NO_SHAPE = b""
_GUESS = Hop.SPECULATIVE.value
_WITH_DIGITS = re.compile(rb"[0-9A-Za-z_-]*[0-9][0-9A-Za-z_-]*")


class MissingPages:
    def __init__(self, turns: Turns, frontier: Frontier) -> None:
        self._turns = turns
        self._frontier = frontier
        self._shapes: dict[str, bytes] = {}
        """Of hosts that were asked; empty for one that says 404 as it should."""
        self._same: dict[str, int] = {}

    def note_same(self, url: str) -> None:
        """An answer had a payload that this harvest has kept already."""
        origin = origin_of(url)
        if len(self._same) >= MOST_HOSTS:
            self._same.clear()
        self._same[origin] = self._same.get(origin, 0) + 1

    def must_ask(self, candidate: Candidate, origin: str) -> bool:
        """Whether the host should be asked before this candidate is."""
        if self._same.get(origin, 0) < SUSPICIOUS and not candidate.path.endswith(_GUESS):
            return False
        return self._shape_of(origin) is None

    def address(self, origin: str) -> Url:
        return Url(
            f"{origin}/{blake2b(origin.encode(), digest_size=12, person=b'no such page').hexdigest()}.html"
        )

    async def ask(self, candidate: Candidate, origin: str, *, crawl_delay_s: float | None) -> Visit:
        """Ask for that `address`, and remember what came. The visit is the caller's to log and to close."""
        visit = await self._turns.ask(candidate, crawl_delay_s=crawl_delay_s)
        self._remember(origin, _shape(visit))
        return visit

    def spare(self, origin: str) -> None:
        """It may not be asked; nothing is taken for missing there."""
        self._remember(origin, _NO_SHAPE)

    def is_one(self, visit: Visit) -> bool:
        """Whether an answer is what its host says of a page that is not there."""
        if not self._shapes or not visit.candidate.path.strip(Hop.REDIRECT):
            return False
        known = self._shapes.get(origin_of(visit.candidate.url))
        return bool(known) and known == _shape(visit)

    def _shape_of(self, origin: str) -> bytes | None:
        if origin not in self._shapes and (stored := self._frontier.recall(f"missing:{origin}")) is not None:
            self._shapes[origin] = stored
        return self._shapes.get(origin)

    def _remember(self, origin: str, shape: bytes) -> None:
        if len(self._shapes) >= MOST_HOSTS:
            self._shapes.clear()
        self._shapes[origin] = shape
        self._frontier.remember(f"missing:{origin}", shape)


def _shape(visit: Visit) -> bytes:
    """What a page looks like; nothing for an answer that is none."""
    if visit.failure is not None or not 200 <= visit.status < 300:
        return _NO_SHAPE
    visit.body.seek(0)
    path = visit.candidate.url[len(origin_of(visit.candidate.url)) :].encode("utf-8", "replace")
    body = visit.body.read(_READ_BYTES)
    if path != b"/":
        body = body.replace(path, b"").replace(path.rpartition(b"/")[2] or path, b"")
    return blake2b(_WITH_DIGITS.sub(b"", body), digest_size=16).digest()
