"""Packages as one ZIP file: plain, or as WACZ 1.1.1 (https://specs.webrecorder.net/wacz/1.1.1/), which replay
tools open directly.

Containers are stored and not compressed again, so that a reader can seek in them. Equal content gives equal
bytes. The file gets its name only when it is complete. WACZ files from others are checked by their own
checksums.
"""

import hashlib
import json
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, BinaryIO

from webdepot import durable
from webdepot.config.sections.storage import MOST_MEMBERS
from webdepot.depot.ocfl import objects
from webdepot.depot.ocfl.inventory import Inventory
from webdepot.depot.store.keys import add_with_folders, is_key
from webdepot.depot.store.wrappers import expect_sha256
from webdepot.digest import CHUNK_BYTES
from webdepot.errors import Conflict
from webdepot.ports.object_store import ObjectStore
from webdepot.text import untrusted_json
from webdepot.times import to_iso

WACZ_VERSION = "1.1.1"
DATAPACKAGE = "datapackage.json"
LONGEST_DATAPACKAGE_BYTES = 64 << 20
HIGHEST_RATIO = 1000
"""A member larger than `SMALL_BYTES` that unpacks to more than this many times its size is refused as a ZIP
bomb.
"""
SMALL_BYTES = 64 << 20
DATE = (1980, 1, 1, 0, 0, 0)
TOO_MANY = "it contains more than {:,} files and folders (depot.import_members)"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewZipMember:
    """A file to write into a ZIP file."""

    name: str
    size_bytes: int
    """At most this many bytes, as far as known before."""
    chunks: Iterator[bytes]
    is_packed: bool = False


def write_zip(store: ObjectStore, inventory: Inventory, target: Path) -> int:
    """Write the files of the newest version of an object by logical path; return the payload bytes."""
    return write_members(target, (_stored(store, inventory, each, each) for each in inventory.files()))


def containers_of(store: ObjectStore, inventory: Inventory) -> Iterator[NewZipMember]:
    """The containers of a package as members of a WACZ."""
    for logical in inventory.files():
        folder, _, name = logical.partition("/")
        if folder == "warc":
            yield _stored(store, inventory, logical, f"archive/{name}")


def write_wacz(
    target: Path, members: Iterable[NewZipMember], *, title: str, created: datetime, software: str
) -> int:
    """Write containers, index and pages, and the list of them; return the payload bytes."""
    with _new_zip(target) as archive:
        for member in members:
            archive.add(member)
        descriptions = describe(archive.members, title=title, created=created, software=software)
        for name, data in descriptions.items():
            archive.add(NewZipMember(name=name, size_bytes=len(data), chunks=iter([data]), is_packed=True))
        return archive.size_bytes


def describe(
    members: Mapping[str, tuple[int, str]], *, title: str, created: datetime, software: str
) -> dict[str, bytes]:
    """The last two members of a WACZ: the list of its files with size and SHA-256, and the digest of that
    list.
    """
    resources = [
        {"name": path.rpartition("/")[2].lower(), "path": path, "hash": f"sha256:{value}", "bytes": size}
        for path, (size, value) in members.items()
    ]
    facts: dict[str, object] = {
        "profile": "data-package",
        "wacz_version": WACZ_VERSION,
        "title": title,
        "software": software,
    }
    described = json_line({**facts, "created": to_iso(created), "resources": resources})
    digests = {"path": DATAPACKAGE, "hash": f"sha256:{hashlib.sha256(described).hexdigest()}"}
    return {DATAPACKAGE: described, "datapackage-digest.json": json_line(digests)}


def write_members(target: Path, members: Iterable[NewZipMember]) -> int:
    """Write a new ZIP file of these members, complete or not at all; return the payload bytes."""
    with _new_zip(target) as archive:
        for member in members:
            archive.add(member)
        return archive.size_bytes


