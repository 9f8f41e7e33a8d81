"""Captures from records: against cdxj-indexer and warcio, and what these do not report."""

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from webdepot import cdxj
from webdepot.container.reader import iter_records, read_record
from webdepot.container.record import Record
from webdepot.digest import sha1
from webdepot.index import capture_from_record
from webdepot.model import RecordKind

CDXJ_INDEXER = Path(sys.executable).with_name("cdxj-indexer")


def captures(path):
    findings = []
    found = list(capture_from_record.of_container(path, path.name, on_finding=findings.append))
    assert findings == []
    return found


def test_lines_are_those_of_cdxj_indexer(made):
    made.response("http://www.example.org/", b"<p>hello").response(
        "http://example.org/B?b=1&a=2", b"x", mime="text/plain; charset=utf-8"
    )
    made.response("http://example.org/gone", b"no", status="404 Not Found").response(
        "https://example.org/data", b"{}", mime="application/json"
    )
    made.revisit(
        "http://example.org/",
        str(sha1(b"<p>hello")),
        refers_to_date="2019-01-01T00:00:00Z",
        date="2020-02-02T00:00:00Z",
    )
    made.record("resource", "urn:example:1", b"text").record("request", "http://example.org/", b"GET /")
    path = made.done()
    reference = subprocess.run(
        [CDXJ_INDEXER, "-s", path], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    ours = sorted(cdxj.line(capture) for capture in captures(path))
    known = {"url", "mime", "status", "digest", "length", "offset", "filename"}
    assert [stripped(line, known) for line in ours] == [stripped(line, known) for line in reference]


def stripped(line, known):
    key, timestamp, fields = line.split(" ", 2)
    return key, timestamp, {name: value for name, value in json.loads(fields).items() if name in known}


def test_every_capture_can_be_opened_again(made):
    path = made.response("http://a.org/", b"one").response("http://b.org/", b"two" * 100_000).done()
    with path.open("rb") as stream:
        for capture, body in zip(captures(path), (b"one", b"two" * 100_000), strict=True):
            record = read_record(stream, capture.location)
            assert (record.url, record.payload().read()) == (capture.url, body)


@pytest.mark.parametrize(
    ("status", "location", "expected"),
    [
        ("301 Moved", "/new", "http://example.org/new"),
        ("302 Found", "https://other.org/a b", "https://other.org/a%20b"),
        ("302 Found", "//other.org/#x", "http://other.org/"),
        ("301 Moved", "caf\u00e9", "http://example.org/caf%C3%A9"),
        ("302 Found", "http://[broken", ""),
        ("200 OK", "/new", ""),
        ("302 Found", "mailto:x@y.org", "mailto:x@y.org"),
    ],
)
def test_redirects_are_absolute(made, status, location, expected):
    (capture,) = captures(
        made.response("http://example.org/old", b"", status=status, headers=[("Location", location)]).done()
    )
    assert (capture.redirect, capture.status) == (expected, int(status[:3]))


@pytest.mark.parametrize(
    ("mime", "expected"),
    [
        ("text/html", "text/html"),
        ("TEXT/HTML;charset=x", "text/html"),
        ("", "unk"),
        ("html", "unk"),
        ("a/b/c", "unk"),
        ("text/ht ml", "unk"),
        ("x/" + "y" * 200, "unk"),
    ],
)
def test_media_types(made, mime, expected):
    assert [one.mime for one in captures(made.response("http://example.org/", b"x", mime=mime).done())] == [
        expected
    ]


def test_a_missing_digest_is_computed_over_the_payload_without_chunks(made):
    made.response(
        "http://a.org/", b"5\r\nhello\r\n0\r\n\r\n", headers=[("Transfer-Encoding", "chunked")], digest=False
    )
    assert [one.digest for one in captures(made.done())] == [str(sha1(b"hello"))]


def test_revisits_say_what_they_refer_to(made):
    made.revisit(
        "http://a.org/", "sha1:" + "a" * 32, refers_to="http://b.org/", refers_to_date="2019-05-06T07:08:09Z"
    )
    made.revisit("http://c.org/", "sha1:" + "B" * 32, head=False)
    first, second = captures(made.done())
    assert (first.kind, first.digest, first.mime) == (RecordKind.REVISIT, "sha1:" + "A" * 32, "text/html")
    assert (first.refers_to_url, first.refers_to_timestamp) == ("http://b.org/", "20190506070809")
    assert (second.mime, second.status) == ("warc/revisit", 0)


def test_only_versions_of_addresses_are_indexed(made):
    made.record("resource", "dns:example.org", b"example.org. 1 IN A 192.0.2.1", mime="text/dns").record(
        "conversion", "http://a.org/", b"x", mime="text/x"
    )
    made.record("metadata", "http://a.org/", b"x").record(
        "request", "http://a.org/", b"GET / HTTP/1.0\r\n\r\n", mime="application/http; msgtype=request"
    )
    assert [(one.kind, one.url) for one in captures(made.done())] == [
        (RecordKind.CONVERSION, "http://a.org/")
    ]


def test_damage_is_reported_and_skipped(made):
    path = (
        made.response("http://a.org/", b"one")
        .response("http://b.org/", b"two")
        .response("http://c.org/", b"three")
        .done()
    )
    data = bytearray(path.read_bytes())
    data[captures(path)[1].location.offset + 60] ^= 0xFF
    path.write_bytes(data)
    findings: list = []
    assert [
        one.url for one in capture_from_record.of_container(path, path.name, on_finding=findings.append)
    ] == [
        "http://a.org/",
        "http://c.org/",
    ]
    assert len(findings) == 1


# --- responses in every spelling: by pattern, by their whole head, and by warcio ---

DIGEST = b"WARC-Payload-Digest: sha1:" + b"A" * 32
FIELDS = [
    b"WARC-Type: response",
    b"WARC-Record-ID: <urn:uuid:1>",
    b"WARC-Date: 2020-01-01T00:00:00Z",
    b"WARC-Target-URI: http://example.org/a",
    DIGEST,
    b"Content-Type: application/http; msgtype=response",
]
ODD_FIELDS = [
    (0, b"WARC-Type: resource"),
    (0, b"WARC-Type: revisit"),
    (0, b"warc-type: response"),
    (0, b"WARC-Type: response "),
    (2, b"WARC-Date: 2020-01-01T00:00:00.25Z"),
    (2, b"WARC-Date: 2020-01-01T01:00:00+01:00"),
    (2, b"WARC-Date: 2020-02-31T00:00:00Z"),
    (2, b"WARC-Date: 2020-W01-1T00:00:00Z"),
    (2, b"WARC-Date: 20200101000000"),
    (3, b"WARC-Target-URI: <http://example.org/b>"),
    (3, b"WARC-Target-URI: http://example.org/caf\xc3\xa9"),
    (3, b"WARC-Target-URI: http://example.org/caf\xe9"),
    (3, b"WARC-Target-URI:  http://example.org/space "),
    (3, b"WARC-Target-URI: dns:example.org"),
    (3, b"WARC-Target-URI: urn:text:http://example.org/"),
    (3, b"WARC-Target-URI: "),
    (4, b"WARC-Payload-Digest: sha256:" + b"0" * 64),
    (4, b"WARC-Payload-Digest: sha1:" + b"a" * 32),
    (4, b"WARC-Payload-Digest: none"),
    (4, b"warc-payload-digest: sha1:" + b"B" * 32),
    (4, b"X-Nothing: x"),
    (5, b"Content-Type: text/html"),
    (5, b"content-type: application/http"),
    (5, b"X-Nothing: y"),
]
HEADS = [
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-type: TEXT/HTML\r\n\r\n",
    b"HTTP/1.1 200\r\nContent-type: \xe9/\xe9\r\n\r\n",
    b"HTTP/1.1 301 Moved\r\nContent-Type: text/html\r\nLocation: /b\r\n\r\n",
    b"HTTP/1.1 404 No\nContent-Type: text/html\n\n",
    b"HTTP/1.1 200 OK\r\nServer: x\nContent-Type: a/b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n c\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nCONTENT-TYPE: a/b\r\nContent-Type: c/d\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\nContent-Type: in/body\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: a/b\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: cut/off",
    b"ICY 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n",
    b"no head at all",
    b"",
]
LIES = (0, 0, 0, -4, -1, 1, 5)
"""By so much a length is wrong."""
ENDS = (b"\r\n\r\n", b"\r\n\r\n", b"\r\n", b"\n\n", b"")
POST = b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{}"


def member(fields: list[bytes], block: bytes, *, more: int = 0, end: bytes = b"\r\n\r\n") -> bytes:
    header = b"\r\n".join([b"WARC/1.0", *fields, b"Content-Length: %d" % (len(block) + more)])
    return gzip.compress(header + b"\r\n\r\n" + block + end, mtime=0)


def both_ways(data: bytes):
    """Captures and findings, with the pattern for usual responses and without it."""
    results = []
    for find in (Record.find_status_and_type, lambda _: None):
        findings: list = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Record, "find_status_and_type", find)
            records = iter_records(io.BytesIO(data), "a.warc.gz", on_finding=findings.append)
            read = list(
                capture_from_record.paired(
                    records, lambda record: (capture_from_record.of_record(record), None), on_finding=print
                )
            )
        results.append((read, findings))
    return results


