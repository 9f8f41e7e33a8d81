"""The ports: eight interfaces behind which implementations can be exchanged, with the values they use.

An implementation is named by its means (`LmdbFrontier`, `SqliteCaptureIndex`). `archive.py` chooses the
implementation, except for frontier and fetcher, which a harvest opens itself. Every implementation passes the
suite of its port in `tests/contracts/`; the fetcher is tested in `tests/harvest`.

`Frontier` and `Fetcher` have one implementation each today, the other ports have several.

This module is a little over 500 lines long so that the author of an implementation finds the whole contract
in one place.
"""

# Longer than other modules so that all interfaces are in one place for those who implement them.

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, Protocol, TypeVar

from webdepot.errors import WebdepotError
from webdepot.model import EVERYTHING, Candidate, Capture, Format, Visit
from webdepot.times import Period

if TYPE_CHECKING:
    import sqlalchemy

Item = TypeVar("Item")
Result = TypeVar("Result")

# --- database ---


class DatabaseDialect(Protocol):
    """What `Database` needs of a kind of database beside SQL: one writer at a time, noticing commits, words
    for errors. Any thread may call it.
    """

    @property
    def engine(self) -> "sqlalchemy.Engine":
        """Opens connections."""

    @property
    def reading_options(self) -> Mapping[str, Any]:
        """Execution options of a connection that only reads and sees one moment."""

    def begin_writing(self, connection: "sqlalchemy.Connection") -> None:
        """Wait until no other transaction writes, in any process of any machine. Called first in each
        writing transaction; an error that `explain` knows if another one takes too long.
        """

    def end_writing(self, connection: "sqlalchemy.Connection") -> None:
        """Called last in each writing transaction, before it is committed."""

    def written(self) -> None:
        """Called after a transaction of this process was committed: `state` is another from now on."""

    def state(self) -> object | None:
        """A value that every commit of any process changes; None if that is not known."""

    def limited(self, connection: "sqlalchemy.Connection") -> AbstractContextManager[None]:
        """Ends queries when the budget of the request (`query_budget`) is spent."""

    def one_upgrade(self) -> AbstractContextManager[None]:
        """Only one process of all machines is in this block."""

    def restart_ids(self, connection: "sqlalchemy.Connection") -> None:
        """Give new rows ids above the existing ones."""

    def explain(self, error: "sqlalchemy.exc.DBAPIError") -> WebdepotError | None:
        """Our error if the disk, the server or the budget is the reason; None for a program error."""

    def close(self) -> None:
        """Close all connections."""


# --- frontier ---


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierCounts:
    seen: int
    """Distinct keys ever added."""
    waiting: int
    in_flight: int
    done: int


class Ledger(Protocol):
    """Makes checkpoints of a crawl valid. On one machine that is its frontier."""

    def commit(self, marks: Mapping[str, int]) -> None:
        """Make everything since the last call durable, all or nothing: the frontier, and the files up to the
        sizes in `marks`.
        """


class Handover(Protocol):
    """Brings links to the parts of a harvest that own their hosts. Every link arrives at least once, and only
    if the page that contains it is in a checkpoint.
    """

    def hand_over(self, owner: int, line: str) -> None:
        """Hand a line of JSON over to another part, with the next checkpoint."""

    def take(self) -> list[list[Any]]:
        """What was handed over to us since the last call; the next checkpoint says that it was received."""

    def sync(self) -> None:
        """Make everything handed over durable; called before each checkpoint."""

    def report_idle(self) -> None:
        """Report that nothing waits here, and that everything is in a checkpoint."""

    def report_busy(self) -> None:
        """Withdraw that, before anything is done with what was taken."""

    def is_over(self) -> bool:
        """Whether no part has anything to do, or none that this one must wait for."""

    def close(self) -> None: ...


class Servers(Protocol):
    """Turns at servers, shared by all crawls, so that together they are as polite as one. Times are
    `time.monotonic()`.
    """

    def begin(self, server: str) -> float:
        """0 if the server may be asked now, until `end`; otherwise the time to try again."""

    def end(self, server: str, free_at_s: float) -> None:
        """End a turn; the server may be asked again at that time."""

    def hold(self, server: str, until_s: float) -> None:
        """Leave a server alone at least until then."""

    def let_go(self) -> None:
        """Give other crawls their turn at servers that are not in use at the moment."""

    def close(self) -> None: ...


