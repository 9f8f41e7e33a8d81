"""Test crawls: up to 50 pages by the real crawler, with the rules, politeness and guards of a harvest, to see
what a scope includes and excludes. Nothing of the site is kept.

    begin ──> run ──> cache/crawl-tests/ID.json: running, done or failed, with what was found

1. `begin` checks what was typed and writes the file, so that every process can show the test.
2. `run` crawls in a temporary folder, which is removed, and writes its progress into the file.
3. Files older than a day are removed when the next test begins.
"""

import asyncio
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from webdepot import event_loop
from webdepot.archive import Archive, ScratchPurpose
from webdepot.container.new_records import payload_digest
from webdepot.errors import InputError, NotFound, WebdepotError
from webdepot.harvest.fetch.fetch_mode import Screenshots
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.pending_answer import Attached, Kept
from webdepot.harvest.report import crawl_sample
from webdepot.harvest.report.crawl_sample import CrawlSample
from webdepot.harvest.report.log import JSON_NAME, CrawlLog
from webdepot.harvest.report.result import CrawlResult
from webdepot.harvest.scope.identity import identity_without
from webdepot.model import Visit
from webdepot.provenance import append, difference
from webdepot.reasons import said
from webdepot.selection import targets as target_rows
from webdepot.services.harvest import crawler, profiles
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest.crawler import CrawlJob
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.progress import Progress, Watch, unwatched
from webdepot.services.selection import targets
from webdepot.times import from_iso, to_iso
from webdepot.url import Url, from_typed

MOST_PAGES = 50
MOST_DOCUMENTS = 1000
MOST_ADDRESSES = 20
MOST_BYTES = 200 << 20
MOST_FILE_BYTES = 20 << 20
LONGEST_S = 300.0
SHUTDOWN_S = 60.0
SILENT_AFTER = timedelta(seconds=60)
"""A test that has reported nothing for this long was interrupted."""
KEPT_FOR = timedelta(days=1)
_EXAMPLES = 20
_PLACE = "cache/crawl-tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlTest:
    """A test crawl as its file has it."""

    id: str
    state: str
    """running, done or failed."""
    at: datetime
    """When the file was written."""
    seeds: tuple[str, ...]
    profile: str = ""
    limit_pages: int = MOST_PAGES
    pages: int = 0
    documents: int = 0
    size_bytes: int = 0
    note: str = ""
    """What it does at the moment, or how it ended, or what went wrong."""
    elapsed_s: float = 0.0
    waiting: int = 0
    """Addresses in scope that it did not fetch."""
    waiting_examples: Sequence[str] = ()
    empty_pages: int = 0
    """Pages without text before their scripts have run, which no browser opened."""
    opened: int = 0
    """Pages opened in the browser."""
    sample: CrawlSample = field(default_factory=CrawlSample)


class _NoKeeper:
    """A keeper that stores nothing and reports everything as new."""

    def keep(self, visits: Sequence[Visit]) -> list[Kept]:
        return [Kept(digest=payload_digest(visit), duplicate=False) for visit in visits]

    def write(
        self,
        visit: Visit,
        kept: Kept,
        *,
        outlinks: Sequence[tuple[str, str]] = (),
        attached: Sequence[Attached] = (),
    ) -> None:
        pass

    def checkpoint(self) -> Mapping[str, int]:
        return {}


def begin(
    archive: Archive, typed: Sequence[str], *, profile: str = "", limit_pages: int = MOST_PAGES, by: str = ""
) -> CrawlTest:
    """A test that `run` can run, recorded with the person who asked for it. InputError, NotFound or
    ConfigError if an address or the profile is wrong; NotPermitted if the owner of the site has refused.
    """
    seeds = tuple(dict.fromkeys(map(from_typed, typed)))
    if not 0 < len(seeds) <= MOST_ADDRESSES:
        raise InputError(f"Give at least one address to start from, and at most {MOST_ADDRESSES}.")
    if not 0 < limit_pages <= MOST_PAGES:
        raise InputError(f"A test crawl fetches between 1 and {MOST_PAGES} pages.")
    with archive.database.reading() as connection:
        target = target_rows.find_by_seeds(connection, seeds)
    if target is not None:
        targets.refuse_if_refused(archive, target)
    harvest_options.browser_of(archive.config, profiles.options_of(archive, profile))
    _remove_old(archive)
    test = CrawlTest(
        id=secrets.token_hex(8),
        state="running",
        at=archive.clock(),
        seeds=seeds,
        profile=profile,
        limit_pages=limit_pages,
    )
    _write(archive, test)
    detail = difference({}, {"profile": profile, "limit_pages": limit_pages})
    event = archive.event("asked for", "crawl test", test.id, message=" ".join(seeds), detail=detail, by=by)
    with archive.database.transaction() as connection:
        append(connection, event)
    return test


