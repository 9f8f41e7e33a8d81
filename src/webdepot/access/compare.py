"""Differences between two versions of a page: words, links and images that were added, removed or changed.
Pure functions on the bytes of the pages.

1. `read` parses a page: its lines of text (those of menus and footers separately), links with their texts,
   images with their descriptions, all addresses absolute;
2. `of_lines` aligns the lines of both (Ratcliff-Obershelp, difflib), and the words inside a changed line;
3. `added_and_removed` finds the links or images that only one of them has.

Pages are cut at `MOST_LINES`; the comparison says so.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import islice

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from webdepot.access.replay.server_rewrite import text_of
from webdepot.url import find_canonical

MOST_LINES = 3000
MOST_WORDS = 400
"""Longer lines are compared as a whole."""
MOST_ADDRESSES = 5000
AROUND = 2
"""Unchanged lines shown around a change."""
_ALIKE = 0.4
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_NAME = re.compile(r"[^\W_]+")
_LONGEST_MENU_WORDS, _LONGEST_LINK_WORDS = 40, 8
_MENU_AREAS = "nav, footer, [role=navigation], [role=contentinfo]"


class LineKind(StrEnum):
    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    SKIPPED = "skipped"
    """Unchanged lines that are not shown; `text` is their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePiece:
    kind: LineKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLine:
    kind: LineKind
    text: str
    pieces: tuple[LinePiece, ...] = ()
    """Of a changed line: the parts that are the same in both and those that are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedAddress:
    """The address of a link or an image, with its text or description."""

    url: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContent:
    """The parts of a page that are compared."""

    lines: tuple[str, ...] = ()
    menu_lines: tuple[str, ...] = ()
    """Lines of menus and footers: a new design changes all of them, and they say little about the page."""
    links: tuple[LinkedAddress, ...] = ()
    pictures: tuple[LinkedAddress, ...] = ()
    is_cut: bool = False


def read(data: bytes, content_type: str, url: str) -> PageContent:
    """The content of a page or of a plain text; empty for other types."""
    if "html" not in content_type:
        text = text_of(data, content_type) if content_type.startswith("text/") else ""
        return _of_text(text)
    tree = HTMLTree.parse(text_of(data, content_type))
    content = _of_text(
        extract_plain_text(
            tree,
            preserve_formatting=True,
            main_content=False,
            list_bullets=False,
            alt_texts=False,
            skip_elements=["noscript"],
        )
    )
    is_menu = _menu_test(tree)
    base = tree.document.query_selector("base[href]")
    at = find_canonical(base.getattr("href") or "", url) if base is not None else None
    return PageContent(
        lines=tuple(line for line in content.lines if not is_menu(line)),
        menu_lines=tuple(line for line in content.lines if is_menu(line)),
        links=tuple(_addresses(tree, "a[href]", "href", at or url)),
        pictures=tuple(_addresses(tree, "img[src]", "src", at or url)),
        is_cut=content.is_cut,
    )


def of_lines(before: Sequence[str], after: Sequence[str]) -> list[ComparedLine]:
    """The lines of both in one order; long stretches without a change are left out."""
    lines: list[ComparedLine] = []
    # Very frequent lines (autojunk) do not anchor the comparison: otherwise a page of equal lines takes
    # minutes.
    for step, first, last, from_, to in SequenceMatcher(None, before, after).get_opcodes():
        if step == "equal":
            lines += [ComparedLine(kind=LineKind.SAME, text=text) for text in after[from_:to]]
        else:
            lines += _changed(before[first:last], after[from_:to])
    return list(_shortened(lines))


def added_and_removed(
    before: Sequence[LinkedAddress], after: Sequence[LinkedAddress]
) -> tuple[list[LinkedAddress], list[LinkedAddress]]:
    """Addresses that only the later page has, and those that only the earlier has, in their order."""
    old, new = {address.url for address in before}, {address.url for address in after}
    added = [address for address in after if address.url not in old]
    removed = [address for address in before if address.url not in new]
    return added, removed


def _of_text(text: str) -> PageContent:
    lines = [stripped for line in text.splitlines() if (stripped := " ".join(line.split()))]
    return PageContent(lines=tuple(lines[:MOST_LINES]), is_cut=len(lines) > MOST_LINES)


def _menu_test(tree: HTMLTree) -> Callable[[str], bool]:
    """A test whether a line belongs to a menu or a footer: it is in an element for them, or has no word
    outside a link, as in "Home | News | Contact".
    """
    select = tree.document.query_selector_all
    areas = [_squeezed(area.text) for area in select(_MENU_AREAS)]
    linked = {tuple(_NAME.findall(link.text)) for link in islice(select("a[href]"), MOST_ADDRESSES)}

    def is_menu(line: str) -> bool:
        words = _NAME.findall(line)
        if tuple(words) in linked or any(_squeezed(line) in area for area in areas):
            return True
        if len(words) > _LONGEST_MENU_WORDS:
            return False
        at = 0
        while at < len(words):
            sizes = range(_LONGEST_LINK_WORDS, 0, -1)
            size = next((size for size in sizes if tuple(words[at : at + size]) in linked), 0)
            if not size:
                return False
            at += size
        return bool(words)

    return is_menu


def _squeezed(text: str) -> str:
    """Text without whitespace: the texts of an element's parts are not separated as its lines are."""
    return "".join(text.split())


