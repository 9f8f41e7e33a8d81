"""Rate limit for look-ups: one query at a time for each server, with a pause between two, and longer if the
server asks for it.

There is no pause for a server on this computer (a closed test network, a local mirror).
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address

MOST_SERVERS = 10_000


def is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Pace:
    """Rate limits by the name of the server."""

    def __init__(self, pause_s: float) -> None:
        self._pause_s = pause_s
        self._locks: dict[str, asyncio.Lock] = {}
        self._free_at_s: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, server: str, *, pause_s: float | None = None) -> AsyncIterator[None]:
        """Wait until the server may be queried; query it inside the block."""
        if len(self._locks) > MOST_SERVERS:
            self._forget()
        lock = self._locks.setdefault(server, asyncio.Lock())
        async with lock:
            await asyncio.sleep(max(self._free_at_s.get(server, 0.0) - time.monotonic(), 0.0))
            try:
                yield
            finally:
                pause = (
                    0.0
                    if is_this_machine(server.rpartition(":")[0] or server)
                    else self._pause_s
                    if pause_s is None
                    else pause_s
                )
                self._free_at_s[server] = max(self._free_at_s.get(server, 0.0), time.monotonic() + pause)

    def hold(self, server: str, seconds: float) -> None:
        """Do not query the server for this long, because it asked for a pause."""
        self._free_at_s[server] = max(self._free_at_s.get(server, 0.0), time.monotonic() + seconds)

    def _forget(self) -> None:
        now_s = time.monotonic()
        for server in [
            name
            for name, lock in self._locks.items()
            if not lock.locked() and self._free_at_s.get(name, 0.0) < now_s
        ]:
            del self._locks[server]
            self._free_at_s.pop(server, None)
