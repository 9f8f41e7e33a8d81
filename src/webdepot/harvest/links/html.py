"""Links in HTML pages, by the HTML Living Standard (https://html.spec.whatwg.org/#attributes-3) and common
use.

turbohtml parses as browsers do, in time linear in the page, and lists the links in the attributes of the
standard, including srcset and refresh. We look for the rest with selectors: styles (`css`), lazy-loading
attributes, Open Graph, JSON-LD, parameters of objects and applets, event handlers. `references` gives
addresses as written, each with its hop, the page's base, and the nofollow directives of the page and its
links; whether these are obeyed is decided elsewhere.

Forms are not followed: sending one is an action, not reading.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter

import turbohtml

from webdepot.harvest.links import css, data, script
from webdepot.harvest.links.empty_pages import is_empty_document
from webdepot.harvest.links.names import names
from webdepot.harvest.links.reference import Reference
from webdepot.harvest.politeness import robots
from webdepot.model import Hop

_PART_RELS = names(
    "apple-touch-icon apple-touch-icon-precomposed apple-touch-startup-image fluid-icon icon image_src "
    "import manifest mask-icon modulepreload preload prefetch prerender stylesheet subresource"
)
_NO_RELS = names("dns-prefetch edituri pingback preconnect profile shortlink webmention wlwmanifest")
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

_LAZY = names(
    "data-src data-original data-lazy data-lazy-src data-lazyload data-hi-res-src data-image data-img "
    "data-img-src data-img-url data-bg data-bg-src data-background data-background-image data-background-src "
    "data-poster data-thumb data-thumb-src data-full data-full-url data-large data-large_image "
    "data-orig-file data-large-file data-medium-file data-retina data-2x data-echo data-flickity-lazyload "
    "data-interchange-src data-zoom-image data-video data-video-src data-mp4 data-webm data-audio-src "
    "data-pagespeed-lazy-src data-cfsrc data-hx-get data-spec-url hx-get lowsrc dynsrc spec-url"
)
_LAZY_SETS = ["data-srcset", "data-lazy-srcset", "data-original-set", "data-bgset"]
_LAZY_LINKS = ["data-href", "data-link", "data-url", "data-permalink"]
_HANDLERS = ["onclick", "onchange"]
_WATCHED = frozenset(
    (*_LAZY, *_LAZY_SETS, *_LAZY_LINKS, *_HANDLERS, "content", "manifest", "srcdoc", "style", "value")
)
_OF_ATTRIBUTES = frozenset((*_LAZY, *_LAZY_SETS, *_LAZY_LINKS, *_HANDLERS, "href"))
"""Those that `_of_attributes` reads."""
_OF_ELEMENTS = {
    "content": "meta[content]",
    "manifest": "html[manifest]",
    "srcdoc": "iframe[srcdoc]",
    "value": "param[value]",
}
"""Attributes that count only in one element."""
_MORE = ("base[href]", "script", "object", "applet", "style", "a[href^='javascript:' i]")
"""Selected one after the other, because the parser has an index of elements by name: one selector for all of
them takes twenty times as long.
"""
_META_PARTS = re.compile(
    r"(?i)(?:og|twitter):(?:image|video|audio|player)(?::(?:url|secure_url|src|stream))?\Z"
    r"|msapplication-(?:tileimage|config|square\w*logo|wide\w*logo)\Z"
    r"|(?:thumbnail|thumbnailurl|image|contenturl|embedurl)\Z"
)
_JUMP = re.compile(r"(?i)location|href|open\(|assign\(")
_MAIL = re.compile(r"(?i)[\w.+%-]++@(?:[a-z0-9-]+\.)+[a-z]{2,24}\Z")
_META_LINKS = re.compile(r"(?i)og:url\Z|(?:al:web:url|twitter:url)\Z|url\Z")
_PLAYER_PARAMETERS = names("data filename flashvars-src movie src url")
_CONDITION = re.compile(r"<!--\[if[^\]>]{0,200}\]>", re.IGNORECASE)
_CONDITION_END = "<![endif]-->"
_REFRESH = re.compile(
    r"[\s\d.]*+(?:[;,]|(?<=\s))\s*+(?:url\s*+=\s*+)?(?:\"([^\"]*)|'([^']*)|([^\"'\s].*))",
    re.IGNORECASE | re.DOTALL,
)
_LEAN = ".lean.js"
"""VitePress loads `page.lean.js` with a page, but `page.js` when a reader follows a link to it."""
_SRCSET = re.compile(r"([^\s,](?:\S*[^\s,])?)(?:\s++[^,(]*+(?:\([^()]*+\)[^,(]*+)*+)?")
MOST_NESTED = 3


@dataclass(slots=True, kw_only=True)
class PageLinks:
    """The references of an HTML page, as written."""

    base: str = ""
    references: list[Reference] = field(default_factory=list)
    nofollow: list[Reference] = field(default_factory=list)
    """Links with `rel=nofollow`."""
    directives: frozenset[str] = frozenset()
    """Directives of meta robots for all crawlers or for us."""
    generator: str = ""
    """The software that generated the page, as its meta generator states."""
    unread: set[str] = field(default_factory=set)
    """Names of the errors for parts that could not be read, for example a script with invalid JSON."""
    is_empty: bool = False
    """Whether the page is empty until scripts fill it."""


def references(text: str, *, guess: bool = False, nested: int = 0, agent: str = "") -> PageLinks:
    """All references of a page. `guess` also reads strings in scripts; `agent` is our name in meta robots."""
    if "shadowrootmode" in text:
        # The parser sets the content of a shadow root aside, but reads that of any other template.
        text = text.replace("shadowrootmode", "data-shadowrootmode")
    document = turbohtml.parse(text, positions=False)
    # Selecting by fifty attributes that no element has would take longer than parsing.
    attributes: set[str] = set().union(*map(attrgetter("attrs"), document.iter_elements()))
    page = PageLinks(is_empty=not nested and is_empty_document(document, text))
    links = document.links()
    hops = [
        _HOPS.get((element.tag, attribute)) or _hop(element, element.tag, attribute)
        for element, attribute, _ in links
    ]
    if "rel" in attributes and (unfollowed := set(document.select("[rel~=nofollow i]"))):
        page.nofollow += [
            (url, Hop.LINK)
            for (element, _, url), hop in zip(links, hops)
            if hop is Hop.LINK and element in unfollowed
        ]
        hops = [
            None if hop is Hop.LINK and element in unfollowed else hop
            for (element, _, _), hop in zip(links, hops)
        ]
    collected = page.references
    collected += [
        (url, hop)
        for (_, _, url), hop in zip(links, hops)
        if hop is not None and not (hop is Hop.LINK and "@" in url and _is_mail(url))
    ]
    if _LEAN in text:
        collected += [
            (f"{url.removesuffix(_LEAN)}.js", Hop.EMBED) for url, _ in collected if url.endswith(_LEAN)
        ]
    if "value" in attributes:
        for menu in document.select("select"):
            collected.extend(_of_menu(menu))
    modules = _named_modules(document) if "type" in attributes else {}
    for selector in (
        _selectors(frozenset(attributes & _WATCHED)) if not attributes.isdisjoint(_WATCHED) else _MORE
    ):
        for element in document.select(selector):
            if element.tag == "base":
                page.base = page.base or element.attr("href") or ""
            else:
                try:
                    collected.extend(_more(element, guess=guess, nested=nested, modules=modules))
                except (ValueError, RecursionError) as error:  # the rest of the page is still read
                    page.unread.add(type(error).__name__)
                if element.tag == "meta":
                    name = (element.attr("name") or "").lower()
                    if name in ("robots", agent.lower() or "robots"):
                        page.directives |= robots.page_directives(element.attr("content") or "")
                    elif name == "generator":
                        page.generator = page.generator or element.attr("content") or ""
    if "[" in text and "<!--[if" in text and nested < MOST_NESTED:
        for inner in _conditional_parts(text):
            collected.extend(references(inner, guess=guess, nested=nested + 1).references)
    return page


@lru_cache(maxsize=1024)
def _selectors(attributes: frozenset[str]) -> tuple[str, ...]:
    return (*_MORE, ",".join([_OF_ELEMENTS.get(name, f"[{name}]") for name in sorted(attributes)]))


def refresh_target(content: str) -> str:
    """The address in `5; url=/next.html`, of a header or a meta element (HTML, 4.2.5.3); empty if none."""
    match = _REFRESH.match(content[:4096])
    return (match[1] or match[2] or match[3] or "").strip() if match else ""


def _conditional_parts(text: str) -> Iterator[str]:
    """The HTML in conditional comments for Internet Explorer: `<!--[if IE]>…<![endif]-->`."""
    at = 0
    while begin := _CONDITION.search(text, at):
        end = text.find(_CONDITION_END, begin.end())
        if end < 0:
            return
        yield text[begin.end() : end]
        at = end


def _hop(element: turbohtml.Element, tag: str, attribute: str | None) -> Hop | None:
    """The hop of a link whose tag and attribute are not in `_HOPS`; None if it is not followed."""
    if attribute == "style" or tag == "style":
        return None  # `css` also handles escapes and more than url()
    if tag == "link" and attribute == "href":
        if element.attr("rev") and not element.attr("rel"):
            return None  # about this page: its author (`made`), often an email address, or what links to it
        return _rel_hop(
            (element.attr("rel") or "").lower().split(), has_item=element.attr("itemprop") is not None
        )
    if (tag, attribute) in _IGNORED:
        return None
    if tag == "meta":
        return None  # `_of_meta` knows more spellings of a refresh
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
        return Hop.LINK  # also xlink:href in SVG
    return Hop.EMBED


def _rel_hop(rels: list[str], *, has_item: bool = False) -> Hop | None:
    kinds = set(rels)
    if kinds & _PART_RELS:
        return Hop.EMBED
    if kinds & _NO_RELS:
        return None
    return Hop.LINK if rels or has_item else Hop.EMBED


def rel_hop(rel: str) -> Hop | None:
    """The hop of a `rel` in a Link header (RFC 8288); None if it is not followed."""
    return _rel_hop(rel.lower().split())


def _more(
    element: turbohtml.Element, *, guess: bool, nested: int, modules: Mapping[str, str]
) -> Iterator[Reference]:
    """References of an element that are not links in the standard."""
    tag = element.tag
    if tag == "meta":
        yield from _of_meta(element)
    elif tag == "script":
        yield from _of_script(element, guess=guess, modules=modules)
    elif tag in ("object", "applet"):
        yield from _of_object(element)
    elif tag == "param" and (element.attr("name") or "").lower() in _PLAYER_PARAMETERS:
        yield element.attr("value") or "", Hop.EMBED
    elif tag == "html" and (manifest := element.attr("manifest")):
        yield manifest, Hop.EMBED
    elif tag == "iframe" and (inner := element.attr("srcdoc")) and nested < MOST_NESTED:
        yield from references(inner, guess=guess, nested=nested + 1).references
    elif tag == "style":
        yield from css.references(element.text)
    if style := element.attr("style"):
        yield from css.references(style)
    if not _OF_ATTRIBUTES.isdisjoint(element.attrs):
        yield from _of_attributes(element)


def _of_attributes(element: turbohtml.Element) -> Iterator[Reference]:
    """Lazy-loading attributes and handlers."""
    for name in element.attrs:
        value = element.attr(name)
        if not value:
            continue
        if name in _LAZY:
            yield from ((url, Hop.EMBED) for url in _lazy_addresses(value))
        elif name in _LAZY_SETS:
            yield from ((url, Hop.EMBED) for url in srcset(value))
        elif name in _LAZY_LINKS:
            if data.looks_like_address(value):
                yield value, Hop.LINK
        elif name in _HANDLERS or (name == "href" and value[:11].lower() == "javascript:"):
            yield from data.guesses(value)


def _lazy_addresses(value: str) -> list[str]:
    if "url(" in value:
        return [url for url, _ in css.references(value)]
    return [value.strip()] if data.could_be_address(value) else []


def _of_meta(element: turbohtml.Element) -> Iterator[Reference]:
    if (element.attr("http-equiv") or "").strip().lower() == "refresh":
        yield refresh_target(element.attr("content") or ""), Hop.REDIRECT
        return
    name = element.attr("property") or element.attr("name") or element.attr("itemprop") or ""
    content = (element.attr("content") or "").strip()
    if not content or not data.could_be_address(content):
        return
    if _META_PARTS.match(name):
        yield content, Hop.EMBED
    elif _META_LINKS.match(name):
        yield content, Hop.LINK


def _of_script(element: turbohtml.Element, *, guess: bool, modules: Mapping[str, str]) -> Iterator[Reference]:
    text = element.text
    if not text:
        return  # its file is among the links
    kind = (element.attr("type") or "").strip().lower()
    if kind == "importmap":
        yield from ((address, Hop.EMBED) for address in script.files_of(text))
    elif "json" in kind or kind == "speculationrules":
        yield from data.of_json(text, guess="ld+json" not in kind)
    elif not kind or "javascript" in kind or "ecmascript" in kind or kind == "module":
        links = script.references(text, modules)
        yield from ((address, Hop.EMBED) for address in (*links.of_script, *links.of_page))
        if guess:
            yield from data.guesses(text)


def _named_modules(document: turbohtml.Document) -> dict[str, str]:
    modules: dict[str, str] = {}
    for element in document.select("script[type=importmap i]"):
        with suppress(ValueError, RecursionError):  # noted where its files are read
            modules |= script.names_of(element.text)
    return modules


def _of_menu(menu: turbohtml.Element) -> Iterator[Reference]:
    """The addresses of a menu that jumps to the chosen page: a handler says so, or most values are
    addresses.
    """
    values = [(option.attr("value") or "").strip() for option in menu.select("option[value]")]
    values = [value for value in values if value and value[0] != "#"]
    addresses = [value for value in values if value[0] == "?" or data.looks_like_address(value)]
    handler = menu.attr("onchange") or ""
    if _JUMP.search(handler) and "'" not in handler and '"' not in handler and "`" not in handler:
        # Without a quoted text in the handler, the value is the whole address.
        addresses = [value for value in values if data.could_be_address(value) and not value.isdigit()]
    if 2 * len(addresses) >= len(values):
        yield from ((address, Hop.LINK) for address in addresses)


def _is_mail(value: str) -> bool:
    """Whether it is an email address without its scheme, a common mistake; `photo@2x.jpg` is a file."""
    return _MAIL.match(value) is not None and not data.looks_like_address(value)


def _of_object(element: turbohtml.Element) -> Iterator[Reference]:
    """Old plug-ins: code and archives are relative to the codebase, if there is one."""
    folder = element.attr("codebase") or ""
    prefix = folder if not folder or folder.endswith("/") else f"{folder}/"
    code = element.attr("code") or ""
    files = [code if "." in code else f"{code}.class"] if code else []
    files += (element.attr("archive") or "").replace(",", " ").split()
    content = element.attr("data")
    if prefix and content:
        files.append(content)
    for name in files:
        yield (name if ":" in name else prefix + name), Hop.EMBED


def srcset(value: str) -> list[str]:
    """The addresses of a srcset (HTML, 4.8.4.2.2): `small.png 100w, large.png 2x`."""
    return [match[1] for match in _SRCSET.finditer(value) if match[1]]
