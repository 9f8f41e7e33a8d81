"""Heads and codings as servers and older tools really wrote them."""

import gzip
import io
import tracemalloc
import zlib

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.container import http
from webdepot.container.http import HttpHead, content_decoded, parse_head, transfer_decoded
from webdepot.container.streams import stream_of

LIMIT = 10_000_000


def head(**headers: str) -> HttpHead:
    return HttpHead(
        version="HTTP/1.1",
        status=200,
        reason="OK",
        headers=tuple((name.replace("_", "-"), value) for name, value in headers.items()),
    )


def decoded(body: bytes, coding: str, limit_bytes: int = LIMIT) -> bytes:
    return content_decoded(io.BytesIO(body), head(Content_Encoding=coding), limit_bytes=limit_bytes).read()


def dechunked(body: bytes) -> bytes:
    return transfer_decoded(io.BytesIO(body), head(Transfer_Encoding="chunked")).read()


def chunked(parts: list[bytes]) -> bytes:
    return b"".join(b"%x;a=b\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\nX-Trailer: 1\r\n\r\n"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(6, wbits=-15)
    return packer.compress(data) + packer.flush()


ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=5),
    "zstd": http.zstd.compress,
    "GZIP": gzip.compress,
}


def test_head_of_a_plain_answer():
    found = parse_head(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n\r\nX-Body: no\r\n"
    )
    assert found == HttpHead(
        version="HTTP/1.1",
        status=200,
        reason="OK",
        headers=(("Content-Type", "text/html"), ("Set-Cookie", "a=1"), ("set-cookie", "b=2")),
    )
    assert found.get("content-TYPE") == "text/html"
    assert found.get("absent") is None
    assert found.get_all("Set-Cookie") == ["a=1", "b=2"]


@pytest.mark.parametrize(
    ("line", "version", "status", "reason"),
    [
        (b"HTTP/1.0 404 Not Found", "HTTP/1.0", 404, "Not Found"),
        (b"HTTP/2 204", "HTTP/2", 204, ""),
        (b"HTTP/1.1  200  Very  fine ", "HTTP/1.1", 200, "Very  fine"),
        (b"ICY 200 OK", "ICY", 200, "OK"),
        (b"HTTP/1.1 200 Gr\xfc\xdfe", "HTTP/1.1", 200, "Grüße"),
        (b"GET http://a.example/ HTTP/1.1", "HTTP/1.1", 0, ""),
        (b"HTTP/1.1 OK", "", 0, ""),
        (b"HTTP/1.1 20000 OK", "", 0, ""),
    ],
)
def test_first_lines(line: bytes, version: str, status: int, reason: str):
    found = parse_head(line + b"\nA: 1\n\n")
    assert (found.version, found.status, found.reason) == (version, status, reason)
    assert found.get("A") == "1"


def test_head_without_status_line_with_folds_and_junk():
    found = parse_head(
        b"Content-Type : text/plain;\r\n  charset=utf-8\r\nno colon here\r\n: no name\r\nLast: \xe4\r\n"
    )
    assert found.status == 0
    assert found.headers == (("Content-Type", "text/plain; charset=utf-8"), ("Last", "ä"))


@given(st.binary())
def test_any_bytes_are_a_head(data: bytes):
    assert 0 <= parse_head(data).status <= 999


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=20))
def test_chunks_are_taken_away(parts: list[bytes]):
    assert dechunked(chunked(parts)) == b"".join(parts)


def test_chunks_over_piece_borders():
    parts = [
        bytes([number % 251]) * size
        for number, size in enumerate((1, 65_535, 65_536, 65_537, 200_000, 3, 65_520, 4096))
    ]
    assert dechunked(chunked(parts)) == b"".join(parts)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>never chunked</html>",
        b"cafe\nis no chunk line but text" + b"x" * 0xCAFE + b"..",
        b"\r\n",
        b"zz\r\nhello",
        b"-5\r\nhello",
    ],
)
def test_a_body_that_is_not_chunked_is_passed_on(body: bytes):
    assert dechunked(body) == body


def test_a_cut_chunk_gives_what_came():
    assert dechunked(b"a\r\n12345") == b"12345"
    assert dechunked(b"3\r\nabc\r\n") == b"abc"
    assert dechunked(b"3\r\nabc\r\nffffffffffffffff\r\nrest") == b"abcrest"


def test_after_a_broken_chunk_line_the_rest_is_passed_on():
    assert dechunked(b"3\nabc\nnot a size\r\nrest") == b"abcnot a size\r\nrest"


def test_gzip_as_transfer_coding():
    body = chunked([gzip.compress(b"packed for the road")])
    found = transfer_decoded(io.BytesIO(body), head(Transfer_Encoding="gzip, chunked")).read()
    assert found == b"packed for the road"


def test_no_transfer_coding_is_the_body_itself():
    body = io.BytesIO(b"x")
    assert transfer_decoded(body, head()) is body