def run(archive: Archive, test: CrawlTest, *, watch: Watch = unwatched) -> CrawlTest:
    """Crawl, and write what was found. WebdepotError if the crawl could not run, after that was written."""
    state = test

    def report(progress: Progress) -> None:
        nonlocal state
        watch(progress)
        if archive.clock() - state.at >= timedelta(seconds=1):
            state = replace(
                test,
                at=archive.clock(),
                pages=progress.pages,
                documents=progress.done,
                size_bytes=progress.size_bytes,
                waiting=progress.waiting,
                note=progress.note,
            )
            _write(archive, state)

    try:
        done = _crawl(archive, test, report)
    except (WebdepotError, OSError, TimeoutError) as error:
        _write(archive, replace(state, state="failed", at=archive.clock(), note=str(error)))
        raise
    _write(archive, done)
    return done


def get(archive: Archive, identifier: str, *, is_waiting: bool = False) -> CrawlTest:
    """A test; NotFound if there is none, or it is too old. One that reports nothing was interrupted, unless
    it `is_waiting` for its turn.
    """
    is_id = len(identifier) == 16 and identifier.isalnum() and identifier.isascii()
    test = _read(_folder(archive) / f"{identifier}.json") if is_id else None
    if test is None:
        raise NotFound(said("missing_test", "This test crawl is no longer stored. Start it again."))
    if test.state == "running" and not is_waiting and archive.clock() - test.at > SILENT_AFTER:
        return replace(test, state="failed", note="The test was interrupted. Start it again.")
    return test


def place_of(test: CrawlTest) -> str:
    """The file of a test, below the home."""
    return f"{_PLACE}/{test.id}.json"


def _crawl(archive: Archive, test: CrawlTest, watch: Watch) -> CrawlTest:
    options = _options(archive, test)
    seeds = tuple(map(Url, test.seeds))
    with archive.scratch_folder(ScratchPurpose.TEST) as folder:
        identity = identity_without(options.ignore_parameters)
        with (
            closing(LmdbFrontier(folder / "frontier", identity=identity)) as frontier,
            closing(CrawlLog(folder)) as log,
        ):
            job = CrawlJob(
                seeds=seeds,
                options=options,
                folder=folder,
                frontier=frontier,
                keeper=_NoKeeper(),
                log=log,
                on_look_up=lambda host, addresses, at: None,
                log_outside=True,
                file_bytes=MOST_FILE_BYTES,
            )
            result = event_loop.run(
                asyncio.wait_for(crawler.run_job(archive, job, watch), LONGEST_S + SHUTDOWN_S)
            )
            waiting = [candidate.url for candidate in islice(frontier.iter_waiting(), _EXAMPLES)]
        with (folder / JSON_NAME).open("rb") as lines:
            sample = crawl_sample.read(lines)
    return _done(archive, test, result, waiting, sample)


def _done(
    archive: Archive, test: CrawlTest, result: CrawlResult, waiting: Iterable[str], sample: CrawlSample
) -> CrawlTest:
    counts = result.counts
    return replace(
        test,
        state="done",
        at=archive.clock(),
        pages=counts["pages"],
        documents=counts["fetched"],
        size_bytes=counts["bytes"],
        note=str(result.explain()),
        elapsed_s=result.elapsed_s,
        waiting=counts["waiting"],
        waiting_examples=tuple(waiting),
        empty_pages=counts["empty_pages"],
        opened=counts.get("opened", 0),
        sample=sample,
    )


def _options(archive: Archive, test: CrawlTest) -> HarvestOptions:
    """The options of the profile, with the limits of a test."""
    options = profiles.options_of(archive, test.profile)
    return replace(
        options,
        limit_pages=min(options.limit_pages or test.limit_pages, test.limit_pages),
        limit_documents=min(options.limit_documents or MOST_DOCUMENTS, MOST_DOCUMENTS),
        limit_bytes=min(options.limit_bytes or MOST_BYTES, MOST_BYTES),
        limit_time_s=min(options.limit_time_s or LONGEST_S, LONGEST_S),
        screenshots=Screenshots.NONE.value,
    )


# --- files ---


def _folder(archive: Archive) -> Path:
    return archive.home / _PLACE


def _write(archive: Archive, test: CrawlTest) -> None:
    folder = _folder(archive)
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"{test.id}.new"
    new.write_text(json.dumps(asdict(test), ensure_ascii=False, default=to_iso), encoding="utf-8")
    new.replace(folder / f"{test.id}.json")


def _read(path: Path) -> CrawlTest | None:
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        parts = {
            "at": from_iso(values["at"]),
            "seeds": tuple(values["seeds"]),
            "sample": crawl_sample.from_values(values["sample"]),
        }
        return CrawlTest(**values | parts)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remove_old(archive: Archive) -> None:
    oldest = archive.clock() - KEPT_FOR
    for path in _folder(archive).glob("*.json"):
        test = _read(path)
        if test is None or test.at < oldest:
            path.unlink(missing_ok=True)
