"""One page in one tab: opened, made to load everything, read, and closed. The caller answers its requests.

1. A clean tab (`context`), without cookies or storage of other pages, in which every request is paused
   (`Fetch`).
2. The page is opened. Each request goes to `answer`; the page gets the reply, or the request fails. A page
   that tries to go elsewhere, or to open a window, stays where it is: the address is noted.
3. It gets time to load and to become idle; then the behaviours: lazy images, scrolling, media, and clicks
   last.
4. Frames are read as HTML, the page as text and as a screenshot.

The time that we take to answer requests (servers are asked politely, one after the other) does not count as
the page's time: its limit runs only while no request is pending. There is also a limit for everything
together.
"""

import asyncio
import time
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from json import dumps
from typing import Any

from webdepot.harvest.browser import scripts
from webdepot.harvest.browser.context import TabContext, create
from webdepot.harvest.browser.devtools import (
    CALL_S,
    BrowserGone,
    CallFailed,
    CallTimedOut,
    DevTools,
    Listener,
)
from webdepot.harvest.browser.launch import HEIGHT, WIDTH
from webdepot.url import host_of, origin_of

TICK_S = 0.05
REST_S = 0.6
"""A page is idle when it has made no request for this long."""
TALLEST_PX = 5000
LARGEST_PNG_BYTES = 3 << 20
"""A larger screenshot is taken again as JPEG."""
MOST_SCROLLS, MOST_CLICKS, MOST_FRAMES = 40, 30, 40
MOST_REQUESTS = 1000
"""Of one page; further requests fail."""
MOST_NOTED = 200
MOST_IDLE_CONTEXTS = 8
"""Unused tabs that are kept; beyond that the oldest is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TabRequest:
    """A request of a page."""

    url: str
    method: str
    kind: str
    """Its purpose: Document, Stylesheet, Image, Media, Script, XHR, Fetch, EventSource, …"""
    headers: Mapping[str, str]
    redirected_from: str
    """Address of the request that was redirected here; empty for most requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TabReply:
    """The response that the page gets; its body has no coding."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


AnswerRequest = Callable[[TabRequest], Awaitable[TabReply | None]]
"""Called for each request; if it returns None, the request fails in the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """How to open a page."""

    url: str
    referrer: str = ""
    page_time_s: float = 60.0
    longest_s: float = 600.0
    """Including the time to answer its requests."""
    call_s: float = CALL_S
    behaviours: frozenset[str] = frozenset({"scroll", "play"})
    picture: bool = False
    agent: str = ""


@dataclass(slots=True)
class PageSnapshot:
    """The content of a page, as the browser has it."""

    frames: dict[str, str] = field(default_factory=dict)
    """HTML by address; the page itself is first."""
    encodings: dict[str, str] = field(default_factory=dict)
    """Of the frames, by address: browsers use it in addresses."""
    text: str = ""
    title: str = ""
    picture: bytes = b""
    picture_mime: str = ""
    moves: list[str] = field(default_factory=list)
    """Addresses to which the page tried to navigate."""
    windows: list[str] = field(default_factory=list)
    """Addresses that it tried to open in a window, or after a click."""
    sockets: list[str] = field(default_factory=list)
    """Addresses of WebSockets and the like, which are not connected."""
    failure: str = ""
    """Why the page could not be opened or read completely; empty if there was no failure."""
    must_restart: bool = False
    """The browser is no longer reliable."""


class TabFailed(Exception):
    """The tab crashed or hangs."""


async def open_page(
    devtools: DevTools,
    options: PageOptions,
    answer: AnswerRequest,
    idle: list[TabContext],
    windows_of: Callable[[str], list[str]],
) -> PageSnapshot:
    """Open a page and return its content. Raises only BrowserGone; the failure of a tab is in the snapshot.

    `idle` are the unused tabs of the browser; `windows_of` gives the addresses that the page in a tab tried
    to open.
    """
    tab = _Tab(devtools, options, answer, idle)
    try:
        async with asyncio.timeout(options.longest_s):
            await tab.open()
            await tab.visit()
            await tab.read()
            if "click" in options.behaviours:
                await tab.click()
    except TimeoutError:
        tab.snapshot.failure = f"it took more than {options.longest_s:g} s"
    except CallTimedOut as error:
        tab.snapshot.failure, tab.snapshot.must_restart = f"it stopped responding: {error}", True
    except TabFailed as error:
        tab.snapshot.failure = str(error)
    except CallFailed as error:
        tab.snapshot.failure = tab.crash or f"the browser reported an error: {error}"
    finally:
        await tab.close()
    for url in windows_of(tab.tab):
        _note(tab.snapshot.windows, url)
    return tab.snapshot


