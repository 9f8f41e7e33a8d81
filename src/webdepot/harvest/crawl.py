"""The crawl: from seeds to an empty frontier, politely, safe against a crash at any moment.

`candidate_processor` is the path of one candidate. This module is the loop around it: it runs as many
candidates at once as there are workers, each host's next one as soon as its pause is over; it obeys orders,
listens to other processes, applies limits, and makes a checkpoint each second: containers and log are made
durable, then the frontier is committed with their sizes. A crash undoes everything after the last checkpoint,
and the next run does it again.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Mapping

from webdepot.harvest.candidate_processor import CandidateProcessor
from webdepot.harvest.crawl_state import CrawlParts, CrawlState
from webdepot.harvest.host_book import most_of
from webdepot.harvest.judge import NOFOLLOW
from webdepot.harvest.order_file import Order, OrderSource, OrderVerb, summarize
from webdepot.harvest.report.reports import LEFT_OUT
from webdepot.harvest.report.result import (
    CrawlProgress,
    CrawlResult,
    CrawlSettings,
    End,
    LeftOut,
    reason_of,
    trouble_of,
)
from webdepot.harvest.scope.membership import OUTSIDE
from webdepot.model import Candidate
from webdepot.ports.harvest import Ledger
from webdepot.text.patterns import LinearPattern
from webdepot.url import Url

MOST_UNCOMMITTED = 50_000
"""After this many new addresses a checkpoint is made early, because they are in memory until then."""
MOST_TOGETHER = 16
"""Most answers that are settled in one go, so that the next requests to other servers are not delayed."""
RATE_WINDOW_S = 5.0
PEERS_S, PEERS_IDLE_S = 0.05, 0.01
"""How often a crawl reads what other processes found for it, while requests are out and while none is."""


async def run(
    settings: CrawlSettings,
    parts: CrawlParts,
    *,
    progress: Callable[[CrawlProgress], None],
    stop: asyncio.Event,
    orders: OrderSource | None = None,
    settings_after: Callable[[Mapping[str, object]], CrawlSettings] | None = None,
) -> CrawlResult:
    """Crawl until the queue is empty, a limit is reached, or `stop` is set. A frontier that was used before
    is continued.

    `orders` are obeyed as they come (`order_file`); `settings_after` returns the settings after all changes
    ordered so far. Raises what keeper, log and frontier raise (NoSpace): the harvest is then as at the last
    checkpoint.
    """
    return await _Crawl(settings, parts, progress, stop, orders, settings_after).run()


class _Crawl:
    def __init__(
        self,
        settings: CrawlSettings,
        parts: CrawlParts,
        progress: Callable[[CrawlProgress], None],
        stop: asyncio.Event,
        orders: OrderSource | None,
        settings_after: Callable[[Mapping[str, object]], CrawlSettings] | None,
    ) -> None:
        self.state = CrawlState(settings, parts)
        self.processor = CandidateProcessor(self.state, parts.browser)
        self.frontier = parts.frontier
        self.ledger: Ledger = parts.ledger or parts.frontier
        self.peers = parts.peers
        self.orders = orders
        self.settings_after = settings_after
        self.all_orders: list[Order] = []
        self.obeyed = int(parts.frontier.recall("orders") or b"0")
        """Number of the last order that was obeyed."""
        self.ordered_end: End | None = None
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
        self.frontier.add(Candidate(url=seed) for seed in self.state.settings.seeds if self._is_mine(seed))
        self._obey_orders()
        self._check_free_space()
        stopping = self.loop.create_task(self.stop.wait())
        stopping.add_done_callback(lambda _: self.wake.set())
        try:
            end = await self._loop_until_end()
        finally:
            stopping.cancel()
            await self._cancel_active()
            self.state.close()
            if self.error is not None:
                self.processor.discard()
        if self.error is not None:
            raise self.error
        self.processor.settle()
        self._checkpoint()
        self._report_progress()
        return self._result(end)

    async def _loop_until_end(self) -> End:
        checkpoint_s = self.began_s + self.state.settings.checkpoint_s
        progress_s = peers_s = self.began_s
        while self.error is None:
            self._settle_all()
            if self.error is not None:
                break
            now_s = time.monotonic()
            end = self._find_end(now_s)
            if end is not None:
                return end
            self._fill(now_s)
            self.state.turns.let_go()
            due_s = self.frontier.next_due_s()
            if not self.active and _is_never(due_s) and not self.state.is_paused and self._is_over():
                return self._own_end()
            if now_s >= checkpoint_s or self.state.intake.uncommitted > MOST_UNCOMMITTED:
                self._checkpoint()
                checkpoint_s = self._next_checkpoint_s(now_s)
            if now_s >= progress_s:
                self._obey_orders()
                self._report_progress()
                progress_s = now_s + self.state.settings.progress_s
            until_s = min(checkpoint_s, progress_s)
            if self.peers is not None and now_s >= peers_s:
                self.state.hear_peers()
                peers_s = now_s + (PEERS_S if self.active else PEERS_IDLE_S)
            if self.peers is not None:
                until_s = min(until_s, peers_s)
            if due_s is not None and len(self.active) < self._places():
                until_s = min(until_s, due_s)
            await self._wait(until_s)
        return End.STOPPED

    async def _wait(self, until_s: float) -> None:
        """Wait for an event that `_on_visit_done` does not handle itself, at most until `until_s`."""
        self.asleep_until_s = until_s
        timer = self.loop.call_later(max(until_s - time.monotonic(), 0.0), self.wake.set)
        await self.wake.wait()
        self.wake.clear()
        timer.cancel()

    def _places(self) -> int:
        """How many requests may be pending now: no more than would reach the limit of documents."""
        if self.state.is_paused:
            return 0
        limit, workers = self.state.settings.limit_documents, self.state.settings.workers
        return min(workers, limit - self.state.totals.fetched - len(self.state.arrived)) if limit else workers

    def _find_end(self, now_s: float) -> End | None:
        settings, totals = self.state.settings, self.state.totals
        if self.stop.is_set():
            return End.STOPPED
        if self.ordered_end is not None:
            return self.ordered_end
        if settings.limit_documents and totals.fetched >= settings.limit_documents:
            return End.LIMIT_DOCUMENTS
        if settings.limit_bytes and totals.bytes >= settings.limit_bytes:
            return End.LIMIT_BYTES
        if settings.limit_time_s and totals.elapsed_s + now_s - self.began_s >= settings.limit_time_s:
            return End.LIMIT_TIME
        return None

    def _own_end(self) -> End:
        """How the crawl ends when no more requests may be sent: at the limit of pages, or finished."""
        is_cut = self.state.has_enough_pages and self.frontier.counts().waiting > 0
        return End.LIMIT_PAGES if is_cut else End.FINISHED

    def _fill(self, now_s: float) -> None:
        """Start the candidates that may be fetched now."""
        while len(self.active) < self._places() and (candidate := self.frontier.take(now_s)) is not None:
            task = self.loop.create_task(self.processor.visit(self.state.intake.as_named(candidate)))
            self.active.add(task)
            task.add_done_callback(self._on_visit_done)

    def _on_visit_done(self, task: asyncio.Task[None]) -> None:
        """Schedule settling, together with other visits that end in the same iteration of the event loop."""
        self.active.discard(task)
        if task.cancelled() or task.exception() is not None:
            self.error = self.error or (None if task.cancelled() else task.exception())
            self.wake.set()
        elif not self.is_settling:
            self.is_settling = True
            self.loop.call_soon(self._settle)

    def _settle(self) -> None:
        """Settle answers and start the next candidates; wake the main loop only if it has something to do."""
        self.is_settling = False
        self._settle_all(MOST_TOGETHER)
        if self.error is not None:
            self.wake.set()
            return
        if self.state.arrived:
            self.is_settling = True
            self.loop.call_soon(self._settle)
        now_s = time.monotonic()
        if self._find_end(now_s) is None and self.state.intake.uncommitted <= MOST_UNCOMMITTED:
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
                self.processor.settle(most)
            except Exception as error:  # raised by `run`, when no request is left
                self.error = error

    async def _cancel_active(self) -> None:
        """Cancel pending requests; the frontier queues them again when it is next opened."""
        for task in list(self.active):
            task.cancel()
        await asyncio.gather(*self.active, return_exceptions=True)

    # --- other processes ---

    def _is_mine(self, url: str) -> bool:
        return self.peers is None or self.peers.is_mine(url)

    def _is_over(self) -> bool:
        """Whether the crawl is over when nothing waits here: with other processes, when nothing waits in any
        of them.
        """
        if self.peers is None:
            return True
        self.state.hear_peers()
        if not _is_never(self.frontier.next_due_s()):
            return False
        self._checkpoint()
        self.peers.report_idle()
        return self.peers.is_over()

    # --- orders ---

    def _obey_orders(self) -> None:
        new = self.orders.poll() if self.orders is not None else ()
        if not new:
            return
        self.all_orders += new
        summary = summarize(self.all_orders)
        self.state.is_paused = summary.paused
        if self.settings_after is not None and any(order.changes for order in new):
            self.state.follow(self.settings_after(summary.changes))
        for order in new:
            if order.number > self.obeyed:
                self._obey(order)
                self.obeyed, self.state.is_dirty = order.number, True

    def _obey(self, order: Order) -> None:
        match order.verb:
            case OrderVerb.STOP:
                self.ordered_end = End.STOPPED
            case OrderVerb.ABORT:
                self.ordered_end = End.ABORTED
            case OrderVerb.ADD:
                self.state.intake.add(Candidate(url=Url(url)) for url in order.urls if self._is_mine(url))
            case OrderVerb.REMOVE:
                patterns = [LinearPattern(pattern) for pattern in order.urls]
                self.frontier.remove(lambda url: any(pattern.search(url) for pattern in patterns))

    # --- checkpoints and numbers ---

    def _checkpoint(self) -> None:
        if not self.state.is_dirty and not self.state.intake.uncommitted:
            return
        self.frontier.remember("orders", str(self.obeyed).encode())
        marks = self.state.save(self._elapsed_s())
        self.ledger.commit(marks)
        self.state.intake.uncommitted, self.state.is_dirty = 0, False
        self._check_free_space()

    def _next_checkpoint_s(self, began_s: float) -> float:
        """When the next checkpoint is due, after one that began then and has just ended: so early that it is
        complete in time if it takes as long, because only complete ones count; but not without a pause.
        """
        now_s, interval_s = time.monotonic(), self.state.settings.checkpoint_s
        return max(began_s + interval_s - (now_s - began_s), now_s + interval_s / 2)

    def _check_free_space(self) -> None:
        least_bytes = self.state.settings.least_free_bytes
        if least_bytes and self.state.log.free_bytes() < least_bytes:
            self.ordered_end = End.NO_ROOM

    def _elapsed_s(self) -> float:
        return self.state.totals.elapsed_s + time.monotonic() - self.began_s

    def _report_progress(self) -> None:
        state, counts, now_s = self.state, self.frontier.counts(), time.monotonic()
        hosts = state.hosts.active()
        self.recent.append((now_s, state.totals.fetched))
        while now_s - self.recent[0][0] > RATE_WINDOW_S:
            self.recent.popleft()
        since_s, before = self.recent[0]
        self.progress(
            CrawlProgress(
                fetched=state.totals.fetched,
                pages=state.totals.pages,
                waiting=counts.waiting,
                in_flight=counts.in_flight,
                size_bytes=state.totals.bytes,
                rate=(state.totals.fetched - before) / (now_s - since_s) if now_s > since_s else 0.0,
                errors=state.totals.errors,
                failed_parts=state.totals.failed_parts,
                robots_refused=state.totals.robots_refused,
                host=state.latest_host,
                asked=state.latest_asked,
                opened=next(iter(state.open_pages), ""),
                wait_s=self._wait_s(now_s),
                elapsed_s=self._elapsed_s(),
                seen=counts.seen,
                done=counts.done,
                paused=state.is_paused,
                refusals=state.judge.refusals,
                hosts=hosts,
                waiting_at={host: self._waiting_at(host) for host in most_of(hosts)},
                waits=state.waits(),
            )
        )

    def _wait_s(self, now_s: float) -> float:
        """Seconds until the next event, if nothing can be done now."""
        due_s = None if self.active or self.state.is_paused else self.frontier.next_due_s()
        return 0.0 if due_s is None or _is_never(due_s) else max(due_s - now_s, 0.0)

    def _waiting_at(self, host: str) -> int:
        return self.frontier.waiting_at(f"http://{host}") + self.frontier.waiting_at(f"https://{host}")

    def _result(self, end: End) -> CrawlResult:
        state, counts = self.state, self.frontier.counts()
        waiting = counts.waiting + counts.in_flight
        totals, shut_out = state.totals, tuple(state.seeds.shut_out)
        outside = state.judge.refusals[OUTSIDE]
        counts_if_any = {
            "opened": totals.opened,
            "unopened": totals.unopened,
            "screenshots": totals.screenshots,
            "program_errors": totals.program_errors,
        }
        return CrawlResult(
            end=end,
            reason=reason_of(
                end, state.settings, waiting=waiting, shut_out=shut_out, left_out=_left_out(state)
            ),
            counts={
                "fetched": totals.fetched,
                "pages": totals.pages,
                "empty_pages": totals.empty_pages,
                "noindex_pages": totals.noindex_pages,
                "bytes": totals.bytes,
                "errors": totals.errors,
                "failed_parts": totals.failed_parts,
                "robots_refused": totals.robots_refused,
                "nofollow": state.judge.refusals[NOFOLLOW],
                "duplicates": totals.duplicates,
                "outside": outside,
                "rejected": state.judge.refusals.total() - outside,
                "waiting": waiting,
                "seen": counts.seen,
                **{name: count for name, count in counts_if_any.items() if count},
                **{f"{LEFT_OUT}{kind}": count for kind, count in state.judge.left_out().items()},
            },
            seeds=state.seeds.outcomes,
            shut_out=shut_out,
            trouble=trouble_of(state.seeds.outcomes, good_pages=totals.good) if end is End.FINISHED else None,
            elapsed_s=self._elapsed_s(),
            good_pages=totals.good,
        )


def _left_out(state: CrawlState) -> LeftOut:
    return LeftOut(
        nofollow=state.judge.refusals[NOFOLLOW],
        robots=state.totals.robots_refused,
        empty_pages=state.totals.empty_pages,
        unopened=state.totals.unopened,
        noindex_pages=state.totals.noindex_pages,
    )


def _is_never(due_s: float | None) -> bool:
    """Whether no host is due in this run."""
    return due_s is None or due_s == math.inf