def facts_by_warcio(data: bytes):
    """Address, status, type and digest of responses over HTTP, in their order."""
    for record in ArchiveIterator(io.BytesIO(data)):
        url = (record.rec_headers.get_header("WARC-Target-URI") or "").strip("<> ")
        if record.rec_type == "response" and url.startswith("http") and record.http_headers:
            mime = (record.http_headers.get_header("Content-Type") or "").partition(";")[0].strip().lower()
            digest = record.rec_headers.get_header("WARC-Payload-Digest") or ""
            yield url, int(record.http_headers.get_statuscode()), mime, digest.strip().upper()


@given(
    st.lists(st.sampled_from(ODD_FIELDS), max_size=2),
    st.booleans(),
    st.sampled_from(HEADS),
    st.sampled_from(LIES),
    st.sampled_from(ENDS),
    st.sampled_from(["", "before", "behind"]),
)
@example([], False, HEADS[0], 0, b"\r\n\r\n", "before")
@example([], False, HEADS[0], 0, b"\r\n\r\n", "behind")
@example([], False, HEADS[10], 0, b"\r\n\r\n", "")
def test_a_capture_by_pattern_is_that_of_the_whole_head(odd, doubled, head, more, end, request):
    fields = list(FIELDS)
    for at, line in odd:
        if doubled:
            fields.append(line)
        else:
            fields[at] = line
    answer = member(fields, head + b"<p>", more=more, end=end)
    asked = member([b"WARC-Type: request", b"WARC-Concurrent-To: <urn:uuid:1>", *FIELDS[2:4]], POST)
    last = member([*FIELDS[:3], b"WARC-Target-URI: http://example.org/last", *FIELDS[4:]], HEADS[0])
    quick, slow = both_ways(
        (asked if request == "before" else b"") + answer + (asked if request == "behind" else b"") + last
    )
    assert quick == slow


