"""Containers read in place: WARC, ARC and WACZ in other folders, on web servers, in buckets. They are
indexed, searched and replayed like all others; the archive keeps their place, size and checksum, but not
their bytes.

1. Find the files, and the containers inside WACZ files.
2. Read each once: checksum, number of records, whether each record can be opened separately. Remote files are
   fetched to the cache for that, where the indexer finds them.
3. Write the database row.

If a file was moved, import it again from its new place: it is recognised by its checksum, and only its place
is changed.
"""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from webdepot import durable
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.container.detect import Compression, detect
from webdepot.depot.store.in_place import Elsewhere, is_remote
from webdepot.digest import CHUNK_BYTES
from webdepot.errors import InputError, NotFound, WebdepotError
from webdepot.model import Container, ContainerState, Finding, Harvest, HarvestState
from webdepot.provenance import Event, Outcome, append
from webdepot.services.harvest import harvests
from webdepot.services.intake import warc_files
from webdepot.services.intake.warc_files import SUFFIXES, IntakeResult
from webdepot.services.progress import Phase, Progress, Watch
from webdepot.text import file_names

PACKED_SUFFIX = ".wacz"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedContainer:
    """One container to be read in place."""

    name: str
    place: str
    size_bytes: int


def refer(archive: Archive, addresses: Sequence[str], *, collection: str, watch: Watch) -> IntakeResult:
    """Take in containers without copying them, in one harvest of kind `import`.

    A file that cannot be read is reported as skipped and does not stop the others.
    """
    containers, skipped = [], []
    for address in addresses:
        for file in _iter_addresses(address):
            try:
                containers += list(_iter_containers(file))
            except (WebdepotError, OSError) as error:
                skipped.append(f"{file}: {error}")
    if not containers:
        return IntakeResult(harvest=None, known={}, skipped=skipped)
    harvest = warc_files.begin(archive, collection, {})
    known: dict[str, Harvest] = {}
    with harvests.locked(harvests.folder_of(archive, harvest)):
        for number, placed in enumerate(containers, start=1):
            watch(Progress(phase=Phase.IMPORT, done=number, total=len(containers), note=placed.name))
            try:
                container = _refer_one(archive, harvest, placed)
                if container.harvest != harvest.id:
                    known[placed.place] = harvests.get(archive, container.harvest)
            except (WebdepotError, OSError) as error:
                skipped.append(f"{placed.place}: {error}")
        with archive.database.reading() as connection:
            is_empty = not locations.of_harvest(connection, harvest.id)
        if is_empty:
            warc_files.end(archive, harvest, HarvestState.FAILED, warc_files.NOTHING_NEW)
    return IntakeResult(
        harvest=None if is_empty else warc_files.finish(archive, harvest), known=known, skipped=skipped
    )


def _iter_addresses(address: str) -> Iterator[str]:
    if is_remote(address):
        yield address
        return
    path = Path(address).expanduser().absolute()
    if not path.is_dir():
        yield str(path)
        return
    endings = (*SUFFIXES, PACKED_SUFFIX)
    yield from (
        str(entry)
        for entry in sorted(path.rglob("*"))
        if entry.name.lower().endswith(endings) and entry.is_file()
    )


def _iter_containers(address: str) -> Iterator[PlacedContainer]:
    source = Elsewhere(address)
    size = source.size()
    if size is None:
        raise NotFound("there is no such file.")
    name = PurePosixPath(unquote(urlsplit(address).path) if is_remote(address) else address).name
    if not name.lower().endswith(PACKED_SUFFIX):
        yield PlacedContainer(name=name, place=address, size_bytes=size)
        return
    members = source.members()
    if not members:
        raise InputError("it contains no container (archive/*.warc.gz).")
    for member in members:
        yield PlacedContainer(
            name=f"{name[: -len(PACKED_SUFFIX)]}-{PurePosixPath(member.name).name}",
            place=f"{address}#{member.start}/{member.name}",
            size_bytes=member.size_bytes,
        )


def _refer_one(archive: Archive, harvest: Harvest, placed: PlacedContainer) -> Container:
    """Take in one container, which belongs to another harvest if it was known. A known one that is read in
    place gets its new place.
    """
    if len(placed.place) > 1000:
        raise InputError("its address is too long.")
    if not file_names.is_name(placed.name):
        raise InputError(f"{placed.name[:200]!r} cannot be the name of a container. {file_names.RULE}")
    source = Elsewhere(placed.place)
    path, sha256 = _local_file(archive, source, placed)
    with archive.database.transaction() as connection:
        known = locations.find_bytes(connection, sha256)
        if known is not None and known.state is ContainerState.ELSEWHERE and known.place != placed.place:
            locations.move(connection, known.name, ContainerState.ELSEWHERE, placed.place)
            message = f"is now read from {placed.place}"
            append(connection, _event(archive, known.name, message, harvest, ()))
    if known is not None:
        if source.path is None:
            path.unlink()
        return known
    with path.open("rb") as stream:
        form = detect(stream, placed.name)
    findings: list[Finding] = []
    records, readable = warc_files.read_through(path, placed.name, findings)
    if not records:
        raise InputError(warc_files.no_records(findings))
    if form.compression is Compression.WHOLE or not readable:
        raise InputError(
            "its records are compressed as one piece, so they cannot be opened in place. "
            "Import it without --in-place."
        )
    container = Container(
        name=warc_files.free_name(archive, placed.name, sha256),
        harvest=harvest.id,
        state=ContainerState.ELSEWHERE,
        size_bytes=placed.size_bytes,
        sha256=sha256,
        records=records,
        place=placed.place,
    )
    if source.path is None:
        path.rename(archive.cached_path(container))
        durable.sync_folder(archive.cache_folder)
    with archive.database.transaction() as connection:
        locations.add(connection, container)
        message = f"{records} records, read in place from {placed.place}"
        append(connection, _event(archive, container.name, message, harvest, findings))
    return container


def _local_file(archive: Archive, source: Elsewhere, placed: PlacedContainer) -> tuple[Path, str]:
    """A file on this machine with the bytes of a container, and its SHA-256."""
    hasher = hashlib.sha256()
    if source.path is not None:
        with source.path.open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                hasher.update(chunk)
        return source.path, hasher.hexdigest()
    durable.make_folders(archive.cache_folder)
    partial, left = archive.cache_folder / f".part-{secrets.token_hex(8)}", placed.size_bytes
    try:
        with source.open(length=placed.size_bytes) as stream, partial.open("wb") as sink:
            while left and (chunk := stream.read(min(CHUNK_BYTES, left))):
                hasher.update(chunk)
                sink.write(chunk)
                left -= len(chunk)
            durable.sync_file(sink)
        if left:
            raise InputError(f"it is incomplete: the last {left} bytes are missing.")
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial, hasher.hexdigest()


def _event(archive: Archive, name: str, message: str, harvest: Harvest, findings: Sequence[Finding]) -> Event:
    outcome = Outcome.WARNING if findings else Outcome.SUCCESS
    detail = {"harvest": harvest.id}
    return archive.event("referred", "container", name, outcome=outcome, message=message, detail=detail)
