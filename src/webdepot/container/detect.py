"""Detect the form of a container from its bytes: WARC or ARC, and how it is compressed. File names do not
matter.

1. The first bytes: gzip, Zstandard (`zstd_frames`) or not compressed.
2. The first record (unpacked): `WARC/` or a line of an ARC.
3. Gzip: if the first member ends with the first record, all records can be read by their location. Otherwise
   all records are in one member, or members do not follow the records.

If the beginning is damaged, the first record that can be found decides.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO

from webdepot.container import arc, warc_headers
from webdepot.container.conversion import zstd_frames
from webdepot.container.grammar import LONGEST_HEADER_BYTES, ContainerFormat, Grammar
from webdepot.container.members import MAGIC, MemberReader, SalvagedMembers
from webdepot.container.single_stream import ByteWindow, file_pieces
from webdepot.container.streams import limited
from webdepot.errors import CorruptData, InputError

SEARCH_BYTES = 64 << 20
"""How far to search for a record in a file whose beginning is damaged."""

GRAMMARS = (warc_headers.GRAMMAR, arc.GRAMMAR)
_BEGIN_BYTES = 1 << 16
_OTHERS = {
    b"BZh": "It is compressed with bzip2. Unpack it first: bunzip2 FILE",
    b"\xfd7zXZ": "It is compressed with xz. Unpack it first: unxz FILE",
    b"PK\x03\x04": "It is a ZIP file (WACZ?). Unpack it and import the WARC files in it.",
}


class Compression(StrEnum):
    NONE = "none"
    RECORD = "record"
    """One gzip member for each record: records can be read by their location."""
    WHOLE = "whole"
    """Gzip members that do not follow the records, or Zstandard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerForm:
    kind: ContainerFormat
    compression: Compression


def detect(stream: BinaryIO, name: str = "The file") -> ContainerForm:
    """The form of a seekable stream. InputError, which mentions `name`, if it is empty or not a container."""
    reader = MemberReader(stream)
    begin = reader.bytes_at(0, _BEGIN_BYTES)
    if not begin:
        raise InputError(
            f"{name} is empty (0 bytes): there is nothing to read. Get it again from its source."
        )
    if begin[:3] == MAGIC:
        form = _gzip_form(reader)
    elif zstd_frames.begins(begin):
        form = _zstd_form(stream, name)
    else:
        grammar = grammar_of(begin.lstrip(b"\r\n"))
        form = ContainerForm(kind=grammar.kind, compression=Compression.NONE) if grammar else None
    form = form or _form_further_on(stream, reader)
    if form is None:
        hint = next(
            (advice for magic, advice in _OTHERS.items() if begin.startswith(magic)),
            "Give a WARC or ARC file, compressed with gzip or zstd or not.",
        )
        raise InputError(f"{name} is not a WARC or ARC file: it begins with {begin[:12]!r}. {hint}")
    return form


def grammar_of(begin: bytes) -> Grammar | None:
    """The grammar of a record that begins with these bytes, which include its header."""
    for grammar in GRAMMARS:
        if grammar.start.match(begin):
            end = grammar.header_end(begin, 0, LONGEST_HEADER_BYTES)
            # A long WARC header may be cut here. An ARC line has no mark: it must be readable.
            if grammar.kind is ContainerFormat.WARC or (end > 0 and not grammar.parse(begin[:end]).problem):
                return grammar
    return None


def _zstd_form(stream: BinaryIO, name: str) -> ContainerForm | None:
    begin = b""
    try:
        for piece in limited(zstd_frames.iter_unpacked(stream), _BEGIN_BYTES):
            begin += piece
    except CorruptData as error:
        if not begin:
            raise InputError(f"{name} cannot be unpacked. {error}. Get it again from its source.") from error
    grammar = grammar_of(begin.lstrip(b"\r\n"))
    return ContainerForm(kind=grammar.kind, compression=Compression.WHOLE) if grammar else None


def _gzip_form(reader: MemberReader) -> ContainerForm | None:
    begin = reader.salvaged(0, LONGEST_HEADER_BYTES)
    data = begin.lstrip(b"\r\n")
    grammar = grammar_of(data)
    if grammar is None:
        return None
    header_end = grammar.header_end(data, 0, LONGEST_HEADER_BYTES)
    length = grammar.parse(data[:header_end]).length if header_end > 0 else -1
    is_whole = length >= 0 and _has_more_or_less(
        reader, grammar, len(begin) - len(data) + header_end + length
    )
    return ContainerForm(kind=grammar.kind, compression=Compression.WHOLE if is_whole else Compression.RECORD)


def _has_more_or_less(reader: MemberReader, grammar: Grammar, block_end: int) -> bool:
    """Whether the first member contains more than its first record, or only a part of it."""
    seen, tail = 0, b""
    members = SalvagedMembers(reader, 0, is_single=True)
    try:
        for piece in members:
            tail = (
                (tail + piece[max(0, block_end - seen) :])[: 1 << 10]
                if seen + len(piece) > block_end
                else tail
            )
            seen += len(piece)
            if len(tail.lstrip(b"\r\n")) > 1 << 8:
                break
    except CorruptData:
        pass
    if seen < block_end and members.end is not None and reader.is_member(members.end):
        following = reader.read(members.end)
        return not following.torn and not grammar.start.match(following.data)
    return grammar.start.match(tail.lstrip(b"\r\n")) is not None


def _form_further_on(stream: BinaryIO, reader: MemberReader) -> ContainerForm | None:
    for grammar in GRAMMARS:
        if reader.find_member(0, grammar.start, until=SEARCH_BYTES) is not None:
            return ContainerForm(kind=grammar.kind, compression=Compression.RECORD)
        window = ByteWindow(lambda at: limited(file_pieces(stream, at), SEARCH_BYTES), can_seek=False)
        if window.find(grammar.search, 0) is not None:
            return ContainerForm(kind=grammar.kind, compression=Compression.NONE)
    return None
