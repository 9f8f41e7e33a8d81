"""Two versions of a page side by side: which words, links and pictures came, went or changed. Pure functions
on the pages' bytes.

1. `read` takes a page apart: its lines of text, links with their words, pictures with their descriptions, all
   addresses absolute;
2. `of_lines` lays the lines of both beside each other (Ratcliff-Obershelp, difflib), and inside a changed
   line the words;
3. `came_and_went` tells which links or pictures only one of them has.

Pages are cut at `MOST_LINES`; the comparison says so.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from webdepot.access.replay.rewrite import text_of
from webdepot.url import find_canonical

MOST_LINES = 3000
MOST_WORDS = 400
"""Longer lines are told as a whole."""
MOST_ADDRESSES = 5000
AROUND = 2
"""So many unchanged lines stand around a change."""
_ALIKE = 0.4
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


class Kind(StrEnum):
    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    SKIPPED = "skipped"
    """Unchanged lines that are not shown; `text` is their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    kind: Kind
    text: str
    pieces: tuple[Piece, ...] = ()
    """Of a changed line: what is the same in both and what is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    url: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A page taken apart."""

    lines: tuple[str, ...] = ()
    links: tuple[Address, ...] = ()
    pictures: tuple[Address, ...] = ()
    is_cut: bool = False


def read(data: bytes, content_type: str, url: str) -> Taken:
    """A page or a plain text taken apart; nothing of what is neither."""
    if "html" not in content_type:
        text = text_of(data, content_type) if content_type.startswith("text/") else ""
        return _of_text(text)
    tree = HTMLTree.parse(text_of(data, content_type))
    found = _of_text(
        extract_plain_text(
            tree,
            preserve_formatting=True,
            main_content=False,
            list_bullets=False,
            alt_texts=False,
            skip_elements=["noscript"],
        )
    )
    base = tree.document.query_selector("base[href]")
    at = find_canonical(base.getattr("href") or "", url) if base is not None else None
    return Taken(
        lines=found.lines,
        links=tuple(_addresses(tree, "a[href]", "href", at or url)),
        pictures=tuple(_addresses(tree, "img[src]", "src", at or url)),
        is_cut=found.is_cut,
    )


def of_lines(before: Sequence[str], after: Sequence[str]) -> list[Line]:
    """The lines of both in one order, long stretches without a change left out."""
    lines: list[Line] = []
    # Lines that come very often (autojunk) do not anchor a comparison: without that, a page of equal lines
    # takes minutes.
    for step, first, last, from_, to in SequenceMatcher(None, before, after).get_opcodes():
        if step == "equal":
            lines += [Line(kind=Kind.SAME, text=text) for text in after[from_:to]]
        else:
            lines += _changed(before[first:last], after[from_:to])
    return list(_shortened(lines))


def came_and_went(before: Sequence[Address], after: Sequence[Address]) -> tuple[list[Address], list[Address]]:
    """What only the later, and what only the earlier has, in their order."""
    known, now = {one.url for one in before}, {one.url for one in after}
    return [one for one in after if one.url not in known], [one for one in before if one.url not in now]


def _of_text(text: str) -> Taken:
    lines = [stripped for line in text.splitlines() if (stripped := " ".join(line.split()))]
    return Taken(lines=tuple(lines[:MOST_LINES]), is_cut=len(lines) > MOST_LINES)


def _addresses(tree: HTMLTree, selector: str, name: str, base: str) -> Iterator[Address]:
    seen: set[str] = set()
    for element in tree.document.query_selector_all(selector):
        url = find_canonical(element.getattr(name) or "", base)
        if url is None or url in seen or len(seen) >= MOST_ADDRESSES:
            continue
        seen.add(url)
        words = element.getattr("alt") or "" if name == "src" else element.text
        yield Address(url=url, words=" ".join((words or "").split())[:200])


def _changed(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    """Lines that stand in the same place: one beside the other, with its words, where they are alike."""
    for at in range(max(len(before), len(after))):
        old, new = (side[at] if at < len(side) else "" for side in (before, after))
        pieces = _words(old, new) if old and new else None
        if pieces is not None:
            yield Line(
                kind=Kind.REMOVED,
                text=old,
                pieces=tuple(piece for piece in pieces if piece.kind is not Kind.ADDED),
            )
            yield Line(
                kind=Kind.ADDED,
                text=new,
                pieces=tuple(piece for piece in pieces if piece.kind is not Kind.REMOVED),
            )
            continue
        yield from (
            Line(kind=kind, text=text) for kind, text in ((Kind.REMOVED, old), (Kind.ADDED, new)) if text
        )


def _words(old: str, new: str) -> list[Piece] | None:
    """Both lines in one, word by word; None where they have little in common or are very long."""
    before, after = _WORD.findall(old), _WORD.findall(new)
    if max(len(before), len(after)) > MOST_WORDS:
        return None
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return None
    pieces: list[Piece] = []
    for step, first, last, from_, to in matcher.get_opcodes():
        if step == "equal":
            pieces.append(Piece(kind=Kind.SAME, text="".join(after[from_:to])))
            continue
        if last > first:
            pieces.append(Piece(kind=Kind.REMOVED, text="".join(before[first:last])))
        if to > from_:
            pieces.append(Piece(kind=Kind.ADDED, text="".join(after[from_:to])))
    return pieces


def _shortened(lines: Sequence[Line]) -> Iterator[Line]:
    changed = [at for at, line in enumerate(lines) if line.kind is not Kind.SAME]
    near = {place for at in changed for place in range(at - AROUND, at + AROUND + 1)}
    skipped = 0
    for at, line in enumerate(lines):
        if at not in near:
            skipped += 1
            continue
        if skipped:
            yield Line(kind=Kind.SKIPPED, text=str(skipped))
            skipped = 0
        yield line
    if skipped and changed:
        yield Line(kind=Kind.SKIPPED, text=str(skipped))