class Frontier(Protocol):
    """The queue of a harvest: each URI is added once, queued by host, handed out politely, then finished or
    retried.

    A crash undoes everything since the last `commit`; on opening, URIs that were handed out but not finished
    are queued again. Times are seconds of a monotonic clock that the caller passes in. One process, one
    thread.
    """

    def add(self, candidates: Iterable[Candidate], *, last: bool = False) -> int:
        """Queue candidates never seen before (by exact address, without session ids); returns how many. With
        `last` they come after the links and parts of their host.
        """

    def refuse(self, candidate: Candidate) -> bool:
        """Note a candidate that will not be fetched; True the first time, so that it is logged once. It may
        still be added later.
        """

    def take(self, now_s: float) -> Candidate | None:
        """A candidate of a host that may be asked now and has no request in flight. The host is then held
        until `finish` or `retry`.
        """

    def next_due_s(self) -> float | None:
        """When `take` can next return a candidate; None if none is queued (some may still be in flight)."""

    def finish(self, candidate: Candidate, *, host_free_at_s: float) -> None:
        """The candidate is done; its host may be asked again from that time on."""

    def retry(
        self, candidate: Candidate, *, host_free_at_s: float, not_before_s: float = 0.0, counted: bool = True
    ) -> None:
        """Put the candidate back at the front of its host's queue. The try is counted unless the failure was
        not this URL's fault (`counted` False). Until `not_before_s`, others of the host go first.
        """

    def remove(self, gives_up: Callable[[str], bool]) -> int:
        """Remove queued candidates (not those in flight) for whose address the callable returns True; returns
        how many. They still count as seen.
        """

    def remember(self, key: str, value: bytes) -> None:
        """Store a small value for the caller (robots.txt of a host, totals); durable with the next commit."""

    def recall(self, key: str) -> bytes | None:
        """The value last stored under that key, committed or not."""

    def commit(self, marks: Mapping[str, int]) -> None:
        """Make everything durable, together with the caller's marks (file name -> size known to be safe)."""

    def marks(self) -> Mapping[str, int]:
        """The marks of the last commit."""

    def counts(self) -> FrontierCounts: ...

    def waiting_at(self, origin: str) -> int:
        """How many candidates of an origin (scheme, host and port) are queued or in flight."""

    def iter_waiting(self) -> Iterator[Candidate]:
        """Candidates that have not been fetched, by host; for reports."""

    def close(self) -> None: ...


# --- fetching ---


class Fetcher(Protocol):
    """Requests one URL and returns the exact bytes. Failures of servers and networks are not raised, but
    returned as a `Visit`.
    """

    async def fetch(
        self, candidate: Candidate, headers: Sequence[tuple[str, str]] = (), body: bytes = b""
    ) -> Visit:
        """Fetch a candidate. `headers` come from a page's script and replace ours of the same name; a `body`
        is sent by POST.
        """

    def known_server(self, origin: str) -> str:
        """The address of the server of an origin, if it is known without a lookup; empty otherwise."""

    async def find_server(self, origin: str) -> str:
        """The address of the server of an origin, looked up if necessary; empty if there is none."""

    async def close(self) -> None: ...


# --- captures index ---


