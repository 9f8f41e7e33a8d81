"""RSS and Atom feeds, whose entries contain HTML."""

from fuzz.body_links import read

TOKENS = (
    b"<rss version='2.0'><channel>", b"<item>", b"<link>http://a.example/", b"</link>", b"<enclosure url='",
    b"<guid isPermaLink='true'>", b"<description>", b"<![CDATA[<a href='/x'>]]>", b"<content:encoded>",
    b"&lt;img src=&quot;a.png&quot;&gt;", b"<feed xmlns='http://www.w3.org/2005/Atom'>", b"<entry>",
    b"<link rel='alternate' href='", b"<content type='html'>", b"<rdf:RDF>", b"</rss>", b"<!DOCTYPE rss [",
    b"<!ENTITY x '", b"&x;", b"xml:base='", b"<media:content url='",
)  # fmt: skip


def one_input(data: bytes) -> None:
    allowed = frozenset({"XMLSyntaxError", "ParserError"})
    read(data, "application/rss+xml", allowed=allowed)
    read(data[:4096], "application/atom+xml", allowed=allowed)
