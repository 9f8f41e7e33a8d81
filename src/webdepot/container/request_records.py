"""The request that belongs to a response. An index of captures does not list requests, but writers put them
next to their responses: Webdepot and Heritrix 3 before, warcio and Browsertrix after or before.

1. The record that ends where the response begins: each place in the bytes before it where a record may begin
   is tried, the nearest first. It is the right one only if it ends exactly at the response.
2. A few records after the response.

A request belongs to the response that it names (`WARC-Concurrent-To`), or that names it. Without either, it
must be for the same address at the same second.
"""

import re
from typing import BinaryIO

from webdepot.container.detect import grammar_of
from webdepot.container.grammar import LONGEST_HEADER_BYTES
from webdepot.container.members import MemberReader
from webdepot.container.reader import read_record
from webdepot.container.record import Record
from webdepot.errors import CorruptData
from webdepot.model import Location, RecordKind

WINDOW_BYTES = 1 << 17
"""How far before the response a record may begin."""
MOST_STARTS = 200
MOST_AFTER = 3
_STARTS = re.compile(rb"\x1f\x8b\x08[\x00-\x1f]|WARC/[01]\.")


def find_request(stream: BinaryIO, response: Record) -> Record | None:
    """The request of a response that was read from this container; None if it is not next to it."""
    before = _record_before(stream, response.location)
    candidates = [before] if before else []
    candidates += _records_after(stream, response.location)
    return next((record for record in candidates if _belong_together(record, response)), None)


def _record_before(stream: BinaryIO, location: Location) -> Record | None:
    first = max(0, location.offset - WINDOW_BYTES)
    before = MemberReader(stream).bytes_at(first, location.offset - first)
    starts = [first + start.start() for start in _STARTS.finditer(before)]
    for start in starts[: -MOST_STARTS - 1 : -1]:
        try:
            return read_record(
                stream,
                Location(container=location.container, offset=start, length=location.offset - start),
            )
        except CorruptData:
            continue
    return None


def _records_after(stream: BinaryIO, location: Location) -> list[Record]:
    records: list[Record] = []
    offset = location.offset + location.length
    while len(records) < MOST_AFTER:
        length = _length_at(stream, offset)
        if length <= 0:
            break
        try:
            place = Location(container=location.container, offset=offset, length=length)
            records.append(read_record(stream, place))
        except CorruptData:
            break
        offset += length
    return records


def _length_at(stream: BinaryIO, offset: int) -> int:
    """The length of the record that begins there; 0 if none does, or if it is very large."""
    reader = MemberReader(stream)
    if reader.is_member(offset):
        member = reader.read(offset)
        return 0 if member.torn else member.end - offset
    begin = reader.bytes_at(offset, LONGEST_HEADER_BYTES)
    grammar = grammar_of(begin)
    if grammar is None:
        return 0
    end = grammar.header_end(begin, 0, LONGEST_HEADER_BYTES)
    header = grammar.parse(begin[:end]) if end > 0 else None
    if header is None or header.length < 0:
        return 0
    return end + header.length + len(grammar.terminator)


def _belong_together(request: Record, response: Record) -> bool:
    if request.kind is not RecordKind.REQUEST:
        return False
    own, other = request.fields.get("WARC-Record-ID"), response.fields.get("WARC-Record-ID")
    named = request.fields.get_all("WARC-Concurrent-To")
    naming = response.fields.get_all("WARC-Concurrent-To")
    if named or naming:
        return other in named or own in naming
    return request.url == response.url and abs((request.date - response.date).total_seconds()) <= 1
