"""References in the body of a response, by its type.

`find_reader` gives the function that reads a type: HTML (`html`), style sheets (`css`), scripts (`script`),
XML (`xml`), JSON, playlists and text (`data`), and PDF (`pdf`).
"""

import re
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from urllib.parse import unquote_to_bytes

from webdepot.container.http import HttpHead
from webdepot.harvest.links import css, data, html, pdf, script, xml
from webdepot.harvest.links.reference import Reference
from webdepot.harvest.scope.software_rules import NO_SOFTWARE, SoftwareCatalogue
from webdepot.model import Hop
from webdepot.text.encoding import decode

_LONGEST_DATA_URL = 256 << 10
_GZIP_TYPES = ("application/gzip", "application/x-gzip", "application/octet-stream")
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_FIRST_TAG = re.compile(rb"<([A-Za-z][^\s/>]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLimits:
    page_bytes: int = 16 << 20
    """How much of a body is read for links."""
    links: int = 50_000
    """How many links of one page are taken: as many as a sitemap may have."""
    time_s: float = 10.0
    """Processor time for the links of one page, so that a busy machine loses none; the page itself is kept
    whole in any case.
    """
    guess: bool = False
    """Whether to guess addresses from scripts."""
    software: SoftwareCatalogue = NO_SOFTWARE
    """Recognises the software of a page."""
    markup: bool = True
    """Whether software is also recognised by markup, which takes a third of the time for a page; otherwise
    only by the generator.
    """
    agent: str = ""
    """Our name in meta robots and X-Robots-Tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLinks:
    """The references of a body, as written."""

    references: Iterable[Reference] = ()
    of_page: Sequence[Reference] = ()
    """Relative to the page that contains the body, not to the body: workers of a script, and files that it
    may load. If the page is not known, guesses are tried relative to the script.
    """
    base: str = ""
    """The base of the page, as written; empty if it is the address of the page."""
    encoding: str = "utf-8"
    nofollow: Sequence[Reference] = ()
    directives: frozenset[str] = frozenset()
    software: frozenset[str] = frozenset()
    """Ids of the software that the page shows signs of."""
    unread: Iterable[str] = ()
    """Names of the errors for parts that could not be read."""
    is_empty: bool = False
    """Whether the page is empty until scripts fill it."""


def _of_html(body: bytes, head: HttpHead, limits: LinkLimits) -> BodyLinks:
    text, encoding = decode(body, head.get("content-type") or "")
    page = html.references(text, guess=limits.guess, agent=limits.agent)
    return BodyLinks(
        references=page.references,
        base=page.base,
        encoding=encoding,
        nofollow=page.nofollow,
        directives=page.directives,
        software=limits.software.recognise(
            page.generator or head.get("x-generator") or "", text if limits.markup else ""
        ),
        unread=page.unread,
        is_empty=page.is_empty,
    )


def _of_css(body: bytes, head: HttpHead, limits: LinkLimits) -> BodyLinks:
    stated = head.get("content-type") or ""
    if "charset" not in stated.lower() and (charset := css.charset_of(body)):
        stated = f"{stated}; charset={charset}"
    text, encoding = decode(body, stated)
    return BodyLinks(references=css.references(text), encoding=encoding)


def _of_json(body: bytes, head: HttpHead, limits: LinkLimits) -> BodyLinks:
    return BodyLinks(references=data.of_json(decode(body, "")[0]))


def _of_playlist(body: bytes, head: HttpHead, limits: LinkLimits) -> BodyLinks:
    return BodyLinks(references=data.of_playlist(decode(body, "")[0]))


def _of_text(body: bytes, head: HttpHead, limits: LinkLimits) -> BodyLinks:
    text, encoding = decode(body, head.get("content-type") or "")
    return BodyLinks(references=data.of_text(text), encoding=encoding)


def _of_script(body: bytes, head: HttpHead, limits: LinkLimits) -> BodyLinks:
    text = decode(body, head.get("content-type") or "")[0]
    links = script.references(text)
    guesses = list(data.guesses(text)) if limits.guess else []
    # A browser resolves what a script asks for against the page, unless it is a module (`./name`).
    bare = [guess for guess in guesses if _BARE.match(guess[0])]
    return BodyLinks(
        references=chain(
            ((address, Hop.EMBED) for address in links.of_script),
            (guess for guess in guesses if not _BARE.match(guess[0])),
        ),
        of_page=[*((address, Hop.EMBED) for address in links.of_page), *bare],
    )


_BARE = re.compile(r"(?!\.|/|[A-Za-z][A-Za-z0-9+.-]*:)")
"""A reference that starts with a name: no scheme, slash or dot before it."""


def _of_pdf(body: bytes, head: HttpHead, limits: LinkLimits) -> BodyLinks:
    return BodyLinks(references=pdf.references(body, most=limits.links))


def _of_xml(body: bytes, head: HttpHead, limits: LinkLimits) -> BodyLinks:
    root = _FIRST_TAG.search(_COMMENT.sub(b"", body[:2048]))
    if root is not None and root[1].lower() == b"html":  # but not a style sheet (XSLT) that generates one
        return _of_html(body, head, limits)
    return BodyLinks(references=xml.references(body, of_html=lambda text: html.references(text).references))


def _of_gzip(body: bytes, head: HttpHead, limits: LinkLimits) -> BodyLinks:
    """`sitemap.xml.gz`: a compressed file, not a response with a content coding."""
    inner = zlib.decompressobj(wbits=31).decompress(body, limits.page_bytes)
    return _of_xml(inner, head, limits) if inner.lstrip()[:1] == b"<" else BodyLinks()


def _of_untyped(body: bytes, head: HttpHead, limits: LinkLimits) -> BodyLinks:
    """A response without a useful type: its first bytes decide."""
    start = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(b"%pdf-"):
        return _of_pdf(body, head, limits)
    if start.startswith(b"<?xml"):
        return _of_xml(body, head, limits)
    if start.startswith(
        (b"<!doctype html", b"<html", b"<head", b"<body", b"<!--", b"<script", b"<title", b"<meta")
    ):
        return _of_html(body, head, limits)
    if start.startswith(b"#extm3u"):
        return _of_playlist(body, head, limits)
    return BodyLinks()


Reader = Callable[[bytes, HttpHead, LinkLimits], BodyLinks]

READERS: dict[str, Reader] = {
    "text/html": _of_html,
    "application/xhtml+xml": _of_html,
    "application/vnd.wap.xhtml+xml": _of_html,
    "text/css": _of_css,
    "text/xml": _of_xml,
    "application/xml": _of_xml,
    "application/rss+xml": _of_xml,
    "application/json": _of_json,
    "text/json": _of_json,
    "application/vnd.apple.mpegurl": _of_playlist,
    "application/x-mpegurl": _of_playlist,
    "audio/mpegurl": _of_playlist,
    "audio/x-mpegurl": _of_playlist,
    "text/plain": _of_text,
    "text/javascript": _of_script,
    "application/javascript": _of_script,
    "application/x-javascript": _of_script,
    "application/ecmascript": _of_script,
    "text/ecmascript": _of_script,
    "application/pdf": _of_pdf,
    "application/x-pdf": _of_pdf,
}


def may_wait(reader: Reader) -> bool:
    """Whether a reader may wait for another process: dangerous formats are read there."""
    return reader in (_of_pdf, _of_untyped)


def find_reader(mime: str, url: str) -> Reader | None:
    """The function that reads the references of a type; None for a type without links."""
    reader = READERS.get(mime) or _reader_by_name(mime, url)
    if reader is None and mime in ("", "application/octet-stream"):
        return _of_untyped
    return reader


def _reader_by_name(mime: str, url: str) -> Reader | None:
    """The reader for a family of types, or for the file name if the type is not useful."""
    if mime.endswith("+xml"):
        return _of_xml
    if mime.endswith("+json"):
        return _of_json
    name = url.partition("?")[0].lower()
    if mime in _GZIP_TYPES and name.endswith(".xml.gz"):
        return _of_gzip
    if mime in ("", "application/octet-stream", "binary/octet-stream"):
        for ending, reader in _ENDINGS.items():
            if name.endswith(ending):
                return reader
    return None


_ENDINGS = {
    ".css": _of_css,
    ".js": _of_script,
    ".mjs": _of_script,
    ".json": _of_json,
    ".webmanifest": _of_json,
    ".m3u8": _of_playlist,
    ".xml": _of_xml,
    ".svg": _of_xml,
    ".pdf": _of_pdf,
}


def references_in_data_url(url: str) -> Iterator[Reference]:
    """Absolute addresses in a page or style sheet in a `data:` URL (RFC 2397); relative ones have no base."""
    header, comma, content = url[5:_LONGEST_DATA_URL].partition(",")
    mime = header.partition(";")[0].strip().lower()
    if not comma or mime not in ("text/html", "text/css", "image/svg+xml"):
        return
    is_base64 = header.rstrip().lower().endswith(";base64")
    try:
        decoded = b64decode(unquote_to_bytes(content)) if is_base64 else unquote_to_bytes(content)
    except ValueError:
        return
    text = decoded.decode("utf-8", "replace")
    inner = css.references(text) if mime == "text/css" else html.references(text).references
    yield from ((address, hop) for address, hop in inner if address.startswith(("http://", "https://")))
