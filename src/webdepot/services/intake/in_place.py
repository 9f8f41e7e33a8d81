"""Containers read in place: WARC, ARC and WACZ files in other folders, on web servers, in buckets. They are
indexed, searched and replayed like all others; the archive keeps their location, size and checksum, but not
their bytes.

1. Take the next container (`sources`).
2. Read it once: checksum, number of records, whether each record can be opened separately. Remote files are
   fetched to the cache for that, where the indexer finds them.
3. Write the database row, unless another process has done that meanwhile.

If a file was moved, import it again from its new place: it is recognised by its checksum, and only its place
is changed.
"""

import hashlib
import secrets
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection

from webdepot import durable
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.container.detect import Compression, detect
from webdepot.depot.store.in_place import Elsewhere
from webdepot.digest import CHUNK_BYTES
from webdepot.errors import InputError
from webdepot.model import Container, ContainerState, Finding, Harvest
from webdepot.provenance import Event, Outcome, append
from webdepot.services.intake import container_copy, sources
from webdepot.services.intake.container_copy import TakenContainer
from webdepot.services.intake.sources import ImportSource
from webdepot.text import file_names

SETTINGS = {"in_place": True}
"""The settings of a harvest whose containers stay where they are."""


def refer(archive: Archive, harvest: Harvest, placed: ImportSource) -> TakenContainer:
    """Take in one container without copying it, as `warc_files.TakeOne` says. A known one that is read in
    place gets its new place.
    """
    if len(placed.place) > 1000:
        raise InputError("its address is too long.")
    if not sources.is_text(placed.place):
        raise InputError(
            "its path is not valid UTF-8, so it cannot be stored. Rename the folder or the file."
        )
    if not file_names.is_name(placed.name):
        raise InputError(f"{placed.name[:200]!r} cannot be the name of a container. {file_names.RULE}")
    if placed.is_har:
        raise InputError("a HAR file is converted, so it cannot stay in place. Import it without --in-place.")
    source = Elsewhere(placed.place)
    path, sha256 = _local_file(archive, source, placed)
    try:
        with archive.database.transaction() as connection:
            known = _find_known(archive, connection, harvest, placed, sha256)
        if known is not None:
            return TakenContainer(known, False)
        findings: list[Finding] = []
        records = _count_records(path, placed, findings)
        if placed.identity and sources.identity_of(placed.place) != placed.identity:
            raise InputError(sources.CHANGED)
        with archive.database.transaction() as connection:
            known = _find_known(archive, connection, harvest, placed, sha256)
            if known is not None:
                return TakenContainer(known, False)
            container = Container(
                name=container_copy.free_name(connection, placed.name, sha256),
                harvest=harvest.id,
                state=ContainerState.ELSEWHERE,
                size_bytes=placed.size_bytes,
                sha256=sha256,
                records=records,
                place=placed.place,
            )
            if source.path is None:
                path.rename(archive.containers.cached_path(container))
                durable.sync_folder(archive.containers.cache_folder)
            locations.add(connection, container)
            message = f"{records} records, read in place from {placed.place}"
            append(connection, _event(archive, container.name, message, harvest, findings))
        return TakenContainer(container, True)
    finally:
        if source.path is None:
            path.unlink(missing_ok=True)


def _find_known(
    archive: Archive, connection: Connection, harvest: Harvest, placed: ImportSource, sha256: str
) -> Container | None:
    """The container with these bytes; if it is read in place, it is from now on read from this place."""
    known = locations.find_bytes(connection, sha256)
    if known is not None and known.state is ContainerState.ELSEWHERE and known.place != placed.place:
        locations.move(connection, known.name, ContainerState.ELSEWHERE, placed.place)
        message = f"is now read from {placed.place}"
        append(connection, _event(archive, known.name, message, harvest, ()))
    return known


def _count_records(path: Path, placed: ImportSource, findings: list[Finding]) -> int:
    """The number of records; InputError if there is none, or if they cannot be opened one by one."""
    with sources.explained():
        with path.open("rb") as stream:
            form = detect(stream, placed.name)
        records, readable = container_copy.read_through(path, placed.name, findings)
    if not records:
        raise InputError(container_copy.no_records(findings))
    if form.compression is Compression.WHOLE or not readable:
        raise InputError(
            "its records are compressed as one piece, so they cannot be opened in place. "
            "Import it without --in-place."
        )
    return records


def _local_file(archive: Archive, source: Elsewhere, placed: ImportSource) -> tuple[Path, str]:
    """A file on this machine with the bytes of a container, and its SHA-256."""
    hasher = hashlib.sha256()
    if source.path is not None:
        with placed.open() as stream:
            for chunk in sources.iter_chunks(stream):
                hasher.update(chunk)
        return source.path, hasher.hexdigest()
    durable.make_folders(archive.containers.cache_folder)
    partial, left = archive.containers.cache_folder / f".part-{secrets.token_hex(8)}", placed.size_bytes
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
