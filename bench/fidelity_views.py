"""Opens live and replayed pages in Chromium and compares what a reader sees, and what links do when clicked."""

import difflib
import io
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from bench.fidelity_archives import Replay
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Error, Frame, Page, sync_playwright

WIDTH, HEIGHT = 1280, 900
COLOUR_TOLERANCE = 16
GOOD = 0.98
MOST_CLICKS = 6
"""Links clicked on one page."""
SETTLE_S = 4.0
"""How long a replayed page may take to look like the live one, after the network has become quiet."""
START_S = 120.0
SLOWER = 3
LONGEST_S = 20.0
"""On a busy machine a replayed page may take this many times as long as the live page took, up to this
limit.
"""
TEXT = "() => (document.body || document.documentElement).innerText ?? document.documentElement.textContent"
LINKS = """() => [...document.querySelectorAll('a[href]')].map(link => ({
    text: link.innerText.trim(), href: link.href, seen: link.checkVisibility({checkVisibilityCSS: true}) }))"""
QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]

CHROMIUMS_OWN = ("googleapis.com", "accounts.google.com", "www.google.com", "gvt1.com")
"""Services that Chromium asks by itself, whatever page it shows; no site here refers to them."""


class LiveSiteFailed(Exception):
    """A live page shows nothing, so there is nothing to compare with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link as a reader finds it: the n-th with this text in the n-th frame."""

    frame: int
    text: str
    nth: int
    result: list[str]
    """The words in the window after the link was clicked on the live page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePage:
    url: str
    words: list[str]
    picture: Image.Image
    links: list[Link]
    patience_s: float
    """How long to wait for the archived page to look like this."""


@dataclass(slots=True, kw_only=True)
class PageScore:
    url: str
    text: float
    picture: float
    links_clicked: int = 0
    links_working: int = 0
    failed_links: list[str] = field(default_factory=list)


class Elsewhere(socketserver.ThreadingTCPServer):
    """A proxy that refuses every request and records its first line: whatever left the replay."""

    daemon_threads = True

    def __init__(self) -> None:
        self.requests: list[str] = []
        super().__init__(("127.0.0.1", 0), _Refusal)


class _Refusal(socketserver.StreamRequestHandler):
    server: Elsewhere

    def handle(self) -> None:
        if line := self.rfile.readline(4096).decode("latin-1").strip():
            self.server.requests.append(line)
            self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@contextmanager
def launched() -> Iterator[Browser]:
    """Chromium, whose pages reach nothing without a proxy of their own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", *QUIET],
            proxy={"server": "http://127.0.0.1:9", "bypass": "<-loopback>"},
        )
        try:
            yield browser
        finally:
            browser.close()


