"""Containers read in place: in other folders, on web servers that support range requests, in buckets, and
inside WACZ files.

A place is an address; for a member of a ZIP file it also says where the bytes of the member begin:

    /data/old.warc.gz                          a file
    https://files.example.org/old.warc.gz      read with range requests (RFC 9110, 14)
    s3://bucket/old.warc.gz?endpoint=https://… credentials as for a place named `in_place`
    /data/old.wacz#4711/archive/old.warc.gz    a member that is stored without compression, as WACZ requires
    /data/all.wacz#815/old.wacz/archive/…      the same inside another WACZ, as in a collection of Browsertrix

Nothing is ever written there. https://specs.webrecorder.net/wacz/1.1.1/
"""

import re
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import urlsplit

from webdepot.depot import places
from webdepot.depot.store.folder import FolderStore
from webdepot.depot.store.wrappers import ReadableStore, open_seekable
from webdepot.depot.store.zip_directory import has_more_members
from webdepot.errors import CorruptData, InputError, NotFound, RemoteError
from webdepot.http_headers import stated_number

TIMEOUT_S = 30
MOST_MEMBERS = 10_000
PACKED_SUFFIX = ".wacz"
_MEMBER = re.compile(r"#(\d{1,18})/(.+)\Z", re.DOTALL)
_TOTAL = re.compile(r"bytes \d+-\d+/(\d+)\Z")
_LOCAL_HEADER_BYTES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipMember:
    """A file inside a ZIP file."""

    name: str
    start: int
    """Where its bytes begin."""
    size_bytes: int


def is_remote(address: str) -> bool:
    return address.startswith(("http://", "https://", "s3://"))


class Elsewhere:
    """One file outside the archive, read-only. A `ReadableStore` that ignores the key."""

    def __init__(self, place: str) -> None:
        member = _MEMBER.search(place)
        if member and PACKED_SUFFIX not in place[: member.start()].lower():
            member = None  # a folder with such a name
        self.address = place[: member.start()] if member else place
        self.start = int(member[1]) if member else 0
        self.is_member = member is not None

    @cached_property
    def _source(self) -> tuple[ReadableStore, str]:
        if not is_remote(self.address):
            path = Path(self.address)
            return FolderStore(path.parent), path.name
        if not self.address.startswith("s3://"):
            return _WebFile(self.address), ""
        folder, _, name = self.address.partition("?")[0].rpartition("/")
        return places.open_store("elsewhere", f"{folder}?{urlsplit(self.address).query}".rstrip("?")), name

    @property
    def path(self) -> Path | None:
        """The path of a file on this machine; None if it is remote or a member of a ZIP file."""
        return None if self.is_member or is_remote(self.address) else Path(self.address)

    def open(self, key: str = "", *, offset: int = 0, length: int | None = None) -> BinaryIO:
        store, name = self._source
        return store.open(name, offset=self.start + offset, length=length)

    def size(self, key: str = "") -> int | None:
        """Bytes from where this file begins to the end of the file around it; None if it does not exist."""
        store, name = self._source
        size = store.size(name)
        return None if size is None else max(size - self.start, 0)

    def stream(self, size_bytes: int) -> BinaryIO:
        """A seekable stream of its bytes."""
        return open_seekable(self, "", size_bytes)

    def members(self) -> list[ZipMember]:
        """The containers inside a WACZ and in the WACZ files inside it; InputError if it is not a WACZ, or if
        they are compressed.
        """
        members: list[ZipMember] = []
        try:
            for package in self.packages():
                containers = (each for each in package.zip.infolist() if _is_container(each.filename))
                members += (_member(package, entry, self.address) for entry in containers)
                if len(members) > MOST_MEMBERS:
                    raise InputError(f"{self.address} contains more than {MOST_MEMBERS} containers.")
        except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, ValueError) as error:
            raise InputError(f"{self.address} is not a readable WACZ: {error}.") from error
        return members

    def packages(self) -> Iterator["PackedFiles"]:
        """The WACZ itself, then the WACZ files inside it, each of which is closed before the next."""
        size = self.size()
        if size is None:
            raise NotFound(f"There is no file {self.address}.")
        with closing(self.stream(size)) as stream, _opened(stream, self.address) as packed:
            outer = PackedFiles(zip=packed, stream=stream, prefix="", start=self.start)
            yield outer
            for entry in packed.infolist():
                if is_package(entry.filename):
                    inner = _member(outer, entry, self.address)
                    yield from self._inside(inner)

    def _inside(self, member: ZipMember) -> Iterator["PackedFiles"]:
        place = Elsewhere(f"{self.address}#{member.start}/{member.name}")
        with closing(place.stream(member.size_bytes)) as stream, _opened(stream, member.name) as packed:
            yield PackedFiles(zip=packed, stream=stream, prefix=f"{member.name}/", start=member.start)


