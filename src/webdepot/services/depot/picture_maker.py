"""Open archived pages in the browser of harvests, and take their pictures.

The browser has no network (`harvest/browser/launch.py`): each of its requests is answered from the archive,
with the version closest to the page, as one reader would see it, by default on the public web. Whatever that
reader may not see is therefore in no picture.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from webdepot.access.policy import ANYONE, Reader
from webdepot.archive import Archive
from webdepot.errors import ConfigError, WebdepotError
from webdepot.harvest.browser import launch
from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.browser.page_snapshot import PageOptions, PageSnapshot
from webdepot.harvest.browser.tab_request import LARGEST_BODY_BYTES, TabReply, TabRequest, without_transfer
from webdepot.model import EVERYTHING
from webdepot.services.access.replay import replay
from webdepot.url import find_canonical

PAGE_TIME_S = 10.0
LONGEST_S = 30.0
"""Time limit for one page, with the time to read its parts."""
_PURPOSE = "pictures of pages are made in a browser"


def find_browser(archive: Archive) -> bool:
    """Whether there is a browser that can be used."""
    try:
        require_browser(archive)
    except ConfigError:
        return False
    return True


def require_browser(archive: Archive) -> Path:
    """The browser program; ConfigError, which says what to do, if none can be used."""
    config = archive.config.harvest
    return launch.get_program(config.browser, sandbox=config.browser_sandbox, purpose=_PURPOSE)


class PictureMaker:
    """Opens pages, one at a time."""

    def __init__(self, archive: Archive, browser: Browser, collection: str, reader: Reader) -> None:
        self._archive = archive
        self._browser = browser
        self._collection = collection
        self._reader = reader

    async def open(self, url: str, timestamp: str, *behaviours: str) -> PageSnapshot:
        """The page with its picture; without one if the browser failed, with the reason in it."""
        options = PageOptions(
            url=url,
            page_time_s=PAGE_TIME_S,
            longest_s=LONGEST_S,
            behaviours=frozenset({"consent", *behaviours}),
            picture=True,
        )
        return await self._browser.open_page(
            options, lambda request: asyncio.to_thread(self._answer, request, timestamp)
        )

    def _answer(self, request: TabRequest, timestamp: str) -> TabReply | None:
        url = find_canonical(request.url)
        if url is None or request.method not in ("GET", "HEAD"):
            return None
        try:
            opened = replay.open_capture(
                self._archive, url, timestamp, collection=self._collection, reader=self._reader
            )
        except WebdepotError:
            return None
        try:
            body = replay.content_of(opened).read(LARGEST_BODY_BYTES + 1)
        except (WebdepotError, OSError, ValueError):
            return None
        finally:
            opened.close()
        if len(body) > LARGEST_BODY_BYTES:
            return None
        headers = opened.head.headers if opened.head else (("Content-Type", opened.capture.mime),)
        kept = without_transfer(headers)
        return TabReply(status=opened.status, headers=kept, body=b"" if request.method == "HEAD" else body)


@asynccontextmanager
async def opened(
    archive: Archive, *, collection: str = EVERYTHING, reader: Reader = ANYONE
) -> AsyncIterator[PictureMaker]:
    """A maker with a running browser; ConfigError if there is none that can be used."""
    program = require_browser(archive)
    browser = Browser(
        program, sandbox=archive.config.harvest.browser_sandbox, tabs=1, agent=archive.user_agent
    )
    try:
        await browser.begin()
        yield PictureMaker(archive, browser, collection, reader)
    finally:
        await browser.close()
