"""ARC record headers, versions 1 and 2 (https://archive.org/web/researcher/ArcFileFormat.php).

    version 1    URL IP-address Archive-date Content-type Archive-length LF
    version 2    URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename
                 Archive-length LF
    block of Archive-length bytes
    LF

The first record of a file has the address `filedesc://NAME`; its block says which version the file has. The
version is read from each line, so that a record can be read without the first one. Lines are read from the
right, starting at the date: some addresses and content types contain spaces.

In terms of WARC: `filedesc:` is a warcinfo; an address of HTTP is a response with an HTTP message as its
block; `dns:` is a response of type `text/dns`; anything else is a resource.
"""

import re
from datetime import datetime

from webdepot import times
from webdepot.container.fields import Fields
from webdepot.container.grammar import ContainerFormat, Grammar
from webdepot.container.record import RecordHeader
from webdepot.model import RecordKind

_START = re.compile(rb"[a-zA-Z][a-zA-Z0-9+.-]{1,15}:[^\r\n]")
_DATE = re.compile(r"[0-9]{8,14}\Z", re.ASCII)
_MORE_OF_VERSION_2 = ("ARC-Result-Code", "ARC-Checksum", "ARC-Location", "ARC-Offset", "ARC-Filename")
# How far from the right the date can be: version 2 has five more columns, and content types contain spaces.
_FARTHEST_DATE = 16


def _header_end(data: bytes, at: int, limit: int) -> int:
    return data.find(b"\n", at, limit) + 1 or -1 if _START.match(data, at, limit) else -1


def parse(data: bytes) -> RecordHeader:
    """Read one header line, line end included."""
    columns = data.rstrip(b"\r\n").decode("utf-8", "replace").split(" ")
    length = (
        int(columns[-1]) if columns[-1].isascii() and columns[-1].isdigit() and len(columns[-1]) < 19 else -1
    )
    if length < 0:
        return RecordHeader(data, problem="its line does not end in a length")
    date_at = _date_at(columns)
    date = _date(columns[date_at]) if date_at else None
    if date is None or date_at is None:
        return RecordHeader(data, length=length, problem="its line has no valid date")
    url = " ".join(columns[: date_at - 1])
    kind, content_type, more = _describe(url, columns[date_at + 1 : -1])
    pairs = [
        ("WARC-Type", kind.value),
        ("WARC-Target-URI", url),
        ("WARC-Date", times.to_iso(date)),
        ("WARC-IP-Address", columns[date_at - 1]),
        ("Content-Type", content_type),
        ("Content-Length", str(length)),
        *more,
    ]
    return RecordHeader(data, kind, url, date, Fields(pairs), length)


def _date_at(columns: list[str]) -> int | None:
    """The position of the date: third from the right in version 1, eighth in version 2, or else the first
    column that looks like one.
    """
    last = len(columns)
    places = [last - 8, last - 3, *range(last - 3, max(1, last - _FARTHEST_DATE), -1)]
    return next((at for at in places if at >= 2 and _DATE.match(columns[at])), None)


def _date(digits: str) -> datetime | None:
    try:
        return times.from_timestamp(digits)
    except ValueError:
        return None


def _describe(url: str, columns: list[str]) -> tuple[RecordKind, str, list[tuple[str, str]]]:
    """Kind, content type of the block, and the columns that WARC has no field for."""
    more: list[tuple[str, str]] = []
    if len(columns) >= 6:
        more = list(zip(_MORE_OF_VERSION_2, columns[-5:]))
        columns = columns[:-5]
    stated = " ".join(columns)
    more.append(("ARC-Content-Type", stated))
    scheme = url.partition(":")[0].lower()
    if scheme == "filedesc":
        return RecordKind.WARCINFO, stated, more
    if scheme in ("http", "https"):
        return RecordKind.RESPONSE, "application/http; msgtype=response", more
    return RecordKind.RESPONSE if scheme == "dns" else RecordKind.RESOURCE, stated, more


GRAMMAR = Grammar(
    kind=ContainerFormat.ARC,
    start=_START,
    search=re.compile(
        rb"(?:^|\n)(?P<record>(?:filedesc|https?|ftp|dns):[^\n ]{1,65536}"
        rb" [0-9a-fA-F.:]{1,45} [0-9]{14} [^\n]{0,4096}? [0-9]+\r?\n)"
    ),
    header_end=_header_end,
    parse=parse,
    terminator=b"\n",
)
