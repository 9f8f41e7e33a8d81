"""Record headers and HTTP heads: the one reader against warcio, and the pattern for usual responses against it."""

import gzip
import io
import time
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from warcio.statusandheaders import StatusAndHeadersParser

from webdepot.container import warc_headers
from webdepot.container.http import parse_head
from webdepot.container.reader import iter_records
from webdepot.container.record import RecordHeader
from webdepot.model import RecordKind

LINES = [
    b"Content-Type: text/html",
    b"content-type: text/plain; charset=x",
    b"CONTENT-TYPE: image/gif",
    b"Content-Type : image/x",
    b"Content-type:text/css",
    b"Content-Type: a/b\n",
    b"Content-Type: folded/type\r\n and more",
    b"X-Content-Type: no",
    b"Server: x",
    b"\tfolded",
    b"",
    b"odd line",
]
STARTS = [
    b"HTTP/1.1 200 OK",
    b"HTTP/1.0 404",
    b"HTTP/1.1 301 Moved\n",
    b"ICY 200 OK",
    b"200 OK",
    b"HTTP/2 204 ",
    b"HTTP/1.1 2000 x",
]
FIELDS = [
    b"WARC-Payload-Digest: sha1:AAAA",
    b"warc-payload-digest: sha1:BBBB",
    b"WARC-Payload-Digest:sha1:CCCC",
    b"WARC-Payload-Digest: sha1:DDDD\r\n EEEE",
    b"WARC-Payload-Digest : sha1:FFFF",
    b"X-Note: WARC-Payload-Digest: no",
]


def record_of(fields: list[bytes], block: bytes):
    head = [
        b"WARC/1.1",
        b"WARC-Type: response",
        b"WARC-Date: 2020-01-01T00:00:00Z",
        b"WARC-Target-URI: http://a.org/",
        b"Content-Type: application/http",
        *fields,
        b"Content-Length: %d" % len(block),
    ]
    data = gzip.compress(b"\r\n".join(head) + b"\r\n\r\n" + block + b"\r\n\r\n")
    return next(iter_records(io.BytesIO(data), "a.warc.gz", on_finding=print))


@given(
    st.sampled_from(STARTS), st.lists(st.sampled_from(LINES), max_size=5), st.sampled_from([b"\r\n", b"\n"])
)
@example(STARTS[0], [b"CONTENT-TYPE: image/gif", b"Content-Type: text/html"], b"\r\n")
@example(STARTS[0], [b"Content-Type : image/x", b"Content-Type: text/html"], b"\r\n")
def test_status_and_type_by_pattern_are_those_of_the_whole_head(start: bytes, lines: list[bytes], end: bytes):
    block = end.join([start, *lines, b"", b"<p>Content-Type: not/this\r\n"])
    quick = record_of([], block).find_status_and_type()
    head = record_of([], block).head
    assert head is not None
    if quick is not None:
        assert quick == (head.status, head.get("Content-Type"))
    elif start == STARTS[0] and lines[:1] == LINES[:1] and end == b"\r\n":
        assert lines[1][:1] in b"\t "  # the usual response is matched, unless its type has a second line


def test_a_usual_response_is_read_by_pattern():
    block = b"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text/html\r\nX-Cache: HIT\r\n\r\n<p>"
    assert record_of([], block).find_status_and_type() == (200, "text/html")


@given(st.lists(st.sampled_from(FIELDS), max_size=3))
def test_the_first_field_of_a_name_counts_however_it_is_spelled(fields: list[bytes]):
    record = record_of(fields, b"HTTP/1.1 200 OK\r\n\r\n")
    values = record.fields.get_all("WARC-Payload-Digest")
    assert len(values) == sum(not line.startswith(b"X-Note") for line in fields)
    assert record.payload_digest == (record.fields.get("warc-PAYLOAD-digest") or "") == next(iter(values), "")


HEADER_LINES = [
    b"WARC-Type: response",
    b"WARC-Type: REQUEST",
    b"warc-type: revisit",
    b"WARC-Type:resource",
    b"WARC-Type: warcinfo",
    b"WARC-Date: 2020-01-01T00:00:00Z",
    b"WARC-Date: 2016-12-31T23:59:60Z",
    b"WARC-Date: 2020-02-31T00:00:00Z",
    b"WARC-Date: 20200101000000",
    b"WARC-Date:  2020-01-01T00:00:00.123456Z ",
    b"WARC-Target-URI: http://a.org/",
    b"WARC-Target-URI: <http://b.org/>",
    b"WARC-Target-URI: http://c.org/caf\xc3\xa9",
    b"WARC-Target-URI: http://c.org/caf\xe9",
    b"WARC-Target-URI: http://a.org/\r\n folded",
    b"WARC-Target-URI: ",
    b"WARC-Payload-Digest: sha1:AAAA",
    b"warc-payload-digest: sha1:BBBB",
    b"WARC-Payload-Digest: \r",
    b"Content-Length: 5",
    b"Content-Length: five",
    b"Content-Length: 5 ",
    b"Content-length: 6",
    b"Content-Length : 7",
    b"Content-Length: 00000000000000000005",
    b"Content-Type: application/http",
    b"X-Note: WARC-Type: response",
    b"odd line",
    b"bare\nWARC-Type: metadata",
    b"\ttab",
    b"bare\n folded: odd",
]
USUAL_LINES = [HEADER_LINES[0], HEADER_LINES[5], HEADER_LINES[10], HEADER_LINES[19]]


