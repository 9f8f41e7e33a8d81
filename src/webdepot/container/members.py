"""Gzip members (RFC 1952): a container compressed by records is a sequence of them, one for each record.

The reader knows where each member begins and ends on disk and whether it is whole (its checksum is compared);
the writer makes one member from any number of pieces. Both use ISA-L, about three times as fast as zlib.
"""

import contextlib
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from isal import isal_zlib

from webdepot.errors import CorruptData

LEVEL = 2
"""The level of ISA-L: ten times the speed of zlib 9 for 6 % more bytes. Level 3 takes twice as long and saves
2 %.
"""
LEVEL_FOR_SMALL = 0
"""The level for requests and metadata: a third of the time, and 150 bytes more for each."""
SMALL_BYTES = 2048
IN_MEMORY_BYTES = 4 << 20
"""A member that unpacks to more is not held in memory but read in pieces."""

MAGIC = b"\x1f\x8b\x08"
_START = re.compile(rb"\x1f\x8b\x08[\x00-\x1f]")
_GZIP = 31
BLOCK_BYTES = 1 << 18
"""Read at a time; a block of this size stays in the processor's cache while its members are unpacked."""
# At the end of a member ISA-L copies the rest of the input, so the first pieces are small.
_INPUT_BYTES = 1 << 14
_TRIAL_BYTES = 512


class GzipMember(NamedTuple):
    """The unpacked content of one member, or its beginning, and where it ends."""

    data: bytes
    end: int
    """First byte after it on disk; -1 if it is too large to be held in memory, so that its end was not seen.
    """
    torn: str = ""
    """Why it cannot be unpacked to its end; empty if it can."""


def packed(data: bytes) -> bytes:
    """One member that contains the data."""
    return isal_zlib.compress(data, LEVEL if len(data) > SMALL_BYTES else LEVEL_FOR_SMALL, _GZIP)


def gzip_member(pieces: Iterable[bytes], level: int = LEVEL) -> Iterator[bytes]:
    """One member that contains the pieces, in pieces."""
    packer = isal_zlib.compressobj(level, wbits=_GZIP)
    for piece in pieces:
        if packed := packer.compress(piece):
            yield packed
    yield packer.flush()


def _used(piece: bytes | memoryview, unpacker: "isal_zlib.Decompress | zlib._Decompress") -> int:
    """How many bytes of its last input an unpacker has used. At the end of the member, those after it are
    both in `unused_data` and, if the call before had to leave input, in `unconsumed_tail`.
    """
    return len(piece) - len(unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail)


def _until_damage(unpacker: "zlib._Decompress", piece: bytes) -> bytes:
    data = bytearray()
    try:
        for at in range(len(piece)):
            data += unpacker.decompress(piece[at : at + 1])
    except zlib.error:
        return bytes(data)
    return bytes(data)


