"""HAR files become captures of their dates; entries that cannot are listed, and hostile files are refused early."""

import base64
import gzip
import json
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from webdepot.container.conversion import har, har_entries
from webdepot.errors import InputError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PICTURE = bytes(range(256))


def _entry(
    url: str, *, status: int = 200, headers: dict | None = None, content: dict | None = None, **more
) -> dict:
    request = {"method": "GET", "url": url, "headers": [{"name": ":authority", "value": "x"}]} | more.pop(
        "request", {}
    )
    listed = [{"name": name, "value": value} for name, value in (headers or {}).items()]
    response = {
        "status": status,
        "statusText": "",
        "httpVersion": "h2",
        "headers": listed,
        "content": content or {},
    }
    return {
        "startedDateTime": "2019-03-04T06:07:08.910+01:00",
        "request": request,
        "response": response,
        **more,
    }


def _har(*entries: dict) -> bytes:
    log = {
        "version": "1.2",
        "comment": 'entries: [ "x" ]',
        "pages": [{"title": "entries"}],
        "entries": entries,
    }
    return json.dumps({"log": log}).encode()


def _convert(raw: bytes, tmp_path: Path):
    findings = []
    target = tmp_path / "x.warc.gz"
    done = har.to_warc(BytesIO(raw), target, name="x.har", now=NOW, note=findings.append)
    with target.open("rb") as stream:
        records = [
            (record.rec_type, record.rec_headers, record.http_headers, record.content_stream().read())
            for record in ArchiveIterator(stream, check_digests="raise")
        ]
    assert len(records) == done.records
    return records, findings


def test_text_and_bytes_with_their_date_and_without_secrets(tmp_path: Path):
    page = _entry(
        "https://x.example/caf%C3%A9?q=1#top",
        headers={
            "content-type": "text/html",
            "content-encoding": "br",
            "content-length": "7",
            "set-cookie": "s=1",
        },
        content={"size": 9, "mimeType": "text/html", "text": "<p>café \U0001f980"},
        request={
            "method": "POST",
            "headers": [{"name": "Cookie", "value": "secret"}, {"name": "Accept", "value": "a\r\nX: b"}],
            "postData": {"mimeType": "text/plain", "text": "hello"},
        },
        serverIPAddress="[2001:db8::1]",
    )
    picture = _entry(
        "https://x.example/p.png",
        headers={"Content-Type": "image/png"},
        content={"text": base64.b64encode(PICTURE).decode(), "encoding": "base64", "size": 256},
    )
    records, findings = _convert(_har(page, picture), tmp_path)
    assert not findings and [kind for kind, *_ in records] == [
        "warcinfo",
        "request",
        "response",
        "request",
        "response",
    ]
    _, warc, head, body = records[2]
    assert warc["WARC-Date"] == "2019-03-04T05:07:08Z" and warc["WARC-IP-Address"] == "2001:db8::1"
    assert warc["WARC-Target-URI"] == "https://x.example/caf%C3%A9?q=1"
    assert body == "<p>café \U0001f980".encode() and head["Content-Length"] == str(len(body))
    assert (
        head["Content-Type"] == "text/html; charset=utf-8" and head["X-Archive-Orig-content-encoding"] == "br"
    )
    assert head["set-cookie"] is None and warc["Webdepot-Removed"] == "Set-Cookie"
    _, warc, head, body = records[1]
    assert (
        head.protocol == "POST" and body == b"hello" and head["Accept"] == "a X: b" and head["Cookie"] is None
    )
    assert records[4][3] == PICTURE


def test_a_stated_charset_is_kept_where_it_can_be(tmp_path: Path):
    latin = {"Content-Type": "text/html; charset=iso-8859-1"}
    records, _ = _convert(
        _har(
            _entry("http://x.example/a", headers=latin, content={"text": "é"}),
            _entry("http://x.example/b", headers=latin, content={"text": "語"}),
            _entry(
                "http://x.example/c",
                headers={"Content-Type": "text/css;charset=nonsense"},
                content={"text": "é"},
            ),
        ),
        tmp_path,
    )
    answers = [(head["Content-Type"], body) for kind, _, head, body in records if kind == "response"]
    assert answers == [
        ("text/html; charset=iso-8859-1", b"\xe9"),
        ("text/html; charset=utf-8", "語".encode()),
        ("text/css; charset=utf-8", "é".encode()),
    ]


