"""WARC record headers, versions 0.17 to 1.1 (ISO 28500; https://iipc.github.io/warc-specifications/).

    WARC/1.1 CRLF
    *( name ":" value CRLF )
    CRLF
    block of Content-Length bytes
    CRLF CRLF

Read leniently: lines may end in LF alone, fields may be folded, wget writes addresses in angle brackets (a misreading of
WARC 1.0's grammar), values are UTF-8 or else Latin-1. A header without type, date, length, or address where one is needed, is a problem.
"""

import re
from datetime import datetime

from webdepot import times
from webdepot.container.grammar import Grammar, Header, Kind
from webdepot.container.record import Fields
from webdepot.model import RecordKind

_KINDS = {kind.value: kind for kind in RecordKind}
_FOLDS = (" ", "\t")
_WITHOUT_ADDRESS = frozenset({RecordKind.WARCINFO, RecordKind.METADATA, RecordKind.UNKNOWN})


def _header_end(data: bytes, at: int, limit: int) -> int:
    line_end = data.find(b"\n", at, limit)
    if line_end < 0:
        return -1
    empty_line = b"\r\n\r\n" if data[line_end - 1 : line_end] == b"\r" else b"\n\n"
    found = data.find(empty_line, line_end - 1 if len(empty_line) == 4 else line_end, limit)
    return -1 if found < 0 else found + len(empty_line)


def parse(data: bytes) -> Header:
    """Read a whole header, version line and empty line included."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    fields = Fields(_pairs, text)
    get = fields.get
    stated = get("Content-Length") or ""
    if not (stated.isdigit() and stated.isascii() and len(stated) < 19):
        return Header(problem="its header has no valid Content-Length")
    length = int(stated)
    stated = get("WARC-Type") or ""
    if not stated:
        return Header(length=length, problem="its header has no WARC-Type")
    kind = _KINDS.get(stated) or _KINDS.get(stated.lower(), RecordKind.UNKNOWN)
    date = _date(get("WARC-Date") or "")
    if date is None:
        return Header(length=length, problem="its header has no valid WARC-Date")
    if kind is RecordKind.WARCINFO:
        return Header(kind, "", date, fields, length)
    url = get("WARC-Target-URI") or ""
    if url[:1] == "<":
        url = bare(url)
    if not url and kind not in _WITHOUT_ADDRESS:
        return Header(length=length, problem=f"it is a {kind} record without WARC-Target-URI")
    return Header(kind, url, date, fields, length)


def bare(address: str) -> str:
    """An address without wget's angle brackets."""
    return address[1:-1] if address[:1] == "<" and address[-1:] == ">" else address


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for line in text.split("\n")[1:]:
        name, colon, value = line.partition(":")
        if line[:1] in _FOLDS and pairs:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {line.strip()}".strip())
        elif colon:
            pairs.append((name.strip(), value.strip()))
    return pairs


def _date(stated: str) -> datetime | None:
    try:
        if stated[10:11] == "T" and stated[-1:] == "Z":  # nearly all of them; the C function is ten times as fast
            return datetime.fromisoformat(stated)
        return times.from_timestamp(stated) if stated.isdigit() else times.from_iso(stated)
    except ValueError:
        return None


GRAMMAR = Grammar(
    kind=Kind.WARC,
    start=re.compile(rb"WARC/[0-9]\.[0-9]+[ \t]*\r?\n"),
    search=re.compile(rb"(?:^|\n)(?P<record>WARC/[0-9]\.[0-9]+[ \t]*\r?\n)"),
    header_end=_header_end,
    parse=parse,
    terminator=b"\r\n\r\n",
)
