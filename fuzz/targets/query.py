"""Queries of readers: the query language, and what the two text indexes make of it."""

from webdepot.access import query

TOKENS = (
    b'"', b" -", b"site:example.org", b"type:pdf", b"type:fmt/18", b"lang:de", b"from:2020", b"to:2021-05",
    b"as-of:2020", b" OR ", b"title:", b"author:", b"link:", b"(", b")", b"|", b"*", b"\xe2\x80\x9e",
    b"\xc2\xab", b"url:", b"NOT ", b"\xcc\x88", b":", b"-\"", b"year:", b"99999",
)  # fmt: skip


def one_input(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    query.is_address(text)
    query.parse(text)