class _Tab:
    def __init__(
        self, devtools: DevTools, options: PageOptions, answer: AnswerRequest, idle: list[TabContext]
    ) -> None:
        self.devtools, self.options, self.answer, self.idle = devtools, options, answer, idle
        self.snapshot = PageSnapshot()
        self.crash = ""
        self.context: TabContext | None = None
        self.tab = ""
        self.loaded: set[str] = set()
        """Ids of loaded documents; the previous document may still send its event."""
        self.is_clicking = False
        self.pending: set[asyncio.Task[None]] = set()
        self.requested_at_s = 0.0
        self.requests = 0
        self.spent_s = 0.0
        self.addresses: dict[str, str] = {}
        """Network id -> its last address, to know which request was redirected."""

    async def call(self, method: str, parameters: Mapping[str, Any] | None = None) -> Any:
        if self.crash:
            raise TabFailed(self.crash)
        return await self.devtools.call(method, parameters, session=self.session, time_s=self.options.call_s)

    @property
    def session(self) -> str:
        return self.context.session if self.context is not None else ""

    # --- opening and closing ---

    async def open(self) -> None:
        host = host_of(self.options.url)
        self.context = next(
            (context for context in self.idle if context.host == host and context.may_be_used_again), None
        )
        if self.context is not None:
            self.idle.remove(self.context)
        else:
            self.context = await create(
                self.devtools, host, agent=self.options.agent, call_s=self.options.call_s
            )
        self.context.pages += 1
        self.tab = self.context.tab
        self.devtools.listen(self.context.session, self.hear)

    async def close(self) -> None:
        for task in list(self.pending):
            task.cancel()
        await asyncio.gather(*self.pending, return_exceptions=True)
        context = self.context
        if context is None or self.snapshot.must_restart or self.devtools.is_gone:
            return
        self.devtools.listen(context.session, _refusing(context))
        try:
            if self.snapshot.failure or not context.may_be_used_again:
                await context.close()
                return
            await context.clear(
                dict.fromkeys(origin_of(url) for url in self.snapshot.frames if url.startswith("http"))
            )
            self.idle.append(context)
            while len(self.idle) > MOST_IDLE_CONTEXTS:
                await self.idle.pop(0).close()
        except CallTimedOut:
            self.snapshot.must_restart = True
        except (CallFailed, BrowserGone):
            with suppress(CallFailed, BrowserGone, CallTimedOut):
                await context.close()

    # --- events of the tab ---

    def hear(self, event: str, values: Mapping[str, Any]) -> None:
        match event:
            case "Fetch.requestPaused":
                self.requested_at_s = time.monotonic()
                self.begin(self.serve(values))
            case "Page.lifecycleEvent" if values.get("name") == "load":
                self.loaded.add(values["loaderId"])
            case "Page.javascriptDialogOpening":
                accept = values.get("type") == "beforeunload"
                self.begin(self.quietly("Page.handleJavaScriptDialog", {"accept": accept}))
            case "Network.webSocketCreated" | "Network.webTransportCreated":
                _note(self.snapshot.sockets, values.get("url", ""))
            case "Inspector.targetCrashed":
                self.crash = "its tab crashed"

    def begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.pending.add(task)
        task.add_done_callback(self.pending.discard)

    async def quietly(self, method: str, parameters: Mapping[str, Any]) -> None:
        with suppress(CallFailed, CallTimedOut, BrowserGone, TabFailed):
            await self.call(method, parameters)

    async def serve(self, paused: Mapping[str, Any]) -> None:
        """Answer one request of the page."""
        request, number = paused["request"], paused["requestId"]
        url, network_id = request["url"], paused.get("networkId") or number
        redirected_from = self.addresses.get(network_id, "") if paused.get("redirectedRequestId") else ""
        self.addresses[network_id] = url
        is_main = paused.get("resourceType") == "Document" and paused.get("frameId") == self.tab
        if is_main and url.partition("#")[0] != self.options.url.partition("#")[0]:
            _note(self.snapshot.windows if self.is_clicking else self.snapshot.moves, url)
            await self.quietly("Fetch.fulfillRequest", {"requestId": number, "responseCode": 204})
            return
        reply = None
        self.requests += 1
        if self.requests <= MOST_REQUESTS:
            tab_request = TabRequest(
                url=url,
                method=request["method"],
                kind=paused.get("resourceType", ""),
                headers=request.get("headers", {}),
                redirected_from=redirected_from,
            )
            reply = await self.answer(tab_request)
        if reply is None:
            await self.quietly("Fetch.failRequest", {"requestId": number, "errorReason": "BlockedByClient"})
            return
        with suppress(CallFailed, CallTimedOut, BrowserGone):
            await self.devtools.send(
                "Fetch.fulfillRequest",
                _fulfilled(number, reply),
                session=self.session,
                time_s=self.options.call_s,
            )

    # --- the page ---

    async def visit(self) -> None:
        referrer = {"referrer": self.options.referrer} if self.options.referrer else {}
        going = asyncio.get_running_loop().create_task(
            self.devtools.call(
                "Page.navigate",
                {"url": self.options.url, **referrer},
                session=self.session,
                time_s=self.options.longest_s,
            )
        )
        try:
            await self.until(going.done, self.options.page_time_s / 2)
            if not going.done():
                raise TabFailed("it did not load in time")
            shown = going.result()
            if error := shown.get("errorText"):
                raise TabFailed(f"it did not load: {error}")
            await self.until(lambda: shown.get("loaderId") in self.loaded, self.options.page_time_s / 2)
        finally:
            if not going.done():
                going.cancel()
                await asyncio.gather(going, return_exceptions=True)
        await self.rest(self.options.page_time_s / 4)
        await self.behave()

    async def behave(self) -> None:
        world = await self.world(self.tab)
        if "scroll" in self.options.behaviours:
            await self.run(scripts.WAKE_LAZY, world)
            for _ in range(MOST_SCROLLS):
                moved = await self.run(scripts.SCROLL, world)
                await self.rest(self.options.page_time_s / 8, rest_s=0.15)
                if not moved or self.is_late():
                    break
            await self.run(scripts.TO_TOP, world)
        if "play" in self.options.behaviours and not self.is_late() and await self.run(scripts.PLAY, world):
            await self.rest(min(5.0, self.options.page_time_s / 8))
            await self.run(scripts.PAUSE, world)
        await self.rest(self.options.page_time_s / 8, rest_s=REST_S / 2)

    async def click(self) -> None:
        """Click each element with a click listener once, then read the frames again.

        Navigations and windows are noted, not followed.
        """
        world = await self.world(self.tab)
        document = await self.call("Runtime.evaluate", {"expression": "document", "contextId": world})
        listening = await self.call(
            "DOMDebugger.getEventListeners",
            {"objectId": document["result"]["objectId"], "depth": -1, "pierce": True},
        )
        nodes = dict.fromkeys(
            each.get("backendNodeId") for each in listening["listeners"] if each["type"] == "click"
        )
        nodes.pop(None, None)
        self.is_clicking = True
        for node in list(nodes)[:MOST_CLICKS]:
            if self.is_late():
                break
            with suppress(CallFailed):  # an earlier click may have removed it
                resolved = await self.call(
                    "DOM.resolveNode", {"backendNodeId": node, "executionContextId": world}
                )
                await self.call(
                    "Runtime.callFunctionOn",
                    {"objectId": resolved["object"]["objectId"], "functionDeclaration": scripts.CLICK},
                )
            await self.rest(self.options.page_time_s / 8, rest_s=0.15)
        before = dict(self.snapshot.frames)
        await self.read_frames()
        # Links that the clicks removed count as well.
        self.snapshot.frames = {
            url: before.get(url, "") + html for url, html in {**before, **self.snapshot.frames}.items()
        }

    async def until(self, is_true: Callable[[], bool], most_s: float) -> None:
        """Wait until it is true, at most `most_s` of the page's time."""
        spent_s = 0.0
        while not is_true() and spent_s < most_s:
            spent_s += await self.tick()

    async def rest(self, most_s: float, *, rest_s: float = REST_S) -> None:
        """Wait until there was no request for `rest_s`, at most `most_s` of the page's time."""
        spent_s, since_s = 0.0, time.monotonic()
        while spent_s < most_s and not self.is_late():
            spent_s += await self.tick()
            if not self.pending and time.monotonic() - max(self.requested_at_s, since_s) >= rest_s:
                return

    async def tick(self) -> float:
        """Wait a moment; return how much of it was the page's time."""
        if self.crash:
            raise TabFailed(self.crash)
        if self.devtools.is_gone:
            raise BrowserGone("the browser has ended")
        is_ours = bool(self.pending)
        await asyncio.sleep(TICK_S)
        if is_ours:
            self.requested_at_s = time.monotonic()
            return 0.0
        self.spent_s += TICK_S
        return TICK_S

    def is_late(self) -> bool:
        return self.spent_s >= self.options.page_time_s

    # --- reading ---

    async def read(self) -> None:
        await self.read_frames()
        text, title = await self.run(scripts.TEXT, await self.world(self.tab)) or ("", "")
        self.snapshot.text, self.snapshot.title = str(text), str(title)
        if self.options.picture:
            await self.take_picture()

    async def read_frames(self) -> None:
        tree = (await self.call("Page.getFrameTree"))["frameTree"]
        frames: dict[str, str] = {}
        for frame in _frames_of(tree)[:MOST_FRAMES]:
            with suppress(CallFailed):  # a frame may disappear at any moment
                url, html, encoding = await self.run(scripts.COLLECT, await self.world(frame))
                frames[url] = frames.get(url, "") + html
                self.snapshot.encodings[url] = encoding
        self.snapshot.frames = frames

    async def take_picture(self) -> None:
        size = (await self.call("Page.getLayoutMetrics"))["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": WIDTH,
            "height": max(HEIGHT, min(int(size["height"]), TALLEST_PX)),
            "scale": 1,
        }
        taken = {"format": "png", "clip": clip, "captureBeyondViewport": True}
        picture, mime = b64decode((await self.call("Page.captureScreenshot", taken))["data"]), "image/png"
        if len(picture) > LARGEST_PNG_BYTES:
            taken |= {"format": "jpeg", "quality": 80}
            picture, mime = (
                b64decode((await self.call("Page.captureScreenshot", taken))["data"]),
                "image/jpeg",
            )
        self.snapshot.picture, self.snapshot.picture_mime = picture, mime

    async def world(self, frame: str) -> int:
        world = await self.call("Page.createIsolatedWorld", {"frameId": frame, "worldName": "webdepot"})
        return int(world["executionContextId"])

    async def run(self, script: str, world: int) -> Any:
        evaluated = await self.call(
            "Runtime.evaluate", {"expression": script, "contextId": world, "returnByValue": True}
        )
        return evaluated.get("result", {}).get("value")


def _refusing(context: TabContext) -> Listener:
    """A listener that refuses the last requests of a page that is being left."""

    def hear(event: str, values: Mapping[str, Any]) -> None:
        if event == "Fetch.requestPaused":
            refused = dumps({"requestId": values["requestId"], "errorReason": "Aborted"}).encode()
            context.devtools.post("Fetch.failRequest", refused, session=context.session)
        elif event == "Page.javascriptDialogOpening":
            context.devtools.post("Page.handleJavaScriptDialog", b'{"accept":true}', session=context.session)

    return hear


def _frames_of(tree: Mapping[str, Any]) -> list[str]:
    frames = [str(tree["frame"]["id"])]
    for child in tree.get("childFrames", ()):
        frames += _frames_of(child)
    return frames


def _note(noted: list[str], url: str) -> None:
    if url and url not in noted and len(noted) < MOST_NOTED:
        noted.append(url)


def _fulfilled(number: str, reply: TabReply) -> bytes:
    headers = [{"name": name, "value": value} for name, value in reply.headers]
    head = dumps({"requestId": number, "responseCode": reply.status, "responseHeaders": headers}).encode()
    return b"".join((head[:-1], b',"body":"', b64encode(reply.body), b'"}'))
