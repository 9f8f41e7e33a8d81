"""The crawl of a harvest: open everything it needs, run it in one process or in several, close everything.

The fetcher, the frontier and the link extraction are loaded here. Only commands that run harvests import this
module; `harvests`, which knows rows and folders, is enough for all others.
"""

import asyncio
import gc
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from webdepot import event_loop
from webdepot.archive import Archive
from webdepot.container.writer import ContainerWriter, Sealed
from webdepot.errors import Conflict
from webdepot.harvest import crawl
from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.crawl_state import CrawlParts
from webdepot.harvest.fetch.cookies import CookieJar
from webdepot.harvest.fetch.curl_transfer import FetchLimits
from webdepot.harvest.fetch.host_addresses import Router
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.order_file import Orders, OrderSource
from webdepot.harvest.peer_processes import FileHandover, Peers, owners
from webdepot.harvest.pending_answer import Keeper
from webdepot.harvest.politeness.servers import SharedServers
from webdepot.harvest.report import live
from webdepot.harvest.report.last_pictures import LastPictures
from webdepot.harvest.report.log import CrawlLog
from webdepot.harvest.report.result import CrawlProgress, CrawlResult, CrawlSettings
from webdepot.harvest.scope.identity import identity_without
from webdepot.model import Container, Harvest, HarvestId
from webdepot.ports.harvest import Ledger, Servers
from webdepot.services.harvest import harvests, processes
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest.container_keeper import ContainerKeeper
from webdepot.services.harvest.options import HarvestOptions, OrganisationHosts
from webdepot.services.harvest.processes import HarvestPart, SharedLimits
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.url import Url
from webdepot.version import VERSION

SHUTDOWN_WAIT_TENTHS = 50
"""How long a resumed harvest waits for processes of its killed predecessor to end, in tenths of a second."""
_FRONTIER_NAME = "frontier"
OnSealed = Callable[[Container], None]
"""Gets each container when its row is written; it must return soon, because the crawl waits for it."""


def run(archive: Archive, harvest: Harvest, watch: Watch, on_sealed: OnSealed) -> CrawlResult:
    """Crawl from the last checkpoint until the end or a stop. The caller holds the lock of the harvest."""
    count = _count_processes(archive, harvest)

    def register(sealed: Sealed) -> None:
        on_sealed(harvests.register(archive, harvest, sealed))

    return (
        _crawl_in_parts(archive, harvest, watch, register, count)
        if count > 1
        else _crawl(archive, harvest, watch, register, None)
    )


def begun_folders(folder: Path) -> list[Path]:
    """The folders where a crawl has begun, among the folder of a harvest and those of its parts."""
    return [part for part in (folder, *processes.existing(folder)) if (part / _FRONTIER_NAME).exists()]


def read_marks(folder: Path) -> Mapping[str, int]:
    """The file sizes of the last checkpoint.

    Waits for processes whose leader was killed: they end without a signal, but not at once.
    """
    for tenths_left in range(SHUTDOWN_WAIT_TENTHS, -1, -1):
        try:
            frontier = LmdbFrontier(folder / _FRONTIER_NAME)
        except Conflict:
            if not tenths_left:
                raise
            time.sleep(0.1)
        else:
            break
    with closing(frontier):
        return frontier.marks()


def _count_processes(archive: Archive, harvest: Harvest) -> int:
    """As many as the harvest was begun with: a host never changes its process."""
    folder = harvests.folder_of(archive, harvest)
    if (folder / _FRONTIER_NAME).exists():
        return 1
    return len(processes.existing(folder)) or archive.config.harvest.processes


def _crawl_in_parts(
    archive: Archive, harvest: Harvest, watch: Watch, register: Callable[[Sealed], None], count: int
) -> CrawlResult:
    options, folder = harvest_options.from_kept(harvest.settings), harvests.folder_of(archive, harvest)
    with closing(live.Publisher(folder, archive.clock)) as publisher:
        return processes.run(
            archive,
            harvest,
            folder,
            count,
            _crawl_part,
            report=reporter(publisher, watch),
            on_sealed=register,
            limits=SharedLimits(
                pages=options.limit_pages,
                documents=harvest_options.most_documents(options.limit_documents, options.limit_pages),
                size_bytes=options.limit_bytes,
            ),
        )


def _crawl_part(home: Path, harvest: HarvestId, part: HarvestPart) -> CrawlResult:
    """Crawl one part, in its own process."""
    with Archive.open(home) as archive:
        return _crawl(
            archive,
            harvests.get(archive, harvest),
            unwatched,
            lambda sealed: part.line.send("sealed", sealed),
            part,
        )


