"""Opens pages of a crawl in a browser. Our own fetcher answers all requests of the browser, so that scope,
politeness, address checks and records are handled in one place.

1. A page was fetched as usual. If it is HTML that must be opened (`fetch` of the harvest or of its host), or
   a start page that gets a picture (unless `fetch` says that only empty pages are opened), the tab gets
   those bytes.
2. A request of the tab is treated like any part of a page: scope, robots.txt of its host, limits, the turn of
   its server, the fetcher with its check of addresses. The answer is kept like any other, and its bytes go to
   the tab.
3. A request that is refused or fails, fails in the tab and is left to the crawl: it is queued as a part of
   the page, and judged, retried, counted and logged there. Only requests that a crawl never sends (those
   that may change something, WebSocket, endless streams) are refused and logged here. A POST that only reads
   (`reading_requests`) is sent and kept, but never repeated by the crawl.
4. The links are those of the HTML as it came and of the HTML as the browser shows it, in all frames, and the
   addresses that the page sets for itself (history API): each of those is harvested as a page of its own.

What was fetched for a tab is remembered in the frontier (`part:URL`), so that the crawl does not ask again,
and held in memory for some time, so that the style sheet of a thousand pages is fetched once.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from io import BytesIO
from weakref import WeakValueDictionary

from webdepot.container.http import HttpHead, parse_head
from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.browser.exploration import ClickMemory
from webdepot.harvest.browser.page_snapshot import PageOptions, PageSnapshot
from webdepot.harvest.browser.reading_requests import reads_only
from webdepot.harvest.browser.tab_request import (
    LARGEST_BODY_BYTES,
    TabReply,
    TabRequest,
    content_of,
    forwarded_headers,
    key_of,
    preflight_reply,
    reply_to,
)
from webdepot.harvest.crawl_state import CrawlState
from webdepot.harvest.fetch.fetch_mode import Fetching, Screenshots
from webdepot.harvest.links import extract
from webdepot.harvest.links.extract import Extracted
from webdepot.harvest.links.reference import HOP_RANK
from webdepot.harvest.pending_answer import Attached, PendingAnswer, mime_of
from webdepot.harvest.politeness import pauses
from webdepot.harvest.politeness.robots import RobotsPolicy
from webdepot.harvest.prerequisites import Prerequisites
from webdepot.harvest.report.log import of_refusal
from webdepot.harvest.retries import is_temporary
from webdepot.harvest.scope.hop_path import embed_depth, is_part, is_seed_path
from webdepot.model import Candidate, Failure, Hop, Verdict, Visit
from webdepot.url import Url, find_canonical, host_of, origin_of

MOST_HELD_BYTES = 128 << 20
LARGEST_HELD_BYTES = 8 << 20
MOST_ASKED, MOST_DATA = 300, 100
"""How many addresses one page may request, and how many of them for data: some pages never stop."""
DATA_KINDS = frozenset({"XHR", "Fetch", "Ping", "Other"})
LONGEST_TITLE = 500
PATIENCE_S = 5.0
"""How long to wait for the pending requests of a finished page."""
PAUSED_S = 0.25
PICTURE_TIME_S = 15.0
"""Time limit of a page that is opened only for its screenshot."""
RULE = "browser"
FAILED = "browserFailed:"
"""Annotation in the log, followed by the reason."""
CLICKS_FAILED = "clicksFailed:"
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_METHODS = frozenset({"GET", "HEAD", "POST"})
_PAGE = b"page"


@dataclass(slots=True)
class _OpenPage:
    visit: Visit
    reply: TabReply
    paths: dict[str, Candidate]
    """URL -> how it was reached, for redirects from there."""
    asked: dict[Url, None] = field(default_factory=dict)
    """Addresses that it requested, within its limits."""
    posted: set[str] = field(default_factory=set)
    """Keys of the requests with a body, as `asked`."""
    data: int = 0
    fetching: "set[asyncio.Task[TabReply | None]]" = field(default_factory=set)
    error: Exception | None = None

    def may_ask(self, url: Url, kind: str) -> bool:
        """Whether a request is within the limits of the page. The icon is not: the browser requests it, not
        the page.
        """
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

    def may_post(self, key: str) -> bool:
        if key not in self.posted and len(self.posted) < MOST_DATA:
            self.posted.add(key)
        return key in self.posted

    async def end(self, patience_s: float) -> None:
        """Wait for pending requests; those that take longer are cancelled and left to the crawl."""
        if self.fetching and patience_s:
            await asyncio.wait(self.fetching, timeout=patience_s)
        waiting = list(self.fetching)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPage:
    """What the browser adds to a page."""

    extracted: Extracted
    attached: tuple[Attached, ...]
    text: str
    """The text that the page shows."""
    note: str


class PageOpener:
    """Opens the pages of one crawl."""

    def __init__(self, state: CrawlState, prerequisites: Prerequisites, browser: Browser) -> None:
        self._state = state
        self._prerequisites = prerequisites
        self._browser = browser
        self._held: OrderedDict[str, TabReply] = OrderedDict()
        self._held_bytes = 0
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By address, and by origin whose robots.txt is fetched: nothing is fetched twice at once."""
        self._in_flight = 0
        self._clicks = ClickMemory()

    def has(self, candidate: Candidate) -> bool:
        """Whether an address was already fetched for a tab and need not be requested again. A page that
        another page prefetched is requested if there is a link to it, because it has not been opened itself.
        """
        known = self._state.frontier.recall(f"part:{candidate.url}")
        return known is not None and (known != _PAGE or is_part(candidate.path))

    def _is_page(self, url: Url) -> bool:
        """Whether the address was fetched for a tab and is a page, opened only if a link leads to it."""
        return self._state.frontier.recall(f"part:{url}") == _PAGE

    async def open(self, visit: Visit, extracted: Extracted | None) -> OpenedPage | None:
        """Open a page that was fetched; None if it need not be opened. `extracted` are its links, if they
        were extracted already.
        """
        head = parse_head(visit.head)
        if not self._is_wanted(visit, head):
            return None
        body = content_of(visit, head)
        if body is None:
            return None
        state, candidate = self._state, visit.candidate
        static = extracted or state.extract(visit, head)
        mode = self._mode_of(visit)
        is_complete = mode.is_when_empty and not static.is_empty
        if is_complete and not (mode is Fetching.AUTO and self._gets_picture(candidate)):
            return OpenedPage(extracted=static, attached=(), text="", note="")
        page = _OpenPage(visit=visit, reply=reply_to(visit, head, body), paths={candidate.url: candidate})
        state.open_pages.add(candidate.url)
        try:
            sight = await self._browser.open_page(
                self._view(candidate, is_complete=is_complete), lambda request: self._answer(page, request)
            )
            await page.end(PATIENCE_S)
        finally:
            state.open_pages.discard(candidate.url)
            await page.end(0.0)
        if page.error is not None:
            raise page.error
        self._log_sockets(candidate, sight)
        state.totals.opened += not sight.failure
        state.totals.unopened += bool(sight.failure)
        merged = _merge(static, self._shown_links(page, sight))
        return OpenedPage(
            extracted=replace(merged, is_empty=static.is_empty and bool(sight.failure)),
            attached=_attachments(candidate.url, sight),
            text=sight.text,
            note=_note_on(sight),
        )

    def _mode_of(self, visit: Visit) -> Fetching:
        settings = self._state.settings
        return settings.of_host(host_of(visit.candidate.url)).fetch or settings.fetch

    def _is_wanted(self, visit: Visit, head: HttpHead) -> bool:
        """Whether it is a complete page, and not a frame: frames are opened with the page that has them."""
        mime = mime_of(head)
        return (
            self._mode_of(visit) is not Fetching.PLAIN
            and visit.failure is None
            and 200 <= visit.status < 300
            and mime in _HTML
            and not _is_download(head)
            and visit.body_bytes <= LARGEST_BODY_BYTES
            and not embed_depth(visit.candidate.path)
            and bool(self._state.judge.of_answer(visit.candidate, mime))
        )

    def _gets_picture(self, candidate: Candidate) -> bool:
        """Whether it is a start page that gets a screenshot."""
        return self._state.settings.screenshots is not Screenshots.NONE and is_seed_path(candidate.path)

    def _view(self, candidate: Candidate, *, is_complete: bool) -> PageOptions:
        """How to open a page; one that is complete without scripts is opened only for its screenshot."""
        settings = self._state.settings
        page_time_s = min(settings.page_time_s, PICTURE_TIME_S) if is_complete else settings.page_time_s
        return PageOptions(
            url=candidate.url,
            referrer=candidate.via or "",
            page_time_s=page_time_s,
            longest_s=max(page_time_s * 10, 60.0),
            behaviours=settings.behaviours & {"consent"} if is_complete else settings.behaviours,
            memory=self._clicks,
            may_follow=lambda address: self._may_follow(candidate, address),
            picture=settings.screenshots is Screenshots.PAGES or self._gets_picture(candidate),
        )

    def _may_follow(self, candidate: Candidate, address: str) -> bool:
        """Whether the rules accept a link of the page."""
        url = find_canonical(address)
        state = self._state
        return url is not None and bool(state.judge.of_link(state.intake.candidate(candidate, url, Hop.LINK)))

    # --- one request of a tab ---

    async def _answer(self, page: _OpenPage, request: TabRequest) -> TabReply | None:
        url = find_canonical(request.url)
        if url is None or url.partition(":")[0] not in ("http", "https"):
            return None
        headers = {name.lower(): value for name, value in request.headers.items()}
        method = headers.get("access-control-request-method", request.method)
        is_preflight = request.method == "OPTIONS" and "access-control-request-method" in headers
        if method not in _METHODS or not (is_preflight or reads_only(url, method, headers, request.body)):
            self._refuse(page, url, f"{method} is not sent: it may change something")
            return None
        if "text/event-stream" in headers.get("accept", ""):
            self._refuse(page, url, "an endless stream cannot be kept")
            return None
        if is_preflight:
            return preflight_reply(headers)
        if request.body:
            if not page.may_post(key_of(url, request)):
                return None
        elif url == page.visit.candidate.url:
            return page.reply
        elif not page.may_ask(url, request.kind):
            return None
        # A task of its own: a request that was sent to a server is completed even if the tab closes.
        task = asyncio.get_running_loop().create_task(
            self._fetch_once(self._candidate(page, url, request.redirected_from), request)
        )
        page.fetching.add(task)
        task.add_done_callback(page.fetching.discard)
        try:
            reply = await asyncio.shield(task)
        except Exception as error:  # mostly our own disk: the crawl ends with it
            page.error = page.error or error
            return None
        return replace(reply, body=b"") if reply is not None and request.method == "HEAD" else reply

    async def _fetch_once(self, candidate: Candidate, request: TabRequest) -> TabReply | None:
        """The reply held in memory, or a new one; two tabs never fetch the same address at once."""
        key = key_of(candidate.url, request)
        async with self._lock(key):
            reply = self._held.get(key)
            if reply is None:
                return await self._fetch(candidate, request)
            self._held.move_to_end(key)
            return reply

    def _candidate(self, page: _OpenPage, url: Url, redirected_from: str) -> Candidate:
        before = page.paths.get(find_canonical(redirected_from) or "") if redirected_from else None
        candidate = self._state.intake.candidate(
            before or page.visit.candidate, url, Hop.REDIRECT if before else Hop.EMBED
        )
        page.paths[url] = candidate
        return candidate

    async def _fetch(self, candidate: Candidate, request: TabRequest) -> TabReply | None:
        """The reply to a request: judged, fetched when its server is free, and kept. None if it is left to
        the crawl.
        """
        state, settings = self._state, self._state.settings
        if settings.look_up is not None:
            await settings.look_up({host_of(candidate.url)})
        while state.is_paused:
            await asyncio.sleep(PAUSED_S)
        verdict = state.judge.of_link(candidate)
        origin, host = origin_of(candidate.url), settings.of_host(host_of(candidate.url))
        if not verdict or self._is_over_limit(candidate):
            return None
        obeys = (host.robots or settings.robots) is not RobotsPolicy.IGNORE
        async with self._lock(f"robots:{origin}"):
            robots = state.robots.find(origin) or await self._prerequisites.learn_robots(
                candidate, origin, obeys=obeys, is_put_off=is_temporary
            )
        if robots is None or not state.judge.of_robots(robots, candidate) or self._is_over_limit(candidate):
            return None
        self._in_flight += 1
        try:
            visit = await state.turns.ask(
                candidate,
                crawl_delay_s=robots.crawl_delay_s if obeys else None,
                manners=host.manners,
                headers=forwarded_headers(request.headers),
                body=request.body,
            )
            return await self._receive(visit, verdict, request)
        finally:
            self._in_flight -= 1

    async def _receive(self, visit: Visit, verdict: Verdict, request: TabRequest) -> TabReply | None:
        """Queue an answer to be settled; return the reply for the tab."""
        state, candidate = self._state, visit.candidate
        try:
            if visit.failure is not None:
                visit.body.close()
                return None
            head = parse_head(visit.head)
            body = content_of(visit, head)
            reply = reply_to(visit, head, body) if body is not None else None
            if visit.status in pauses.TRANSIENT:  # retried by the crawl, with its delay
                self._hold_if_busy(visit, head)
                visit.body.close()
                return reply
            extracted = await state.find_links_early(visit, head)
        except BaseException:
            visit.body.close()
            raise
        state.arrived.append(
            PendingAnswer(
                visit=visit,
                origin=origin_of(candidate.url),
                asked_by=verdict,
                extracted=extracted,
                head=head,
                is_part=True,
                note="browser",
            )
        )
        if not request.body:
            is_page = visit.status == 200 and mime_of(head) in _HTML
            state.frontier.remember(f"part:{candidate.url}", _PAGE if is_page else b"1")
            if state.peers is not None and not state.peers.is_mine(candidate.url):
                # Otherwise the process that owns its host would ask for it again.
                state.intake.recently_added.add(candidate.url)
        self._hold(key_of(candidate.url, request), reply)
        return reply

    def _hold_if_busy(self, visit: Visit, head: HttpHead) -> None:
        """Pause requests to a server whose answer asks for that."""
        if visit.status in pauses.BUSY:
            manners = self._state.settings.manners
            asked_s = pauses.retry_after(head.get("retry-after"), self._state.clock(), manners)
            wait_s = asked_s or manners.retry_delay_s
            self._state.turns.hold(origin_of(visit.candidate.url), time.monotonic() + wait_s)
            self._state.note_wait(visit, wait_s)

    def _is_over_limit(self, candidate: Candidate) -> bool:
        """Whether one more request would exceed a limit of the harvest or of its host."""
        state, settings, totals = self._state, self._state.settings, self._state.totals
        coming = len(state.arrived) + self._in_flight + 1
        if settings.limit_documents and totals.fetched + coming >= settings.limit_documents:
            return True
        if settings.limit_bytes and totals.bytes >= settings.limit_bytes:
            return True
        return bool(state.find_host_limit(candidate))

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    def _hold(self, key: str, reply: TabReply | None) -> None:
        if reply is None or len(reply.body) > LARGEST_HELD_BYTES or key in self._held:
            return
        self._held[key] = reply
        self._held_bytes += len(reply.body)
        while self._held_bytes > MOST_HELD_BYTES:
            self._held_bytes -= len(self._held.popitem(last=False)[1].body)

    # --- requests that are refused here ---

    def _refuse(self, page: _OpenPage, url: Url, reason: str) -> None:
        source = page.visit.candidate
        candidate = Candidate(url=url, via=source.url, path=source.path + Hop.EMBED)
        self._log_refusal(candidate, reason)

    def _log_sockets(self, candidate: Candidate, sight: PageSnapshot) -> None:
        for raw in sight.sockets:
            url = find_canonical(raw.replace("ws", "http", 1) if raw.startswith("ws") else raw)
            if url is not None:
                socket = Candidate(url=url, via=candidate.url, path=candidate.path + Hop.EMBED)
                self._log_refusal(socket, f"{raw[:500]} is a WebSocket, which cannot be kept")

    def _log_refusal(self, candidate: Candidate, reason: str) -> None:
        """Count and log a refusal, once for each address."""
        state = self._state
        if state.frontier.refuse(candidate):
            state.judge.refusals[RULE] += 1
            state.log.write(of_refusal(candidate, Failure.SCOPE, rule=RULE, reason=reason, at=state.clock()))
            state.is_dirty = True

    # --- links of an open page ---

    def _shown_links(self, page: _OpenPage, sight: PageSnapshot) -> list[Extracted]:
        """The links of every frame as shown, and the addresses that the page requested or tried to open."""
        limits, url = self._state.settings.links, page.visit.candidate.url
        frames = [
            extract.extract(
                find_canonical(frame) or url, *_encoded(html, sight.encodings.get(frame, "")), limits
            )
            for frame, html in sight.frames.items()
        ]
        more: dict[Url, Hop] = {}
        for addresses, hop in (
            (sight.moves[:1], Hop.REDIRECT),
            (sight.moves[1:], Hop.LINK),  # a page that goes to several may go to ever new ones (`mazes`)
            (sight.windows, Hop.LINK),
            (sight.routes, Hop.LINK),
            ([address for address in page.asked if not self._is_page(address)], Hop.EMBED),
        ):
            for raw in addresses:
                target = find_canonical(raw)
                if target is not None and target.startswith("http") and target != url:
                    more.setdefault(target, hop)
        return [*frames, Extracted(links=list(more.items()))]


