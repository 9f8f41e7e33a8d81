"""The transfer object: one ZIP with all files of an object and no metadata, which partners fetch from the
Transfer-URL.

https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT. The ZIP is never written to disk: members are
stored, not deflated, so that each byte of it is either a header (made here) or a byte of a container in the
depot. Any part of it can be sent, its checksum is known before the first byte is sent, and equal files give
equal bytes.

1. `measure` reads the files once for their CRC-32, then the whole ZIP once for its SHA-256.
2. `Layout` arranges headers and files in sequence; `Layout.pieces` returns any range of it.

    local header, name, [ZIP64 extra], file      for each file
    central header, name, [ZIP64 extra]          for each file
    [ZIP64 end record and its locator], end record

ZIP64 fields are present if a size or an offset needs them. Names are UTF-8 (flag bit 11).
"""

import hashlib
import json
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import accumulate
from typing import Any, BinaryIO

from isal import isal_zlib
from sqlalchemy import Connection, Select, Text, cast, delete, insert, select

from webdepot.container.reader import read_record
from webdepot.digest import CHUNK_BYTES
from webdepot.errors import CorruptData, InputError
from webdepot.exchange.tables import transfers, trees
from webdepot.model import Location
from webdepot.times import from_iso

OpenContainer = Callable[[str], AbstractContextManager[BinaryIO]]
"""Opens a container by its name, as a seekable stream."""
LARGEST_BYTES = 1 << 34
"""Limit of an unpacked file; anything larger is treated as a decompression bomb."""
_UTF8 = 1 << 11
_MOST_32 = 0xFFFFFFFF
_MOST_16 = 0xFFFF
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_END_64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR_64 = struct.Struct("<4sIQI")


class TransferForm(StrEnum):
    CONTAINERS = "containers"
    """The WARC and ARC files of a slice."""
    FILES = "files"
    """Loose files as received: the tree of an offline browser, an article."""
    TREE = "tree"
    """The files of a slice, unpacked from its containers (`exchange/unpacked.py`)."""


