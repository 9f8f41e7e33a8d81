"""Running a harvest: from seeds to sealed containers, safe against a crash at any moment.

    harvests/ID/
      lock                     held while a process works on it
      frontier/                the life of every URI
      crawl.log, crawl.jsonl   one line per page
      orders.jsonl             what it was told while it ran, or between two runs
      warc/                    containers; `.open` while written

A checkpoint makes containers and logs durable, then commits the frontier with their sizes. After a crash
`run` cuts all of them back to the last checkpoint: nothing acknowledged is lost, nothing is stored twice.
"""

import fcntl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from webdepot import digest
from webdepot.archive import Archive
from webdepot.container import recovery, shelf
from webdepot.container.writer import Sealed
from webdepot.errors import Conflict, InputError, NoSpace, RemoteError
from webdepot.harvest import control, runs
from webdepot.harvest.report import log
from webdepot.model import Container, ContainerState, Harvest, HarvestKind, HarvestState, TargetId
from webdepot.provenance import Event, Outcome, append, difference
from webdepot.services.progress import Watch, unwatched
from webdepot.services.selection import targets
from webdepot.url import Url, from_typed, host_of

if TYPE_CHECKING:
    from webdepot.services.harvest.options import HarvestOptions


def start_or_resume(archive: Archive, typed: Sequence[str], options: "HarvestOptions") -> Harvest:
    """The harvest to run for these addresses: the unfinished one, with today's options, or a new one past the
    gate.
    """
    if not typed:
        raise InputError("Name at least one address, like https://www.example.org/")
    from webdepot.services.harvest import options as harvest_options

    seeds = tuple(dict.fromkeys(map(from_typed, typed)))
    harvest_options.browser_of(archive.config, options)
    target = targets.nominate(archive, seeds, collection=options.collection)
    targets.admit(archive, target, [targets.operators_decision(archive)])
    with archive.database.transaction() as connection:
        found = runs.unfinished(connection, target.id, HarvestKind.HARVEST)
        if found is not None:
            runs.set_settings(connection, found.id, asdict(options))
            return runs.get(connection, found.id)
        return begin(connection, archive, target.id, seeds, options)


def begin(
    connection: Connection,
    archive: Archive,
    target: TargetId,
    seeds: Sequence[Url],
    options: "HarvestOptions",
) -> Harvest:
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
    """Run it to its end, or until it is told to stop (then it can be run again). RemoteError when nothing
    came at all.
    """
    from webdepot.services.harvest import crawler
    from webdepot.services.harvest import (
        options as harvest_options,  # the crawler itself, which most commands do not need
    )

    targets.refuse_if_refused(archive, harvest.target)
    harvest_options.browser_of(archive.config, harvest_options.from_kept(harvest.settings))
    with locked(folder_of(archive, harvest)):
        recover(archive, harvest)
        with archive.database.transaction() as connection:
            runs.move(connection, harvest.id, HarvestState.RUNNING)
        try:
            result = crawler.run(archive, harvest, watch)
        except (NoSpace, OSError) as error:
            # Nothing can be trusted to have been written after the last checkpoint; the next run cuts back to
            # it.
            with suppress(OSError, SQLAlchemyError):
                _end(archive, harvest, HarvestState.STOPPED, reason=str(error), counts=harvest.counts)
            raise
        _register_containers(archive, harvest)
        state = crawler.state_after(result)
        _end(archive, harvest, state, reason=result.explain(), counts=result.counts)
    if state is HarvestState.FAILED:
        raise RemoteError(f"Nothing was harvested. {result.explain()}", retry=crawler.is_out_of_reach(result))
    return get(archive, harvest.id)


def recover(archive: Archive, harvest: Harvest) -> str:
    """Bring the working folder back to its last checkpoint after a crash; what was done, in words.
    Repeatable.
    """
    from webdepot.services.harvest import crawler

    worked_in = crawler.worked_in(folder_of(archive, harvest))
    if not worked_in:
        return "nothing to recover"
    marks: dict[str, int] = {}
    for part in worked_in:
        its_marks = crawler.marks_of(part)
        log.cut(part, its_marks)
        marks |= its_marks
    recovered = recovery.recover(containers_folder(archive, harvest), marks)
    _register_containers(archive, harvest)
    words = "; ".join(item.message for item in recovered) or "all containers were sealed"
    cut_bytes = sum(item.cut_bytes for item in recovered)
    if recovered:
        with archive.database.transaction() as connection:
            outcome = Outcome.WARNING if cut_bytes else Outcome.SUCCESS
            append(
                connection,
                _event(
                    archive,
                    harvest,
                    "recovered",
                    message=words,
                    outcome=outcome,
                    detail={"cut_bytes": cut_bytes},
                ),
            )
    return words


def folder_of(archive: Archive, harvest: Harvest) -> Path:
    return archive.harvests_folder / harvest.id


def containers_folder(archive: Archive, harvest: Harvest) -> Path:
    return folder_of(archive, harvest) / "warc"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a harvest's folder for this process; Conflict when another one has it. A killed holder lets go by
    dying.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(
                f"Harvest {folder.name} is being worked on by another process. Wait for it, or stop that process."
            ) from None
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


def _register_containers(archive: Archive, harvest: Harvest) -> None:
    """Every sealed container of the folder has its row; bytes first, then the database."""
    for path in sorted(containers_folder(archive, harvest).glob("*.warc.gz")):
        with archive.database.reading() as connection:
            if shelf.find(connection, path.name) is not None:
                continue
        size_bytes = path.stat().st_size
        count = recovery.whole_records(path, size_bytes)[1]
        sha256 = digest.of_file(path).value.hex()
        register(
            archive,
            harvest,
            Sealed(path=path, name=path.name, size_bytes=size_bytes, sha256=sha256, records=count),
        )


def register(archive: Archive, harvest: Harvest, sealed: Sealed) -> None:
    """A container that is whole gets its row."""
    container = Container(
        name=sealed.name,
        harvest=harvest.id,
        state=ContainerState.SEALED,
        size_bytes=sealed.size_bytes,
        sha256=sealed.sha256,
        records=sealed.records,
        place=sealed.path.relative_to(archive.home).as_posix(),
    )
    event = _event(
        archive,
        harvest,
        "sealed",
        kind="container",
        subject=container.name,
        detail={"sha256": container.sha256},
    )
    with archive.database.transaction() as connection:
        shelf.add(connection, container)
        append(connection, event)


def _end(
    archive: Archive, harvest: Harvest, state: HarvestState, *, reason: str, counts: Mapping[str, int]
) -> None:
    from webdepot.services.harvest import options as harvest_options

    outcome = (
        Outcome.SUCCESS
        if state is HarvestState.FINISHED
        else Outcome.WARNING
        if state is HarvestState.STOPPED
        else Outcome.FAILURE
    )
    with archive.database.transaction() as connection:
        before = runs.get(connection, harvest.id).state
        runs.move(connection, harvest.id, state, reason=reason, counts=counts, ended_at=archive.clock())
        # Its folder goes, and `scope explain` wants to know.
        if ordered := control.standing(control.read(folder_of(archive, harvest))).changes:
            options = harvest_options.changed(harvest_options.from_kept(harvest.settings), ordered)
            runs.set_settings(connection, harvest.id, {**harvest.settings, **asdict(options)})
        detail = {**counts, **difference({"state": before.value}, {"state": state.value})}
        append(
            connection, _event(archive, harvest, "harvested", message=reason, outcome=outcome, detail=detail)
        )


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
