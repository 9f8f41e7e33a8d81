"""WARC record headers, versions 0.17 to 1.1 (ISO 28500; https://iipc.github.io/warc-specifications/).

    WARC/1.1 CRLF
    *( name ":" value CRLF )
    CRLF
    block of Content-Length bytes
    CRLF CRLF

Read leniently: lines may end in LF alone, fields may be folded, wget writes addresses in angle brackets (a
misreading of WARC 1.0's grammar), values are UTF-8 or else Latin-1. A header without type, date, length, or
address where one is needed, is a problem.
"""

import re
from datetime import datetime

from webdepot import times
from webdepot.container.grammar import Grammar, Header, Kind
from webdepot.container.record import Fields
from webdepot.model import RecordKind

_KINDS = {kind.value: kind for kind in RecordKind}
_USUAL_KINDS = {kind.value.encode(): kind for kind in RecordKind if kind is not RecordKind.WARCINFO}
_FOLDS = (" ", "\t")
_WITHOUT_ADDRESS = frozenset({RecordKind.WARCINFO, RecordKind.METADATA, RecordKind.UNKNOWN})

# A header as nearly all are written: lines end in CRLF, none is folded, and what every record is asked for
# stands there once, as `name: value`; where its group has a value already, `(?(1)(?!))` refuses a second one.
# No line fits two branches: nothing is tried twice.
USUAL_HEADER = rb"""
    WARC/[0-9]\.[0-9]+\r\n
    (?: (?: WARC-(?: Type:[ ](?(1)(?!))(.*) | Date:[ ](?(2)(?!))(.*) | Target-URI:[ ](?(3)(?!))(.*) | Payload-Digest:[ ](?(4)(?!))(.*)
                   | (?!Type:[ ]|Date:[ ]|Target-URI:[ ]|Payload-Digest:[ ]).* )
          | Content-(?: Length:[ ](?(5)(?!))(.*) | (?!Length:[ ]).* )
          | (?!WARC-|Content-)[^\r\n\t ].* )
        \r\n )*
    \r\n
"""
LONGEST_USUAL_BYTES = 1 << 13
"""A header that is longer is none of these."""
_USUAL_HEADER = re.compile(USUAL_HEADER, re.VERBOSE)


def _header_end(data: bytes, at: int, limit: int) -> int:
    line_end = data.find(b"\n", at, limit)
    if line_end < 0:
        return -1
    empty_line = b"\r\n\r\n" if data[line_end - 1 : line_end] == b"\r" else b"\n\n"
    found = data.find(empty_line, line_end - 1 if len(empty_line) == 4 else line_end, limit)
    return -1 if found < 0 else found + len(empty_line)


def find_usual(data: bytes) -> tuple[Header, bytes] | None:
    """The header that the data begins with, and its bytes, by one pattern in a third of the time; None where
    only `parse` can read it.
    """
    found = _USUAL_HEADER.match(data, 0, LONGEST_USUAL_BYTES)
    if found is None:
        return None
    header = found[0]
    said_kind, said_date, said_url, said_digest, length = found.groups(b"")
    kind = _USUAL_KINDS.get(said_kind)
    if kind is None or not (length.isdigit() and len(length) < 19 and said_url and header.isascii()):
        return None
    date, url = find_date(said_date.decode().strip()), bare(said_url.decode().strip())
    if date is None or not url:
        return None
    fields = fields_of(header)
    # No such field in the usual spelling: perhaps in another.
    payload_digest = said_digest.decode().strip() if said_digest else fields.get("WARC-Payload-Digest") or ""
    return Header(kind, url, date, fields, int(length), payload_digest), header


def parse(data: bytes) -> Header:
    """Read a whole header, version line and empty line included."""
    fields = fields_of(data)
    get = fields.get
    stated = get("Content-Length") or ""
    if not (stated.isdigit() and stated.isascii() and len(stated) < 19):
        return Header(problem="its header has no valid Content-Length")
    length = int(stated)
    stated = get("WARC-Type") or ""
    if not stated:
        return Header(length=length, problem="its header has no WARC-Type")
    kind = _KINDS.get(stated) or _KINDS.get(stated.lower(), RecordKind.UNKNOWN)
    date = find_date(get("WARC-Date") or "")
    if date is None:
        return Header(length=length, problem="its header has no valid WARC-Date")
    if kind is RecordKind.WARCINFO:
        return Header(kind, "", date, fields, length, get("WARC-Payload-Digest") or "")
    url = get("WARC-Target-URI") or ""
    if url[:1] == "<":
        url = bare(url)
    if not url and kind not in _WITHOUT_ADDRESS:
        return Header(length=length, problem=f"it is a {kind} record without WARC-Target-URI")
    return Header(kind, url, date, fields, length, get("WARC-Payload-Digest") or "")


def bare(address: str) -> str:
    """An address without wget's angle brackets."""
    return address[1:-1] if address[:1] == "<" and address[-1:] == ">" else address


def fields_of(header: bytes) -> Fields:
    return Fields(_pairs, header)


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for line in text.split("\n")[1:]:
        name, colon, value = line.partition(":")
        if line[:1] in _FOLDS and pairs:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {line.strip()}".strip())
        elif colon:
            pairs.append((name.strip(), value.strip()))
    return pairs


def find_date(stated: str) -> datetime | None:
    """The moment of a WARC-Date; of the fourteen digits of old tools, too."""
    try:
        if (
            stated[10:11] == "T" and stated[-1:] == "Z"
        ):  # nearly all of them; the C function is ten times as fast
            return datetime.fromisoformat(stated)
    except ValueError:
        pass  # a leap second, perhaps
    try:
        return times.from_timestamp(stated) if stated.isdigit() else times.from_iso(stated)
    except ValueError:
        return None


GRAMMAR = Grammar(
    kind=Kind.WARC,
    start=re.compile(rb"WARC/[0-9]\.[0-9]+[ \t]*\r?\n"),
    search=re.compile(rb"(?:^|\n)(?P<record>WARC/[0-9]\.[0-9]+[ \t]*\r?\n)"),
    find_usual=find_usual,
    header_end=_header_end,
    parse=parse,
    terminator=b"\r\n\r\n",
)
