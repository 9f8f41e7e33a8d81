"""One record of a container, as it is read.

    header      WARC/1.1, named fields          or the one line of an ARC record
    block       size_bytes                      for HTTP: head, then body as it came over the wire
      head      HttpHead, parsed when asked for
      payload   the body without transfer coding, or the block where there is no head

A record that comes from an iterator is valid until the next one is taken.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from io import BytesIO
from typing import BinaryIO

from webdepot.container.http import HttpHead, content_decoded, parse_head, transfer_decoded
from webdepot.container.pieces import iter_pieces, stream_of
from webdepot.model import Location, RecordKind

LONGEST_HEAD_BYTES = 1 << 20
"""An HTTP head that is longer is cut there; the rest counts as body."""

_WITH_HEAD = frozenset({RecordKind.RESPONSE, RecordKind.REQUEST, RecordKind.REVISIT})
_FIRST_READ_BYTES = 8192
_FOLDS = (" ", "\t")
IS_HTTP = b"\nContent-Type: application/http"
# Lines that are not empty, so it cannot run out of the head; the first Content-Type in any case, which goes
# on in no second line. Each line can match in one way only, so it takes linear time without `*+`, which
# Python 3.11 reads wrongly: nothing would match.
PLAIN_ANSWER = rb"""
    HTTP/[0-9.]+[ ]([0-9]{3})(?:[ ].*)?\r\n
    (?: (?!(?i:content-type)) [^\r\n].*\r\n )*
    [Cc]ontent-[Tt]ype:[ ](.*)\r\n(?![ \t])
