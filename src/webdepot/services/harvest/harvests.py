"""Harvests as rows and folders: find them, list them, lock them, register their containers.

    harvests/ID/
      lock                     held while a process works on it
      frontier/                every address seen, and the queue
      crawl.log, crawl.jsonl   one line per page
      orders.jsonl             orders given while it ran, or between two runs
      warc/                    containers; `.open` while written
      direct                   present if `webdepot archive` or `import` runs it, without a review before the
                               deposit; an import holds its lock until nothing is left to do
      shown                    present if readers see it before it is in the depot (`visible_harvests`)

`runner` starts and runs them.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from webdepot import digest, durable
from webdepot.archive import Archive
from webdepot.container import locations, recovery
from webdepot.container.writer import Sealed
from webdepot.harvest import harvest_rows, order_file
from webdepot.harvest.parts import harvest_objects, part_rows
from webdepot.harvest.parts.objects import PartObjects
from webdepot.harvest.parts.part_rows import PartRow, PartState
from webdepot.model import Container, ContainerState, Harvest, HarvestKind, HarvestState
from webdepot.provenance import append

_LOCK_NAME = "lock"
_DIRECT_NAME = "direct"
_OPEN_PARTS = (PartState.WAITING, PartState.RUNNING)
"""States of parts that harvesters work on, or will work on."""


def get(archive: Archive, harvest: str) -> Harvest:
    """The harvest with this id; NotFound if there is none."""
    with archive.database.reading() as connection:
        return harvest_rows.get(connection, harvest)


def latest(archive: Archive, limit: int) -> list[Harvest]:
    """The newest harvests, newest first."""
    with archive.database.reading() as connection:
        return harvest_rows.latest(connection, limit)


def list_page(archive: Archive, query: harvest_rows.HarvestFilter) -> harvest_rows.HarvestPage:
    """A page of harvests, filtered and sorted in the database."""
    with archive.database.reading() as connection:
        return harvest_rows.list_page(connection, query)


def folder_of(archive: Archive, harvest: Harvest) -> Path:
    """The working folder of a harvest."""
    return archive.harvests_folder / harvest.id


def containers_folder(archive: Archive, harvest: Harvest) -> Path:
    """Where the containers of a harvest are written."""
    return folder_of(archive, harvest) / "warc"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder of a harvest for this process; Conflict if another process holds it."""
    durable.make_folders(folder)
    busy = f"Another process is working on harvest {folder.name}. Wait until it has finished, or stop it."
    with durable.locked(folder / _LOCK_NAME, busy=busy):
        yield


def is_locked(archive: Archive, harvest: Harvest) -> bool:
    """Whether a living process works on it, or harvesters will."""
    is_here = durable.is_locked(folder_of(archive, harvest) / _LOCK_NAME)
    return is_here or any(part.state in _OPEN_PARTS for part in parts_of(archive, harvest))


def parts_of(archive: Archive, harvest: Harvest) -> list[PartRow]:
    """The parts of a harvest that is offered to harvesters; none if it runs on one machine."""
    if not archive.config.cluster.harvesters:
        return []
    with archive.database.reading() as connection:
        return part_rows.of_harvest(connection, harvest.id)


def gather(archive: Archive, harvest: Harvest, parts: Sequence[PartRow]) -> None:
    """Bring logs, orders and containers of a harvest into its folder on this machine. Can be repeated. Parts
    whose harvesters died, and that nobody took since then, are completed first: nothing of their checkpoints
    may be missing.
    """
    folder = folder_of(archive, harvest)
    durable.make_folders(folder)
    for part in parts:
        scratch = folder / f"part-{part.part}"
        PartObjects(archive.work, harvest.id, part.part).complete(scratch, part.spans)
        shutil.rmtree(scratch, ignore_errors=True)
    spans = {part.part: part.spans for part in parts}
    harvest_objects.fetch_logs(archive.work, harvest.id, spans, folder)
    harvest_objects.fetch_containers(archive.work, harvest.id, containers_folder(archive, harvest))
    with archive.database.leasing() as connection:
        orders = part_rows.orders_of(connection, harvest.id)
    if orders:
        durable.write_whole(
            folder / order_file.FILE_NAME, "".join(f"{line}\n" for _, line in orders).encode()
        )


