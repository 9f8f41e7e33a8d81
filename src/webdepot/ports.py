"""The seven interfaces with more than one implementation. `tests/contracts/` has one suite for each.

An implementation is named by its means (`LmdbFrontier`, `SqliteCaptureIndex`); only `archive.py` picks one. A
little over 500 lines, because whoever writes an implementation should find every promise, with the values it
speaks of, in this one place.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Generic, Protocol, TypeVar

from webdepot.model import EVERYTHING, Candidate, Capture, Format, Visit
from webdepot.times import Period

Item = TypeVar("Item")
Result = TypeVar("Result")

# --- frontier ---


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierCounts:
    seen: int
    """Distinct keys ever added."""
    waiting: int
    in_flight: int
    done: int


class Frontier(Protocol):
    """Owns the whole life of a URI: seen once, queued by host, handed out politely, finished or tried again.

    Everything since the last `commit` is undone by a crash; on opening, what was handed out but not finished
    waits again. Times are seconds of a monotonic-like clock that the caller passes in. One process, one
    thread.
    """

    def add(self, candidates: Iterable[Candidate]) -> int:
        """Queue those never seen (by their exact address without session ids); how many that was."""

    def refuse(self, candidate: Candidate) -> bool:
        """Note one that will not be fetched; True the first time, so that it is logged once. It may still be
        added later.
        """

    def take(self, now_s: float) -> Candidate | None:
        """A candidate of a host that may be asked now and has none in flight; the host is held until `finish`
        or `retry`.
        """

    def next_due_s(self) -> float | None:
        """When `take` can next give something; None when nothing waits (some may still be in flight)."""

    def finish(self, candidate: Candidate, *, host_free_at_s: float) -> None:
        """The candidate's life is over; its host may be asked again from that time on."""

    def retry(
        self, candidate: Candidate, *, host_free_at_s: float, not_before_s: float = 0.0, counted: bool = True
    ) -> None:
        """Back to the front of its host's queue, with one more try counted unless it was not its own; before
        `not_before_s` others of the host go first.
        """

    def remove(self, gives_up: Callable[[str], bool]) -> int:
        """Give up what waits (not what is in flight) and whose address the callable names; how many. They
        stay seen.
        """

    def remember(self, key: str, value: bytes) -> None:
        """Keep a small fact of the caller (robots.txt of a host, totals) with the frontier; durable with the
        next commit.
        """

    def recall(self, key: str) -> bytes | None:
        """The fact last remembered under that key, committed or not."""

    def commit(self, marks: Mapping[str, int]) -> None:
        """Make all of the above durable, together with the caller's marks (file name -> acknowledged size)."""

    def marks(self) -> Mapping[str, int]:
        """The marks of the last commit."""

    def counts(self) -> FrontierCounts: ...

    def waiting_at(self, origin: str) -> int:
        """How many candidates of a scheme, host and port wait or are out."""

    def iter_waiting(self) -> Iterator[Candidate]:
        """What has not been fetched, for reports; order by host."""

    def close(self) -> None: ...


# --- fetching ---


class Fetcher(Protocol):
    """Asks one URL and returns exact bytes. Never raises for what servers and networks do: a failure is a
    `Visit`.
    """

    async def fetch(self, candidate: Candidate, headers: Sequence[tuple[str, str]] = ()) -> Visit:
        """`headers` are those of a script that asks; ours of the same name give way."""

    def known_server(self, origin: str) -> str:
        """Which server (address) a scheme, host and port would be asked at, if that is known at once; empty
        otherwise.
        """

    async def find_server(self, origin: str) -> str:
        """The same, finding out; empty when there is none."""

    async def close(self) -> None: ...


# --- captures index ---


