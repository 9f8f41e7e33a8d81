"""The searchable text of an HTML page: title, headings, main text, pictures, and the texts of links to other
sites.

The main text is Resiliparse's main content without menus and footers or, if that is empty, the whole text.
Markup made to be slow (nested a thousand deep, a tag of a hundred thousand attributes) is read by patterns,
without a tree, for its text only: Resiliparse takes quadratic time there.

Only links to other sites count, and links to documents (PDF, office) of the same site: the texts of a site's
own menus are on every page and say little, and computing the key of every link would take longer than all
the rest.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import DOMNode, HTMLTree

from webdepot.text.entities import unescape
from webdepot.url import find_canonical, host_of, key

_MOST_TAGS, _DEEPEST = 150_000, 800
_LONG_TAG_CHARS = 20_000
_LONG_TAG = re.compile(rf"<[^<>]{{{_LONG_TAG_CHARS},}}")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*+)[^<>]*+>")
# Elements without or with optional end tag: they do not nest.
_SHALLOW = frozenset(
    re.split(
        r"\s+",
        "area base br col embed hr img input link meta param source track wbr p li dt dd option "
        "tr td th thead tbody tfoot",
    )
)
_TEMPLATE = re.compile(r"<(/?)template\b([^<>]*)>", re.IGNORECASE)
_UNSEEN = re.compile(r"<(script|style|template|noframes)\b|<!--", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_ANY_TAG = re.compile(r"<[^<>]*>")
_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)
_DOCUMENTS = ("pdf", "doc", "docx", "odt", "ppt", "pptx", "odp", "xls", "xlsx", "ods")
_DOCUMENT = re.compile(r"\.(?:" + "|".join(_DOCUMENTS) + r")\Z", re.IGNORECASE)
# Whether a page may have a link to a document: a tenth of the time of searching for each ending.
_ANY_DOCUMENT = re.compile(r"\.(?:pdf|doc|od|ppt|xls)", re.IGNORECASE)
_ABSOLUTE = re.compile(r"\s*(?:https?:)?//(.+)", re.IGNORECASE)
# Selected by the parser: selecting links in Python took longer than extracting the text.
_AWAY = 'a[href^="http" i], a[href^="//"]'
_AWAY_OR_DOCUMENT = ", ".join([_AWAY, *(f'a[href$=".{ending}" i]' for ending in _DOCUMENTS)])
_MOST_LINKS, _MOST_PICTURES = 100, 100
_LONGEST_LINK, _LONGEST_PICTURE, _LONGEST_TARGET = 200, 300, 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePicture:
    source: str
    """The address as written in the page, usually relative."""
    words: str
    """Description, title and file name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlWords:
    title: str
    headings: str
    text: str
    images: str = ""
    links: tuple[tuple[str, str], ...] = ()


def words_of_html(text: str, url: str = "") -> HtmlWords:
    """The searchable text of a page. `url` is its own address, to recognise links to other sites."""
    text = _with_shadow_roots(text)
    if is_slow(text):
        title = _TITLE.search(text)
        return HtmlWords(title=unescape(title[1]) if title else "", headings="", text=_without_tags(text))
    tree = HTMLTree.parse(text)
    main: str = extract_plain_text(tree, main_content=True, links=False, list_bullets=False)
    if not main.strip():
        main = extract_plain_text(tree, main_content=False, links=False, list_bullets=False, noscript=True)
    page_title, body = unescape(tree.title or ""), tree.body
    if body is None:
        return HtmlWords(title=page_title, headings="", text=main)
    return HtmlWords(
        title=page_title,
        headings="\n".join([node.text for node in body.query_selector_all("h1, h2, h3")]),
        text=main,
        images="\n".join(picture.words for picture in _pictures(body)),
        links=tuple(_links(body, text, url)) if url else (),
    )


def shown_by_scripts(text: str, shown: str) -> str:
    """The lines shown in a browser that have a word which is not in the page: scripts have added them."""
    return added_lines(_without_tags(_with_shadow_roots(text)), shown)


def added_lines(own: str, shown: str) -> str:
    """The lines of a text that have a word which another text does not have."""
    known = set(_WORD.findall(own.lower()))
    return "\n".join(line for line in shown.splitlines() if not known.issuperset(_WORD.findall(line.lower())))


def pictures_of_html(text: str) -> list[PagePicture]:
    """The pictures of a page, each once, with their descriptions."""
    body = None if is_slow(text) else HTMLTree.parse(text).body
    return list(_pictures(body)) if body is not None else []


