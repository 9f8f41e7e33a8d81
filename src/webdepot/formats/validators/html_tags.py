"""Check the nesting of tags in an HTML page: elements that are never closed, end tags without a start tag,
overlapping elements.

Parsers correct these silently (https://html.spec.whatwg.org/multipage/parsing.html#parse-errors), and the
fast parser used here reports only tokeniser errors. Optional end tags:
https://html.spec.whatwg.org/multipage/syntax.html#optional-tags.
"""

import re
from collections.abc import Iterator
from itertools import islice

MOST_DEPTH = 2000
MOST_ERRORS = 1000
_TAG = re.compile(
    r"<!--.*?(?:--!?>|\Z)|<!\[CDATA\[(?:(?!<!\[CDATA\[).)*?\]\]>|<[!?][^>]*+(?:>|\Z)"
    r"|<(/?)([A-Za-z][^\s/>]*+)([^>\"']*+(?:(?:\"[^\"]*\"|'[^']*')[^>\"']*+)*+)(?:>|\Z)",
    re.S,
)
_VOID = frozenset(
    ("area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
     "link", "meta", "param", "source", "track", "wbr")
)  # fmt: skip
_RAW = frozenset(("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"))
_OPTIONAL = frozenset(
    ("html", "head", "body", "li", "dt", "dd", "p", "rt", "rp", "rb", "rtc", "optgroup", "option", "colgroup",
     "caption", "thead", "tbody", "tfoot", "tr", "td", "th")
)  # fmt: skip
_CLOSES_P = frozenset(
    ("address", "article", "aside", "blockquote", "center", "details", "dialog", "dir", "div", "dl",
     "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
     "hgroup", "hr", "main", "menu", "nav", "ol", "p", "pre", "search", "section", "summary", "ul", "listing",
     "plaintext", "xmp", "li", "dd", "dt")
)  # fmt: skip
_SCOPE = frozenset(
    (
        "button",
        "td",
        "th",
        "caption",
        "table",
        "html",
        "template",
        "object",
        "applet",
        "marquee",
        "svg",
        "math",
    )
)
_FOREIGN = frozenset(("svg", "math"))


def errors_of(page: str) -> list[tuple[str, int]]:
    """The first errors, each with a description and the character where it is."""
    return list(islice(_iter_errors(page), MOST_ERRORS))


def _iter_errors(page: str) -> Iterator[tuple[str, int]]:
    stack: list[tuple[str, int]] = []
    foreign, at = 0, 0
    search = _TAG.search
    while tag := search(page, at):
        at = tag.end()
        is_end, name, attributes = tag.groups()
        if not name or page[at - 1] != ">":
            continue
        name = name.lower()
        if is_end:
            if stack and stack[-1][0] == name:
                stack.pop()
            else:
                yield from _closed(stack, name, tag.start())
            foreign = sum(1 for each, _ in stack if each in _FOREIGN) if name in _FOREIGN else foreign
            continue
        if foreign:
            if not attributes.rstrip().endswith("/"):
                stack.append((name, tag.start()))
                foreign += name in _FOREIGN
            continue
        if name in _VOID:
            continue
        if name in _CLOSES_P:
            yield from _close_p(stack, tag.start())
        if name in _FOREIGN:
            if attributes.rstrip().endswith("/"):
                continue
            foreign += 1
        if name == "plaintext" or len(stack) >= MOST_DEPTH:
            return
        if name in _RAW:
            end = re.compile(rf"</{name}(?=[\s/>])[^>]*+(?:>|\Z)", re.I).search(page, at)
            if not end or page[end.end() - 1] != ">":
                yield f"element {name} is never closed", tag.start()
                return
            at = end.end()
            continue
        stack.append((name, tag.start()))
    for name, place in stack:
        if name not in _OPTIONAL:
            yield f"element {name} is never closed", place


def _closed(stack: list[tuple[str, int]], name: str, place: int) -> Iterator[tuple[str, int]]:
    if name in _VOID and name != "br":
        return
    if not any(each == name for each, _ in reversed(stack)):
        if name not in ("html", "body", "head"):
            yield f"end tag {name} has no start tag", place
        return
    while True:
        open_name, open_place = stack.pop()
        if open_name == name:
            return
        if open_name not in _OPTIONAL:
            yield f"element {open_name} is still open where {name} ends", open_place


def _close_p(stack: list[tuple[str, int]], place: int) -> Iterator[tuple[str, int]]:
    """Close an open paragraph in scope, as a block element does."""
    for depth in range(len(stack) - 1, -1, -1):
        name = stack[depth][0]
        if name == "p":
            inner = [each for each in stack[depth + 1 :] if each[0] not in _OPTIONAL]
            del stack[depth:]
            # Parsers open formatting elements again after the paragraph, so they are not tracked any further.
            yield from ((f"element {each} is still open where a paragraph ends", at) for each, at in inner)
            return
        if name in _SCOPE:
            return