"""
_PLAIN_ANSWER = re.compile(PLAIN_ANSWER, re.VERBOSE)


@lru_cache(maxsize=256)
def _needle(name: str) -> str:
    """How a field begins in the text of a header."""
    return f"\r\n{name}: "


class Fields:
    """The named fields of a record header. Names in any case; of several the one spelled as it is asked for,
    then the first, wins.

    Most records are asked for five of their ten fields, so these are looked for in the text of the header
    itself, where they stand plainly: `name: value` and CRLF, and the value goes on in no second line. `read`
    gives all of them, when somebody wants them or a field is written in another way.
    """

    __slots__ = ("_by_name", "_header", "_pairs", "_read", "_text")

    def __init__(self, read: Callable[[str], Sequence[tuple[str, str]]], header: bytes) -> None:
        self._read = read
        self._header = header
        self._text: str | None = None
        self._pairs: Sequence[tuple[str, str]] | None = None
        self._by_name: dict[str, str] | None = None

    @property
    def pairs(self) -> Sequence[tuple[str, str]]:
        """In their order, as spelled."""
        if self._pairs is None:
            self._pairs = self._read(self._decoded())
        return self._pairs

    def get(self, name: str) -> str | None:
        text, needle = self._text, _needle(name)
        if text is None:
            text = self._decoded()
        at = text.find(needle)
        if at >= 0:
            at += len(needle)
            end = text.find("\r\n", at)
            value = text[at:end]
            if "\n" not in value and text[end + 2 : end + 3] not in _FOLDS:
                return value.strip()
        if self._by_name is None:
            has_folds = "\n " in text or "\n\t" in text
            if text and not has_folds and f"\n{name.lower()}" not in text.lower():
                return None  # in no spelling: that is seen without reading all of them
            self._by_name = {key.lower(): value for key, value in reversed(self.pairs)}
        return self._by_name.get(name.lower())

    def _decoded(self) -> str:
        if self._text is None:
            try:
                self._text = self._header.decode("utf-8")
            except UnicodeDecodeError:
                self._text = self._header.decode("latin-1")
        return self._text

    def get_all(self, name: str) -> list[str]:
        wanted = name.lower()
        return [value for key, value in self.pairs if key.lower() == wanted]

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)


class Record:
    """A record with its header read and its block still to be read.

    The block is a range of `data` where it is held in memory, else `open_block` gives it.
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
        kind: RecordKind,
        url: str,
        date: datetime,
        fields: Fields,
        payload_digest: str,
        header: bytes,
        location: Location,
        size_bytes: int,
        data: bytes | None,
        start: int = 0,
        open_block: Callable[[], BinaryIO] | None = None,
    ) -> None:
        self.kind = kind
        self.url = url
        """Empty where the record has none (warcinfo, some metadata)."""
        self.date = date
        self.fields = fields
        """WARC fields; an ARC record has its facts under the WARC names (`WARC-Target-URI`,
        `WARC-IP-Address`, ...).
        """
        self.payload_digest = payload_digest
        """As stated in the record (not checked), or empty."""
        self.header = header
        """The header as it stands in the container, with the empty line that ends it."""
        self.location = location
        self.size_bytes = size_bytes
        """Of the block."""
        self._data = data
        self._start = start
        self._end = start + size_bytes
        self._open = open_block
        self._head: HttpHead | None = None
        self._body_start = -1
        """Where the body begins in `data`, or in the block; -1 before somebody looked."""
        self._stream: BinaryIO | None = None
        """Of a block that is not held: its body."""

    @property
    def is_held(self) -> bool:
        """Whether the block is in memory, so that it can be read when its container is closed."""
        return self._data is not None

    @property
    def head(self) -> HttpHead | None:
        """Status line (or request line) and headers; None where the block is no HTTP message."""
        if self._body_start < 0:
            self._split()
        if self._head is None and self._data is not None and self._body_start > self._start:
            self._head = parse_head(self._data[self._start : self._body_start])
        return self._head

    def find_plain_answer(self) -> tuple[int, str] | None:
        """Status and Content-Type of an answer whose head is written as nearly all are, in a fifth of the
        time; None: see `head`.
        """
        if self._data is None or not (IS_HTTP in self.header or self._has_head(b"HTTP/")):
            return None
        found = _PLAIN_ANSWER.match(self._data, self._start, min(self._end, self._start + LONGEST_HEAD_BYTES))
        return (int(found[1]), found[2].decode("latin-1").strip()) if found else None

    def may_have_header(self, name: bytes) -> bool:
        """False where the HTTP head, not parsed yet, has no such name (in lower case) anywhere."""
        if self._body_start < 0:
            self._split()
        return (
            self._head is not None
            or self._data is None
            or name in self._data[self._start : self._body_start].lower()
        )

    @property
    def content_type(self) -> str:
        """What the payload is said to be: the HTTP header where there is a head, else the record's own field;
        may be empty.
        """
        if self._head is None and self.kind is RecordKind.RESPONSE and (plain := self.find_plain_answer()):
            return plain[1]
        head = self.head
        return (self.fields.get("Content-Type") if head is None else head.get("Content-Type")) or ""

    @property
    def payload_bytes(self) -> int | None:
        """The length of `payload`, where it is known without reading: not under a transfer coding."""
        head = self.head
        if head is not None and head.get("Transfer-Encoding"):
            return None
        return self._end - self._body_start

    def block(self) -> BinaryIO:
        """The block as it stands. Either this or `payload`, once."""
        if self._data is not None:
            return BytesIO(self._data[self._start : self._end])
        assert self._open is not None  # noqa: S101 - a record has one of the two
        return self._open()

    def payload(self) -> BinaryIO:
        """The HTTP body without its transfer coding, or the block of a record without a head. Once."""
        if self._body_start < 0:
            self._split()
        if self._data is None:
            body, self._stream = self._stream or BytesIO(), None
        else:
            body = BytesIO(self._data[self._body_start : self._end])
            # Nearly no head has a transfer coding, so the head is not parsed for it.
            if not self.may_have_header(b"transfer-"):
                return body
        head = self.head
        return body if head is None else transfer_decoded(body, head)

    def content(self, limit_bytes: int) -> BinaryIO:
        """The payload without its content coding, at most that many bytes. Once, instead of `payload`."""
        payload = self.payload()
        head = self.head or HttpHead(version="", status=0, reason="", headers=())
        return content_decoded(payload, head, limit_bytes=limit_bytes)

    def _split(self) -> None:
        """Find where the body begins; open the block where it is not held."""
        if self._data is not None:
            has_head = self._has_head(self._data[self._start : self._start + 5])
            self._body_start = _head_end(self._data, self._start, self._end) if has_head else self._start
            return
        stream = self.block()
        begin, end = stream.read(_FIRST_READ_BYTES), 0
        if self._has_head(begin):
            while (end := _head_end(begin, 0, len(begin))) == len(begin) < LONGEST_HEAD_BYTES and (
                more := stream.read(_FIRST_READ_BYTES)
            ):
                begin += more
            self._head = parse_head(begin[:end])
        self._body_start = end
        self._stream = stream_of(_chained(begin[end:], stream))

    def _has_head(self, begin: bytes) -> bool:
        if self.kind not in _WITH_HEAD or not begin:
            return False
        if IS_HTTP in self.header:  # as nearly all have it: spares reading the fields
            return True
        stated = self.fields.get("Content-Type")
        return begin.startswith(b"HTTP/") if stated is None else stated.lower().startswith("application/http")


def _head_end(data: bytes, start: int, end: int) -> int:
    """Behind the empty line of an HTTP head; without one, all of it is head, up to a limit."""
    end = min(end, start + LONGEST_HEAD_BYTES)
    crlf = data.find(b"\r\n\r\n", start, end)
    lf = data.find(b"\n\n", start, end if crlf < 0 else crlf)
    if lf >= 0:
        return lf + 2
    return crlf + 4 if crlf >= 0 else end


def _chained(begin: bytes, stream: BinaryIO) -> Iterator[bytes]:
    yield begin
    yield from iter_pieces(stream)
