"""WARC files: reader, records by location, heads, captures; plain as given, and packed by records."""

from fuzz.container_records import read_all
from webdepot.container.members import packed
from webdepot.errors import InputError

TOKENS = (
    b"WARC/1.0\r\n", b"WARC/1.1\r\n", b"WARC/0.17\r\n", b"WARC-Type: response\r\n", b"WARC-Type: request\r\n",
    b"WARC-Type: revisit\r\n", b"WARC-Type: warcinfo\r\n", b"WARC-Type: conversion\r\n", b"Content-Length: ",
    b"WARC-Date: 2020-01-01T00:00:00Z\r\n", b"WARC-Target-URI: ", b"WARC-Refers-To-Date: ",
    b"WARC-Refers-To: ", b"WARC-Payload-Digest: sha1:", b"WARC-Concurrent-To: <urn:uuid:", b"\r\n\r\n",
    b"\r\n\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b"Content-Type: application/http; msgtype=response\r\n",
    b"Content-Type: text/html\r\n", b"\x1f\x8b\x08\0", b"Transfer-Encoding: chunked\r\n", b"Location: ",
    b"\r\n ", b"WARC-Truncated: length\r\n",
)  # fmt: skip


def one_input(data: bytes) -> None:
    for form in (data, packed(data)):
        try:
            read_all(form)
        except InputError:
            continue