class MemberReader:
    """Reads members of a seekable stream at given offsets. Moves the stream's position.

    `block_bytes` are read at a time; fewer are enough for a single record of known length.
    """

    def __init__(self, stream: BinaryIO, block_bytes: int = BLOCK_BYTES) -> None:
        self._stream = stream
        self._block_bytes = block_bytes
        self._block = memoryview(b"")
        self._block_at = 0
        # One buffer for all blocks: a new one for each would be allocated and freed every time.
        self._buffer = (
            memoryview(bytearray(block_bytes))
            if block_bytes == BLOCK_BYTES and hasattr(stream, "readinto")
            else None
        )

    def bytes_at(self, offset: int, size_bytes: int) -> bytes:
        """Raw bytes; fewer only at the end of the stream."""
        data = bytes(self.input(offset, size_bytes))
        while len(data) < size_bytes and (more := self.input(offset + len(data), size_bytes - len(data))):
            data += more
        return data

    def is_member(self, offset: int) -> bool:
        return self.bytes_at(offset, 3) == MAGIC

    def reaches(self, end: int) -> bool:
        """Whether the stream has bytes up to that offset."""
        return end <= 0 or bool(self.bytes_at(end - 1, 1))

    def read(self, offset: int) -> GzipMember:
        """The member that begins there, complete unless it is larger than `IN_MEMORY_BYTES`."""
        unpacker = isal_zlib.decompressobj(wbits=_GZIP)
        piece = self.input(offset, _INPUT_BYTES)
        try:
            # No limit: this little input cannot become more than 17 MB, and a limit costs time.
            data = unpacker.decompress(piece)
            if unpacker.eof:  # most members
                return GzipMember(data, offset + len(piece) - len(unpacker.unused_data))
            return self._read_on(offset + len(piece), data, unpacker)
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub takes the class for an instance
            return GzipMember(b"", -1, f"its gzip data is damaged ({error})")

    def _read_on(self, at: int, data: bytes, unpacker: isal_zlib.Decompress) -> GzipMember:
        parts, size, input_bytes = [data], len(data), _INPUT_BYTES
        while size < IN_MEMORY_BYTES:
            piece = self.input(at, input_bytes)
            data = unpacker.decompress(piece, IN_MEMORY_BYTES)
            at += _used(piece, unpacker)
            parts.append(data)
            size += len(data)
            input_bytes = min(input_bytes * 2, BLOCK_BYTES // 2)
            if unpacker.eof:
                return GzipMember(b"".join(parts), at)
            if not piece and not data:
                return GzipMember(b"".join(parts), -1, "the file ends inside it")
        return GzipMember(b"".join(parts), -1)

    def iter_unpacked(self, offset: int, end: list[int] | None = None) -> Iterator[bytes]:
        """The content of the member, in pieces; CorruptData if it is damaged. Its end on disk is appended to
        `end`.
        """
        unpacker = isal_zlib.decompressobj(wbits=_GZIP)
        at = offset
        while not unpacker.eof:
            piece = self.input(at, _INPUT_BYTES)
            try:
                data = unpacker.decompress(piece, BLOCK_BYTES)
            except isal_zlib.error as error:  # type: ignore[misc]
                raise CorruptData(
                    f"The gzip data after byte {offset} is damaged: {error}.", where=f"byte {offset}"
                ) from error
            if not piece and not data:
                raise CorruptData(
                    f"The file ends inside the gzip data that begins at byte {offset}.",
                    where=f"byte {offset}",
                )
            at += _used(piece, unpacker)
            if data:
                yield data
        if end is not None:
            end.append(at)

    def salvaged(self, offset: int, size_bytes: int) -> bytes:
        """The first bytes of a member's content; fewer if it ends or is damaged before."""
        data = b""
        with contextlib.suppress(CorruptData):
            for piece in SalvagedMembers(self, offset, is_single=True):
                data += piece
                if len(data) >= size_bytes:
                    break
        return data[:size_bytes]

    def find_member(self, offset: int, starts: re.Pattern[bytes], *, until: int | None = None) -> int | None:
        """The next member from that byte on (and before `until`) whose content begins with the pattern."""
        while (until is None or offset < until) and (block := self.bytes_at(offset, BLOCK_BYTES)):
            for match in _START.finditer(block):
                if self._begins_with(offset + match.start(), starts):
                    return offset + match.start()
            if len(block) < BLOCK_BYTES:
                return None
            offset += len(block) - len(MAGIC)
        return None

    def _begins_with(self, offset: int, starts: re.Pattern[bytes]) -> bool:
        unpacker = isal_zlib.decompressobj(wbits=_GZIP)
        try:
            data = unpacker.decompress(self.bytes_at(offset, _TRIAL_BYTES), _TRIAL_BYTES)
        except isal_zlib.error:  # type: ignore[misc]
            return False
        return starts.match(data) is not None

    def input(self, offset: int, size_bytes: int) -> memoryview:
        """Raw bytes, at most that many, valid until the next call; empty only at the end of the stream."""
        at = offset - self._block_at
        if not 0 <= at < len(self._block):
            self._stream.seek(offset)
            self._block, self._block_at, at = self._read_block(), offset, 0
        return self._block[at : at + size_bytes]

    def _read_block(self) -> memoryview:
        """The next bytes of the stream. Pieces of the previous block become invalid."""
        if self._buffer is None:
            return memoryview(self._stream.read(self._block_bytes))
        return self._buffer[: self._stream.readinto(self._buffer)]  # type: ignore[attr-defined]  # checked above


class SalvagedMembers:
    """The unpacked content of all members from an offset on, or of a single one, in pieces up to the damaged
    byte; then CorruptData. zlib is slower than ISA-L, but its state can be copied, and so can this iterator.
    """

    def __init__(self, reader: MemberReader, offset: int, *, is_single: bool = False) -> None:
        self.member_at = offset
        """Where the member begins that is being unpacked."""
        self._reader = reader
        self._at = offset
        self._is_single = is_single
        self._unpacker: zlib._Decompress | None = None
        self._damage: CorruptData | None = None

    @property
    def end(self) -> int | None:
        """First byte after the last member that was unpacked to its end; None while one is being unpacked."""
        return self._at if self._unpacker is None and self._at > self.member_at else None

    def copy(self) -> "SalvagedMembers":
        """Another iterator that continues from here."""
        other = SalvagedMembers(self._reader, self.member_at, is_single=self._is_single)
        other._at, other._damage = self._at, self._damage
        other._unpacker = self._unpacker.copy() if self._unpacker else None
        return other

    def __iter__(self) -> "SalvagedMembers":
        return self

    def __next__(self) -> bytes:
        while True:
            if self._damage is not None:
                raise self._damage
            if self._unpacker is None:
                is_next = self._at == self.member_at or not self._is_single
                if not is_next or not self._reader.is_member(self._at):
                    raise StopIteration
                self.member_at, self._unpacker = self._at, zlib.decompressobj(wbits=_GZIP)
            if data := self._unpack(self._unpacker):
                return data

    def _unpack(self, unpacker: "zlib._Decompress") -> bytes:
        piece = bytes(self._reader.input(self._at, _INPUT_BYTES))
        before = unpacker.copy()
        try:
            data = unpacker.decompress(piece, BLOCK_BYTES)
        except zlib.error as error:
            self._damage = self._damaged(f"The gzip data after byte {self.member_at} is damaged: {error}.")
            return _until_damage(before, piece)
        if not piece and not data:
            self._damage = self._damaged(
                f"The file ends inside the gzip data that begins at byte {self.member_at}."
            )
        self._at += _used(piece, unpacker)
        if unpacker.eof:
            self._unpacker = None
        return data

    def _damaged(self, message: str) -> CorruptData:
        return CorruptData(message, where=f"byte {self.member_at}")
