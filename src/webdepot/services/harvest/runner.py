"""Running a harvest: from seeds to sealed containers, safe against a crash at any moment.

    start_or_resume ──> run ──> recover, crawl (`crawler`), register containers, end

A checkpoint makes containers and logs durable, then commits the frontier with their sizes. After a crash
`run` cuts all of them back to the last checkpoint: nothing acknowledged is lost, nothing is stored twice.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from webdepot.archive import Archive
from webdepot.container import locations, recovery
from webdepot.errors import InputError, RemoteError, WebdepotError
from webdepot.exchange import webhooks
from webdepot.exchange.webhooks import HookEvent
from webdepot.harvest import harvest_rows, order_file
from webdepot.harvest.report import live, log
from webdepot.harvest.report.result import CrawlResult, End, Trouble
from webdepot.model import Harvest, HarvestKind, HarvestState, TargetId
from webdepot.provenance import Outcome, append, difference
from webdepot.reasons import said, together
from webdepot.selection import targets as target_rows
from webdepot.services.harvest import crawler, harvests, shared_harvests
from webdepot.services.harvest import options as harvest_options
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.progress import Watch, unwatched
from webdepot.services.selection import targets
from webdepot.url import Url, find_canonical, from_typed, host_of

MOST_SEEDS = 10_000
_OUTCOMES = {HarvestState.FINISHED: Outcome.SUCCESS, HarvestState.STOPPED: Outcome.WARNING}


def start_or_resume(archive: Archive, typed: Sequence[str], options: HarvestOptions) -> Harvest:
    """The harvest to run for these addresses: the unfinished one, with the options given now, or a new one
    if its target is permitted.
    """
    if not typed:
        raise InputError("Name at least one address, like https://www.example.org/")
    seeds = tuple(dict.fromkeys(map(from_typed, typed)))
    harvest_options.browser_of(archive.config, options)
    target = targets.nominate(archive, seeds, collection=options.collection)
    targets.admit(archive, target, [targets.operators_decision(archive)])
    with archive.database.transaction() as connection:
        unfinished = harvest_rows.unfinished(connection, target.id, HarvestKind.HARVEST)
        if unfinished is not None:
            harvest_rows.set_settings(connection, unfinished.id, asdict(options))
            return harvest_rows.get(connection, unfinished.id)
        return begin(connection, archive, target.id, seeds, options)


def find_unfinished(archive: Archive, typed: Sequence[str]) -> Harvest | None:
    """The newest harvest of these addresses that can be resumed."""
    with archive.database.reading() as connection:
        target = target_rows.find_by_seeds(connection, tuple(dict.fromkeys(map(from_typed, typed))))
        return (
            harvest_rows.unfinished(connection, target, HarvestKind.HARVEST) if target is not None else None
        )


def find_interrupted(archive: Archive, typed: Sequence[str]) -> Harvest | None:
    """The newest harvest of these addresses, if its process was killed after its end, before it was deposited
    and indexed.
    """
    with archive.database.reading() as connection:
        target = target_rows.find_by_seeds(connection, tuple(dict.fromkeys(map(from_typed, typed))))
        newest = harvest_rows.newest_of(connection, target) if target is not None else None
    has_ended = newest is not None and newest.state in (HarvestState.FINISHED, HarvestState.KEPT)
    return newest if newest and has_ended and harvests.is_direct(archive, newest) else None


def begin(
    connection: Connection,
    archive: Archive,
    target: TargetId,
    seeds: Sequence[Url],
    options: HarvestOptions,
) -> Harvest:
    """Create a harvest in the caller's transaction. The caller has checked that it is permitted."""
    now = archive.clock()
    harvest = Harvest(
        id=harvest_rows.new_id(now, host_of(seeds[0])),
        target=target,
        kind=HarvestKind.HARVEST,
        state=HarvestState.RUNNING,
        seeds=tuple(seeds),
        collection=options.collection,
        settings=asdict(options),
        started_at=now,
    )
    harvest_rows.begin(connection, harvest)
    detail = difference({}, {"state": harvest.state.value})
    append(
        connection, archive.event("started", "harvest", harvest.id, message=", ".join(seeds), detail=detail)
    )
    return harvest


def begin_of_target(
    connection: Connection, archive: Archive, target: TargetId, options: HarvestOptions
) -> Harvest:
    """Create a harvest of a target's seeds, in the collection that the options name, else the target's.
    InputError if it is an object that came as files and has no web address.
    """
    row = target_rows.get(connection, target)
    if any(find_canonical(seed) is None for seed in row.seeds):
        text = "{name} came as files and has no web address, so it cannot be harvested."
        raise InputError(said("nothing_to_harvest", text, name=row.name))
    collection = options.collection if options.collection != "sites" else row.collection
    return begin(connection, archive, row.id, row.seeds[:MOST_SEEDS], replace(options, collection=collection))