def _is_download(head: HttpHead) -> bool:
    """Whether a browser would save the page instead of showing it."""
    return (head.get("content-disposition") or "").strip().lower().startswith("attachment")


def _encoded(html: str, encoding: str) -> tuple[HttpHead, BytesIO]:
    """The HTML of a frame as a response in the encoding of the frame, on which its addresses depend."""
    try:
        body = html.encode(encoding, "xmlcharrefreplace")
    except (LookupError, UnicodeError):  # not one of ours, or half of a surrogate pair
        body, encoding = html.encode("utf-8", "replace"), "utf-8"
    content_type = ("Content-Type", f"text/html; charset={encoding}")
    return HttpHead(version="HTTP/1.1", status=200, reason="OK", headers=(content_type,)), BytesIO(body)


def _merge(static: Extracted, shown: list[Extracted]) -> Extracted:
    """All links, each with the best hop by which it was found."""
    hops: dict[Url, Hop] = {}
    nofollow, plain = set(static.nofollow), {url for url, _ in static.links} - static.nofollow
    for extracted in (static, *shown):
        for url, hop in extracted.links:
            if HOP_RANK[hop] < HOP_RANK[hops.setdefault(url, hop)]:
                hops[url] = hop
        nofollow |= extracted.nofollow
        plain |= {url for url, _ in extracted.links} - extracted.nofollow
    directives = static.directives.union(*(extracted.directives for extracted in shown))
    return replace(
        static, links=list(hops.items()), nofollow=frozenset(nofollow - plain), directives=directives
    )


def _attachments(url: Url, sight: PageSnapshot) -> tuple[Attached, ...]:
    """Screenshot and text of a page, named as browsertrix names them."""
    attachments = []
    if sight.picture:
        attachments.append(Attached(url=f"urn:view:{url}", mime=sight.picture_mime, data=sight.picture))
    if sight.text:
        attachments.append(
            Attached(
                url=f"urn:text:{url}",
                mime="text/plain; charset=utf-8",
                data=sight.text.encode("utf-8", "replace"),
                title=" ".join(sight.title.encode("utf-8", "replace").decode()[:LONGEST_TITLE].split()),
            )
        )
    return tuple(attachments)


def _note_on(sight: PageSnapshot) -> str:
    """The annotations for the log line of the page, separated by commas."""
    if sight.failure:
        return FAILED + sight.failure.replace(",", ";")
    ended = sight.click_failure.replace(",", ";")
    return f"browser,{CLICKS_FAILED}{ended}" if ended else "browser"
