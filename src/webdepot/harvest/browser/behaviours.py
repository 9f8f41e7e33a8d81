"""Behaviours: what is done in a page before it is read, so that it loads everything a reader would see. A
consent banner is closed, lazy images are loaded, the page is scrolled to its end, media are played.

Clicks come after the page was read: `exploration`.
"""

from typing import Any, Protocol

from webdepot.harvest.browser import scripts
from webdepot.harvest.browser.exploration import CLICK_REST_S, explore_script
from webdepot.harvest.browser.page_snapshot import PageOptions

REST_S = 0.6
"""A page is idle when it has made no request for this long."""
SCROLL_REST_S = 0.15
MOST_SCROLLS = 40
LONGEST_PLAY_S = 5.0


class OpenPage(Protocol):
    """What the behaviours need from the tab."""

    options: PageOptions
    is_clicking: bool

    async def run(self, script: str, world: int) -> Any: ...
    async def rest(self, most_s: float, *, rest_s: float = REST_S) -> None: ...
    async def settle(self, world: int, rest_s: float) -> None: ...
    def is_late(self) -> bool: ...


async def perform(page: OpenPage, world: int) -> None:
    """Perform the behaviours of the page's options, as long as the page has time."""
    part_s = page.options.page_time_s / 8
    if "consent" in page.options.behaviours:
        await _answer_consent(page, world)
    if "scroll" in page.options.behaviours:
        await _scroll(page, world, part_s)
    if "play" in page.options.behaviours and not page.is_late() and await page.run(scripts.PLAY, world):
        await page.rest(min(LONGEST_PLAY_S, part_s))
        await page.run(scripts.PAUSE, world)
    await page.rest(part_s, rest_s=REST_S / 2)


async def _answer_consent(page: OpenPage, world: int) -> None:
    """Close a consent banner: reject if possible, otherwise accept."""
    await page.run(explore_script(), world)
    page.is_clicking = True
    if await page.run("webdepot.consent()", world):
        await page.settle(world, CLICK_REST_S)
    page.is_clicking = False


async def _scroll(page: OpenPage, world: int, part_s: float) -> None:
    """Scroll to the end, which may move away as the page loads more, and back to the top."""
    await page.run(scripts.WAKE_LAZY, world)
    for _ in range(MOST_SCROLLS):
        moved = await page.run(scripts.SCROLL, world)
        await page.rest(part_s, rest_s=SCROLL_REST_S)
        if not moved or page.is_late():
            break
    await page.run(scripts.TO_TOP, world)
