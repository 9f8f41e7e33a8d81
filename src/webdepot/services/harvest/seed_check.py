"""Check of seeds before a site is nominated: each is requested once, politely, and the response is shown.

robots.txt of its host is asked first, then the address, then for an http address the same with https. Private
addresses are refused as in a harvest. Nothing is kept, and everything has to be done within `LONGEST_S`.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, replace
from enum import StrEnum

from webdepot import event_loop
from webdepot.access.replay import title
from webdepot.archive import Archive, ScratchPurpose
from webdepot.container.http import content_decoded, parse_head, transfer_decoded
from webdepot.harvest.fetch.curl_transfer import FetchLimits
from webdepot.harvest.fetch.host_addresses import Router
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.politeness.pauses import Manners
from webdepot.harvest.politeness.robots import RobotsRules, product_token
from webdepot.harvest.politeness.robots_cache import RobotsCache
from webdepot.harvest.politeness.server_turns import ServerTurns
from webdepot.harvest.politeness.servers import SharedServers
from webdepot.model import Candidate, Failure, Verdict, Visit
from webdepot.url import Url, find_canonical, host_of, origin_of

MOST_SEEDS = 10
LONGEST_S = 25.0
_LIMITS = FetchLimits(timeout_s=8.0, connect_timeout_s=4.0, body_bytes=1 << 20)
_HTML = ("text/html", "application/xhtml+xml")


class SeedProblem(StrEnum):
    """Why a seed is probably wrong."""

    NO_ANSWER = "no_answer"
    ERROR = "error"
    ROBOTS = "robots"
    MOVED = "moved"
    """It redirects to another host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedCheck:
    url: Url
    status: int = 0
    """0 if there was no response, or it was not requested."""
    failure: str = ""
    """Why there was no response (`Failure`)."""
    detail: str = ""
    redirect: str = ""
    """Where it redirects to."""
    title: str = ""
    robots: Verdict | None = None
    """Whether robots.txt allows it; None if robots.txt could not be asked for."""
    https: str = ""
    """The same address with https, if that answers."""

    @property
    def problem(self) -> SeedProblem | None:
        if self.robots is not None and not self.robots and not self.failure:
            return SeedProblem.ROBOTS
        if self.failure or not self.status:
            return SeedProblem.NO_ANSWER
        if self.status >= 400:
            return SeedProblem.ERROR
        is_away = self.redirect and _bare(self.redirect) != _bare(self.url)
        return SeedProblem.MOVED if is_away else None


def check(archive: Archive, seeds: Sequence[Url]) -> list[SeedCheck]:
    """Request each of the first `MOST_SEEDS` seeds."""
    return event_loop.run(_check_all(archive, seeds[:MOST_SEEDS]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asker:
    turns: ServerTurns
    robots: RobotsCache
    locks: defaultdict[str, asyncio.Lock]
    """By origin whose robots.txt is requested."""


async def _check_all(archive: Archive, seeds: Sequence[Url]) -> list[SeedCheck]:
    async with _open_asker(archive) as asker:
        tasks = [asyncio.create_task(_check(asker, seed)) for seed in seeds]
        await asyncio.wait(tasks, timeout=LONGEST_S)
        late = [task for task in tasks if not task.done()]
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
    return [
        SeedCheck(url=seed, failure=Failure.TIMEOUT.value) if task in late else task.result()
        for seed, task in zip(seeds, tasks, strict=True)
    ]


@asynccontextmanager
async def _open_asker(archive: Archive) -> AsyncIterator[_Asker]:
    """The means with which a harvest sends requests, opened without a harvest."""
    config = archive.config.harvest
    router = Router(
        allow_private=config.allow_private,
        private_networks=config.private_networks,
        connect_to=config.connect_to,
        timeout_s=_LIMITS.connect_timeout_s,
    )
    with (
        archive.scratch_folder(ScratchPurpose.TEST) as folder,
        closing(LmdbFrontier(folder / "frontier")) as notes,
        closing(SharedServers(archive.harvests_folder / "servers")) as shared,
    ):
        fetcher = CurlFetcher(
            user_agent=archive.user_agent,
            limits=_LIMITS,
            router=router,
            clock=archive.clock,
            spool_folder=folder,
        )
        turns = ServerTurns(fetcher, Manners(delay_s=config.delay_s), shared=shared)
        try:
            yield _Asker(
                turns=turns,
                robots=RobotsCache(turns, notes, archive.clock, product_token(archive.user_agent)),
                locks=defaultdict(asyncio.Lock),
            )
        finally:
            await fetcher.close()


async def _check(asker: _Asker, seed: Url) -> SeedCheck:
    rules = await _robots_of(asker, seed)
    if rules.failure is not None:
        return SeedCheck(url=seed, failure=rules.failure.value, detail=rules.detail)
    verdict = rules.decide(seed)
    if not verdict:
        return SeedCheck(url=seed, robots=verdict)
    checked = replace(await _ask(asker, seed), robots=verdict)
    secure = Url(f"https{seed.removeprefix('http')}")
    if not seed.startswith("http:") or ":" in host_of(seed):
        return checked
    other = await _ask(asker, secure)
    is_good = not other.failure and other.status < 400
    return replace(checked, https=secure if is_good else "", title=checked.title or other.title)


async def _robots_of(asker: _Asker, seed: Url) -> RobotsRules:
    """The robots.txt of the host of a seed, requested once for each host."""
    origin = origin_of(seed)
    async with asker.locks[origin]:
        known = asker.robots.find(origin)
        if known is not None:
            return known
        answer = await asker.robots.ask(Candidate(url=seed))
        try:
            return asker.robots.settle(origin, answer)
        finally:
            for visit in answer.visits:
                visit.body.close()


async def _ask(asker: _Asker, url: Url) -> SeedCheck:
    visit = await asker.turns.ask(Candidate(url=url), crawl_delay_s=None)
    with visit.body:
        if visit.failure is not None:
            return SeedCheck(url=url, failure=visit.failure.value, detail=visit.failure_detail)
        head = parse_head(visit.head)
        location = head.get("location") if 300 <= visit.status < 400 else None
        redirect = find_canonical(location, base=url) if location else None
        return SeedCheck(url=url, status=visit.status, redirect=redirect or "", title=_title(visit))


def _title(visit: Visit) -> str:
    head = parse_head(visit.head)
    kind = head.get("content-type") or ""
    if not 200 <= visit.status < 300 or not kind.lower().startswith(_HTML):
        return ""
    visit.body.seek(0)
    content = content_decoded(transfer_decoded(visit.body, head), head, limit_bytes=title.READ_BYTES)
    return title.of_html(content, kind)


def _bare(url: str) -> str:
    return host_of(url).removeprefix("www.")
