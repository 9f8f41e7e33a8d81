"""The part of a payload that is compared with signatures: all of a short one; the beginning, the landmarks
and the end of a long one.

Siegfried's time grows with the bytes that it reads, and signatures need few of them: PRONOM's need bytes in
the first few kB and at the end, and DROID reads only the first and last 64 kB. Formats that need more are
handled in three ways:

* formats identified by their content (ZIP and OLE2 containers, PDF, TIFF, audio after its tags) are passed
  completely, up to a limit;
* formats whose signatures need more of the beginning (e-mail with long headers, RTF, disk images) get 64 kB;
* files made of chunks (ISO media, PNG, RIFF) include their landmarks, wherever they are: a video whose index
  is at its end, an image whose text is there. Only the lengths of chunks are read to find them.

A test compares the results with those for complete files.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from webdepot.formats import sniff
from webdepot.guard.batch import PayloadSlice

WHOLE_UP_TO_BYTES = 64 << 20
_NEED_CONTENT = (b"PK", b"\xd0\xcf\x11\xe0", b"%PDF", b"II*\0", b"MM\0*", b"ID3")
_BINARY_BYTES, _MARKUP_BYTES, _TEXT_BYTES = 16 << 10, 8 << 10, 6 << 10
"""Bytes of the beginning. Text can be recognised early."""
_END_BYTES, _END_OF_TEXT_BYTES, _LONG_END_BYTES = 4 << 10, 2 << 10, 128 << 10
_DEEP_STARTS = (b"{\\rt", b"data_", b"\0\0\1\xba", b"\x80\0")
"""RTF, CIF, MPEG program streams, ADX: formats whose signatures need more of the beginning."""
_EMAIL = re.compile(rb"(?:From |[A-Z][A-Za-z-]{1,40}: )")
"""A message (RFC 5322): its header may be long."""
_JSON_MARKS = (b'"asset"', b'"retweeted"')
"""glTF and tweets."""
_DISK_MARKS = frozenset((b"CD001", b"CDROM", b"BEA01", b"NSR02", b"NSR03"))
_DISK_PLACES = (32_769, 32_777, 34_817, 36_865, 37_649, 37_657)
"""Offsets of ISO 9660, High Sierra and UDF marks: in the sectors from the sixteenth on, of 2,048 bytes, or of
2,352 bytes in raw images.
"""
_JPEG, _END_OF_JPEG = b"\xff\xd8\xff", b"\xff\xd9"
_MOST_CHUNKS = 10_000
_MOST_LANDMARKS = 16


class _Chunks(NamedTuple):
    """How a format is divided into chunks, and which of them identify it."""

    start: int
    read: Callable[[bytes], tuple[bytes, int]]
    """From the first 16 bytes of a chunk to its name and its total length."""
    is_landmark: Callable[[bytes], bool]
    shown_bytes: int


def excerpt_of(piece: PayloadSlice, head: bytes) -> bytes | None:
    """The bytes for the engine; None for a large file that it must read completely by itself. `head` has at
    least the first 64 kB.
    """
    needs_content = head.startswith(_NEED_CONTENT) and piece.size_bytes <= WHOLE_UP_TO_BYTES
    first_bytes = _first_bytes(head)
    last_bytes = _END_OF_TEXT_BYTES if first_bytes == _TEXT_BYTES else _END_BYTES
    is_short = piece.size_bytes <= first_bytes + last_bytes
    if piece.size_bytes <= len(head) and (needs_content or is_short):
        return head
    if needs_content and piece.is_all:
        return None
    if needs_content or is_short:
        return piece.read(piece.size_bytes)
    end_at = max(first_bytes, piece.size_bytes - last_bytes)
    end = piece.read(last_bytes, end_at)
    if head.startswith(_JPEG) and _END_OF_JPEG not in end:  # something was appended to the image
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
        is_deep = _EMAIL.match(head) is not None or (
            head[:1] == b"{" and any(mark in head for mark in _JSON_MARKS)
        )
    return max(len(head), sniff.HEAD_BYTES) if is_deep or head.startswith(_DEEP_STARTS) else first_bytes


def _landmarks(piece: PayloadSlice, chunks: _Chunks, start: int, end: int) -> Iterator[bytes]:
    """The beginnings of the chunks between these offsets that identify the file."""
    at, count = chunks.start, 0
    for _ in range(_MOST_CHUNKS):
        header = piece.read(16, at) if at < end and count < _MOST_LANDMARKS else b""
        if len(header) < 8:
            return
        name, size_bytes = chunks.read(header)
        # A chunk that begins in the part already included may continue after it.
        if at + chunks.shown_bytes > start and chunks.is_landmark(name):
            count += 1
            yield piece.read(chunks.shown_bytes, at)
        if size_bytes < 8:  # it extends to the end of the file, or is not a chunk
            return
        at += size_bytes


def _box(header: bytes) -> tuple[bytes, int]:
    """ISO 14496-12, 4.2: length including the header, name; length 1 means eight bytes of length after it."""
    size_bytes = int.from_bytes(header[:4])
    return header[4:8], int.from_bytes(header[8:16]) if size_bytes == 1 else size_bytes


def _png_chunk(header: bytes) -> tuple[bytes, int]:
    """PNG, 5.3: length of the content, name, content, checksum."""
    return header[4:8], int.from_bytes(header[:4]) + 12


def _riff_chunk(header: bytes) -> tuple[bytes, int]:
    """Name, length of the content, content padded to an even length."""
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
