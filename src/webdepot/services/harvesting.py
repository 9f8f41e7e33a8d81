"""Running a harvest: from seeds to sealed containers, safe against a crash at any moment.

    harvests/ID/
      lock                     held while a process works on it
      frontier/                the life of every URI
      crawl.log, crawl.jsonl   one line per page
      orders.jsonl             what it was told while it ran, or between two runs
      warc/                    containers; `.open` while written

A checkpoint makes containers and logs durable, then commits the frontier with their sizes. After a crash `run` cuts all of
them back to the last checkpoint: nothing acknowledged is lost, nothing is stored twice.
"""

import asyncio
import fcntl
import gc
import signal
import socket
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import uvloop
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from webdepot import digest
from webdepot.archive import Archive
from webdepot.container import recovery, shelf
from webdepot.container.writer import ContainerWriter, Sealed
from webdepot.errors import Conflict, InputError, NoSpace, RemoteError
from webdepot.harvest import control, crawl, live, log, runs
from webdepot.harvest.addresses import Router
from webdepot.harvest.browser import Browser
from webdepot.harvest.cookies import CookieJar
from webdepot.harvest.fetch_http import CurlFetcher, FetchLimits
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.identity import identity_without
from webdepot.harvest.log import CrawlLog
from webdepot.harvest.peers import Peers
from webdepot.harvest.result import CrawlProgress, CrawlResult, CrawlSettings, End, Trouble
from webdepot.harvest.servers import SharedServers
from webdepot.model import Container, ContainerState, Harvest, HarvestId, HarvestKind, HarvestState, TargetId
from webdepot.provenance import Event, Outcome, append, difference
from webdepot.services import harvest_options, harvest_parts, selecting
from webdepot.services.harvest_options import HarvestOptions
from webdepot.services.harvest_parts import Part
from webdepot.services.open_gate import OpenGate
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.services.visit_keeper import ContainerKeeper
from webdepot.url import Url, from_typed, host_of
from webdepot.version import VERSION

LAST_BREATHS = 50
"""Tenths of a second that a resumed harvest waits for processes of its killed predecessor."""


def start_or_resume(archive: Archive, typed: Sequence[str], options: HarvestOptions) -> Harvest:
    """The harvest to run for these addresses: the unfinished one, with today's options, or a new one past the gate."""
    if not typed:
        raise InputError("Name at least one address, like https://www.example.org/")
    seeds = tuple(dict.fromkeys(map(from_typed, typed)))
    harvest_options.browser_of(archive.config, options)
    target = selecting.nominate(archive, seeds, collection=options.collection)
    selecting.admit(archive, target, [selecting.operators_decision(archive)])
    with archive.database.transaction() as connection:
        found = runs.unfinished(connection, target.id, HarvestKind.HARVEST)
        if found is not None:
            runs.set_settings(connection, found.id, asdict(options))
            return runs.get(connection, found.id)
        return begin(connection, archive, target.id, seeds, options)


def begin(connection: Connection, archive: Archive, target: TargetId, seeds: Sequence[Url], options: HarvestOptions) -> Harvest:
    """A new harvest in the caller's transaction. Whether it may be is the caller's to ask."""
    now = archive.clock()
    harvest = Harvest(
        id=runs.new_id(now, host_of(seeds[0])),
        target=target,
        kind=HarvestKind.HARVEST,
        state=HarvestState.RUNNING,
        seeds=tuple(seeds),
        collection=options.collection,
        settings=asdict(options),
        started_at=now,
    )
    runs.begin(connection, harvest)
    detail = difference({}, {"state": harvest.state.value})
    append(connection, _event(archive, harvest, "started", message=", ".join(seeds), detail=detail))
    return harvest


def get(archive: Archive, harvest: str) -> Harvest:
    with archive.database.reading() as connection:
        return runs.get(connection, harvest)


def latest(archive: Archive, limit: int) -> list[Harvest]:
    with archive.database.reading() as connection:
        return runs.latest(connection, limit)


