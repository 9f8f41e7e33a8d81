"""One part of a harvest on several machines, from taking it to giving it back (`harvest.parts`).

    HOME/parts/HARVEST/N/     frontier, logs and open containers, only needed while this machine works on it

1. The part is brought to its last checkpoint: from this machine's own files if they are of that checkpoint,
   otherwise from the working place.
2. It is crawled like any other, with checkpoints in the working place and in the database.
3. Its containers are sealed and stored, then it is given back: idle, ended, or waiting for another harvester.
"""

import asyncio
import shutil
import threading
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from webdepot import durable, event_loop
from webdepot.archive import Archive
from webdepot.container import recovery
from webdepot.container.writer import OPEN_SUFFIX, ContainerWriter
from webdepot.errors import Conflict, WebdepotError
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.parts import part_rows
from webdepot.harvest.parts.database_link import DatabaseLink
from webdepot.harvest.parts.harvest_objects import CONTAINERS, LOGS
from webdepot.harvest.parts.journal import Journal
from webdepot.harvest.parts.leased_servers import LeasedServers
from webdepot.harvest.parts.ledger import CHECKPOINT, PartLedger, RowHandover
from webdepot.harvest.parts.objects import FRONTIER, PartObjects
from webdepot.harvest.parts.part_rows import PartLease, PartLost, PartState
from webdepot.harvest.parts.progress_json import columns_of, result_to_json
from webdepot.harvest.peer_processes import Owners, Peers, dealt_out
from webdepot.harvest.report import log
from webdepot.harvest.report.log import CrawlLog
from webdepot.harvest.report.result import CrawlProgress, CrawlResult, End
from webdepot.harvest.scope.identity import identity_without
from webdepot.model import Harvest
from webdepot.services.harvest import crawler, harvests
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest.container_keeper import ContainerKeeper
from webdepot.services.harvest.crawler import CrawlJob, Surroundings
from webdepot.services.harvest.processes import SharedLimits, reached_limit
from webdepot.services.progress import unwatched

RECENT_LINES = 15


def run(archive: Archive, lease: PartLease, news: Connection) -> None:
    """Work on a part that this process has taken, and give it back. `PartLost` if it was taken away.

    `news` brings a message when the harvester has seen an order.
    """
    harvest = harvests.get(archive, lease.harvest)
    with closing(DatabaseLink(archive.database, lease, lease_s=archive.config.cluster.lease_s)) as link:
        link.start()
        threading.Thread(target=_hear, args=(news, link), name="part-news", daemon=True).start()
        try:
            _Part(archive, harvest, link).run()
        except PartLost:
            raise
        except Exception as error:
            is_known = isinstance(error, (WebdepotError, OSError))
            reason = str(error) if is_known else f"It ended with an error: {type(error).__name__}: {error}"
            with suppress(PartLost, WebdepotError, SQLAlchemyError), archive.database.leasing() as connection:
                part_rows.release(connection, lease, PartState.WAITING, reason=reason)
            raise


def _hear(news: Connection, link: DatabaseLink) -> None:
    with suppress(EOFError, OSError):  # the harvester has ended
        while True:
            news.recv_bytes()
            link.wake()


def folder_of(archive: Archive, lease: PartLease) -> Path:
    return archive.home / "parts" / lease.harvest / str(lease.part)


