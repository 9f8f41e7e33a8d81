"""Reading containers: WARC 0.17 to 1.1 and ARC 1 and 2, compressed record by record, as one gzip member, with
Zstandard, or not at all.

1. `detect` finds the form from the bytes.
2. `iter_records` returns every whole record, in order, with its exact location on disk. Damage becomes a
   `Finding` with its place, and reading continues at the next record that can be found. A record is whole if
   its gzip member unpacks to its end with the right checksum, and its block ends where its header says;
   digests are not compared here.
3. `read_record` returns the record at a location, by one seek.

Memory use is constant: a record larger than a few megabytes is unpacked once to see that it is whole, and
again when its payload is read.

Our own reader, twice as fast as warcio (bench/containers.py). FastWARC's loop is faster still, but it stops
at the first damaged byte, accepts a record that is cut or runs into the next one as whole, and does not
report where a record ends.
"""

from collections.abc import Generator, Iterator
from functools import partial
from typing import BinaryIO

from webdepot.container.conversion import zstd_frames
from webdepot.container.damage import BAD_HEADER, TORN, OnFinding, Reporter
from webdepot.container.detect import GRAMMARS, Compression, detect, grammar_of
from webdepot.container.grammar import LONGEST_HEADER_BYTES, Grammar, after_line_ends
from webdepot.container.members import BLOCK_BYTES, IN_MEMORY_BYTES, GzipMember, MemberReader, SalvagedMembers
from webdepot.container.record import Record, RecordHeader
from webdepot.container.single_stream import ByteWindow, file_pieces, iter_flat
from webdepot.container.streams import limited, skipped, stream_of
from webdepot.errors import CorruptData
from webdepot.model import Location

_BETWEEN_BYTES = 1 << 12
_SEEKABLE_BYTES = 256 << 20
_GRAMMAR_OF = {grammar.kind: grammar for grammar in GRAMMARS}


def iter_records(stream: BinaryIO, name: str, *, on_finding: OnFinding) -> Iterator[Record]:
    """Every whole record of a seekable stream, in order. InputError, at once, if it is empty or not a
    container.

    Locations are byte ranges of the file; for a container compressed as a whole, byte ranges of its unpacked
    content. A record that shares its gzip member with others in a container compressed by records has a
    location of length 0 (and a finding).
    """
    form = detect(stream, name)
    grammar = _GRAMMAR_OF[form.kind]
    if form.compression is Compression.RECORD:
        return _iter_members(stream, grammar, name, Reporter(name, on_finding))
    if form.compression is Compression.WHOLE:
        return _iter_whole(stream, grammar, name, Reporter(name, on_finding, "unpacked byte"))
    window = ByteWindow(partial(file_pieces, stream), can_seek=True)
    return iter_flat(window, grammar, Reporter(name, on_finding), partial(_location, name), place=_same)


def read_record(stream: BinaryIO, location: Location) -> Record:
    """The record at a location; CorruptData if no whole record is there."""
    if location.length <= 0:
        reason = (
            "it shares a gzip member with others and cannot be read alone; "
            "rewrite the container record by record"
        )
        raise _not_there(location, reason)
    reader = MemberReader(stream, block_bytes=min(location.length, BLOCK_BYTES))
    if reader.is_member(location.offset):
        return _read_member(reader, location)
    return _read_plain(stream, reader, location)


# --- one gzip member for each record ---


def _iter_members(stream: BinaryIO, grammar: Grammar, name: str, reporter: Reporter) -> Iterator[Record]:
    reader = MemberReader(stream)
    at: int | None = 0
    while at is not None:
        member = reader.read(at)
        if member.torn:
            at = _next_after_damage(reader, grammar, member, at, reporter)
            continue
        header = _header_of(grammar, member.data)
        start = len(header.data)
        block_end = start + header.length
        if member.end < 0 or header.problem or member.data[block_end:] != grammar.terminator:
            at = yield from _iter_odd_member(reader, grammar, member, header, at, name, reporter)
        else:
            location = Location(container=name, offset=at, length=member.end - at)
            yield Record(header, location, member.data, start)
            at = member.end


def _next_after_damage(
    reader: MemberReader, grammar: Grammar, member: GzipMember, at: int, reporter: Reporter
) -> int | None:
    is_member = reader.is_member(at)
    if not is_member and not reader.bytes_at(at, 1):
        return None
    next_at = reader.find_member(at + 1, grammar.start)
    if is_member:
        reporter.skipped(TORN, at, member.torn, next_at)
    else:
        reporter.garbage(at, next_at)
    return next_at


def _iter_odd_member(
    reader: MemberReader,
    grammar: Grammar,
    member: GzipMember,
    header: RecordHeader,
    at: int,
    name: str,
    reporter: Reporter,
) -> Generator[Record, None, int | None]:
    """Records of a member that is large, or that is not one record with its usual end. Returns where the next
    member begins.
    """
    total, tail, end = len(member.data), b"", member.end
    block_end = len(header.data) + max(0, header.length)
    if end < 0:
        try:
            total, tail, end = _measure_large(reader, at, block_end)
        except CorruptData as error:
            return _next_after_damage(
                reader, grammar, GzipMember(b"", -1, str(error).rstrip(".")), at, reporter
            )
    else:
        tail = member.data[block_end:]
    if header.length >= 0 and block_end <= total and after_line_ends(tail) == b"":
        if header.problem:
            reporter.skipped(BAD_HEADER, at, header.problem, end)
        elif member.end >= 0:
            yield Record(header, _location(name, at, end - at), member.data, len(header.data))
        else:
            yield _large_record(reader, header, _location(name, at, end - at))
        return end
    count = 0
    window = _window_of_member(reader, member, at, total)
    for record in iter_flat(window, grammar, reporter, lambda *_: _location(name, at, 0), place=lambda _: at):
        count += 1
        yield record
    if count:
        reporter.not_random(at)
    return end


