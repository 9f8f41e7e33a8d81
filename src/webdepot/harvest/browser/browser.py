"""A browser for a harvest: started before its first page, so many tabs at once, and a new one whenever the
old is not to be trusted.

A browser is replaced after some hundred pages (they grow), when a call was not answered in time, and when it
died. Pages that were open in one that died are opened once more in the next; then they are given up, as a
page whose tab crashes is at once.
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
from webdepot.harvest.browser.context import EVERY_REQUEST, Room
from webdepot.harvest.browser.devtools import CALL_S, BrowserGone, CallFailed, CallTimedOut, Wire
from webdepot.harvest.browser.tab import Answer, Sight, View

MOST_PAGES = 200
START_S = 30.0
_log = logging.getLogger(__name__)


class _Life:
    """One browser from its start to its end."""

    def __init__(self, process: launch.Process, wire: Wire) -> None:
        self.process = process
        self.wire = wire
        self.pages = 0
        self.tabs = 0
        self.is_over = False
        self.agent = ""
        self._openers: dict[str, str] = {}
        """Window that a page opened -> the tab of that page."""
        self._windows: dict[str, list[str]] = {}
        """Tab -> addresses of windows that its page opened."""
        self.rooms: list[Room] = []
        self.work: set[asyncio.Task[Any]] = set()

    async def end(self) -> None:
        self.is_over = True
        self.wire.close()
        for task in list(self.work):
            task.cancel()
        await asyncio.gather(*self.work, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(None, self.process.end)

    # --- what belongs to no tab of ours ---

    def hear(self, event: str, said: Mapping[str, Any]) -> None:
        match event:
            case "Fetch.requestPaused":
                # Windows, shared workers and service workers: none of them is ours to serve.
                self.begin(
                    "Fetch.failRequest", {"requestId": said["requestId"], "errorReason": "BlockedByClient"}
                )
                self._note_window(said.get("frameId", ""), said["request"]["url"])
            case "Target.targetCreated" if said["targetInfo"].get("openerId"):
                self._openers[said["targetInfo"]["targetId"]] = said["targetInfo"]["openerId"]

    def _note_window(self, window: str, url: str) -> None:
        if opener := self._openers.pop(window, ""):
            self._windows.setdefault(opener, []).append(url)
            self.begin("Target.closeTarget", {"targetId": window})

    def windows_of(self, tab: str) -> list[str]:
        """What the page in a tab wanted to open; asked once, at its end."""
        return self._windows.pop(tab, [])

    def begin(self, method: str, parameters: Mapping[str, Any]) -> None:
        task = asyncio.get_running_loop().create_task(self._quietly(method, parameters))
        self.work.add(task)
        task.add_done_callback(self.work.discard)

    async def _quietly(self, method: str, parameters: Mapping[str, Any]) -> None:
        with suppress(CallFailed, CallTimedOut, BrowserGone):
            await self.wire.call(method, parameters)


class Browser:
    """Made and used inside one running event loop."""

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
        """`agent` is our name; pages see it behind the browser's own. A call that is not answered within
        `call_s` ends the browser.
        """
        self._call_s = call_s
        self._program = program
        self._sandbox = sandbox
        self._agent = agent
        self._most_pages = most_pages
        self._tabs = asyncio.Semaphore(tabs)
        self._starting = asyncio.Lock()
        self._life: _Life | None = None
        self._lives: set[_Life] = set()
        self.starts = 0

    async def begin(self) -> None:
        """Start the first one. ConfigError when it cannot be started at all: better now than at every page."""
        try:
            await self._living()
        except (BrowserGone, OSError) as error:
            raise ConfigError(
                f"{self._program} does not start, and pages are to be opened in it. Its sandbox needs user namespaces, which some "
                "containers forbid: where the machine itself is a sandbox, allow it without, [harvest] browser_sandbox = false. "
                f"To see another reason: {self._program} --headless --dump-dom about:blank"
            ) from error

    async def look(self, view: View, answer: Answer) -> Sight:
        """What is seen of a page. Never raises for what browsers do; a sight may have a failure."""
        async with self._tabs:
            for _ in range(2):
                try:
                    return await self._look(view, answer)
                except BrowserGone:
                    continue
                except OSError as error:
                    return Sight(failure=f"the browser did not start: {error.strerror}")
            return Sight(failure="the browser died twice")

    async def _look(self, view: View, answer: Answer) -> Sight:
        life = await self._living()
        life.pages += 1
        life.tabs += 1
        try:
            sight = await browser_tab.look(
                life.wire,
                replace(view, agent=life.agent, call_s=self._call_s),
                answer,
                life.rooms,
                life.windows_of,
            )
            if sight.must_restart:
                # A tab that hangs may keep a core busy; other tabs are opened again.
                _log.warning("browser restarted url=%s reason=%s", view.url, sight.failure)
                await self._end(life)
            return sight
        finally:
            life.tabs -= 1
            if life.wire.is_gone or life.pages >= self._most_pages:
                self._retire(life)
            if life.is_over and not life.tabs:
                await self._end(life)

    async def _living(self) -> _Life:
        async with self._starting:
            if self._life is None or self._life.is_over or self._life.wire.is_gone:
                self._life = await self._start()
            return self._life

    async def _start(self) -> _Life:
        loop = asyncio.get_running_loop()
        process = await loop.run_in_executor(None, lambda: launch.start(self._program, sandbox=self._sandbox))
        life = _Life(process, await Wire.open(process.commands, process.answers))
        self._lives.add(life)
        self.starts += 1
        try:
            told = await life.wire.call("Browser.getVersion", time_s=START_S)
            life.agent = (
                f"{told['userAgent'].replace('HeadlessChrome', 'Chrome')} {_product(self._agent)}".strip()
            )
            life.wire.listen("", life.hear)
            await life.wire.call("Fetch.enable", EVERY_REQUEST)
            await life.wire.call("Target.setDiscoverTargets", {"discover": True})
        except (CallTimedOut, CallFailed, BrowserGone) as error:
            await self._end(life)
            raise BrowserGone(f"the browser did not start: {error}") from error
        except BaseException:
            await self._end(life)
            raise
        return life

    def _retire(self, life: _Life) -> None:
        """Nothing new is opened in it; it ends with its last tab."""
        life.is_over = True
        if self._life is life:
            self._life = None

    async def _end(self, life: _Life) -> None:
        if life in self._lives:
            self._lives.discard(life)
            await asyncio.shield(life.end())

    async def close(self) -> None:
        """End every browser that is left."""
        for life in list(self._lives):
            await self._end(life)


def _product(agent: str) -> str:
    """The first word of our name: `Webdepot/0.1.0`."""
    return re.split(r"[\s(]", agent, maxsplit=1)[0]
