"""Which version of an address: the closest to a moment, its neighbours in time, and addresses near by.

Everything is answered by single seeks in the captures index and filtered by the gate of `policy`; a URL with fifty thousand
captures costs the same as one with five. Walks past captures that the reader may not see, or that only redirect to
themselves, are bounded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from webdepot.access.policy import Visible
from webdepot.model import EVERYTHING, Capture
from webdepot.ports import CaptureIndex
from webdepot.times import EARLIEST, from_timestamp
from webdepot.url import key as key_of

FARTHEST_STEPS = 1000
"""So many captures are passed over at most before the answer is: none."""
_LAST_KEY = "\U0010ffff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """The time bar's four steps; None where there is nothing to step to."""

    first: Capture | None
    previous: Capture | None
    next: Capture | None
    last: Capture | None


def iter_by_distance(captures: CaptureIndex, key: str, timestamp: str, *, collection: str = EVERYTHING) -> Iterator[Capture]:
    """The captures of a key from the closest to a timestamp outwards; the earlier one first on a tie."""
    nearest = captures.closest(key, timestamp, collection=collection)
    if nearest is None:
        return
    yield nearest
    wanted = moment_of(timestamp)
    earlier = captures.before(key, nearest.timestamp, collection=collection)
    later = captures.after(key, nearest.timestamp, collection=collection)
    while earlier or later:
        if later is None or (earlier is not None and wanted - moment_of(earlier.timestamp) <= moment_of(later.timestamp) - wanted):
            assert earlier is not None  # noqa: S101 - the loop's own condition
            yield earlier
            earlier = captures.before(key, earlier.timestamp, collection=collection)
        else:
            yield later
            later = captures.after(key, later.timestamp, collection=collection)


def find_closest(captures: CaptureIndex, key: str, timestamp: str, *, visible: Visible, collection: str = EVERYTHING) -> Capture | None:
    """The closest capture that the reader may see and that leads somewhere else than to itself."""
    near = islice(iter_by_distance(captures, key, timestamp, collection=collection), FARTHEST_STEPS)
    return next((capture for capture in near if not redirects_to_itself(capture) and visible(capture)), None)


def neighbours(captures: CaptureIndex, capture: Capture, *, visible: Visible, collection: str = EVERYTHING) -> Neighbours:
    """First, previous, next and last capture as seen from one; first and last may be the capture itself."""
    key = capture.key
    return Neighbours(
        first=_walk(captures.first(key, collection=collection), captures, visible, collection, forward=True),
        previous=_walk(captures.before(key, capture.timestamp, collection=collection), captures, visible, collection, forward=False),
        next=_walk(captures.after(key, capture.timestamp, collection=collection), captures, visible, collection, forward=True),
        last=_walk(captures.last(key, collection=collection), captures, visible, collection, forward=False),
    )


def redirects_to_itself(capture: Capture) -> bool:
    """From http to https, from www to without: the same key, so following it would come back here for ever."""
    return 300 <= capture.status < 400 and bool(capture.redirect) and key_of(capture.redirect) == capture.key


def near_by(captures: CaptureIndex, key: str, *, visible: Visible, collection: str = EVERYTHING, limit: int = 8) -> list[Capture]:
    """Pages of the same host, one capture each: those that sort behind the missing one, then from the host's start."""
    host = key.partition(")")[0] + ")"
    found: dict[str, Capture] = {}
    for start, stop in ((key, host + _LAST_KEY), (host, key)):
        for _ in range(FARTHEST_STEPS):
            capture = next(captures.scan(start, stop, collection=collection, limit=1), None)
            if capture is None or len(found) >= limit:
                break
            if capture.status == 200 and "html" in capture.mime and visible(capture):
                found[capture.key] = capture
            start = capture.key + "\0"
    return list(found.values())


def moment_of(timestamp: str) -> datetime:
    """Foreign indexes have timestamps that are no dates; they count as the earliest."""
    try:
        return from_timestamp(timestamp)
    except ValueError:
        return EARLIEST


def _walk(capture: Capture | None, captures: CaptureIndex, visible: Visible, collection: str, *, forward: bool) -> Capture | None:
    step = captures.after if forward else captures.before
    for _ in range(FARTHEST_STEPS):
        if capture is None or (visible(capture) and not redirects_to_itself(capture)):
            return capture
        capture = step(capture.key, capture.timestamp, collection=collection)
    return None
