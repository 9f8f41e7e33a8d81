"""Paths of the replay server: collection, timestamp, modifier, address."""

from datetime import UTC, datetime

from webdepot import http_headers, times
from webdepot.web.replay import address

TOKENS = (
    b"/all/", b"20200101000000", b"id_/", b"mp_/", b"sw_/", b"*/", b"timemap/link/", b"timegate/",
    b"http://example.org/", b"http:/", b"//", b"urn:nbn:de:", b"%2F", b"%", b"\xff", b"?", b"bytes=0-",
    b"gzip;q=0.5, ", b"Sun, 15 Nov 2026 09:02:51 GMT", b"99999999999999", b"0000", b"/-/start",
)  # fmt: skip
_NOW = datetime(2020, 1, 1, tzinfo=UTC)


def one_input(data: bytes) -> None:
    text = data.decode("latin-1")
    http_headers.accepts("gzip", text)
    span = http_headers.parse_range(text, 100)
    assert span is None or 0 <= span[0] <= span[1] < 100
    for read in (times.from_http, times.from_iso, times.from_timestamp):
        try:
            assert times.to_iso(read(text))
        except ValueError:
            continue
    path, _, query = data.partition(b"?")
    replayed = address.find_address(path, query)
    if replayed is not None:
        address.nearest_stamp(replayed.timestamp, _NOW)
        address.path_of(replayed.collection, replayed.timestamp, replayed.url)