def _crawl(
    archive: Archive,
    harvest: Harvest,
    watch: Watch,
    on_sealed: Callable[[Sealed], None],
    part: HarvestPart | None,
) -> CrawlResult:
    folder = harvests.folder_of(archive, harvest)
    if part is not None:
        folder = processes.folder_of(folder, part.number)
    options = harvest_options.from_kept(harvest.settings)
    writer = ContainerWriter(
        harvests.containers_folder(archive, harvest),
        prefix=harvest.id if part is None else f"{harvest.id}-{part.number}",
        size_bytes=archive.config.container.size_bytes,
        info=warcinfo(archive, harvest),
        clock=archive.clock,
        on_sealed=on_sealed,
    )
    with (
        closing(
            LmdbFrontier(folder / _FRONTIER_NAME, identity=identity_without(options.ignore_parameters))
        ) as frontier,
        closing(CrawlLog(folder)) as log,
        program_frozen(),
    ):
        # The first harvest of an archive has nothing to compare with.
        has_captures = next(iter(archive.captures.containers()), None) is not None
        keeper = ContainerKeeper(writer, archive.captures if has_captures else None, frontier)
        job = CrawlJob(
            seeds=harvest.seeds,
            options=options,
            folder=harvests.folder_of(archive, harvest),
            frontier=frontier,
            keeper=keeper,
            log=log,
            on_look_up=keeper.note_look_up,
            part=part,
        )
        result = event_loop.run(run_job(archive, job, watch))
        writer.close()
        return result


