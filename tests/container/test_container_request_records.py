"""The request next to a response is found in containers of several writers, compressed or not."""

import gzip
import io

import pytest

from webdepot.container.reader import iter_records, read_record
from webdepot.container.request_records import find_request
from webdepot.model import RecordKind

RESPONSE = b"HTTP/1.1 200 OK\r\n\r\nWARC/1.1 in a page, and a gzip \x1f\x8b\x08\x00 too"
REQUEST = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"


def record(kind: str, number: int, block: bytes, more: str = "") -> bytes:
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{number}>\r\n"
        f"WARC-Date: 2020-01-01T00:00:00Z\r\nWARC-Target-URI: http://a.example/\r\n{more}"
        f"Content-Type: application/http; msgtype={kind}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def to(number: int) -> str:
    return f"WARC-Concurrent-To: <urn:uuid:{number}>\r\n"


ORDERS = {
    "before": [record("request", 1, REQUEST, to(2)), record("response", 2, RESPONSE)],
    "after": [record("response", 2, RESPONSE), record("request", 1, REQUEST, to(2))],
    "named by the response": [record("response", 2, RESPONSE, to(1)), record("request", 1, REQUEST)],
    "after its metadata": [
        record("response", 2, RESPONSE),
        record("metadata", 3, b"via: x", to(2)),
        record("request", 1, REQUEST, to(2)),
    ],
    "not linked": [record("request", 1, REQUEST), record("response", 2, RESPONSE)],
    "of another": [record("request", 9, REQUEST, to(8)), record("response", 2, RESPONSE)],
    "alone": [record("response", 2, RESPONSE)],
}


@pytest.mark.parametrize("packed", [gzip.compress, bytes], ids=["compressed", "plain"])
@pytest.mark.parametrize("order", ORDERS)
def test_the_request_of_a_response_is_found(order: str, packed):
    stream = io.BytesIO(b"".join(map(packed, ORDERS[order])))
    places = [
        each.location
        for each in iter_records(stream, "a.warc", on_finding=lambda _: None)
        if each.kind is RecordKind.RESPONSE
    ]
    request = find_request(stream, read_record(stream, places[0]))
    if order in ("of another", "alone"):
        assert request is None
    else:
        assert request is not None and request.fields.get("WARC-Record-ID") == "<urn:uuid:1>"
