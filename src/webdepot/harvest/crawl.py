"""The crawl: from seeds to an empty frontier, politely, safe against a crash at any moment.

Order of steps for each candidate the frontier hands out:

1. robots.txt of its host is known, or asked now (kept and logged like a page); the candidate goes back until the pause is over.
2. robots.txt forbids it: logged, done.
3. It is fetched. A passing failure (no connection, time-out, 429, 5xx) sends it back with a growing distance, at most so many times.
4. The answer is kept (`keeper.keep`), then read for links; each link passes the scope rules and goes to the frontier.
5. What was found is noted (`keeper.annotate`), the line is logged, the host rests.

Steps 4 and 5 have no `await` in them, so a checkpoint (containers and log made durable, then the frontier committed with their
sizes) always sees them done or not begun. Everything after the last checkpoint is undone by a crash, and done again.
"""

import asyncio
import json
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from webdepot.container.http import HttpHead, content_decoded, parse_head, transfer_decoded
from webdepot.harvest import links, politeness, robots, scope
from webdepot.harvest.frontier import origin_of
from webdepot.harvest.log import CrawlLog, of_refusal, of_visit
from webdepot.harvest.result import (
    CrawlProgress,
    CrawlResult,
    CrawlSettings,
    End,
    RobotsPolicy,
    SeedOutcome,
    Trouble,
    reason_of,
    trouble_of,
)
from webdepot.harvest.robots import Basis, Robots
from webdepot.model import Answer, Candidate, Failure, Hop, Verdict, Visit
from webdepot.ports import Fetcher, Frontier
from webdepot.times import Clock
from webdepot.url import Url, find_canonical, host_of

__all__ = ["CrawlProgress", "CrawlResult", "CrawlSettings", "End", "Keeper", "Kept", "RobotsPolicy", "SeedOutcome", "Trouble", "run"]

MOST_UNCOMMITTED = 50_000
"""New addresses after which a checkpoint comes early: they are in memory until then."""
MOST_ROBOTS = 2_000
"""Hosts whose robots.txt is kept in memory; the others are read back from the frontier."""
RATE_WINDOW_S = 5.0

_PASSING = frozenset({Failure.DNS, Failure.CONNECT, Failure.TIMEOUT, Failure.DISCONNECT})
_OF_HOST = frozenset({Failure.DNS, Failure.CONNECT, Failure.TIMEOUT})
"""Failures that speak for the whole host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the keeper says of a visit it has stored."""

    digest: str
    """Labelled payload digest."""
    size_bytes: int
    duplicate: bool


class Keeper(Protocol):
    """Stores visits; the service has it on a container writer. NoSpace ends the crawl."""

    def keep(self, visit: Visit) -> Kept: ...

    def annotate(self, visit: Visit, outlinks: Sequence[Candidate]) -> None: ...

    def checkpoint(self) -> Mapping[str, int]:
        """Make everything kept durable; file name -> acknowledged size."""


async def run(
    settings: CrawlSettings,
    *,
    frontier: Frontier,
    fetcher: Fetcher,
    keeper: Keeper,
    log: CrawlLog,
    clock: Clock,
    progress: Callable[[CrawlProgress], None],
    stop: asyncio.Event,
) -> CrawlResult:
    """Crawl until nothing waits, a limit is reached or `stop` is set. A frontier that was used before is gone on with.

    Raises what keeper, log and frontier raise (NoSpace): then the last checkpoint stands. The caller closes all of them.
    """
    return await _Crawl(settings, frontier, fetcher, keeper, log, clock, progress, stop).run()


@dataclass(slots=True)
class _Totals:
    """Counted over all runs of a harvest; kept with the frontier."""

    fetched: int = 0
    good: int = 0
    """Pages with 2xx and a body."""
    bytes: int = 0
    errors: int = 0
    robots_refused: int = 0
    duplicates: int = 0
    elapsed_s: float = 0.0