def test_redirects_and_cached_answers(tmp_path: Path):
    records, findings = _convert(
        _har(
            _entry("http://x.example/", status=301, headers={"Location": "/a"}, content={"size": 0}),
            _entry("http://x.example/a", status=304, content={"text": "cached", "mimeType": "text/plain"}),
            _entry("http://x.example/b", status=304, content={"size": 9}),
        ),
        tmp_path,
    )
    answers = [(head.statusline.split()[0], body) for kind, _, head, body in records if kind == "response"]
    assert answers == [("301", b""), ("200", b"cached")] and "was not modified" in findings[0].message


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (_entry("data:text/plain,x"), "not a web address"),
        (_entry("wss://x.example/"), "not a web address"),
        (_entry("http://x.example/", status=0), "has no response"),
        (_entry("http://x.example/", content={"size": 500}), "was not saved. Export the file with content."),
        (_entry("http://x.example/", content={"text": "?", "encoding": "base64"}), "not valid base64"),
        (_entry("http://x.example/") | {"startedDateTime": "yesterday"}, "no valid date"),
        ({}, "not a web address"),
    ],
)
def test_what_is_left_out_is_named(entry: dict, problem: str, tmp_path: Path):
    _, (finding,) = _convert(_har(_entry("http://x.example/ok", content={"text": "ok"}), entry), tmp_path)
    assert problem in finding.message and finding.place == "entry 2"
    with pytest.raises(InputError, match="no response with a body"):
        _convert(_har(entry), tmp_path)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "no list `log.entries`"),
        (b'{"log": {"entries": 3}}', "no list `log.entries`"),
        (_har(_entry("http://x.example/", content={"text": "x" * 5000}))[:-200], "cut off"),
        (b'{"log": {"entries": [' + b"[" * 200, "nested too deeply"),
        (b'{"log": {"entries": [{"a": [' + b"{}," * 600_000 + b"1]}]}}", "too many values"),
        (b'{"log": {"entries": [{"a": 01}]}}', "not valid JSON"),
    ],
)
def test_hostile_files_end_with_one_error(raw: bytes, problem: str, tmp_path: Path):
    with pytest.raises(InputError, match=problem):
        _convert(raw, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_entry_larger_than_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(har_entries, "LONGEST_ENTRY", 1000)
    monkeypatch.setattr(har_entries, "_CHUNK_BYTES", 100)
    with pytest.raises(InputError, match="larger than"):
        _convert(_har(_entry("http://x.example/", content={"text": "x" * 3000})), tmp_path)


@given(
    st.lists(
        st.dictionaries(st.text(max_size=5), st.text(max_size=9) | st.lists(st.integers()), max_size=4),
        max_size=5,
    ),
    st.integers(min_value=1, max_value=40),
)
def test_entries_are_found_wherever_chunks_end(entries: list, chunk: int):
    before = har_entries._CHUNK_BYTES
    har_entries._CHUNK_BYTES = chunk
    try:
        raw = json.dumps(
            {"x": {"entries": [1]}, "log": {"a": {"entries": [2]}, "entries": entries, "b": []}}
        ).encode()
        assert list(har_entries.iter_entries(BytesIO(raw))) == entries
    finally:
        har_entries._CHUNK_BYTES = before


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(raw: bytes):
    with pytest.raises(InputError):
        list(har_entries.iter_entries(BytesIO(raw)))


def test_compressed_bombs_are_not_unpacked(tmp_path: Path):
    with pytest.raises(InputError, match="no list"):
        _convert(gzip.compress(b"0" * 10_000_000), tmp_path)
