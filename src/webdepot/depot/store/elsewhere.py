"""Containers that stay where they are: in other folders, on web servers that give parts of files, in buckets,
inside of WACZ files.

A place is an address, and for a member of a ZIP file where its bytes begin:

    /data/old.warc.gz                          a file
    https://files.example.org/old.warc.gz      read with range requests (RFC 9110, 14)
    s3://bucket/old.warc.gz?endpoint=https://… keys as for places of the depot, under the name `elsewhere`
    /data/old.wacz#4711/archive/old.warc.gz    a member that is stored and not compressed, as WACZ wants it

Nothing is ever written there. https://specs.webrecorder.net/wacz/1.1.1/
"""

import io
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
from typing import BinaryIO, NoReturn, cast
from urllib.parse import urlsplit

from webdepot.depot import places
from webdepot.depot.store.folder import FolderStore
from webdepot.depot.store.wrapped import Seekable
from webdepot.errors import CorruptData, InputError, NotFound, NotPermitted, RemoteError
from webdepot.ports import ObjectStore

TIMEOUT_S = 30
MOST_MEMBERS = 10_000
_MEMBER = re.compile(r"#(\d{1,18})/(.+)\Z", re.DOTALL)
_TOTAL = re.compile(r"bytes \d+-\d+/(\d+)\Z")
_LOCAL_HEADER_BYTES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file inside of a ZIP file."""

    name: str
    start: int
    """Where its bytes begin."""
    size_bytes: int


def is_remote(address: str) -> bool:
    return address.startswith(("http://", "https://", "s3://"))


class Elsewhere:
    """An `ObjectStore` of one file that is not ours: it can only be read. The key counts for nothing."""

    def __init__(self, place: str) -> None:
        found = _MEMBER.search(place)
        self.address = place[: found.start()] if found else place
        self.start = int(found[1]) if found else 0
        self.is_member = found is not None

    @cached_property
    def _inner(self) -> tuple[ObjectStore, str]:
        if not is_remote(self.address):
            path = Path(self.address)
            return FolderStore(path.parent), path.name
        if not self.address.startswith("s3://"):
            return cast(ObjectStore, _Web(self.address)), ""
        folder, _, name = self.address.partition("?")[0].rpartition("/")
        return places.open_store("elsewhere", f"{folder}?{urlsplit(self.address).query}".rstrip("?")), name

    @property
    def path(self) -> Path | None:
        """The file itself where it is one of this machine and no member of another."""
        return None if self.is_member or is_remote(self.address) else Path(self.address)

    def open(self, key: str = "", *, offset: int = 0, length: int | None = None) -> BinaryIO:
        store, name = self._inner
        return store.open(name, offset=self.start + offset, length=length)

    def size(self, key: str = "") -> int | None:
        """Of the whole file, from where this part of it begins; None when it is not there."""
        store, name = self._inner
        size = store.size(name)
        return None if size is None else max(size - self.start, 0)

    def local_path(self, key: str = "") -> Path | None:
        return self.path

    def stream(self, size_bytes: int) -> BinaryIO:
        """A seekable stream of its bytes."""
        return cast(
            BinaryIO,
            io.BufferedReader(
                cast(io.RawIOBase, Seekable(cast(ObjectStore, self), "", size_bytes)), 64 << 10
            ),
        )

    def members(self) -> list[Member]:
        """The containers inside of a WACZ; InputError when it is none, or when they are compressed."""
        size = self.size()
        if size is None:
            raise NotFound(f"There is no file {self.address}.")
        try:
            with closing(self.stream(size)) as stream, zipfile.ZipFile(stream) as packed:
                entries = packed.infolist()
                if len(entries) > MOST_MEMBERS:
                    raise InputError(
                        f"{self.address} has more than {MOST_MEMBERS} files in it: that is no WACZ."
                    )
                return [
                    _member(entry, stream, self.address) for entry in entries if _is_container(entry.filename)
                ]
        except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, ValueError) as error:
            raise InputError(f"{self.address} is no WACZ that can be read: {error}.") from error

    def put(self, key: str, source: BinaryIO, *, overwrite: bool = False) -> int:
        self._refuse()

    def delete(self, key: str) -> None:
        self._refuse()

    def keys(self, prefix: str = "") -> Iterator[str]:
        return iter(())

    def _refuse(self) -> NoReturn:
        raise NotPermitted(f"{self.address} is read in place and never changed.")


def _is_container(name: str) -> bool:
    return name.startswith("archive/") and name.lower().endswith((".warc", ".warc.gz", ".arc", ".arc.gz"))


def _member(entry: zipfile.ZipInfo, stream: BinaryIO, address: str) -> Member:
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
        raise InputError(
            f"{address}: {entry.filename[:200]} is compressed or encrypted, so it cannot be read in place. Unpack it."
        )
    stream.seek(entry.header_offset)
    header = stream.read(_LOCAL_HEADER_BYTES)
    if len(header) < _LOCAL_HEADER_BYTES or header[:4] != b"PK\x03\x04":
        raise CorruptData(
            f"{address} is damaged: {entry.filename[:200]} is not where its list says.", where=address
        )
    name_bytes, extra_bytes = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
    start = entry.header_offset + _LOCAL_HEADER_BYTES + name_bytes + extra_bytes
    return Member(name=entry.filename, start=start, size_bytes=entry.file_size)


class _Web:
    """One file of a web server that gives parts of it."""

    def __init__(self, url: str) -> None:
        self._url = url

    def open(self, key: str, *, offset: int = 0, length: int | None = None) -> BinaryIO:
        if not offset and length is None:
            return cast(BinaryIO, self._asked({}))
        last = "" if length is None else offset + length - 1
        answer = self._asked({"Range": f"bytes={offset}-{last}"})
        if answer.status != 206:
            answer.close()
            raise RemoteError(
                f"{self._url}: the server gives no parts of files, which reading in place needs. Fetch it.",
                retry=False,
            )
        return cast(BinaryIO, answer)

    def size(self, key: str) -> int | None:
        try:
            with self._asked({"Range": "bytes=0-0"}) as answer:
                total = _TOTAL.match(answer.headers.get("Content-Range") or "")
                stated = total[1] if total else answer.headers.get("Content-Length") or ""
        except NotFound:
            return None
        return int(stated) if stated.isascii() and stated.isdigit() else None

    def _asked(self, headers: dict[str, str]) -> HTTPResponse:
        request = urllib.request.Request(  # noqa: S310 - http and https only
            self._url, headers={"User-Agent": "webdepot", "Accept-Encoding": "identity", **headers}
        )
        try:
            answer: HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (404, 410):
                raise NotFound(f"There is no file {self._url} any more ({error.code}).") from None
            raise RemoteError(
                f"{self._url}: the server answers {error.code} {error.reason}.", retry=error.code >= 500
            ) from None
        except (OSError, HTTPException) as error:
            raise RemoteError(f"{self._url} cannot be reached: {error}.", retry=True) from error
        return answer
