"""Find versions of an address: the closest to a moment, its neighbours in time, and addresses near by or
below a prefix.

Everything is answered by single seeks in the capture index, inside the spans of time that the access rules
leave open; an address with fifty thousand captures costs the same as one with five. The number of captures
skipped because they are hidden from version lists is bounded.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from webdepot.model import EVERYTHING, Capture
from webdepot.ports.captures import ANY_TIME, CaptureIndex, Span, Tally
from webdepot.times import moment_of
from webdepot.url import key as key_of

FARTHEST_STEPS = 1000
"""Maximum number of hidden captures to skip before the search ends without a result."""
Segment = tuple[str, str, tuple[Span, ...]]
"""Keys from the first to before the second, and the stretches of time whose captures are open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The four steps of the time bar; None if there is no such version."""

    first: Capture | None
    previous: Capture | None
    next: Capture | None
    last: Capture | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedAddress:
    """One address below a prefix."""

    capture: Capture
    """Its first capture."""
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
    before, after = (filter(lambda capture: capture != nearest, side) for side in (before, after))
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
    url: str = "",
) -> Capture | None:
    """The closest version in the open spans. If several share that second, prefer the one with exactly this
    `url`: /Case.html and /case.html have the same key.
    """
    near = islice(
        iter_by_distance(captures, key, timestamp, collection=collection, spans=spans), FARTHEST_STEPS
    )
    versions = filter(is_version, near)
    closest = next(versions, None)
    if closest is None or not url or closest.url == url:
        return closest
    same = takewhile(lambda capture: capture.timestamp == closest.timestamp, versions)
    return next((capture for capture in same if capture.url == url), closest)


def neighbours(
    captures: CaptureIndex,
    capture: Capture,
    *,
    collection: str = EVERYTHING,
    spans: Sequence[Span] = ANY_TIME,
) -> Neighbours:
    """First, previous, next and last version, relative to a capture; first and last may be the capture
    itself.
    """
    key, stamp = capture.key, int(capture.timestamp)

    def step(narrowed: Sequence[Span], *, newest_first: bool) -> Capture | None:
        walk = captures.versions(
            key, collection=collection, spans=narrowed, newest_first=newest_first, limit=FARTHEST_STEPS
        )
        version = next(filter(is_version, walk), None)
        # If several share a second, use the one that `find_closest` would choose.
        return (
            captures.closest(key, version.timestamp, collection=collection, spans=spans)
            if version and not newest_first
            else version
        )

    return Neighbours(
        first=step(spans, newest_first=False),
        previous=step(until(spans, f"{stamp - 1:014d}"), newest_first=True),
        next=step(since(spans, f"{stamp + 1:014d}"), newest_first=False),
        last=step(spans, newest_first=True),
    )


def is_version(capture: Capture) -> bool:
    """Whether readers see it as a version: not a redirect to itself, and not replaced by a patch."""
    return not capture.replaced and not redirects_to_itself(capture)


def redirects_to_itself(capture: Capture) -> bool:
    """Whether it redirects to its own key (http to https, www to without): following it would never end."""
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
) -> list[ListedAddress]:
    """Addresses with their first capture and how often each was captured, without redirects to themselves."""
    listed: list[ListedAddress] = []
    for capture, spans in islice(
        iter_keys(captures, segments, collection=collection), limit + FARTHEST_STEPS
    ):
        tallies = captures.tally(capture.key, digits=0, collection=collection, spans=spans)
        listed += [ListedAddress(capture=capture, tally=tally) for tally in tallies]
        if len(listed) >= limit:
            break
    return listed


def near_by(
    captures: CaptureIndex, segments: Iterable[Segment], *, collection: str = EVERYTHING, limit: int = 8
) -> list[Capture]:
    """HTML pages in these ranges of keys, one capture each."""
    near = islice(iter_keys(captures, segments, collection=collection), FARTHEST_STEPS)
    return list(
        islice((capture for capture, _ in near if capture.status == 200 and "html" in capture.mime), limit)
    )


def until(spans: Sequence[Span], end: str) -> tuple[Span, ...]:
    """The spans up to a timestamp."""
    return tuple((first, min(last, end)) for first, last in spans if first <= end)


def since(spans: Sequence[Span], start: str) -> tuple[Span, ...]:
    """The spans from a timestamp on."""
    return tuple((max(first, start), last) for first, last in spans if last >= start)
