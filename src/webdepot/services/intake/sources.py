"""The files that an import is given: found in folders, and WACZ files opened into their containers.

Folders are walked one at a time, sorted by name, so that memory does not grow with the number of files. Links
to files are followed, links to folders are not. `measure` walks first, for the total; files that are added or
removed between the two walks change nothing but that estimate.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from webdepot.container.conversion import har
from webdepot.depot.store.in_place import PACKED_SUFFIX, Elsewhere, is_package, is_remote
from webdepot.digest import CHUNK_BYTES
from webdepot.errors import InputError, NotFound, WebdepotError

SUFFIXES = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")
ENDINGS = (*SUFFIXES, PACKED_SUFFIX, har.SUFFIX)
"""The file names that a folder is searched for; a file that is named itself may have any name."""

CHANGED = "it was changed while it was read. Import it again when nothing writes to it."


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSource:
    """One container to take in."""

    name: str
    place: str
    """Path or address; for a member of a WACZ as in `depot.store.in_place`."""
    size_bytes: int
    identity: str = ""
    """Changes whenever the file is changed or replaced; empty if that cannot be determined."""
    file_bytes: int = 0
    """The bytes of the file or WACZ, with its first container; 0 with the others."""

    @property
    def is_har(self) -> bool:
        """Whether it must be converted first."""
        return self.name.lower().endswith(har.SUFFIX)

    def open(self) -> BinaryIO:
        """A seekable stream of its bytes; InputError or NotFound if it cannot be opened."""
        elsewhere = Elsewhere(self.place)
        with explained():
            return elsewhere.stream(self.size_bytes) if elsewhere.path is None else elsewhere.path.open("rb")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableSource:
    """A file or folder that cannot be read, with the reason."""

    place: str
    reason: str
    file_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTotals:
    files: int
    size_bytes: int


def measure(addresses: Sequence[str]) -> SourceTotals:
    """How many files there are, and their bytes. InputError if there is none."""
    files = size_bytes = 0
    for place in _iter_places(addresses):
        files += 1
        size_bytes += place.file_bytes if isinstance(place, UnreadableSource) else _size_bytes(place)
    if not files:
        raise InputError(
            f"There is no WARC, ARC, WACZ or HAR file in {', '.join(addresses)}. "
            f"Files must have one of these endings: {', '.join(ENDINGS)}. "
            "To take in other files as an object, run: webdepot package import"
        )
    return SourceTotals(files=files, size_bytes=size_bytes)


def iter_sources(addresses: Sequence[str]) -> Iterator[ImportSource | UnreadableSource]:
    """Every container in these files and folders, in a fixed order."""
    for place in _iter_places(addresses):
        if isinstance(place, UnreadableSource):
            yield place
            continue
        try:
            containers = list(_iter_containers(place))
        except (WebdepotError, OSError) as error:
            yield UnreadableSource(place=place, reason=reason_of(error), file_bytes=_size_bytes(place))
        else:
            yield from containers


def of_file(path: Path) -> ImportSource:
    """One file, which is a container whatever its name."""
    return ImportSource(name=path.name, place=str(path), size_bytes=path.stat().st_size)


def identity_of(place: str) -> str:
    """As `ImportSource.identity`, now: size, times of the last changes, and inode, as backup programs compare
    files.
    """
    if is_remote(place):
        return ""
    facts = Path(Elsewhere(place).address).stat()
    return f"{facts.st_size}-{facts.st_mtime_ns}-{facts.st_ctime_ns}-{facts.st_ino}"


def is_text(place: str) -> bool:
    """Whether a path can be stored: names of files may be any bytes."""
    try:
        place.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def explained() -> Iterator[None]:
    """InputError instead of OSError, for blocks that use nothing but the file to import."""
    try:
        yield
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror or error}.") from error


def iter_chunks(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a file; InputError if the disk or network it is on fails."""
    while True:
        with explained():
            chunk = stream.read(CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


def reason_of(error: WebdepotError | OSError) -> str:
    """Why a file could not be taken in."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _iter_places(addresses: Sequence[str]) -> Iterator[str | UnreadableSource]:
    for address in addresses:
        if is_remote(address):
            yield address
        elif (path := Path(address).expanduser().absolute()).is_dir():
            yield from _walk(path)
        else:
            yield str(path)


def _walk(folder: Path) -> Iterator[str | UnreadableSource]:
    try:
        with os.scandir(folder) as entries:
            names = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except OSError as error:
        yield UnreadableSource(place=str(folder), reason=reason_of(error))
        return
    for name, is_folder in names:
        path = folder / name
        if is_folder:
            yield from _walk(path)
        elif name.lower().endswith(ENDINGS) and not path.is_dir():
            yield str(path)


def _iter_containers(place: str) -> Iterator[ImportSource]:
    elsewhere = Elsewhere(place)
    size = _size_bytes(place) if elsewhere.path is not None else elsewhere.size()
    if size is None or (elsewhere.path is not None and not elsewhere.path.exists()):
        raise NotFound("the file does not exist.")
    name = PurePosixPath(unquote(urlsplit(place).path) if is_remote(place) else place).name
    identity = identity_of(place) if is_text(place) else ""
    if not name.lower().endswith(PACKED_SUFFIX):
        yield ImportSource(name=name, place=place, size_bytes=size, identity=identity, file_bytes=size)
        return
    members = elsewhere.members()
    if not members:
        raise InputError("it contains no container (archive/*.warc.gz).")
    for number, member in enumerate(members):
        yield ImportSource(
            name=_name_of(member.name, name),
            place=f"{place}#{member.start}/{member.name}",
            size_bytes=member.size_bytes,
            identity=identity,
            file_bytes=0 if number else size,
        )


def _name_of(member: str, file: str) -> str:
    """The name of a container with that of the WACZ it is directly in: many are called data.warc.gz."""
    inner, _, _ = member.rpartition("/archive/")
    package = PurePosixPath(inner).name if is_package(inner) else file
    return f"{package[: -len(PACKED_SUFFIX)]}-{PurePosixPath(member).name}"


def _size_bytes(place: str) -> int:
    """The size of a file; 0 if it cannot be determined."""
    try:
        return Elsewhere(place).size() or 0 if is_remote(place) else Path(place).stat().st_size
    except (WebdepotError, OSError):
        return 0