def _addresses(tree: HTMLTree, selector: str, name: str, base: str) -> Iterator[LinkedAddress]:
    seen: set[str] = set()
    for element in tree.document.query_selector_all(selector):
        url = find_canonical(element.getattr(name) or "", base)
        if url is None or url in seen or len(seen) >= MOST_ADDRESSES:
            continue
        seen.add(url)
        text = element.getattr("alt") or "" if name == "src" else element.text
        yield LinkedAddress(url=url, words=" ".join((text or "").split())[:200])


def _changed(before: Sequence[str], after: Sequence[str]) -> Iterator[ComparedLine]:
    """Lines in the same place, paired; with the words that differ if the two are similar."""
    for at in range(max(len(before), len(after))):
        old, new = (side[at] if at < len(side) else "" for side in (before, after))
        pieces = _words(old, new) if old and new else None
        if pieces is not None:
            yield ComparedLine(
                kind=LineKind.REMOVED,
                text=old,
                pieces=tuple(piece for piece in pieces if piece.kind is not LineKind.ADDED),
            )
            yield ComparedLine(
                kind=LineKind.ADDED,
                text=new,
                pieces=tuple(piece for piece in pieces if piece.kind is not LineKind.REMOVED),
            )
            continue
        yield from (
            ComparedLine(kind=kind, text=text)
            for kind, text in ((LineKind.REMOVED, old), (LineKind.ADDED, new))
            if text
        )


def _words(old: str, new: str) -> list[LinePiece] | None:
    """Both lines in one, word by word; None if they have little in common or are very long."""
    before, after = _WORD.findall(old), _WORD.findall(new)
    if max(len(before), len(after)) > MOST_WORDS:
        return None
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return None
    pieces: list[LinePiece] = []
    for step, first, last, from_, to in matcher.get_opcodes():
        if step == "equal":
            pieces.append(LinePiece(kind=LineKind.SAME, text="".join(after[from_:to])))
            continue
        if last > first:
            pieces.append(LinePiece(kind=LineKind.REMOVED, text="".join(before[first:last])))
        if to > from_:
            pieces.append(LinePiece(kind=LineKind.ADDED, text="".join(after[from_:to])))
    return pieces


def _shortened(lines: Sequence[ComparedLine]) -> Iterator[ComparedLine]:
    changed = [at for at, line in enumerate(lines) if line.kind is not LineKind.SAME]
    near = {place for at in changed for place in range(at - AROUND, at + AROUND + 1)}
    skipped = 0
    for at, line in enumerate(lines):
        if at not in near:
            skipped += 1
            continue
        if skipped:
            yield ComparedLine(kind=LineKind.SKIPPED, text=str(skipped))
            skipped = 0
        yield line
    if skipped and changed:
        yield ComparedLine(kind=LineKind.SKIPPED, text=str(skipped))
