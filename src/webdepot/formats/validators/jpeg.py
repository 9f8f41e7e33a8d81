"""JPEG (ITU-T T.81, https://www.w3.org/Graphics/JPEG/itu-t81.pdf): marker segments to the end of the image.

Decoders silently correct what they can, so tables, frame header and scans are checked here; `image` decodes
the pixels.
"""

import re
import struct
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validation_result import DamagedFile, Property
from webdepot.model import Finding

MOST_BYTES = 48 << 20
_MARKER = re.compile(rb"\xff++([\x01-\xfe])")
_MARKER_IN_SCAN = re.compile(rb"\xff([\x01-\xfe])")
_FRAMES = {
    0xC0: "baseline",
    0xC1: "extended",
    0xC2: "progressive",
    0xC3: "lossless",
    0xC9: "arithmetic",
    0xCA: "arithmetic progressive",
    0xCB: "arithmetic lossless",
    0xC5: "hierarchical",
    0xC6: "hierarchical",
    0xC7: "hierarchical",
}
_COLOURS = {1: "grey", 3: "YCbCr", 4: "CMYK"}


def structure(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    """Findings about the segments."""
    stream.seek(0)
    data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        return [finding("too-large", detail=f"more than {MOST_BYTES} bytes")]
    try:
        end = _Walk(data, properties).to_the_end()
    except DamagedFile as error:
        return [finding("image-damaged", place=f"byte {error.place}", detail=error)]
    except EOFError:
        return [finding("image-cut-off", place=f"byte {len(data)}")]
    rest = len(data) - end
    return [finding("trailing-bytes", place=f"byte {end}", detail=rest)] if rest else []


class _Walk:
    """One pass over the segments of an image."""

    def __init__(self, data: bytes, properties: dict[str, Property]) -> None:
        self._data = data
        self._properties = properties
        self._quantisers: set[int] = set()
        self._components: dict[int, int] = {}
        self._frame = 0
        self._has_huffman = False
        self._restart = 0
        self._scans = 0

    def to_the_end(self) -> int:
        """Where the image ends."""
        data, at = self._data, 2
        if data[:2] != b"\xff\xd8":
            raise DamagedFile("it does not begin like a JPEG", 0)
        while True:
            match = _MARKER.match(data, at)
            if not match:
                if at >= len(data) - 1:
                    raise EOFError
                raise DamagedFile("a segment is missing its marker", at)
            place, marker, at = at, match[1][0], match.end()
            if marker == 0xD9:
                if not self._scans:
                    raise DamagedFile("it has no pixels", place)
                return at
            if marker == 0x01 or 0xD0 <= marker <= 0xD7:
                raise DamagedFile(f"marker {marker:02X} is outside the pixels", place)
            length = int.from_bytes(data[at : at + 2], "big")
            if length < 2:
                raise (
                    EOFError
                    if at + 2 > len(data)
                    else DamagedFile(f"segment {marker:02X} has length {length}", place)
                )
            if at + length > len(data):
                raise EOFError
            self._take(marker, data[at + 2 : at + length], place)
            at += length
            if marker == 0xDA:
                at = self._skip_pixels(at)

    def _take(self, marker: int, body: bytes, place: int) -> None:
        if marker == 0xDB:
            self._quantisation(body, place)
        elif marker == 0xC4:
            self._huffman(body, place)
        elif marker in _FRAMES:
            self._frame_header(marker, body, place)
        elif marker == 0xDA:
            self._scan_header(body, place)
        elif marker == 0xDD:
            if len(body) != 2:
                raise DamagedFile("its restart interval has the wrong length", place)
            self._restart = int.from_bytes(body, "big")

    def _quantisation(self, body: bytes, place: int) -> None:
        at = 0
        while at < len(body):
            precision, table = body[at] >> 4, body[at] & 15
            at += 65 if not precision else 129
            if precision > 1 or table > 3 or at > len(body):
                raise DamagedFile("a quantisation table is damaged", place)
            self._quantisers.add(table)

    def _huffman(self, body: bytes, place: int) -> None:
        at = 0
        while at < len(body):
            counts = body[at + 1 : at + 17]
            if (
                body[at] >> 4 > 1
                or body[at] & 15 > 3
                or len(counts) < 16
                or at + 17 + sum(counts) > len(body)
                or sum(counts) > 256
            ):
                raise DamagedFile("a Huffman table is damaged", place)
            at += 17 + sum(counts)
        self._has_huffman = True

    def _frame_header(self, marker: int, body: bytes, place: int) -> None:
        if self._frame:
            raise DamagedFile("it has two frame headers", place)
        if len(body) < 6 or len(body) != 6 + 3 * body[5]:
            raise DamagedFile("its frame header has the wrong length", place)
        depth, height, width, count = struct.unpack(">BHHB", body[:6])
        self._properties |= {
            "width": width,
            "height": height,
            "bit_depth": depth,
            "colour": _COLOURS.get(count, f"{count} components"),
            "coding": _FRAMES[marker],
        }
        if not width or not height or not count:
            raise DamagedFile(f"its size is {width} × {height}", place)
        self._frame = marker
        self._components = {body[6 + 3 * each]: body[8 + 3 * each] for each in range(count)}
        if any(
            not 1 <= body[7 + 3 * each] >> 4 <= 4 or not 1 <= body[7 + 3 * each] & 15 <= 4
            for each in range(count)
        ):
            raise DamagedFile("its sampling factors are not valid", place)

    def _scan_header(self, body: bytes, place: int) -> None:
        if not self._frame:
            raise DamagedFile("its pixels come before its frame header", place)
        if not body or len(body) != 4 + 2 * body[0] or not body[0]:
            raise DamagedFile("a scan header has the wrong length", place)
        used = [body[1 + 2 * each] for each in range(body[0])]
        if any(component not in self._components for component in used):
            raise DamagedFile("a scan names a component that does not exist", place)
        if any(
            self._components[component] not in self._quantisers for component in used
        ) and self._frame not in (0xC3, 0xCB):
            raise DamagedFile("a quantisation table is missing", place)
        if not self._has_huffman and self._frame < 0xC9:
            raise DamagedFile("it has no Huffman table", place)
        self._scans += 1

    def _skip_pixels(self, at: int) -> int:
        """Where the pixels of a scan end; restart markers must be in order."""
        expected = 0
        for match in _MARKER_IN_SCAN.finditer(self._data, at):
            marker = match[1][0]
            if not 0xD0 <= marker <= 0xD7:
                return match.start()
            if not self._restart:
                raise DamagedFile("its pixels have a restart marker, but no restart interval", match.start())
            if marker != 0xD0 + expected:
                raise DamagedFile("its restart markers are not in order", match.start())
            expected = (expected + 1) % 8
        raise EOFError
