"""MP4 and QuickTime (ISO/IEC 14496-12): nested boxes, their lengths, the movie header, and whether its
samples are in the file.

Only the headers of boxes are read, so that a video of many gigabytes takes no longer than a small one.
"""

import struct
from collections.abc import Iterator
from typing import BinaryIO

from webdepot.formats.validation_result import CheckResult, DamagedFile, Property
from webdepot.formats.validators.structure import check_structure
from webdepot.model import Finding

MOST_BOXES = 50_000
MOST_DEPTH = 12
_INSIDE = frozenset(
    (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"dinf", b"mvex", b"moof", b"traf")
)
_KINDS = {b"vide": "video", b"soun": "audio", b"text": "text", b"sbtl": "text", b"subt": "text"}


def check(stream: BinaryIO) -> CheckResult:
    return check_structure(stream, _read, code="film-damaged", part="a box")


def _read(stream: BinaryIO, properties: dict[str, Property]) -> list[Finding]:
    _Reader(stream, properties).read()
    return []


class _Reader:
    def __init__(self, stream: BinaryIO, properties: dict[str, Property]) -> None:
        self._stream = stream
        self._size_bytes = stream.seek(0, 2)
        self._properties = properties
        self._seen: dict[bytes, int] = {}
        self._codecs: list[str] = []
        self._kind = b""
        self._boxes = 0

    def read(self) -> None:
        self._walk(0, self._size_bytes, 0)
        if b"moov" not in self._seen and b"moof" not in self._seen:
            raise DamagedFile("it has no movie box", self._size_bytes)
        if b"moov" in self._seen and b"mvhd" not in self._seen:
            raise DamagedFile("its movie box has no header", self._seen[b"moov"])
        if b"moov" in self._seen and b"trak" not in self._seen:
            raise DamagedFile("it has no track", self._seen[b"moov"])
        if b"mdat" not in self._seen and b"trak" in self._seen and b"stco" in self._seen:
            raise DamagedFile("it has no sound or pictures", self._size_bytes)
        self._properties["codecs"] = ", ".join(dict.fromkeys(self._codecs))

    def _walk(self, at: int, end: int, depth: int) -> None:
        while at < end:
            if end - at < 8:
                if depth or self._zeros(at, end):
                    return  # QuickTime ends some lists with four zero bytes
                raise EOFError
            self._stream.seek(at)
            length, kind = struct.unpack(">I4s", self._stream.read(8))
            start = at + 8
            if length == 1:
                (length,) = struct.unpack(">Q", self._stream.read(8))
                start += 8
            elif length == 0:
                length = end - at
            self._boxes += 1
            if length < start - at or self._boxes > MOST_BOXES or depth > MOST_DEPTH:
                raise DamagedFile(f"box {kind.decode('latin-1')!r} has length {length}", at)
            if at + length > end:
                raise DamagedFile(
                    f"box {kind.decode('latin-1')!r} is longer than the box that contains it", at
                )
            if (
                not depth
                and not self._seen
                and kind not in (b"ftyp", b"styp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
            ):
                raise DamagedFile("it does not begin like MP4 or QuickTime", at)
            self._seen.setdefault(kind, at)
            if kind in _INSIDE:
                self._walk(start, at + length, depth + 1)
            else:
                self._look(kind, start, at + length)
            at += length

    def _zeros(self, at: int, end: int) -> bool:
        self._stream.seek(at)
        return not self._stream.read(end - at).strip(b"\0")

    def _look(self, kind: bytes, at: int, end: int) -> None:
        self._stream.seek(at)
        if kind == b"ftyp":
            self._properties["brand"] = self._stream.read(4).decode("latin-1").strip()
        elif kind == b"mvhd":
            self._movie_header(at)
        elif kind == b"hdlr":
            self._kind = self._stream.read(12)[8:12]
        elif kind == b"stsd":
            self._codec(end)
        elif kind in (b"stco", b"co64"):
            self._chunk_offsets(at, end, 4 if kind == b"stco" else 8)

    def _movie_header(self, at: int) -> None:
        version = self._stream.read(4)[0]
        if version == 1:
            _, _, scale, duration = struct.unpack(">QQIQ", self._stream.read(28))
        else:
            _, _, scale, duration = struct.unpack(">IIII", self._stream.read(16))
        if not scale:
            raise DamagedFile("its header has no time scale", at)
        self._properties["duration_s"] = round(duration / scale, 3)

    def _codec(self, end: int) -> None:
        head = self._stream.read(16)
        if len(head) < 16 or self._stream.tell() > end:
            return
        self._codecs.append(f"{_KINDS.get(self._kind, 'data')} {head[12:16].decode('latin-1').strip()}")
        if self._kind == b"vide":
            body = self._stream.read(28)
            width, height = struct.unpack(">HH", body[24:28])
            self._properties |= {"width": width, "height": height}

    def _chunk_offsets(self, at: int, end: int, size: int) -> None:
        """Check that every chunk of samples begins in the file."""
        self._stream.read(4)
        (count,) = struct.unpack(">I", self._stream.read(4))
        if at + 8 + count * size > end:
            raise DamagedFile("its table of chunk offsets is longer than its box", at)
        for offset in self._numbers(count, size):
            if offset >= self._size_bytes:
                raise DamagedFile("its samples begin after the end of the file", at)

    def _numbers(self, count: int, size: int) -> Iterator[int]:
        while count > 0:
            data = self._stream.read(min(count, 8192) * size)
            if len(data) < size:
                raise EOFError
            yield from struct.unpack(
                f">{len(data) // size}{'I' if size == 4 else 'Q'}", data[: len(data) // size * size]
            )
            count -= 8192