def is_slow(text: str) -> bool:
    """Whether parsing this markup would take too long for its size."""
    tags = text.count("<")
    if tags > _MOST_TAGS or (_has_stretch_without_tag(text) and _LONG_TAG.search(text)):
        return True
    if tags < _DEEPEST or _most_open(text) <= _DEEPEST:
        return False
    depth = 0
    for tag in _TAG.finditer(text):
        closing, name = tag.groups()
        if tag[0].endswith("/>") or name.lower() in _SHALLOW:
            continue
        depth = max(depth - 1, 0) if closing else depth + 1
        if depth > _DEEPEST:
            return True
    return False


def _has_stretch_without_tag(text: str) -> bool:
    """Whether there may be `_LONG_TAG_CHARS` characters without a tag: they would cover one of these parts,
    which have half that length.
    """
    half = _LONG_TAG_CHARS // 2
    return any(text.find("<", at, at + half) < 0 for at in range(0, len(text) - half + 1, half))


def _most_open(text: str) -> int:
    """An upper bound of the nesting depth, as if every tag nested: fast, and enough for most pages."""
    import numpy  # takes half a second to load; only indexing needs it

    data = numpy.frombuffer(text.encode("latin-1", "replace") + b" ", dtype=numpy.uint8)
    after = data[numpy.flatnonzero(data == ord("<")) + 1]
    steps = numpy.where(after == ord("/"), -1, (after | 0x20) - ord("a") < 26).astype(numpy.int32)
    depths = numpy.cumsum(steps)
    # Counted from the lowest point before: surplus end tags do not allow more depth later.
    return int((depths - numpy.minimum(numpy.minimum.accumulate(depths), 0)).max(initial=0))


def _with_shadow_roots(text: str) -> str:
    """The page with its declarative shadow roots (HTML, 4.12.3) as ordinary elements: a browser shows them,
    but not the content of other templates.
    """
    if "shadowrootmode" not in text:
        return text
    shown: list[bool] = []

    def replaced(tag: re.Match[str]) -> str:
        if not tag[1]:
            shown.append("shadowrootmode" in tag[2])
            return "<div>" if shown[-1] else tag[0]
        return "</div>" if shown and shown.pop() else tag[0]

    return _TEMPLATE.sub(replaced, text)


def _without_tags(text: str) -> str:
    return unescape(_ANY_TAG.sub(" ", " ".join(_visible(text))))


def _visible(text: str) -> Iterator[str]:
    """The text between scripts, styles and comments; one that is never closed runs to the end, as in a
    browser.
    """
    at, lower = 0, text.lower()
    while unseen := _UNSEEN.search(text, at):
        yield text[at : unseen.start()]
        end = f"</{unseen[1].lower()}" if unseen[1] else "-->"
        at = lower.find(end, unseen.end())
        if at < 0:
            return
        at += len(end) if end == "-->" else 0
    yield text[at:]


def _pictures(body: DOMNode) -> Iterator[PagePicture]:
    """Each picture with its description, title and file name."""
    seen: set[str] = set()
    for node in body.get_elements_by_tag_name("img"):
        source = node.getattr("src") or ""
        name = "" if source.startswith("data:") else source.partition("?")[0].rpartition("/")[2]
        name = unquote(name) if "%" in name else name
        description = " ".join(
            f"{node.getattr('alt') or ''} {node.getattr('title') or ''} {name}"[
                : 4 * _LONGEST_PICTURE
            ].split()
        )
        description = description[:_LONGEST_PICTURE]
        if description and description not in seen:
            seen.add(description)
            yield PagePicture(source=source, words=description)
        if len(seen) >= _MOST_PICTURES:
            return


def _links(body: DOMNode, text: str, url: str) -> Iterator[tuple[str, str]]:
    """Key of the target and text of links to other sites, and to documents of the same site."""
    own, seen = host_of(url).lower().removeprefix("www."), set()
    for node in body.query_selector_all(_AWAY_OR_DOCUMENT if _ANY_DOCUMENT.search(text) else _AWAY):
        href = (node.getattr("href") or "")[:_LONGEST_TARGET]
        away = _ABSOLUTE.match(href)
        is_other = away is not None and host_of(f"http://{away[1]}").lower().removeprefix("www.") != own
        if not is_other and not _DOCUMENT.search(href[-6:]):
            continue
        label = " ".join(node.text[: 4 * _LONGEST_LINK].split())[:_LONGEST_LINK]
        target = (_elsewhere(href) if away else _key_of(href, url)) if label else ""
        if not target or (target, label) in seen:
            continue
        seen.add((target, label))
        yield target, label
        if len(seen) >= _MOST_LINKS:
            return


@lru_cache(maxsize=10_000)
def _elsewhere(href: str) -> str:
    """The key of a link with a host, cached: many pages of a site have the same links."""
    return _key_of(href, "http://x/")


def _key_of(href: str, url: str) -> str:
    target = find_canonical(href, url)
    return key(target) if target is not None else ""
