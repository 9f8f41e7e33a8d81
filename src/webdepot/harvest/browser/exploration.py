"""Clicks what a reader would click in a page: "load more", tabs, menus, carousels, in-page navigation.

1. `explore.js` lists what can be clicked: buttons, roles, elements with click listeners or a pointer cursor,
   options of menus, links to routes after `#`, and links that the page may handle itself. Buttons of forms,
   and anything that signs in, buys, sends or deletes, are never clicked.
2. Each is clicked once; "load more" and "next" as long as they show something new. When the page is idle
   again, what is new is noted: requests, links, lines of text, and the address that the page has set for
   itself (https://html.spec.whatwg.org/#the-history-interface).
3. A page that has moved to another of its routes is brought back to where it was: that route is a page of
   its own. Routes after `#` belong to the page: what there is to click on one is clicked before the next.

It ends when there is nothing left to click, when nothing new happens, after `MOST_CLICKS`, or when the time
of the page is over. A button that never shows anything new is no longer clicked on further pages of the crawl
(`ClickMemory`).
"""

import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from webdepot.harvest.browser.devtools import CallFailed

MOST_CLICKS, MOST_IDLE_CLICKS, MOST_REPEATS = 60, 20, 20
"""Most clicks on one page; most in a row that show nothing new; most on the same button."""
MOST_ROUTES = 500
"""Most routes after `#` that are opened on one page, in addition to the clicks."""
MOST_RETURNS = 20
"""How often to check whether the page is back on its own route."""
MOST_LISTENERS = 60
MOST_REVEALED_LETTERS = 1 << 18
MOST_REMEMBERED = 100_000
FRUITLESS = 3
"""A button is no longer clicked after this many clicks without anything new, on any pages of a host."""
UNHANDLED_LINKS = 3
"""After this many clicked links that a page does not handle itself, its links are treated as ordinary
ones.
"""
CLICK_REST_S = 0.15
EXPECTED_REST_S = 1.0
"""How long to wait after a click that was expected to make a request or change the address, and has not."""
_ANYWHERE = "*"
_REPEATED = frozenset({"more", "next"})
_EXPECTED = _REPEATED | {"route"}


@cache
def explore_script() -> str:
    return Path(__file__).with_name("explore.js").read_text(encoding="utf-8")


class ClickMemory:
    """What clicks on the pages of one crawl have shown."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, None] = OrderedDict()
        self._fruitless: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._destinations: OrderedDict[tuple[str, str], str] = OrderedDict()
        """Where a button led at first; `_ANYWHERE` if it led to several addresses."""

    def are_new(self, things: list[str]) -> bool:
        """Whether at least one of these is new to the crawl; remembers all of them."""
        new = dict.fromkeys(each for each in map(hash, things) if each not in self._known)
        self._known.update(new)
        while len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        return bool(new)

    def knows(self, thing: str) -> bool:
        return hash(thing) in self._known

    def is_fruitless(self, host: str, key: str) -> bool:
        """Whether clicking a button has repeatedly shown nothing new. A button such as "next" leads to a
        different place on each page, so it is clicked on every page, even if it has only led to known pages
        so far.
        """
        leads_anywhere = self._destinations.get((host, key)) == _ANYWHERE
        return not leads_anywhere and self._fruitless.get((host, key), 0) >= FRUITLESS

    def note(self, host: str, key: str, *, is_fruitful: bool, destination: str = "") -> None:
        """Remember what a click showed; `destination` is the address that the page moved to."""
        if destination and self._destinations.setdefault((host, key), destination) != destination:
            self._destinations[host, key] = _ANYWHERE
        while len(self._destinations) > MOST_REMEMBERED:
            self._destinations.popitem(last=False)
        if is_fruitful:
            self._fruitless.pop((host, key), None)
            return
        self._fruitless[host, key] = self._fruitless.get((host, key), 0) + 1
        while len(self._fruitless) > MOST_REMEMBERED:
            self._fruitless.popitem(last=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clickable:
    """An element that can be clicked, as `explore.js` lists it."""

    key: str
    kind: str
    href: str
    """The address of a link or a route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageHandle:
    """What an exploration needs from the tab."""

    host: str
    call: Callable[[str, Mapping[str, Any] | None], Awaitable[Any]]
    run: Callable[[str], Awaitable[Any]]
    """Runs a script in the isolated world of `explore.js` and returns its result."""
    world: int
    settle: Callable[[float], Awaitable[None]]
    """Wait until there was no request for that many seconds, and the page has nothing to do."""
    is_late: Callable[[], bool]
    may_follow: Callable[[str], bool]
    """Whether the crawl would follow a link to an address."""
    plays: bool
    """Whether videos and sounds that a click shows are played."""
    addresses: dict[str, None]
    """All addresses that the page has asked for, or set for itself; it grows."""


