"""MP4 and QuickTime (ISO/IEC 14496-12): boxes in boxes, their lengths, the movie's header, and whether its
samples lie in the file.

Only heads of boxes are read, so that a film of many gigabytes takes no longer than a small one.
"""

import struct
from collections.abc import Iterator
from typing import BinaryIO

from webdepot.formats.texts import finding
from webdepot.formats.validity import Checked, Property, Wrong, judged

MOST_BOXES = 50_000
MOST_DEPTH = 12
_INSIDE = frozenset(
    (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts", b"dinf", b"mvex", b"moof", b"traf")
)
_KINDS = {b"vide": "video", b"soun": "audio", b"text": "text", b"sbtl": "text", b"subt": "text"}


def check(stream: BinaryIO) -> Checked:
    reader = _Reader(stream)
    try:
        reader.read()
    except Wrong as error:
        return judged([finding("film-damaged", place=f"byte {error.place}", detail=error)], reader.properties)
    except (struct.error, EOFError):
        return judged(
            [finding("film-damaged", place=f"byte {stream.tell()}", detail="it ends in the middle of a box")],
            reader.properties,
        )
    return judged([], reader.properties)


class _Reader:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._size_bytes = stream.seek(0, 2)
        self.properties: dict[str, Property] = {}
        self._seen: dict[bytes, int] = {}
        self._codecs: list[str] = []
        self._kind = b""
        self._boxes = 0

    def read(self) -> None:
        self._walk(0, self._size_bytes, 0)
        if b"moov" not in self._seen and b"moof" not in self._seen:
            raise Wrong("it has no description of the film", self._size_bytes)
        if b"moov" in self._seen and b"mvhd" not in self._seen:
            raise Wrong("its description has no header", self._seen[b"moov"])
        if b"moov" in self._seen and b"trak" not in self._seen:
            raise Wrong("it has no track", self._seen[b"moov"])
        if b"mdat" not in self._seen and b"trak" in self._seen and b"stco" in self._seen:
            raise Wrong("it has no sound or pictures", self._size_bytes)
        self.properties["codecs"] = ", ".join(dict.fromkeys(self._codecs))

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
                raise Wrong(f"box {kind.decode('latin-1')!r} has length {length}", at)
            if at + length > end:
                raise Wrong(f"box {kind.decode('latin-1')!r} is longer than what it stands in", at)
            if (
                not depth
                and not self._seen
                and kind not in (b"ftyp", b"styp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
            ):
                raise Wrong("it does not begin like a film", at)
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
            self.properties["brand"] = self._stream.read(4).decode("latin-1").strip()
        elif kind == b"mvhd":
            self._movie_header(at)
        elif kind == b"hdlr":
            self._kind = self._stream.read(12)[8:12]
        elif kind == b"stsd":
            self._codec(end)
        elif kind in (b"stco", b"co64"):
            self._places(at, end, 4 if kind == b"stco" else 8)

    def _movie_header(self, at: int) -> None:
        version = self._stream.read(4)[0]
        if version == 1:
            _, _, scale, duration = struct.unpack(">QQIQ", self._stream.read(28))
        else:
            _, _, scale, duration = struct.unpack(">IIII", self._stream.read(16))
        if not scale:
            raise Wrong("its header has no scale of time", at)
        self.properties["duration_s"] = round(duration / scale, 3)

    def _codec(self, end: int) -> None:
        head = self._stream.read(16)
        if len(head) < 16 or self._stream.tell() > end:
            return
        self._codecs.append(f"{_KINDS.get(self._kind, 'data')} {head[12:16].decode('latin-1').strip()}")
        if self._kind == b"vide":
            body = self._stream.read(28)
            width, height = struct.unpack(">HH", body[24:28])
            self.properties |= {"width": width, "height": height}

    def _places(self, at: int, end: int, size: int) -> None:
        """Every chunk of samples begins in the file."""
        self._stream.read(4)
        (count,) = struct.unpack(">I", self._stream.read(4))
        if at + 8 + count * size > end:
            raise Wrong("its table of places is longer than its box", at)
        for place in self._numbers(count, size):
            if place >= self._size_bytes:
                raise Wrong("its samples lie behind the end of the file", at)

    def _numbers(self, count: int, size: int) -> Iterator[int]:
        while count > 0:
            data = self._stream.read(min(count, 8192) * size)
            if len(data) < size:
                raise EOFError
            yield from struct.unpack(
                f">{len(data) // size}{'I' if size == 4 else 'Q'}", data[: len(data) // size * size]
            )
            count -= 8192
