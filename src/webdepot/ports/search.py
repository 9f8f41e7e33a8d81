"""The text index: what is indexed, how it is queried, and what it returns."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from webdepot.model import EVERYTHING, Capture
from webdepot.ports.engine import Engine
from webdepot.times import Period


@dataclass(frozen=True, slots=True, kw_only=True)
class PageText:
    """The text of one capture. A revisit whose original is in another container `repeats` it: same digest, no
    text.
    """

    key: str
    url: str
    timestamp: str
    mime: str
    size_bytes: int
    collection: str
    title: str
    headings: str
    text: str
    language: str
    digest: str = ""
    """Of the payload."""
    repeats: bool = False
    gone: bool = False
    """The server answered that there is no such page (404, 410): no text, and the end of the previous state.
    """
    format: str = ""
    """PRONOM identifier, if known."""
    likeness: int = 0
    """Similarity hash of 64 bits: texts that are nearly the same differ in few bits. 0 if the text is too
    short.
    """
    images: str = ""
    """Names and descriptions of the images on the page."""
    links: tuple[tuple[str, str], ...] = ()
    """Key of the target and text of the link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """The pages of one container in a file (`index/page_files.py`)."""

    container: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedArea:
    """Captures the reader must not learn about, with timestamps from `first` to `last`."""

    prefix: str
    """Start of the keys that are closed."""
    but: tuple[str, ...] = ()
    """Longer prefixes whose keys are not in this area."""
    first: str = "0" * 14
    last: str = "9" * 14
    exact: bool = False
    """Closes the key `prefix` alone, not keys that begin with it."""
    but_keys: frozenset[str] = frozenset()
    """Single keys that are not in this area."""

    def __contains__(self, place: tuple[str, str]) -> bool:
        """Whether (key, timestamp) is in this area."""
        key, timestamp = place
        return self.first <= timestamp <= self.last and self.covers(key)

    def covers(self, key: str) -> bool:
        """Whether captures of this key are in the area, at some time."""
        if self.exact:
            return key == self.prefix
        return (
            key.startswith(self.prefix)
            and not (self.but and key.startswith(self.but))
            and key not in self.but_keys
        )


class SearchSort(StrEnum):
    RELEVANCE = "relevance"
    OLDEST = "oldest"
    NEWEST = "newest"


class Facet(StrEnum):
    """What page states of a result are counted by. Years are derived from the months of the captures."""

    SITE = "site"
    DOMAIN = "domain"
    COLLECTION = "collection"
    FORMAT = "format"
    LANGUAGE = "language"


class PagePart(StrEnum):
    """The parts of a page that a query can be limited to."""

    TITLE = "title"
    HEADINGS = "headings"
    ADDRESS = "address"
    TEXT = "text"
    IMAGE = "image"
    ANCHOR = "anchor"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextQuery:
    """A parsed query. Every word and phrase is required, unless it is in a group of alternatives."""

    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    alternatives: tuple[tuple[str, ...], ...] = ()
    """Groups of which one word or phrase must match."""
    excluded: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    mimes: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    parts: tuple[tuple[PagePart, str], ...] = ()
    """Words or phrases that must be in one part of the page."""
    keys: tuple[str, ...] = ()
    """Only these pages."""
    catalogue: tuple[tuple[str, str], ...] = ()
    """Conditions on the catalogue record of the site: `author`, `genre` or `keyword`, and the text. Indexes
    do not know the catalogue: the caller turns these conditions into `sites`.
    """
    period: Period | None = None
    as_of: datetime | None = None
    """Pages as they were at that moment: the state shown by the last capture before it."""
    collection: str = EVERYTHING
    closed: tuple[ClosedArea, ...] = ()
    """Captures that must not be shown or counted."""
    anchors: bool = True
    """Whether the text of links to a page counts. It is on other pages, which may have been closed since."""
    sort: SearchSort = SearchSort.RELEVANCE
    offset: int = 0
    limit: int = 10
    histogram: bool = True
    """Whether the captures are counted by month."""
    facets: tuple[Facet, ...] = ()
    fold: bool = False
    """Of several pages with nearly the same text show only the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One page that matches, shown by its best matching state."""

    key: str
    url: str
    timestamp: str
    title: str
    snippet: str
    """Plain text; the matching words are the `marks`."""
    marks: tuple[tuple[int, int], ...]
    """Character ranges of the snippet to highlight, ascending, not overlapping."""
    mime: str
    size_bytes: int
    language: str
    versions: int
    """Number of captures of the page that show the matching states."""
    score: float
    format: str = ""
    similar: int = 0
    """Number of pages with nearly the same text that were left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    pages: int
    """How many pages match; `exact` says whether it is counted or estimated."""
    exact: bool
    hits: Sequence[Hit]
    months: Mapping[int, int] = field(default_factory=dict)
    """Matching captures by month, as the number YYYYMM."""
    facets: Mapping[Facet, Sequence[tuple[str, int]]] = field(default_factory=dict)
    """Matching pages by value, most frequent first, at most `MOST_VALUES`; estimates, as `pages`."""

    @property
    def years(self) -> Mapping[int, int]:
        """Matching captures by year."""
        years: dict[int, int] = {}
        for month, count in self.months.items():
            years[month // 100] = years.get(month // 100, 0) + count
        return years


MOST_VALUES = 10
"""Maximum number of values that are counted for a facet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A matching state of a page as stored in the index, for lists of versions, explanations and exports."""

    key: str
    url: str
    collection: str
    timestamps: tuple[str, ...]
    """Its captures that match the query and that the reader may see, ascending."""
    valid_from: str
    valid_to: str
    """Timestamp of the first capture that shows something else; all nines if there is none."""
    title: str
    headings: str
    text: str
    anchors: str
    """Texts of links to the page from other sites."""
    own_anchors: str
    """Texts of links to the page from its own site."""
    home: str
    """What counts once more because the page is a site's home page; empty where nothing does."""
    images: str
    mime: str
    format: str
    size_bytes: int
    language: str
    digest: str
    """A payload digest of one of its captures."""


