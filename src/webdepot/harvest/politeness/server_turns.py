"""One request at a time for each server address, and the pause after it.

The frontier gives out one candidate of a host at a time; here all hosts at one address share one turn. A host
whose server is busy gets a place in the queue (`wait_until_s`) and goes back to the frontier, so that it does
not occupy a worker. Requests that do not come from the frontier (robots.txt, also of another host after a
redirect) wait for their turn in `ask`. With `Servers`, other processes and harvests of this machine
share the turns.
"""

import asyncio
import time
from collections.abc import Sequence

from webdepot.harvest.politeness.pauses import Manners, pause_after
from webdepot.model import Candidate, Visit
from webdepot.ports.harvest import Fetcher, Servers
from webdepot.url import origin_of

MOST_SERVERS = 10_000
"""Servers remembered; beyond that, those that are free are forgotten."""
_SHORTEST_PLACE_S = 0.005
_SHORTEST_REST_S = 1e-6


class _Server:
    __slots__ = ("free_at_s", "lock", "reserved_s")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.free_at_s = 0.0
        self.reserved_s = 0.0
        """Until then all places in the queue are taken."""


class ServerTurns:
    """The turns of the hosts of one crawl, for one event loop. Times are `time.monotonic()`: the loop's own
    clock may be late by one iteration.
    """

    def __init__(
        self, fetcher: Fetcher, manners: Manners, *, shared: Servers | None = None, bytes_per_s: int = 0
    ) -> None:
        self._fetcher = fetcher
        self.manners = manners
        """For hosts without settings of their own; may be changed at any time."""
        self.bytes_per_s = bytes_per_s
        """Bandwidth of all requests together; 0 means no limit."""
        self._shared = shared
        self._servers: dict[str, _Server] = {}
        self._names: dict[str, str] = {}
        """Origin -> server; looked up again for each request, because addresses change."""
        self._bandwidth_free_at_s = 0.0
        self.resting: dict[str, float] = {}
        """Origin -> until when a request to it waits: its server is paused, or another harvest asks it."""

    async def wait_until_s(self, origin: str) -> float | None:
        """When a host whose server is busy or paused should come again; None if it can be asked now."""
        name = self._fetcher.known_server(origin)
        if name:
            self._names[origin] = name
        else:
            name = await self._find(origin)
        server = self._get(name)
        now_s = time.monotonic()
        if not server.lock.locked() and server.free_at_s <= now_s:
            return None
        place_s = max(now_s, server.free_at_s, server.reserved_s)
        server.reserved_s = place_s + max(self.manners.delay_s, _SHORTEST_PLACE_S)
        return place_s + _SHORTEST_PLACE_S

    async def ask(
        self,
        candidate: Candidate,
        *,
        crawl_delay_s: float | None,
        manners: Manners | None = None,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> Visit:
        """Fetch when the server is free; afterwards `free_at_s` gives the end of its pause."""
        origin = origin_of(candidate.url)
        # Usually `wait_until_s` has just looked it up.
        name = self._names.get(origin) or await self._find(origin)
        server = self._get(name)
        await server.lock.acquire()
        try:
            while rest_s := self._rest_s(name, server):
                self.resting[origin] = time.monotonic() + rest_s
                await asyncio.sleep(rest_s)
            self.resting.pop(origin, None)
            try:
                visit = await self._fetcher.fetch(candidate, headers, body)
                pause_s = pause_after(visit.duration_s, manners or self.manners, crawl_delay_s=crawl_delay_s)
                server.free_at_s = time.monotonic() + pause_s
                self._count(visit)
            finally:
                if self._shared is not None:
                    self._shared.end(name, server.free_at_s)
        finally:
            server.lock.release()
        return visit

    def let_go(self) -> None:
        """Give other harvests their turn at servers that this one does not use at the moment."""
        if self._shared is not None:
            self._shared.let_go()

    def free_at_s(self, origin: str) -> float:
        server = self._servers.get(self._names.get(origin, origin))
        return server.free_at_s if server is not None else 0.0

    def hold(self, origin: str, until_s: float) -> float:
        """Leave a server alone at least until then; return when it is free."""
        name = self._names.get(origin, origin)
        server = self._get(name)
        server.free_at_s = max(until_s, server.free_at_s)
        if self._shared is not None:
            self._shared.hold(name, server.free_at_s)
        return server.free_at_s

    def _rest_s(self, name: str, server: _Server) -> float:
        """How long to wait for the pause, the bandwidth limit or another crawl; 0 if the turn is ours."""
        rest_s = max(server.free_at_s, self._bandwidth_free_at_s) - time.monotonic()
        if rest_s > 0:
            return rest_s
        come_again_s = self._shared.begin(name) if self._shared is not None else 0.0
        # That time may be over by now, but the turn is ours only if `begin` returns 0.
        return max(come_again_s - time.monotonic(), _SHORTEST_REST_S) if come_again_s else 0.0

    def _count(self, visit: Visit) -> None:
        if self.bytes_per_s:
            took_s = (len(visit.head) + visit.body_bytes) / self.bytes_per_s
            self._bandwidth_free_at_s = (
                max(self._bandwidth_free_at_s, time.monotonic() - visit.duration_s) + took_s
            )

    async def _find(self, origin: str) -> str:
        name = self._fetcher.known_server(origin) or await self._fetcher.find_server(origin) or origin
        self._names[origin] = name
        return name

    def _get(self, name: str) -> _Server:
        server = self._servers.get(name)
        if server is None:
            self._forget_free()
            server = self._servers[name] = _Server()
        return server

    def _forget_free(self) -> None:
        if len(self._servers) < MOST_SERVERS:
            return
        now_s = time.monotonic()
        self._servers = {
            name: server
            for name, server in self._servers.items()
            if server.lock.locked() or server.free_at_s > now_s
        }
        self._names = {origin: name for origin, name in self._names.items() if name in self._servers}
