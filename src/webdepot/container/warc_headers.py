"""WARC record headers, versions 0.17 to 1.1 (ISO 28500; https://iipc.github.io/warc-specifications/).

    WARC/1.1 CRLF
    *( name ":" value CRLF )
    CRLF
    block of Content-Length bytes
    CRLF CRLF

Read leniently: lines may end in LF alone, fields may be folded, wget writes addresses in angle brackets (a
misreading of WARC 1.0's grammar), values are UTF-8 or, if that is not valid, Latin-1. A header without type,
date, length or a required address has a problem.
"""

import re
from datetime import datetime
from functools import lru_cache

from webdepot import times
from webdepot.container.fields import Fields, read_pairs
from webdepot.container.grammar import ContainerFormat, Grammar
from webdepot.container.record import RecordHeader
from webdepot.model import RecordKind

_VERSION_LINE = re.compile(rb"WARC/[0-9]\.[0-9]+[ \t]*(\r?\n)")
_KINDS = {kind.value: kind for kind in RecordKind}
_WITHOUT_ADDRESS = frozenset({RecordKind.WARCINFO, RecordKind.METADATA, RecordKind.UNKNOWN})


def _header_end(data: bytes, at: int, limit: int) -> int:
    version = _VERSION_LINE.match(data, at, limit)
    if version is None:
        return -1
    line_end = version[1]  # the header ends in two line ends like its first
    end = data.find(line_end * 2, version.start(1), limit)
    return -1 if end < 0 else end + 2 * len(line_end)


def parse(data: bytes) -> RecordHeader:
    """Read a whole header, version line and empty line included."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    fields = Fields(read_pairs(text))
    length = fields.get("Content-Length") or ""
    if not (length.isdigit() and length.isascii() and len(length) < 19):
        return RecordHeader(data, problem="its header has no valid Content-Length")
    size_bytes = int(length)
    type_name = fields.get("WARC-Type") or ""
    if not type_name:
        return RecordHeader(data, length=size_bytes, problem="its header has no WARC-Type")
    kind = _KINDS.get(type_name.lower(), RecordKind.UNKNOWN)
    date = _find_date(fields.get("WARC-Date") or "")
    if date is None:
        return RecordHeader(data, length=size_bytes, problem="its header has no valid WARC-Date")
    url = _without_brackets(fields.get("WARC-Target-URI") or "") if kind is not RecordKind.WARCINFO else ""
    if not url and kind not in _WITHOUT_ADDRESS:
        return RecordHeader(data, length=size_bytes, problem=f"it is a {kind} record without WARC-Target-URI")
    return RecordHeader(data, kind, url, date, fields, size_bytes, fields.get("WARC-Payload-Digest") or "")


def _without_brackets(address: str) -> str:
    """An address without wget's angle brackets."""
    return address[1:-1] if address[:1] == "<" and address[-1:] == ">" else address


@lru_cache(maxsize=256)  # the records of a visit have one date
def _find_date(stated: str) -> datetime | None:
    """The moment of a WARC-Date, or of the fourteen digits that old tools write."""
    try:
        return times.from_timestamp(stated) if stated.isdigit() else times.from_iso(stated)
    except ValueError:
        return None


GRAMMAR = Grammar(
    kind=ContainerFormat.WARC,
    start=_VERSION_LINE,
    search=re.compile(rb"(?:^|\n)(?P<record>WARC/[0-9]\.[0-9]+[ \t]*\r?\n)"),
    header_end=_header_end,
    parse=parse,
    terminator=b"\r\n\r\n",
)
