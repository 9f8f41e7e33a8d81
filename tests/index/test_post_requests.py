"""Requests with a body get keys of their own, equal to those of the tools that share the convention."""

import gzip
from io import BytesIO
from pathlib import Path

import pytest
from cdxj_indexer.postquery import append_method_query
from hypothesis import given
from hypothesis import strategies as st

from webdepot.index import capture_from_record, post_requests
from webdepot.url import key as key_of

URL = "http://example.org/api"
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (FORM, b"q=clock&lang=nl"),
        (FORM, b"q=a+b%20c"),
        (JSON, b'{"q": "clock", "page": 2}'),
        (JSON, b'{"a": {"q": 1}, "b": {"q": 2}, "list": [1, 2, {"c": "d"}]}'),
        (JSON, b'{"x": true, "y": "z"}'),
        ("text/plain", b'{"q": "clock"}'),
        ("text/plain;charset=UTF-8", b"not json"),
        ("application/octet-stream", b"\x00\x01\xff"),
        (
            "multipart/form-data; boundary=XX",
            b'--XX\r\nContent-Disposition: form-data; name="q"\r\n\r\nclock\r\n--XX--\r\n',
        ),
        ("", b"bytes"),
        (JSON, b""),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_keys_are_those_of_cdxj_indexer(method: str, content_type: str, body: bytes):
    _, appended = append_method_query(method, content_type, str(len(body)), BytesIO(body), URL)
    assert key_of(post_requests.folded(URL, method, content_type, body)) == key_of(URL + appended)


def test_get_is_left_as_it_is_and_other_methods_are_named():
    assert post_requests.folded(URL, "GET", "", b"") == URL
    assert post_requests.folded(URL + "?a=1", "DELETE", "", b"") == URL + "?a=1&__wb_method=DELETE"


@given(
    st.sampled_from([FORM, JSON, "text/plain", "multipart/form-data; boundary=a", "x"]),
    st.binary(max_size=300),
)
def test_any_body_gives_a_bounded_address(content_type: str, body: bytes):
    assert (
        len(post_requests.folded(URL, "POST", content_type, body))
        <= len(URL) + 30 + post_requests.LONGEST_QUERY
    )


@pytest.mark.parametrize("request_first", [True, False])
def test_two_answers_of_one_address_get_two_keys(tmp_path: Path, request_first: bool):
    path = tmp_path / "post.warc.gz"
    with path.open("wb") as file:
        for number, body in enumerate((b'{"q": 1}', b'{"q": 2}', b"")):
            answer = _record("response", f"<urn:a:{number}>", b"HTTP/1.1 200 OK\r\n\r\nanswer", "")
            line = b"%s /api HTTP/1.1\r\nContent-Type: application/json\r\n\r\n%s" % (
                b"POST" if body else b"GET",
                body,
            )
            question = _record("request", f"<urn:q:{number}>", line, f"<urn:a:{number}>")
            for record in (question, answer) if request_first else (answer, question):
                file.write(record)
    found = list(
        capture_from_record.of_container(
            path, path.name, on_finding=lambda finding: pytest.fail(str(finding))
        )
    )
    assert [one.key for one in found] == [
        "org,example)/api?__wb_method=post&q=1",
        "org,example)/api?__wb_method=post&q=2",
        "org,example)/api",
    ]
    assert {one.url for one in found} == {URL}


def _record(kind: str, name: str, block: bytes, concurrent: str) -> bytes:
    fields = {
        "WARC-Type": kind,
        "WARC-Record-ID": name,
        "WARC-Target-URI": URL,
        "WARC-Date": "2020-01-01T00:00:00Z",
        **({"WARC-Concurrent-To": concurrent} if concurrent else {}),
        "Content-Type": f"application/http; msgtype={kind}",
        "Content-Length": str(len(block)),
    }
    head = "\r\n".join(["WARC/1.1", *(f"{key}: {value}" for key, value in fields.items()), "", ""])
    return gzip.compress(head.encode() + block + b"\r\n\r\n")
