"""JPEG 2000, part 1 (ITU-T T.800): the boxes of JP2 and the marker segments of the codestream, up to the end
marker.

Decoders show what is left of a truncated codestream, so the lengths of tile-parts are checked here; `image`
decodes the pixels.
"""

import struct
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import DamagedFile, Property
from webdepot.model import Finding

MOST_BOXES = 10_000
_SIGNATURE = b"\0\0\0\x0cjP  \r\n\x87\n"
_COLOURS = {16: "sRGB", 17: "grey", 18: "sYCC"}


def structure(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    size_bytes = stream.seek(0, 2)
    stream.seek(0)
    head = stream.read(12)
    try:
        if head[:4] == b"\xff\x4f\xff\x51":
            _codestream(stream, 0, size_bytes, properties)
        elif head == _SIGNATURE:
            _boxes(stream, size_bytes, properties)
        else:
            raise DamagedFile("it does not begin like JPEG 2000", 0)
    except DamagedFile as error:
        return [finding("image-damaged", place=f"byte {error.place}", detail=error)]
    except (EOFError, struct.error):
        return [finding("image-cut-off", place=f"byte {stream.tell()}")]
    return []


def _boxes(stream: BinaryIO, size_bytes: int, properties: dict[str, Property]) -> None:
    seen: list[bytes] = []
    at = 12
    for _ in range(MOST_BOXES):
        if at >= size_bytes:
            break
        kind, start, end = _box(stream, at, size_bytes)
        if not seen and kind != b"ftyp":
            raise DamagedFile("its file type box is not the second box", at)
        if kind == b"ftyp" and (end - start < 8 or seen):
            raise DamagedFile("its file type box is damaged", at)
        if kind == b"jp2h":
            _header(stream, start, end, properties)
        if kind == b"jp2c":
            if b"jp2h" not in seen:
                raise DamagedFile("its codestream comes before its header", at)
            _codestream(stream, start, end, properties)
        seen.append(kind)
        at = end
    if b"jp2h" not in seen:
        raise DamagedFile("it has no header", at)
    if b"jp2c" not in seen:
        raise DamagedFile("it has no codestream", at)


def _box(stream: BinaryIO, at: int, limit: int) -> tuple[bytes, int, int]:
    stream.seek(at)
    length, kind = struct.unpack(">I4s", stream.read(8))
    start = at + 8
    if length == 1:
        (length,) = struct.unpack(">Q", stream.read(8))
        start += 8
    end = limit if length == 0 else at + length
    if end < start:
        raise DamagedFile(f"box {kind.decode('latin-1')} has length {length}", at)
    if end > limit:
        raise EOFError
    return kind, start, end


def _header(stream: BinaryIO, start: int, end: int, properties: dict[str, Property]) -> None:
    inner: list[bytes] = []
    at = start
    while at < end:
        kind, body, stop = _box(stream, at, end)
        if not inner and kind != b"ihdr":
            raise DamagedFile("its image header is not the first box in its header", at)
        stream.seek(body)
        if kind == b"ihdr":
            if stop - body != 14:
                raise DamagedFile("its image header has the wrong length", at)
            height, width, components, depth, coding = struct.unpack(">IIHBB", stream.read(12))
            if not height or not width or not components or coding != 7:
                raise DamagedFile("its image header has values that are not valid", at)
            properties |= {
                "width": width,
                "height": height,
                "components": components,
                "bit_depth": (depth & 0x7F) + 1,
            }
        elif kind == b"colr":
            method, _, _ = struct.unpack("BBB", stream.read(3))
            properties["colour"] = (
                _COLOURS.get(struct.unpack(">I", stream.read(4))[0], "other")
                if method == 1
                else "ICC profile"
            )
        inner.append(kind)
        at = stop
    if b"colr" not in inner:
        raise DamagedFile("it does not state its colour space", start)


def _codestream(stream: BinaryIO, start: int, end: int, properties: dict[str, Property]) -> None:
    stream.seek(start)
    if stream.read(2) != b"\xff\x4f":
        raise DamagedFile("its codestream has no start marker", start)
    at, seen = start + 2, set()
    while True:
        stream.seek(at)
        marker, length = struct.unpack(">HH", stream.read(4))
        if at == start + 2 and marker != 0xFF51:
            raise DamagedFile("its codestream does not begin with its size", at)
        if marker == 0xFF90:
            break
        if marker < 0xFF00 or length < 2 or at + 2 + length > end:
            raise DamagedFile("a segment of its codestream is damaged", at)
        if marker == 0xFF51:
            _, right, bottom, left, top = struct.unpack(">HIIII", stream.read(18))
            if right <= left or bottom <= top:
                raise DamagedFile("its codestream has no size", at)
            properties |= {"width": right - left, "height": bottom - top}
        seen.add(marker)
        at += 2 + length
    for marker, name in ((0xFF52, "coding style"), (0xFF5C, "quantisation")):
        if marker not in seen:
            raise DamagedFile(f"its codestream has no {name}", at)
    _tile_parts(stream, at, end)


def _tile_parts(stream: BinaryIO, at: int, end: int) -> None:
    while True:
        stream.seek(at)
        mark = stream.read(2)
        if mark == b"\xff\xd9":
            return
        if mark != b"\xff\x90":
            if len(mark) < 2 or at >= end:
                raise EOFError
            raise DamagedFile("a tile of its codestream does not begin where it should", at)
        _, _, length, _, _ = struct.unpack(">HHIBB", stream.read(10))
        if length == 0:  # up to the end marker
            stream.seek(end - 2)
            if stream.read(2) != b"\xff\xd9":
                raise EOFError
            return
        if length < 14:
            raise DamagedFile("a tile has an impossible length", at)
        if at + length > end:
            raise EOFError
        at += length
