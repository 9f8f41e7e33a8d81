"""Streams made of pieces: a generator of byte strings that can be read like a file.

Decoders are simplest and fastest as generators; readers of a record need a file. One piece is in memory.
"""

import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

PIECE_BYTES = 1 << 16


def stream_of(pieces: Iterable[bytes]) -> BinaryIO:
    """A stream of the pieces. `read(n)` returns n bytes unless the end comes first. Not seekable."""
    return cast(BinaryIO, PieceStream(pieces))


def iter_pieces(stream: BinaryIO, size_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
    """The rest of the stream, in pieces of at most that size."""
    while piece := stream.read(size_bytes):
        yield piece


def limited(pieces: Iterable[bytes], limit_bytes: int) -> Iterator[bytes]:
    """The first `limit_bytes` bytes of the pieces; no piece after the limit is taken."""
    left = limit_bytes
    if left <= 0:
        return
    for piece in pieces:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def skipped(pieces: Iterable[bytes], count_bytes: int) -> Iterator[bytes]:
    """The pieces without their first bytes."""
    for piece in pieces:
        if count_bytes < len(piece):
            yield piece[count_bytes:]
        count_bytes = max(0, count_bytes - len(piece))


class PieceStream(io.RawIOBase):
    """Reads an iterator of pieces; empty pieces are skipped."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self._pieces = iter(pieces)
        self._piece = b""
        self._at = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return self.readall()
        taken: list[bytes] = []
        while size > 0 and self._fill():
            part = self._piece[self._at : self._at + size]
            self._at += len(part)
            size -= len(part)
            taken.append(part)
        return taken[0] if len(taken) == 1 else b"".join(taken)

    def readall(self) -> bytes:
        first = self._piece[self._at :]
        self._piece, self._at = b"", 0
        return b"".join((first, *self._pieces))

    def readline(self, size: int | None = -1, /) -> bytes:
        limit = -1 if size is None else size
        taken: list[bytes] = []
        while limit != 0 and self._fill():
            end = self._piece.find(b"\n", self._at) + 1
            part = self._piece[self._at : end or None]
            if limit > 0:
                part = part[:limit]
                limit -= len(part)
            self._at += len(part)
            taken.append(part)
            if part.endswith(b"\n"):
                break
        return b"".join(taken)

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _fill(self) -> bool:
        """Take the next piece that is not empty; returns False at the end."""
        while self._at >= len(self._piece):
            piece = next(self._pieces, None)
            if piece is None:
                self._piece, self._at = b"", 0
                return False
            self._piece, self._at = piece, 0
        return True