def test_each_odd_thing_alone_is_read_alike():
    for at, line in ODD_FIELDS:
        instead = [*FIELDS[:at], line, *FIELDS[at + 1 :]]
        for fields in (instead, [*FIELDS, line], [line, *FIELDS]):
            quick, slow = both_ways(member(fields, HEADS[0] + b"<p>") + member(FIELDS, HEADS[0]))
            assert quick == slow, fields
    for block in (*HEADS, HEADS[0] + b"\r\n\r\n"):
        for more in LIES:
            for end in ENDS:
                quick, slow = both_ways(member(FIELDS, block, more=more, end=end) + member(FIELDS, HEADS[0]))
                assert quick == slow, (block, more, end)


def test_captures_say_what_warcio_reads():
    for at, line in ODD_FIELDS:
        for fields in ([*FIELDS[:at], line, *FIELDS[at + 1 :]], [*FIELDS, line], [line, *FIELDS]):
            data = member(fields, HEADS[0] + b"<p>") + member(FIELDS, HEADS[1])
            (captures, findings), _ = both_ways(data)
            is_of_http = b"Content-Type: text/html" not in (fields[0], fields[5])
            if findings or not is_of_http:  # warcio takes any date, and looks for a head in any response
                continue
            read = [
                (one.url, one.status, one.mime, one.digest.upper())
                for one, _ in captures
                if one.kind is RecordKind.RESPONSE and one.url.startswith("http")
            ]
            expected = list(facts_by_warcio(data))
            assert [facts[:3] for facts in read] == [facts[:3] for facts in expected], fields
            for ours, theirs in zip(read, expected, strict=True):
                assert ours[3] == theirs[3] or not theirs[3].startswith("SHA"), fields
