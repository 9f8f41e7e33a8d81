"""Queries of readers: the query language, and both text indexes, which must find the same words."""

from functools import cache

from fuzz.scratch import root
from webdepot.access import search_query
from webdepot.index.text.sqlite_index import SqliteTextIndex
from webdepot.index.text.tantivy_index import TantivyTextIndex
from webdepot.ports.search import PageText

TOKENS = (
    b'"', b" -", b"site:example.org", b"type:pdf", b"type:fmt/18", b"lang:de", b"from:2020", b"to:2021-05",
    b"as-of:2020", b" OR ", b"title:", b"author:", b"link:", b"(", b")", b"|", b"*", b"\xe2\x80\x9e",
    b"\xc2\xab", b"url:", b"NOT ", b"\xcc\x88", b":", b'-"', b"year:", b"99999", b"damast", b"NEAR(", b"^",
)  # fmt: skip
_PAGE = PageText(
    key="org,example)/",
    url="http://example.org/",
    timestamp="20200101000000",
    mime="text/html",
    size_bytes=100,
    collection="all",
    title="Damast",
    headings="",
    text="Das alte Damast Museum",
    language="de",
    digest="a",
)


@cache
def _indexes() -> tuple[SqliteTextIndex, TantivyTextIndex]:
    folder = root() / "words"
    folder.mkdir()
    indexes = SqliteTextIndex(folder), TantivyTextIndex(root() / "tantivy", memory_bytes=16 << 20)
    for index in indexes:
        index.add("a.warc.gz", [_PAGE])
    return indexes


def prepare() -> None:
    """Create the indexes before the first input, outside of its limits."""
    _indexes()


def one_input(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    search_query.is_address(text)
    asked = search_query.parse(text)
    for index in _indexes():
        index.find(asked)
        index.words(text[:50], limit=5)
