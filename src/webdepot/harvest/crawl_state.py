"""What the collaborators of a crawl share.

`CrawlParts` are opened and closed by the caller. `CrawlState` is built from them: the rules in force, what is
known about hosts, seeds and robots.txt, the counts, and the answers that wait to be settled. `crawl`,
`candidate_processor`, `prerequisites` and `browser/page_opener` all work on one `CrawlState` and have no
references to each other.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import partial

from webdepot.container.http import HttpHead
from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.host_book import HostBook
from webdepot.harvest.judge import CrawlJudge
from webdepot.harvest.link_intake import LinkIntake
from webdepot.harvest.links import extract
from webdepot.harvest.links.extract import Extracted
from webdepot.harvest.peer_processes import Peers
from webdepot.harvest.pending_answer import Keeper, PendingAnswer
from webdepot.harvest.politeness import robots
from webdepot.harvest.politeness.robots_cache import RobotsCache
from webdepot.harvest.politeness.server_turns import ServerTurns
from webdepot.harvest.report.last_pictures import LastPictures
from webdepot.harvest.report.log import CrawlLog, of_refusal
from webdepot.harvest.report.result import CrawlSettings, HostWait
from webdepot.harvest.scope.hop_path import find_page, is_part, is_unreferenced
from webdepot.harvest.scope.missing_pages import MissingPages
from webdepot.harvest.seed_book import SeedBook
from webdepot.model import Candidate, Failure, Visit
from webdepot.ports.harvest import Fetcher, Frontier, Ledger, Servers
from webdepot.times import Clock
from webdepot.url import Url, host_of

MOST_WAITS = 1_000
_LEAST_REST_S = 3.0
"""Shorter pauses between two requests are not reported."""
_LONGEST_WAIT_S = 86_400.0
MOST_READERS = 2
"""Most answers whose links are read by other processes at the same time: each may use a processor core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlParts:
    """What a crawl works with. The caller opens and closes all of it."""

    frontier: Frontier
    fetcher: Fetcher
    keeper: Keeper
    log: CrawlLog
    clock: Clock
    shared: Servers | None = None
    """Shares turns at servers with other harvests."""
    peers: Peers | None = None
    """The other processes of this harvest."""
    ledger: Ledger | None = None
    """Makes checkpoints valid; without it, the frontier does."""
    browser: Browser | None = None
    """Opens the pages that must be opened in a browser."""
    pictures: LastPictures | None = None
    """Keeps the last screenshots for people who watch."""


@dataclass(slots=True)
class Totals:
    """Counts over all runs of a harvest; remembered in the frontier."""

    fetched: int = 0
    """Answers kept, without robots.txt."""
    pages: int = 0
    """Of those, HTML pages that are not part of another page."""
    empty_pages: int = 0
    """Of those, pages that are empty until scripts fill them and that no browser opened."""
    noindex_pages: int = 0
    """Of the pages, those that ask search engines not to list them."""
    good: int = 0
    """Pages with 2xx and a body."""
    bytes: int = 0
    errors: int = 0
    """Pages and parts that could not be fetched."""
    failed_parts: int = 0
    """Of those, the parts."""
    robots_refused: int = 0
    duplicates: int = 0
    elapsed_s: float = 0.0
    opened: int = 0
    """Pages opened in the browser."""
    unopened: int = 0
    """Pages of which the browser showed nothing, or not everything."""
    screenshots: int = 0
    program_errors: int = 0
    """Errors of this program on the content of pages (`program_errors`)."""

    def count_failure(self, candidate: Candidate) -> None:
        """Count an address that could not be fetched, unless no page names it (`is_unreferenced`)."""
        if not is_unreferenced(candidate):
            self.errors += 1
            self.failed_parts += is_part(candidate.path)