Span = tuple[str, str]
"""A period as two timestamps, both included."""
ANY_TIME: tuple[Span, ...] = (("0" * 14, "9" * 14),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The position of a capture in the order of the index: where to continue a scan."""

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
    """The captures of a key in one year, month or day."""

    label: str
    """The leading digits of their timestamps."""
    count: int
    first: str
    last: str
    changed: bool = False
    """Whether one of them has other bytes than the capture before it; only with `changes`."""


class CaptureIndex(Protocol):
    """The captures by address and time. Can be rebuilt from the containers at any time.

    The order is (key, timestamp), then the order in which containers were first added, then the offset. If
    several captures share a second, a method that returns one returns the last in that order. `collection`
    EVERYTHING means no restriction. No method reads all captures of a URL to answer about one. Digests are
    returned in their normalised form. Threads may share an index.

    `spans` are the periods in which the reader may see captures, in ascending order, not overlapping;
    captures outside are treated as if they did not exist. Access rules are applied here and nowhere later, so
    that every interface gives the same answer.
    """

    def add(self, container: str, captures: Iterable[Capture], *, collection: str) -> int:
        """Add the captures of a container in one transaction; those already there are replaced, so that it
        can be repeated. Returns how many. Any number of processes may add; two that add the same container
        wait for one another.
        """

    def remove(self, container: str) -> None:
        """Remove a container and its captures in one transaction; one that is not there changes nothing."""

    def replace(self, captures: Iterable[Capture]) -> None:
        """Mark captures as replaced (by those of a patch): they are not counted any more, and are returned
        with `replaced` set. Adding their container again undoes it.
        """

    def containers(self) -> Iterator[tuple[str, int]]:
        """Every indexed container and its number of captures, in the order in which they were first added."""

    def having(self, containers: Iterable[str]) -> frozenset[str]:
        """Those of these containers that are indexed. Costs no more in a large index."""

    def of_container(self, container: str) -> Iterator[tuple[str, Capture]]:
        """Every capture of a container: (collection, capture)."""

    def only_in(self, container: str) -> Sequence[str]:
        """Payload digests that are in this container and in no other."""

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
        """Captures of one key by time, with `after` only those after that position; streams."""

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
        """Count the captures of one key by the first 4 digits of the timestamp (years), 6 (months) or 8
        (days), in order; 0 counts all together.

        Redirects to the key itself are hidden from readers; they are counted only with `loops`. `changes`
        shows where bytes changed, but reads each capture of the period.
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
        """Captures with start <= key < stop in order, with `after` only those after a position; streams."""

    def count_keys(
        self, start: str, stop: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> int:
        """How many captures `scan` would return."""

    def find_digests(self, payloads: Sequence[tuple[str, str]]) -> Sequence[Capture | None]:
        """For each payload (digest, URL) an earlier response with the same digest, for revisit records: the
        first of that URL, or if there is none, one of any URL. One round trip to a server, however many are
        asked for.
        """

    def newest(self, limit: int) -> Sequence[Capture]:
        """The latest HTML captures with status 200, one for each key, newest first."""

    def total(self) -> int: ...

    def years(self, collection: str = EVERYTHING) -> Mapping[int, int]:
        """How many captures there are of each year that has any, in order; costs the same in any index."""

    def close(self) -> None: ...


# --- text index ---


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
    """Captures the reader must not learn about: keys that start with `prefix`, but not with one of `but`, and
    timestamps from `first` to `last`.
    """

    prefix: str
    but: tuple[str, ...] = ()
    first: str = "0" * 14
    last: str = "9" * 14

    def __contains__(self, place: tuple[str, str]) -> bool:
        """Whether (key, timestamp) is in this area."""
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

    Writing may be interrupted, and is then repeated: until that, an index on a server may show a part of what
    was written, one on this machine shows nothing of it.

    The unit is the state of a page: a series of captures with the same text. `period` selects captures in
    that period, `as_of` the states valid at that moment. Case and accents are ignored.
    """

    def add(self, container: str, pages: Iterable[PageText]) -> int:
        """Add the pages of a container; returns how many. A container that is already there changes nothing
        (0). When this returns, readers see all of it. If it fails, the container is not there, and adding it
        again gives the same as if nothing had happened: no capture is counted twice.
        """

    def add_files(
        self,
        files: Sequence[PageFile],
        engine: "Engine",
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

        `payloads` are digests whose bytes do not exist any more: a state without any other payload is removed
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

    def anchor(self, anchors: Iterable[tuple[str, str, str]], engine: "Engine") -> int:
        """Set the text of links to pages, with the processes of `engine`: (key, text from other sites, text
        from the same site), each key once; returns how many pages changed. Keys that are not in the index are
        ignored.
        """

    def total(self) -> int:
        """Number of documents (page states)."""

    def dead(self) -> float:
        """Share of documents that were replaced but still take up space."""

    def compact(self, engine: "Engine", *, most_dead: float = 0.0) -> None:
        """Rewrite those parts of the index of which more than the share `most_dead` are replaced documents,
        with the processes of `engine`; others may read and write meanwhile. A server may keep for half a
        minute what was just replaced.
        """

    def close(self) -> None: ...


# --- object store ---


class ObjectStore(Protocol):
    """Bytes by key, for the depot. Keys are relative POSIX paths. An object is stored completely or not at
    all, and is durable when `put` returns.
    """

    def put(self, key: str, source: BinaryIO, *, overwrite: bool = False) -> int:
        """Store an object; returns its size. Conflict if the key exists and `overwrite` is not set."""

    def open(self, key: str, *, offset: int = 0, length: int | None = None) -> BinaryIO:
        """A stream of the bytes; NotFound if there is no such key."""

    def size(self, key: str) -> int | None:
        """Size in bytes; None if there is no such key."""

    def keys(self, prefix: str = "") -> Iterator[str]: ...

    def delete(self, key: str) -> None: ...

    def local_path(self, key: str) -> Path | None:
        """The file of an object if the store is a folder; None otherwise."""


# --- engine ---


@dataclass(frozen=True, slots=True)
class Done(Generic[Item, Result]):
    """The outcome of one item: a result, or an error message."""

    item: Item
    result: Result | None
    error: str = ""


class Engine(Protocol):
    """Runs one function over many items, on several cores or machines. The function must be importable, its
    arguments and results must be picklable. When a worker dies, it may be run again for the same item: what
    it writes can be written twice. Threads may share an engine.
    """

    @property
    def workers(self) -> int:
        """How many items are worked on at the same time."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Done[Item, Result]]:
        """Outcomes in the order they are ready. The failure of an item is reported in its `Done`; the others
        continue. RemoteError if the cluster cannot be reached.
        """

    def close(self) -> None: ...


# --- formats ---


class FormatIdentifier(Protocol):
    """Identifies the format of a file, first of all by its bytes."""

    @property
    def engine(self) -> str:
        """Names and versions of engine and signatures, recorded with each result."""

    def identify(self, payload: bytes | Path, *, name: str, mime: str) -> Format:
        """The format of a payload. `name` is the URL or file name (its extension is weak evidence), `mime`
        the content type from the server, or empty.
        """
