"""The crawl: from seeds to an empty frontier, politely, safe against a crash at any moment.

`steps` is the way of one candidate; here is what goes on around it: as many candidates at once as there are
places, each host's next one as soon as its pause is over, orders and other processes heard, limits kept, and
a checkpoint each second: containers and log made durable, then the frontier committed with their sizes.
Everything after the last checkpoint is undone by a crash, and done again.
"""

import asyncio
import math
import re
import time
from collections import deque
from collections.abc import Callable, Mapping

from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.control import Order, Orders, Verb, standing
from webdepot.harvest.host_book import most_of
from webdepot.harvest.kept import Keeper, Kept
from webdepot.harvest.peers import Peers
from webdepot.harvest.politeness.robots import RobotsPolicy
from webdepot.harvest.politeness.servers import SharedServers
from webdepot.harvest.report.log import CrawlLog
from webdepot.harvest.report.result import (
    CrawlProgress,
    CrawlResult,
    CrawlSettings,
    End,
    HostSettings,
    SeedOutcome,
    Trouble,
    reason_of,
    trouble_of,
)
from webdepot.harvest.scope.membership import OUTSIDE
from webdepot.harvest.steps import Steps
from webdepot.model import Candidate
from webdepot.ports import Fetcher, Frontier
from webdepot.times import Clock
from webdepot.url import Url

__all__ = [
    "CrawlProgress",
    "CrawlResult",
    "CrawlSettings",
    "End",
    "HostSettings",
    "Keeper",
    "Kept",
    "RobotsPolicy",
    "SeedOutcome",
    "Trouble",
    "run",
]

