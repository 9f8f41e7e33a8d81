"""What the two container formats have in common, so that one reader serves both: `warc.GRAMMAR` and
`arc.GRAMMAR`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from webdepot.container.record import Header

LONGEST_HEADER_BYTES = 1 << 20
"""Of a record header; what is longer is none."""


# Regular line ends, however many; at the end of the data the last one may be cut. A length that is wrong by
# one shows here.
_LINE_ENDS = re.compile(rb"(?:\r\n)+(?:\r\Z)?|\n+|\r\Z")


def behind_line_ends(data: bytes) -> bytes | None:
    """What follows the line ends behind a block; None where they are no whole ones, so that the block must
    end elsewhere.
    """
    found = _LINE_ENDS.match(data)
    rest = data[found.end() :] if found else data
    return None if rest[:1] in (b"\r", b"\n") else rest


class Kind(StrEnum):
    WARC = "warc"
    ARC = "arc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How records of one format begin, are read and end."""

    kind: Kind
    start: re.Pattern[bytes]
    """Matches where a record begins."""
    search: re.Pattern[bytes]
    """Finds a place where a record begins: group `record`."""
    header_end: Callable[[bytes, int, int], int]
    """First byte after the header that begins at one place, searched up to another; -1 if no header begins
    or ends there.
    """
    parse: Callable[[bytes], Header]
    """Never raises."""
    terminator: bytes
    """What stands behind each block."""
