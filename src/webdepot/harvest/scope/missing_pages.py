"""Soft 404: hosts that answer 200 for pages that do not exist.

The links of such a response are relative to an address that does not exist, so they lead to more and more of
them. Order of steps:

1. A host that returns the same payload repeatedly, or whose addresses are guessed, is asked once for an
   address that cannot exist (`ask`). The request is logged; the response is not a page of the site and is not
   kept.
2. If the response is a page, its shape is stored with the frontier: the page without words that contain
   digits, and without its own address, which such pages often repeat.
3. A later response of that shape (`is_missing_page`) is kept like any other, but its links are not followed,
   and a guess that led to it counts as wrong. This never applies to seeds: many hosts return their front page
   instead.
"""

import re
from hashlib import blake2b

from webdepot.harvest.frontier import origin_of
from webdepot.harvest.politeness.server_turns import ServerTurns
from webdepot.model import Candidate, Hop, Visit
from webdepot.ports import Frontier
from webdepot.url import Url

SUSPICIOUS = 10
"""Number of repeated payloads after which a host is tested."""
MOST_HOSTS = 10_000
_READ_BYTES = 1 << 20
_NO_SHAPE = b""
_WITH_DIGITS = re.compile(rb"(?<![0-9A-Za-z_-])[A-Za-z_-]*+[0-9][0-9A-Za-z_-]*+")


class MissingPages:
    def __init__(self, turns: ServerTurns, frontier: Frontier) -> None:
        self._turns = turns
        self._frontier = frontier
        self._shapes: dict[str, bytes] = {}
        """By origin, for the hosts that were tested; empty if the host correctly returns 404."""
        self._same: dict[str, int] = {}

    def note_same(self, url: str) -> None:
        """Count a response whose payload this harvest already has."""
        origin = origin_of(url)
        if len(self._same) >= MOST_HOSTS:
            self._same.clear()
        self._same[origin] = self._same.get(origin, 0) + 1

    def must_ask(self, candidate: Candidate, origin: str) -> bool:
        """Whether the host must be tested before this candidate is fetched."""
        if self._same.get(origin, 0) < SUSPICIOUS and not candidate.path.endswith(Hop.SPECULATIVE):
            return False
        return self._shape_of(origin) is None

    def address(self, origin: str) -> Url:
        """An address of the host that cannot exist."""
        return Url(
            f"{origin}/{blake2b(origin.encode(), digest_size=12, person=b'no such page').hexdigest()}.html"
        )

    async def ask(self, candidate: Candidate, origin: str, *, crawl_delay_s: float | None) -> Visit:
        """Fetch `address` and remember its shape. The caller logs and closes the visit."""
        visit = await self._turns.ask(candidate, crawl_delay_s=crawl_delay_s)
        self._remember(origin, _shape(visit))
        return visit

    def spare(self, origin: str) -> None:
        """Do not test this host; none of its pages is treated as missing."""
        self._remember(origin, _NO_SHAPE)

    def is_missing_page(self, visit: Visit) -> bool:
        """Whether a response is the one that its host gives for pages that do not exist."""
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
    """A digest of what the page looks like; empty if the response is not a page."""
    if visit.failure is not None or not 200 <= visit.status < 300:
        return _NO_SHAPE
    visit.body.seek(0)
    path = visit.candidate.url[len(origin_of(visit.candidate.url)) :].encode("utf-8", "replace")
    body = visit.body.read(_READ_BYTES)
    if path != b"/":
        body = body.replace(path, b"").replace(path.rpartition(b"/")[2] or path, b"")
    return blake2b(_WITH_DIGITS.sub(b"", body), digest_size=16).digest()
