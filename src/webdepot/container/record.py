"""One record of a container, as it is read.

    header      WARC/1.1, named fields          or the one line of an ARC record
    block       size_bytes                      for HTTP: head, then body as it came over the wire
      head      HttpHead, parsed when asked for
      payload   the body without transfer coding, or the block where there is no head

A record that comes from an iterator is valid until the next one is taken.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from io import BytesIO
from typing import BinaryIO

from webdepot.container.http import HttpHead, content_decoded, parse_head, transfer_decoded
from webdepot.container.pieces import stream_of
from webdepot.model import Location, RecordKind

LONGEST_HEAD_BYTES = 1 << 20
"""An HTTP head that is longer is cut there; the rest counts as body."""

_WITH_HEAD = frozenset({RecordKind.RESPONSE, RecordKind.REQUEST, RecordKind.REVISIT})
_FIRST_READ_BYTES = 8192


class Fields:
    """The named fields of a record header; names in any case, the first of several wins."""

    __slots__ = ("_by_name", "pairs")

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs
        """In their order, as spelled."""
        self._by_name = {name.lower(): value for name, value in reversed(pairs)}

    def get(self, name: str, default: str | None = None) -> str | None:
        return self._by_name.get(name.lower(), default)

    def get_all(self, name: str) -> list[str]:
        wanted = name.lower()
        return [value for key, value in self.pairs if key.lower() == wanted]

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._by_name

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)


class Record:
    """A record with its header read and its block still to be read."""

    __slots__ = (
        "_block",
        "_body",
        "_head",
        "_head_bytes",
        "_open",
        "_split",
        "date",
        "fields",
        "header",
        "kind",
        "location",
        "size_bytes",
        "url",
    )

    def __init__(
        self,
        *,
        kind: RecordKind,
        url: str,
        date: datetime,
        fields: Fields,
        header: bytes,
        location: Location,
        size_bytes: int,
        block: bytes | None,
        open_block: Callable[[], BinaryIO] | None = None,
    ) -> None:
        self.kind = kind
        self.url = url
        """Empty where the record has none (warcinfo, some metadata)."""
        self.date = date
        self.fields = fields
        """WARC fields; an ARC record has its facts under the WARC names (`WARC-Target-URI`, `WARC-IP-Address`, ...)."""
        self.header = header
        """The header as it stands in the container, with the empty line that ends it."""
        self.location = location
        self.size_bytes = size_bytes
        """Of the block."""
        self._block = block
        self._open = open_block
        self._head: HttpHead | None = None
        self._head_bytes = 0
        self._body: BinaryIO | None = None
        self._split = False

    @property
    def head(self) -> HttpHead | None:
        """Status line (or request line) and headers; None where the block is no HTTP message."""
        if not self._split:
            self._split_block()
        return self._head

    @property
    def content_type(self) -> str:
        """What the payload is said to be: the HTTP header where there is a head, else the record's own field; may be empty."""
        head = self.head
        if head is None:
            return self.fields.get("content-type") or ""
        return head.get("content-type") or ""

    @property
    def payload_digest(self) -> str:
        """As stated in the record (not checked), or empty."""
        return self.fields.get("warc-payload-digest") or ""

    @property
    def payload_bytes(self) -> int | None:
        """The length of `payload`, where it is known without reading: not under a transfer coding."""
        head = self.head
        if head is not None and head.get("transfer-encoding"):
            return None
        return self.size_bytes - self._head_bytes

    def block(self) -> BinaryIO:
        """The block as it stands. Either this or `payload`, once."""
        if self._block is not None:
            return BytesIO(self._block)
        assert self._open is not None  # noqa: S101 - a record has one of the two
        return self._open()

    def payload(self) -> BinaryIO:
        """The HTTP body without its transfer coding, or the block of a record without a head. Once."""
        if not self._split:
            self._split_block()
        body, self._body = self._body, None
        if body is None:
            return BytesIO()
        return body if self._head is None else transfer_decoded(body, self._head)

    def content(self, limit_bytes: int) -> BinaryIO:
        """The payload without its content coding, at most that many bytes. Once, instead of `payload`."""
        payload = self.payload()
        head = self._head or HttpHead(version="", status=0, reason="", headers=())
        return content_decoded(payload, head, limit_bytes=limit_bytes)

    def _split_block(self) -> None:
        self._split = True
        if self._block is not None:
            end = _head_end(self._block) if self._may_have_head(self._block) else 0
            self._head = parse_head(self._block[:end]) if end else None
            self._head_bytes = end
            self._body = BytesIO(self._block[end:] if end else self._block)
            return
        stream = self.block()
        begin = stream.read(_FIRST_READ_BYTES)
        end = 0
        if self._may_have_head(begin):
            while (
                not (end := _head_end(begin, is_all=False)) and len(begin) < LONGEST_HEAD_BYTES and (more := stream.read(_FIRST_READ_BYTES))
            ):
                begin += more
            end = end or _head_end(begin)
            self._head = parse_head(begin[:end])
        self._head_bytes = end
        self._body = stream_of(_joined(begin[end:], stream))

    def _may_have_head(self, begin: bytes) -> bool:
        if self.kind not in _WITH_HEAD:
            return False
        stated = self.fields.get("content-type")
        if stated is not None and stated[:16].lower() == "application/http":
            return bool(begin)
        return begin[:5] == b"HTTP/" and stated is None


def _head_end(block: bytes, *, is_all: bool = True) -> int:
    """Behind the empty line of an HTTP head. Without one the whole block is head, if all of it is here (else 0: read on)."""
    crlf = block.find(b"\r\n\r\n", 0, LONGEST_HEAD_BYTES)
    lf = block.find(b"\n\n", 0, crlf if crlf >= 0 else LONGEST_HEAD_BYTES)
    if lf >= 0:
        return lf + 2
    if crlf >= 0:
        return crlf + 4
    return min(len(block), LONGEST_HEAD_BYTES) if is_all else 0


def _joined(begin: bytes, stream: BinaryIO) -> Iterator[bytes]:
    yield begin
    while piece := stream.read(1 << 16):
        yield piece
