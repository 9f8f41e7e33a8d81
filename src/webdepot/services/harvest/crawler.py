"""The crawl of a harvest: everything it needs opened, run in one process or shared by several, and closed
again.

Apart from `harvests`, which knows harvests as rows and folders, since most commands ask about harvests and
only some run one: here are the fetcher, the frontier and all that reads pages, which take a fifth of a second
to load.
"""

import asyncio
import gc
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path

import uvloop

from webdepot.archive import Archive
from webdepot.container.writer import ContainerWriter
from webdepot.errors import Conflict
from webdepot.harvest import crawl
from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.control import Orders
from webdepot.harvest.fetch.addresses import Router
from webdepot.harvest.fetch.cookies import CookieJar
from webdepot.harvest.fetch.curl_transfer import FetchLimits
from webdepot.harvest.fetch.http import CurlFetcher
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.peers import Peers
from webdepot.harvest.politeness.servers import SharedServers
from webdepot.harvest.report import live
from webdepot.harvest.report.log import CrawlLog
from webdepot.harvest.report.result import CrawlProgress, CrawlResult, CrawlSettings, End, Trouble
from webdepot.harvest.scope.identity import identity_without
from webdepot.model import Harvest, HarvestId, HarvestState
from webdepot.services.harvest import harvests, parts
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest.keeper import ContainerKeeper
from webdepot.services.harvest.open_gate import OpenGate
from webdepot.services.harvest.parts import Part
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.version import VERSION

LAST_BREATHS = 50
"""Tenths of a second that a resumed harvest waits for processes of its killed predecessor."""


def run(archive: Archive, harvest: Harvest, watch: Watch) -> CrawlResult:
    """From the last checkpoint to the end, or until it is told to stop."""
    return (
        _crawl_shared(archive, harvest, watch)
        if _processes(archive, harvest) > 1
        else _crawl(archive, harvest, watch)
    )


def worked_in(folder: Path) -> list[Path]:
    """Of a harvest's folder and those of its parts, the ones where a crawl has begun."""
    return [part for part in (folder, *parts.existing(folder)) if (part / "frontier").exists()]


def marks_of(part: Path) -> Mapping[str, int]:
    """The marks of the last checkpoint. Processes whose leader was killed end by themselves, in a moment."""
    for patience in range(LAST_BREATHS, -1, -1):
        try:
            frontier = LmdbFrontier(part / "frontier")
        except Conflict:
            if not patience:
                raise
            time.sleep(0.1)
        else:
            break
    try:
        return frontier.marks()
    finally:
        frontier.close()


def _processes(archive: Archive, harvest: Harvest) -> int:
    """As many as the harvest was begun with: its hosts are shared out for good."""
    folder = harvests.folder_of(archive, harvest)
    if (folder / "frontier").exists():
        return 1
    return len(parts.existing(folder)) or archive.config.harvest.processes


def _crawl_shared(archive: Archive, harvest: Harvest, watch: Watch) -> CrawlResult:
    options, folder = harvest_options.from_kept(harvest.settings), harvests.folder_of(archive, harvest)
    publisher = live.Publisher(folder, archive.clock)

    def tell(progress: CrawlProgress) -> None:
        publisher(progress)
        watch(_progress(progress))

    try:
        return parts.run(
            archive,
            harvest,
            folder,
            _processes(archive, harvest),
            _crawl_part,
            tell=tell,
            on_sealed=lambda sealed: harvests.register(archive, harvest, sealed),
            limits=(options.limit_pages, options.limit_bytes),
        )
    finally:
        publisher.close()


def _crawl_part(home: Path, harvest: HarvestId, part: Part) -> CrawlResult:
    """In a process of its own."""
    with Archive.open(home) as archive:
        return _crawl(archive, harvests.get(archive, harvest), unwatched, part)


def _crawl(archive: Archive, harvest: Harvest, watch: Watch, part: Part | None = None) -> CrawlResult:
    folder = (
        harvests.folder_of(archive, harvest)
        if part is None
        else parts.folder_of(harvests.folder_of(archive, harvest), part.number)
    )
    writer = ContainerWriter(
        harvests.containers_folder(archive, harvest),
        prefix=harvest.id if part is None else f"{harvest.id}-{part.number}",
        size_bytes=archive.config.container.size_bytes,
        info=_warcinfo(archive, harvest),
        clock=archive.clock,
        on_sealed=lambda sealed: (
            harvests.register(archive, harvest, sealed) if part is None else part.line.send("sealed", sealed)
        ),
    )
    parameters = harvest_options.from_kept(harvest.settings).ignore_parameters
    frontier = LmdbFrontier(folder / "frontier", identity=identity_without(parameters))
    crawl_log = CrawlLog(folder)
    try:
        # The first harvest of an archive has nothing to compare with.
        has_captures = next(iter(archive.captures.containers()), None) is not None
        keeper = ContainerKeeper(writer, archive.captures if has_captures else None, frontier)
        result = _in_event_loop(
            _behind_gate(
                archive,
                harvest,
                lambda gate: _run_crawl(archive, harvest, frontier, keeper, crawl_log, watch, gate, part),
            )
        )
        writer.close()
        return result
    finally:
        crawl_log.close()
        frontier.close()