def patches_of(archive: Archive, harvest: Harvest) -> list[Harvest]:
    """The patches of a harvest, the oldest first."""
    with archive.database.reading() as connection:
        patches = harvest_rows.of_target(connection, harvest.target, HarvestKind.PATCH)
    return [each for each in reversed(patches) if harvest_rows.is_patch_of(each, harvest)]


def mark_direct(archive: Archive, harvest: Harvest) -> None:
    """Note that the process that runs a harvest deposits and indexes it, without a review. If that process is
    killed, the next one knows that it has to continue.
    """
    folder = folder_of(archive, harvest)
    durable.make_folders(folder)
    durable.write_whole(folder / _DIRECT_NAME, b"")


@contextmanager
def direct(archive: Archive, harvest: Harvest, *, waits: bool = False) -> Iterator[None]:
    """As `mark_direct`; no other process can do the same until the block ends. Conflict if another one does,
    or with `waits`, wait for it.
    """
    folder = folder_of(archive, harvest)
    durable.make_folders(folder)
    busy = f"Another process is importing harvest {harvest.id}. Wait until it has finished, or stop it."
    with durable.locked(folder / _DIRECT_NAME, busy=None if waits else busy):
        durable.sync_folder(folder)
        yield


def is_direct(archive: Archive, harvest: Harvest) -> bool:
    return (folder_of(archive, harvest) / _DIRECT_NAME).exists()


def end_direct(archive: Archive, harvest: Harvest) -> None:
    """Note that nothing is left to do."""
    (folder_of(archive, harvest) / _DIRECT_NAME).unlink(missing_ok=True)
    is_empty = harvest.kind is HarvestKind.IMPORT and harvest.state is HarvestState.FAILED
    if harvest.state is HarvestState.KEPT or is_empty:
        remove_folder(archive, harvest)


def remove_folder(archive: Archive, harvest: Harvest) -> None:
    """Remove the working folder of a harvest that is in the depot or empty, except its mark `direct`."""
    folder = folder_of(archive, harvest)
    if archive.config.cluster.harvesters:
        harvest_objects.delete_all(archive.work, harvest.id)
        with archive.database.transaction() as connection:
            part_rows.forget(connection, harvest.id)
    if not is_direct(archive, harvest):
        shutil.rmtree(folder, ignore_errors=True)
        durable.sync_folder(archive.harvests_folder)
        return
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _DIRECT_NAME:
            path.unlink(missing_ok=True)


def finished_folders(archive: Archive) -> list[Path]:
    """Working folders that are no longer needed: the harvest is in the depot, and no process works on it."""
    with archive.database.reading() as connection:
        return [
            folder
            for folder in sorted(archive.harvests_folder.glob("*"))
            if harvest_rows.exists(connection, folder.name)
            and harvest_rows.get(connection, folder.name).state is HarvestState.KEPT
            and not durable.is_locked(folder / _LOCK_NAME)
            and not durable.is_locked(folder / _DIRECT_NAME)
        ]


def register_containers(archive: Archive, harvest: Harvest) -> None:
    """Register every sealed container in the folder that has no row yet: bytes first, then the database."""
    for path in sorted(containers_folder(archive, harvest).glob("*.warc.gz")):
        with archive.database.reading() as connection:
            if locations.find(connection, path.name) is not None:
                continue
        size_bytes = path.stat().st_size
        count = recovery.whole_records(path, size_bytes)[1]
        sha256 = digest.of_file(path).value.hex()
        register(
            archive,
            harvest,
            Sealed(path=path, name=path.name, size_bytes=size_bytes, sha256=sha256, records=count),
        )


def register(archive: Archive, harvest: Harvest, sealed: Sealed) -> Container:
    """Add the row of a sealed container, with an event."""
    container = Container(
        name=sealed.name,
        harvest=harvest.id,
        state=ContainerState.SEALED,
        size_bytes=sealed.size_bytes,
        sha256=sealed.sha256,
        records=sealed.records,
        place=sealed.path.relative_to(archive.home).as_posix(),
    )
    event = archive.event("sealed", "container", container.name, detail={"sha256": container.sha256})
    with archive.database.transaction() as connection:
        locations.add(connection, container)
        append(connection, event)
    return container
