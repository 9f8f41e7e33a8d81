"""Pages of a crawl opened in a browser. The browser asks, our own fetcher fetches: one place for rules,
manners, guards and records.

1. A page has been fetched as ever. When it is HTML that is to be opened (`fetch` of the harvest or of its
   host), the tab gets those bytes.
2. What the tab asks for goes the way of any part of a page: scope, robots.txt of its host, limits, its
   server's turn, the fetcher with its check of addresses. The answer is kept like any other, and its bytes go
   to the tab.
3. Whatever is against it, or fails, fails in the tab and is left to the crawl: it is queued as a part of the
   page, and judged, tried again, counted and logged there. Only what a crawl could never ask (POST,
   WebSocket, streams without end) is refused and logged here.
4. Links are those of the HTML as it came and of the HTML as the browser shows it, in all frames.

What was fetched for a tab is noted with the frontier (`part:ADDRESS`), so that the crawl does not ask again,
and held in memory for a while, so that the style sheet of a thousand pages is asked for once.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from webdepot.container.http import HttpHead, content_decoded, parse_head, transfer_decoded
from webdepot.harvest.browser import empty_pages
from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.browser.tab import PageOptions, PageSnapshot, TabReply, TabRequest
from webdepot.harvest.fetch.encoding import decode
from webdepot.harvest.fetch.mode import Fetching, Screenshots
from webdepot.harvest.frontier import origin_of
from webdepot.harvest.kept import Arrived, Attached
from webdepot.harvest.links import extract
from webdepot.harvest.links.extract import Extracted
from webdepot.harvest.links.reference import HOP_RANK
from webdepot.harvest.politeness import pauses
from webdepot.harvest.politeness.robots import RobotsPolicy
from webdepot.harvest.report.log import of_refusal
from webdepot.harvest.scope.hop_path import embed_depth, is_seed_path
from webdepot.model import Candidate, Failure, Hop, Verdict, Visit
from webdepot.url import Url, find_canonical, host_of

if TYPE_CHECKING:
    from webdepot.harvest.steps import Steps

LARGEST_BODY_BYTES = 32 << 20
"""A larger one is kept, but the tab does not get it."""
MOST_HELD_BYTES = 128 << 20
LARGEST_HELD_BYTES = 8 << 20
MOST_ASKED, MOST_DATA = 300, 100
"""Addresses that one page may ask for, and how many of them for data: some pages never stop asking."""
DATA_KINDS = frozenset({"XHR", "Fetch", "Ping", "Other"})
PATIENCE_S = 5.0
"""So long a page that is done waits for what is being asked for it."""
PAUSED_S = 0.25
RULE = "browser"
FAILED = "browserFailed:"
"""Annotation in the log; behind it stands why."""
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_METHODS = frozenset({"GET", "HEAD"})
_PASSED_ON = frozenset(
    {"accept", "accept-language", "authorization", "origin", "purpose", "x-requested-with"}
)
_LEFT_OUT = frozenset(
    {
        "content-encoding",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "trailer",
        "upgrade",
        "alt-svc",
    }
)
"""Headers about how the bytes came, which the tab gets without it; `Alt-Svc` would send it elsewhere."""


@dataclass(slots=True)
class _Page:
    """A page that is open."""

    visit: Visit
    reply: TabReply
    ways: dict[str, Candidate]
    """Address -> how it was reached, for what redirects from there."""
    asked: dict[Url, None] = field(default_factory=dict)
    """What it asked for, as far as it may."""
    data: int = 0
    getting: "set[asyncio.Task[TabReply | None]]" = field(default_factory=set)
    error: Exception | None = None

    def may_ask(self, url: Url, kind: str) -> bool:
        """Within its bounds; and what browsers ask for unasked, no page has asked for."""
        if url in self.asked:
            return True
        self.data += kind in DATA_KINDS
        if (
            len(self.asked) >= MOST_ASKED
            or self.data > MOST_DATA
            or (kind == "Other" and url.endswith("/favicon.ico"))
        ):
            return False
        self.asked[url] = None
        return True

    async def end(self, patience_s: float) -> None:
        """What is being asked for comes to its end, or, with no patience left, is left to the crawl."""
        if self.getting and patience_s:
            await asyncio.wait(self.getting, timeout=patience_s)
        waiting = list(self.getting)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What the browser adds to a page."""

    found: Extracted
    attached: tuple[Attached, ...]
    note: str


