"""What the two container formats have in common, so that one reader serves both: `warc.GRAMMAR` and `arc.GRAMMAR`."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from webdepot.container.record import Fields
from webdepot.model import RecordKind

LONGEST_HEADER_BYTES = 1 << 20
"""Of a record header; what is longer is none."""


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
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How records of one format begin, are read and end."""

    kind: Kind
    start: re.Pattern[bytes]
    """Matches where a record begins."""
    search: re.Pattern[bytes]
    """Finds a place where a record begins: group `record`."""
    header_end: Callable[[bytes, int], int]
    """First byte behind the header that begins at a place, -1 when its end is not among the bytes."""
    parse: Callable[[bytes], Header]
    """Never raises."""
    terminator: bytes
    """What stands behind each block."""
