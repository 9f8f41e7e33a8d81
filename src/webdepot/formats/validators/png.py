"""PNG, third edition (https://www.w3.org/TR/png-3/): chunks, their order and checksums, and all pixels.

The pixels are unpacked as a stream and discarded, so that an image of any size needs little memory. Decoders
are lenient: they show an image without its palette or with damaged pixels.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import CheckResult, DamagedFile, Property, Validity, judge
from webdepot.model import Finding

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST_UNPACKED_BYTES = 512 << 20
MOST_CHUNKS = 200_000
_PIECE_BYTES = 1 << 16
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_COLOURS = {0: "grey", 2: "RGB", 3: "palette", 4: "grey with alpha", 6: "RGB with alpha"}
_ONCE = frozenset(
    (
        b"PLTE",
        b"tRNS",
        b"cHRM",
        b"gAMA",
        b"iCCP",
        b"sBIT",
        b"sRGB",
        b"bKGD",
        b"hIST",
        b"pHYs",
        b"tIME",
        b"acTL",
    )
)
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


@dataclass(frozen=True, slots=True)
class _Header:
    width: int
    height: int
    depth: int
    colour: int
    interlaced: bool

    def passes(self) -> Iterator[tuple[int, int]]:
        """Bytes of a row (with its filter) and rows, for each pass."""
        bits = self.depth * _SAMPLES[self.colour]
        if not self.interlaced:
            yield 1 + (self.width * bits + 7) // 8, self.height
            return
        for left, top, across, down in _PASSES:
            columns, rows = (self.width - left + across - 1) // across, (self.height - top + down - 1) // down
            if columns > 0 and rows > 0:
                yield 1 + (columns * bits + 7) // 8, rows


def check(stream: BinaryIO) -> CheckResult:
    properties: dict[str, Property] = {}
    try:
        findings = _walk(stream, properties)
    except DamagedFile as error:
        return judge([finding("image-damaged", place=f"byte {error.place}", detail=error)], properties)
    except EOFError:
        return judge([finding("image-cut-off", place=f"byte {stream.tell()}")], properties)
    limited = any(each.code == "formats.too-large" for each in findings)
    return judge(findings, properties, best=Validity.WELL_FORMED if limited else Validity.VALID)


def _walk(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    stream.seek(0)
    if stream.read(8) != SIGNATURE:
        raise DamagedFile("it does not begin like a PNG", 0)
    header: _Header | None = None
    pixels: _Pixels | None = None
    seen: set[bytes] = set()
    last = b""
    for _ in range(MOST_CHUNKS):
        place = stream.tell()
        length, kind = _chunk_head(stream, place)
        if header is None:
            if kind != b"IHDR" or length != 13:
                raise DamagedFile("its first chunk is not the header", place)
            header = _header(_body(stream, length, kind, place), place)
            pixels = _Pixels(header)
            properties |= {
                "width": header.width,
                "height": header.height,
                "bit_depth": header.depth,
                "colour": _COLOURS[header.colour],
            }
            continue
        assert pixels is not None  # noqa: S101 - comes with the header
        _check_order(kind, seen, last, header, place)
        if kind == b"IDAT":
            _take_pixels(stream, length, pixels, place)
        elif kind == b"IEND":
            return _end(stream, length, seen, header, pixels, place)
        else:
            _check_body(kind, _body(stream, length, kind, place), header, place)
            if kind == b"acTL":
                properties["animated"] = True
        seen.add(kind)
        last = kind
    raise DamagedFile("it has more chunks than can be read", stream.tell())


def _chunk_head(stream: BinaryIO, place: int) -> tuple[int, bytes]:
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    length, kind = int.from_bytes(head[:4], "big"), head[4:]
    if not kind.isalpha() or not kind.isascii():
        raise DamagedFile(f"{kind!r} is not a chunk name", place)
    if length > 0x7FFFFFFF:
        raise DamagedFile(f"chunk {kind.decode()} is longer than a chunk may be", place)
    return length, kind


def _body(stream: BinaryIO, length: int, kind: bytes, place: int) -> bytes:
    """The bytes of a chunk (only the first of a long one); DamagedFile if the checksum does not match."""
    kept, checksum, read = b"", zlib.crc32(kind), 0
    while read < length:
        piece = stream.read(min(_PIECE_BYTES, length - read))
        if not piece:
            raise EOFError
        checksum, read = zlib.crc32(piece, checksum), read + len(piece)
        kept = kept or piece
    _compare(stream, checksum, kind, place)
    return kept


def _compare(stream: BinaryIO, checksum: int, kind: bytes, place: int) -> None:
    stated = stream.read(4)
    if len(stated) < 4:
        raise EOFError
    if checksum != int.from_bytes(stated, "big"):
        raise DamagedFile(f"chunk {kind.decode()} does not match its checksum", place)


def _header(body: bytes, place: int) -> _Header:
    width, height = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
    depth, colour, packing, filtering, interlace = body[8:13]
    if not 0 < width <= 0x7FFFFFFF or not 0 < height <= 0x7FFFFFFF:
        raise DamagedFile(f"its size is {width} × {height}", place)
    if depth not in _DEPTHS.get(colour, ()):
        raise DamagedFile(f"colour type {colour} with bit depth {depth} does not exist", place)
    if packing or filtering or interlace > 1:
        raise DamagedFile("its header names an unknown method", place)
    return _Header(width, height, depth, colour, bool(interlace))


def _check_order(kind: bytes, seen: set[bytes], last: bytes, header: _Header, place: int) -> None:
    name = kind.decode()
    if kind == b"IHDR":
        raise DamagedFile("it has two headers", place)
    if kind in _ONCE and kind in seen:
        raise DamagedFile(f"chunk {name} occurs twice", place)
    if kind == b"IDAT" and b"IDAT" in seen and last != b"IDAT":
        raise DamagedFile("its pixel chunks are not consecutive", place)
    if kind in (b"PLTE", b"tRNS") and b"IDAT" in seen:
        raise DamagedFile(f"chunk {name} comes after the pixels", place)
    if kind == b"IDAT" and header.colour == 3 and b"PLTE" not in seen:
        raise DamagedFile("it has no palette", place)
    if kind == b"PLTE" and header.colour in (0, 4):
        raise DamagedFile("it has a palette, although it is grey", place)
    if kind[:1].isupper() and kind not in (b"IHDR", b"PLTE", b"IDAT", b"IEND"):
        raise DamagedFile(f"its critical chunk {name} is unknown", place)


def _check_body(kind: bytes, body: bytes, header: _Header, place: int) -> None:
    if kind == b"PLTE" and (not body or len(body) % 3 or len(body) > 768):
        raise DamagedFile(f"its palette has {len(body)} bytes, which is not possible", place)
    if kind == b"tRNS":
        right = {0: len(body) == 2, 2: len(body) == 6, 3: 0 < len(body) <= 256}.get(header.colour, False)
        if not right:
            raise DamagedFile("its transparency does not fit its colour type", place)


def _take_pixels(stream: BinaryIO, length: int, pixels: "_Pixels", place: int) -> None:
    checksum, read = zlib.crc32(b"IDAT"), 0
    while read < length:
        piece = stream.read(min(_PIECE_BYTES, length - read))
        if not piece:
            raise EOFError
        checksum, read = zlib.crc32(piece, checksum), read + len(piece)
        pixels.take(piece, place)
    _compare(stream, checksum, b"IDAT", place)


def _end(
    stream: BinaryIO, length: int, seen: set[bytes], header: _Header, pixels: "_Pixels", place: int
) -> list[Finding]:
    _body(stream, length, b"IEND", place)
    if length:
        raise DamagedFile("its end chunk is not empty", place)
    if b"IDAT" not in seen:
        raise DamagedFile("it has no pixels", place)
    pixels.finish(place)
    here = stream.tell()
    rest = stream.seek(0, 2) - here
    findings = (
        [finding("too-large", detail=f"{header.width} × {header.height} pixels")] if pixels.gave_up else []
    )
    return findings + ([finding("trailing-bytes", place=f"byte {here}", detail=rest)] if rest else [])


class _Pixels:
    """Unpacks rows, checks the filter of each, counts them, and keeps nothing."""

    def __init__(self, header: _Header) -> None:
        self._unpacker = zlib.decompressobj()
        self._passes = list(header.passes())
        self._row_bytes, self._left_bytes = 0, 0
        self._in_row = 0
        self._unpacked = 0
        self.gave_up = sum(row * rows for row, rows in self._passes) > MOST_UNPACKED_BYTES
        self._next_pass()

    def take(self, piece: bytes, place: int) -> None:
        if self.gave_up:
            return
        data = piece
        while data or self._unpacker.unconsumed_tail:
            try:
                rows = self._unpacker.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                raise DamagedFile(f"its pixels are damaged ({error})", place) from error
            self._look(rows, place)
            if self._unpacker.eof:
                return
            data = self._unpacker.unconsumed_tail
            if not rows and not data:
                return

    def finish(self, place: int) -> None:
        if not self.gave_up and (self._left_bytes or self._passes or not self._unpacker.eof):
            raise DamagedFile("it has fewer pixels than its header states", place)

    def _look(self, rows: bytes, place: int) -> None:
        at = 0
        while at < len(rows) and self._left_bytes:
            part = rows[at : at + self._left_bytes]
            filters = part[-self._in_row % self._row_bytes :: self._row_bytes]
            if filters and max(filters) > 4:
                raise DamagedFile("its pixels use a filter that does not exist", place)
            self._in_row = (self._in_row + len(part)) % self._row_bytes
            self._left_bytes -= len(part)
            at += len(part)
            if not self._left_bytes:
                self._next_pass()

    def _next_pass(self) -> None:
        if self._passes:
            self._row_bytes, rows = self._passes.pop(0)
            self._left_bytes, self._in_row = self._row_bytes * rows, 0
