"""What the two container formats have in common, so that one reader serves both: `warc.GRAMMAR` and
`arc.GRAMMAR`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import BinaryIO

from webdepot.container.record import Fields, Record
from webdepot.model import Location, RecordKind

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


@dataclass(slots=True)
class Header:
    """A record header, read. With a `problem` the record is not usable and only `length` counts."""

    kind: RecordKind = RecordKind.UNKNOWN
    url: str = ""
    date: datetime | None = None
    fields: Fields | None = None
    length: int = -1
    """Of the block; -1 where the header does not say."""
    payload_digest: str = ""
    """As stated, not checked."""
    problem: str = ""

    def record(
        self,
        header: bytes,
        location: Location,
        data: bytes | None,
        start: int = 0,
        open_block: Callable[[], BinaryIO] | None = None,
    ) -> Record:
        """The record of a header without a problem; its block begins at `start` of `data`, or is what
        `open_block` gives.
        """
        assert self.date is not None and self.fields is not None  # noqa: S101 - only a problem leaves them out
        return Record(
            self.kind,
            self.url,
            self.date,
            self.fields,
            self.payload_digest,
            header,
            location,
            self.length,
            data,
            start,
            open_block,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How records of one format begin, are read and end."""

    kind: Kind
    start: re.Pattern[bytes]
    """Matches where a record begins."""
    search: re.Pattern[bytes]
    """Finds a place where a record begins: group `record`."""
    find_usual: Callable[[bytes], tuple[Header, bytes] | None]
    """The header that the data begins with and its bytes, where it is written as nearly all are: what
    `header_end` and `parse` would say, sooner.
    """
    header_end: Callable[[bytes, int, int], int]
    """First byte behind the header that begins at one place, looked for up to another; -1 when its end is not
    there.
    """
    parse: Callable[[bytes], Header]
    """Never raises."""
    terminator: bytes
    """What stands behind each block."""