def _window_of_member(reader: MemberReader, member: GzipMember, at: int, total: int) -> ByteWindow:
    if member.end >= 0:
        return ByteWindow(lambda position: iter((member.data[position:],)), can_seek=True)
    # Going back means unpacking again from the beginning: only for members of bounded size.
    return ByteWindow(
        lambda position: skipped(reader.iter_unpacked(at), position),
        can_seek=total <= _SEEKABLE_BYTES,
        size_bytes=total,
    )


def _measure_large(reader: MemberReader, at: int, block_end: int) -> tuple[int, bytes, int]:
    """Unpacked size of a large member, the first bytes after the block, and where the member ends."""
    total, tail = 0, b""
    end: list[int] = []
    for piece in reader.iter_unpacked(at, end):
        total += len(piece)
        if total > block_end and len(tail) < 64:
            tail += piece[-(total - block_end) :]
    return total, tail[:64], end[0]


def _header_of(grammar: Grammar, data: bytes) -> RecordHeader:
    """The header that the data begins with."""
    end = grammar.header_end(data, 0, LONGEST_HEADER_BYTES)
    return grammar.parse(data[:end]) if end > 0 else RecordHeader(problem="it has no header")


def _large_record(reader: MemberReader, header: RecordHeader, location: Location) -> Record:
    """A record whose member is unpacked again when its block is read."""

    def open_block() -> BinaryIO:
        unpacked = reader.iter_unpacked(location.offset)
        return stream_of(limited(skipped(unpacked, len(header.data)), header.length))

    return Record(header, location, None, open_block=open_block)


# --- gzip members that do not follow the records ---


def _iter_whole(stream: BinaryIO, grammar: Grammar, name: str, reporter: Reporter) -> Iterator[Record]:
    reader = MemberReader(stream)
    if zstd_frames.begins(reader.bytes_at(0, 8)):
        window = ByteWindow(lambda _: zstd_frames.iter_unpacked(stream), can_seek=False)
        yield from iter_flat(window, grammar, reporter, partial(_location, name), place=_same)
        return
    at: int | None = 0
    while at is not None:
        members = SalvagedMembers(reader, at)
        window = ByteWindow(partial(_all_of, members), can_seek=False, ahead=members.copy)
        yield from iter_flat(window, grammar, reporter, partial(_location, name), place=_same)
        at = reader.find_member(members.member_at + 1, grammar.start) if window.broken else None


def _all_of(members: SalvagedMembers, _: int) -> Iterator[bytes]:
    return members


# --- by location ---


def _read_member(reader: MemberReader, location: Location) -> Record:
    member = reader.read(location.offset)
    if member.torn:
        raise _not_there(location, member.torn)
    header = _header_at(member.data, location)
    if member.end < 0:
        return _large_record(reader, header, location)
    block_end = len(header.data) + header.length
    if member.end - location.offset != location.length or after_line_ends(member.data[block_end:]):
        raise _not_there(location, "the gzip member there is not this one record")
    if block_end > len(member.data):
        raise _not_there(location, "it is shorter than its header says")
    return Record(header, location, member.data, len(header.data))


def _read_plain(stream: BinaryIO, reader: MemberReader, location: Location) -> Record:
    begin = reader.bytes_at(location.offset, min(location.length, LONGEST_HEADER_BYTES))
    header = _header_at(begin, location)
    start = location.offset + len(header.data)
    end = start + header.length
    left = location.offset + location.length - end
    if left < 0 or not reader.reaches(end):
        raise _not_there(location, "it is shorter than its header says")
    if after_line_ends(reader.bytes_at(end, min(left, _BETWEEN_BYTES))) != b"":
        raise _not_there(location, "it is longer than its header says")
    if header.length <= IN_MEMORY_BYTES:
        return Record(header, location, reader.bytes_at(start, header.length))
    return Record(
        header,
        location,
        None,
        open_block=lambda: stream_of(limited(file_pieces(stream, start), header.length)),
    )


def _header_at(data: bytes, location: Location) -> RecordHeader:
    grammar = grammar_of(data)
    header = _header_of(grammar, data) if grammar else RecordHeader(problem="no record begins there")
    if header.problem:
        raise _not_there(location, header.problem)
    return header


def _not_there(location: Location, reason: str) -> CorruptData:
    where = f"{location.container} byte {location.offset}"
    return CorruptData(
        f"Container {location.container} has no readable record of {location.length} bytes "
        f"at byte {location.offset}: {reason}. Run: webdepot doctor",
        where=where,
    )


def _location(name: str, offset: int, length: int) -> Location:
    return Location(container=name, offset=offset, length=length)


def _same(position: int) -> int:
    return position
