"""Readable views of XML that browsers would show as run-on text: a feed as a list of its entries, any other
document as a tree.

RSS 0.9 to 2.0 (https://www.rssboard.org/rss-specification), RSS 1.0 (RDF), Atom (RFC 4287). Read with libxml2
in its recovery mode, as feeds are often broken: no entities are expanded, nothing is fetched.

Documents that browsers show themselves are left to them: XHTML, SVG, MathML, and XML with a CSS style sheet,
unless it is a feed: few of the style sheets of feeds hide the parts that only programs read, and an absolute
address of one would lead out of the archive. An XSLT style sheet does not count: its output could not be
rewritten, and browsers are dropping support for it (https://github.com/whatwg/html/issues/11523).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

from webdepot.text import untrusted_xml
from webdepot.text.entities import unescape
from webdepot.url import find_canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

MOST_BYTES = 8 << 20
"""A longer document is left to the browser."""
MOST_ENTRIES = 500
MOST_LINES = 5000
LONGEST_TEXT = 2000
_SHOWN_BY_BROWSERS = (
    "{http://www.w3.org/1999/xhtml}",
    "{http://www.w3.org/2000/svg}",
    "{http://www.w3.org/1998/Math/MathML}",
)
_FEEDS = frozenset({"rss", "feed", "rdf"})
_MARKUP = re.compile(r"<[^<>]*+>")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry:
    title: str
    url: str
    """Absolute; empty if the entry has no link."""
    date: str
    """As the feed writes it."""
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    title: str
    url: str
    """The page of the site that the feed belongs to; may be empty."""
    summary: str
    entries: tuple[FeedEntry, ...]


class XmlLineKind(StrEnum):
    OPEN = "open"
    CLOSE = "close"
    LEAF = "leaf"
    """An element without elements in it."""
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlLine:
    kind: XmlLineKind
    name: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlTree:
    title: str
    """The name of the root element."""
    lines: tuple[XmlLine, ...]
    is_cut: bool


def is_xml(mime: str) -> bool:
    """Whether documents of this media type may need a view."""
    return mime in ("text/xml", "application/xml") or (
        mime.endswith("+xml") and not mime.startswith("image/") and "html" not in mime
    )


def view_of(data: bytes, url: str) -> Feed | XmlTree | None:
    """What to show of a document with this address; None if browsers show it themselves, or if it cannot be
    read.
    """
    if len(data) > MOST_BYTES:
        return None
    from lxml import etree  # loaded when the first XML document is shown

    try:
        root = untrusted_xml.parse(data, recover=True)
    except (etree.XMLSyntaxError, ValueError):
        return None
    if root is None or root.tag.startswith(_SHOWN_BY_BROWSERS):
        return None
    if _name(root).lower() in _FEEDS:
        return _feed(root, url)
    return None if _has_css(root) else _tree(root)


def _has_css(root: "_Element") -> bool:
    before = root.itersiblings(preceding=True)
    return any(
        getattr(one, "target", "") == "xml-stylesheet" and one.get("type") == "text/css" for one in before
    )


def _feed(root: "_Element", url: str) -> Feed:
    # Atom has its fields in the root; RSS in <channel>, and RSS 1.0 its entries beside it.
    about = next((child for child in root if _name(child) == "channel"), root)
    entries = (one for one in root.iter() if _name(one) in ("item", "entry"))
    return Feed(
        title=_field(about, "title"),
        url=_link(about, url),
        summary=_field(about, "description", "subtitle", "tagline"),
        entries=tuple(
            FeedEntry(
                title=_field(entry, "title"),
                url=_link(entry, url),
                date=_field(entry, "pubDate", "published", "updated", "date", "issued", "modified"),
                summary=_field(entry, "description", "summary", "encoded", "content"),
            )
            for entry in islice(entries, MOST_ENTRIES)
        ),
    )


def _field(element: "_Element", *names: str) -> str:
    """The text of the first child with one of these names, in the order of the names, without markup."""
    for name in names:
        for child in element:
            if _name(child) == name and (text := _plain("".join(child.itertext()))):
                return text
    return ""


def _plain(text: str) -> str:
    # Feeds contain HTML as escaped text, sometimes escaped twice.
    return _SPACES.sub(" ", unescape(_MARKUP.sub(" ", text))).strip()[:LONGEST_TEXT]


def _link(element: "_Element", url: str) -> str:
    """The address of the page: in RSS the text of <link>, in Atom its `href`, unless it leads elsewhere."""
    for child in element:
        if _name(child) == "link" and child.get("rel", "alternate") == "alternate":
            reference = child.get("href") or (child.text or "").strip()
            if reference:
                return find_canonical(reference, url) or ""
    return ""


def _tree(root: "_Element") -> XmlTree:
    lines = tuple(islice(_lines(root), MOST_LINES + 1))
    return XmlTree(title=_name(root), lines=lines[:MOST_LINES], is_cut=len(lines) > MOST_LINES)


def _lines(root: "_Element") -> Iterator[XmlLine]:
    from lxml import etree

    for event, element in etree.iterwalk(root, events=("start", "end")):
        if not isinstance(element.tag, str):
            continue
        has_children = any(isinstance(child.tag, str) for child in element)
        text = (element.text or "").strip()[:LONGEST_TEXT]
        if event == "start":
            yield XmlLine(
                kind=XmlLineKind.OPEN if has_children else XmlLineKind.LEAF,
                name=_prefixed(element),
                attributes=tuple((_local(name), value) for name, value in element.items()),
                text="" if has_children else text,
            )
            if has_children and text:
                yield XmlLine(kind=XmlLineKind.TEXT, text=text)
        else:
            if has_children:
                yield XmlLine(kind=XmlLineKind.CLOSE, name=_prefixed(element))
            if element is not root and element.tail and element.tail.strip():
                yield XmlLine(kind=XmlLineKind.TEXT, text=element.tail.strip()[:LONGEST_TEXT])


def _prefixed(element: "_Element") -> str:
    return f"{element.prefix}:{_name(element)}" if element.prefix else _name(element)


def _name(element: "_Element") -> str:
    """The name without its namespace; empty for comments and the like."""
    return _local(element.tag) if isinstance(element.tag, str) else ""


def _local(name: str) -> str:
    # A prefix that was never declared is a part of the name.
    return name.rpartition("}")[2].rpartition(":")[2]
