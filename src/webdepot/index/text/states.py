"""From captures to states: the time model of the text index, independent of the engine.

A *run* is a sequence of captures of one page, in the order of time, that show the same words. It is valid
from its first capture until the first capture of the next run, so "as of a moment" is one comparison. An
index keeps one document per run and collection with all its capture times, so that a period means "captured
then" and a histogram counts captures. A capture with status 404 or 410 is also a run, without words: it ends
the run before it.

    captures   A A B B A          (A, B: digest of title, headings and text)
    runs       [A A][B B][A]      valid_from of each: its first capture; valid_to: valid_from of the next

New captures may come in any order (an old container imported later splits a run), so `merged` splits the runs
around the new captures and joins them again; runs farther away are not touched.
"""

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from webdepot.ports.search import PageText

FOREVER = 99_999_999_999_999
"""`valid_to` of the last run."""

LeavingCaptures = Counter[tuple[int, str]]
"""How many captures are removed from a page, by second and collection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The texts of a state, as its latest capture has them."""

    url: str
    mime: str
    size_bytes: int
    title: str
    headings: str
    text: str
    language: str
    words: bytes
    """Digest of title, headings and text: equal means the same state."""
    payloads: frozenset[str] = field(default_factory=frozenset)
    """Digests of the payloads that have these words."""
    format: str = ""
    likeness: int = 0
    images: str = ""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class SeenCapture:
    """One capture of a page."""

    stamp: int
    """The 14 digits as a number."""
    collection: str
    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRun:
    """Consecutive captures with the same words."""

    valid_from: int
    valid_to: int
    seen: Sequence[SeenCapture]

    @property
    def content(self) -> Content:
        """The content of the latest capture, with the payloads of all."""
        last = self.seen[-1].content
        payloads = frozenset().union(*(capture.content.payloads for capture in self.seen))
        return last if payloads == last.payloads else replace(last, payloads=payloads)


def content_of(page: PageText) -> Content:
    hasher = hashlib.blake2b(b"gone" if page.gone else b"", digest_size=16)
    for part in (page.title, page.headings, page.text):
        hasher.update(part.encode("utf-8", "replace") + b"\0")
    return Content(
        url=page.url,
        mime=page.mime,
        size_bytes=page.size_bytes,
        title=page.title,
        headings=page.headings,
        text=page.text,
        language=page.language,
        words=hasher.digest(),
        payloads=frozenset([page.digest] if page.digest and not page.gone else []),
        format=page.format,
        likeness=page.likeness,
        images=page.images,
        gone=page.gone,
    )


def touched(starts: Sequence[int], stamps: Iterable[int]) -> slice:
    """Which of the runs beginning at `starts` (ascending) new captures at `stamps` may change."""
    places = [bisect_right(starts, stamp) - 1 for stamp in stamps]
    return slice(max(min(places), 0), min(max(places) + 2, len(starts)))


def merged(known: Iterable[SeenCapture], new: Iterable[SeenCapture], *, until: int) -> list[StateRun]:
    """The runs of known and new captures together; `until` is where the next run begins. In the same second,
    known captures come first.
    """
    ordered = sorted([*known, *new], key=lambda capture: capture.stamp)
    groups = [list(group) for _, group in groupby(ordered, key=lambda capture: capture.content.words)]
    ends = ([group[0].stamp for group in groups] + [until])[1:]
    return [
        StateRun(valid_from=group[0].stamp, valid_to=end, seen=group)
        for group, end in zip(groups, ends, strict=True)
    ]


def remaining(
    known: Iterable[SeenCapture], gone: LeavingCaptures, payloads: frozenset[str]
) -> Iterator[SeenCapture]:
    """The captures of a page that remain when some are removed and some payloads no longer exist."""
    left = Counter(gone)
    for seen in known:
        place = seen.stamp, seen.collection
        if left[place] > 0:
            left[place] -= 1
            continue
        still = seen.content.payloads - payloads
        if still or not seen.content.payloads:
            yield (
                seen
                if still == seen.content.payloads
                else replace(seen, content=replace(seen.content, payloads=still))
            )
