"""One record of a container, as it is read.

    header      WARC/1.1, named fields          or the one line of an ARC record
    block       size_bytes                      for HTTP: head, then body as it came over the wire
      head      HttpHead, parsed on first use
      payload   the body without transfer coding, or the block if there is no head

A record from an iterator is valid until the next one is taken.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import BinaryIO

from webdepot.container.fields import Fields
from webdepot.container.http import HttpHead, content_decoded, parse_head, transfer_decoded
from webdepot.container.streams import iter_pieces, stream_of
from webdepot.model import Location, RecordKind

LONGEST_HEAD_BYTES = 1 << 20
"""A longer HTTP head is cut there; the rest counts as body."""

_WITH_HEAD = frozenset({RecordKind.RESPONSE, RecordKind.REQUEST, RecordKind.REVISIT})
_FIRST_READ_BYTES = 8192
# Status line and the first Content-Type, which has no second line. Each line can match in one way only, so it
# takes linear time without `*+`, which Python 3.11 reads wrongly: nothing would match.
_USUAL_RESPONSE = re.compile(
    rb"""
    HTTP/[0-9.]+[ ]([0-9]{3})(?:[ ].*)?\r\n
    (?: (?!(?i:content-type)) [^\r\n].*\r\n )*
    [Cc]ontent-[Tt]ype:[ ](.*)\r\n(?![ \t])
    """,
    re.VERBOSE,
)

ABOUT_PAGES = (
    "urn:view:",
    "urn:thumbnail:",
    "urn:fullPage:",
    "urn:text:",
    "urn:textFinal:",
    "urn:pageinfo:",
    "urn:screenshot:",
    "screenshot:",
)
"""Prefixes, before the address of a page, of resources that show it as a browser saw it."""


@dataclass(slots=True)
class RecordHeader:
    """A record header, read. With a `problem` the record is not usable and only `length` counts."""

    data: bytes = b""
    """As it is in the container, with the empty line that ends it."""
    kind: RecordKind = RecordKind.UNKNOWN
    url: str = ""
    date: datetime | None = None
    fields: Fields | None = None
    length: int = -1
    """Of the block; -1 if the header does not state it."""
    payload_digest: str = ""
    """As stated, not checked."""
    problem: str = ""


class Record:
    """A record with its header read and its block still to be read.

    The block is a range of `data` if it is held in memory; otherwise `open_block` opens it.
    """

    __slots__ = (
        "_body_start",
        "_data",
        "_end",
        "_head",
        "_open",
        "_start",
        "_stream",
        "date",
        "fields",
        "header",
        "kind",
        "location",
        "payload_digest",
        "size_bytes",
        "url",
    )

    def __init__(
        self,
        header: RecordHeader,
        location: Location,
        data: bytes | None,
        start: int = 0,
        open_block: Callable[[], BinaryIO] | None = None,
    ) -> None:
        """`header` must be one without a problem."""
        self.kind = header.kind
        self.url = header.url
        """Empty if the record has none (warcinfo, some metadata)."""
        self.date: datetime = header.date  # type: ignore[assignment]  # only a problem leaves it out
        self.fields: Fields = header.fields  # type: ignore[assignment]
        """WARC fields; an ARC record has its columns under the WARC names (`WARC-Target-URI`,
        `WARC-IP-Address`, ...).
        """
        self.payload_digest = header.payload_digest
        """As stated in the record (not checked), or empty."""
        self.header = header.data
        """The header as it is in the container, with the empty line that ends it."""
        self.location = location
        self.size_bytes = header.length
        """Of the block."""
        self._data = data
        self._start = start
        self._end = start + header.length
        self._open = open_block
        self._head: HttpHead | None = None
        self._body_start = -1
        """Where the body begins in `data`, or in the block; -1 until `_split`."""
        self._stream: BinaryIO | None = None
        """The body of a block that is not held in memory."""

    @property
    def is_held(self) -> bool:
        """Whether the block is in memory, so that it can be read after its container is closed."""
        return self._data is not None

    @property
    def head(self) -> HttpHead | None:
        """Status line (or request line) and headers; None if the block is not an HTTP message."""
        if self._body_start < 0:
            self._split()
        if self._head is None and self._data is not None and self._body_start > self._start:
            self._head = parse_head(self._data[self._start : self._body_start])
        return self._head

    def find_status_and_type(self) -> tuple[int, str] | None:
        """Status and Content-Type of a response whose HTTP head is written as most are, as `head` has them;
        None for any other, whose `head` must be read.

        Without this, indexing a container by address takes a tenth longer (bench/access.py, "indexed").
        """
        if self._data is None or not self._has_head(b"HTTP/"):
            return None
        match = _USUAL_RESPONSE.match(
            self._data, self._start, min(self._end, self._start + LONGEST_HEAD_BYTES)
        )
        return (int(match[1]), match[2].decode("latin-1").strip()) if match else None

    @property
    def content_type(self) -> str:
        """The stated type of the payload: the HTTP header if there is a head, otherwise the field of the
        record; may be empty.
        """
        head = self.head
        return (self.fields.get("Content-Type") if head is None else head.get("Content-Type")) or ""

    @property
    def payload_bytes(self) -> int | None:
        """The length of `payload`, if it is known without reading: not with a transfer coding."""
        head = self.head
        if head is not None and head.get("Transfer-Encoding"):
            return None
        return self._end - self._body_start

    def block(self) -> BinaryIO:
        """The block unchanged."""
        if self._data is not None:
            return BytesIO(self._data[self._start : self._end])
        assert self._open is not None  # noqa: S101 - a record has one of the two
        return self._open()

    def payload(self) -> BinaryIO:
        """The HTTP body without its transfer coding, or the block of a record without a head. Each further
        call unpacks a block again that is not held in memory.
        """
        if self._body_start < 0 or (self._data is None and self._stream is None):
            self._split()
        if self._data is None:
            body, self._stream = self._stream or BytesIO(), None
        else:
            body = BytesIO(self._data[self._body_start : self._end])
        head = self.head
        return body if head is None else transfer_decoded(body, head)

    def content(self, limit_bytes: int) -> BinaryIO:
        """The payload without its content coding, at most `limit_bytes`."""
        payload = self.payload()
        head = self.head or HttpHead(version="", status=0, reason="", headers=())
        return content_decoded(payload, head, limit_bytes=limit_bytes)

    def _split(self) -> None:
        """Find where the body begins; open the block if it is not held in memory."""
        if self._data is not None:
            has_head = self._has_head(self._data[self._start : self._start + 5])
            self._body_start = head_end(self._data, self._start, self._end) if has_head else self._start
            return
        stream = self.block()
        begin, end = stream.read(_FIRST_READ_BYTES), 0
        if self._has_head(begin):
            while (end := head_end(begin, 0, len(begin))) == len(begin) < LONGEST_HEAD_BYTES and (
                more := stream.read(_FIRST_READ_BYTES)
            ):
                begin += more
            self._head = parse_head(begin[:end])
        self._body_start = end
        self._stream = stream_of(_chained(begin[end:], stream))

    def _has_head(self, begin: bytes) -> bool:
        if self.kind not in _WITH_HEAD or not begin:
            return False
        stated = self.fields.get("Content-Type")
        return begin.startswith(b"HTTP/") if stated is None else stated.lower().startswith("application/http")


def head_end(data: bytes, start: int, end: int) -> int:
    """The position after the empty line of an HTTP head; without one, all of it is head, up to a limit."""
    end = min(end, start + LONGEST_HEAD_BYTES)
    crlf = data.find(b"\r\n\r\n", start, end)
    lf = data.find(b"\n\n", start, end if crlf < 0 else crlf)
    if lf >= 0:
        return lf + 2
    return crlf + 4 if crlf >= 0 else end


def _chained(begin: bytes, stream: BinaryIO) -> Iterator[bytes]:
    yield begin
    yield from iter_pieces(stream)