class CrawlState:
    """The state of one crawl, for one event loop. Everything is public: the collaborators read and change
    it.
    """

    def __init__(self, settings: CrawlSettings, parts: CrawlParts) -> None:
        self.settings, self._links_later = settings, replace(settings.links, markup=False)
        frontier = self.frontier = parts.frontier
        self.keeper = parts.keeper
        self.log = parts.log
        self.clock = parts.clock
        self.peers = parts.peers
        self.totals = Totals(**json.loads(frontier.recall("totals") or b"{}"))
        self.seeds = SeedBook(settings.seeds, frontier.recall("seeds"))
        self.hosts = HostBook(frontier)
        self.judge = CrawlJudge(
            settings,
            self.hosts,
            lambda: (self.totals.fetched, self.totals.bytes),
            frontier.recall("judge"),
            frontier,
        )
        self.intake = LinkIntake(
            settings,
            frontier=frontier,
            judge=self.judge,
            seeds=self.seeds,
            log=parts.log,
            clock=parts.clock,
            peers=parts.peers,
        )
        self.turns = ServerTurns(
            parts.fetcher, settings.manners, shared=parts.shared, bytes_per_s=settings.bytes_per_s
        )
        self.robots = RobotsCache(
            self.turns, frontier, parts.clock, robots.product_token(settings.user_agent)
        )
        self.missing = MissingPages(self.turns, frontier)
        self._readers = ThreadPoolExecutor(MOST_READERS, thread_name_prefix="links")
        self.arrived: list[PendingAnswer] = []
        """Answers and failures that wait to be settled."""
        self.pages_out = 0
        """Pending requests that are not for parts."""
        self.latest_asked = ""
        """The address that was requested last."""
        self.open_pages: set[Url] = set()
        """Pages that are open in the browser."""
        self.latest_host = ""
        """The host of the newest answer."""
        self.pictures = parts.pictures
        self._waits: dict[str, HostWait] = {}
        """Hosts that are left alone because of their last answer."""
        self.is_paused = False
        """Whether no server may be asked now."""
        self.is_dirty = True
        """Something has changed since the last checkpoint; `crawl` resets it."""

    def close(self) -> None:
        self._readers.shutdown(wait=False, cancel_futures=True)

    def follow(self, settings: CrawlSettings) -> None:
        """Use these settings from now on."""
        self.settings, self._links_later = settings, replace(settings.links, markup=False)
        self.turns.manners, self.turns.bytes_per_s = settings.manners, settings.bytes_per_s
        self.intake.follow(settings)

    def hear_peers(self) -> None:
        """Queue the links to our hosts that other processes found."""
        if self.intake.hear_peers():
            self.is_dirty = True

    def save(self, elapsed_s: float) -> Mapping[str, int]:
        """Store everything in the frontier and make containers and log durable; return the marks to
        commit.
        """
        remember = self.frontier.remember
        remember("totals", json.dumps(asdict(self.totals) | {"elapsed_s": elapsed_s}).encode())
        self.hosts.save()
        remember("judge", self.judge.to_json())
        if self.seeds.changed:
            remember("seeds", self.seeds.to_json())
        if self.peers is not None:
            self.peers.sync()
        return {**self.keeper.checkpoint(), **self.log.sync()}

    def refuse(self, candidate: Candidate, failure: Failure, reason: str, *, rule: str = "robots") -> None:
        """Count and log a candidate that is not fetched: by robots.txt, a rule or a limit."""
        self.is_dirty = True
        self.seeds.note_refusal(candidate, failure, reason)
        self.totals.robots_refused += failure is Failure.ROBOTS
        if failure not in (Failure.ROBOTS, Failure.LIMIT, Failure.SCOPE):
            self.totals.count_failure(candidate)
        self.judge.refusals[rule] += 1
        self.hosts.to_change(host_of(candidate.url)).refused += 1
        self.log.write(of_refusal(candidate, failure, rule=rule, reason=reason, at=self.clock()))

    def note_wait(self, visit: Visit, wait_s: float) -> None:
        """Record for display that a host is tried again after this time."""
        host = host_of(visit.candidate.url)
        if len(self._waits) >= MOST_WAITS and host not in self._waits:
            return
        failure = visit.failure.value if visit.failure is not None else ""
        next_at = self.clock() + timedelta(seconds=min(wait_s, _LONGEST_WAIT_S))
        self._waits[host] = HostWait(host=host, status=visit.status, failure=failure, next_at=next_at)

    def end_wait(self, host: str) -> None:
        """Record for display that a host has answered."""
        if self._waits:
            self._waits.pop(host, None)

    def waits(self, most: int = 5) -> list[HostWait]:
        """Hosts that are tried again later, the next one first."""
        now, now_s = self.clock(), time.monotonic()
        self._waits = {host: wait for host, wait in self._waits.items() if wait.next_at > now}
        resting = {
            host_of(origin): until_s - now_s
            for origin, until_s in self.turns.resting.items()
            if until_s - now_s >= _LEAST_REST_S
        }
        rests = [
            HostWait(host=host, status=0, failure="", next_at=now + timedelta(seconds=rest_s))
            for host, rest_s in resting.items()
            if host not in self._waits
        ]
        return sorted([*self._waits.values(), *rests], key=lambda wait: wait.next_at)[:most]

    @property
    def has_enough_pages(self) -> bool:
        """Whether the limit of pages is reached: then only parts are requested."""
        return bool(self.settings.limit_pages) and self.totals.pages >= self.settings.limit_pages

    def may_ask_for_page(self) -> bool:
        """Whether one more page would stay within the limit, even if all pending requests turn out to be
        pages.
        """
        if not self.settings.limit_pages:
            return True
        arrived = sum(not is_part(answer.visit.candidate.path) for answer in self.arrived)
        return self.totals.pages + arrived + self.pages_out < self.settings.limit_pages

    def find_host_limit(self, candidate: Candidate) -> str:
        """The limit that the host of a candidate has reached ("100 pages"); empty if none."""
        host = host_of(candidate.url)
        settings = self.settings.of_host(host)
        if not settings.limit_pages and not settings.limit_documents and not settings.limit_bytes:
            return ""
        counts = self.hosts.of(host)
        if settings.limit_documents and counts.fetched >= settings.limit_documents:
            return f"{settings.limit_documents} documents"
        if settings.limit_bytes and counts.bytes >= settings.limit_bytes:
            return f"{settings.limit_bytes} bytes"
        is_full = settings.limit_pages and counts.pages >= settings.limit_pages
        return f"{settings.limit_pages} pages" if is_full and not is_part(candidate.path) else ""

    def extract(self, visit: Visit, head: HttpHead) -> Extracted:
        """The links of an answer, and the software that it shows signs of."""
        is_early = self.judge.software.wants_markup(visit.candidate)
        limits = self.settings.links if is_early else self._links_later
        page = find_page(visit.candidate)
        return extract.extract(visit.candidate.url, head, visit.body, limits, page=page)

    async def find_links_early(self, visit: Visit, head: HttpHead) -> Extracted | None:
        """The links of an answer, if they are needed before it is settled: because a rule must first look up
        their hosts (`CrawlSettings.look_up`), or because another process reads them, and the other requests
        must not wait for it.
        """
        if visit.failure is not None:
            return None
        may_wait = extract.may_wait(visit.candidate.url, head)
        if self.settings.look_up is None and not may_wait:
            return None
        read = partial(self.extract, visit, head)
        extracted = await self._in_thread(read) if may_wait else read()
        if self.settings.look_up is not None:
            await self.settings.look_up({host_of(url) for url, _ in extracted.links})
        return extracted

    async def _in_thread(self, read: Callable[[], Extracted]) -> Extracted:
        """The result of `read` in a separate thread. Waits for the thread even if the crawl cancels it,
        because it reads from a file that is closed afterwards.
        """
        reading = asyncio.get_running_loop().run_in_executor(self._readers, read)
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            await asyncio.wait([reading])
            raise
