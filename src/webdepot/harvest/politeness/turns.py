"""Asking servers in turn: one request at a time for each server address, and the pause after it.

The frontier hands out one candidate of a host at a time; here many hosts that live at one address share one
turn. A host whose server is busy is given a place in the row (`wait_until_s`), so that it goes back to the
frontier instead of holding a worker. What the frontier does not hand out (robots.txt, and robots.txt that
redirects to another host) waits for its turn in `ask`. With `SharedServers` other processes and harvests of
this machine stand in the same row.
"""

import asyncio
import time
from collections.abc import Sequence

from webdepot.harvest.frontier import origin_of
from webdepot.harvest.politeness.pauses import Manners, pause_after
from webdepot.harvest.politeness.servers import SharedServers
from webdepot.model import Candidate, Visit
from webdepot.ports import Fetcher

MOST_SERVERS = 10_000
"""Servers remembered; beyond that, those are let go that nobody waits for."""
_SHORTEST_PLACE_S = 0.005
_SHORTEST_REST_S = 1e-6


class _Server:
    __slots__ = ("free_at_s", "lock", "reserved_s")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.free_at_s = 0.0
        self.reserved_s = 0.0
        """Up to then places in the row have been given away."""


class ServerTurns:
    """One event loop. Times are `time.monotonic()`: the event loop's own clock may lag behind by a whole turn
    of the loop.
    """

    def __init__(
        self, fetcher: Fetcher, manners: Manners, *, shared: SharedServers | None = None, bytes_per_s: int = 0
    ) -> None:
        self._fetcher = fetcher
        self.manners = manners
        """Of hosts that have none of their own; may be changed at any time."""
        self.bytes_per_s = bytes_per_s
        """Bandwidth of all requests together; 0 is no cap."""
        self._shared = shared
        self._servers: dict[str, _Server] = {}
        self._names: dict[str, str] = {}
        """Origin -> server; asked again with each request, since names move."""
        self._line_free_at_s = 0.0

    async def wait_until_s(self, origin: str) -> float | None:
        """When a host should come again because its server is busy or resting; None when it can be asked now."""
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
    ) -> Visit:
        """Fetch when the server is free; afterwards `free_at_s` says when it will be again."""
        origin = origin_of(candidate.url)
        # Whoever asks has mostly just been at `wait_until_s`.
        name = self._names.get(origin) or await self._find(origin)
        server = self._get(name)
        await server.lock.acquire()
        try:
            while rest_s := self._rest_s(name, server):
                await asyncio.sleep(rest_s)
            try:
                visit = await self._fetcher.fetch(candidate, headers)
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
        """So that other harvests have their turn at servers that this one does not ask at the moment."""
        if self._shared is not None:
            self._shared.let_go()

    def free_at_s(self, origin: str) -> float:
        server = self._servers.get(self._names.get(origin, origin))
        return server.free_at_s if server is not None else 0.0

    def hold(self, origin: str, until_s: float) -> float:
        """Leave a server alone at least until then; when it is free."""
        name = self._names.get(origin, origin)
        server = self._get(name)
        server.free_at_s = max(until_s, server.free_at_s)
        if self._shared is not None:
            self._shared.hold(name, server.free_at_s)
        return server.free_at_s

    def _rest_s(self, name: str, server: _Server) -> float:
        """How long to wait because this crawl or another one, or the line, has something against it; 0 when
        the turn is ours.
        """
        rest_s = max(server.free_at_s, self._line_free_at_s) - time.monotonic()
        if rest_s > 0:
            return rest_s
        come_again_s = self._shared.begin(name) if self._shared is not None else 0.0
        # That moment may have passed by now; the turn is ours all the same only when `begin` says so.
        return max(come_again_s - time.monotonic(), _SHORTEST_REST_S) if come_again_s else 0.0

    def _count(self, visit: Visit) -> None:
        if self.bytes_per_s:
            took_s = (len(visit.head) + visit.body_bytes) / self.bytes_per_s
            self._line_free_at_s = max(self._line_free_at_s, time.monotonic() - visit.duration_s) + took_s

    async def _find(self, origin: str) -> str:
        name = self._fetcher.known_server(origin) or await self._fetcher.find_server(origin) or origin
        self._names[origin] = name
        return name

    def _get(self, name: str) -> _Server:
        server = self._servers.get(name)
        if server is None:
            self._let_go()
            server = self._servers[name] = _Server()
        return server

    def _let_go(self) -> None:
        if len(self._servers) < MOST_SERVERS:
            return
        now_s = time.monotonic()
        self._servers = {
            name: server
            for name, server in self._servers.items()
            if server.lock.locked() or server.free_at_s > now_s
        }
        self._names = {origin: name for origin, name in self._names.items() if name in self._servers}
