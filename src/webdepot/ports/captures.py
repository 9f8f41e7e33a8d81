"""The index of captures by address and time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from webdepot.model import EVERYTHING, Capture
from webdepot.times import Period

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
    EVERYTHING means no restriction. No method reads all captures of an address to find one. Digests are
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
        """Mark captures as replaced (by those of a patch): they are no longer counted, and are returned
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
        """For each payload (digest, address) an earlier response with the same digest, for revisit records:
        the first of that address, or if there is none, one of any address. One round trip to a server,
        however many are asked for.
        """

    def newest(self, limit: int) -> Sequence[Capture]:
        """The latest HTML captures with status 200, one for each key, newest first."""

    def total(self) -> int: ...

    def years(self, collection: str = EVERYTHING) -> Mapping[int, int]:
        """How many captures there are of each year that has any, in order; costs the same in any index."""

    def close(self) -> None: ...
