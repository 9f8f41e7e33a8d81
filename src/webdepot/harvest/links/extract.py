"""Links of an answer: what its headers and its body lead to, as canonical addresses with their hops.

Order of steps:
1. Headers: Location, Refresh, Link (RFC 8288), Content-Location.
2. The kind of the body, from its type, its first bytes and, last, its name.
3. The body, without transfer and content coding, as far as the limit goes (a bomb costs no more).
4. The references in it (`links_html`, `links_css`, `links_xml`, `links_data`), each once, joined with the
   page's base.

A page that answers an error is shown in replay, so its parts are taken, but its links lead nowhere good. What
cannot be read is noted and never an exception: one strange page does not end a harvest.
"""

import re
import time
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import BinaryIO, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from webdepot.container.http import HttpHead, content_decoded, transfer_decoded
from webdepot.harvest.fetch.encoding import decode
from webdepot.harvest.links import css, html, xml
from webdepot.harvest.links import data as links_data
from webdepot.harvest.politeness import robots
from webdepot.model import Hop
from webdepot.url import Url, find_canonical

Reference = tuple[str, Hop]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLimits:
    page_bytes: int = 16 << 20
    """So much of a body is read for links."""
    links: int = 50_000
    """So many links of one page are taken: as many as a sitemap may have."""
    time_s: float = 10.0
    """Processor time for the many links of one page, so that a busy machine loses none; the page is kept
    whole all the same.
    """
    guess: bool = False
    """Read addresses out of scripts, too."""
    agent: str = ""
    """Our name in meta robots and X-Robots-Tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    links: list[tuple[Url, Hop]]
    """Each address once, with the best hop by which it was found, in the order of the page."""
    note: str = ""
    """Annotations for the log: what was cut or could not be read."""
    directives: frozenset[str] = frozenset()
    """What the page says about itself in meta robots and X-Robots-Tag: `nofollow`, `noarchive`, …"""
    nofollow: frozenset[Url] = frozenset()
    """Links that were only found with `rel=nofollow`."""


def extract(url: Url, head: HttpHead, body: BinaryIO, limits: LinkLimits) -> Extracted:
    """The links of one answer. `body` is as it came over the wire and is read from its beginning. Never
    raises.
    """
    notes: list[str] = []
    told = _told(head)
    directives = robots.tag_directives(told.tags, limits.agent) if told.tags else _NONE
    nofollow: frozenset[Url] = frozenset()
    joined = _Joined(limits.links, limits.time_s)
    if told.leads:
        joined.add(_of_headers(head), url)
    kind = _KINDS.get(told.mime) or _kind_by_suffix(told.mime, url)
    if 300 <= head.status < 400 or kind is None:
        kind = (
            _of_nameless
            if told.mime in ("", "application/octet-stream") and not 300 <= head.status < 400
            else None
        )
    if kind is not None:
        body.seek(0)
        plain = (
            content_decoded(transfer_decoded(body, head), head, limit_bytes=limits.page_bytes + 1)
            if told.coded
            else body
        )
        data = plain.read(limits.page_bytes + 1)
        if len(data) > limits.page_bytes:
            notes.append(f"linksCutAtByte:{limits.page_bytes}")
            data = data[: limits.page_bytes]
        try:
            read = kind(data, head, limits)
            base = find_canonical(read.base, url) or url if read.base else url
            joined.add(read.found, base, read.encoding, parts_only=head.status >= 400)
            directives |= read.directives
            notes += [f"linksPartFailed:{name}" for name in sorted(read.unread)]
            if read.nofollow and head.status < 400:
                before = set(joined.links)
                joined.add(read.nofollow, base, read.encoding)
                nofollow = frozenset(joined.links.keys() - before)
        except Exception as error:
            notes.append(f"linksFailed:{type(error).__name__}")
    if joined.is_full:
        notes.append(f"linksCutAt:{limits.links}")
    if joined.is_late:
        notes.append(f"linksCutAtSecond:{limits.time_s:g}")
    return Extracted(
        links=list(joined.links.items()), note=",".join(notes), directives=directives, nofollow=nofollow
    )


class _Told(NamedTuple):
    """What headers say about the links of an answer."""

    mime: str
    coded: bool
    """There is a transfer or content coding to undo."""
    leads: bool
    """A header leads somewhere."""
    tags: list[str]
    """X-Robots-Tag."""


_NONE: frozenset[str] = frozenset()
_LEADING = frozenset({"location", "refresh", "content-location", "link"})
_CODED = frozenset({"transfer-encoding", "content-encoding"})


def _told(head: HttpHead) -> _Told:
    names = head.first.keys()
    tags = head.get_all("x-robots-tag") if "x-robots-tag" in names else []
    return _Told(_mime(head), not names.isdisjoint(_CODED), not names.isdisjoint(_LEADING), tags)


class _Joined:
    """Addresses found so far, each with its best hop."""

    def __init__(self, most: int, time_s: float) -> None:
        self.links: dict[Url, Hop] = {}
        self.is_full = False
        self.is_late = False
        self._most = most
        self._time_s = time_s
        self._until_s = 0.0

    def add(
        self, found: Iterable[Reference], base: str, encoding: str = "utf-8", *, parts_only: bool = False
    ) -> None:
        references = iter(found)
        while some := list(islice(references, _LOOK_AT_CLOCK)):
            self._add(some, _known_below(base, encoding), parts_only)
            if self.is_full:
                return
            if len(some) == _LOOK_AT_CLOCK and self._takes_too_long():
                self.is_late = True
                return

    def _takes_too_long(self) -> bool:
        """The clock begins with the first look at it: most pages have so few links that the system is never
        asked.
        """
        now_s = time.thread_time()
        self._until_s = self._until_s or now_s + self._time_s
        return now_s >= self._until_s

    def _add(self, some: list[Reference], known: "_Folder", parts_only: bool) -> None:
        raws, hops = zip(*some)
        addresses = list(map(known.__getitem__, raws))
        links, new = self.links, dict(zip(addresses, hops))
        is_plain = len(new) == len(addresses) or len(new) == len(set(zip(addresses, hops)))
        if (
            is_plain and not parts_only and links.keys().isdisjoint(new)
        ):  # each address was found in one way, as on most pages
            links.update(new)
        else:
            for address, hop in zip(addresses, hops):
                before = links.setdefault(address, hop) if hop is _EMBED or not parts_only else hop
                if before is not hop and RANK[hop] < RANK[before]:
                    links[address] = hop
        links.pop(_NOWHERE, None)
        for raw in known.taken_inline():
            self.add(_in_data_address(raw), known.page, parts_only=parts_only)
        while len(links) > self._most:
            links.popitem()
            self.is_full = True


class _Folder(dict[str, Url]):
    """What references of a folder's pages mean, empty for one that leads nowhere: pages of a site repeat
    their links, and a reference depends on the folder alone, but for one that begins with `?`. Letters
    outside ASCII depend on the encoding, too.
    """

    __slots__ = ("_inline", "encoding", "page")

    def __init__(self) -> None:
        self.page, self.encoding = "", ""
        """Of the page that is read."""
        self._inline: list[str] = []

    def __missing__(self, raw: str) -> Url:
        if raw[:5].lower() == "data:":
            self._inline.append(raw)
            return _NOWHERE
        address = _absolute(raw) if raw[:4] == "http" else None
        if address is None:
            address = _joined(raw, self.page, self.encoding)
            if raw[:1] not in ("?", "") and len(raw) <= _LONGEST_KEPT and raw.isascii():
                self[raw] = address
        return address

    def taken_inline(self) -> list[str]:
        """The `data:` addresses among those asked for since the last time."""
        if not self._inline:
            return self._inline
        taken, self._inline = self._inline, []
        return taken


def _absolute(raw: str) -> Url | None:
    """What a whole address means, wherever it stands: pages of all folders and hosts link to the same ones.
    None for what is none.
    """
    address = _ABSOLUTE.get(raw)
    if (
        address is None
        and raw.startswith(("http://", "https://"))
        and len(raw) <= _LONGEST_KEPT
        and raw.isascii()
    ):
        if len(_ABSOLUTE) >= _MOST_ABSOLUTE:
            _ABSOLUTE.clear()
        address = _ABSOLUTE[raw] = _joined(raw, "", "")
    return address


def _known_below(base: str, encoding: str) -> _Folder:
    """Of the folder of that page, ready to be asked for what stands on it. All folders together are bounded:
    at most so many, and none with more than its share.
    """
    path = base.partition("?")[0] if "?" in base else base
    folder = path[: path.rfind("/") + 1]
    known = _FOLDERS.get(folder)
    if known is None:
        if len(_FOLDERS) >= _MOST_FOLDERS:
            _FOLDERS.clear()
        known = _FOLDERS[folder] = _Folder()
    elif len(known) > _MOST_OF_FOLDER:
        known.clear()
    known.page, known.encoding = base, encoding
    return known


_EMBED = Hop.EMBED
_LOOK_AT_CLOCK = 128
_LONGEST_KEPT = 200
_ABSOLUTE: dict[str, Url] = {}
_MOST_ABSOLUTE = 50_000
_MOST_FOLDERS = 256
_MOST_OF_FOLDER = 2_000
_FOLDERS: dict[str, _Folder] = {}


def _in_data_address(raw: str) -> Iterator[Reference]:
    """Absolute addresses in a page or style that stands in a `data:` address (RFC 2397); relative ones have
    no base there.
    """
    kind, comma, data = raw[5:_LONGEST_DATA].partition(",")
    mime = kind.partition(";")[0].strip().lower()
    if not comma or mime not in ("text/html", "text/css", "image/svg+xml"):
        return
    try:
        text = (
            b64decode(unquote_to_bytes(data))
            if kind.rstrip().lower().endswith(";base64")
            else unquote_to_bytes(data)
        )
    except ValueError:
        return
    written = text.decode("utf-8", "replace")
    inner = css.references(written) if mime == "text/css" else html.references(written).found
    yield from ((address, hop) for address, hop in inner if address.startswith(("http://", "https://")))


_LONGEST_DATA = 256 << 10


def _joined(raw: str, base: str, encoding: str) -> Url:
    """The address a reference means; empty for none."""
    if not raw or raw[0] == "#":
        return _NOWHERE
    return find_canonical(raw if raw.isascii() else _query_in(raw, encoding), base) or _NOWHERE


_NOWHERE = Url("")


RANK = {
    hop: rank
    for rank, hop in enumerate(
        (Hop.REDIRECT, Hop.EMBED, Hop.LINK, Hop.MANIFEST, Hop.PREREQUISITE, Hop.SPECULATIVE)
    )
}
"""Of two ways to one address the one with the lower rank is taken."""


def _query_in(raw: str, encoding: str) -> str:
    """Letters in a query are sent in the page's own encoding (URL Standard, 5.3), others in UTF-8."""
    if encoding == "utf-8" or encoding.startswith("utf-16") or "?" not in raw:
        return raw
    path, _, rest = raw.partition("?")
    query, mark, fragment = rest.partition("#")
    quoted = "".join(
        letter if letter.isascii() else quote(letter.encode(encoding, "xmlcharrefreplace"))
        for letter in query
    )
    return f"{path}?{quoted}{mark}{fragment}"