@given(st.binary(), st.integers(1, 100))
def test_any_bytes_can_be_dechunked(body: bytes, step: int):
    stream = transfer_decoded(io.BytesIO(body), head(Transfer_Encoding="chunked"))
    parts = list(iter(lambda: stream.read(step), b""))
    assert all(len(part) == step for part in parts[:-1])
    assert len(b"".join(parts)) <= len(body)


@pytest.mark.parametrize("coding", ENCODERS)
@given(data=st.binary(max_size=3000))
def test_codings_are_undone(coding: str, data: bytes):
    assert decoded(ENCODERS[coding](data), coding) == data


@pytest.mark.parametrize("coding", ENCODERS)
def test_large_bodies_and_the_limit(coding: str):
    data = b"".join(b"%d, " % number for number in range(100_000))
    packed = ENCODERS[coding](data)
    assert decoded(packed, coding) == data
    assert decoded(packed, coding, 77_777) == data[:77_777]
    assert decoded(packed, coding, 0) == b""


def test_raw_deflate():
    assert decoded(raw_deflate(b"raw " * 5000), "deflate") == b"raw " * 5000


def test_several_members_frames_and_layers():
    assert decoded(gzip.compress(b"one ") + gzip.compress(b"two") + b"trailing junk", "gzip") == b"one two"
    assert decoded(http.zstd.compress(b"one ") + http.zstd.compress(b"two"), "zstd") == b"one two"
    assert decoded(brotli.compress(gzip.compress(b"layers")), "gzip, br") == b"layers"
    assert decoded(gzip.compress(b"x"), "gzip, nonsense") == b"x"
    assert decoded(b"x", ",".join(["gzip"] * 6)) == b"x"


def test_gzip_header_with_every_optional_field():
    packed = (
        b"\x1f\x8b\x08\x1f"
        + bytes(6)
        + b"\x03\x00abc"
        + b"name\0"
        + b"comment\0"
        + b"\0\0"
        + raw_deflate(b"hello")
        + bytes(8)
    )
    assert decoded(packed, "gzip") == b"hello"


def test_a_wrong_checksum_loses_nothing():
    packed = bytearray(gzip.compress(b"still readable"))
    packed[-6] ^= 0xFF
    assert decoded(bytes(packed), "gzip") == b"still readable"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "identity", "utf-8", ""])
@pytest.mark.parametrize("body", [b"", b"{", b"<!DOCTYPE html><p>Decoded long ago, header kept.</p>" * 500])
def test_a_body_that_is_not_coded_is_passed_on(coding: str, body: bytes):
    assert decoded(body, coding) == body


@pytest.mark.parametrize("coding", ENCODERS)
def test_a_cut_body_gives_what_can_be_read(coding: str):
    data = b"".join(b"%d, " % number for number in range(50_000))
    packed = ENCODERS[coding](data)
    found = decoded(packed[: len(packed) * 3 // 4], coding)
    assert data.startswith(found)
    assert len(found) > len(data) // 3


def test_a_damaged_body_gives_the_bytes_before_the_damage():
    data = b"".join(b"%d, " % number for number in range(50_000))
    packed = bytearray(gzip.compress(data))
    packed[len(packed) // 2 : len(packed) // 2 + 200] = b"\xff" * 200
    found = decoded(bytes(packed), "gzip")
    assert found[: len(data) // 3] == data[: len(data) // 3]
    small = bytearray(gzip.compress(data[:2000]))
    small[-300:] = b"\xff" * 300
    assert len(decoded(bytes(small), "gzip")) > 100


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "chunked"])
@given(
    data=st.binary(max_size=500),
    magic=st.sampled_from(
        [b"", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x78\x9c", b"\x1f\x8b\x08\x04\0\0\0\0\0\0"]
    ),
)
def test_any_bytes_can_be_decoded(coding: str, data: bytes, magic: bytes):
    decoded(magic + data, coding, 100_000)


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_bomb_costs_no_memory(coding: str):
    bomb = ENCODERS[coding](bytes(60_000_000))
    stream = content_decoded(io.BytesIO(bomb), head(Content_Encoding=coding), limit_bytes=LIMIT)
    tracemalloc.start()
    total = sum(len(piece) for piece in iter(lambda: stream.read(1 << 16), b""))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == LIMIT
    assert peak < 12_000_000


def test_a_stream_of_pieces_reads_like_a_file():
    stream = stream_of([b"one\ntw", b"", b"o\nthree", b"four\n", b"end"])
    assert stream.readline() == b"one\n"
    assert stream.readline(2) == b"tw"
    assert stream.readline() == b"o\n"
    assert stream.read(7) == b"threefo"
    buffer = bytearray(3)
    assert stream.readinto(buffer) == 3  # type: ignore[attr-defined]
    assert bytes(buffer) == b"ur\n"
    assert stream.read() == b"end"
    assert stream.read() == b""
