"""WARC files compressed with Zstandard (https://iipc.github.io/warc-specifications/specifications/warc-zstd/),
as ArchiveTeam and Zeno write them.

    dictionary frame    optional, first: 5D 2A 4D 18, length (32 bits, little endian), the dictionary, which
                        may itself be compressed with Zstandard
    frames              one for each record; all of them use the dictionary
    skippable frames    5x 2A 4D 18, length, bytes without meaning

They are read from beginning to end and rewritten with gzip when they are imported, so that replay knows one
compression.
"""

import struct
import sys
from collections.abc import Generator, Iterator
from typing import BinaryIO

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from webdepot.errors import CorruptData

MAGIC = b"\x28\xb5\x2f\xfd"
LARGEST_DICTIONARY_BYTES = 64 << 20
_DICTIONARY = b"\x5d\x2a\x4d\x18"
_SKIPPABLE = b"\x2a\x4d\x18"
_READ_BYTES = 1 << 18
_PIECE_BYTES = 1 << 20
_WINDOW_LOG = 27
"""128 MB, what the command `zstd` unpacks without further options."""


def begins(data: bytes) -> bool:
    """Whether these are the first bytes of such a file."""
    return data[:4] == MAGIC or _is_skippable(data)


def iter_unpacked(stream: BinaryIO) -> Iterator[bytes]:
    """The content of all frames in pieces. CorruptData where a frame is damaged or cut."""
    stream.seek(0)
    dictionary = _read_dictionary(stream)
    data = stream.read(_READ_BYTES)
    while data:
        if len(data) < 8:
            data += stream.read(_READ_BYTES)
        if _is_skippable(data):
            data = _after_skippable(stream, data)
            continue
        if data[:4] != MAGIC:
            raise _damaged(stream, data, "no frame begins there")
        data = yield from _iter_frame(stream, data, dictionary)


def _iter_frame(
    stream: BinaryIO, data: bytes, dictionary: "zstd.ZstdDict | None"
) -> Generator[bytes, None, bytes]:
    """The content of one frame; returns the bytes after it."""
    decoder = zstd.ZstdDecompressor(
        zstd_dict=dictionary, options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    )
    while not decoder.eof:
        try:
            piece = decoder.decompress(data, _PIECE_BYTES)
        except zstd.ZstdError as error:
            raise _damaged(stream, data, str(error)) from error
        if piece:
            yield piece
        data = b""
        if decoder.needs_input and not decoder.eof:
            data = stream.read(_READ_BYTES)
            if not data:
                raise _damaged(stream, data, "the file ends inside a frame")
    return decoder.unused_data or stream.read(_READ_BYTES)


def _read_dictionary(stream: BinaryIO) -> "zstd.ZstdDict | None":
    head = stream.read(8)
    if head[:4] != _DICTIONARY or len(head) < 8:
        stream.seek(0)
        return None
    (length,) = struct.unpack("<I", head[4:])
    if length > LARGEST_DICTIONARY_BYTES:
        raise _damaged(stream, b"", f"its dictionary would have {length} bytes")
    data = stream.read(length)
    try:
        if data[:4] == MAGIC:
            data = zstd.ZstdDecompressor().decompress(data, LARGEST_DICTIONARY_BYTES)
        return zstd.ZstdDict(data)
    except (zstd.ZstdError, ValueError) as error:
        raise _damaged(stream, b"", f"its dictionary cannot be used: {error}") from error


def _is_skippable(data: bytes) -> bool:
    return data[1:4] == _SKIPPABLE and 0x50 <= data[0] <= 0x5F


def _after_skippable(stream: BinaryIO, data: bytes) -> bytes:
    if len(data) < 8:
        raise _damaged(stream, data, "the file ends inside a frame")
    (length,) = struct.unpack("<I", data[4:8])
    if 8 + length <= len(data):
        return data[8 + length :] or stream.read(_READ_BYTES)
    stream.seek(8 + length - len(data), 1)
    return stream.read(_READ_BYTES)


def _damaged(stream: BinaryIO, unread: bytes, reason: str) -> CorruptData:
    place = stream.tell() - len(unread)
    return CorruptData(f"The Zstandard data is damaged near byte {place}: {reason}", where=f"byte {place}")