Span = tuple[str, str]
"""A stretch of time as two timestamps, both included."""
ANY_TIME: tuple[Span, ...] = (("0" * 14, "9" * 14),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Of a capture in the index's order: where a walk that was left goes on."""

    key: str
    timestamp: str
    container: str
    offset: int


def place_of(capture: Capture) -> Position:
    return Position(
        key=capture.key,
        timestamp=capture.timestamp,
        container=capture.location.container,
        offset=capture.location.offset,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many captures of a key lie in one year, month or day."""

    label: str
    """The leading digits of their timestamps."""
    count: int
    first: str
    last: str
    changed: bool = False
    """Whether one of them has other bytes than the one before it; only where that was asked for."""


class CaptureIndex(Protocol):
    """Which versions exist. Rebuilt from containers at any time.

    Order is (key, timestamp), then containers in the order in which they were first added, then offset. A
    method that returns one capture gives, of several in one second, the last in that order. `collection`
    EVERYTHING means no restriction. No method reads all captures of a URL to answer about one. Digests come
    back in their normal spelling. Threads may share an index.

    `spans` are the stretches of time in which the asker may see captures, in order and apart; what lies
    outside is as if it were not there. The rules of access come in here and nowhere later, so that every
    surface gives the same answer.
    """

    def add(self, container: str, captures: Iterable[Capture], *, collection: str) -> int:
        """Put a container's captures in, in one transaction, replacing what the index had of it: repeatable."""

    def remove(self, container: str) -> None: ...

    def replace(self, captures: Iterable[Capture]) -> None:
        """Others stand in the place of these: they are counted no more and come back as `replaced`. Adding
        their container undoes it.
        """

    def containers(self) -> Iterator[tuple[str, int]]:
        """Every indexed container and its number of captures."""

    def of_container(self, container: str) -> Iterator[tuple[str, Capture]]:
        """Every capture of a container, with its collection."""

    def only_in(self, container: str) -> Sequence[str]:
        """Digests of payloads that this container has and no other."""

    def closest(
        self, key: str, timestamp: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        """The capture nearest in time (the earlier on a tie), whatever its status."""

    def first(
        self, key: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None: ...

    def last(
        self, key: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None: ...

    def before(
        self, key: str, timestamp: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None: ...

    def after(
        self, key: str, timestamp: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None: ...

    def versions(
        self,
        key: str,
        *,
        period: Period = Period(),  # noqa: B008 - frozen value
        collection: str = EVERYTHING,
        spans: Sequence[Span] = ANY_TIME,
        after: Position | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[Capture]:
        """Captures of one key by time, those behind a position alone where one is given; streams."""

    def count(self, key: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME) -> int: ...

    def tally(
        self,
        key: str,
        *,
        digits: int,
        period: Period = Period(),  # noqa: B008 - frozen value
        collection: str = EVERYTHING,
        spans: Sequence[Span] = ANY_TIME,
        loops: bool = False,
        changes: bool = False,
    ) -> Sequence[Tally]:
        """Captures of one key counted by their first 4 digits (years), 6 (months) or 8 (days), in order; 0
        counts all together.

        Redirects to the key itself are no versions to a reader: they are counted with `loops` only. `changes`
        tells where bytes changed, at the price of reading each capture of the period.
        """

    def scan(
        self,
        start: str,
        stop: str,
        *,
        collection: str = EVERYTHING,
        spans: Sequence[Span] = ANY_TIME,
        after: Position | None = None,
        limit: int | None = None,
    ) -> Iterator[Capture]:
        """Captures with start <= key < stop, in order, those behind a position alone where one is given;
        streams.
        """

    def count_keys(
        self, start: str, stop: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> int:
        """How many captures `scan` would give."""

    def find_digest(self, digest: str, *, url: str) -> Capture | None:
        """An earlier response of that URL with the same payload digest, for revisit records; any URL if that
        has none.
        """

    def newest(self, limit: int) -> Sequence[Capture]:
        """The latest HTML captures with status 200, one per key, newest first."""

    def total(self) -> int: ...

    def close(self) -> None: ...


# --- text index ---


@dataclass(frozen=True, slots=True, kw_only=True)
class PageText:
    """What the words of one capture are. A revisit whose original stands in another container `repeats` it:
    same digest, no text.
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
    """The server said that there is no such page (404, 410): no words, and the end of the state before it."""
    format: str = ""
    """PRONOM identifier, where it is known."""
    likeness: int = 0
    """64 bits that differ in few places where two texts are nearly the same; 0 where the text is too short to
    tell.
    """
    images: str = ""
    """Names and descriptions of the pictures on the page."""
    links: tuple[tuple[str, str], ...] = ()
    """Key of the target and words of the link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedArea:
    """Captures that whoever asks must not learn about: below `prefix`, but not below one of `but`, between
    two timestamps.
    """

    prefix: str
    but: tuple[str, ...] = ()
    first: str = "0" * 14
    last: str = "9" * 14

    def __contains__(self, place: tuple[str, str]) -> bool:
        """Whether (key, timestamp) lies in it."""
        key, timestamp = place
        return (
            key.startswith(self.prefix)
            and not (self.but and key.startswith(self.but))
            and self.first <= timestamp <= self.last
        )


class SearchSort(StrEnum):
    RELEVANCE = "relevance"
    OLDEST = "oldest"
    NEWEST = "newest"


class Facet(StrEnum):
    """What the states of a result are counted by. Years come from the months of the captures."""

    SITE = "site"
    DOMAIN = "domain"
    COLLECTION = "collection"
    FORMAT = "format"
    LANGUAGE = "language"


class PagePart(StrEnum):
    """Where in a page a word may be asked for."""

    TITLE = "title"
    HEADINGS = "headings"
    ADDRESS = "address"
    TEXT = "text"
    IMAGE = "image"
    ANCHOR = "anchor"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextQuery:
    """A parsed query. Every word and phrase is required, unless it stands in a group of alternatives."""

    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    alternatives: tuple[tuple[str, ...], ...] = ()
    """Each group needs one of its words or phrases."""
    excluded: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    mimes: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    parts: tuple[tuple[PagePart, str], ...] = ()
    """Words or phrases that must stand in one part of the page."""
    keys: tuple[str, ...] = ()
    """Only these pages."""
    catalogue: tuple[tuple[str, str], ...] = ()
    """What the catalogue must say of the site: `author`, `genre` or `keyword`, and words. No index knows:
    whoever asks narrows `sites`.
    """
    period: Period | None = None
    as_of: datetime | None = None
    """Pages as they stood then: the state that the last capture before that moment shows."""
    collection: str = EVERYTHING
    closed: tuple[ClosedArea, ...] = ()
    """What must not appear, nor be counted."""
    anchors: bool = True
    """Whether words of links to a page count. They stand on other pages, which may have been closed since."""
    sort: SearchSort = SearchSort.RELEVANCE
    offset: int = 0
    limit: int = 10
    histogram: bool = True
    """Whether the captures are counted by month."""
    facets: tuple[Facet, ...] = ()
    fold: bool = False
    """Show of several pages with nearly the same text only the best."""


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
    """Captures of the page that show the matching states."""
    score: float
    format: str = ""
    similar: int = 0
    """Pages with nearly the same text that were left out for this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    pages: int
    """How many pages match; `exact` says whether that is counted or estimated."""
    exact: bool
    hits: Sequence[Hit]
    months: Mapping[int, int] = field(default_factory=dict)
    """Matching captures by month, as the number YYYYMM."""
    facets: Mapping[Facet, Sequence[tuple[str, int]]] = field(default_factory=dict)
    """Matching states by value, most first, no more than `MOST_VALUES`."""

    @property
    def years(self) -> Mapping[int, int]:
        """Matching captures by year."""
        found: dict[int, int] = {}
        for month, count in self.months.items():
            found[month // 100] = found.get(month // 100, 0) + count
        return found


MOST_VALUES = 10
"""So many values of a facet are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A matching state of a page as the index keeps it, for lists of versions, explanations and exports."""

    key: str
    url: str
    collection: str
    timestamps: tuple[str, ...]
    """Its captures that the query asks for and the reader may see, ascending."""
    valid_from: str
    valid_to: str
    """First capture that shows something else; all nines while it stands."""
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
    """Words and time. A cache: thrown away and rebuilt from the depot. One writer at a time, any number of
    readers.

    The unit is the state of a page: a run of captures in which its words stayed the same. `period` asks for
    captures in it, `as_of` for states that stood then. Letters, digits and accents are compared without case
    and accent.
    """

    def add(self, container: str, pages: Iterable[PageText]) -> int:
        """Put a container's pages in and commit, all or nothing; how many. A container already there changes
        nothing (0).
        """

    def remove(
        self, container: str, captures: Iterable[tuple[str, Capture]], *, payloads: Sequence[str] = ()
    ) -> int:
        """Take a container out in one commit: its captures, each with its collection, leave their states; how
        many were there.

        `payloads` are digests whose bytes are nowhere any more: a state that has no other payload goes with
        all its captures, since what repeats those bytes has no words either. A container that is not there
        changes nothing (0).
        """

    def clear(self) -> None:
        """Forget everything, for a rebuild."""

    def containers(self) -> frozenset[str]: ...

    def find(self, query: TextQuery) -> Hits: ...

    def scan(self, query: TextQuery) -> Iterator[State]:
        """Every matching state, all states of a page together; streams. Order, offset and limit of the query
        do not count.
        """

    def words(self, prefix: str, *, limit: int) -> Sequence[tuple[str, int]]:
        """The most frequent words that begin so, folded, and in how many states each stands. **Closed states
        are counted too**: whoever shows such a word first asks with `find` whether the reader may know it.
        """

    def anchor(self, anchors: Iterable[tuple[str, str, str]]) -> int:
        """Give pages the words of links to them: (key, from other sites, from the site itself), in place of
        what they had; how many pages changed. Keys that the index has not got are passed over.
        """

    def total(self) -> int:
        """Documents (page states)."""

    def dead(self) -> float:
        """Share of documents that were replaced and still take room."""

    def compact(self) -> None:
        """Write the index anew without its dead documents; readers go on meanwhile."""

    def close(self) -> None: ...


# --- object store ---


class ObjectStore(Protocol):
    """Keys to bytes, for the depot. Keys are relative POSIX paths. A put is whole or absent, and durable on
    return.
    """

    def put(self, key: str, source: BinaryIO, *, overwrite: bool = False) -> int:
        """Bytes written; Conflict when the key exists and `overwrite` is not set."""

    def open(self, key: str, *, offset: int = 0, length: int | None = None) -> BinaryIO:
        """A stream of the bytes; NotFound when there is no such key."""

    def size(self, key: str) -> int | None:
        """None when there is no such key."""

    def keys(self, prefix: str = "") -> Iterator[str]: ...

    def delete(self, key: str) -> None: ...

    def local_path(self, key: str) -> Path | None:
        """The file itself where the store is a folder; None elsewhere."""


# --- engine ---


@dataclass(frozen=True, slots=True)
class Done(Generic[Item, Result]):
    """What came of one item: a result, or the words of its failure."""

    item: Item
    result: Result | None
    error: str = ""


class Engine(Protocol):
    """Runs one function over many items on many cores or machines. The function is importable, its values
    pickle.
    """

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Done[Item, Result]]:
        """Results as they come; one failing item is reported in its `Done` and stops nothing."""

    def close(self) -> None: ...


# --- formats ---


class FormatIdentifier(Protocol):
    """What a file is, by its bytes first."""

    @property
    def engine(self) -> str:
        """Name and version of engine and signatures, recorded with each result."""

    def identify(self, payload: bytes | Path, *, name: str, mime: str) -> Format:
        """`name` is the URL or file name (its extension is weak evidence), `mime` what the server said or
        empty.
        """
