"""The words of an HTML page: title, headings, main text, pictures, and the words of links that lead away.

Resiliparse's main content without menus and footers; where that leaves nothing, the whole text. Mark-up made
to be slow (nested a thousand deep, a tag of a hundred thousand attributes) is read without a tree, by
patterns, and gives text only: Resiliparse is quadratic there.

Of links only those to other sites count, and those of the own site to documents (PDF, office): the words of a
site's own menus stand on every page and say little, and working out the key of every link would take longer
than all the rest.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import DOMNode, HTMLTree

from webdepot.url import find_canonical, host_of, key

_MOST_TAGS, _DEEPEST = 150_000, 800
_LONG_TAG_CHARS = 20_000
_LONG_TAG = re.compile(rf"<[^<>]{{{_LONG_TAG_CHARS},}}")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^<>]*?(/?)>")
# Elements that have no end tag, or need none: they do not nest.
_SHALLOW = frozenset(
    re.split(
        r"\s+",
        "area base br col embed hr img input link meta param source track wbr p li dt dd option tr td th thead tbody tfoot",
    )
)
_UNSEEN = re.compile(r"<(script|style|template|noframes)\b|<!--", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_ANY_TAG = re.compile(r"<[^<>]*>")
_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)
_DOCUMENTS = ("pdf", "doc", "docx", "odt", "ppt", "pptx", "odp", "xls", "xlsx", "ods")
_DOCUMENT = re.compile(r"\.(?:" + "|".join(_DOCUMENTS) + r")\Z", re.IGNORECASE)
# Whether a page may have a link to a document at all: a tenth of the time of looking for each ending.
_ANY_DOCUMENT = re.compile(r"\.(?:pdf|doc|od|ppt|xls)", re.IGNORECASE)
_ABSOLUTE = re.compile(r"\s*(?:https?:)?//(.+)", re.IGNORECASE)
# Chosen by the parser: a line of Python for each link of a page took longer than its text.
_AWAY = 'a[href^="http" i], a[href^="//"]'
_AWAY_OR_DOCUMENT = ", ".join([_AWAY, *(f'a[href$=".{ending}" i]' for ending in _DOCUMENTS)])
_MOST_LINKS, _MOST_PICTURES = 100, 100
_LONGEST_LINK, _LONGEST_PICTURE, _LONGEST_TARGET = 200, 300, 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePicture:
    source: str
    """As the page says it: relative to the page, mostly."""
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
    """Everything that is searched in a page. `url` is its own address, to tell links to other sites."""
    if is_slow(text):
        said = _TITLE.search(text)
        return HtmlWords(title=html.unescape(said[1]) if said else "", headings="", text=_without_tags(text))
    tree = HTMLTree.parse(text)
    main: str = extract_plain_text(tree, main_content=True, links=False, list_bullets=False)
    if not main.strip():
        main = extract_plain_text(tree, main_content=False, links=False, list_bullets=False, noscript=True)
    title, body = html.unescape(tree.title or ""), tree.body
    if body is None:
        return HtmlWords(title=title, headings="", text=main)
    return HtmlWords(
        title=title,
        headings="\n".join([node.text for node in body.query_selector_all("h1, h2, h3")]),
        text=main,
        images="\n".join(picture.words for picture in _pictures(body)),
        links=tuple(_links(body, text, url)) if url else (),
    )


def shown_by_scripts(text: str, shown: str) -> str:
    """The lines of what was to be seen in a browser that have a word which does not stand in the page:
    scripts have put them there.
    """
    own = set(_WORD.findall(_without_tags(text).lower()))
    return "\n".join(line for line in shown.splitlines() if not own.issuperset(_WORD.findall(line.lower())))


def pictures_of_html(text: str) -> list[PagePicture]:
    """The pictures of a page, each once, with the words that are said about it."""
    body = None if is_slow(text) else HTMLTree.parse(text).body
    return list(_pictures(body)) if body is not None else []


def is_slow(text: str) -> bool:
    """Whether a tree of this mark-up would take time out of proportion to its size."""
    tags = text.count("<")
    if tags > _MOST_TAGS or (_has_stretch_without_tag(text) and _LONG_TAG.search(text)):
        return True
    if tags < _DEEPEST or _most_open(text) <= _DEEPEST:
        return False
    depth = 0
    for found in _TAG.finditer(text):
        closing, name, empty = found.groups()
        if empty or name.lower() in _SHALLOW:
            continue
        depth = max(depth - 1, 0) if closing else depth + 1
        if depth > _DEEPEST:
            return True
    return False


def _has_stretch_without_tag(text: str) -> bool:
    """Whether there may be a stretch of `_LONG_TAG_CHARS` without a tag: it would cover one of these, each
    half as long.
    """
    half = _LONG_TAG_CHARS // 2
    return any(text.find("<", at, at + half) < 0 for at in range(0, len(text) - half + 1, half))


def _most_open(text: str) -> int:
    """How deep the tags nest at most if every one of them did: quickly, since most pages are far from it."""
    import numpy  # brings half a second of start-up that only indexing needs

    data = numpy.frombuffer(text.encode("latin-1", "replace") + b" ", dtype=numpy.uint8)
    after = data[numpy.flatnonzero(data == ord("<")) + 1]
    steps = numpy.where(after == ord("/"), -1, (after | 0x20) - ord("a") < 26).astype(numpy.int32)
    depths = numpy.cumsum(steps)
    # From the lowest point before: what is closed too often does not make room for more.
    return int((depths - numpy.minimum(numpy.minimum.accumulate(depths), 0)).max(initial=0))


def _without_tags(text: str) -> str:
    return html.unescape(_ANY_TAG.sub(" ", " ".join(_seen(text))))


def _seen(text: str) -> Iterator[str]:
    """The stretches between scripts, styles and comments; what is never closed runs to the end, as in a
    browser.
    """
    at, lower = 0, text.lower()
    while found := _UNSEEN.search(text, at):
        yield text[at : found.start()]
        end = f"</{found[1].lower()}" if found[1] else "-->"
        at = lower.find(end, found.end())
        if at < 0:
            return
        at += len(end) if end == "-->" else 0
    yield text[at:]


def _pictures(body: DOMNode) -> Iterator[PagePicture]:
    """For each picture its description and the words of its file name."""
    seen: set[str] = set()
    for node in body.get_elements_by_tag_name("img"):
        source = node.getattr("src") or ""
        name = "" if source.startswith("data:") else source.partition("?")[0].rpartition("/")[2]
        name = unquote(name) if "%" in name else name
        said = " ".join(
            f"{node.getattr('alt') or ''} {node.getattr('title') or ''} {name}"[
                : 4 * _LONGEST_PICTURE
            ].split()
        )
        words = said[:_LONGEST_PICTURE]
        if words and words not in seen:
            seen.add(words)
            yield PagePicture(source=source, words=words)
        if len(seen) >= _MOST_PICTURES:
            return


def _links(body: DOMNode, text: str, url: str) -> Iterator[tuple[str, str]]:
    """(key of the target, words) of links to other sites, and to documents of the own."""
    own, seen = host_of(url).lower().removeprefix("www."), set()
    for node in body.query_selector_all(_AWAY_OR_DOCUMENT if _ANY_DOCUMENT.search(text) else _AWAY):
        href = (node.getattr("href") or "")[:_LONGEST_TARGET]
        away = _ABSOLUTE.match(href)
        is_other = away is not None and host_of(f"http://{away[1]}").lower().removeprefix("www.") != own
        if not is_other and not _DOCUMENT.search(href[-6:]):
            continue
        words = " ".join(node.text[: 4 * _LONGEST_LINK].split())[:_LONGEST_LINK]
        target = (_elsewhere(href) if away else _key_of(href, url)) if words else ""
        if not target or (target, words) in seen:
            continue
        seen.add((target, words))
        yield target, words
        if len(seen) >= _MOST_LINKS:
            return


@lru_cache(maxsize=10_000)
def _elsewhere(href: str) -> str:
    """The key of a link that says its host: many pages of a site link to the same places."""
    return _key_of(href, "http://x/")


def _key_of(href: str, url: str) -> str:
    target = find_canonical(href, url)
    return key(target) if target is not None else ""
