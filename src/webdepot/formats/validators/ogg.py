"""Ogg (RFC 3533): checksums of pages; every stream begins, continues without a gap, and ends."""

import struct
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, Property, judge
from webdepot.model import Finding

MOST_CHECKED_BYTES = 4 << 20
"""A checksum costs a table lookup for each byte; of later pages only the lengths are checked."""
_BEGINS, _ENDS = 2, 4
_CODECS = (
    (b"\x01vorbis", "Vorbis"),
    (b"OpusHead", "Opus"),
    (b"\x80theora", "Theora"),
    (b"\x7fFLAC", "FLAC"),
    (b"Speex   ", "Speex"),
    (b"fishead\0", "Skeleton"),
)


def check(stream: BinaryIO) -> CheckResult:
    size_bytes = stream.seek(0, 2)
    table = _table()
    properties: dict[str, Property] = {}
    codecs: list[str] = []
    pages: dict[int, int] = {}
    ended: set[int] = set()
    at, granule, rate = 0, 0, 0
    while at < size_bytes:
        stream.seek(at)
        head = stream.read(27)
        if len(head) < 27 or head[:4] != b"OggS" or head[4]:
            return judge([_damaged("no page begins here", at)], properties)
        flags, position, serial, number, stated, segments = struct.unpack("<BqIIIB", head[5:27])
        lengths = stream.read(segments)
        body_bytes = sum(lengths)
        body = stream.read(body_bytes) if at < MOST_CHECKED_BYTES else b""
        if len(lengths) < segments or at + 27 + segments + body_bytes > size_bytes:
            return judge([_damaged("it ends in the middle of a page", at)], properties)
        if (
            at < MOST_CHECKED_BYTES
            and _checksum(head[:22] + b"\0\0\0\0" + head[26:] + lengths + body, table) != stated
        ):
            return judge([_damaged("a page does not match its checksum", at)], properties)
        if flags & _BEGINS:
            name = next((codec for mark, codec in _CODECS if body.startswith(mark)), "other")
            codecs.append(name)
            rate = rate or _rate(name, body, properties)
        elif serial not in pages or number not in (pages[serial] + 1, pages[serial]):
            return judge([_damaged("a page is missing before this one", at)], properties)
        pages[serial] = number
        ended |= {serial} if flags & _ENDS else set()
        granule = max(granule, position)
        at += 27 + segments + body_bytes
    if not pages:
        return judge([_damaged("it has no pages", 0)], properties)
    properties["codecs"] = ", ".join(codecs)
    if rate:
        properties["duration_s"] = round(granule / rate, 3)
    return judge([] if ended >= set(pages) else [finding("stream-unended")], properties)


def _rate(codec: str, body: bytes, properties: dict[str, Property]) -> int:
    if codec == "Vorbis" and len(body) >= 16:
        properties |= {"channels": body[11], "sample_rate": int.from_bytes(body[12:16], "little")}
        return int.from_bytes(body[12:16], "little")
    if codec == "Opus" and len(body) >= 16:
        properties |= {"channels": body[9], "sample_rate": int.from_bytes(body[12:16], "little")}
        return 48_000  # positions always have this unit, independent of the rate of the source
    return 0


def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte << 24
        for _ in range(8):
            value = (value << 1) ^ (0x04C11DB7 if value & 0x80000000 else 0)
        table.append(value & 0xFFFFFFFF)
    return table


def _checksum(page: bytes, table: list[int]) -> int:
    value = 0
    for byte in page:
        value = ((value << 8) & 0xFFFFFFFF) ^ table[(value >> 24) ^ byte]
    return value


def _damaged(detail: str, place: int) -> Finding:
    return finding("ogg-damaged", place=f"byte {place}", detail=detail)