def _opened(stream: BinaryIO, name: str) -> zipfile.ZipFile:
    """A ZIP file, unless it has too many members, which is checked before they take memory."""
    if has_more_members(stream, MOST_MEMBERS):
        raise InputError(f"{name[:200]} contains more than {MOST_MEMBERS} files: it is not a WACZ.")
    return zipfile.ZipFile(stream)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFiles:
    """An open WACZ: a file, or a member of one."""

    zip: zipfile.ZipFile
    stream: BinaryIO
    prefix: str
    """What precedes the names of its members; empty unless it is inside another WACZ."""
    start: int
    """Where it begins in the file."""


def is_package(name: str) -> bool:
    """Whether a member of a WACZ is another WACZ, by its name."""
    return name.lower().endswith(PACKED_SUFFIX)


def _is_container(name: str) -> bool:
    endings = (".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz")
    return name.startswith("archive/") and name.lower().endswith(endings)


def _member(package: PackedFiles, entry: zipfile.ZipInfo, address: str) -> ZipMember:
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
        raise InputError(
            f"{address}: {entry.filename[:200]} is compressed or encrypted, so it cannot be read in place. "
            "Unpack it."
        )
    package.stream.seek(entry.header_offset)
    header = package.stream.read(_LOCAL_HEADER_BYTES)
    if len(header) < _LOCAL_HEADER_BYTES or header[:4] != b"PK\x03\x04":
        raise CorruptData(
            f"{address} is damaged: {entry.filename[:200]} is not where its directory says.", where=address
        )
    name_bytes, extra_bytes = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
    start = package.start + entry.header_offset + _LOCAL_HEADER_BYTES + name_bytes + extra_bytes
    return ZipMember(name=f"{package.prefix}{entry.filename}", start=start, size_bytes=entry.file_size)


class _WebFile:
    """One file on a web server that supports range requests; the key is ignored."""

    def __init__(self, url: str) -> None:
        self._url = url

    def open(self, key: str, *, offset: int = 0, length: int | None = None) -> BinaryIO:
        if not offset and length is None:
            return cast(BinaryIO, self._request({}))
        last = "" if length is None else offset + length - 1
        response = self._request({"Range": f"bytes={offset}-{last}"})
        if response.status != 206:
            response.close()
            raise RemoteError(
                f"{self._url}: the server does not support range requests, which reading in place needs. "
                "Download the file and import it.",
                retry=False,
            )
        return cast(BinaryIO, response)

    def size(self, key: str) -> int | None:
        try:
            with self._request({"Range": "bytes=0-0"}) as response:
                total = _TOTAL.match(response.headers.get("Content-Range") or "")
                return stated_number(total[1] if total else response.headers.get("Content-Length"))
        except NotFound:
            return None

    def _request(self, headers: dict[str, str]) -> HTTPResponse:
        request = urllib.request.Request(  # noqa: S310 - http and https only
            self._url, headers={"User-Agent": "webdepot", "Accept-Encoding": "identity", **headers}
        )
        try:
            response: HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (404, 410):
                raise NotFound(f"The file {self._url} no longer exists ({error.code}).") from None
            raise RemoteError(
                f"{self._url}: the server returned {error.code} {error.reason}.", retry=error.code >= 500
            ) from None
        except (OSError, HTTPException) as error:
            raise RemoteError(f"{self._url} cannot be reached: {error}.", retry=True) from error
        return response
