"""The words of an HTML page: title, headings, main text, pictures, and the words of links that lead away.

Resiliparse's main content without menus and footers; where that leaves nothing, the whole text. Mark-up made to be slow (nested a thousand
deep, a tag of a hundred thousand attributes) is read without a tree, by patterns: Resiliparse is quadratic there.

Of links only those to other sites count, and those of the own site to documents that are no pages: the words of a site's own menus stand on
every page and say little, and working out the key of every link would take longer than all the rest.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from webdepot.url import find_canonical, host_of, key

_MOST_TAGS, _DEEPEST = 150_000, 800
_LONG_TAG = re.compile(r"<[^<>]{20000,}")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^<>]*?(/?)>")
# Elements that have no end tag, or need none: they do not nest.
_SHALLOW = frozenset(
    re.split(r"\s+", "area base br col embed hr img input link meta param source track wbr p li dt dd option tr td th thead tbody tfoot")
)
_UNSEEN = re.compile(r"<(script|style|template|noframes)\b|<!--", re.IGNORECASE)
_ANY_TAG = re.compile(r"<[^<>]*>")
_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)
_ENDINGS = r"\.(?:pdf|docx?|odt|pptx?|xlsx?|jpe?g|png|gif|zip|mp[34])"
_DOCUMENT = re.compile(_ENDINGS + r"\Z", re.IGNORECASE)
_LINK = re.compile(
    r"<a\s[^<>]{0,500}?href\s*=\s*[\"']?((?:https?:)?//[^\s\"'<>]{4,2000}|[^\s\"'<>]{1,2000}"
    + _ENDINGS
    + r")[\"']?(?=[\s>])[^<>]{0,500}>(.{1,1000}?)</a",
    re.IGNORECASE | re.DOTALL,
)
_PICTURE = re.compile(r"<img\s[^<>]{1,3000}>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\b(alt|title|src)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_MOST_LINKS, _MOST_PICTURES = 100, 100
_LONGEST_LINK, _LONGEST_PICTURE = 200, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlWords:
    title: str
    headings: str
    text: str
    images: str = ""
    links: tuple[tuple[str, str], ...] = ()


def words_of_html(text: str, url: str = "") -> HtmlWords:
    """Everything that is searched in a page. `url` is its own address, to tell links to other sites."""
    images, links = "\n".join(_pictures(text)), tuple(_links(text, url)) if url else ()
    if is_slow(text):
        title = _TITLE.search(text)
        plain = html.unescape(_ANY_TAG.sub(" ", " ".join(_seen(text))))
        return HtmlWords(title=html.unescape(title[1]) if title else "", headings="", text=plain, images=images, links=links)
    tree = HTMLTree.parse(text)
    body = tree.body
    headings = [node.text for node in body.query_selector_all("h1, h2, h3")] if body is not None else []
    main: str = extract_plain_text(tree, main_content=True, links=False, list_bullets=False)
    if not main.strip():
        main = extract_plain_text(tree, main_content=False, links=False, list_bullets=False, noscript=True)
    return HtmlWords(title=html.unescape(tree.title or ""), headings="\n".join(headings), text=main, images=images, links=links)


def is_slow(text: str) -> bool:
    """Whether a tree of this mark-up would take time out of proportion to its size."""
    tags = text.count("<")
    if tags > _MOST_TAGS or (len(text) > 20_000 and _LONG_TAG.search(text)):
        return True
    if tags < _DEEPEST:
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


def _seen(text: str) -> Iterator[str]:
    """The stretches between scripts, styles and comments; what is never closed runs to the end, as in a browser."""
    at, lower = 0, text.lower()
    while found := _UNSEEN.search(text, at):
        yield text[at : found.start()]
        end = f"</{found[1].lower()}" if found[1] else "-->"
        at = lower.find(end, found.end())
        if at < 0:
            return
        at += len(end) if end == "-->" else 0
    yield text[at:]


def _pictures(text: str) -> Iterator[str]:
    """For each picture its description and the words of its file name."""
    if "<img" not in text and "<IMG" not in text:
        return
    seen: set[str] = set()
    for found in _PICTURE.finditer(text):
        said = {name.lower(): html.unescape(one or two or three) for name, one, two, three in _ATTRIBUTE.findall(found[0])}
        source = said.get("src", "")
        name = "" if source.startswith("data:") else unquote(source.partition("?")[0].rpartition("/")[2])
        words = " ".join(filter(None, (said.get("alt", ""), said.get("title", ""), name)))[:_LONGEST_PICTURE]
        if words and words not in seen:
            seen.add(words)
            yield " ".join(words.split())
        if len(seen) >= _MOST_PICTURES:
            return


def _links(text: str, url: str) -> Iterator[tuple[str, str]]:
    """(key of the target, words) of links to other sites, and to documents of the own."""
    own, seen = host_of(url).lower().removeprefix("www."), set()
    for found in _LINK.finditer(text):
        place, _, rest = found[1].partition("//")
        is_absolute = bool(rest) and place.lower() in ("", "http:", "https:")
        if is_absolute and not _DOCUMENT.search(found[1]) and host_of(f"http://{rest}").lower().removeprefix("www.") == own:
            continue
        words = " ".join(html.unescape(_ANY_TAG.sub(" ", found[2])).split())[:_LONGEST_LINK]
        target = find_canonical(html.unescape(found[1]), url) if words else None
        if target is None or (target, words) in seen:
            continue
        seen.add((target, words))
        yield key(target), words
        if len(seen) >= _MOST_LINKS:
            return
