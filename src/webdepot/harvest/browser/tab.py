"""One page in one tab: opened, made to show everything, read, and closed. What it asks for is answered by the
caller.

1. An empty room (`context`): a tab without cookies or storage of other pages, in which every request is
   stopped (`Fetch`).
2. The page is opened. Each request goes to `answer`; what comes back is given to the page, or the request
   fails there. A page that wants to go elsewhere, or opens a window, stays where it is: the address is noted.
3. It is given time to load and to come to rest; then the behaviours: lazy pictures, scrolling, media, and
   clicks last.
4. Frames are read as HTML, the page as text and as a picture.

Time that we take ourselves to answer (servers are asked politely, one after the other) is not the page's
time: its limit counts only while nothing is in our hands. All of it together has a limit, too.
"""

import asyncio
import time
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from json import dumps
from typing import Any

from webdepot.harvest.browser import context, scripts
from webdepot.harvest.browser.context import Room
from webdepot.harvest.browser.devtools import CALL_S, BrowserGone, CallFailed, CallTimedOut, Listener, Wire
from webdepot.harvest.browser.launch import HEIGHT, WIDTH
from webdepot.harvest.frontier import origin_of
from webdepot.url import host_of

TICK_S = 0.05
REST_S = 0.6
"""A page is at rest when it has asked for nothing so long."""
TALLEST_PX = 5000
LARGEST_PNG_BYTES = 3 << 20
"""A larger picture is taken again as JPEG."""
MOST_SCROLLS, MOST_CLICKS, MOST_FRAMES = 40, 30, 40
MOST_REQUESTS = 1000
"""Of one page; those after it fail."""
MOST_NOTED = 200
MOST_ROOMS = 8
"""Rooms that stand empty; beyond that the oldest is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request of a page."""

    url: str
    method: str
    kind: str
    """What the browser wants it for: Document, Stylesheet, Image, Media, Script, XHR, Fetch, EventSource, …
    """
    headers: Mapping[str, str]
    redirected_from: str
    """Address of the request that was redirected here; empty for most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the page gets; the body has no coding left."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


Answer = Callable[[Asked], Awaitable[Reply | None]]
"""None: it fails in the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How a page is to be looked at."""

    url: str
    referrer: str = ""
    page_time_s: float = 60.0
    longest_s: float = 600.0
    """With all that we take ourselves."""
    call_s: float = CALL_S
    behaviours: frozenset[str] = frozenset({"scroll", "play"})
    picture: bool = False
    agent: str = ""


@dataclass(slots=True)
class Sight:
    """What was seen of a page."""

    frames: dict[str, str] = field(default_factory=dict)
    """HTML by address; the page itself first."""
    text: str = ""
    picture: bytes = b""
    picture_mime: str = ""
    moves: list[str] = field(default_factory=list)
    """Where the page wanted to go by itself."""
    windows: list[str] = field(default_factory=list)
    """What it wanted to open, or led to by a click."""
    sockets: list[str] = field(default_factory=list)
    """WebSockets and the like, which have no way out."""
    failure: str = ""
    """Why it was not seen, or not wholly, in words; empty when all went well."""
    must_restart: bool = False
    """The browser is not to be trusted after this."""


class TabFailed(Exception):
    """The tab crashed or hangs."""


async def look(
    wire: Wire, view: View, answer: Answer, rooms: list[Room], windows_of: Callable[[str], list[str]]
) -> Sight:
    """Open the page and say what was seen. Raises BrowserGone alone; a tab that fails is a sight with its
    failure.

    `rooms` are those of the browser that stand empty; `windows_of` tells what the page in a tab wanted to
    open.
    """
    tab = _Tab(wire, view, answer, rooms)
    try:
        async with asyncio.timeout(view.longest_s):
            await tab.open()
            await tab.visit()
            await tab.read()
            if "click" in view.behaviours:
                await tab.click()
    except TimeoutError:
        tab.sight.failure = f"it took more than {view.longest_s:g} s"
    except CallTimedOut as error:
        tab.sight.failure, tab.sight.must_restart = f"it does not answer any more: {error}", True
    except TabFailed as error:
        tab.sight.failure = str(error)
    except CallFailed as error:
        tab.sight.failure = tab.crash or f"the browser refused: {error}"
    finally:
        await tab.close()
    for url in windows_of(tab.tab):
        _note(tab.sight.windows, url)
    return tab.sight


class _Tab:
    def __init__(self, wire: Wire, view: View, answer: Answer, rooms: list[Room]) -> None:
        self.wire, self.view, self.answer, self.rooms = wire, view, answer, rooms
        self.sight = Sight()
        self.crash = ""
        self.room: Room | None = None
        self.tab = ""
        self.loaded: set[str] = set()
        """Documents that are loaded; the one before may still say so."""
        self.is_clicking = False
        self.in_hand: set[asyncio.Task[None]] = set()
        self.asked_at_s = 0.0
        self.requests = 0
        self.spent_s = 0.0
        self.ways: dict[str, str] = {}
        """Network id -> address that was asked under it last, to know what redirected."""

    async def call(self, method: str, parameters: Mapping[str, Any] | None = None) -> Any:
        if self.crash:
            raise TabFailed(self.crash)
        return await self.wire.call(method, parameters, session=self.session, time_s=self.view.call_s)

    @property
    def session(self) -> str:
        return self.room.session if self.room is not None else ""

    # --- opening and closing ---

    async def open(self) -> None:
        host = host_of(self.view.url)
        self.room = next((room for room in self.rooms if room.host == host and room.may_be_used_again), None)
        if self.room is not None:
            self.rooms.remove(self.room)
        else:
            self.room = await context.make(self.wire, host, agent=self.view.agent, call_s=self.view.call_s)
        self.room.pages += 1
        self.tab = self.room.tab
        self.wire.listen(self.room.session, self.hear)

    async def close(self) -> None:
        for task in list(self.in_hand):
            task.cancel()
        await asyncio.gather(*self.in_hand, return_exceptions=True)
        room = self.room
        if room is None or self.sight.must_restart or self.wire.is_gone:
            return
        self.wire.listen(room.session, _refusing(room))
        try:
            if self.sight.failure or not room.may_be_used_again:
                await room.close()
                return
            await room.empty(
                dict.fromkeys(origin_of(url) for url in self.sight.frames if url.startswith("http"))
            )
            self.rooms.append(room)
            while len(self.rooms) > MOST_ROOMS:
                await self.rooms.pop(0).close()
        except CallTimedOut:
            self.sight.must_restart = True
        except (CallFailed, BrowserGone):
            with suppress(CallFailed, BrowserGone, CallTimedOut):
                await room.close()

    # --- what the tab says ---

    def hear(self, event: str, said: Mapping[str, Any]) -> None:
        match event:
            case "Fetch.requestPaused":
                self.asked_at_s = time.monotonic()
                self.begin(self.serve(said))
            case "Page.lifecycleEvent" if said.get("name") == "load":
                self.loaded.add(said["loaderId"])
            case "Page.javascriptDialogOpening":
                accept = said.get("type") == "beforeunload"
                self.begin(self.quietly("Page.handleJavaScriptDialog", {"accept": accept}))
            case "Network.webSocketCreated" | "Network.webTransportCreated":
                _note(self.sight.sockets, said.get("url", ""))
            case "Inspector.targetCrashed":
                self.crash = "its tab crashed"

    def begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.in_hand.add(task)
        task.add_done_callback(self.in_hand.discard)

    async def quietly(self, method: str, parameters: Mapping[str, Any]) -> None:
        with suppress(CallFailed, CallTimedOut, BrowserGone, TabFailed):
            await self.call(method, parameters)

    async def serve(self, paused: Mapping[str, Any]) -> None:
        """Answer one request of the page."""
        request, number = paused["request"], paused["requestId"]
        url, way = request["url"], paused.get("networkId") or number
        before = self.ways.get(way, "") if paused.get("redirectedRequestId") else ""
        self.ways[way] = url
        is_main = paused.get("resourceType") == "Document" and paused.get("frameId") == self.tab
        if is_main and url.partition("#")[0] != self.view.url.partition("#")[0]:
            _note(self.sight.windows if self.is_clicking else self.sight.moves, url)
            await self.quietly("Fetch.fulfillRequest", {"requestId": number, "responseCode": 204})
            return
        reply = None
        self.requests += 1
        if self.requests <= MOST_REQUESTS:
            asked = Asked(
                url=url,
                method=request["method"],
                kind=paused.get("resourceType", ""),
                headers=request.get("headers", {}),
                redirected_from=before,
            )
            reply = await self.answer(asked)
        if reply is None:
            await self.quietly("Fetch.failRequest", {"requestId": number, "errorReason": "BlockedByClient"})
            return
        with suppress(CallFailed, CallTimedOut, BrowserGone):
            await self.wire.send(
                "Fetch.fulfillRequest",
                _fulfilled(number, reply),
                session=self.session,
                time_s=self.view.call_s,
            )

    # --- the visit ---

    async def visit(self) -> None:
        referrer = {"referrer": self.view.referrer} if self.view.referrer else {}
        going = asyncio.get_running_loop().create_task(
            self.wire.call(
                "Page.navigate",
                {"url": self.view.url, **referrer},
                session=self.session,
                time_s=self.view.longest_s,
            )
        )
        try:
            await self.until(going.done, self.view.page_time_s / 2)
            if not going.done():
                raise TabFailed("it was never shown")
            shown = going.result()
            if went := shown.get("errorText"):
                raise TabFailed(f"it was not shown: {went}")
            await self.until(lambda: shown.get("loaderId") in self.loaded, self.view.page_time_s / 2)
        finally:
            if not going.done():
                going.cancel()
                await asyncio.gather(going, return_exceptions=True)
        await self.rest(self.view.page_time_s / 4)
        await self.behave()

    async def behave(self) -> None:
        world = await self.world(self.tab)
        if "scroll" in self.view.behaviours:
            await self.run(scripts.WAKE_LAZY, world)
            for _ in range(MOST_SCROLLS):
                moved = await self.run(scripts.SCROLL, world)
                await self.rest(self.view.page_time_s / 8, rest_s=0.15)
                if not moved or self.is_late():
                    break
            await self.run(scripts.TO_TOP, world)
        if "play" in self.view.behaviours and not self.is_late() and await self.run(scripts.PLAY, world):
            await self.rest(min(5.0, self.view.page_time_s / 8))
            await self.run(scripts.PAUSE, world)
        await self.rest(self.view.page_time_s / 8, rest_s=REST_S / 2)

    async def click(self) -> None:
        """Click what listens for clicks, each once; what comes of it is read anew. Links and windows are
        noted, not followed.
        """
        world = await self.world(self.tab)
        found = await self.call("Runtime.evaluate", {"expression": "document", "contextId": world})
        listening = await self.call(
            "DOMDebugger.getEventListeners",
            {"objectId": found["result"]["objectId"], "depth": -1, "pierce": True},
        )
        nodes = dict.fromkeys(
            each.get("backendNodeId") for each in listening["listeners"] if each["type"] == "click"
        )
        nodes.pop(None, None)
        self.is_clicking = True
        for node in list(nodes)[:MOST_CLICKS]:
            if self.is_late():
                break
            with suppress(CallFailed):  # it may have gone with an earlier click
                there = await self.call(
                    "DOM.resolveNode", {"backendNodeId": node, "executionContextId": world}
                )
                await self.call(
                    "Runtime.callFunctionOn",
                    {"objectId": there["object"]["objectId"], "functionDeclaration": scripts.CLICK},
                )
            await self.rest(self.view.page_time_s / 8, rest_s=0.15)
        before = dict(self.sight.frames)
        await self.read_frames()
        # What was there before the clicks and is no more leads somewhere, too.
        self.sight.frames = {
            url: before.get(url, "") + html for url, html in {**before, **self.sight.frames}.items()
        }

    async def until(self, is_true: Callable[[], bool], most_s: float) -> None:
        """Until it is so, at most so much of the page's own time."""
        spent_s = 0.0
        while not is_true() and spent_s < most_s:
            spent_s += await self.tick()

    async def rest(self, most_s: float, *, rest_s: float = REST_S) -> None:
        """Until nothing was asked for some time, at most so much of the page's own time."""
        spent_s, since_s = 0.0, time.monotonic()
        while spent_s < most_s and not self.is_late():
            spent_s += await self.tick()
            if not self.in_hand and time.monotonic() - max(self.asked_at_s, since_s) >= rest_s:
                return

    async def tick(self) -> float:
        """A moment; how much of it was the page's own."""
        if self.crash:
            raise TabFailed(self.crash)
        if self.wire.is_gone:
            raise BrowserGone("the browser has ended")
        is_ours = bool(self.in_hand)
        await asyncio.sleep(TICK_S)
        if is_ours:
            self.asked_at_s = time.monotonic()
            return 0.0
        self.spent_s += TICK_S
        return TICK_S

    def is_late(self) -> bool:
        return self.spent_s >= self.view.page_time_s

    # --- reading ---

    async def read(self) -> None:
        await self.read_frames()
        self.sight.text = str(await self.run(scripts.TEXT, await self.world(self.tab)) or "")
        if self.view.picture:
            await self.take_picture()

    async def read_frames(self) -> None:
        tree = (await self.call("Page.getFrameTree"))["frameTree"]
        frames: dict[str, str] = {}
        for frame in _frames_of(tree)[:MOST_FRAMES]:
            with suppress(CallFailed):  # a frame may go at any moment
                url, html = await self.run(scripts.COLLECT, await self.world(frame))
                frames[url] = frames.get(url, "") + html
        self.sight.frames = frames

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
        self.sight.picture, self.sight.picture_mime = picture, mime

    async def world(self, frame: str) -> int:
        made = await self.call("Page.createIsolatedWorld", {"frameId": frame, "worldName": "webdepot"})
        return int(made["executionContextId"])

    async def run(self, script: str, world: int) -> Any:
        done = await self.call(
            "Runtime.evaluate", {"expression": script, "contextId": world, "returnByValue": True}
        )
        return done.get("result", {}).get("value")


def _refusing(room: Room) -> Listener:
    """Hears what a page still asks while it is left."""

    def hear(event: str, said: Mapping[str, Any]) -> None:
        if event == "Fetch.requestPaused":
            refused = dumps({"requestId": said["requestId"], "errorReason": "Aborted"}).encode()
            room.wire.post("Fetch.failRequest", refused, session=room.session)
        elif event == "Page.javascriptDialogOpening":
            room.wire.post("Page.handleJavaScriptDialog", b'{"accept":true}', session=room.session)

    return hear


def _frames_of(tree: Mapping[str, Any]) -> list[str]:
    found = [str(tree["frame"]["id"])]
    for child in tree.get("childFrames", ()):
        found += _frames_of(child)
    return found


def _note(noted: list[str], url: str) -> None:
    if url and url not in noted and len(noted) < MOST_NOTED:
        noted.append(url)


def _fulfilled(number: str, reply: Reply) -> bytes:
    headers = [{"name": name, "value": value} for name, value in reply.headers]
    head = dumps({"requestId": number, "responseCode": reply.status, "responseHeaders": headers}).encode()
    return b"".join((head[:-1], b',"body":"', b64encode(reply.body), b'"}'))