# --- headers ---

_LINK_VALUE = re.compile(
    r"<([^>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+(?:\s*=\s*(?:\"(?:[^\"\\]|\\.)*\"|[^\s\",;]*))?)*)"
)
_REL = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s\",;]+))", re.IGNORECASE)


def _of_headers(head: HttpHead) -> Iterator[Reference]:
    for name, value in head.headers:
        match name.lower():
            case "location":
                # Python reads headers as Latin-1; servers send raw UTF-8 here.
                yield _utf8(value), Hop.REDIRECT if 300 <= head.status < 400 else Hop.LINK
            case "refresh":
                yield _utf8(html.refresh_target(value)), Hop.REDIRECT
            case "content-location":
                yield _utf8(value), Hop.LINK
            case "link":
                yield from _of_link_header(value)


def _of_link_header(value: str) -> Iterator[Reference]:
    for address, parameters in _LINK_VALUE.findall(value):
        rel = _REL.search(parameters)
        hop = html.rel_hop((rel[1] or rel[2]) if rel else "alternate")
        if hop is not None:
            yield _utf8(address), hop


def _utf8(value: str) -> str:
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


# --- bodies ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a body leads to."""

    found: Iterable[Reference] = ()
    base: str = ""
    """As written."""
    encoding: str = "utf-8"
    nofollow: Sequence[Reference] = ()
    directives: frozenset[str] = frozenset()
    unread: Iterable[str] = ()
    """Why parts of it could not be read."""


