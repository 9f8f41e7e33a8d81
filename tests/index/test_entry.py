"""Captures from records: against cdxj-indexer, and what it does not tell."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from webdepot import cdxj
from webdepot.container.reader import read_record
from webdepot.digest import sha1
from webdepot.index import entry
from webdepot.model import RecordKind

CDXJ_INDEXER = Path(sys.executable).with_name("cdxj-indexer")


def captures(path):
    findings = []
    found = list(entry.of_container(path, path.name, on_finding=findings.append))
    assert findings == []
    return found


def test_lines_are_those_of_cdxj_indexer(made):
    made.response("http://www.example.org/", b"<p>hello").response("http://example.org/B?b=1&a=2", b"x", mime="text/plain; charset=utf-8")
    made.response("http://example.org/gone", b"no", status="404 Not Found").response(
        "https://example.org/data", b"{}", mime="application/json"
    )
    made.revisit("http://example.org/", str(sha1(b"<p>hello")), refers_to_date="2019-01-01T00:00:00Z", date="2020-02-02T00:00:00Z")
    made.record("resource", "urn:example:1", b"text").record("request", "http://example.org/", b"GET /")
    path = made.done()
    reference = subprocess.run([CDXJ_INDEXER, "-s", path], check=True, capture_output=True, text=True).stdout.splitlines()
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
    (capture,) = captures(made.response("http://example.org/old", b"", status=status, headers=[("Location", location)]).done())
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
    assert [one.mime for one in captures(made.response("http://example.org/", b"x", mime=mime).done())] == [expected]


def test_a_missing_digest_is_computed_over_the_payload_without_chunks(made):
    made.response("http://a.org/", b"5\r\nhello\r\n0\r\n\r\n", headers=[("Transfer-Encoding", "chunked")], digest=False)
    assert [one.digest for one in captures(made.done())] == [str(sha1(b"hello"))]


def test_revisits_say_what_they_refer_to(made):
    made.revisit("http://a.org/", "sha1:" + "a" * 32, refers_to="http://b.org/", refers_to_date="2019-05-06T07:08:09Z")
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
    assert [(one.kind, one.url) for one in captures(made.done())] == [(RecordKind.CONVERSION, "http://a.org/")]


def test_damage_is_told_and_passed_over(made):
    path = made.response("http://a.org/", b"one").response("http://b.org/", b"two").response("http://c.org/", b"three").done()
    data = bytearray(path.read_bytes())
    data[captures(path)[1].location.offset + 60] ^= 0xFF
    path.write_bytes(data)
    findings: list = []
    assert [one.url for one in entry.of_container(path, path.name, on_finding=findings.append)] == ["http://a.org/", "http://c.org/"]
    assert len(findings) == 1
