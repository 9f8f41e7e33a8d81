"""Sitemaps and other XML with links: sitemap, SMIL, SVG, DASH, plain and packed."""

import gzip

from fuzz.body_links import read

TOKENS = (
    b"<?xml version='1.0' encoding='utf-8'?>",
    b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>", b"<url><loc>", b"</loc></url>",
    b"<sitemapindex>", b"<sitemap><loc>", b"<image:image><image:loc>", b"xhtml:link rel='alternate' href='",
    b"<!DOCTYPE a [", b"<!ENTITY a 'b'>", b"&a;", b"<![CDATA[", b"]]>", b"<?xml-stylesheet href='a.xsl'?>",
    b"<svg xmlns='http://www.w3.org/2000/svg'>", b"<use xlink:href='", b"<MPD><BaseURL>", b"</urlset>",
    b"xml:base='", b"encoding='utf-16'", b"http://a.example/", b"<!--", b"xmlns:a='", b"\0",
)  # fmt: skip
_ALLOWED = frozenset({"XMLSyntaxError", "ParserError"})


def one_input(data: bytes) -> None:
    read(data, "application/xml", allowed=_ALLOWED)
    read(gzip.compress(data[:4096], 1), "application/gzip", allowed=_ALLOWED)
    read(data[:4096], "image/svg+xml", allowed=_ALLOWED)