class _Crawl:
    def __init__(
        self,
        settings: CrawlSettings,
        frontier: Frontier,
        fetcher: Fetcher,
        keeper: Keeper,
        log: CrawlLog,
        clock: Clock,
        progress: Callable[[CrawlProgress], None],
        stop: asyncio.Event,
    ) -> None:
        self.settings = settings
        self.frontier = frontier
        self.fetcher = fetcher
        self.keeper = keeper
        self.log = log
        self.clock = clock
        self.progress = progress
        self.stop = stop
        self.loop = asyncio.get_running_loop()
        self.agent = robots.product_token(settings.user_agent)
        self.totals = _Totals()
        self.seeds: dict[Url, SeedOutcome] = {}
        self.seeds_changed = True
        self.moved: dict[Url, Url] = {}
        """Where seeds moved to within their domain -> the seed."""
        self.shut_out: list[str] = []
        self.known_robots: dict[str, Robots] = {}
        self.turns: dict[str, asyncio.Lock] = {}
        self.free_at_s: dict[str, float] = {}
        self.active: set[asyncio.Task[None]] = set()
        self.wake = asyncio.Event()
        self.error: BaseException | None = None
        self.uncommitted = 0
        self.is_dirty = True
        self.host = ""
        self.recent: deque[tuple[float, int]] = deque()

    # --- the loop --------------------------------------------------------------------------------------------------------

    async def run(self) -> CrawlResult:
        self._restore()
        self._build_rules()
        self.began_s = self.loop.time()
        self.frontier.add(Candidate(url=seed) for seed in self.settings.seeds)
        stopping = self.loop.create_task(self.stop.wait())
        stopping.add_done_callback(lambda _: self.wake.set())
        try:
            end = await self._turn_until_the_end()
        finally:
            stopping.cancel()
            await self._cancel_active()
        if self.error is not None:
            raise self.error
        self._checkpoint()
        self._tell()
        return self._result(end)

    async def _turn_until_the_end(self) -> End | None:
        checkpoint_s = self.began_s + self.settings.checkpoint_s
        progress_s = self.began_s
        while True:
            now_s = self.loop.time()
            if self.error is not None:
                return None
            end = self._end(now_s)
            if end is not None:
                return end
            while len(self.active) < self._places():
                candidate = self.frontier.take(now_s)
                if candidate is None:
                    break
                self._start(candidate)
            due_s = self.frontier.next_due_s()
            if not self.active and (due_s is None or due_s == math.inf):
                return End.FINISHED
            if now_s >= checkpoint_s or self.uncommitted > MOST_UNCOMMITTED:
                self._checkpoint()
                checkpoint_s = self.loop.time() + self.settings.checkpoint_s
            if now_s >= progress_s:
                self._tell()
                progress_s = now_s + self.settings.progress_s
            until_s = min(checkpoint_s, progress_s)
            if due_s is not None and len(self.active) < self._places():
                until_s = min(until_s, due_s)
            await self._wait(until_s)

    async def _wait(self, until_s: float) -> None:
        """Until something has happened, at most until then."""
        timer = self.loop.call_at(until_s, self.wake.set)
        await self.wake.wait()
        self.wake.clear()
        timer.cancel()

    def _places(self) -> int:
        """Requests that may be out now: no more than would reach the limit of pages."""
        limit = self.settings.limit_pages
        return min(self.settings.workers, limit - self.totals.fetched) if limit else self.settings.workers

    def _end(self, now_s: float) -> End | None:
        settings, totals = self.settings, self.totals
        if self.stop.is_set():
            return End.STOPPED
        if settings.limit_pages and totals.fetched >= settings.limit_pages:
            return End.LIMIT_PAGES
        if settings.limit_bytes and totals.bytes >= settings.limit_bytes:
            return End.LIMIT_BYTES
        if settings.limit_time_s and totals.elapsed_s + now_s - self.began_s >= settings.limit_time_s:
            return End.LIMIT_TIME
        return None

    def _start(self, candidate: Candidate) -> None:
        task = self.loop.create_task(self._visit(candidate))
        self.active.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.active.discard(task)
        self.wake.set()
        if not task.cancelled() and task.exception() is not None and self.error is None:
            self.error = task.exception()

    async def _cancel_active(self) -> None:
        """What is out is given up; the frontier has it waiting again when it is opened next."""
        for task in list(self.active):
            task.cancel()
        await asyncio.gather(*self.active, return_exceptions=True)

    # --- one candidate ---------------------------------------------------------------------------------------------------

    async def _visit(self, candidate: Candidate) -> None:
        origin = origin_of(candidate.url)
        known = self._robots_of(origin)
        if known is None:
            await self._ask_robots(candidate, origin)
            return
        if candidate.url == f"{origin}/robots.txt":
            self.frontier.finish(candidate, host_free_at_s=self.free_at_s.get(origin, 0.0))
            return
        if self.settings.robots is RobotsPolicy.OBEY:
            verdict = known.decide(candidate.url)
            if verdict.answer is Answer.REJECT:
                self._refuse(candidate, known, verdict.reason)
                self.frontier.finish(candidate, host_free_at_s=self.free_at_s.get(origin, 0.0))
                return
        visit, free_at_s = await self._fetch(candidate, origin)
        with visit.body:
            if not self._tried_again(candidate, visit, origin, free_at_s):
                self._settle(candidate, visit, free_at_s)

    async def _fetch(self, candidate: Candidate, origin: str) -> tuple[Visit, float]:
        """Ask once, in turn: robots.txt of one host may redirect to another that is being asked. And when it is free again."""
        turn = self.turns.get(origin)
        if turn is None:
            turn = self.turns[origin] = asyncio.Lock()
        async with turn:
            rest_s = self.free_at_s.get(origin, 0.0) - self.loop.time()
            if rest_s > 0:
                await asyncio.sleep(rest_s)
            visit = await self.fetcher.fetch(candidate)
            known = self.known_robots.get(origin)
            delay_s = known.crawl_delay_s if known is not None and self.settings.robots is RobotsPolicy.OBEY else None
            free_at_s = self.loop.time() + politeness.pause_after(visit.duration_s, self.settings.manners, crawl_delay_s=delay_s)
            self.free_at_s[origin] = free_at_s
        return visit, free_at_s

    def _tried_again(self, candidate: Candidate, visit: Visit, origin: str, free_at_s: float) -> bool:
        """Send a passing failure back to the frontier; False when this was the last try, or no such failure."""
        manners = self.settings.manners
        is_passing = visit.failure in _PASSING and not visit.permanent if visit.failure else visit.status in politeness.TRANSIENT
        if not is_passing or candidate.tries + 1 >= manners.tries:
            return False
        distance_s = politeness.after_failure(candidate.tries + 1, manners)
        of_host = visit.failure in _OF_HOST
        if visit.status in politeness.BUSY:
            asked_s = politeness.retry_after(parse_head(visit.head).get("retry-after"), self.clock(), manners)
            distance_s, of_host = (distance_s if asked_s is None else asked_s), True
        not_before_s = max(free_at_s, self.loop.time() + distance_s)
        if of_host:
            free_at_s = self.free_at_s[origin] = not_before_s
        self.frontier.retry(candidate, host_free_at_s=free_at_s, not_before_s=not_before_s)
        self.is_dirty = True
        return True

    def _settle(self, candidate: Candidate, visit: Visit, free_at_s: float) -> None:
        """The candidate's life ends here: kept and read, or logged as failed."""
        self.is_dirty = True
        self.host = host_of(candidate.url)
        if visit.failure is not None:
            self.log.write(of_visit(visit))
            self._note_seed(candidate, visit)
            self.totals.errors += 1
            # A host that let all tries of one address fail is left alone; its others wait for the next run.
            is_dead = visit.failure in _OF_HOST and not visit.permanent
            self.frontier.finish(candidate, host_free_at_s=math.inf if is_dead else free_at_s)
            return
        head = parse_head(visit.head)
        kept = self.keeper.keep(visit)
        found = links.extract(candidate.url, head, visit.body, self.settings.links)
        outlinks = self._take_in(visit, found.links)
        self.keeper.annotate(visit, outlinks)
        self._count(visit, kept)
        self.log.write(of_visit(visit, mime=_mime(head), digest=kept.digest, duplicate=kept.duplicate, note=found.note))
        self._note_seed(candidate, visit)
        self.frontier.finish(candidate, host_free_at_s=free_at_s)

    def _count(self, visit: Visit, kept: Kept) -> None:
        totals = self.totals
        totals.fetched += 1
        totals.bytes += len(visit.head) + visit.body_bytes
        totals.duplicates += kept.duplicate
        totals.errors += visit.status >= 400
        totals.good += 200 <= visit.status < 300 and visit.body_bytes > 0

    # --- links -----------------------------------------------------------------------------------------------------------

    def _build_rules(self) -> None:
        settings = self.settings
        seeds = [*settings.seeds, *self.moved]
        kind = scope.Kind(settings.scope)
        self.belongs = scope.belongs(kind, seeds)
        self.rules = scope.chain(kind, seeds, limits=settings.scope_limits, rejects=settings.rejects)

    def _take_in(self, visit: Visit, found: Sequence[tuple[Url, Hop]]) -> list[Candidate]:
        """Put what belongs into the frontier; all that was found is returned."""
        outlinks = [self._candidate(visit.candidate, url, hop) for url, hop in found]
        accepted = []
        for outlink in outlinks:
            verdict = scope.decide(outlink, self.rules)
            if not verdict and outlink.path[-1] == Hop.REDIRECT and scope.is_seed_way(outlink.path):
                verdict = self._follow_seed(visit.candidate, outlink) or verdict
            if verdict:
                accepted.append(outlink)
            elif outlink.path[-1] == Hop.EMBED and self.frontier.refuse(outlink):
                self.log.write(of_refusal(outlink, Failure.SCOPE, rule=verdict.rule, reason=verdict.reason, at=self.clock()))
        self.uncommitted += self.frontier.add(accepted)
        return outlinks

    def _candidate(self, source: Candidate, url: Url, hop: Hop) -> Candidate:
        outlink = Candidate(url=url, via=source.url, path=source.path + hop)
        if not self.settings.scope_limits.hops_outside or self.belongs(outlink):
            return outlink
        return replace(outlink, outside=source.outside + (hop is Hop.LINK or source.outside == 0))

    def _follow_seed(self, source: Candidate, target: Candidate) -> Verdict | None:
        """A seed that moved within its registrable domain takes the scope with it; one that left it is only noted."""
        seed = self._seed_of(source)
        if seed is None:
            return None
        if scope.may_move(seed, target.url):
            self.moved[target.url] = seed
            self.seeds_changed = True
            self._build_rules()
            return scope.decide(target, self.rules)
        self._set_seed(replace(self.seeds[seed], moved_to=target.url))
        return None

    def _seed_of(self, candidate: Candidate) -> Url | None:
        """The seed from which redirects alone led to this one."""
        if not scope.is_seed_way(candidate.path):
            return None
        if candidate.url in self.seeds:
            return candidate.url
        return self.moved.get(candidate.url) or (self._way_back(candidate) if candidate.via else None)

    def _way_back(self, candidate: Candidate) -> Url | None:
        via = candidate.via
        if via is None:
            return None
        seed = via if via in self.seeds else self.moved.get(via)
        if seed is not None:
            self.moved[candidate.url] = seed
            self.seeds_changed = True
        return seed

    def _note_seed(self, candidate: Candidate, visit: Visit) -> None:
        seed = self._seed_of(candidate)
        if seed is not None:
            self._set_seed(
                replace(
                    self.seeds[seed],
                    status=visit.status,
                    size_bytes=visit.body_bytes,
                    failure=visit.failure,
                    detail=visit.failure_detail,
                )
            )

    def _set_seed(self, outcome: SeedOutcome) -> None:
        self.seeds[outcome.seed] = outcome
        self.seeds_changed = True

    # --- robots.txt ------------------------------------------------------------------------------------------------------

    def _robots_of(self, origin: str) -> Robots | None:
        """What is known of a host's robots.txt, unless it is too old to go by."""
        known = self.known_robots.get(origin)
        if known is None:
            stored = self.frontier.recall(f"robots:{origin}")
            if stored is None:
                return None
            known = robots.from_json(stored)
            self._keep_in_memory(origin, known)
        return known if known.is_fresh(self.clock()) else None

    def _keep_in_memory(self, origin: str, known: Robots) -> None:
        if len(self.known_robots) >= MOST_ROBOTS:
            self.known_robots.clear()
            self._forget_turns()
        self.known_robots[origin] = known

    def _forget_turns(self) -> None:
        now_s = self.loop.time()
        self.turns = {origin: turn for origin, turn in self.turns.items() if turn.locked()}
        self.free_at_s = {origin: free_at_s for origin, free_at_s in self.free_at_s.items() if free_at_s > now_s}

    async def _ask_robots(self, candidate: Candidate, origin: str) -> None:
        """Fetch robots.txt with its redirects, keep what came, and put the candidate back until the host is free again."""
        visits: list[Visit] = []
        try:
            free_at_s, known = await self._follow_robots(candidate, origin, visits)
            if known is None:
                if self.settings.robots is RobotsPolicy.OBEY and self._tried_again(candidate, visits[-1], origin, free_at_s):
                    return
                known = self._read_robots(visits[-1])
            self._settle_robots(candidate, origin, visits, known)
            self.frontier.retry(candidate, host_free_at_s=free_at_s, counted=False)
        finally:
            for visit in visits:
                visit.body.close()

    async def _follow_robots(self, candidate: Candidate, origin: str, visits: list[Visit]) -> tuple[float, Robots | None]:
        """When the host is free again, and the rules, if a redirect led to another host's robots.txt that is known."""
        url, path, via = Url(f"{origin}/robots.txt"), candidate.path + Hop.PREREQUISITE, candidate.url
        free_at_s = 0.0
        while True:
            asked = origin_of(url)
            visit, asked_free_at_s = await self._fetch(Candidate(url=url, via=via, path=path), asked)
            visits.append(visit)
            free_at_s = asked_free_at_s if asked == origin else free_at_s
            target = _redirect_target(visit)
            if target is None or len(visits) > robots.MOST_REDIRECTS or any(target == earlier.candidate.url for earlier in visits):
                return free_at_s, None
            other = origin_of(target)
            known = self._robots_of(other) if target == f"{other}/robots.txt" else None
            if known is not None:
                return free_at_s, known
            url, path, via = target, path + Hop.REDIRECT, url

    def _read_robots(self, visit: Visit) -> Robots:
        if visit.failure is not None:
            return robots.of_failure(visit.failure, visit.failure_detail, at=self.clock(), agent=self.agent)
        body = _decoded(visit, robots.LONGEST_BYTES)
        return robots.of_answer(status=visit.status, body=body, at=self.clock(), agent=self.agent)

    def _settle_robots(self, candidate: Candidate, origin: str, visits: Sequence[Visit], known: Robots) -> None:
        self.is_dirty = True
        for visit in visits:
            if visit.failure is not None:
                self.log.write(of_visit(visit))
                continue
            kept = self.keeper.keep(visit)
            self.keeper.annotate(visit, ())
            self.log.write(of_visit(visit, mime=_mime(parse_head(visit.head)), digest=kept.digest, duplicate=kept.duplicate))
        # http://a.example/robots.txt mostly redirects to https://a.example/robots.txt: one answer for both.
        last = visits[-1].candidate.url
        for owner in {origin, origin_of(last) if last == f"{origin_of(last)}/robots.txt" else origin}:
            self._keep_in_memory(owner, known)
            # A host that did not answer is asked again by the next run.
            if known.basis is not Basis.UNREACHABLE:
                self.frontier.remember(f"robots:{owner}", known.to_json())
        if known.shuts_out(origin) and self.settings.robots is RobotsPolicy.OBEY:
            self.shut_out.append(host_of(origin))
            self.seeds_changed = True
        self._add_sitemaps(candidate, origin, known)

    def _add_sitemaps(self, candidate: Candidate, origin: str, known: Robots) -> None:
        """Sitemap lines of hosts that belong to the harvest."""
        home = Candidate(url=Url(f"{origin}/robots.txt"), via=candidate.via, path=candidate.path)
        if not self.belongs(home):
            return
        urls = (find_canonical(line, base=home.url) for line in known.sitemaps[: self.settings.links.links])
        found = [self._candidate(home, url, Hop.MANIFEST) for url in urls if url is not None]
        self.uncommitted += self.frontier.add(outlink for outlink in found if scope.decide(outlink, self.rules))

    def _refuse(self, candidate: Candidate, known: Robots, reason: str) -> None:
        self.is_dirty = True
        failure = known.failure or Failure.ROBOTS
        seed = self._seed_of(candidate)
        if seed is not None:
            self._set_seed(replace(self.seeds[seed], failure=failure, detail=reason))
        self.totals.robots_refused += failure is Failure.ROBOTS
        self.totals.errors += failure is not Failure.ROBOTS
        self.log.write(of_refusal(candidate, failure, rule="robots", reason=reason, at=self.clock()))

    # --- words and numbers -----------------------------------------------------------------------------------------------

    def _checkpoint(self) -> None:
        if not self.is_dirty and not self.uncommitted:
            return
        now_s = self.loop.time()
        totals = asdict(self.totals) | {"elapsed_s": self.totals.elapsed_s + now_s - self.began_s}
        self.frontier.remember("totals", json.dumps(totals).encode())
        if self.seeds_changed:
            outcomes = [asdict(outcome) for outcome in self.seeds.values()]
            state = {"seeds": outcomes, "moved": self.moved, "shut_out": self.shut_out}
            self.frontier.remember("seeds", json.dumps(state).encode())
            self.seeds_changed = False
        marks = {**self.keeper.checkpoint(), **self.log.sync()}
        self.frontier.commit(marks)
        self.uncommitted, self.is_dirty = 0, False

    def _restore(self) -> None:
        """Go on with the numbers and seeds of an earlier run."""
        self.totals = _Totals(**json.loads(self.frontier.recall("totals") or b"{}"))
        stored = json.loads(self.frontier.recall("seeds") or b"{}")
        self.moved = stored.get("moved", {})
        self.shut_out = stored.get("shut_out", [])
        for values in stored.get("seeds", []):
            failure = Failure(values["failure"]) if values["failure"] else None
            self.seeds[values["seed"]] = SeedOutcome(**values | {"failure": failure})
        for seed in self.settings.seeds:
            self.seeds.setdefault(seed, SeedOutcome(seed=seed))

    def _tell(self) -> None:
        now_s, counts = self.loop.time(), self.frontier.counts()
        self.recent.append((now_s, self.totals.fetched))
        while now_s - self.recent[0][0] > RATE_WINDOW_S:
            self.recent.popleft()
        since_s, before = self.recent[0]
        self.progress(
            CrawlProgress(
                fetched=self.totals.fetched,
                waiting=counts.waiting,
                in_flight=counts.in_flight,
                size_bytes=self.totals.bytes,
                rate=(self.totals.fetched - before) / (now_s - since_s) if now_s > since_s else 0.0,
                errors=self.totals.errors,
                robots_refused=self.totals.robots_refused,
                host=self.host,
                elapsed_s=self.totals.elapsed_s + now_s - self.began_s,
            )
        )

    def _result(self, end: End | None) -> CrawlResult:
        if end is None:
            raise AssertionError("a crawl without error has an end")
        counts = self.frontier.counts()
        waiting = counts.waiting + counts.in_flight
        totals = self.totals
        seeds = tuple(self.seeds.values())
        return CrawlResult(
            end=end,
            reason=reason_of(end, self.settings, waiting=waiting, shut_out=self.shut_out),
            counts={
                "fetched": totals.fetched,
                "bytes": totals.bytes,
                "errors": totals.errors,
                "robots_refused": totals.robots_refused,
                "duplicates": totals.duplicates,
                "waiting": waiting,
                "seen": counts.seen,
            },
            seeds=seeds,
            shut_out=tuple(self.shut_out),
            trouble=trouble_of(seeds, good_pages=totals.good) if end is End.FINISHED else None,
            elapsed_s=totals.elapsed_s + self.loop.time() - self.began_s,
        )


def _redirect_target(visit: Visit) -> Url | None:
    if not 300 <= visit.status < 400:
        return None
    location = parse_head(visit.head).get("location")
    return find_canonical(location, base=visit.candidate.url) if location else None


def _decoded(visit: Visit, limit_bytes: int) -> bytes:
    if visit.failure is not None:
        return b""
    head = parse_head(visit.head)
    visit.body.seek(0)
    return content_decoded(transfer_decoded(visit.body, head), head, limit_bytes=limit_bytes).read()


def _mime(head: HttpHead) -> str:
    return (head.get("content-type") or "").partition(";")[0].strip().lower() or "no-type"
