"""A crawl with a keeper that appends to a real file; can also be run as a program, so that it can be killed."""

import asyncio
import base64
import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from webdepot import event_loop
from webdepot.harvest import crawl
from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.crawl_state import CrawlParts
from webdepot.harvest.fetch.cookies import CookieJar
from webdepot.harvest.fetch.curl_transfer import FetchLimits
from webdepot.harvest.fetch.host_addresses import Router
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.pending_answer import Attached, Kept
from webdepot.harvest.politeness.pauses import Manners
from webdepot.harvest.politeness.servers import SharedServers
from webdepot.harvest.report import log
from webdepot.harvest.report.last_pictures import LastPictures
from webdepot.harvest.report.log import CrawlLog
from webdepot.harvest.report.result import CrawlProgress, CrawlResult, CrawlSettings
from webdepot.model import Visit
from webdepot.times import utc_now
from webdepot.url import Url

KEPT_NAME = "kept.jsonl.open"
QUICK = Manners(delay_s=0.0, delay_factor=0.0, retry_delay_s=0.02, retry_factor=2.0)


class FileKeeper:
    """One JSON line for each visit; durable at a checkpoint, cut back to it when it is opened."""

    def __init__(self, folder: Path, marks: Mapping[str, int]) -> None:
        path = folder / KEPT_NAME
        path.touch()
        os.truncate(path, marks.get(KEPT_NAME, 0))
        self._file = path.open("ab")
        self.outlinks: dict[str, list[tuple[str, str]]] = {}
        self.attached: dict[str, bytes] = {}

    def keep(self, visits: Sequence[Visit]) -> list[Kept]:
        return [self._keep(visit) for visit in visits]

    def _keep(self, visit: Visit) -> Kept:
        visit.body.seek(0)
        body = visit.body.read()
        digest = "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()
        line = {"url": visit.candidate.url, "status": visit.status, "digest": digest, "head": len(visit.head)}
        self._file.write(json.dumps(line).encode() + b"\n")
        return Kept(digest=digest, duplicate=False)

    def write(
        self,
        visit: Visit,
        kept: Kept,
        *,
        outlinks: Sequence[tuple[str, str]] = (),
        attached: Sequence[Attached] = (),
    ) -> None:
        self.outlinks[visit.candidate.url] = list(outlinks)
        self.attached |= {each.url: each.data for each in attached}

    def checkpoint(self) -> Mapping[str, int]:
        self._file.flush()
        os.fsync(self._file.fileno())
        return {KEPT_NAME: self._file.tell()}

    def close(self) -> None:
        self._file.close()


def run(
    folder: Path,
    seeds: Sequence[str],
    *,
    connect_to: Mapping[str, str] | None = None,
    allow_private: bool = True,
    limits: FetchLimits | None = None,
    router: Router | None = None,
    shared: SharedServers | None = None,
    cookies: CookieJar | None = None,
    browser: Callable[[], Browser] | None = None,
    keeper_of: Callable[[Path, Mapping[str, int]], FileKeeper] = FileKeeper,
    on_progress: Callable[[CrawlProgress, asyncio.Event], None] = lambda progress, stop: None,
    program_errors: int = 0,
    **settings: object,
) -> CrawlResult:
    """Open everything in a folder, as a service would, crawl, and close it again."""
    folder.mkdir(parents=True, exist_ok=True)
    frontier = LmdbFrontier(folder / "frontier")
    log.cut(folder, frontier.marks())
    keeper = keeper_of(folder, frontier.marks())
    crawl_log = CrawlLog(folder)
    given = CrawlSettings(
        **{"seeds": tuple(map(Url, seeds)), "user_agent": "Webdepot/1 (test)", "manners": QUICK, **settings}
    )  # type: ignore[arg-type]

    async def main() -> CrawlResult:
        stop = asyncio.Event()
        opened = browser() if browser is not None else None
        fetcher = CurlFetcher(
            user_agent=given.user_agent,
            limits=limits or FetchLimits(timeout_s=10.0),
            router=router or Router(allow_private=allow_private, connect_to=connect_to or {}),
            cookies=cookies,
        )
        try:
            parts = CrawlParts(
                frontier=frontier,
                fetcher=fetcher,
                keeper=keeper,
                log=crawl_log,
                clock=utc_now,
                shared=shared,
                browser=opened,
                pictures=LastPictures(folder),
            )
            result = await crawl.run(
                given, parts, progress=lambda progress: on_progress(progress, stop), stop=stop
            )
            assert result.counts.get("program_errors", 0) == program_errors, lines(folder)
            return result
        finally:
            if opened is not None:
                await opened.close()
            await fetcher.close()

    try:
        return event_loop.run(main())
    finally:
        crawl_log.close()
        keeper.close()
        frontier.close()


def kept(folder: Path) -> list[str]:
    return [json.loads(line)["url"] for line in (folder / KEPT_NAME).read_bytes().splitlines()]


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / log.JSON_NAME).read_text().splitlines()]


def page_lines(folder: Path) -> list[dict[str, object]]:
    """The lines without those about an address that cannot exist, which is asked for and not kept."""
    return [line for line in lines(folder) if line["note"] != "soft404Probe"]


if __name__ == "__main__":
    run(Path(sys.argv[1]), [sys.argv[2]], checkpoint_s=0.02, manners=Manners(delay_s=0.0, delay_factor=0.0))