def entry_of(member: NewZipMember) -> tuple[zipfile.ZipInfo, bool]:
    """The entry of a member, and whether it needs ZIP64. Members that are not larger than 2 GiB must not have
    it: Python would write the sizes of 64 bits into the local header only, and readers such as wabac, which
    know only the central directory, would look for the bytes in the wrong place.
    """
    entry = zipfile.ZipInfo(member.name, DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED if member.is_packed else zipfile.ZIP_STORED
    entry.external_attr = 0o100644 << 16
    return entry, member.size_bytes > zipfile.ZIP64_LIMIT


def is_zip(file: Path | BinaryIO) -> bool:
    """Whether it is a ZIP file, perhaps one that cannot be unpacked."""
    try:
        return zipfile.is_zipfile(file)
    except BROKEN:
        return True


def check_members(
    archive: zipfile.ZipFile, largest_bytes: int, most_members: int = MOST_MEMBERS
) -> Iterator[str]:
    """One message for each reason not to unpack a ZIP file: paths that lead out, links, bombs, passwords,
    more than this many bytes, or files and folders. Each path can have 200 folders that no entry names.
    """
    names: set[str] = set()
    paths: set[str] = set()
    if sum(member.file_size for member in archive.infolist()) > largest_bytes:
        yield f"it would unpack to more than {largest_bytes} bytes"
        return
    for member in archive.infolist():
        name = member.filename.removesuffix("/")
        if is_key(name):
            add_with_folders(name, paths)
        else:
            yield f"{member.filename[:200]!r} is not a path inside the file"
        if name in names:
            yield f"{name} is in it twice"
        names.add(name)
        if len(paths) > most_members:
            yield TOO_MANY.format(most_members)
            return
        if member.external_attr >> 28 == 0o12:
            yield f"{name} is a symbolic link"
        if member.flag_bits & 1:
            yield f"{name} is encrypted"
        if member.file_size > SMALL_BYTES and member.file_size > HIGHEST_RATIO * max(member.compress_size, 1):
            yield f"{name} would unpack to {member.file_size} bytes from {member.compress_size}"


def unpack(archive: zipfile.ZipFile, folder: Path, largest_bytes: int) -> None:
    """Unpack members that `check_members` passed, at most this many bytes; ValueError if there are more."""
    left_bytes = largest_bytes
    for member in archive.infolist():
        if not member.is_dir():
            with archive.open(member) as source:
                left_bytes -= copy_member(source, folder / member.filename, left_bytes)


def copy_member(source: IO[bytes], target: Path, largest_bytes: int) -> int:
    """Write a member to a new file; its size. ValueError if it is larger than this, whatever it declares."""
    target.parent.mkdir(parents=True, exist_ok=True)
    size_bytes = 0
    with target.open("xb") as sink:
        while chunk := source.read(CHUNK_BYTES):
            size_bytes += len(chunk)
            if size_bytes > largest_bytes:
                raise ValueError("it unpacks to more bytes than it declares")
            sink.write(chunk)
    return size_bytes


def seconds_of(member: zipfile.ZipInfo) -> int:
    """When a member was written, by its packer's clock; 0 if that is not known."""
    try:
        return int(datetime(*member.date_time, tzinfo=UTC).timestamp())
    except ValueError:
        return 0


def check_wacz(folder: Path) -> Iterator[str]:
    """One message for each fault of an unpacked WACZ: wrong checksums, containers that are not listed."""
    try:
        resources = _resources(read_datapackage(folder / DATAPACKAGE))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        yield f"{DATAPACKAGE} cannot be used: {error}"
        return
    for name, value in resources.items():
        yield from _check_resource(folder, name, value)
    for path in sorted((folder / "archive").glob("**/*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in resources:
            yield f"{name} is not among the resources of {DATAPACKAGE}"


def packages_in(folder: Path) -> list[Path]:
    """The WACZ files that an unpacked WACZ contains, if its description says that it is a collection
    (https://specs.webrecorder.net/multi-wacz/latest/).
    """
    try:
        document = read_datapackage(folder / DATAPACKAGE)
        if document.get("profile") != "multi-wacz-package":
            return []
        names = [name for name in _resources(document) if is_key(name) and name.lower().endswith(".wacz")]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    return [folder / name for name in names]


def read_datapackage(path: Path) -> Any:
    """The description of a WACZ; ValueError or RecursionError if it is not JSON, or too large to parse."""
    if path.stat().st_size > LONGEST_DATAPACKAGE_BYTES:
        raise ValueError("it is too large")
    return untrusted_json.loads(path.read_bytes())


def _resources(document: Any) -> dict[str, str]:
    return {str(each["path"]): str(each.get("hash", "")) for each in document["resources"]}


def _check_resource(folder: Path, name: str, value: str) -> Iterator[str]:
    algorithm, _, expected = value.partition(":")
    if not is_key(name) or not (folder / name).is_file():
        yield f"{name[:200]} is missing"
    elif algorithm not in ("md5", "sha256"):
        yield f"{name} has no checksum of a known algorithm"
    else:
        hasher = hashlib.new(algorithm, usedforsecurity=False)
        with (folder / name).open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                hasher.update(chunk)
        if hasher.hexdigest() != expected.lower():
            yield f"{name} is damaged: expected {value}, found {algorithm}:{hasher.hexdigest()}"


def _stored(store: ObjectStore, inventory: Inventory, logical: str, name: str) -> NewZipMember:
    key = objects.content_key(inventory, logical)
    chunks = _chunks(store, key, inventory.files()[logical])
    return NewZipMember(name=name, size_bytes=store.size(key) or 0, chunks=chunks)


def _chunks(store: ObjectStore, key: str, value: str) -> Iterator[bytes]:
    with expect_sha256(store.open(key), value, key) as source:
        while chunk := source.read(CHUNK_BYTES):
            yield chunk


def json_line(document: Mapping[str, object]) -> bytes:
    return (json.dumps(document, ensure_ascii=False) + "\n").encode(errors="replace")


@contextmanager
def _new_zip(target: Path) -> Iterator["_ZipWriter"]:
    """A ZIP file to write, which gets its name only when it is complete; Conflict if the name exists."""
    if target.exists():
        raise Conflict(f"{target} already exists. Give a new file name.")
    with durable.whole_file(target) as file, zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        yield _ZipWriter(archive)


class _ZipWriter:
    """Adds members to a ZIP file and keeps their sizes and checksums."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._zip = archive
        self.members: dict[str, tuple[int, str]] = {}
        self.size_bytes = 0

    def add(self, member: NewZipMember) -> None:
        entry, is_large = entry_of(member)
        hasher, size = hashlib.sha256(), 0
        with self._zip.open(entry, "w", force_zip64=is_large) as sink:
            for chunk in member.chunks:
                sink.write(chunk)
                hasher.update(chunk)
                size += len(chunk)
        self.members[member.name] = (size, hasher.hexdigest())
        self.size_bytes += size


BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
"""Errors that unpacking a damaged or unusual ZIP file can raise."""