def _of_html(data: bytes, head: HttpHead, limits: LinkLimits) -> Body:
    text, encoding = decode(data, head.get("content-type") or "")
    page = html.references(text, guess=limits.guess, agent=limits.agent)
    return Body(
        found=page.found,
        base=page.base,
        encoding=encoding,
        nofollow=page.nofollow,
        directives=page.directives,
        unread=page.unread,
    )


def _of_css(data: bytes, head: HttpHead, limits: LinkLimits) -> Body:
    text, encoding = decode(data, head.get("content-type") or "")
    return Body(found=css.references(text), encoding=encoding)


def _of_json(data: bytes, head: HttpHead, limits: LinkLimits) -> Body:
    return Body(found=list(links_data.of_json(decode(data, "")[0])))


def _of_playlist(data: bytes, head: HttpHead, limits: LinkLimits) -> Body:
    return Body(found=links_data.of_playlist(decode(data, "")[0]))


def _of_text(data: bytes, head: HttpHead, limits: LinkLimits) -> Body:
    text, encoding = decode(data, head.get("content-type") or "")
    return Body(found=links_data.of_text(text), encoding=encoding)


def _of_script(data: bytes, head: HttpHead, limits: LinkLimits) -> Body:
    return Body(
        found=links_data.guesses(decode(data, head.get("content-type") or "")[0]) if limits.guess else ()
    )


