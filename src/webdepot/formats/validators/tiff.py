"""TIFF 6.0 (https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf) and BigTIFF: directories, their
entries, and the offsets of the pixels. Decoders follow the chain of directories without checks, some of them
into endless loops.
"""

from dataclasses import dataclass
from typing import BinaryIO, Literal

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import DamagedFile, Property
from webdepot.model import Finding

MOST_DIRECTORIES = 1000
MOST_VALUES = 1_000_000
_SIZES = {
    1: 1,
    2: 1,
    3: 2,
    4: 4,
    5: 8,
    6: 1,
    7: 1,
    8: 2,
    9: 4,
    10: 8,
    11: 4,
    12: 8,
    13: 4,
    16: 8,
    17: 8,
    18: 8,
}
_WIDTH, _LENGTH, _BITS, _COMPRESSION, _PHOTOMETRIC = 256, 257, 258, 259, 262
_STRIPS, _STRIP_BYTES, _ROWS, _TILES, _TILE_BYTES, _MAP = 273, 279, 278, 324, 325, 320
_COLOURS = {0: "grey", 1: "grey", 2: "RGB", 3: "palette", 4: "mask", 5: "CMYK", 6: "YCbCr", 8: "Lab"}
_CODINGS = {
    1: "none",
    2: "CCITT",
    3: "CCITT 3",
    4: "CCITT 4",
    5: "LZW",
    6: "old JPEG",
    7: "JPEG",
    8: "deflate",
    32773: "PackBits",
    32946: "deflate",
    34712: "JPEG 2000",
    50000: "Zstandard",
    50001: "WebP",
    34925: "LZMA",
}


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: int
    count: int
    value_at: int


def structure(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    try:
        _Reader(stream).walk(properties)
    except DamagedFile as error:
        return [finding("image-damaged", place=f"byte {error.place}", detail=error)]
    return []


class _Reader:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._size_bytes = stream.seek(0, 2)
        stream.seek(0)
        head = stream.read(8)
        if head[:2] not in (b"II", b"MM") or len(head) < 8:
            raise DamagedFile("it does not begin like a TIFF", 0)
        self._order: Literal["little", "big"] = "little" if head[:2] == b"II" else "big"
        version = int.from_bytes(head[2:4], self._order)
        if version not in (42, 43):
            raise DamagedFile(f"version {version} does not exist", 2)
        self._is_big = version == 43
        self._word = 8 if self._is_big else 4

    def walk(self, properties: dict[str, Property]) -> None:
        place = self._number(8 if self._is_big else 4, self._word)
        seen: set[int] = set()
        if not place:
            raise DamagedFile("it has no directory", 4)
        while place:
            if place in seen:
                raise DamagedFile("its directories form a loop", place)
            if len(seen) >= MOST_DIRECTORIES:
                raise DamagedFile("it has more directories than can be read", place)
            if place % 2 and not seen:
                raise DamagedFile("its first directory does not begin at an even byte", place)
            seen.add(place)
            place = self._directory(place, properties if len(seen) == 1 else {})
        properties["images"] = len(seen)

    def _directory(self, place: int, properties: dict[str, Property]) -> int:
        """Check the image of a directory; return the offset of the next directory."""
        head, size = (8, 20) if self._is_big else (2, 12)
        count = self._number(place, head)
        if not count:
            raise DamagedFile("a directory is empty", place)
        if place + head + count * size + self._word > self._size_bytes:
            raise DamagedFile("a directory ends after the end of the file", place)
        entries: dict[int, _Entry] = {}
        last = -1
        for number in range(count):
            at = place + head + number * size
            tag, entry = self._entry(at)
            if tag < last:
                raise DamagedFile("the entries of a directory are not in order", at)
            last = tag
            entries[tag] = entry
        self._image(entries, place, properties)
        return self._number(place + head + count * size, self._word)

    def _entry(self, at: int) -> tuple[int, _Entry]:
        tag, kind = self._number(at, 2), self._number(at + 2, 2)
        count = self._number(at + 4, self._word)
        value_at = at + 4 + self._word
        if kind not in _SIZES:
            # Readers ignore fields of unknown types (TIFF 6.0, section 7), but an image needs these.
            if tag in (_WIDTH, _LENGTH, _STRIPS, _STRIP_BYTES):
                raise DamagedFile(f"entry {tag} has type {kind}, which does not exist", at)
            return tag, _Entry(kind, 0, value_at)
        if count * _SIZES[kind] > self._word:
            value_at = self._number(value_at, self._word)
            if value_at + count * _SIZES[kind] > self._size_bytes:
                raise DamagedFile(f"the value of entry {tag} ends after the end of the file", at)
        return tag, _Entry(kind, count, value_at)

    def _image(self, entries: dict[int, _Entry], place: int, properties: dict[str, Property]) -> None:
        for tag, name in ((_WIDTH, "width"), (_LENGTH, "height")):
            if tag not in entries:
                raise DamagedFile(f"an image has no {name}", place)
        width, height = self._first(entries, _WIDTH), self._first(entries, _LENGTH)
        if not width or not height:
            raise DamagedFile(f"an image is {width} × {height}", place)
        photometric = self._first(entries, _PHOTOMETRIC, -1)
        if photometric < 0:
            raise DamagedFile("an image does not state its colour space", place)
        if photometric == 3 and _MAP not in entries:
            raise DamagedFile("an image has no palette", place)
        properties |= {
            "width": width,
            "height": height,
            "colour": _COLOURS.get(photometric, str(photometric)),
        }
        coding = self._first(entries, _COMPRESSION, 1)
        properties |= {
            "bit_depth": self._first(entries, _BITS, 1),
            "coding": _CODINGS.get(coding, str(coding)),
        }
        self._pixels(entries, place, coding)

    def _pixels(self, entries: dict[int, _Entry], place: int, coding: int) -> None:
        places, sizes = (_TILES, _TILE_BYTES) if _TILES in entries else (_STRIPS, _STRIP_BYTES)
        if places not in entries:
            raise DamagedFile("an image has no pixels", place)
        if sizes not in entries:
            if coding == 1 and entries[places].count == 1:
                return  # old writers omit the length of a single strip
            raise DamagedFile("an image does not state the length of its pixel data", place)
        if entries[places].count != entries[sizes].count:
            raise DamagedFile("an image has different numbers of pixel offsets and pixel lengths", place)
        starts, lengths = self._values(entries[places]), self._values(entries[sizes])
        if any(start + length > self._size_bytes for start, length in zip(starts, lengths)):
            raise DamagedFile("its pixels end after the end of the file", place)

    def _first(self, entries: dict[int, _Entry], tag: int, default: int = 0) -> int:
        entry = entries.get(tag)
        return self._number(entry.value_at, _SIZES[entry.kind]) if entry and entry.count else default

    def _values(self, entry: _Entry) -> list[int]:
        size, count = _SIZES.get(entry.kind, 1), min(entry.count, MOST_VALUES)
        self._stream.seek(entry.value_at)
        data = self._stream.read(size * count)
        return [int.from_bytes(data[at : at + size], self._order) for at in range(0, len(data), size)]

    def _number(self, at: int, size: int) -> int:
        self._stream.seek(at)
        data = self._stream.read(size)
        if len(data) < size:
            raise DamagedFile("it ends in the middle of a directory", at)
        return int.from_bytes(data, self._order)