class PageOpener:
    """Of one crawl; `steps` is what its candidates go through."""

    def __init__(self, steps: "Steps", browser: Browser) -> None:
        self._steps = steps
        self._browser = browser
        self._held: OrderedDict[Url, TabReply] = OrderedDict()
        self._held_bytes = 0
        self._busy: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By address, and by origin whose robots.txt is asked: nothing is asked twice at once."""
        self._flying = 0

    def has(self, url: Url) -> bool:
        """Was it fetched for a tab already?"""
        return self._steps.frontier.recall(f"part:{url}") is not None

    async def open(self, visit: Visit, found: Extracted | None) -> Opened | None:
        """Open a page that was fetched, unless it is not to be; `found` are its links, where they are known
        already.
        """
        head = parse_head(visit.head)
        if not self._is_wanted(visit, head):
            return None
        body = _content(visit, head)
        if body is None or (self._fetching(visit) is Fetching.WHEN_EMPTY and not _is_empty(body, head)):
            return None
        steps, candidate = self._steps, visit.candidate
        page = _Page(visit=visit, reply=_reply(visit, head, body), ways={candidate.url: candidate})
        try:
            sight = await self._browser.open_page(
                self._view(candidate), lambda asked: self._answer(page, asked)
            )
            await page.end(PATIENCE_S)
        finally:
            await page.end(0.0)
        if page.error is not None:
            raise page.error
        static = found or extract.extract(candidate.url, head, visit.body, steps.settings.links)
        self._log_sockets(candidate, sight)
        steps.totals.opened += not sight.failure
        steps.totals.unopened += bool(sight.failure)
        note = f"{FAILED}{sight.failure}" if sight.failure else "browser"
        merged = _merged(static, self._seen_links(page, sight))
        return Opened(found=merged, attached=_attached(candidate.url, sight), note=note.replace(",", ";"))

    def _fetching(self, visit: Visit) -> Fetching:
        settings = self._steps.settings
        return settings.of_host(host_of(visit.candidate.url)).fetch or settings.fetch

    def _is_wanted(self, visit: Visit, head: HttpHead) -> bool:
        """A page that came whole, and that is one for itself: frames are seen in the page that has them."""
        mime = (head.get("content-type") or "").partition(";")[0].strip().lower()
        return (
            self._fetching(visit) is not Fetching.PLAIN
            and visit.failure is None
            and 200 <= visit.status < 300
            and mime in _HTML
            and visit.body_bytes <= LARGEST_BODY_BYTES
            and not embed_depth(visit.candidate.path)
            and bool(self._steps.judge.of_answer(visit.candidate, mime))
        )

    def _view(self, candidate: Candidate) -> PageOptions:
        settings = self._steps.settings
        pictures = settings.screenshots
        return PageOptions(
            url=candidate.url,
            referrer=candidate.via or "",
            page_time_s=settings.page_time_s,
            longest_s=max(settings.page_time_s * 10, 60.0),
            behaviours=settings.behaviours,
            picture=pictures is Screenshots.PAGES
            or (pictures is Screenshots.SEEDS and is_seed_path(candidate.path)),
        )

    # --- one request of a tab ---

    async def _answer(self, page: _Page, asked: TabRequest) -> TabReply | None:
        url = find_canonical(asked.url)
        if url is None or url.partition(":")[0] not in ("http", "https"):
            return None
        headers = {name.lower(): value for name, value in asked.headers.items()}
        method = headers.get("access-control-request-method", asked.method)
        if method not in _METHODS or "text/event-stream" in headers.get("accept", ""):
            what = (
                f"{method} is not sent: we read, we do not act"
                if method not in _METHODS
                else "a stream without end cannot be kept"
            )
            self._refuse(page, url, what)
            return None
        if asked.method == "OPTIONS":
            return _allowed(headers)
        if url == page.visit.candidate.url:
            return page.reply
        if not page.may_ask(url, asked.kind):
            return None
        # A tab that goes away takes nothing back that a server was asked for.
        getting = asyncio.get_running_loop().create_task(
            self._got(page, self._candidate(page, url, asked.redirected_from), asked)
        )
        page.getting.add(getting)
        getting.add_done_callback(page.getting.discard)
        try:
            reply = await asyncio.shield(getting)
        except Exception as error:  # our own disk, mostly: the crawl ends with it
            page.error = page.error or error
            return None
        return replace(reply, body=b"") if reply is not None and asked.method == "HEAD" else reply

    async def _got(self, page: _Page, candidate: Candidate, asked: TabRequest) -> TabReply | None:
        async with self._lock(candidate.url):
            reply = self._held.get(candidate.url)
            if reply is None:
                return await self._fetched(page, candidate, asked)
            self._held.move_to_end(candidate.url)
            return reply

    def _candidate(self, page: _Page, url: Url, redirected_from: str) -> Candidate:
        before = page.ways.get(find_canonical(redirected_from) or "") if redirected_from else None
        made = self._steps.intake.candidate(
            before or page.visit.candidate, url, Hop.REDIRECT if before else Hop.EMBED
        )
        page.ways[url] = made
        return made

    async def _fetched(self, page: _Page, candidate: Candidate, asked: TabRequest) -> TabReply | None:
        """Judge, wait for the turn, fetch, keep. None for all that the crawl will see to itself."""
        steps, settings = self._steps, self._steps.settings
        if settings.look_up is not None:
            await settings.look_up({host_of(candidate.url)})
        while steps.is_paused:
            await asyncio.sleep(PAUSED_S)
        verdict = steps.judge.of_link(candidate)
        origin, host = origin_of(candidate.url), settings.of_host(host_of(candidate.url))
        if not verdict or self._is_over(candidate):
            return None
        obeys = (host.robots or settings.robots) is not RobotsPolicy.IGNORE
        async with self._lock(f"robots:{origin}"):
            known = steps.robots.find(origin) or await steps.learn_robots(candidate, origin, obeys=obeys)
        if known is None or not steps.judge.of_robots(known, candidate) or self._is_over(candidate):
            return None
        self._flying += 1
        try:
            visit = await steps.turns.ask(
                candidate,
                crawl_delay_s=known.crawl_delay_s if obeys else None,
                manners=host.manners,
                headers=_passed_on(asked.headers),
            )
        finally:
            self._flying -= 1
        return await self._taken(visit, verdict)

    async def _taken(self, visit: Visit, verdict: Verdict) -> TabReply | None:
        """Hand an answer to the crawl to be kept, and its bytes to the tab."""
        steps, candidate = self._steps, visit.candidate
        try:
            if visit.failure is not None:
                visit.body.close()
                return None
            head = parse_head(visit.head)
            body = _content(visit, head)
            reply = _reply(visit, head, body) if body is not None else None
            if visit.status in pauses.TRANSIENT:  # tried again by the crawl, at its distance
                if visit.status in pauses.BUSY:
                    asked_s = pauses.retry_after(
                        head.get("retry-after"), steps.clock(), steps.settings.manners
                    )
                    steps.turns.hold(
                        origin_of(candidate.url),
                        time.monotonic() + (asked_s or steps.settings.manners.retry_delay_s),
                    )
                visit.body.close()
                return reply
            found = await steps.looked_up(visit)
        except BaseException:
            visit.body.close()
            raise
        steps.arrived.append(
            Arrived(
                visit=visit,
                origin=origin_of(candidate.url),
                asked_by=verdict,
                found=found,
                is_part=True,
                note="browser",
            )
        )
        steps.frontier.remember(f"part:{candidate.url}", b"1")
        if steps.peers is not None and not steps.peers.is_mine(candidate.url):
            steps.intake.lately_added.add(
                candidate.url
            )  # or the process that has its host would ask for it again
        self._hold(candidate.url, reply)
        return reply

    def _is_over(self, candidate: Candidate) -> bool:
        """Would it go beyond a limit of the harvest or of its host?"""
        steps = self._steps
        settings, totals = steps.settings, steps.totals
        coming = len(steps.arrived) + self._flying + 1
        if settings.limit_pages and totals.fetched + coming >= settings.limit_pages:
            return True
        if settings.limit_bytes and totals.bytes >= settings.limit_bytes:
            return True
        return bool(steps.limit_reached(candidate, settings.of_host(host_of(candidate.url))))

    def _lock(self, name: str) -> asyncio.Lock:
        lock = self._busy.get(name)
        if lock is None:
            lock = self._busy[name] = asyncio.Lock()
        return lock

    def _hold(self, url: Url, reply: TabReply | None) -> None:
        if reply is None or len(reply.body) > LARGEST_HELD_BYTES or url in self._held:
            return
        self._held[url] = reply
        self._held_bytes += len(reply.body)
        while self._held_bytes > MOST_HELD_BYTES:
            self._held_bytes -= len(self._held.popitem(last=False)[1].body)

    # --- what is refused here ---

    def _refuse(self, page: _Page, url: Url, reason: str) -> None:
        candidate = Candidate(
            url=url, via=page.visit.candidate.url, path=page.visit.candidate.path + Hop.EMBED
        )
        self._log_refused(candidate, reason)

    def _log_sockets(self, candidate: Candidate, sight: PageSnapshot) -> None:
        for raw in sight.sockets:
            url = (
                find_canonical(raw.replace("ws", "http", 1)) if raw.startswith("ws") else find_canonical(raw)
            )
            if url is not None:
                there = Candidate(url=url, via=candidate.url, path=candidate.path + Hop.EMBED)
                self._log_refused(there, f"{raw[:500]} is a line that stays open, which no archive can keep")

    def _log_refused(self, candidate: Candidate, reason: str) -> None:
        """Counted and logged once for an address."""
        steps = self._steps
        if steps.frontier.refuse(candidate):
            steps.judge.refusals[RULE] += 1
            steps.log.write(of_refusal(candidate, Failure.SCOPE, rule=RULE, reason=reason, at=steps.clock()))
            steps.is_dirty = True

    # --- what was seen ---

    def _seen_links(self, page: _Page, sight: PageSnapshot) -> list[Extracted]:
        """Links of every frame as shown, and what the page asked for or wanted to go to."""
        limits, url = self._steps.settings.links, page.visit.candidate.url
        found = [
            extract.extract(
                find_canonical(frame) or url, _SHOWN, BytesIO(html.encode("utf-8", "replace")), limits
            )
            for frame, html in sight.frames.items()
        ]
        more: dict[Url, Hop] = {}
        for addresses, hop in (
            (sight.moves, Hop.REDIRECT),
            (sight.windows, Hop.LINK),
            (page.asked, Hop.EMBED),
        ):
            for raw in addresses:
                there = find_canonical(raw)
                if there is not None and there.startswith("http") and there != url:
                    more.setdefault(there, hop)
        return [*found, Extracted(links=list(more.items()))]


_SHOWN = HttpHead(
    version="HTTP/1.1", status=200, reason="OK", headers=(("Content-Type", "text/html; charset=utf-8"),)
)


def _merged(static: Extracted, seen: list[Extracted]) -> Extracted:
    """All links together, each with the best hop by which it was found."""
    together: dict[Url, Hop] = {}
    nofollow, plain = set(static.nofollow), {url for url, _ in static.links} - static.nofollow
    for found in (static, *seen):
        for url, hop in found.links:
            if HOP_RANK[hop] < HOP_RANK[together.setdefault(url, hop)]:
                together[url] = hop
        nofollow |= found.nofollow
        plain |= {url for url, _ in found.links} - found.nofollow
    directives = static.directives.union(*(found.directives for found in seen))
    return replace(
        static, links=list(together.items()), nofollow=frozenset(nofollow - plain), directives=directives
    )


def _attached(url: Url, sight: PageSnapshot) -> tuple[Attached, ...]:
    """Picture and text of a page, named as browsertrix names them."""
    made = []
    if sight.picture:
        made.append(Attached(url=f"urn:view:{url}", mime=sight.picture_mime, data=sight.picture))
    if sight.text:
        made.append(
            Attached(
                url=f"urn:text:{url}",
                mime="text/plain; charset=utf-8",
                data=sight.text.encode("utf-8", "replace"),
            )
        )
    return tuple(made)


def _content(visit: Visit, head: HttpHead) -> bytes | None:
    """The body without any coding; None when it is too large for a tab, or its coding is wrong."""
    visit.body.seek(0)
    with suppress(Exception):  # a wrong coding is the server's; what came is kept all the same
        body = content_decoded(
            transfer_decoded(visit.body, head), head, limit_bytes=LARGEST_BODY_BYTES + 1
        ).read(LARGEST_BODY_BYTES + 1)
        return body if len(body) <= LARGEST_BODY_BYTES else None
    return None


def _reply(visit: Visit, head: HttpHead, body: bytes) -> TabReply:
    headers = [(name, value) for name, value in head.headers if name.lower() not in _LEFT_OUT]
    return TabReply(status=visit.status, headers=headers, body=body)


def _allowed(headers: Mapping[str, str]) -> TabReply:
    """The answer to a browser's question whether it may ask at all (CORS,
    https://fetch.spec.whatwg.org/#cors-preflight-fetch): servers are not bothered with it, since what they
    say to the question itself decides.
    """
    names = (
        ("Access-Control-Allow-Origin", headers.get("origin", "*")),
        ("Access-Control-Allow-Methods", "GET, HEAD"),
        ("Access-Control-Allow-Headers", headers.get("access-control-request-headers", "")),
        ("Access-Control-Allow-Credentials", "true"),
    )
    return TabReply(status=204, headers=names, body=b"")


def _passed_on(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """What scripts say of their own accord, and what kind of answer is wanted; never whole or half ranges,
    conditions or cookies.
    """
    return [
        (name, value)
        for name, value in headers.items()
        if name.lower() in _PASSED_ON or name.lower().startswith("x-")
    ]


def _is_empty(body: bytes, head: HttpHead) -> bool:
    return empty_pages.is_empty(decode(body[: 1 << 20], head.get("content-type") or "")[0])