UNKNOWN_FORMAT = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferFile:
    """One file of an object, as LMER describes it, and the location of its bytes.

    They are in a container, starting at `offset`; with a `length`, they are the content of the record of that
    length at that offset.
    """

    path: str
    """Folder in the ZIP, with a slash at both ends; `/` at the top."""
    name: str
    size_bytes: int
    sha256: str
    crc32: int = 0
    mime: str
    format: str
    """Short name in capitals, a space, version: `WARC 1.1`."""
    puid: str = ""
    at: str
    """ISO 8601."""
    container: str
    offset: int = 0
    length: int = 0
    url: str = ""
    """The original web address of the file, if known."""

    @property
    def member(self) -> str:
        return f"{self.path}{self.name}"[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """All files of an object, and the ZIP that they make."""

    form: TransferForm
    files: tuple[TransferFile, ...]
    start: str
    """The member to open first."""
    size_bytes: int
    sha256: str


def measure(form: TransferForm, files: Sequence[TransferFile], start: str, opened: OpenContainer) -> Transfer:
    """The transfer object of these files, with their CRC-32. CorruptData if a file does not match its
    checksum.
    """
    if not files:
        raise InputError("An object without files cannot be delivered.")
    summed = tuple(_summed(file, opened) for file in files)
    layout = Layout(summed)
    hasher = hashlib.sha256()
    for piece in layout.pieces(0, layout.size_bytes, opened):
        hasher.update(piece)
    return Transfer(
        form=form, files=summed, start=start, size_bytes=layout.size_bytes, sha256=hasher.hexdigest()
    )


def _summed(file: TransferFile, opened: OpenContainer) -> TransferFile:
    """The file with its CRC-32, and with size and checksum if they are not known yet."""
    crc = size = 0
    hasher = hashlib.sha256()
    for chunk in verified(file, opened) if file.sha256 else _bytes(file, 0, LARGEST_BYTES, opened):
        crc = isal_zlib.crc32(chunk, crc)
        if not file.sha256:
            hasher.update(chunk)
            size += len(chunk)
    if size >= LARGEST_BYTES:
        raise InputError(f"{file.member[:200]} is larger than {LARGEST_BYTES} bytes.")
    return (
        replace(file, crc32=crc)
        if file.sha256
        else replace(file, crc32=crc, size_bytes=size, sha256=hasher.hexdigest())
    )


def verified(file: TransferFile, opened: OpenContainer) -> Iterator[bytes]:
    """The bytes of one file; CorruptData at their end if they do not match the checksum."""
    hasher = hashlib.sha256()
    for chunk in _bytes(file, 0, file.size_bytes, opened):
        hasher.update(chunk)
        yield chunk
    if hasher.hexdigest() != file.sha256:
        raise CorruptData(
            f"{file.member} is damaged: expected sha256 {file.sha256}, found {hasher.hexdigest()}.",
            where=file.container,
        )


class Layout:
    """The sequence of headers and files in the ZIP. Only the headers are in memory."""

    def __init__(self, files: Sequence[TransferFile]) -> None:
        self._parts: list[bytes | TransferFile] = []
        central = bytearray()
        offset = 0
        for file in files:
            header = _local_header(file)
            central += _central_header(file, offset)
            self._parts += [header, file]
            offset += len(header) + file.size_bytes
        self._parts.append(bytes(central) + _end(len(files), len(central), offset))
        sizes = [len(part) if isinstance(part, bytes) else part.size_bytes for part in self._parts]
        self._starts = [0, *accumulate(sizes)]
        self.size_bytes = self._starts[-1]

    def pieces(self, first: int, stop: int, opened: OpenContainer) -> Iterator[bytes]:
        """The bytes from `first` up to, but not including, `stop`, in pieces of bounded size."""
        number = bisect_right(self._starts, first) - 1
        while number < len(self._parts) and self._starts[number] < stop:
            part, start = self._parts[number], self._starts[number]
            begin, end = max(first - start, 0), min(stop, self._starts[number + 1]) - start
            if isinstance(part, bytes):
                yield part[begin:end]
            elif end > begin:
                yield from _bytes(part, begin, end, opened)
            number += 1


def _bytes(file: TransferFile, begin: int, end: int, opened: OpenContainer) -> Iterator[bytes]:
    """The bytes of a file from `begin` up to, but not including, `end`; unpacked content may end earlier."""
    with opened(file.container) as stream:
        if not file.length:
            yield from _part(stream, file.offset + begin, end - begin, file.container)
            return
        place = Location(container=file.container, offset=file.offset, length=file.length)
        content = read_record(stream, place).content(end)
        at = 0
        while at < end and (chunk := content.read(CHUNK_BYTES)):
            if at + len(chunk) > begin:
                yield chunk[max(begin - at, 0) : end - at]
            at += len(chunk)
        if file.sha256 and at < end:
            raise CorruptData(
                f"{file.member} is shorter than expected. Run: webdepot depot audit", where=file.container
            )


def _part(stream: BinaryIO, offset: int, length: int, where: str) -> Iterator[bytes]:
    stream.seek(offset)
    while length:
        chunk = stream.read(min(length, CHUNK_BYTES))
        if not chunk:
            raise CorruptData(f"{where} is shorter than expected. Run: webdepot depot audit", where=where)
        length -= len(chunk)
        yield chunk


def _local_header(file: TransferFile) -> bytes:
    name = file.member.encode()
    extra = (
        struct.pack("<HHQQ", 1, 16, file.size_bytes, file.size_bytes) if file.size_bytes >= _MOST_32 else b""
    )
    size = _MOST_32 if extra else file.size_bytes
    version = 45 if extra else 20
    time, date = _dos(file.at)
    return (
        _LOCAL.pack(
            b"PK\x03\x04", version, _UTF8, 0, time, date, file.crc32, size, size, len(name), len(extra)
        )
        + name
        + extra
    )


def _central_header(file: TransferFile, offset: int) -> bytes:
    name = file.member.encode()
    large = [file.size_bytes] * 2 if file.size_bytes >= _MOST_32 else []
    far = [offset] if offset >= _MOST_32 else []
    wide = large + far
    extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    size = _MOST_32 if large else file.size_bytes
    version = 45 if wide else 20
    time, date = _dos(file.at)
    numbers = (3 << 8 | version, version, _UTF8, 0, time, date, file.crc32, size, size, len(name), len(extra))
    return (
        _CENTRAL.pack(b"PK\x01\x02", *numbers, 0, 0, 0, 0o100644 << 16, _MOST_32 if far else offset)
        + name
        + extra
    )


def _end(count: int, size: int, offset: int) -> bytes:
    wide = b""
    if count >= _MOST_16 or size >= _MOST_32 or offset >= _MOST_32:
        wide = _END_64.pack(b"PK\x06\x06", _END_64.size - 12, 45, 45, 0, 0, count, count, size, offset)
        wide += _LOCATOR_64.pack(b"PK\x06\x07", 0, offset + size, 1)
    shown = min(count, _MOST_16)
    return wide + _END.pack(b"PK\x05\x06", 0, 0, shown, shown, min(size, _MOST_32), min(offset, _MOST_32), 0)


def _dos(at: str) -> tuple[int, int]:
    """Time and date in the format of ZIP: a resolution of two seconds, from 1980 to 2107."""
    try:
        moment = from_iso(at)
    except ValueError:
        return 0, 0x21
    if not 1980 <= moment.year <= 2107:
        return 0, 0x21
    time = moment.hour << 11 | moment.minute << 5 | moment.second // 2
    return time, (moment.year - 1980) << 9 | moment.month << 5 | moment.day


def to_document(transfer: Transfer) -> dict[str, object]:
    """The transfer object as plain JSON values."""
    return asdict(transfer) | {
        "form": transfer.form.value,
        "files": [asdict(file) for file in transfer.files],
    }


def from_document(facts: Mapping[str, Any]) -> Transfer:
    files = tuple(TransferFile(**each) for each in facts["files"])
    values = {name: facts[name] for name in ("start", "size_bytes", "sha256")}
    return Transfer(form=TransferForm(facts["form"]), files=files, **values)


def record(connection: Connection, key: str, transfer: Transfer, *, now: datetime) -> None:
    """Store the transfer object of a catalogue record."""
    forget(connection, key)
    connection.execute(insert(transfers).values(key=key, made_at=now, **to_document(transfer)))


def forget(connection: Connection, key: str) -> None:
    connection.execute(delete(transfers).where(transfers.c.key == key))
    connection.execute(delete(trees).where(trees.c.key == key))


def record_tree(
    connection: Connection, key: str, tree: Transfer | None, *, reason: str = "", now: datetime
) -> None:
    """Store the unpacked form of an object, or why there is none, so that it is not tried again."""
    connection.execute(delete(trees).where(trees.c.key == key))
    facts = to_document(tree) if tree else {"start": "", "size_bytes": 0, "sha256": "", "files": []}
    facts.pop("form", None)
    connection.execute(insert(trees).values(key=key, made_at=now, reason=reason, **facts))


def forget_trees_with(connection: Connection, container: str) -> int:
    """Remove the trees that have a file in a container that is being deleted; returns how many."""
    named = cast(trees.c.files, Text).contains(json.dumps(container), autoescape=True)
    return connection.execute(delete(trees).where(named)).rowcount


def find_tree(connection: Connection, key: str) -> Transfer | None:
    """The unpacked form of an object, if it exists."""
    chosen = select(trees).where(trees.c.key == key, trees.c.size_bytes > 0)
    row = connection.execute(chosen).mappings().one_or_none()
    return from_row({**row, "form": TransferForm.TREE.value}) if row else None


def without_tree(connection: Connection, *, limit: int, after: str = "") -> list[str]:
    """Keys of objects in containers that have neither a tree nor a reason why there is none."""
    chosen = _without_tree().where(transfers.c.key > after)
    return list(connection.execute(chosen.order_by(transfers.c.key).limit(limit)).scalars())


def is_without_tree(connection: Connection, key: str) -> bool:
    return connection.execute(_without_tree().where(transfers.c.key == key)).first() is not None


def _without_tree() -> Select[Any]:
    joined = select(transfers.c.key).outerjoin(trees, trees.c.key == transfers.c.key)
    return joined.where(transfers.c.form == TransferForm.CONTAINERS.value, trees.c.key.is_(None))


def find(connection: Connection, key: str) -> Transfer | None:
    row = connection.execute(select(transfers).where(transfers.c.key == key)).mappings().one_or_none()
    return from_row(row) if row else None


def from_row(row: Mapping[Any, Any]) -> Transfer:
    return from_document({name: row[name] for name in ("form", "files", "start", "size_bytes", "sha256")})
