"""Short ways through headers that are written as nearly all are: where they give an answer, it is that of the long way."""

import gzip
import io

from hypothesis import example, given
from hypothesis import strategies as st

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
STARTS = [b"HTTP/1.1 200 OK", b"HTTP/1.0 404", b"HTTP/1.1 301 Moved\n", b"ICY 200 OK", b"200 OK", b"HTTP/2 204 ", b"HTTP/1.1 2000 x"]
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


@given(st.sampled_from(STARTS), st.lists(st.sampled_from(LINES), max_size=5), st.sampled_from([b"\r\n", b"\n"]))
@example(STARTS[0], [b"CONTENT-TYPE: image/gif", b"Content-Type: text/html"], b"\r\n")
@example(STARTS[0], [b"Content-Type : image/x", b"Content-Type: text/html"], b"\r\n")
def test_a_plain_answer_is_what_the_whole_head_says(start: bytes, lines: list[bytes], end: bytes):
    block = end.join([start, *lines, b"", b"<p>Content-Type: not/this\r\n"])
    quick = record_of([], block).find_plain_answer()
    head = record_of([], block).head
    assert head is not None
    if quick is not None:
        assert quick == (head.status, head.get("Content-Type"))


def test_an_answer_as_nearly_all_are_is_a_plain_one():
    block = b"HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text/html\r\nX-Cache: HIT\r\n\r\n<p>"
    assert record_of([], block).find_plain_answer() == (200, "text/html")


@given(st.lists(st.sampled_from(FIELDS), max_size=3))
def test_a_field_found_in_the_text_is_one_of_the_fields(fields: list[bytes]):
    record = record_of(fields, b"HTTP/1.1 200 OK\r\n\r\n")
    said = record.fields.get_all("WARC-Payload-Digest")
    assert record.payload_digest == (said[0] if len(said) == 1 else record.payload_digest if record.payload_digest in said else "")