@dataclass(slots=True)
class Exploration:
    """The clicks in one page, and what they have shown."""

    page: PageHandle
    memory: ClickMemory
    clicks: int = 0
    routes: int = 0
    """Routes after `#` that showed something new."""
    has_moved: bool = False
    """Whether the page has set another address for itself."""
    links: list[str] = field(default_factory=list)
    """HTML of links, with absolute addresses."""
    lines: list[str] = field(default_factory=list)
    """Text that was not visible before, without the text of other routes."""
    _idle: int = 0
    _letters: int = 0
    _unhandled: int = 0
    _start: str = ""
    """The address of the page itself."""
    _route: str = ""
    """The current route after `#`."""

    async def run(self) -> None:
        """Click until the limits. The page may have changed in any way afterwards, or be gone."""
        with suppress(CallFailed):
            await self._find_listeners()
            waiting = await self._look()
            if not waiting:
                return
            # Otherwise a button that goes back would show the page that was in the tab before.
            await self.page.call("Page.resetNavigationHistory", None)
            self._start = str(await self.page.run("webdepot.begin(), location.href"))
            while waiting and not self._is_over():
                item = waiting.pop(0)
                if self._is_wanted(item) and await self._click_all(item):
                    waiting = sorted(await self._look() + waiting, key=lambda item: item.kind == "link")

    def _is_over(self) -> bool:
        return (
            self.clicks - self.routes >= MOST_CLICKS
            or self.routes >= MOST_ROUTES
            or self._idle >= MOST_IDLE_CLICKS
            or self.page.is_late()
        )

    def _is_wanted(self, item: Clickable) -> bool:
        if item.kind == "link" and (
            self._unhandled >= UNHANDLED_LINKS
            or self.memory.knows(f"click:{item.href}")
            or self.memory.is_fruitless(self.page.host, "link")
        ):
            return False
        if item.kind == "link" and not self.page.may_follow(item.href):
            return False  # such as the editor of a wiki, which would open in the page
        return not self.memory.is_fruitless(self.page.host, item.key)

    async def _look(self) -> list[Clickable]:
        return [
            Clickable(key=key, kind=kind, href=href)
            for key, kind, href in await self.page.run("webdepot.look()") or ()
        ]

    async def _find_listeners(self) -> None:
        """Pass the elements with click listeners to the script: only the browser knows them."""
        call, world = self.page.call, self.page.world
        if not await self.page.run("document.scripts.length"):
            return
        document = await call("Runtime.evaluate", {"expression": "document", "contextId": world})
        listening = await call(
            "DOMDebugger.getEventListeners",
            {"objectId": document["result"]["objectId"], "depth": -1, "pierce": True},
        )
        nodes = dict.fromkeys(
            each.get("backendNodeId") for each in listening["listeners"] if each["type"] == "click"
        )
        nodes.pop(None, None)
        arguments = []
        for node in list(nodes)[:MOST_LISTENERS]:
            with suppress(CallFailed):  # it may have been removed
                resolved = await call("DOM.resolveNode", {"backendNodeId": node, "executionContextId": world})
                arguments.append({"objectId": resolved["object"]["objectId"]})
        if arguments:
            listen = {
                "functionDeclaration": "(...nodes) => webdepot.listen(...nodes)",
                "arguments": arguments,
            }
            await call("Runtime.callFunctionOn", {"executionContextId": world, **listen})
        for each in (document["result"], *arguments):
            await call("Runtime.releaseObject", {"objectId": each["objectId"]})

    async def _click_all(self, item: Clickable) -> bool:
        """Click an element, repeatedly while that shows something new; return whether anything was new."""
        is_useful = False
        for _ in range(MOST_REPEATS if item.kind in _REPEATED else 1):
            if self._is_over() or not await self._click(item):
                break
            is_useful = True
        return is_useful

    async def _click(self, item: Clickable) -> bool:
        before = len(self.page.addresses)
        outcome = await self._press(item)
        if outcome == "gone":
            return False
        if item.kind == "link" and outcome != "handled":
            self._unhandled += 1
            if self._unhandled == UNHANDLED_LINKS:
                self.memory.note(self.page.host, "link", is_fruitful=False)
            return False
        self.clicks += 1
        await self.page.settle(CLICK_REST_S)
        if self.page.plays and await self.page.run("webdepot.play()"):
            await self.page.settle(EXPECTED_REST_S)
        if item.kind in _EXPECTED and len(self.page.addresses) == before:
            await self.page.settle(EXPECTED_REST_S)
        route = self._route
        is_new = await self._note_news(item, before)
        self._idle = 0 if is_new else self._idle + 1
        self.routes += is_new and (item.kind == "route" or self._route not in ("", route))
        return is_new

    async def _press(self, item: Clickable) -> str:
        click = f"webdepot.click({json.dumps(item.key)})"
        outcome = str(await self.page.run(click))
        if outcome == "gone" and await self.page.run("location.href") != self._start:
            # It is on the page itself, which shows another of its routes.
            await self._return()
            outcome = str(await self.page.run(click))
        if outcome == "gone" and item.kind == "route":
            outcome = str(await self.page.run(f"webdepot.go({json.dumps(item.href)})"))
        return outcome

    async def _note_news(self, item: Clickable, before: int) -> bool:
        """Add what a click has shown; return whether any of it is new to the crawl."""
        address, links, lines = await self.page.run("webdepot.news()")
        self.links += links
        self._route = address.partition("#")[2]
        requested = list(self.page.addresses)[before:]
        is_here = _without_hash(address) == _without_hash(self._start)
        self.has_moved |= address != self._start
        if is_here and self._letters < MOST_REVEALED_LETTERS:
            self.lines += lines
            self._letters += sum(map(len, lines))
        if item.kind == "link":
            self.memory.are_new([f"click:{item.href}"])
            self.memory.note(self.page.host, "link", is_fruitful=True)
        is_new = self.memory.are_new([*requested, *links, *(lines if is_here else ())])
        destination = address if address != self._start else ""
        self.memory.note(self.page.host, item.key, is_fruitful=is_new, destination=destination)
        if not is_here:
            await self._return()
        return is_new

    async def _return(self) -> None:
        """Go back to the address of the page, which is impossible if its script has replaced it in the
        history.
        """
        history = await self.page.call("Page.getNavigationHistory", None)
        if history["currentIndex"] > 0:
            first = history["entries"][0]["id"]
            await self.page.call("Page.navigateToHistoryEntry", {"entryId": first})
        for _ in range(MOST_RETURNS):
            await self.page.settle(CLICK_REST_S)
            address = str(await self.page.run("location.href"))
            if address == self._start or history["currentIndex"] == 0:
                break
        self._start = address


def _without_hash(address: str) -> str:
    return address.partition("#")[0]