async def _behind_gate(
    archive: Archive, harvest: Harvest, run: Callable[[OpenGate], Awaitable[CrawlResult]]
) -> CrawlResult:
    """What `run` makes of the gate that the harvest needs: that of its organisation, or one that stands open."""
    options = harvest_options.from_kept(harvest.settings)
    if not options.organisation:
        return await run(OpenGate())
    # Here, because the look-ups of an organisation use our user agent, and because it takes a third of a
    # second to load.
    from webdepot.services.harvest import host_gate

    async with host_gate.gate_of(
        archive, options.organisation, options.host_rules, allow_private=options.allow_private
    ) as gate:
        return await run(gate)


async def _run_crawl(
    archive: Archive,
    harvest: Harvest,
    frontier: LmdbFrontier,
    keeper: ContainerKeeper,
    crawl_log: CrawlLog,
    watch: Watch,
    gate: OpenGate,
    part: Part | None,
) -> CrawlResult:
    given, options = archive.config.harvest, harvest_options.from_kept(harvest.settings)
    router = Router(
        allow_private=options.allow_private,
        connect_to=given.connect_to,
        timeout_s=given.connect_timeout_s,
        look_up=gate.look_up,
        on_found=lambda host, addresses: keeper.note_look_up(host, addresses, archive.clock()),
    )
    limits = FetchLimits(
        timeout_s=given.timeout_s,
        connect_timeout_s=given.connect_timeout_s,
        body_bytes=given.limit_file_bytes,
    )
    agent = archive.user_agent
    fetcher = CurlFetcher(
        user_agent=agent,
        limits=limits,
        router=router,
        clock=archive.clock,
        spool_folder=harvests.folder_of(archive, harvest),
        ca_file=gate.ca_file,
        access=harvest_options.access_of(archive, options),
        cookies=CookieJar() if given.cookies else None,
    )
    program = harvest_options.browser_of(archive.config, options)
    browser = (
        Browser(program, sandbox=given.browser_sandbox, tabs=given.browser_tabs, agent=agent)
        if program is not None
        else None
    )
    shared = SharedServers(archive.harvests_folder / "servers")
    stop = _stop_on_signals()
    folder = harvests.folder_of(archive, harvest)
    publisher = live.Publisher(
        folder if part is None else parts.folder_of(folder, part.number), archive.clock
    )
    others = (
        Peers(folder / "parts", part.number, part.count, frontier, part.line) if part is not None else None
    )

    def tell(progress: CrawlProgress) -> None:
        if part is None:
            publisher(progress)
            watch(_progress(progress))
            return
        part.line.send("progress", progress)
        if part.line.must_stop():
            stop.set()

    def settings(changes: Mapping[str, object]) -> CrawlSettings:
        return harvest_options.settings_of(
            archive,
            tuple(dict.fromkeys((*harvest.seeds, *gate.seeds))),
            harvest_options.changed(options, changes),
            agent=agent,
            router=router,
            organisation_of=gate.rules.words_of if gate.rules is not None else None,
            host_rules=gate.rules,
        )

    try:
        if browser is not None:
            await browser.begin()
        return await crawl.run(
            settings({}),
            frontier=frontier,
            fetcher=fetcher,
            keeper=keeper,
            log=crawl_log,
            clock=archive.clock,
            progress=tell,
            stop=stop,
            orders=Orders(harvests.folder_of(archive, harvest)),
            changed=settings,
            shared=shared,
            peers=others,
            browser=browser,
        )
    finally:
        if browser is not None:
            await browser.close()
        if others is not None:
            others.close()
        shared.close()
        publisher.close()
        await fetcher.close()


def _warcinfo(archive: Archive, harvest: Harvest) -> dict[str, str]:
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


def _in_event_loop(work: Coroutine[None, None, CrawlResult]) -> CrawlResult:
    # A page makes some hundred objects and hardly a cycle: the collector need not look at all of them every
    # third page.
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(work)
    finally:
        gc.set_threshold(*before)


def _stop_on_signals() -> asyncio.Event:
    """Ctrl-C and a service manager's TERM stop tidily; only the main thread can hear them."""
    stop = asyncio.Event()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _progress(progress: CrawlProgress) -> Progress:
    return Progress(
        phase=Phase.HARVEST,
        done=progress.fetched,
        size_bytes=progress.size_bytes,
        rate=progress.rate,
        waiting=progress.waiting,
        errors=progress.errors,
        note=progress.host,
    )


def state_after(result: CrawlResult) -> HarvestState:
    if result.end in (End.STOPPED, End.NO_ROOM):
        return HarvestState.STOPPED
    # An empty page is an answer worth keeping; everything else that is trouble brought nothing.
    if result.trouble is not None and result.trouble is not Trouble.EMPTY:
        return HarvestState.FAILED
    return HarvestState.FINISHED


def is_out_of_reach(result: CrawlResult) -> bool:
    """Whether nobody answered: worth another try."""
    return result.trouble is Trouble.UNREACHABLE
