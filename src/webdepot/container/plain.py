"""Plain answers: the record that nearly each one is, read by one pattern.

A plain answer is an HTTP response whose record header, status line and Content-Type are written as nearly all
tools and servers write them, which states its payload digest and redirects nowhere. Who only asks which
versions a container holds gets them so in half the time that a `Record` takes. Whatever is doubtful is no
plain answer and left to the long way, which says the same of all that is one.
"""

import re
from datetime import datetime
from typing import NamedTuple

from webdepot import digest
from webdepot.container.record import IS_HTTP, PLAIN_ANSWER, Fields
from webdepot.container.warc import LONGEST_USUAL_BYTES, USUAL_HEADER, bare, fields_of, find_date
from webdepot.model import Location, RecordKind

_PLAIN = re.compile(USUAL_HEADER + rb"()" + PLAIN_ANSWER, re.VERBOSE)
_TERMINATOR = b"\r\n\r\n"
_SCHEMES = ("http://", "https://")


class PlainAnswer(NamedTuple):
    """What the index of addresses wants to know of a record."""

    url: str
    date: datetime
    payload_digest: str
    """As stated, in the spelling that is ours too; not checked."""
    status: int
    """None that redirects."""
    content_type: str
    """As the server said."""
    location: Location
    header: bytes

    @property
    def kind(self) -> RecordKind:
        return RecordKind.RESPONSE

    @property
    def fields(self) -> Fields:
        return fields_of(self.header)


def find_plain_answer(data: bytes, name: str, offset: int, length: int) -> PlainAnswer | None:
    """The record that the data of the gzip member at that place is, where it is one plain answer and nothing
    else.
    """
    found = _PLAIN.match(data, 0, LONGEST_USUAL_BYTES)
    if found is None:
        return None
    kind, said_date, said_url, said_digest, size, _, status, content_type = found.groups(b"")
    start = found.start(6)
    header = data[:start]
    if kind != b"response" or not header.isascii() or IS_HTTP not in header or status[:1] == b"3":
        return None
    end = len(data) - len(_TERMINATOR)
    if not (
        size.isdigit()
        and len(size) < 19
        and start + int(size) == end >= found.end()
        and data.endswith(_TERMINATOR)
    ):
        return None
    date, url, payload_digest = (
        find_date(said_date.decode().strip()),
        bare(said_url.decode().strip()),
        said_digest.decode().strip(),
    )
    if date is None or not url.startswith(_SCHEMES) or not digest.is_usual(payload_digest):
        return None
    location = Location(container=name, offset=offset, length=length)
    return PlainAnswer(
        url, date, payload_digest, int(status), content_type.decode("latin-1").strip(), location, header
    )
