"""The browser of a harvest: started before its first page, and replaced when it is no longer reliable.

A browser is replaced after some hundred pages (its memory grows), when a call was not answered in time, and
when it died. Pages that were open in a browser that died are opened once more in the next one; a page whose
tab crashes is opened again in a new tab if the tab had shown other pages, otherwise not.
"""

import asyncio
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from webdepot.errors import ConfigError
from webdepot.harvest.browser import launch
from webdepot.harvest.browser import tab as browser_tab
from webdepot.harvest.browser.context import EVERY_REQUEST, TabContext
from webdepot.harvest.browser.devtools import CALL_S, BrowserGone, CallFailed, CallTimedOut, DevTools
from webdepot.harvest.browser.endless import MOST_WINDOWS
from webdepot.harvest.browser.page_snapshot import PageOptions, PageSnapshot
from webdepot.harvest.browser.tab_request import AnswerRequest

MOST_PAGES = 200
START_S = 30.0
_log = logging.getLogger(__name__)


class _Instance:
    """One browser process, from its start to its end."""

    def __init__(self, process: launch.BrowserProcess, devtools: DevTools) -> None:
        self.process = process
        self.devtools = devtools
        self.pages = 0
        self.tabs = 0
        self.is_over = False
        self.agent = ""
        self._open_windows: dict[str, str] = {}
        """Window that a page opened, until its address is known -> browser context of the page."""
        self._windows: dict[str, list[str]] = {}
        """Browser context -> addresses of the windows that its page, and these windows, opened; empty for a
        window without one.
        """
        self.idle: list[TabContext] = []
        self.work: set[asyncio.Task[Any]] = set()

    async def end(self) -> None:
        self.is_over = True
        self.devtools.close()
        for task in list(self.work):
            task.cancel()
        await asyncio.gather(*self.work, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(None, self.process.end)

    # --- events that belong to none of our tabs ---

    def hear(self, event: str, values: Mapping[str, Any]) -> None:
        match event:
            case "Fetch.requestPaused":
                # Requests of windows, shared workers and service workers are refused.
                refused = {"requestId": values["requestId"], "errorReason": "BlockedByClient"}
                self.begin("Fetch.failRequest", refused)
                self._note_address(values.get("frameId", ""), values["request"]["url"])
            case "Target.targetCreated" if values["targetInfo"].get("openerId"):
                self._note_window(values["targetInfo"]["targetId"], values["targetInfo"]["browserContextId"])

    def _note_window(self, window: str, context: str) -> None:
        windows = self._windows.setdefault(context, [])
        if len(windows) + list(self._open_windows.values()).count(context) < MOST_WINDOWS:
            self._open_windows[window] = context
        else:
            self.begin("Target.closeTarget", {"targetId": window})

    def _note_address(self, window: str, url: str) -> None:
        if context := self._open_windows.pop(window, ""):
            self._windows[context].append(url)
            self.begin("Target.closeTarget", {"targetId": window})

    def windows_of(self, context: str) -> list[str]:
        """The addresses of the windows that a page opened, which are closed; may be called once, at its
        end.
        """
        for window in [window for window, of in self._open_windows.items() if of == context]:
            self._note_address(window, "")
        return self._windows.pop(context, [])

    def begin(self, method: str, parameters: Mapping[str, Any]) -> None:
        task = asyncio.get_running_loop().create_task(self._quietly(method, parameters))
        self.work.add(task)
        task.add_done_callback(self.work.discard)

    async def _quietly(self, method: str, parameters: Mapping[str, Any]) -> None:
        with suppress(CallFailed, CallTimedOut, BrowserGone):
            await self.devtools.call(method, parameters)


class Browser:
    """Opens pages, in one browser process at a time. For one running event loop."""

    def __init__(
        self,
        program: Path,
        *,
        sandbox: bool,
        tabs: int,
        agent: str,
        most_pages: int = MOST_PAGES,
        call_s: float = CALL_S,
    ) -> None:
        """`agent` is our user agent, which is appended to the browser's own. `call_s` is the time limit of a
        call.
        """
        self._call_s = call_s
        self._program = program
        self._sandbox = sandbox
        self._agent = agent
        self._most_pages = most_pages
        self._tabs = asyncio.Semaphore(tabs)
        self._starting = asyncio.Lock()
        self._current: _Instance | None = None
        self._instances: set[_Instance] = set()
        self.starts = 0

    async def begin(self) -> None:
        """Start the first browser. ConfigError if it cannot be started: better now than at every page."""
        try:
            await self._running()
        except (BrowserGone, OSError) as error:
            raise ConfigError(
                f"{self._program} does not start, but pages are to be opened in it. Its sandbox needs user "
                "namespaces, which some containers forbid. If the machine itself is a sandbox, "
                "turn Chromium's off: [harvest] browser_sandbox = false. "
                f"To see other reasons, run: {self._program} --headless --dump-dom about:blank"
            ) from error

    async def open_page(self, options: PageOptions, answer: AnswerRequest) -> PageSnapshot:
        """Open a page and return its content. Does not raise for browser faults: they are in the snapshot."""
        async with self._tabs:
            for _ in range(2):
                try:
                    snapshot = await self._open_page(options, answer)
                    if not snapshot.must_repeat:
                        return snapshot
                    return await self._open_page(replace(options, in_new_tab=True), answer)
                except BrowserGone:
                    continue
                except OSError as error:
                    return PageSnapshot(failure=f"the browser did not start: {error.strerror}")
            return PageSnapshot(failure="the browser died twice")

    async def _open_page(self, options: PageOptions, answer: AnswerRequest) -> PageSnapshot:
        instance = await self._running()
        instance.pages += 1
        instance.tabs += 1
        try:
            snapshot = await browser_tab.open_page(
                instance.devtools,
                replace(options, agent=instance.agent, call_s=self._call_s),
                answer,
                instance.idle,
                instance.windows_of,
            )
            if snapshot.must_restart:
                # A tab that hangs may keep a core busy; the pages of other tabs are opened again.
                reason = snapshot.failure or snapshot.click_failure or "it did not close"
                _log.warning("browser restarted url=%s reason=%s", options.url, reason)
                await self._end(instance)
            return snapshot
        finally:
            instance.tabs -= 1
            if instance.devtools.is_gone or instance.pages >= self._most_pages:
                self._retire(instance)
            if instance.is_over and not instance.tabs:
                await self._end(instance)

    async def _running(self) -> _Instance:
        async with self._starting:
            if self._current is None or self._current.is_over or self._current.devtools.is_gone:
                self._current = await self._start()
            return self._current

    async def _start(self) -> _Instance:
        loop = asyncio.get_running_loop()
        process = await loop.run_in_executor(None, lambda: launch.start(self._program, sandbox=self._sandbox))
        instance = _Instance(process, await DevTools.open(process.commands, process.answers))
        self._instances.add(instance)
        self.starts += 1
        try:
            version = await instance.devtools.call("Browser.getVersion", time_s=START_S)
            name = version["userAgent"].replace("HeadlessChrome", "Chrome")
            instance.agent = f"{name} {_product(self._agent)}".strip()
            instance.devtools.listen("", instance.hear)
            await instance.devtools.call("Fetch.enable", EVERY_REQUEST)
            await instance.devtools.call("Target.setDiscoverTargets", {"discover": True})
        except (CallTimedOut, CallFailed, BrowserGone) as error:
            await self._end(instance)
            raise BrowserGone(f"the browser did not start: {error}") from error
        except BaseException:
            await self._end(instance)
            raise
        return instance

    def _retire(self, instance: _Instance) -> None:
        """Open no more pages in this browser; it is closed with its last tab."""
        instance.is_over = True
        if self._current is instance:
            self._current = None

    async def _end(self, instance: _Instance) -> None:
        if instance in self._instances:
            self._instances.discard(instance)
            await asyncio.shield(instance.end())

    async def close(self) -> None:
        """End all browsers."""
        for instance in list(self._instances):
            await self._end(instance)


def _product(agent: str) -> str:
    """The first word of our name: `Webdepot/0.1.0`."""
    return re.split(r"[\s(]", agent, maxsplit=1)[0]
