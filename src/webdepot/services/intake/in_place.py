"""Containers that stay where they are: WARC, ARC and WACZ in other folders, on web servers, in buckets. They
are indexed, searched and replayed as all others; the archive keeps their place, size and checksum, and not
their bytes.

1. Find the files; look into each one that is a WACZ.
2. Read it through once: checksum, how many records, whether each can be opened by itself. What is not on this
   machine's disks is fetched into the cache for that, where indexing finds it.
3. Write the database row.

A file that has moved is given again from where it is now: it is known by its checksum, and only its place is
changed.
"""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.container.detect import Compression, detect
from webdepot.depot.store.elsewhere import Elsewhere, is_remote
from webdepot.digest import CHUNK_BYTES
from webdepot.errors import InputError, NotFound, WebdepotError
from webdepot.model import Container, ContainerState, Finding, Harvest, HarvestState
from webdepot.provenance import Event, Outcome, append
from webdepot.services.harvest import harvests
from webdepot.services.intake import warc_files
from webdepot.services.intake.warc_files import SUFFIXES, Intake
from webdepot.services.progress import Phase, Progress, Watch

PACKED_SUFFIX = ".wacz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One container to be read in place."""

    name: str
    place: str
    size_bytes: int


def refer(archive: Archive, addresses: Sequence[str], *, collection: str, watch: Watch) -> Intake:
    """Take containers in without copying them, in one harvest of kind `import`. What cannot be read is told
    and stops no other.
    """
    parts, skipped = [], []
    for address in addresses:
        for one in _iter_addresses(address):
            try:
                parts += list(_iter_parts(one))
            except (WebdepotError, OSError) as error:
                skipped.append(f"{one}: {error}")
    if not parts:
        return Intake(harvest=None, known=(), skipped=skipped)
    harvest, known = warc_files.begin(archive, collection), []
    with harvests.locked(harvests.folder_of(archive, harvest)):
        for number, part in enumerate(parts, start=1):
            watch(Progress(phase=Phase.IMPORT, done=number, total=len(parts), note=part.name))
            try:
                if not _refer_one(archive, harvest, part):
                    known.append(part.place)
            except (WebdepotError, OSError) as error:
                skipped.append(f"{part.place}: {error}")
        with archive.database.reading() as connection:
            is_empty = not shelf.of_harvest(connection, harvest.id)
        if is_empty:
            warc_files.end(archive, harvest, HarvestState.FAILED, "nothing new was in the files")
    return Intake(
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


def _iter_parts(address: str) -> Iterator[Part]:
    source = Elsewhere(address)
    size = source.size()
    if size is None:
        raise NotFound("there is no such file.")
    name = PurePosixPath(unquote(urlsplit(address).path) if is_remote(address) else address).name
    if not name.lower().endswith(PACKED_SUFFIX):
        yield Part(name=name, place=address, size_bytes=size)
        return
    members = source.members()
    if not members:
        raise InputError("no container is in it (archive/*.warc.gz).")
    for member in members:
        whole = f"{name[: -len(PACKED_SUFFIX)]}-{PurePosixPath(member.name).name}"
        yield Part(name=whole, place=f"{address}#{member.start}/{member.name}", size_bytes=member.size_bytes)


def _refer_one(archive: Archive, harvest: Harvest, part: Part) -> bool:
    """Whether it is new. One that is known and read in place gets its new place."""
    if len(part.place) > 1000 or len(part.name) > 200:
        raise InputError("the address is too long to be kept.")
    source = Elsewhere(part.place)
    path, sha256 = _at_hand(archive, source, part)
    with archive.database.transaction() as connection:
        found = shelf.find_bytes(connection, sha256)
        if found is not None and found.state is ContainerState.ELSEWHERE and found.place != part.place:
            shelf.move(connection, found.name, ContainerState.ELSEWHERE, part.place)
            append(connection, _event(archive, found.name, f"is read from {part.place} now", harvest, ()))
    if found is not None:
        return False
    with path.open("rb") as stream:
        form = detect(stream, part.name)
    findings: list[Finding] = []
    records, readable = warc_files.read_through(path, part.name, findings)
    if not records:
        raise InputError("no whole record is in it. " + (findings[0].message if findings else ""))
    if form.compression is Compression.WHOLE or not readable:
        raise InputError(
            "its records are compressed together, so that none can be opened in place. Import it without --in-place."
        )
    container = Container(
        name=warc_files.free_name(archive, part.name, sha256),
        harvest=harvest.id,
        state=ContainerState.ELSEWHERE,
        size_bytes=part.size_bytes,
        sha256=sha256,
        records=records,
        place=part.place,
    )
    if source.path is None:
        path.rename(archive.cached_path(container))
    with archive.database.transaction() as connection:
        shelf.add(connection, container)
        append(
            connection,
            _event(
                archive,
                container.name,
                f"{records} records, read in place from {part.place}",
                harvest,
                findings,
            ),
        )
    return True


def _at_hand(archive: Archive, source: Elsewhere, part: Part) -> tuple[Path, str]:
    """A file of this machine with the bytes, and their checksum."""
    hasher = hashlib.sha256()
    if source.path is not None:
        with source.path.open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                hasher.update(chunk)
        return source.path, hasher.hexdigest()
    archive.cache_folder.mkdir(parents=True, exist_ok=True)
    partial, left = archive.cache_folder / f".part-{secrets.token_hex(8)}", part.size_bytes
    try:
        with source.open(length=part.size_bytes) as stream, partial.open("wb") as sink:
            while left and (chunk := stream.read(min(CHUNK_BYTES, left))):
                hasher.update(chunk)
                sink.write(chunk)
                left -= len(chunk)
        if left:
            raise InputError(f"it ends {left} bytes before it should.")
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial, hasher.hexdigest()


def _event(archive: Archive, name: str, message: str, harvest: Harvest, findings: Sequence[Finding]) -> Event:
    return Event(
        at=archive.clock(),
        agent=archive.agent,
        action="referred",
        subject_kind="container",
        subject=name,
        outcome=Outcome.WARNING if findings else Outcome.SUCCESS,
        message=message,
        detail={"harvest": harvest.id},
    )