def _of_pdf(data: bytes, head: HttpHead, limits: LinkLimits) -> Body:
    return Body(found=links_data.of_pdf(BytesIO(data), limit_time_s=limits.time_s))


def _of_xml(data: bytes, head: HttpHead, limits: LinkLimits) -> Body:
    if b"<html" in data[:2048].lower():
        return _of_html(data, head, limits)
    return Body(found=xml.references(data, of_html=lambda text: html.references(text).found))


def _of_gzip(data: bytes, head: HttpHead, limits: LinkLimits) -> Body:
    """`sitemap.xml.gz` is a compressed file, not a coded answer."""
    inner = zlib.decompressobj(wbits=31).decompress(data, limits.page_bytes)
    return _of_xml(inner, head, limits) if inner.lstrip()[:1] == b"<" else Body()


def _of_nameless(data: bytes, head: HttpHead, limits: LinkLimits) -> Body:
    """No type, or the one that says nothing: the first bytes must do."""
    start = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(b"%pdf-"):
        return _of_pdf(data, head, limits)
    if start.startswith(b"<?xml"):
        return _of_xml(data, head, limits)
    if start.startswith(
        (b"<!doctype html", b"<html", b"<head", b"<body", b"<!--", b"<script", b"<title", b"<meta")
    ):
        return _of_html(data, head, limits)
    if start.startswith(b"#extm3u"):
        return _of_playlist(data, head, limits)
    return Body()


_KINDS: dict[str, Callable[[bytes, HttpHead, LinkLimits], Body]] = {
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
    "application/pdf": _of_pdf,
    "application/x-pdf": _of_pdf,
}


def _kind_by_suffix(mime: str, url: str) -> Callable[[bytes, HttpHead, LinkLimits], Body] | None:
    """Families of types, and names where the type is of no help."""
    if mime.endswith("+xml"):
        return _of_xml
    if mime.endswith("+json"):
        return _of_json
    name = url.partition("?")[0].lower()
    if mime in ("application/gzip", "application/x-gzip", "application/octet-stream") and name.endswith(
        ".xml.gz"
    ):
        return _of_gzip
    if mime in ("", "application/octet-stream", "binary/octet-stream"):
        for ending, kind in _ENDINGS.items():
            if name.endswith(ending):
                return kind
    return None


_ENDINGS = {
    ".css": _of_css,
    ".json": _of_json,
    ".webmanifest": _of_json,
    ".m3u8": _of_playlist,
    ".xml": _of_xml,
    ".svg": _of_xml,
    ".pdf": _of_pdf,
}


def _mime(head: HttpHead) -> str:
    return (head.get("content-type") or "").partition(";")[0].strip().lower()
