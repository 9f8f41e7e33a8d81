"""Records that follow each other without gzip borders: an uncompressed file, or the content of one gzip
member.

1. Skip line ends. A record header must follow; otherwise search for the next one.
2. The block must end where its length says: line ends follow it, then a record or the end of the data.
   Otherwise the length is wrong or the file was cut: skip the record and search for the next one after its
   header.
3. Hold a block of up to `IN_MEMORY_BYTES` in memory; read a larger one from the file when it is used.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import BinaryIO

from webdepot.container.damage import BAD_HEADER, BAD_LENGTH, Reporter
from webdepot.container.grammar import LONGEST_HEADER_BYTES, Grammar, after_line_ends
from webdepot.container.members import IN_MEMORY_BYTES
from webdepot.container.record import Record, RecordHeader
from webdepot.container.streams import limited, skipped, stream_of
from webdepot.errors import CorruptData
from webdepot.model import Location

_READ_BYTES = 1 << 20
_HEADER_BYTES = 1 << 13
_BETWEEN_BYTES = 1 << 12
"""Longest run of line ends between two records when a length is checked."""
_SHORTEST_START_BYTES = 20
# A record start may be cut by the end of the window; this much is kept and searched again.
_OVERLAP_BYTES = 1 << 17

PiecesFrom = Callable[[int], Iterator[bytes]]


def iter_flat(
    window: "ByteWindow",
    grammar: Grammar,
    reporter: Reporter,
    located: Callable[[int, int], Location],
    *,
    place: Callable[[int], int],
) -> Iterator[Record]:
    """Records of the window in their order. `located` turns window positions into a location, `place` turns
    one into an offset for findings.
    """
    at: int | None = 0
    garbage_at: int | None = None
    while at is not None:
        at = window.after_line_ends(at)
        window.drop(at)
        if not window.need(at + 1):
            break
        header, header_end = _header_at(window, grammar, at)
        if header is None:
            garbage_at = at if garbage_at is None else garbage_at
            at = window.find(grammar.search, at + 1)
            continue
        if garbage_at is not None:
            reporter.garbage(place(garbage_at), place(at))
            garbage_at = None
        problem = _problem_of(window, grammar, header, header_end)
        if problem is not None:
            next_at = window.find(grammar.search, header_end)
            reporter.skipped(BAD_LENGTH, place(at), problem, None if next_at is None else place(next_at))
            at = next_at
            continue
        block_end = header_end + header.length
        if header.problem:
            reporter.skipped(BAD_HEADER, place(at), header.problem, place(block_end))
        else:
            end = (
                window.after_line_ends(block_end)
                if header.length <= IN_MEMORY_BYTES
                else block_end + len(grammar.terminator)
            )
            yield _record(window, header, header_end, located(at, end - at))
        window.drop(block_end)
        if window.end < block_end:
            reporter.skipped(BAD_LENGTH, place(at), "the data ends inside it", None)
        at = block_end
    if garbage_at is not None:
        reporter.garbage(place(garbage_at), None)
    if window.broken:
        reporter.skipped(BAD_LENGTH, place(window.end), window.broken, None)


def _header_at(window: "ByteWindow", grammar: Grammar, at: int) -> tuple[RecordHeader | None, int]:
    """The header that begins there and the position after it; None if there is no header."""
    wanted = _HEADER_BYTES
    while True:
        is_more = window.need(at + wanted)
        begin = at - window.start
        if not grammar.start.match(window.data, begin):
            return None, at
        end = grammar.header_end(window.data, begin, begin + wanted)
        if end >= 0:
            return grammar.parse(window.data[begin:end]), end + window.start
        # If another record begins first, this header has no end. Without this check many such headers would
        # take quadratic time.
        if (
            not is_more
            or wanted >= LONGEST_HEADER_BYTES
            or grammar.search.search(window.data, begin + 1, begin + wanted)
        ):
            return None, at
        wanted *= 4


def _problem_of(window: "ByteWindow", grammar: Grammar, header: RecordHeader, header_end: int) -> str | None:
    """Why the record cannot end where its header says."""
    if header.length < 0:
        return header.problem
    end = header_end + header.length
    if header.length <= IN_MEMORY_BYTES:
        if not window.need(end):
            return "the file ends inside it, or its length is wrong"
        window.need(end + _BETWEEN_BYTES)
        following = window.data[end - window.start : end - window.start + _BETWEEN_BYTES]
    elif window.can_peek:
        following = window.peek(end - 1, 1 + _BETWEEN_BYTES)
        if not following:
            return "the file ends inside it, or its length is wrong"
        following = following[1:]
    else:
        return "its length is wrong" if window.size_bytes is not None and end > window.size_bytes else None
    rest = after_line_ends(following)
    is_right = rest is not None and (
        _is_cut_start(rest)
        or grammar.start.match(rest)
        # A WARC record with its two empty lines is complete, whatever follows.
        or (len(grammar.terminator) > 1 and following.startswith(grammar.terminator))
    )
    return None if is_right else "its length is wrong: no record begins after it"


def _is_cut_start(following: bytes) -> bool:
    """Whether the data ends here, or too soon to recognise the beginning of a next record."""
    return len(following) < _SHORTEST_START_BYTES and b"\n" not in following


def _record(window: "ByteWindow", header: RecordHeader, header_end: int, location: Location) -> Record:
    end = header_end + header.length
    is_held = header.length <= IN_MEMORY_BYTES
    return Record(
        header,
        location,
        window.data if is_held else None,
        header_end - window.start if is_held else 0,
        None if is_held else partial(window.open, header_end, end),
    )


def file_pieces(stream: BinaryIO, offset: int) -> Iterator[bytes]:
    """The bytes of a seekable stream from an offset on; its position may be moved between two pieces."""
    while True:
        stream.seek(offset)
        piece = stream.read(_READ_BYTES)
        if not piece:
            return
        yield piece
        offset += len(piece)


class ByteWindow:
    """The part of a long sequence of bytes that is in memory. Positions count from the beginning of the
    sequence.

    `pieces_from(position)` returns the bytes from there on; positions other than 0 are used only with
    `can_seek`. Without it, `ahead` may return a copy of the pieces that are still to come.
    """

    def __init__(
        self,
        pieces_from: PiecesFrom,
        *,
        can_seek: bool,
        size_bytes: int | None = None,
        ahead: Callable[[], Iterator[bytes]] | None = None,
    ) -> None:
        self.data = b""
        self.start = 0
        self.broken = ""
        """Why the pieces ended too soon."""
        self.can_seek = can_seek
        self.size_bytes = size_bytes
        """Of the whole sequence, if known."""
        self.can_peek = can_seek or ahead is not None
        self._ahead = ahead
        self._pieces_from = pieces_from
        self._pieces = pieces_from(0)

    @property
    def end(self) -> int:
        return self.start + len(self.data)

    def need(self, end: int) -> bool:
        """Read until the window covers the bytes up to that position. Returns whether they exist."""
        if self.end >= end:
            return True
        parts, size = [self.data], len(self.data)
        while self.start + size < end and (piece := self._next_piece()):
            parts.append(piece)
            size += len(piece)
        self.data = b"".join(parts)
        return self.end >= end

    def drop(self, before: int) -> None:
        """Release the bytes before that position."""
        if before > self.end and self.can_seek:
            self.data, self.start, self._pieces = b"", before, self._pieces_from(before)
        while before > self.end and (piece := self._next_piece()):
            self.data, self.start = piece, self.end
        # Cutting copies the rest, so it is done only when it pays.
        if before - self.start > min(_READ_BYTES, len(self.data) // 2):
            self.data, self.start = self.data[before - self.start :], min(before, self.end)

    def after_line_ends(self, at: int) -> int:
        """The position of the first byte from there on that is not a line end."""
        while self.need(at + 1):
            rest = self.data[at - self.start : at - self.start + _BETWEEN_BYTES]
            stripped = rest.lstrip(b"\r\n")
            at += len(rest) - len(stripped)
            if stripped:
                break
        return at

    def find(self, pattern: re.Pattern[bytes], at: int) -> int | None:
        """The next position of the pattern's group `record`; bytes before it are released."""
        while True:
            self.need(at + _READ_BYTES)
            # One byte earlier, for the line end that the pattern requires before a record.
            match = pattern.search(self.data, max(0, at - 1 - self.start))
            if match and self.start + match.start("record") < at:
                match = pattern.search(self.data, match.end() - 1)
            if match:
                # A match at the very end may be longer, or not a match, once more is read.
                if match.end() == len(self.data) and self.need(self.end + 1):
                    continue
                return self.start + match.start("record")
            if not self.need(self.end + 1):
                return None
            at = max(at, self.end - _OVERLAP_BYTES)
            self.drop(at - 1)

    def peek(self, at: int, size_bytes: int) -> bytes:
        """Bytes ahead, without moving the window, up to the first damaged one; only with `can_peek`."""
        if self._ahead is None:
            return b"".join(limited(self._pieces_from(at), size_bytes))
        following = skipped(chain((self.data,), self._ahead()), at - self.start)
        peeked: list[bytes] = []
        with suppress(CorruptData):
            peeked.extend(limited(following, size_bytes))
        return b"".join(peeked)

    def open(self, start: int, end: int) -> BinaryIO:
        """The bytes between two positions as a stream; without `can_seek` the window moves with it."""
        if self.can_seek:
            return stream_of(limited(self._pieces_from(start), end - start))
        return stream_of(self._taken(start, end))

    def _taken(self, at: int, end: int) -> Iterator[bytes]:
        while at < end and self.need(at + 1):
            part = self.data[at - self.start : end - self.start]
            yield part
            at += len(part)
            self.drop(at)

    def _next_piece(self) -> bytes:
        try:
            return next(self._pieces, b"")
        except CorruptData as error:
            self.broken = str(error).rstrip(".")
            return b""
