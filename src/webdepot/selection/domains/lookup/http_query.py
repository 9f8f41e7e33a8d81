"""One HTTP query to a registry, through the archive's own `Fetcher`, rate-limited by server; redirects are
followed here.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from webdepot.container.http import HttpHead, content_decoded, parse_head, transfer_decoded
from webdepot.model import Candidate
from webdepot.ports.harvest import Fetcher
from webdepot.selection.domains.lookup.pace import Pace
from webdepot.times import Clock
from webdepot.url import find_canonical, host_of

LIMIT_BYTES = 4 << 20
LONGEST_WAIT_S = 30.0
MOST_REDIRECTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """The response to a query."""

    url: str
    status: int
    """0 if there was no response."""
    head: HttpHead
    data: bytes
    detail: str = ""


class Asker:
    """Queries registries. Respects 429 and Retry-After: waits for a short time, gives up on a long one."""

    def __init__(self, fetcher: Fetcher, pace: Pace, clock: Clock, *, onward: Fetcher) -> None:
        """`fetcher` is for the registries that the operator named, `onward` for the servers they redirect
        to.
        """
        self._fetcher = fetcher
        self._onward = onward
        self._pace = pace
        self._clock = clock

    async def get(self, url: str) -> HttpReply:
        reply = await self._followed(url)
        if reply.status not in (429, 503):
            return reply
        wait_s = retry_after_s(reply.head.get("retry-after"), self._clock())
        self._pace.hold(host_of(reply.url), wait_s)
        if wait_s > LONGEST_WAIT_S:
            return reply
        await asyncio.sleep(wait_s)
        return await self._followed(url)

    async def _followed(self, url: str) -> HttpReply:
        reply = await self._once(url, self._fetcher)
        for _ in range(MOST_REDIRECTS):
            target = (
                find_canonical(reply.head.get("location") or "", reply.url)
                if 300 <= reply.status < 400
                else None
            )
            if target is None:
                break
            reply = await self._once(target, self._onward)
        return reply

    async def _once(self, url: str, fetcher: Fetcher) -> HttpReply:
        canonical = find_canonical(url)
        if canonical is None:
            return HttpReply(url=url, status=0, head=parse_head(b""), data=b"", detail="not a web address")
        async with self._pace.turn(host_of(canonical)):
            visit = await fetcher.fetch(Candidate(url=canonical))
        with visit.body:
            head = parse_head(visit.head)
            body = content_decoded(transfer_decoded(visit.body, head), head, limit_bytes=LIMIT_BYTES)
            data = body.read(LIMIT_BYTES) if visit.failure is None else b""
        return HttpReply(
            url=canonical, status=visit.status, head=head, data=data, detail=visit.failure_detail
        )


def retry_after_s(value: str | None, now: datetime) -> float:
    """Seconds to wait according to Retry-After, a number or a date (RFC 9110, 10.2.3); five without one."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), 86_400.0)
    try:
        return min(max((parsedate_to_datetime(text) - now).total_seconds(), 0.0), 86_400.0)
    except (TypeError, ValueError):
        return 5.0