@contextmanager
def program_frozen() -> Iterator[None]:
    """Keep the garbage collector from looking at the loaded program after every few pages."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What connects a crawl to the people who watch it, to other crawls, and to its other parts."""

    progress: Callable[[CrawlProgress], None]
    servers: Servers
    orders: OrderSource
    peers: Peers | None = None
    ledger: Ledger | None = None
    checkpoint_s: float = 0.0
    """Time between two checkpoints; 0 means as usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlJob:
    """What is crawled, and where everything goes."""

    seeds: tuple[Url, ...]
    options: HarvestOptions
    folder: Path
    """Orders, live numbers and large answers are here."""
    frontier: LmdbFrontier
    keeper: Keeper
    log: CrawlLog
    on_look_up: Callable[[str, Sequence[str], datetime], None]
    """Takes the addresses of every host name that is looked up."""
    part: HarvestPart | None = None
    enter: "Callable[[AsyncExitStack, asyncio.Event], Surroundings] | None" = None
    """Opens what connects this crawl to others, and sets the event to stop it; if not given, for a crawl on
    this machine.
    """
    log_outside: bool = False
    """Also log links that lead outside."""
    file_bytes: int = 0
    """Longest answer, if shorter than the configuration allows."""


async def run_job(archive: Archive, job: CrawlJob, watch: Watch) -> CrawlResult:
    """Open what needs the event loop, crawl, and close it in reverse order."""
    options = job.options
    stop = _stop_on_signals()
    async with AsyncExitStack() as stack:
        organisation = await stack.enter_async_context(_organisation_hosts(archive, options))
        router = _router(archive, job, organisation)
        fetcher = _fetcher(archive, job, organisation, router)
        stack.push_async_callback(fetcher.close)
        around = job.enter(stack, stop) if job.enter is not None else _enter(archive, job, stack, stop, watch)
        browser = _browser(archive, options)
        if browser is not None:
            stack.push_async_callback(browser.close)
            await browser.begin()

        def settings_after(changes: Mapping[str, object]) -> CrawlSettings:
            settings = harvest_options.settings_of(
                archive,
                job.seeds,
                harvest_options.with_changes(options, changes),
                agent=archive.user_agent,
                router=router,
                organisation=organisation,
            )
            settings = replace(settings, checkpoint_s=around.checkpoint_s or settings.checkpoint_s)
            return replace(settings, log_outside=True) if job.log_outside else settings

        crawl_parts = CrawlParts(
            frontier=job.frontier,
            fetcher=fetcher,
            keeper=job.keeper,
            log=job.log,
            clock=archive.clock,
            shared=around.servers,
            peers=around.peers,
            ledger=around.ledger,
            browser=browser,
            pictures=_pictures(job) if browser is not None else None,
        )
        return await crawl.run(
            settings_after({}),
            crawl_parts,
            progress=around.progress,
            stop=stop,
            orders=around.orders,
            settings_after=settings_after,
        )


def _enter(
    archive: Archive, job: CrawlJob, stack: AsyncExitStack, stop: asyncio.Event, watch: Watch
) -> Surroundings:
    """The surroundings of a crawl on this machine, alone or as one of several processes."""
    part, peers = job.part, None
    if part is None:
        publisher = stack.enter_context(closing(live.Publisher(job.folder, archive.clock)))
        progress = reporter(publisher, watch)
    else:
        progress, folder = _part_reporter(part, stop), job.folder / "parts"
        handover = FileHandover(folder, part.number, part.count, job.frontier, part.line)
        peers = Peers(part.number, owners(folder, part.count), stack.enter_context(closing(handover)))
    servers = stack.enter_context(closing(SharedServers(archive.harvests_folder / "servers")))
    return Surroundings(progress=progress, servers=servers, orders=Orders(job.folder), peers=peers)


def _pictures(job: CrawlJob) -> LastPictures:
    """The last screenshots; each process of a harvest has its own."""
    return LastPictures(job.folder if job.part is None else processes.folder_of(job.folder, job.part.number))


@asynccontextmanager
async def _organisation_hosts(archive: Archive, options: HarvestOptions) -> AsyncIterator[OrganisationHosts]:
    """The hosts of the organisation that the harvest is limited to; without one, no rules."""
    if not options.organisation:
        yield OrganisationHosts()
        return
    # Loads dnspython and cryptography, a third of a second; most harvests are not limited to an organisation.
    from webdepot.services.harvest import organisation_hosts

    async with organisation_hosts.open_gate(
        archive, options.organisation, options.host_rules, allow_private=options.allow_private
    ) as hosts:
        yield hosts


def _router(archive: Archive, job: CrawlJob, organisation: OrganisationHosts) -> Router:
    """Looks up host names; each answer is kept with the harvest."""
    config = archive.config.harvest
    return Router(
        allow_private=job.options.allow_private,
        private_networks=config.private_networks,
        connect_to=config.connect_to,
        timeout_s=config.connect_timeout_s,
        look_up=organisation.look_up,
        on_found=lambda host, addresses: job.on_look_up(host, addresses, archive.clock()),
    )


def _fetcher(archive: Archive, job: CrawlJob, organisation: OrganisationHosts, router: Router) -> CurlFetcher:
    config = archive.config.harvest
    limits = FetchLimits(
        timeout_s=config.timeout_s,
        connect_timeout_s=config.connect_timeout_s,
        body_bytes=min(job.file_bytes or config.limit_file_bytes, config.limit_file_bytes),
    )
    return CurlFetcher(
        user_agent=archive.user_agent,
        limits=limits,
        router=router,
        clock=archive.clock,
        spool_folder=job.folder,
        ca_file=organisation.ca_file,
        access=harvest_options.access_of(archive, job.options),
        cookies=CookieJar() if config.cookies else None,
    )


def _browser(archive: Archive, options: HarvestOptions) -> Browser | None:
    """The browser, not started yet; None if no page of the harvest needs one."""
    program = harvest_options.browser_of(archive.config, options)
    if program is None:
        return None
    config = archive.config.harvest
    return Browser(
        program, sandbox=config.browser_sandbox, tabs=config.browser_tabs, agent=archive.user_agent
    )


def warcinfo(archive: Archive, harvest: Harvest) -> dict[str, str]:
    options = harvest_options.from_kept(harvest.settings)
    return {
        "software": f"Webdepot/{VERSION}",
        "hostname": socket.gethostname(),
        "operator": archive.agent,
        "publisher": archive.config.archive.name,
        "isPartOf": harvest.id,
        "http-header-user-agent": archive.user_agent,
        **({"tls": "certificates were not verified"} if archive.config.harvest.tls == "accept" else {}),
        "robots": f"{options.robots}: {options.robots_reason}" if options.robots_reason else options.robots,
        **({"profile": options.profile} if options.profile else {}),
        **({"description": "Demonstration: the dates are invented."} if archive.config.archive.demo else {}),
    }


def _stop_on_signals() -> asyncio.Event:
    """An event that is set by Ctrl-C or a service manager's TERM; only the main thread receives signals."""
    stop = asyncio.Event()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def reporter(publisher: live.Publisher, watch: Watch) -> Callable[[CrawlProgress], None]:
    """Shows progress in `live.json` and to the caller."""

    def report(progress: CrawlProgress) -> None:
        publisher(progress)
        watch(
            Progress(
                phase=Phase.HARVEST,
                done=progress.fetched,
                size_bytes=progress.size_bytes,
                rate=progress.rate,
                waiting=progress.waiting,
                errors=progress.errors,
                pages=progress.pages,
                failed_parts=progress.failed_parts,
                note=_doing(progress),
            )
        )

    return report


def _doing(progress: CrawlProgress) -> str:
    """What the crawl does at the moment, and what it waits for."""
    if progress.paused:
        return "paused"
    if progress.opened:
        return f"in the browser: {progress.opened}"
    if progress.wait_s >= 1:
        return f"waiting {progress.wait_s:.0f} s before the next request to a server"
    return progress.asked


def _part_reporter(part: HarvestPart, stop: asyncio.Event) -> Callable[[CrawlProgress], None]:
    """Sends progress to the leading process, and stops the crawl when that process asks for it."""

    def report(progress: CrawlProgress) -> None:
        part.line.send("progress", progress)
        if part.line.must_stop():
            stop.set()

    return report
