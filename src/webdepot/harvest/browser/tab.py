"""One page in one tab: opened, made to load everything, read, and closed. The caller answers its requests.

1. A clean tab (`context`), without cookies or storage of other pages, in which every request is paused
   (`Fetch`).
2. The page is opened. Each request goes to `answer`; the page gets the reply, or the request fails. A page
   that tries to go elsewhere, or to open a window, stays where it is: the address is noted.
3. It gets time to load and to become idle; then the `behaviours`: consent banner, lazy images,
   scrolling, media.
4. Frames are read as HTML, the page as text and as a screenshot.
5. What a reader could click is clicked (`exploration`). Addresses that the page sets for itself (history API)
   are noted as links; text that becomes visible is added.

The time that we take to answer requests (servers are asked politely, one after the other) does not count as
the page's time: its limit runs only while no request is pending. There is also a limit for everything
together.
"""

import asyncio
import logging
from base64 import b64decode
from collections.abc import Callable, Mapping
from contextlib import suppress
from json import dumps
from typing import Any

from webdepot.harvest.browser import behaviours, scripts
from webdepot.harvest.browser.behaviours import REST_S
from webdepot.harvest.browser.context import TabContext, create
from webdepot.harvest.browser.devtools import (
    BrowserGone,
    CallFailed,
    CallTimedOut,
    DevTools,
    Listener,
)
from webdepot.harvest.browser.endless import MOST_ROUTES, MOST_WINDOWS, EndlessWatch
from webdepot.harvest.browser.exploration import Exploration, PageHandle, explore_script
from webdepot.harvest.browser.launch import HEIGHT, WIDTH
from webdepot.harvest.browser.page_snapshot import PageOptions, PageSnapshot, note_address
from webdepot.harvest.browser.tab_request import AnswerRequest, TabRequest, fulfilment
from webdepot.url import host_of, origin_of

