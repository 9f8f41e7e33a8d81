"""Short ways through headers that are written as nearly all are: where they give an answer, it is that of the
long way.
"""

import gzip
import io

from hypothesis import example, given
from hypothesis import strategies as st

from webdepot.container import warc
from webdepot.container.http import parse_head
from webdepot.container.reader import iter_records

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
def test_a_plain_answer_is_what_the_whole_head_says(start: bytes, lines: list[bytes], end: bytes):
    block = end.join([start, *lines, b"", b"<p>Content-Type: not/this\r\n"])
    quick = record_of([], block).find_plain_answer()
    head = record_of([], block).head
    assert head is not None
    if quick is not None:
        assert quick == (head.status, head.get("Content-Type"))
    elif start == STARTS[0] and lines[:1] == LINES[:1] and end == b"\r\n":
        assert (
            lines[1][:1] in b"\t "
        )  # what is written as it should be is read so, unless it goes on in a second line


def test_an_answer_as_nearly_all_are_is_a_plain_one():
    block = b"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text/html\r\nX-Cache: HIT\r\n\r\n<p>"
    assert record_of([], block).find_plain_answer() == (200, "text/html")


@given(st.lists(st.sampled_from(FIELDS), max_size=3))
def test_a_field_found_in_the_text_is_one_of_the_fields(fields: list[bytes]):
    record = record_of(fields, b"HTTP/1.1 200 OK\r\n\r\n")
    said = record.fields.get_all("WARC-Payload-Digest")
    assert record.payload_digest == (
        said[0] if len(said) == 1 else record.payload_digest if record.payload_digest in said else ""
    )


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
    b"Content-Length: 00000000000000000005",
    b"Content-Type: application/http",
    b"X-Note: WARC-Type: response",
    b"odd line",
    b"bare\nWARC-Type: metadata",
    b"\ttab",
]
USUAL_LINES = [HEADER_LINES[0], HEADER_LINES[5], HEADER_LINES[10], HEADER_LINES[19]]


def facts_of(header: warc.Header):
    fields = header.fields.pairs if header.fields else None
    return header.kind, header.url, header.date, header.length, header.payload_digest, header.problem, fields


@given(
    st.lists(st.sampled_from(HEADER_LINES), max_size=4),
    st.permutations(USUAL_LINES),
    st.integers(0, 4),
    st.sampled_from([b"\r\n", b"\n"]),
)
@example([HEADER_LINES[1]], USUAL_LINES, 4, b"\r\n")
def test_a_usual_header_is_what_the_long_way_reads(
    odd: list[bytes], usual: list[bytes], cut: int, end: bytes
):
    data = end.join([b"WARC/1.1", *usual[:cut], *odd, *usual[cut:], b"", b"hello"])
    header_end = warc.GRAMMAR.header_end(data, 0, len(data))
    found = warc.find_usual(data)
    if found is not None:
        assert found[1] == data[:header_end]
        assert facts_of(found[0]) == facts_of(warc.parse(data[:header_end]))
    elif not odd and end == b"\r\n":
        raise AssertionError("a header with nothing odd in it was not read")


def test_a_header_of_many_lines_that_is_not_usual_at_its_end_is_given_up_soon():
    lines = [b"WARC-Other: x", b"Content-Other: x", b"Other: x"] * 150
    assert (
        warc.find_usual(b"\r\n".join([b"WARC/1.1", *USUAL_LINES, *lines, b" folded", b"", b"hello"])) is None
    )
    assert warc.find_usual(b"\r\n".join([b"WARC/1.1", *USUAL_LINES, *lines, b"", b"hello"])) is not None


def test_a_leap_second_is_a_date():
    header = warc.parse(
        b"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Date: 2016-12-31T23:59:60Z\r\nContent-Length: 0\r\n\r\n"
    )
    assert header.problem == "" and header.date is not None and header.date.second == 59


def test_headers_end_at_bare_line_ends_among_others():
    head = parse_head(b"HTTP/1.1 200 OK\r\nServer: a\nContent-Type: text/html\r\nX: y\r\n\r\n")
    assert head.headers == (("Server", "a"), ("Content-Type", "text/html"), ("X", "y"))
