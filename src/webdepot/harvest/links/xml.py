"""Links in XML: sitemaps, RSS, Atom, SVG, DASH manifests, and anything else with `href`.

Sitemaps 0.9 (https://www.sitemaps.org/protocol.html), RSS 2.0, Atom (RFC 4287), XLink, MPEG-DASH. Read as a
stream with libxml2 in its recovery mode: no entities are expanded, nothing is fetched, elements are released
as soon as they end.

A feed repeats its pages: browsers, and our replay, show the text of its entries without their images. So an
image in the HTML of an entry is not a part of the feed, but a guess: it is fetched if it is in the scope, and
never from another host. What the feed itself names (its logo, enclosures, media) are its parts.
"""

import re
from collections.abc import Callable, Iterator
from io import BytesIO

from lxml import etree

from webdepot.harvest.links import css
from webdepot.harvest.links.names import names
from webdepot.harvest.links.reference import Reference
from webdepot.model import Hop

OfHtml = Callable[[str], list[Reference]]
_XHTML = "{http://www.w3.org/1999/xhtml}"
_TEMPLATE = re.compile(r"\{[^{}]*\}")
"""The value is put together by a style sheet (XSLT 1.0, 7.6.2) or by a reader (RFC 6570)."""

_TEXT_LINKS = {
    "link": Hop.LINK,
    "comments": Hop.LINK,
    "docs": Hop.LINK,
    "loc": Hop.MANIFEST,
    "guid": Hop.LINK,
    "origlink": Hop.LINK,
}
_TEXT_PARTS = frozenset({"icon", "logo", "url", "baseurl"})
_HTML_TEXT = frozenset({"description", "encoded", "content", "summary"})
_PART_TAGS = names(
    "audio content enclosure feimage font-face-uri image img initialization media object player "
    "representationindex script segmenturl source stylesheet thumbnail track use video"
)
_ADDRESS_ATTRIBUTES = frozenset(
    {"href", "src", "url", "sourceurl", "media", "initialization", "data", "poster"}
)
_EMBED_RELS = frozenset({"enclosure", "stylesheet", "icon"})


def references(data: bytes, *, of_html: OfHtml) -> Iterator[Reference]:
    """Addresses as written. `of_html` reads the escaped HTML in the descriptions of feeds."""
    events = ("end", "pi")
    parsing = etree.iterparse(
        BytesIO(data),
        events=events,
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
    )
    for event, element in parsing:
        if event == "pi":
            if element.target == "xml-stylesheet" and (href := element.attrib.get("href")):
                yield href, Hop.EMBED
        elif isinstance(element.tag, str):
            yield from _of_element(element, of_html)
            element.clear(keep_tail=True)
            parent = element.getparent()
            # Sitemaps have 50,000 siblings; cleared elements still take memory until they are removed.
            if parent is not None and len(parent) > 1:
                del parent[0]


def _of_element(element: etree._Element, of_html: OfHtml) -> Iterator[Reference]:
    namespace, _, tag = element.tag.rpartition("}")
    tag = tag.lower()
    text = (element.text or "").strip()
    if text.isdecimal():  # `slash:comments` says how many there are
        text = ""
    if text and tag in _TEXT_LINKS and not _is_plain_guid(element, tag):
        is_media = tag == "loc" and ("image" in namespace or "video" in namespace)
        yield text, Hop.EMBED if is_media else _TEXT_LINKS[tag]
    elif (text and tag in _TEXT_PARTS and " " not in text) or (
        text and tag in ("content_loc", "thumbnail_loc", "player_loc")
    ):
        yield text, Hop.EMBED
    elif tag in _HTML_TEXT and "<" in text:
        yield from ((address, _of_entry(hop)) for address, hop in of_html(text))
    elif tag == "style":
        yield from css.references(text)
    if element.attrib:
        yield from _of_attributes(element, tag)


def _of_attributes(element: etree._Element, tag: str) -> Iterator[Reference]:
    for name, value in element.attrib.items():
        local = name.rpartition("}")[2].lower()
        if (
            local in _ADDRESS_ATTRIBUTES
            and value
            and not value.startswith("#")
            and (local != "media" or "." in value)
            and not _TEMPLATE.search(value)
        ):
            yield value, _hop(element, tag)
        elif local == "style" and "url(" in value:
            yield from css.references(value)


def _hop(element: etree._Element, tag: str) -> Hop:
    rels = set((element.get("rel") or "").lower().split())
    hop = Hop.EMBED if tag in _PART_TAGS or rels & _EMBED_RELS else Hop.LINK
    return _of_entry(hop) if element.tag.startswith(_XHTML) and _is_in_entry(element) else hop


def _of_entry(hop: Hop) -> Hop:
    """The hop of an address in the HTML of a feed's entry."""
    return Hop.SPECULATIVE if hop is Hop.EMBED else hop


def _is_in_entry(element: etree._Element) -> bool:
    """Whether XHTML is in the text of an entry (RFC 4287, 3.1.1.3)."""
    return any(
        isinstance(outer.tag, str) and outer.tag.rpartition("}")[2].lower() in _HTML_TEXT
        for outer in element.iterancestors()
    )


def _is_plain_guid(element: etree._Element, tag: str) -> bool:
    return tag == "guid" and (
        (element.get("isPermaLink") or "").lower() == "false" or "://" not in (element.text or "")
    )
