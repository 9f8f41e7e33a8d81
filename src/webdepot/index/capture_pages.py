"""Paging through the captures of a key, and counting them: the part that all engines share.

A stretch is a period as two numbers. A place is the position of a row in the order of one key.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from webdepot import times
from webdepot.index.capture_queries import ALWAYS, Stretch
from webdepot.index.capture_rows import number_of
from webdepot.model import Capture
from webdepot.ports.captures import Span, Tally
from webdepot.times import Period

PAGE_ROWS = 500
FIRST_ROWS = 16
"""Rows in the first page of the versions of one key: most callers need no more."""
Place = tuple[int, int, int]
"""Timestamp, number of the container, offset."""
Fetch = Callable[[Stretch, Place, int], list[Any]]
"""Returns the rows of a stretch after a place, at most a given number, in the order of reading."""


@lru_cache(maxsize=64)
def edges(period: Period) -> Stretch:
    return number_of(times.to_timestamp(period.start)), number_of(times.to_timestamp(period.end))


def stretches_from(spans: Sequence[Span], start: int) -> Iterator[Stretch]:
    """The parts of the spans at or after `start`, in order."""
    return (
        (max(number_of(first), start), number_of(last)) for first, last in spans if number_of(last) >= start
    )


def stretches_before(spans: Sequence[Span], end: int) -> Iterator[Stretch]:
    """The parts of the spans at or before `end`, the latest first."""
    return (
        (number_of(first), min(number_of(last), end))
        for first, last in reversed(spans)
        if number_of(first) <= end
    )


def within(spans: Sequence[Span], period: Period) -> list[Stretch]:
    """The parts of the spans in a period."""
    start, end = edges(period)
    return [(max(first, start), min(last, end)) for first, last in stretches_from(spans, 0)]


def iter_rows(
    fetch: Fetch,
    position_of: Callable[[Any], Place],
    stretches: Sequence[Stretch],
    after: Place | None,
    newest_first: bool = False,
) -> Iterator[Any]:
    """The rows of one key in order, read page by page; with `after`, only those after that place."""
    last = after or ((ALWAYS, ALWAYS, 0) if newest_first else (-1, -1, -1))
    rows_wanted = FIRST_ROWS
    for start, end in reversed(stretches) if newest_first else stretches:
        # Continue from the last place: otherwise the engine would read the stretch from its start.
        start, end = (start, min(end, last[0])) if newest_first else (max(start, last[0]), end)
        while start <= end:
            rows = fetch((start, end), last, rows_wanted)
            yield from rows
            if len(rows) < rows_wanted:
                break
            last, rows_wanted = position_of(rows[-1]), PAGE_ROWS
            start, end = (start, last[0]) if newest_first else (last[0], end)


def nearer(timestamp: str, earlier: Capture | None, later: Capture | None) -> Capture | None:
    """The capture that is nearer to a moment; the earlier one if both are equally near."""
    if earlier is None or later is None:
        return earlier or later
    is_near = times.gap_s(timestamp, earlier.timestamp) <= times.gap_s(timestamp, later.timestamp)
    return earlier if is_near else later


def tallies_of(rows: Iterable[Any], hidden: Iterable[Any], digits: int) -> list[Tally]:
    """Tallies from rows (label, count, first, last, changed), without the captures of `hidden` rows."""
    tallies = {row[0]: row for row in rows}
    for label, fewer, *_ in hidden:
        if label in tallies:  # unless another process has removed it between the two queries
            _, count, first, last, changed = tallies[label]
            tallies[label] = (label, count - fewer, first, last, changed)
    return [
        Tally(
            label=f"{label:0{digits}d}" if digits else "",
            count=count,
            first=f"{first:014d}",
            last=f"{last:014d}",
            changed=bool(changed),
        )
        for label, count, first, last, changed in tallies.values()
        if count
    ]
