"""Which version of an address: the closest to a moment, its neighbours in time, and addresses near by or
below a prefix.

Everything is answered by single seeks in the captures index, inside the spans of time that the rules of
access leave open; a URL with fifty thousand captures costs the same as one with five. Walks past captures
that are no versions to a reader are bounded.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from webdepot.model import EVERYTHING, Capture
from webdepot.ports import ANY_TIME, CaptureIndex, Span, Tally
from webdepot.times import moment_of
from webdepot.url import key as key_of

FARTHEST_STEPS = 1000
"""So many captures are passed over at most before the answer is: none."""
Segment = tuple[str, str, tuple[Span, ...]]
"""Keys from the first to before the second, and when captures of theirs are open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The time bar's four steps; None where there is nothing to step to."""

    first: Capture | None
    previous: Capture | None
    next: Capture | None
    last: Capture | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One address below a prefix."""

    capture: Capture
    """Its first."""
    tally: Tally


def iter_by_distance(
    captures: CaptureIndex,
    key: str,
    timestamp: str,
    *,
    collection: str = EVERYTHING,
    spans: Sequence[Span] = ANY_TIME,
) -> Iterator[Capture]:
    """The captures of a key from the closest to a timestamp outwards; the earlier one first on a tie."""
    nearest = captures.closest(key, timestamp, collection=collection, spans=spans)
    if nearest is None:
        return
    yield nearest
    stamp = timestamp.ljust(14, "0")
    wanted = moment_of(stamp)
    before = captures.versions(key, collection=collection, spans=until(spans, stamp), newest_first=True)
    after = captures.versions(key, collection=collection, spans=since(spans, f"{int(stamp) + 1:014d}"))
    before, after = (filter(lambda found: found != nearest, side) for side in (before, after))
    earlier, later = next(before, None), next(after, None)
    while earlier or later:
        if later is None or (
            earlier is not None
            and wanted - moment_of(earlier.timestamp) <= moment_of(later.timestamp) - wanted
        ):
            assert earlier is not None  # noqa: S101 - the loop's own condition
            yield earlier
            earlier = next(before, None)
        else:
            yield later
            later = next(after, None)


def find_closest(
    captures: CaptureIndex,
    key: str,
    timestamp: str,
    *,
    collection: str = EVERYTHING,
    spans: Sequence[Span] = ANY_TIME,
) -> Capture | None:
    """The closest version in the open spans."""
    near = islice(
        iter_by_distance(captures, key, timestamp, collection=collection, spans=spans), FARTHEST_STEPS
    )
    return next((capture for capture in near if is_version(capture)), None)


def neighbours(
    captures: CaptureIndex,
    capture: Capture,
    *,
    collection: str = EVERYTHING,
    spans: Sequence[Span] = ANY_TIME,
) -> Neighbours:
    """First, previous, next and last capture as seen from one; first and last may be the capture itself."""
    key, stamp = capture.key, int(capture.timestamp)

    def step(narrowed: Sequence[Span], *, newest_first: bool) -> Capture | None:
        walk = captures.versions(
            key, collection=collection, spans=narrowed, newest_first=newest_first, limit=FARTHEST_STEPS
        )
        found = next((one for one in walk if is_version(one)), None)
        # Of several in one second the one that look-up would open.
        return (
            captures.closest(key, found.timestamp, collection=collection, spans=spans)
            if found and not newest_first
            else found
        )

    return Neighbours(
        first=step(spans, newest_first=False),
        previous=step(until(spans, f"{stamp - 1:014d}"), newest_first=True),
        next=step(since(spans, f"{stamp + 1:014d}"), newest_first=False),
        last=step(spans, newest_first=True),
    )


def is_version(capture: Capture) -> bool:
    """Whether it is a version to a reader: no redirect to itself, and nothing that a patch replaced."""
    return not capture.replaced and not redirects_to_itself(capture)


def redirects_to_itself(capture: Capture) -> bool:
    """From http to https, from www to without: the same key, so following it would come back here for ever."""
    return 300 <= capture.status < 400 and bool(capture.redirect) and key_of(capture.redirect) == capture.key


def iter_keys(
    captures: CaptureIndex, segments: Iterable[Segment], *, collection: str = EVERYTHING
) -> Iterator[tuple[Capture, Sequence[Span]]]:
    """The first open capture of each key, in order of keys, with the spans that are open to it."""
    for start, stop, spans in segments:
        while (
            capture := next(captures.scan(start, stop, collection=collection, spans=spans, limit=1), None)
        ) is not None:
            yield capture, spans
            start = capture.key + "\0"


def addresses(
    captures: CaptureIndex, segments: Iterable[Segment], *, collection: str = EVERYTHING, limit: int
) -> list[Listed]:
    """Addresses with their first capture and how often each was captured, redirects to themselves not
    counted.
    """
    found: list[Listed] = []
    for capture, spans in islice(
        iter_keys(captures, segments, collection=collection), limit + FARTHEST_STEPS
    ):
        tallies = captures.tally(capture.key, digits=0, collection=collection, spans=spans)
        found += [Listed(capture=capture, tally=tally) for tally in tallies]
        if len(found) >= limit:
            break
    return found


def near_by(
    captures: CaptureIndex, segments: Iterable[Segment], *, collection: str = EVERYTHING, limit: int = 8
) -> list[Capture]:
    """HTML pages in these stretches of keys, one capture each."""
    near = islice(iter_keys(captures, segments, collection=collection), FARTHEST_STEPS)
    return list(
        islice((capture for capture, _ in near if capture.status == 200 and "html" in capture.mime), limit)
    )


def until(spans: Sequence[Span], end: str) -> tuple[Span, ...]:
    """The spans cut off behind a timestamp."""
    return tuple((first, min(last, end)) for first, last in spans if first <= end)


def since(spans: Sequence[Span], start: str) -> tuple[Span, ...]:
    """The spans cut off before a timestamp."""
    return tuple((max(first, start), last) for first, last in spans if last >= start)
