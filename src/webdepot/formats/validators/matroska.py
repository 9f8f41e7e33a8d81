"""WebM and Matroska (RFC 8794, RFC 9559): nested elements, their lengths, tracks and clusters."""

import struct
from typing import BinaryIO

from webdepot.formats.validation_result import CheckResult, DamagedFile, Property
from webdepot.formats.validators.structure import check_structure
from webdepot.model import Finding

MOST_ELEMENTS = 50_000
_HEADER, _SEGMENT, _INFO, _TRACKS, _TRACK, _CLUSTER = (
    0x1A45DFA3,
    0x18538067,
    0x1549A966,
    0x1654AE6B,
    0xAE,
    0x1F43B675,
)
_DOCTYPE, _SCALE, _DURATION, _CODEC, _VIDEO, _WIDTH, _HEIGHT = (
    0x4282,
    0x2AD7B1,
    0x4489,
    0x86,
    0xE0,
    0xB0,
    0xBA,
)
_INSIDE = frozenset((_HEADER, _SEGMENT, _INFO, _TRACKS, _TRACK, _VIDEO))


def check(stream: BinaryIO) -> CheckResult:
    return check_structure(stream, _read, code="film-damaged", part="an element")


def _read(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    _Reader(stream, properties).read()
    return []


class _Reader:
    def __init__(self, stream: BinaryIO, properties: dict[str, Property]) -> None:
        self._stream = stream
        self._size_bytes = stream.seek(0, 2)
        self._properties = properties
        self._seen: set[int] = set()
        self._codecs: list[str] = []
        self._scale = 1_000_000
        self._count = 0

    def read(self) -> None:
        self._walk(0, self._size_bytes)
        for element, name in (
            (_HEADER, "header"),
            (_SEGMENT, "segment"),
            (_TRACKS, "tracks"),
            (_CLUSTER, "sound or pictures"),
        ):
            if element not in self._seen:
                raise DamagedFile(f"it has no {name}", self._size_bytes)
        self._properties["codecs"] = ", ".join(self._codecs)

    def _walk(self, at: int, end: int) -> None:
        while at < end:
            self._stream.seek(at)
            name = self._number(keeps_mark=True)
            length, start = self._number(keeps_mark=False), self._stream.tell()
            self._count += 1
            if self._count > MOST_ELEMENTS:
                return
            stop = end if length < 0 else start + length
            if stop > end:
                raise DamagedFile(f"element {name:X} is longer than the element that contains it", at)
            if not self._seen and name != _HEADER:
                raise DamagedFile("it does not begin with its header", at)
            self._seen.add(name)
            if name in _INSIDE:
                self._walk(start, stop)
            elif length < 0:
                return  # a live stream: a cluster without a length ends where the next begins
            else:
                self._look(name, min(length, 4096))
            at = stop

    def _look(self, name: int, length: int) -> None:
        if name not in (_DOCTYPE, _SCALE, _DURATION, _CODEC, _WIDTH, _HEIGHT):
            return
        data = self._stream.read(length)
        if name == _DOCTYPE:
            self._properties["document_type"] = data.strip(b"\0").decode("latin-1")
        elif name == _CODEC:
            self._codecs.append(data.strip(b"\0").decode("latin-1"))
        elif name == _SCALE:
            self._scale = int.from_bytes(data, "big") or self._scale
        elif name == _DURATION and length in (4, 8):
            self._properties["duration_s"] = round(
                struct.unpack(">f" if length == 4 else ">d", data)[0] * self._scale / 1e9, 3
            )
        else:
            self._properties["width" if name == _WIDTH else "height"] = int.from_bytes(data, "big")

    def _number(self, *, keeps_mark: bool) -> int:
        """The next number of variable length; -1 for the unknown length."""
        first = self._stream.read(1)
        if not first:
            raise EOFError
        length = 9 - first[0].bit_length()
        if length > 8 or (keeps_mark and length > 4):
            raise DamagedFile("the name or length of an element is damaged", self._stream.tell() - 1)
        rest = self._stream.read(length - 1)
        if len(rest) < length - 1:
            raise EOFError
        value = int.from_bytes(first + rest, "big")
        if keeps_mark:
            return value
        value &= (1 << 7 * length) - 1
        return -1 if value == (1 << 7 * length) - 1 else value