def run(
    archive: Archive,
    harvest: Harvest,
    *,
    watch: Watch = unwatched,
    on_sealed: crawler.OnSealed = lambda _: None,
) -> Harvest:
    """Run a harvest until it ends or is stopped (then it can be run again). `on_sealed` gets its containers
    as they are sealed, at first those of earlier runs.

    RemoteError if nothing could be harvested; Conflict if another process works on it.
    """
    targets.refuse_if_refused(archive, harvest.target)
    options, folder = harvest_options.from_kept(harvest.settings), harvests.folder_of(archive, harvest)
    # A harvest that was begun here before there were harvesters ends here.
    is_shared = archive.config.cluster.harvesters and not crawler.begun_folders(folder)
    if not is_shared:
        harvest_options.browser_of(archive.config, options)
        harvest_options.access_of(archive, options)
    with (
        harvests.locked(folder),
        shared_harvests.watching(archive, harvest) if is_shared else nullcontext(),
    ):
        recover(archive, harvest)
        with archive.database.transaction() as connection:
            harvest_rows.move(connection, harvest.id, HarvestState.RUNNING)
            sealed_before = locations.of_harvest(connection, harvest.id)
        for container in sealed_before:
            on_sealed(container)
        try:
            result = (
                shared_harvests.run(archive, harvest, watch)
                if is_shared
                else crawler.run(archive, harvest, watch, on_sealed)
            )
        except Exception as error:
            # Nothing written after the last checkpoint can be trusted; the next run cuts back to it.
            is_known = isinstance(error, (WebdepotError, OSError))
            reason = str(error) if is_known else f"It ended with an error: {type(error).__name__}: {error}"
            numbers = live.read(folder)
            counts = live.counts_of(numbers) if numbers is not None else harvest.counts
            with suppress(OSError, SQLAlchemyError):
                _end(archive, harvest, HarvestState.STOPPED, reason=reason, counts=counts)
            raise
        harvests.register_containers(archive, harvest)
        state = _state_after(result)
        _end(archive, harvest, state, reason=result.explain(), counts=result.counts)
    if state is HarvestState.FAILED:
        # If no server responded, another try may succeed.
        nothing = said("nothing_harvested", "Nothing was harvested.")
        raise RemoteError(together([nothing, result.explain()]), retry=result.trouble is Trouble.UNREACHABLE)
    return harvests.get(archive, harvest.id)


def recover(archive: Archive, harvest: Harvest) -> str:
    """Bring the working folder back to its last checkpoint after a crash; return a sentence about what was
    done.

    Repeatable.
    """
    folders = crawler.begun_folders(harvests.folder_of(archive, harvest))
    if not folders:
        return "nothing to recover"
    marks: dict[str, int] = {}
    for folder in folders:
        folder_marks = crawler.read_marks(folder)
        log.cut(folder, folder_marks)
        marks |= folder_marks
    recovered = recovery.recover(harvests.containers_folder(archive, harvest), marks)
    harvests.register_containers(archive, harvest)
    message = "; ".join(item.message for item in recovered) or "all containers were sealed"
    cut_bytes = sum(item.cut_bytes for item in recovered)
    if recovered:
        event = archive.event(
            "recovered",
            "harvest",
            harvest.id,
            message=message,
            outcome=Outcome.WARNING if cut_bytes else Outcome.SUCCESS,
            detail={"cut_bytes": cut_bytes},
        )
        with archive.database.transaction() as connection:
            append(connection, event)
    return message


def _state_after(result: CrawlResult) -> HarvestState:
    if result.end in (End.STOPPED, End.NO_ROOM):
        return HarvestState.STOPPED
    # An empty page is an answer worth keeping; with any other trouble nothing was harvested.
    if result.trouble is not None and result.trouble is not Trouble.EMPTY:
        return HarvestState.FAILED
    return HarvestState.FINISHED


def _end(
    archive: Archive, harvest: Harvest, state: HarvestState, *, reason: str, counts: Mapping[str, int]
) -> None:
    """Record the end of a run: state, reason and counts, and the settings as orders have changed them."""
    with archive.database.transaction() as connection:
        before = harvest_rows.get(connection, harvest.id).state
        harvest_rows.move(
            connection, harvest.id, state, reason=reason, counts=counts, ended_at=archive.clock()
        )
        # The working folder is deleted later, and `scope explain` needs the changed settings.
        orders = order_file.read(harvests.folder_of(archive, harvest))
        if changes := order_file.summarize(orders).changes:
            options = harvest_options.with_changes(harvest_options.from_kept(harvest.settings), changes)
            harvest_rows.set_settings(connection, harvest.id, {**harvest.settings, **asdict(options)})
        detail = {**counts, **difference({"state": before.value}, {"state": state.value})}
        outcome = _OUTCOMES.get(state, Outcome.FAILURE)
        append(
            connection,
            archive.event("harvested", "harvest", harvest.id, message=reason, outcome=outcome, detail=detail),
        )
        if state in (HarvestState.FINISHED, HarvestState.FAILED):
            ended = harvest_rows.get(connection, harvest.id)
            webhooks.queue(
                connection,
                HookEvent.HARVEST_FINISHED,
                f"{ended.id} {state.value}",
                webhooks.data_of(ended),
                now=archive.clock(),
            )