class Viewer:
    """A browser that reaches only the given ports of loopback; everything else counts as a leak."""

    def __init__(self, context: BrowserContext, elsewhere: Elsewhere, replay: Replay | None) -> None:
        self._context = context
        self._elsewhere = elsewhere
        self._replay = replay
        self._height = HEIGHT
        """Height of the window: more than that of the archived page if there is a banner above it."""
        self.missing: set[str] = set()
        """Parts of pages that were answered with 404."""
        self.absent: set[str] = set()
        """Documents that were answered with 404, also in frames."""
        self.status = 0
        """HTTP status of the page opened last."""
        context.on("response", self._on_response)

    @classmethod
    @contextmanager
    def open(
        cls, ports: tuple[int, ...], replay: Replay | None = None, browser: Browser | None = None
    ) -> Iterator["Viewer"]:
        """Open a viewer in a new browser, or in a new browser context of the given one."""
        with Elsewhere() as elsewhere, nullcontext(browser) if browser else launched() as chromium:
            thread = threading.Thread(target=elsewhere.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            hosts = ("127.0.0.1", "localhost", "*.localhost")
            # Later rules win: first send loopback to the proxy, too, then except the given ports.
            rules = ["<-loopback>", *(f"{host}:{port}" for port in ports for host in hosts)]
            proxy = {"server": f"http://127.0.0.1:{elsewhere.server_address[1]}", "bypass": ",".join(rules)}
            try:
                viewport = {"width": WIDTH, "height": HEIGHT}
                context = chromium.new_context(viewport=viewport, reduced_motion="reduce", proxy=proxy)
                yield cls(context, elsewhere, replay)
                context.close()
            finally:
                elsewhere.shutdown()
                thread.join()

    @property
    def left(self) -> list[str]:
        """Requests that left the replay, without Chromium's own."""
        return [line for line in self._elsewhere.requests if not any(host in line for host in CHROMIUMS_OWN)]

    def _on_response(self, response) -> None:
        if response.status != 404:
            return
        url = response.url[max(response.url.rfind("http://"), 0) :]
        (self.absent if response.request.resource_type == "document" else self.missing).add(url)

    @contextmanager
    def page(self, url: str) -> Iterator[Page]:
        """A window with the page, live or replayed; the document of the archived page has the same size.
        Cookies of earlier pages are deleted.
        """
        self._context.clear_cookies()
        page = self._context.new_page()
        page.set_viewport_size({"width": WIDTH, "height": self._height})
        try:
            prefix = self._replay.prefix if self._replay else ""
            self.status = 0
            with suppress(Error):
                response = page.goto(prefix + url, timeout=60_000)
                self.status = response.status if response else 0
            _wait_until_quiet(page)
            self._wait_for_start(page)
            if self._replay and (box := self._frame_box(page)):
                lacking = HEIGHT - round(box["height"])
                if lacking:
                    self._height += lacking
                    page.set_viewport_size({"width": WIDTH, "height": self._height})
                    _wait_until_quiet(page)
            yield page
        finally:
            for opened in self._context.pages:
                opened.close()

    def _wait_for_start(self, page: Page) -> None:
        """Wait until the replay shows the page: its scripts have to be installed first, which a busy machine
        may do slowly.
        """
        deadline = time.monotonic() + START_S
        while self._replay and self._replay.start and self._replay.start in self._content(page).url:
            if time.monotonic() > deadline:
                return
            page.wait_for_timeout(200)
            _wait_until_quiet(page)

    def words(self, page: Page) -> list[str]:
        """The visible words of a page with all its frames."""
        words: list[str] = []
        for frame in _all_frames(self._content(page)):
            with suppress(Error):
                words += (frame.evaluate(TEXT) or "").split()
        return words

    def picture(self, page: Page) -> Image.Image:
        box = self._frame_box(page) if self._replay else None
        data = page.screenshot(animations="disabled", timeout=60_000)
        picture = Image.open(io.BytesIO(data)).convert("RGB")
        left, top = (round(box["x"]), round(box["y"])) if box else (0, 0)
        return picture.crop((left, top, left + WIDTH, top + HEIGHT))

    def settled_picture(self, page: Page) -> Image.Image:
        """The picture of a page when it no longer changes: some fade in what they show."""
        deadline = time.monotonic() + SETTLE_S
        picture = self.picture(page)
        while time.monotonic() < deadline:
            page.wait_for_timeout(500)
            earlier, picture = picture, self.picture(page)
            if _agreement(earlier, picture) >= 0.9999:
                break
        return picture

    def links(self, page: Page, base: str) -> list[tuple[int, str, int, str]]:
        """Visible links with text to pages of the site: frame, text, position among equal texts, address."""
        links = []
        for number, frame in enumerate(_all_frames(self._content(page))):
            counts: Counter[str] = Counter()
            for link in frame.evaluate(LINKS):
                nth, counts[link["text"]] = counts[link["text"]], counts[link["text"]] + 1
                if link["seen"] and link["text"] and link["href"].startswith(base):
                    links.append((number, link["text"], nth, link["href"].partition("#")[0]))
        return links

    def click(
        self,
        page: Page,
        link: tuple[int, str, int],
        before: list[str] | None,
        after: list[str] | None,
        patience_s: float = SETTLE_S,
    ) -> list[str]:
        """The words of the window after a click on the link, or of the new window if the link opened one. Waits
        for the words `before` the click, and for those `after` it if they are known, as long as a page may take.
        """
        frame, text, nth = link
        self.settled_words(page, before, patience_s)
        try:
            links = _all_frames(self._content(page))[frame].locator("a[href]").all()
            same = [one for one in links if one.inner_text(timeout=5000).strip() == text]
            same[nth].click(timeout=30_000)
        except (Error, IndexError):
            return []
        page.wait_for_timeout(500)
        window = self._context.pages[-1]
        _wait_until_quiet(window)
        self._wait_for_start(window)
        return self.settled_words(window, after, patience_s)

    def settled_words(
        self, page: Page, wanted: list[str] | None = None, patience_s: float = SETTLE_S
    ) -> list[str]:
        """The words of a page as soon as they are those wanted or, if none are given, no longer change. Every
        page here has words, so a page without words is not ready.
        """
        deadline = time.monotonic() + (LONGEST_S if wanted is None else patience_s)
        words, earlier = self.words(page), None
        while (not words or words != (earlier if wanted is None else wanted)) and time.monotonic() < deadline:
            page.wait_for_timeout(400)
            words, earlier = self.words(page), words
        return words

    def _content(self, page: Page) -> Frame:
        """The frame that shows the archived page; the page itself if it is live or without such a frame."""
        if self._replay:
            with suppress(Error):
                element = page.query_selector(self._replay.frame)
                if element and (frame := element.content_frame()):
                    return frame
        return page.main_frame

    def _frame_box(self, page: Page) -> dict[str, float] | None:
        element = page.query_selector(self._replay.frame) if self._replay else None
        return element.bounding_box() if element else None  # type: ignore[return-value]


def view_live(
    viewer: Viewer, base: str, paths: tuple[str, ...], destinations: tuple[str, ...] = ()
) -> list[LivePage]:
    """Record every page, and click each link to one of them or to one of the other `destinations` the first
    time it occurs.
    """
    pages: list[LivePage] = []
    clicked: set[str] = set()
    for path in paths:
        url = base + path
        begun = time.monotonic()
        with viewer.page(url) as page:
            words = viewer.settled_words(page)
            patience_s = max(SETTLE_S, min(SLOWER * (time.monotonic() - begun), LONGEST_S))
            picture, found = viewer.settled_picture(page), viewer.links(page, base)
            if viewer.status != 200 or not words:
                raise LiveSiteFailed(f"{url} answers {viewer.status} and shows {len(words)} words")
            links = []
            for frame, text, nth, href in found:
                if href[len(base) :] not in (*paths, *destinations) or href in clicked or href == url:
                    continue
                with viewer.page(url) if links else nullcontext(page) as opened:
                    result = viewer.click(opened, (frame, text, nth), words, None)
                clicked.add(href)
                links.append(Link(frame=frame, text=text, nth=nth, result=result))
                if len(links) == MOST_CLICKS:
                    break
            links = [link for link in links if link.result and link.result != words]
        pages.append(LivePage(url=url, words=words, picture=picture, links=links, patience_s=patience_s))
    return pages


def compare(viewer: Viewer, live: LivePage, pictures: Path) -> PageScore:
    """Score one page of an archive against the live one. If the score is bad, both pictures are written,
    named after `pictures`.
    """
    with viewer.page(live.url) as page:
        deadline = time.monotonic() + live.patience_s
        while True:
            text = _similarity(live.words, viewer.words(page))
            shot = viewer.picture(page)
            picture = _agreement(live.picture, shot)
            if live.url in viewer.absent:
                text = picture = 0.0
                break
            if min(text, picture) >= 0.999 or time.monotonic() > deadline:
                break
            page.wait_for_timeout(500)
        if min(text, picture) < GOOD:
            live.picture.save(f"{pictures}-live.png")
            shot.save(f"{pictures}-archived.png")
        score = PageScore(url=live.url, text=text, picture=picture)
        before = live.words if text >= GOOD else None  # do not wait for missing words again
        for link in live.links:
            with viewer.page(live.url) if score.links_clicked else nullcontext(page) as opened:
                place = (link.frame, link.text, link.nth)
                words = viewer.click(opened, place, before, link.result, live.patience_s)
            score.links_clicked += 1
            if _similarity(link.result, words) >= GOOD:
                score.links_working += 1
            else:
                score.failed_links.append(link.text)
    return score


def _similarity(live: list[str], other: list[str]) -> float:
    if live == other:
        return 1.0
    return difflib.SequenceMatcher(None, live, other, autojunk=False).ratio()


def _agreement(live: Image.Image, other: Image.Image) -> float:
    """The share of pixels that agree, at the best shift by up to one pixel: a frame may be at a fraction of a
    pixel.
    """
    ours, theirs = (np.asarray(one.crop((0, 0, WIDTH, HEIGHT)), dtype=np.int16) for one in (live, other))
    best = 0.0
    for shift in (-1, 0, 1):
        difference = np.abs(ours - np.roll(theirs, shift, axis=0)).max(axis=2)[1:-1]
        best = max(best, float((difference <= COLOUR_TOLERANCE).mean()))
    return best


def _all_frames(frame: Frame) -> list[Frame]:
    """A frame and those inside it, in the order of the document."""
    return [frame, *(inner for child in frame.child_frames for inner in _all_frames(child))]


def _wait_until_quiet(page: Page) -> None:
    with suppress(Error):
        page.wait_for_load_state("networkidle", timeout=15_000)
    page.wait_for_timeout(300)
