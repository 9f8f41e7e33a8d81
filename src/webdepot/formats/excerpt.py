"""What of a payload the signatures get to see: all of a short one; of a long one its beginning, its landmarks
and its end.

Siegfried's time grows with what it reads, and a signature asks for little of it: PRONOM's ask for bytes
within the first few kB and at the end, DROID looks at the first and last 64 kB only. Those that ask for more
are met in three ways:

* formats that are known by what lies inside (ZIP and OLE2 containers, PDF, TIFF, sound behind its tags) are
  shown whole, up to a limit;
* formats whose signatures look further on (letters with long heads, RTF, disk images) have 64 kB shown;
* files made of chunks (ISO media, PNG, RIFF) have their landmarks shown wherever they lie: a film whose index
  stands at its end, a picture whose words do. Only their lengths are read to find them.

A test compares the answers with those for whole files.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from webdepot.formats import sniff
from webdepot.formats.batch import PayloadSlice

WHOLE_UP_TO_BYTES = 64 << 20
_LOOKED_INSIDE = (b"PK", b"\xd0\xcf\x11\xe0", b"%PDF", b"II*\0", b"MM\0*", b"ID3")
_BINARY_BYTES, _MARKUP_BYTES, _TEXT_BYTES = 16 << 10, 8 << 10, 6 << 10
"""Of the beginning. Text says soon what it is."""
_END_BYTES, _END_OF_TEXT_BYTES, _LONG_END_BYTES = 4 << 10, 2 << 10, 128 << 10
_DEEP_STARTS = (b"{\\rt", b"data_", b"\0\0\1\xba", b"\x80\0")
"""RTF, CIF, MPEG programme streams, ADX: formats whose signatures look further on."""
_LETTER = re.compile(rb"(?:From |[A-Z][A-Za-z-]{1,40}: )")
"""A message (RFC 5322): its head may be long."""
_JSON_MARKS = (b'"asset"', b'"retweeted"')
"""glTF and tweets."""
_DISK_MARKS = frozenset((b"CD001", b"CDROM", b"BEA01", b"NSR02", b"NSR03"))
_DISK_PLACES = (32_769, 32_777, 34_817, 36_865, 37_649, 37_657)
"""Of ISO 9660, High Sierra and UDF: in the sectors from the sixteenth on, of 2,048 bytes or of 2,352 with
what surrounds them on a disc.
"""
_JPEG, _END_OF_JPEG = b"\xff\xd8\xff", b"\xff\xd9"
_MOST_CHUNKS = 10_000
_MOST_LANDMARKS = 16


class _Chunks(NamedTuple):
    """How a format is divided, and which of its chunks say what it is."""

    start: int
    read: Callable[[bytes], tuple[bytes, int]]
    """From the first 16 bytes of a chunk to its name and the bytes to the next one."""
    is_landmark: Callable[[bytes], bool]
    shown_bytes: int


def excerpt_of(piece: PayloadSlice, head: bytes) -> bytes | None:
    """What the engine gets; None for all of a large file, which it reads itself. `head` has at least the
    first 64 kB.
    """
    looked_inside = head.startswith(_LOOKED_INSIDE) and piece.size_bytes <= WHOLE_UP_TO_BYTES
    first_bytes = _first_bytes(head)
    last_bytes = _END_OF_TEXT_BYTES if first_bytes == _TEXT_BYTES else _END_BYTES
    is_short = piece.size_bytes <= first_bytes + last_bytes
    if piece.size_bytes <= len(head) and (looked_inside or is_short):
        return head
    if looked_inside and piece.is_all:
        return None
    if looked_inside or is_short:
        return piece.read(piece.size_bytes)
    end_at = max(first_bytes, piece.size_bytes - last_bytes)
    end = piece.read(last_bytes, end_at)
    if head.startswith(_JPEG) and _END_OF_JPEG not in end:  # something was appended to the picture
        end_at = max(first_bytes, piece.size_bytes - _LONG_END_BYTES)
        end = piece.read(_LONG_END_BYTES, end_at)
    chunks = _chunks_of(head)
    landmarks = _landmarks(piece, chunks, first_bytes, end_at) if chunks else ()
    return b"".join((head[:first_bytes], *landmarks, end))


def _first_bytes(head: bytes) -> int:
    if b"\0" in head[:1024]:
        first_bytes = _BINARY_BYTES
        is_deep = any(head[at : at + 5] in _DISK_MARKS for at in _DISK_PLACES)
    else:
        first_bytes = _MARKUP_BYTES if b"<" in head[:64] else _TEXT_BYTES
        is_deep = _LETTER.match(head) is not None or (
            head[:1] == b"{" and any(mark in head for mark in _JSON_MARKS)
        )
    return max(len(head), sniff.HEAD_BYTES) if is_deep or head.startswith(_DEEP_STARTS) else first_bytes


def _landmarks(piece: PayloadSlice, chunks: _Chunks, start: int, end: int) -> Iterator[bytes]:
    """Pieces of the chunks between these places that say what the file is."""
    at, found = chunks.start, 0
    for _ in range(_MOST_CHUNKS):
        header = piece.read(16, at) if at < end and found < _MOST_LANDMARKS else b""
        if len(header) < 8:
            return
        name, size_bytes = chunks.read(header)
        # One that begins in what is shown already may go on behind it.
        if at + chunks.shown_bytes > start and chunks.is_landmark(name):
            found += 1
            yield piece.read(chunks.shown_bytes, at)
        if size_bytes < 8:  # it goes to the end of the file, or is none
            return
        at += size_bytes


def _box(header: bytes) -> tuple[bytes, int]:
    """ISO 14496-12, 4.2: length with its header, name; 1 for a length of eight bytes behind the name."""
    size_bytes = int.from_bytes(header[:4])
    return header[4:8], int.from_bytes(header[8:16]) if size_bytes == 1 else size_bytes


def _png_chunk(header: bytes) -> tuple[bytes, int]:
    """PNG, 5.3: length of the content, name, content, checksum."""
    return header[4:8], int.from_bytes(header[:4]) + 12


def _riff_chunk(header: bytes) -> tuple[bytes, int]:
    """Name, length of the content, content up to an even place."""
    size_bytes = int.from_bytes(header[4:8], "little")
    return header[:4], size_bytes + size_bytes % 2 + 8


_BOXES = frozenset((b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"cmov"))
_MEDIA = _Chunks(0, _box, lambda name: name == b"moov", 8 << 10)
_PNG = _Chunks(8, _png_chunk, lambda name: name != b"IDAT", 64)
_RIFF = _Chunks(12, _riff_chunk, lambda name: name != b"data", 1 << 10)


def _chunks_of(head: bytes) -> _Chunks | None:
    if head[4:8] in _BOXES:
        return _MEDIA
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return _PNG
    return _RIFF if head.startswith((b"RIFF", b"RF64")) else None
