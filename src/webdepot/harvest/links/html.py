"""Links in HTML pages. HTML Living Standard, https://html.spec.whatwg.org/#attributes-3, and what pages
really use.

turbohtml parses as browsers do, in time linear in the page, and lists the links of the standard's own
attributes, srcset and refresh included. What it leaves to us is found with one selector: styles
(`links_css`), lazy-loading attributes, Open Graph, JSON-LD, parameters of objects and applets, handlers.
`references` gives addresses as written, each with its hop, the page's base, and what page and links say about
being followed (`nofollow`); whether that is obeyed is not decided here.

Forms are not followed: to send one is to act, not to read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter

import turbohtml

from webdepot.harvest.links import css
from webdepot.harvest.links import data as links_data
from webdepot.harvest.politeness import robots
from webdepot.model import Hop

Reference = tuple[str, Hop]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PART_RELS = _words(
    "apple-touch-icon apple-touch-icon-precomposed apple-touch-startup-image fluid-icon icon image_src import manifest "
    "mask-icon modulepreload preload prefetch prerender stylesheet subresource"
)
_NO_RELS = _words("dns-prefetch edituri pingback preconnect profile webmention wlwmanifest")
_CITING = frozenset({"blockquote", "q", "ins", "del"})
_HOPS: dict[tuple[str, str | None], Hop] = {
    **dict.fromkeys(
        (("a", "href"), ("area", "href"), ("img", "longdesc"), ("frame", "longdesc"), ("iframe", "longdesc")),
        Hop.LINK,
    ),
    **dict.fromkeys(
        (("img", "src"), ("script", "src"), ("img", "srcset"), ("source", "srcset"), ("iframe", "src")),
        Hop.EMBED,
    ),
}
_IGNORED = {
    ("form", "action"),
    ("button", "formaction"),
    ("input", "formaction"),
    ("a", "ping"),
    ("area", "ping"),
    ("base", "href"),
}

_LAZY = _words(
    "data-src data-original data-lazy data-lazy-src data-lazyload data-hi-res-src data-image data-img data-img-src data-img-url "
    "data-bg data-bg-src data-background data-background-image data-background-src data-poster data-thumb data-thumb-src "
    "data-full data-full-url data-large data-large_image data-orig-file data-large-file data-medium-file data-retina data-2x "
    "data-echo data-flickity-lazyload data-interchange-src data-zoom-image data-video data-video-src data-mp4 data-webm "
    "data-audio-src data-pagespeed-lazy-src data-cfsrc lowsrc dynsrc"
)
_LAZY_SETS = ["data-srcset", "data-lazy-srcset", "data-original-set", "data-bgset"]
_LAZY_LINKS = ["data-href", "data-link", "data-url", "data-permalink"]
_HANDLERS = ["onclick", "onchange"]
_WATCHED = frozenset(
    (*_LAZY, *_LAZY_SETS, *_LAZY_LINKS, *_HANDLERS, "content", "manifest", "srcdoc", "style", "value")
)
_OF_ELEMENTS = {
    "content": "meta[content]",
    "manifest": "html[manifest]",
    "srcdoc": "iframe[srcdoc]",
    "value": "param[value]",
}
"""Attributes that are watched in one element only."""
_MORE = ("base[href]", "script", "object", "applet", "style", "a[href^='javascript:' i]")
"""Asked for one after the other, a twentieth of the time that one selector for all of them takes: the parser
knows its elements by name.
"""
_META_PARTS = re.compile(
    r"(?i)(?:og|twitter):(?:image|video|audio|player)(?::(?:url|secure_url|src|stream))?\Z|msapplication-(?:tileimage|config|square\w*logo|wide\w*logo)\Z"
    r"|(?:thumbnail|thumbnailurl|image|contenturl|embedurl)\Z"
)
_META_LINKS = re.compile(r"(?i)og:url\Z|(?:al:web:url|twitter:url)\Z|url\Z")
_PLAYER_PARAMETERS = _words("data filename flashvars-src movie src url")
_CONDITION = re.compile(r"<!--\[if[^\]>]{0,200}\]>", re.IGNORECASE)
_CONDITION_END = "<![endif]-->"
_REFRESH = re.compile(
    r"[\s\d.]*[;,\s]\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|([^\"'\s].*))", re.IGNORECASE | re.DOTALL
)
_SRCSET = re.compile(r"\s*,*\s*(\S*[^\s,])(?:\s+[^,(]*(?:\([^)]*\)[^,(]*)*)?")
_ATTRIBUTES = attrgetter("attrs")
MOST_NESTED = 3


@dataclass(slots=True, kw_only=True)
class Page:
    """What an HTML page leads to, as written."""

    base: str = ""
    found: list[Reference] = field(default_factory=list)
    nofollow: list[Reference] = field(default_factory=list)
    """Links that ask not to be followed (`rel=nofollow`)."""
    directives: frozenset[str] = frozenset()
    """Words of meta robots for everybody or for us."""
    unread: set[str] = field(default_factory=set)
    """Why parts of it could not be read, by the names of errors: data in a script that is no JSON."""


def references(text: str, *, guess: bool = False, nested: int = 0, agent: str = "") -> Page:
    """All references of a page. `guess` also reads strings out of scripts; `agent` is our name in meta
    elements.
    """
    document = turbohtml.parse(text, positions=False)
    # Asking for fifty attributes that no element has would cost more than parsing did.
    attributes: set[str] = set().union(*map(_ATTRIBUTES, document.iter_elements()))
    page = Page()
    links = document.links()
    hops = [
        _HOPS.get((element.tag, attribute)) or _hop(element, element.tag, attribute)
        for element, attribute, _ in links
    ]
    if "rel" in attributes and document.select_one("[rel~=nofollow i]") is not None:
        page.nofollow += [
            (url, Hop.LINK)
            for (element, _, url), hop in zip(links, hops)
            if hop is Hop.LINK and _says_nofollow(element)
        ]
        hops = [
            None if hop is Hop.LINK and _says_nofollow(element) else hop
            for (element, _, _), hop in zip(links, hops)
        ]
    found = page.found
    found += [(url, hop) for (_, _, url), hop in zip(links, hops) if hop is not None]
    for selector in (
        _selectors(frozenset(attributes & _WATCHED)) if not attributes.isdisjoint(_WATCHED) else _MORE
    ):
        for element in document.select(selector):
            if element.tag == "base":
                page.base = page.base or element.attr("href") or ""
            else:
                try:
                    found.extend(_more(element, guess=guess, nested=nested))
                except (ValueError, RecursionError) as error:  # the rest of the page is read all the same
                    page.unread.add(type(error).__name__)
                if element.tag == "meta" and (element.attr("name") or "").lower() in (
                    "robots",
                    agent.lower() or "robots",
                ):
                    page.directives |= robots.page_directives(element.attr("content") or "")
    if "[" in text and "<!--[if" in text and nested < MOST_NESTED:
        for inner in _conditional_parts(text):
            found.extend(references(inner, guess=guess, nested=nested + 1).found)
    return page


def _says_nofollow(element: turbohtml.Element) -> bool:
    return "nofollow" in (element.attr("rel") or "").lower().split()


@lru_cache(maxsize=1024)
def _selectors(attributes: frozenset[str]) -> tuple[str, ...]:
    return (*_MORE, ",".join([_OF_ELEMENTS.get(name, f"[{name}]") for name in sorted(attributes)]))


def refresh_target(content: str) -> str:
    """The address in `5; url=/next.html`, of a header or a meta element (HTML, 4.2.5.3); empty where there is
    none.
    """
    found = _REFRESH.match(content[:4096])
    return (found[1] or found[2] or found[3] or "").strip() if found else ""


def _conditional_parts(text: str) -> Iterator[str]:
    """What Internet Explorer saw: `<!--[if IE]>…<![endif]-->`."""
    at = 0
    while begin := _CONDITION.search(text, at):
        end = text.find(_CONDITION_END, begin.end())
        if end < 0:
            return
        yield text[begin.end() : end]
        at = end


def _hop(element: turbohtml.Element, tag: str, attribute: str | None) -> Hop | None:
    """How a link of the standard's attributes leads on, where tag and attribute alone do not say; None when
    it is not followed.
    """
    if attribute == "style" or tag == "style":
        return None  # `links_css` undoes escapes, and knows more than url()
    if tag == "link" and attribute == "href":
        return _rel_hop(
            (element.attr("rel") or "").lower().split(), has_item=element.attr("itemprop") is not None
        )
    if (tag, attribute) in _IGNORED:
        return None
    if tag == "meta":
        return None  # `_of_meta` knows more ways to write a refresh
    if attribute == "cite" and tag in _CITING:
        return Hop.LINK
    if attribute in ("profile", "usemap", "codebase", "classid", "archive", "code", "data") and tag in (
        "applet",
        "object",
        "head",
        "img",
    ):
        return None if attribute != "data" else Hop.EMBED
    if tag == "a":
        return Hop.LINK  # also xlink:href in drawings
    return Hop.EMBED


def _rel_hop(rels: list[str], *, has_item: bool = False) -> Hop | None:
    kinds = set(rels)
    if kinds & _PART_RELS:
        return Hop.EMBED
    if kinds & _NO_RELS:
        return None
    return Hop.LINK if rels or has_item else Hop.EMBED


def rel_hop(rel: str) -> Hop | None:
    """The same for the Link header (RFC 8288)."""
    return _rel_hop(rel.lower().split())


def _more(element: turbohtml.Element, *, guess: bool, nested: int) -> Iterator[Reference]:
    """What the standard does not call a link."""
    tag = element.tag
    if tag == "meta":
        yield from _of_meta(element)
    elif tag == "script":
        yield from _of_script(element, guess=guess)
    elif tag in ("object", "applet"):
        yield from _of_object(element)
    elif tag == "param" and (element.attr("name") or "").lower() in _PLAYER_PARAMETERS:
        yield element.attr("value") or "", Hop.EMBED
    elif tag == "html" and (manifest := element.attr("manifest")):
        yield manifest, Hop.EMBED
    elif tag == "iframe" and (inner := element.attr("srcdoc")) and nested < MOST_NESTED:
        yield from references(inner, guess=guess, nested=nested + 1).found
    elif tag == "style":
        yield from css.references(element.text)
    if style := element.attr("style"):
        yield from css.references(style)
    if any(
        name.startswith(("data-", "on")) or name in ("lowsrc", "dynsrc", "href") for name in element.attrs
    ):
        yield from _of_attributes(element)


def _of_attributes(element: turbohtml.Element) -> Iterator[Reference]:
    """Lazy-loading attributes and handlers."""
    get = element.attr
    for name in element.attrs:
        value = get(name)
        if not value:
            continue
        if name in _LAZY:
            yield from ((url, Hop.EMBED) for url in _lazy_addresses(value))
        elif name in _LAZY_SETS:
            yield from ((url, Hop.EMBED) for url in srcset(value))
        elif name in _LAZY_LINKS:
            if links_data.looks_like_address(value):
                yield value, Hop.LINK
        elif name in _HANDLERS or (name == "href" and value[:11].lower() == "javascript:"):
            yield from links_data.guesses(value)


def _lazy_addresses(value: str) -> list[str]:
    if "url(" in value:
        return [url for url, _ in css.references(value)]
    return [value.strip()] if links_data.could_be_address(value) else []


def _of_meta(element: turbohtml.Element) -> Iterator[Reference]:
    if (element.attr("http-equiv") or "").strip().lower() == "refresh":
        yield refresh_target(element.attr("content") or ""), Hop.REDIRECT
        return
    name = element.attr("property") or element.attr("name") or element.attr("itemprop") or ""
    content = (element.attr("content") or "").strip()
    if not content or not links_data.could_be_address(content):
        return
    if _META_PARTS.match(name):
        yield content, Hop.EMBED
    elif _META_LINKS.match(name):
        yield content, Hop.LINK


def _of_script(element: turbohtml.Element, *, guess: bool) -> Iterator[Reference]:
    kind = (element.attr("type") or "").lower()
    if "json" in kind or kind in ("importmap", "speculationrules"):
        yield from links_data.of_json(element.text, guess="ld+json" not in kind)
    elif guess and (not kind or "javascript" in kind or kind == "module"):
        yield from links_data.guesses(element.text)


def _of_object(element: turbohtml.Element) -> Iterator[Reference]:
    """Old plug-ins: code and archives are relative to the codebase, where there is one."""
    folder = element.attr("codebase") or ""
    prefix = folder if not folder or folder.endswith("/") else f"{folder}/"
    code = element.attr("code") or ""
    names = [code if "." in code else f"{code}.class"] if code else []
    names += (element.attr("archive") or "").replace(",", " ").split()
    data = element.attr("data")
    if prefix and data:
        names.append(data)
    for name in names:
        yield (name if ":" in name else prefix + name), Hop.EMBED


def srcset(value: str) -> list[str]:
    """The addresses of a srcset (HTML, 4.8.4.2.2): divided by commas, each with a width or density behind a
    blank.
    """
    return [found[1] for found in _SRCSET.finditer(value) if found[1]]
