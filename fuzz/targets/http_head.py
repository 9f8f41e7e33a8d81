"""Heads and bodies of HTTP messages in records (`container.http`), read whole and in pieces."""

from io import BytesIO

from webdepot.container.http import content_decoded, parse_head, transfer_decoded

TOKENS = (
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 ", b"ICY 200 ", b"GET / HTTP/1.1\r\n", b"\r\n\r\n", b"\n\n", b": ",
    b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"Content-Encoding: br\r\n",
    b"Content-Encoding: deflate, zstd\r\n", b"Content-Type: text/html\r\n", b"\r\n ",
    b"5\r\nhello\r\n0\r\n\r\n", b"ffffffffffffffff\r\n", b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd", b"\x78\x9c",
)  # fmt: skip
_LIMIT = 1 << 16


def one_input(data: bytes) -> None:
    head = parse_head(data)
    written = b"".join(f"{name}: {value}\r\n".encode("latin-1") for name, value in head.headers)
    assert parse_head(b"HTTP/1.1 200 OK\r\n" + written + b"\r\n").headers == head.headers, "headers change"
    for name, _ in head.headers:
        assert head.get(name) == head.get_all(name)[0]
    body = data.partition(b"\r\n\r\n")[2]
    whole = content_decoded(transfer_decoded(BytesIO(body), head), head, limit_bytes=_LIMIT).read()
    assert len(whole) <= _LIMIT
    stream = content_decoded(transfer_decoded(BytesIO(body), head), head, limit_bytes=_LIMIT)
    assert b"".join(iter(lambda: stream.read(7), b"")) == whole, "reading in pieces differs"