class TextIndex(Protocol):
    """Full text by time. A cache: it can be deleted and rebuilt from the depot. Any number of processes read
    and write it; if it belongs to one machine, writers wait for each other.

    Writing may be interrupted, and is then repeated. Until then, an index on a server may show part of what
    was written; one on this machine shows none of it.

    The unit is the state of a page: a series of captures with the same text. `period` selects captures in
    that period, `as_of` the states valid at that moment. Case and accents are ignored.
    """

    def add(self, container: str, pages: Iterable[PageText]) -> int:
        """Add the pages of a container; returns how many. A container that is already there changes nothing
        (0). When this returns, readers see all of it. If it fails, the container is not there, and adding it
        again has the same result as if nothing had happened: no capture is counted twice.
        """

    def add_files(
        self,
        files: Sequence[PageFile],
        engine: Engine,
        *,
        formats: Callable[[Iterable[str]], Mapping[str, str]],
    ) -> int:
        """Add the pages of several containers, each as with `add`, with the processes of `engine`; returns
        how many. `formats` finds PRONOM identifiers of payloads by digest.
        """

    def remove(
        self, container: str, captures: Iterable[tuple[str, Capture]], *, payloads: Sequence[str] = ()
    ) -> int:
        """Remove a container: its captures, each with its collection, are removed from their states; returns
        how many. If it fails, the container is still there, and can be removed again.

        `payloads` are digests whose bytes no longer exist: a state without any other payload is removed
        with all its captures, because revisits of those bytes have no text either. A container that is not
        there changes nothing (0).
        """

    def clear(self) -> None:
        """Delete everything, before a rebuild."""

    def containers(self) -> frozenset[str]: ...

    def having(self, containers: Iterable[str]) -> frozenset[str]:
        """Those of these containers that are indexed. Costs no more in a large index."""

    def find(self, query: TextQuery) -> Hits: ...

    def scan(self, query: TextQuery) -> Iterator[State]:
        """Every matching state, all states of a page together; streams. Ignores sort, offset and limit of the
        query.
        """

    def words(self, prefix: str, *, limit: int) -> Sequence[tuple[str, int]]:
        """The most frequent words with that prefix, folded, and the number of states with each. **Closed
        states are counted, too**: before showing a word, the caller must check with `find` that the reader
        may know it.
        """

    def anchor(self, anchors: Iterable[tuple[str, str, str]], engine: Engine) -> int:
        """Set the text of links to pages, with the processes of `engine`: (key, text from other sites, text
        from the same site), each key once; returns how many pages changed. Keys that are not in the index are
        ignored.
        """

    def total(self) -> int:
        """Number of documents (page states)."""

    def dead(self) -> float:
        """Share of documents that were replaced but still take up space."""

    def compact(self, engine: Engine, *, most_dead: float = 0.0) -> None:
        """Rewrite those parts of the index in which the share of replaced documents is above `most_dead`,
        with the processes of `engine`; others may read and write meanwhile. A server may keep for half a
        minute what was just replaced.
        """

    def close(self) -> None: ...
