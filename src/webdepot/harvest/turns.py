"""Asking servers in turn: one request at a time for each, and the pause after it.

The frontier already hands out one candidate of a host at a time. This guards the requests it does not hand out: robots.txt, and
above all robots.txt that redirects to another host, which may be asked by somebody else just then. A server is its origin here.
"""

import asyncio
import time

from webdepot.harvest.frontier import origin_of
from webdepot.harvest.politeness import Manners, pause_after
from webdepot.model import Candidate, Visit
from webdepot.ports import Fetcher

MOST_SERVERS = 10_000
"""Servers remembered; beyond that, those are let go that nobody waits for."""


class Turns:
    """One event loop. Times are `time.monotonic()`: the event loop's own clock may lag behind by a whole turn of the loop."""

    def __init__(self, fetcher: Fetcher, manners: Manners) -> None:
        self._fetcher = fetcher
        self.manners = manners
        """Of hosts that have none of their own; may be changed at any time."""
        self._locks: dict[str, asyncio.Lock] = {}
        self._free_at_s: dict[str, float] = {}

    async def ask(self, candidate: Candidate, *, crawl_delay_s: float | None, manners: Manners | None = None) -> Visit:
        """Fetch when the server is free; afterwards `free_at_s` says when it will be again."""
        origin = origin_of(candidate.url)
        lock = self._locks.get(origin)
        if lock is None:
            self._let_go()
            lock = self._locks[origin] = asyncio.Lock()
        async with lock:
            while (rest_s := self.free_at_s(origin) - time.monotonic()) > 0:
                await asyncio.sleep(rest_s)
            visit = await self._fetcher.fetch(candidate)
            self._free_at_s[origin] = time.monotonic() + pause_after(visit.duration_s, manners or self.manners, crawl_delay_s=crawl_delay_s)
        return visit

    def free_at_s(self, origin: str) -> float:
        return self._free_at_s.get(origin, 0.0)

    def hold(self, origin: str, until_s: float) -> float:
        """Leave a server alone at least until then; when it is free."""
        self._free_at_s[origin] = max(until_s, self.free_at_s(origin))
        return self._free_at_s[origin]

    def _let_go(self) -> None:
        if len(self._locks) < MOST_SERVERS:
            return
        now_s = time.monotonic()
        resting = {origin for origin, free_at_s in self._free_at_s.items() if free_at_s > now_s}
        self._locks = {origin: lock for origin, lock in self._locks.items() if lock.locked() or origin in resting}
        self._free_at_s = {origin: free_at_s for origin, free_at_s in self._free_at_s.items() if origin in self._locks}