MOST_UNCOMMITTED = 50_000
"""New addresses after which a checkpoint comes early: they are in memory until then."""
MOST_TOGETHER = 16
"""Answers that are settled at once; servers that wait for their next request should not wait for more."""
RATE_WINDOW_S = 5.0
PEERS_S, PEERS_IDLE_S = 0.05, 0.01
"""So often a crawl looks what other processes have found for it, while it has other things to do and while it
has not.
"""


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
    orders: Orders | None = None,
    changed: Callable[[Mapping[str, object]], CrawlSettings] | None = None,
    shared: SharedServers | None = None,
    peers: Peers | None = None,
    browser: Browser | None = None,
) -> CrawlResult:
    """Crawl until nothing waits, a limit is reached, or it is told to stop. A frontier that was used before
    is gone on with.

    `orders` are obeyed as they come (`control`); `changed` makes settings of all changes ordered so far;
    `shared` has the turns of other harvests on this machine, `peers` the other processes of this one,
    `browser` opens the pages that are to be opened in one. Raises what keeper, log and frontier raise
    (NoSpace): then the last checkpoint stands. The caller closes all of them.
    """
    return await _Crawl(
        settings,
        frontier,
        fetcher,
        keeper,
        log,
        clock,
        progress,
        stop,
        orders,
        changed,
        shared,
        peers,
        browser,
    ).run()


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
        orders: Orders | None,
        changed: Callable[[Mapping[str, object]], CrawlSettings] | None,
        shared: SharedServers | None,
        peers: Peers | None,
        browser: Browser | None,
    ) -> None:
        self.steps = Steps(
            settings,
            frontier=frontier,
            fetcher=fetcher,
            keeper=keeper,
            log=log,
            clock=clock,
            shared=shared,
            peers=peers,
            browser=browser,
        )
        self.frontier = frontier
        self.peers = peers
        self.log = log
        self.orders = orders
        self.changed = changed
        self.given: list[Order] = []
        self.obeyed = int(frontier.recall("orders") or b"0")
        self.paused = False
        self.told_to_end: End | None = None
        self.progress = progress
        self.stop = stop
        self.loop = asyncio.get_running_loop()
        self.active: set[asyncio.Task[None]] = set()
        self.wake = asyncio.Event()
        self.asleep_until_s = 0.0
        self.error: BaseException | None = None
        self.is_settling = False
        self.recent: deque[tuple[float, int]] = deque()
        self.began_s = time.monotonic()

    # --- the loop ---

    async def run(self) -> CrawlResult:
        self.frontier.add(Candidate(url=seed) for seed in self.steps.settings.seeds if self._is_mine(seed))
        self._obey_orders()
        self._look_for_room()
        stopping = self.loop.create_task(self.stop.wait())
        stopping.add_done_callback(lambda _: self.wake.set())
        try:
            end = await self._turn_until_the_end()
        finally:
            stopping.cancel()
            await self._cancel_active()
            if self.error is not None:
                self.steps.discard()
        if self.error is not None:
            raise self.error
        self.steps.settle()
        self._checkpoint()
        self._tell()
        return self._result(end)

    async def _turn_until_the_end(self) -> End:
        checkpoint_s = self.began_s + self.steps.settings.checkpoint_s
        progress_s = peers_s = self.began_s
        while self.error is None:
            self._settle_all()
            if self.error is not None:
                break
            now_s = time.monotonic()
            end = self._end(now_s)
            if end is not None:
                return end
            self._fill(now_s)
            self.steps.turns.let_go()
            due_s = self.frontier.next_due_s()
            if (
                not self.active
                and (due_s is None or due_s == math.inf)
                and not self.paused
                and self._is_over()
            ):
                return End.FINISHED
            if now_s >= checkpoint_s or self.steps.intake.uncommitted > MOST_UNCOMMITTED:
                self._checkpoint()
                checkpoint_s = time.monotonic() + self.steps.settings.checkpoint_s
            if now_s >= progress_s:
                self._obey_orders()
                self._tell()
                progress_s = now_s + self.steps.settings.progress_s
            until_s = min(checkpoint_s, progress_s)
            if self.peers is not None and now_s >= peers_s:
                self.steps.hear_peers()
                peers_s = now_s + (PEERS_S if self.active else PEERS_IDLE_S)
            if self.peers is not None:
                until_s = min(until_s, peers_s)
            if due_s is not None and len(self.active) < self._places():
                until_s = min(until_s, due_s)
            await self._wait(until_s)
        return End.STOPPED

    # --- other processes ---

    def _is_mine(self, url: str) -> bool:
        return self.peers is None or self.peers.is_mine(url)

    def _is_over(self) -> bool:
        """Nothing waits here; with other processes it is over when that is so everywhere."""
        if self.peers is None:
            return True
        self.steps.hear_peers()
        due_s = self.frontier.next_due_s()
        if due_s is not None and due_s != math.inf:
            return False
        self._checkpoint()
        self.peers.say_idle()
        return self.peers.is_over()

    async def _wait(self, until_s: float) -> None:
        """Until something has happened that `_ended` does not see to itself, at most until then."""
        self.asleep_until_s = until_s
        timer = self.loop.call_later(max(until_s - time.monotonic(), 0.0), self.wake.set)
        await self.wake.wait()
        self.wake.clear()
        timer.cancel()

    def _places(self) -> int:
        """Requests that may be out now: no more than would reach the limit of pages."""
        if self.paused:
            return 0
        limit, workers = self.steps.settings.limit_pages, self.steps.settings.workers
        return min(workers, limit - self.steps.totals.fetched - len(self.steps.arrived)) if limit else workers

    def _end(self, now_s: float) -> End | None:
        settings, totals = self.steps.settings, self.steps.totals
        if self.stop.is_set():
            return End.STOPPED
        if self.told_to_end is not None:
            return self.told_to_end
        if settings.limit_pages and totals.fetched >= settings.limit_pages:
            return End.LIMIT_PAGES
        if settings.limit_bytes and totals.bytes >= settings.limit_bytes:
            return End.LIMIT_BYTES
        if settings.limit_time_s and totals.elapsed_s + now_s - self.began_s >= settings.limit_time_s:
            return End.LIMIT_TIME
        return None

    def _fill(self, now_s: float) -> None:
        """Start what may be asked now."""
        while len(self.active) < self._places() and (candidate := self.frontier.take(now_s)) is not None:
            task = self.loop.create_task(self.steps.visit(candidate))
            self.active.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Others may have ended with it: they are settled together."""
        self.active.discard(task)
        if task.cancelled() or task.exception() is not None:
            self.error = self.error or (None if task.cancelled() else task.exception())
            self.wake.set()
        elif not self.is_settling:
            self.is_settling = True
            self.loop.call_soon(self._settle)

    def _settle(self) -> None:
        """The next ones go out at once; the loop is woken only for what it alone sees to."""
        self.is_settling = False
        self._settle_all(MOST_TOGETHER)
        if self.error is not None:
            self.wake.set()
            return
        if self.steps.arrived:
            self.is_settling = True
            self.loop.call_soon(self._settle)
        now_s = time.monotonic()
        if self._end(now_s) is None and self.steps.intake.uncommitted <= MOST_UNCOMMITTED:
            self._fill(now_s)
            due_s = self.frontier.next_due_s()
            if (self.active or self.is_settling) and (
                due_s is None or due_s >= self.asleep_until_s or len(self.active) >= self._places()
            ):
                return
        self.wake.set()

    def _settle_all(self, most: int | None = None) -> None:
        if self.error is None:
            try:
                self.steps.settle(most)
            except Exception as error:  # told by `run`, when nothing is out any more
                self.error = error

    async def _cancel_active(self) -> None:
        """What is out is given up; the frontier has it waiting again when it is opened next."""
        for task in list(self.active):
            task.cancel()
        await asyncio.gather(*self.active, return_exceptions=True)

    # --- what it is told ---

    def _obey_orders(self) -> None:
        new = self.orders.poll() if self.orders is not None else ()
        if not new:
            return
        self.given += new
        stands = standing(self.given)
        self.paused = self.steps.is_paused = stands.paused
        if self.changed is not None and any(order.changes for order in new):
            self.steps.follow(self.changed(stands.changes))
        for order in new:
            if order.number > self.obeyed:
                self._obey(order)
                self.obeyed, self.steps.is_dirty = order.number, True

    def _obey(self, order: Order) -> None:
        match order.verb:
            case Verb.STOP:
                self.told_to_end = End.STOPPED
            case Verb.ABORT:
                self.told_to_end = End.ABORTED
            case Verb.ADD:
                self.steps.intake.add(Candidate(url=Url(url)) for url in order.urls if self._is_mine(url))
            case Verb.REMOVE:
                patterns = [re.compile(pattern) for pattern in order.urls]
                self.frontier.remove(lambda url: any(pattern.search(url) for pattern in patterns))

    # --- words and numbers ---

    def _checkpoint(self) -> None:
        if not self.steps.is_dirty and not self.steps.intake.uncommitted:
            return
        self.frontier.remember("orders", str(self.obeyed).encode())
        marks = self.steps.save(self._elapsed_s())
        self.frontier.commit(marks)
        self.steps.intake.uncommitted, self.steps.is_dirty = 0, False
        self._look_for_room()

    def _look_for_room(self) -> None:
        if (
            self.steps.settings.least_free_bytes
            and self.log.free_bytes() < self.steps.settings.least_free_bytes
        ):
            self.told_to_end = End.NO_ROOM

    def _elapsed_s(self) -> float:
        return self.steps.totals.elapsed_s + time.monotonic() - self.began_s

    def _tell(self) -> None:
        now_s, counts, hosts = time.monotonic(), self.frontier.counts(), self.steps.hosts.active()
        self.recent.append((now_s, self.steps.totals.fetched))
        while now_s - self.recent[0][0] > RATE_WINDOW_S:
            self.recent.popleft()
        since_s, before = self.recent[0]
        self.progress(
            CrawlProgress(
                fetched=self.steps.totals.fetched,
                waiting=counts.waiting,
                in_flight=counts.in_flight,
                size_bytes=self.steps.totals.bytes,
                rate=(self.steps.totals.fetched - before) / (now_s - since_s) if now_s > since_s else 0.0,
                errors=self.steps.totals.errors,
                robots_refused=self.steps.totals.robots_refused,
                host=self.steps.host,
                elapsed_s=self._elapsed_s(),
                seen=counts.seen,
                done=counts.done,
                paused=self.paused,
                refusals=self.steps.judge.refusals,
                hosts=hosts,
                waiting_at={host: self._waiting_at(host) for host in most_of(hosts)},
            )
        )

    def _waiting_at(self, host: str) -> int:
        return self.frontier.waiting_at(f"http://{host}") + self.frontier.waiting_at(f"https://{host}")

    def _result(self, end: End) -> CrawlResult:
        counts = self.frontier.counts()
        waiting = counts.waiting + counts.in_flight
        totals, shut_out = self.steps.totals, tuple(self.steps.seeds.shut_out)
        return CrawlResult(
            end=end,
            reason=reason_of(end, self.steps.settings, waiting=waiting, shut_out=shut_out),
            counts={
                "fetched": totals.fetched,
                "bytes": totals.bytes,
                "errors": totals.errors,
                "robots_refused": totals.robots_refused,
                "duplicates": totals.duplicates,
                "outside": self.steps.judge.refusals[OUTSIDE],
                "rejected": self.steps.judge.refusals.total() - self.steps.judge.refusals[OUTSIDE],
                "waiting": waiting,
                "seen": counts.seen,
                **{
                    name: number
                    for name in ("opened", "unopened", "screenshots")
                    if (number := getattr(totals, name))
                },
            },
            seeds=self.steps.seeds.outcomes,
            shut_out=shut_out,
            trouble=trouble_of(self.steps.seeds.outcomes, good_pages=totals.good)
            if end is End.FINISHED
            else None,
            elapsed_s=self._elapsed_s(),
            good_pages=totals.good,
        )
