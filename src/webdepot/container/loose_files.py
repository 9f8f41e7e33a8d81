"""Loose files as a container: one uncompressed WARC 1.1 file of resource records, which contains each file
byte for byte.

Uncompressed on purpose: a file can be read at its place without unpacking anything, so the container serves
as the file itself when the object is delivered.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from webdepot.container import new_records
from webdepot.container.new_records import NewRecord
from webdepot.digest import CHUNK_BYTES, Digest
from webdepot.durable import sync_file

_END = b"\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseFile:
    path: Path
    urls: tuple[str, ...]
    """Addresses under which it is found; each gets its own record."""
    mime: str
    date: datetime


def write(
    target: Path, files: Iterable[LooseFile], *, info: Mapping[str, str], now: datetime
) -> dict[Path, int]:
    """Write the container, durable on return. Returns where the bytes of each file begin in it."""
    places: dict[Path, int] = {}
    with target.open("wb") as sink:
        first = new_records.warcinfo(target.name, info, now)
        sink.write(new_records.header(first, _digest_of(first.head)) + first.head + _END)
        for file in files:
            for url in file.urls:
                with file.path.open("rb") as body:
                    record = new_records.resource(url, file.date, file.mime, body, file.path.stat().st_size)
                    sink.write(new_records.header(record, _payload_digest(record)))
                    places.setdefault(file.path, sink.tell())
                    body.seek(0)
                    while chunk := body.read(CHUNK_BYTES):
                        sink.write(chunk)
                    sink.write(_END)
        sync_file(sink)
    return places


def _payload_digest(record: NewRecord) -> str:
    """The digest of the block as well: the block of a resource is its payload."""
    return dict(record.fields)["WARC-Payload-Digest"]


def _digest_of(block: bytes) -> str:
    return str(Digest("sha1", hashlib.sha1(block, usedforsecurity=False).digest()))