_log = logging.getLogger(__name__)
TICK_S = 0.05
DELIVERY_S, WORKER_S = 3.0, 1.0
"""How much of the page's time to wait for the end of a request: the browser does not always report it, and
never for requests of workers.
"""
TALLEST_PX = 5000
LARGEST_PNG_BYTES = 3 << 20
"""A larger screenshot is taken again as JPEG."""
MOST_FRAMES = 40
MOST_REQUESTS = 1000
"""Most requests of one page; further ones fail."""
MOST_RELOADS = 3
"""How often a page may load itself again; then it stays as it is."""
MOST_ADDRESSES, LONGEST_ADDRESS = 10_000, 2_000
"""Addresses requested beyond this number do not count as new, and longer ones are cut."""
MOST_SETTLES = 5
MOST_IDLE_CONTEXTS = 8
"""Unused tabs that are kept; beyond that the oldest is closed."""


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

    `idle` are the unused tabs of the browser; `windows_of` closes the windows that a page opened in a browser
    context, and gives their addresses.
    """
    tab = _Tab(devtools, options, answer, idle)
    try:
        async with asyncio.timeout(options.longest_s):
            await tab.open()
            await tab.visit()
            await tab.read()
            tab.note_windows(windows_of)
            if "click" in options.behaviours:
                await tab.click()
    except TimeoutError:
        tab.snapshot.failure = f"it took more than {options.longest_s:g} s"
    except CallTimedOut as error:
        _log.info("%s: %s", options.url, error)
        silent = f"it stopped responding (no answer within {options.call_s:g} s)"
        tab.snapshot.failure, tab.snapshot.must_restart = silent, True
    except TabFailed as error:
        tab.snapshot.failure = str(error)
    except CallFailed as error:
        tab.snapshot.failure = tab.crash or f"the browser reported an error: {error}"
    except asyncio.CancelledError:  # the harvest is stopped
        tab.is_abandoned = True
        raise
    finally:
        tab.note_windows(windows_of)
        await tab.close()
    if tab.is_read:
        tab.snapshot.click_failure, tab.snapshot.failure = tab.snapshot.failure, ""
    tab.snapshot.must_repeat = bool(tab.crash and tab.snapshot.failure and tab.is_used)
    return tab.snapshot


class _Tab:
    def __init__(
        self, devtools: DevTools, options: PageOptions, answer: AnswerRequest, idle: list[TabContext]
    ) -> None:
        self.devtools, self.options, self.answer, self.idle = devtools, options, answer, idle
        self.snapshot = PageSnapshot()
        self.crash = ""
        self.is_read = False
        self.is_abandoned = False
        """Whether the crawl was stopped: the tab is closed without waiting for its page."""
        self.context: TabContext | None = None
        self.is_used = False
        """Whether it has shown other pages."""
        self.tab = ""
        self.loaded: set[str] = set()
        """Ids of loaded documents; the previous document may still send its event."""
        self.is_clicking = False
        self.pending: set[asyncio.Task[None]] = set()
        self.requests = 0
        self.loads = 0
        """How often the page itself was loaded."""
        self.endless = EndlessWatch()
        self.spent_s = 0.0
        """Seconds of the page's time that have passed."""
        self.active_at_s = 0.0
        self.loading: dict[str, float] = {}
        """Network id of a request whose reply the page does not have yet -> how long to wait for that."""
        self.asked: dict[str, None] = {}
        """Addresses that it asked for, tried to open, or set for itself."""
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
        usable = (context for context in self.idle if context.host == host and context.may_be_used_again)
        self.context = None if self.options.in_new_tab else next(usable, None)
        self.is_used = self.context is not None
        if self.context is not None:
            self.idle.remove(self.context)
        else:
            self.context = await create(
                self.devtools, host, agent=self.options.agent, call_s=self.options.call_s
            )
        self.context.pages += 1
        self.tab = self.context.tab
        self.devtools.listen(self.context.session, self.hear)

    def note_windows(self, windows_of: Callable[[str], list[str]]) -> None:
        """Note the addresses of the windows that the page opened since the last call."""
        windows = windows_of(self.context.context_id) if self.context is not None else []
        if self.context is not None and len(windows) >= MOST_WINDOWS:
            self.context.is_spent = True  # its windows may go on
            self.endless.note_windows()
            if not self.is_clicking:
                return
        for url in windows:
            note_address(self.snapshot.windows, url)

    async def close(self) -> None:
        for task in list(self.pending):
            task.cancel()
        await asyncio.gather(*self.pending, return_exceptions=True)
        context = self.context
        if context is None or self.snapshot.must_restart or self.devtools.is_gone:
            return
        if self.is_abandoned:
            context.abandon()
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
            case "Network.requestWillBeSent" if values["request"]["url"].startswith("http"):
                # Reported before the result of the script that made it, unlike the paused request.
                self.loading[values["requestId"]] = self.spent_s + DELIVERY_S
                self.note_asked(values["request"]["url"])
            case "Fetch.requestPaused":
                self.begin(self.serve(values))
            case "Page.lifecycleEvent" if values.get("name") == "load":
                self.loaded.add(values["loaderId"])
            case "Network.loadingFinished" | "Network.loadingFailed":
                if self.loading.pop(values.get("requestId", ""), None) is not None:
                    self.active_at_s = self.spent_s
            case "Page.navigatedWithinDocument" if values.get("frameId") == self.tab:
                self.note_route(values["url"])
            case "Page.javascriptDialogOpening":
                self.answer_dialog(str(values.get("type")))
            case "Network.webSocketCreated" | "Network.webTransportCreated":
                note_address(self.snapshot.sockets, values.get("url", ""))
            case "Inspector.targetCrashed":
                self.crash = "its tab crashed"
                self.devtools.fail(self.session, self.crash)

    def note_route(self, url: str) -> None:
        may_go_on = self.endless.routes <= MOST_ROUTES if self.is_clicking else self.endless.note_route()
        if not may_go_on:
            self.snapshot.routes.clear()
            return
        note_address(self.snapshot.routes, url)
        self.note_asked(url)
        self.active_at_s = self.spent_s

    def answer_dialog(self, kind: str) -> None:
        if not self.endless.note_dialog():
            self.stop_scripts()
        self.post("Page.handleJavaScriptDialog", {"accept": kind == "beforeunload"})

    def stop_scripts(self) -> None:
        """End the running script of the page, and run no others; ours still run."""
        if self.context is not None:
            self.context.is_spent = True
        self.post("Emulation.setScriptExecutionDisabled", {"value": True})
        self.post("Runtime.terminateExecution", {})

    def post(self, method: str, parameters: Mapping[str, Any]) -> None:
        self.devtools.post(method, dumps(parameters).encode(), session=self.session)

    def note_asked(self, url: str) -> None:
        if len(self.asked) < MOST_ADDRESSES:
            self.asked[url[:LONGEST_ADDRESS]] = None

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
        self.note_asked(url)
        is_main = paused.get("resourceType") == "Document" and paused.get("frameId") == self.tab
        is_elsewhere = url.partition("#")[0] != self.options.url.partition("#")[0]
        self.loads += is_main and not is_elsewhere
        # After a click, a page that would only be loaded again stays as it is, too.
        if is_main and (is_elsewhere or self.is_clicking or self.loads > 1 + MOST_RELOADS):
            if request["method"] == "GET" and is_elsewhere:
                note_address(self.snapshot.windows if self.is_clicking else self.snapshot.moves, url)
            await self.quietly("Fetch.fulfillRequest", {"requestId": number, "responseCode": 204})
            return
        reply = None
        self.requests += 1
        if self.requests <= MOST_REQUESTS:
            self.addresses[network_id] = url
            tab_request = TabRequest(
                url=url,
                method=request["method"],
                kind=paused.get("resourceType", ""),
                headers=request.get("headers", {}),
                body=b"".join(
                    b64decode(part.get("bytes", "")) for part in request.get("postDataEntries", ())
                ),
                redirected_from=redirected_from,
            )
            reply = await self.answer(tab_request)
        if reply is None:
            await self.quietly("Fetch.failRequest", {"requestId": number, "errorReason": "BlockedByClient"})
            return
        self.loading.setdefault(network_id, self.spent_s + WORKER_S)
        with suppress(CallFailed, CallTimedOut, BrowserGone):
            await self.devtools.send(
                "Fetch.fulfillRequest",
                fulfilment(number, reply),
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
        await behaviours.perform(self, await self.world(self.tab))

    async def click(self) -> None:
        """Click what a reader could click, and add what it shows. Navigations and windows are noted, not
        followed.
        """
        if self.endless.reason:
            raise TabFailed(self.endless.reason)
        world = await self.world(self.tab)
        await self.run(explore_script(), world)
        self.is_clicking = True
        page = PageHandle(
            host=host_of(self.options.url),
            call=self.call,
            run=lambda script: self.run(script, world),
            world=world,
            settle=lambda rest_s: self.settle(world, rest_s),
            is_late=self.is_late,
            may_follow=self.options.may_follow,
            plays="play" in self.options.behaviours,
            addresses=self.asked,
        )
        exploration = Exploration(page, self.options.memory)
        await exploration.run()
        if not exploration.clicks:
            return
        with suppress(CallFailed):
            await self.run(scripts.PAUSE, world)
        if self.context is not None:
            self.context.is_spent = exploration.has_moved
        self.snapshot.text = "\n".join([self.snapshot.text, *exploration.lines])[: scripts.MOST_TEXT_LETTERS]
        before = dict(self.snapshot.frames)
        with suppress(CallFailed):  # a click may have ended the page
            await self.read_frames()
        # Links that the clicks removed count as well.
        after, self.snapshot.frames = self.snapshot.frames, before
        for url, html in after.items():
            if html != before.get(url):
                before[url] = before.get(url, "") + html
        shown = next(iter(self.snapshot.frames), self.options.url)
        self.snapshot.frames[shown] = self.snapshot.frames.get(shown, "") + "".join(exploration.links)

    async def until(self, is_true: Callable[[], bool], most_s: float) -> None:
        """Wait until `is_true` returns true, at most `most_s` of the page's time."""
        until_s = self.spent_s + most_s
        while not is_true() and self.spent_s < until_s:
            await self.tick()

    async def rest(self, most_s: float, *, rest_s: float = REST_S) -> None:
        """Wait until there has been no request for `rest_s`, at most `most_s` of the page's time."""
        until_s, self.active_at_s = self.spent_s + most_s, self.spent_s
        while self.spent_s < until_s and not self.is_late():
            await self.tick()
            if not self.is_loading() and self.spent_s - self.active_at_s >= rest_s:
                return

    def is_loading(self) -> bool:
        return any(self.spent_s < until_s for until_s in self.loading.values())

    async def settle(self, world: int, rest_s: float) -> None:
        """Wait after a click until there are no requests and the scripts of the page are idle."""
        for _ in range(MOST_SETTLES):
            await self.rest(self.options.page_time_s / 8, rest_s=rest_s)
            before = len(self.asked)
            await self.run(scripts.IDLE, world)
            if not self.is_loading() and not self.pending and len(self.asked) == before:
                return

    async def tick(self) -> None:
        """Wait a moment. It is the page's time, unless we are answering one of its requests."""
        if self.crash:
            raise TabFailed(self.crash)
        if self.devtools.is_gone:
            raise BrowserGone("the browser has ended")
        is_ours = bool(self.pending)
        await asyncio.sleep(TICK_S)
        if is_ours:
            self.active_at_s = self.spent_s
        else:
            self.spent_s += TICK_S

    def is_late(self) -> bool:
        return self.spent_s >= self.options.page_time_s

    # --- reading ---

    async def read(self) -> None:
        await self.read_frames()
        world = await self.world(self.tab)
        await self.run(scripts.IDLE, world)
        text, title = await self.run(scripts.TEXT, world) or ("", "")
        self.snapshot.text, self.snapshot.title = str(text), str(title)
        if self.options.picture:
            await self.take_picture()
        self.is_read = True

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
            "Runtime.evaluate",
            {"expression": script, "contextId": world, "returnByValue": True, "awaitPromise": True},
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