def listed(archive: Archive, asked: runs.ListFilter) -> runs.Listed:
    """A page of harvests: filtered and sorted in the database."""
    with archive.database.reading() as connection:
        return runs.listing(connection, asked)


def run(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> Harvest:
    """Run it to its end, or until it is told to stop (then it can be run again). RemoteError when nothing came at all."""
    selecting.refuse_if_refused(archive, harvest.target)
    harvest_options.browser_of(archive.config, harvest_options.from_kept(harvest.settings))
    with locked(folder_of(archive, harvest)):
        recover(archive, harvest)
        with archive.database.transaction() as connection:
            runs.move(connection, harvest.id, HarvestState.RUNNING)
        try:
            result = _crawl_shared(archive, harvest, watch) if _processes(archive, harvest) > 1 else _crawl(archive, harvest, watch)
        except (NoSpace, OSError) as error:
            # Nothing can be trusted to have been written after the last checkpoint; the next run cuts back to it.
            with suppress(OSError, SQLAlchemyError):
                _end(archive, harvest, HarvestState.STOPPED, reason=str(error), counts=harvest.counts)
            raise
        _register_containers(archive, harvest)
        state = _state_after(result)
        _end(archive, harvest, state, reason=result.explain(), counts=result.counts)
    if state is HarvestState.FAILED:
        raise RemoteError(f"Nothing was harvested. {result.explain()}", retry=result.trouble is Trouble.UNREACHABLE)
    return get(archive, harvest.id)


def recover(archive: Archive, harvest: Harvest) -> str:
    """Bring the working folder back to its last checkpoint after a crash; what was done, in words. Repeatable."""
    folder = folder_of(archive, harvest)
    worked_in = [part for part in (folder, *harvest_parts.existing(folder)) if (part / "frontier").exists()]
    if not worked_in:
        return "nothing to recover"
    marks: dict[str, int] = {}
    for part in worked_in:
        its_marks = _marks_of(part)
        log.cut(part, its_marks)
        marks |= its_marks
    recovered = recovery.recover(containers_folder(archive, harvest), marks)
    _register_containers(archive, harvest)
    words = "; ".join(item.message for item in recovered) or "all containers were sealed"
    cut_bytes = sum(item.cut_bytes for item in recovered)
    if recovered:
        with archive.database.transaction() as connection:
            outcome = Outcome.WARNING if cut_bytes else Outcome.SUCCESS
            append(connection, _event(archive, harvest, "recovered", message=words, outcome=outcome, detail={"cut_bytes": cut_bytes}))
    return words


def _marks_of(part: Path) -> Mapping[str, int]:
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


def folder_of(archive: Archive, harvest: Harvest) -> Path:
    return archive.harvests_folder / harvest.id


def containers_folder(archive: Archive, harvest: Harvest) -> Path:
    return folder_of(archive, harvest) / "warc"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a harvest's folder for this process; Conflict when another one has it. A killed holder lets go by dying."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"Harvest {folder.name} is being worked on by another process. Wait for it, or stop that process.") from None
        yield


def is_locked(archive: Archive, harvest: Harvest) -> bool:
    """Does a living process work on it?"""
    path = folder_of(archive, harvest) / "lock"
    if not path.exists():
        return False
    with path.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _processes(archive: Archive, harvest: Harvest) -> int:
    """As many as the harvest was begun with: its hosts are shared out for good."""
    folder = folder_of(archive, harvest)
    if (folder / "frontier").exists():
        return 1
    return len(harvest_parts.existing(folder)) or archive.config.harvest.processes


def _crawl_shared(archive: Archive, harvest: Harvest, watch: Watch) -> CrawlResult:
    options, folder = harvest_options.from_kept(harvest.settings), folder_of(archive, harvest)
    publisher = live.Publisher(folder, archive.clock)

    def tell(progress: CrawlProgress) -> None:
        publisher(progress)
        watch(_progress(progress))

    try:
        return harvest_parts.run(
            archive,
            harvest,
            folder,
            _processes(archive, harvest),
            _crawl_part,
            tell=tell,
            on_sealed=lambda sealed: _register(archive, harvest, sealed),
            limits=(options.limit_pages, options.limit_bytes),
        )
    finally:
        publisher.close()


def _crawl_part(home: Path, harvest: HarvestId, part: Part) -> CrawlResult:
    """In a process of its own."""
    with Archive.open(home) as archive:
        return _crawl(archive, get(archive, harvest), unwatched, part)


def _crawl(archive: Archive, harvest: Harvest, watch: Watch, part: Part | None = None) -> CrawlResult:
    folder = folder_of(archive, harvest) if part is None else harvest_parts.folder_of(folder_of(archive, harvest), part.number)
    writer = ContainerWriter(
        containers_folder(archive, harvest),
        prefix=harvest.id if part is None else f"{harvest.id}-{part.number}",
        size_bytes=archive.config.container.size_bytes,
        info=_warcinfo(archive, harvest),
        clock=archive.clock,
        on_sealed=lambda sealed: _register(archive, harvest, sealed) if part is None else part.line.send("sealed", sealed),
    )
    parameters = harvest_options.from_kept(harvest.settings).ignore_parameters
    frontier = LmdbFrontier(folder / "frontier", identity=identity_without(parameters))
    crawl_log = CrawlLog(folder)
    try:
        # The first harvest of an archive has nothing to compare with.
        has_captures = next(iter(archive.captures.containers()), None) is not None
        keeper = ContainerKeeper(writer, archive.captures if has_captures else None, frontier)
        result = _in_event_loop(_run_crawl(archive, harvest, frontier, keeper, crawl_log, watch, part))
        writer.close()
        return result
    finally:
        crawl_log.close()
        frontier.close()


async def _run_crawl(
    archive: Archive,
    harvest: Harvest,
    frontier: LmdbFrontier,
    keeper: ContainerKeeper,
    crawl_log: CrawlLog,
    watch: Watch,
    part: Part | None,
) -> CrawlResult:
    options = harvest_options.from_kept(harvest.settings)
    if not options.organisation:
        return await _run_crawl_with(archive, harvest, frontier, keeper, crawl_log, watch, OpenGate(), part)
    # Here, because the look-ups of an organisation use our user agent, and because it takes a third of a second to load.
    from webdepot.services import belonging

    async with belonging.gate_of(archive, options.organisation, options.host_rules, allow_private=options.allow_private) as gate:
        return await _run_crawl_with(archive, harvest, frontier, keeper, crawl_log, watch, gate, part)


async def _run_crawl_with(
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
    limits = FetchLimits(timeout_s=given.timeout_s, connect_timeout_s=given.connect_timeout_s, body_bytes=given.limit_file_bytes)
    agent = user_agent(archive)
    fetcher = CurlFetcher(
        user_agent=agent,
        limits=limits,
        router=router,
        clock=archive.clock,
        spool_folder=folder_of(archive, harvest),
        ca_file=gate.ca_file,
        access=harvest_options.access_of(archive, options),
        cookies=CookieJar() if given.cookies else None,
    )
    program = harvest_options.browser_of(archive.config, options)
    browser = Browser(program, sandbox=given.browser_sandbox, tabs=given.browser_tabs, agent=agent) if program is not None else None
    shared = SharedServers(archive.harvests_folder / "servers")
    stop = _stop_on_signals()
    folder = folder_of(archive, harvest)
    publisher = live.Publisher(folder if part is None else harvest_parts.folder_of(folder, part.number), archive.clock)
    others = Peers(folder / "parts", part.number, part.count, frontier, part.line) if part is not None else None

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
            orders=control.Orders(folder_of(archive, harvest)),
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


def user_agent(archive: Archive) -> str:
    """Honest: what we are, whose we are, where to complain."""
    given = archive.config
    contact = given.archive.contact or given.web.portal_url
    return given.harvest.user_agent or f"Webdepot/{VERSION} ({f'+{contact}; ' if contact else ''}{given.archive.name})"


def _warcinfo(archive: Archive, harvest: Harvest) -> dict[str, str]:
    options = harvest_options.from_kept(harvest.settings)
    return {
        "software": f"Webdepot/{VERSION}",
        "hostname": socket.gethostname(),
        "operator": archive.agent,
        "publisher": archive.config.archive.name,
        "isPartOf": harvest.id,
        "http-header-user-agent": user_agent(archive),
        **({"tls": "certificates were not verified"} if archive.config.harvest.tls == "accept" else {}),
        "robots": f"{options.robots}: {options.robots_reason}" if options.robots_reason else options.robots,
        **({"profile": options.profile} if options.profile else {}),
        **({"description": "Demonstration: the dates are invented."} if archive.config.archive.demo else {}),
    }


def _in_event_loop(work: Coroutine[None, None, CrawlResult]) -> CrawlResult:
    # A page makes some hundred objects and hardly a cycle: the collector need not look at all of them every third page.
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


def _state_after(result: CrawlResult) -> HarvestState:
    if result.end in (End.STOPPED, End.NO_ROOM):
        return HarvestState.STOPPED
    # An empty page is an answer worth keeping; everything else that is trouble brought nothing.
    if result.trouble is not None and result.trouble is not Trouble.EMPTY:
        return HarvestState.FAILED
    return HarvestState.FINISHED


def _register_containers(archive: Archive, harvest: Harvest) -> None:
    """Every sealed container of the folder has its row; bytes first, then the database."""
    for path in sorted(containers_folder(archive, harvest).glob("*.warc.gz")):
        with archive.database.reading() as connection:
            if shelf.find(connection, path.name) is not None:
                continue
        size_bytes = path.stat().st_size
        count = recovery.whole_records(path, size_bytes)[1]
        sha256 = digest.of_file(path).value.hex()
        _register(archive, harvest, Sealed(path=path, name=path.name, size_bytes=size_bytes, sha256=sha256, records=count))


def _register(archive: Archive, harvest: Harvest, sealed: Sealed) -> None:
    container = Container(
        name=sealed.name,
        harvest=harvest.id,
        state=ContainerState.SEALED,
        size_bytes=sealed.size_bytes,
        sha256=sealed.sha256,
        records=sealed.records,
        place=sealed.path.relative_to(archive.home).as_posix(),
    )
    event = _event(archive, harvest, "sealed", kind="container", subject=container.name, detail={"sha256": container.sha256})
    with archive.database.transaction() as connection:
        shelf.add(connection, container)
        append(connection, event)


def _end(archive: Archive, harvest: Harvest, state: HarvestState, *, reason: str, counts: Mapping[str, int]) -> None:
    outcome = Outcome.SUCCESS if state is HarvestState.FINISHED else Outcome.WARNING if state is HarvestState.STOPPED else Outcome.FAILURE
    with archive.database.transaction() as connection:
        before = runs.get(connection, harvest.id).state
        runs.move(connection, harvest.id, state, reason=reason, counts=counts, ended_at=archive.clock())
        # Its folder goes, and `scope explain` wants to know.
        if ordered := control.standing(control.read(folder_of(archive, harvest))).changes:
            options = harvest_options.changed(harvest_options.from_kept(harvest.settings), ordered)
            runs.set_settings(connection, harvest.id, {**harvest.settings, **asdict(options)})
        detail = {**counts, **difference({"state": before.value}, {"state": state.value})}
        append(connection, _event(archive, harvest, "harvested", message=reason, outcome=outcome, detail=detail))


def _event(
    archive: Archive,
    harvest: Harvest,
    action: str,
    *,
    kind: str = "harvest",
    subject: str = "",
    message: str = "",
    outcome: Outcome = Outcome.SUCCESS,
    detail: Mapping[str, object] | None = None,
) -> Event:
    return Event(
        at=archive.clock(),
        agent=archive.agent,
        action=action,
        subject_kind=kind,
        subject=subject or harvest.id,
        outcome=outcome,
        message=message,
        detail=detail or {},
    )
