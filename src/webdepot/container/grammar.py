"""The common interface of the two container formats, so that one reader serves both:
`warc_headers.GRAMMAR` and `arc.GRAMMAR`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from webdepot.container.record import RecordHeader

LONGEST_HEADER_BYTES = 1 << 20
"""The longest record header; longer data is not a header."""


# Regular line ends, any number of them; the last one may be cut at the end of the data. A length that is
# wrong by one is noticed here.
_LINE_ENDS = re.compile(rb"(?:\r\n)+(?:\r\Z)?|\n+|\r\Z")


def after_line_ends(data: bytes) -> bytes | None:
    """The data after the line ends that follow a block; None if these are not whole, so that the block must
    end elsewhere.
    """
    match = _LINE_ENDS.match(data)
    rest = data[match.end() :] if match else data
    return None if rest[:1] in (b"\r", b"\n") else rest


class ContainerFormat(StrEnum):
    WARC = "warc"
    ARC = "arc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How records of one format begin, end and are read."""

    kind: ContainerFormat
    start: re.Pattern[bytes]
    """Matches the beginning of a record."""
    search: re.Pattern[bytes]
    """Finds the beginning of a record: group `record`."""
    header_end: Callable[[bytes, int, int], int]
    """First byte after the header that begins at one place, searched up to another; -1 if no header begins
    or ends there.
    """
    parse: Callable[[bytes], RecordHeader]
    """Never raises."""
    terminator: bytes
    """The bytes after each block."""