DATES = {
    "2020-01-01T00:00:00Z": datetime(2020, 1, 1, tzinfo=UTC),
    "2016-12-31T23:59:60Z": datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC),
    "20200101000000": datetime(2020, 1, 1, tzinfo=UTC),
    "2020-01-01T00:00:00.123456Z": datetime(2020, 1, 1, microsecond=123456, tzinfo=UTC),
}


def facts_of(header: RecordHeader):
    pairs = (
        [(name, " ".join(value.split())) for name, value in header.fields.pairs] if header.fields else None
    )
    return header.kind, header.url, header.date, header.length, header.payload_digest, header.problem, pairs


def facts_by_warcio(data: bytes):
    """What must be read from a header, if its fields are those that warcio reads."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    headers = StatusAndHeadersParser(["WARC/1.1"]).parse(io.BytesIO(text.encode()))
    unreadable = (RecordKind.UNKNOWN, "", None)

    def value_of(name: str) -> str:
        return " ".join((headers.get_header(name) or "").split())

    length, kind, date = value_of("Content-Length"), value_of("WARC-Type"), DATES.get(value_of("WARC-Date"))
    if not length.isdigit() or len(length) > 18:
        return *unreadable, -1, "", "its header has no valid Content-Length", None
    if not kind:
        return *unreadable, int(length), "", "its header has no WARC-Type", None
    if date is None:
        return *unreadable, int(length), "", "its header has no valid WARC-Date", None
    url = value_of("WARC-Target-URI").removeprefix("<").removesuffix(">")
    if not url and kind not in ("warcinfo", "metadata"):
        problem = f"it is a {kind.lower()} record without WARC-Target-URI"
        return *unreadable, int(length), "", problem, None
    pairs = [(name, " ".join(value.split())) for name, value in headers.headers]
    url = "" if kind == "warcinfo" else url
    return RecordKind(kind.lower()), url, date, int(length), value_of("WARC-Payload-Digest"), "", pairs


@given(
    st.lists(st.sampled_from(HEADER_LINES), max_size=4),
    st.permutations(USUAL_LINES),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from([b"\r\n", b"\n"]),
)
@example([HEADER_LINES[1]], USUAL_LINES, 4, 4, b"\r\n")
@example([HEADER_LINES[22]], USUAL_LINES, 0, 4, b"\r\n")
def test_a_header_is_what_warcio_reads(odd: list[bytes], usual: list[bytes], cut: int, left: int, end: bytes):
    data = end.join([b"WARC/1.1", *usual[:cut], *odd, *usual[cut:left], b"", b"hello"])
    header_end = warc_headers.GRAMMAR.header_end(data, 0, len(data))
    assert data[header_end:] == b"hello"
    assert facts_of(warc_headers.parse(data[:header_end])) == facts_by_warcio(data)


@pytest.mark.parametrize("line", [b" folded", b"x: y", b"odd", b" ", b"a : b", b":"])
def test_headers_and_heads_of_a_megabyte_are_read_in_linear_time(line: bytes):
    lines = b"\r\n".join([line] * ((1 << 20) // (len(line) + 2)))
    start = time.process_time()
    header = warc_headers.parse(b"\r\n".join([b"WARC/1.1", *USUAL_LINES, b"X-Last: y", lines, b"", b""]))
    assert not header.problem
    assert parse_head(b"HTTP/1.1 200 OK\r\nServer: x\r\n" + lines).get("server")
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "text", [b"GET" + b" " * (1 << 20), b"HTTP/1.1 200" + b"\t " * (1 << 19), b" " * (1 << 20)]
)
def test_a_first_line_of_a_megabyte_is_read_in_linear_time(text: bytes):
    start = time.process_time()
    parse_head(text + b"\r\n\r\n")
    assert time.process_time() - start < 5


def test_a_leap_second_is_a_date():
    header = warc_headers.parse(
        b"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Date: 2016-12-31T23:59:60Z\r\nContent-Length: 0\r\n\r\n"
    )
    assert header.problem == "" and header.date is not None and header.date.second == 59


def test_headers_end_at_bare_line_ends_among_others():
    head = parse_head(b"HTTP/1.1 200 OK\r\nServer: a\nContent-Type: text/html\r\nX: y\r\n\r\n")
    assert head.headers == (("Server", "a"), ("Content-Type", "text/html"), ("X", "y"))