class _Part:
    """A part that is held."""

    def __init__(self, archive: Archive, harvest: Harvest, link: DatabaseLink) -> None:
        self._archive = archive
        self._harvest = harvest
        self._link = link
        self._lease = link.lease
        self._options = harvest_options.from_kept(harvest.settings)
        self._objects = PartObjects(archive.work, harvest.id, self._lease.part)
        self._limit: End | None = None
        self._is_stopped = False
        """By a person, or by the process that watches the harvest."""

    def run(self) -> None:
        folder, marks = self._prepare()
        log.cut(folder, marks)
        recovery.recover(folder / CONTAINERS, marks)
        for path in sorted((folder / CONTAINERS).glob("*.warc.gz")):
            self._objects.put_container(path)
        result = self._crawl(folder)
        if self._limit is not None and result.end is End.STOPPED:
            result = replace(result, end=self._limit)
        state = self._state_after(result)
        with self._archive.database.leasing() as connection:
            part_rows.release(connection, self._lease, state, result=result_to_json(result))
        if state is PartState.ENDED or self._lease.count == 1:
            shutil.rmtree(folder, ignore_errors=True)

    def _prepare(self) -> tuple[Path, Mapping[str, int]]:
        """A folder at the last checkpoint, and the sizes of its files then."""
        folder = folder_of(self._archive, self._lease)
        durable.make_folders(folder)
        try:
            marks = _read_marks(folder)
        except Conflict:  # the process that had it before is still here, without a lease
            folder = folder.with_name(f"{folder.name}-{self._lease.generation}")
            marks = {}
        is_whole = marks.get(CHECKPOINT, 0) == self._lease.checkpoint and _has_files(folder, marks)
        if not self._lease.checkpoint:
            shutil.rmtree(folder, ignore_errors=True)
            durable.make_folders(folder)
            return folder, {}
        if not is_whole:
            self._objects.restore(folder, self._lease.spans)
            marks = _read_marks(folder)
        return folder, marks

    def _crawl(self, folder: Path) -> CrawlResult:
        archive, lease, journal = self._archive, self._lease, Journal()
        identity = identity_without(self._options.ignore_parameters)
        durable.make_folders(folder / CONTAINERS)
        with (
            closing(LmdbFrontier(folder / FRONTIER, identity=identity, journal=journal)) as frontier,
            closing(CrawlLog(folder)) as crawl_log,
            crawler.program_frozen(),
        ):
            handover = RowHandover(self._link)
            with closing(
                PartLedger(self._objects, folder, frontier, journal, self._link, handover)
            ) as ledger:
                writer = ContainerWriter(
                    folder / CONTAINERS,
                    prefix=f"{self._harvest.id}-{lease.part}-{lease.generation}",
                    size_bytes=archive.config.container.size_bytes,
                    info=crawler.warcinfo(archive, self._harvest),
                    clock=archive.clock,
                    on_sealed=ledger.add_sealed,
                )
                has_captures = next(iter(archive.captures.containers()), None) is not None
                keeper = ContainerKeeper(writer, archive.captures if has_captures else None, frontier)
                job = CrawlJob(
                    seeds=self._harvest.seeds,
                    options=self._options,
                    folder=folder,
                    frontier=frontier,
                    keeper=keeper,
                    log=crawl_log,
                    on_look_up=keeper.note_look_up,
                    enter=lambda stack, stop: self._enter(stack, stop, ledger, handover, folder),
                )
                result = event_loop.run(crawler.run_job(archive, job, unwatched))
                writer.close()
                crawl_log.sync()
                ledger.finish(sorted((folder / CONTAINERS).glob("*.warc.gz")))
                return result

    def _enter(
        self,
        stack: AsyncExitStack,
        stop: asyncio.Event,
        ledger: PartLedger,
        handover: RowHandover,
        folder: Path,
    ) -> Surroundings:
        archive, lease, peers = self._archive, self._lease, None
        if lease.count > 1:
            dealt = dealt_out(self._harvest.seeds, lease.count)
            peers = Peers(lease.part, Owners(lease.count, dealt), handover)
        servers = stack.enter_context(closing(LeasedServers(archive.database, self._link)))
        return Surroundings(
            progress=self._reporter(stop, folder),
            servers=servers,
            orders=self._link,
            peers=peers,
            ledger=ledger,
            checkpoint_s=archive.config.work.safe_s,
        )

    def _reporter(self, stop: asyncio.Event, folder: Path) -> Callable[[CrawlProgress], None]:
        """Shows progress, stops at limits of the whole harvest, and ends everything when the lease ends."""
        options = self._options
        limits = SharedLimits(
            pages=options.limit_pages,
            documents=harvest_options.most_documents(options.limit_documents, options.limit_pages),
            size_bytes=options.limit_bytes,
        )

        def report(progress: CrawlProgress) -> None:
            self._link.check()
            if self._link.wants_numbers():
                self._link.show(columns_of(progress, log.recent(folder, RECENT_LINES)))
            beat = self._link.beat
            if stop.is_set() or beat is None:
                return
            self._is_stopped = beat.is_stopping
            self._limit = reached_limit(
                limits, pages=beat.pages, documents=beat.fetched, size_bytes=beat.size_bytes
            )
            if self._is_stopped or self._limit is not None:
                stop.set()

        return report

    def _state_after(self, result: CrawlResult) -> PartState:
        if result.end is End.FINISHED:
            return PartState.IDLE
        # Not an order to stop the harvest: this process received a signal.
        is_for_others = result.end is End.NO_ROOM or (result.end is End.STOPPED and not self._is_stopped)
        return PartState.WAITING if is_for_others else PartState.ENDED


def _read_marks(folder: Path) -> Mapping[str, int]:
    with closing(LmdbFrontier(folder / FRONTIER)) as frontier:
        return frontier.marks()


def _has_files(folder: Path, marks: Mapping[str, int]) -> bool:
    """Whether the disk has all bytes that the marks name."""
    for name, size_bytes in marks.items():
        if name == CHECKPOINT:
            continue
        path = folder / name if name in LOGS else folder / CONTAINERS / name
        sealed = path.with_name(name.removesuffix(OPEN_SUFFIX))
        if not any(each.exists() and each.stat().st_size >= size_bytes for each in (path, sealed)):
            return False
    return True
