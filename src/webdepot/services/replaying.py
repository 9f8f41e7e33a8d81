"""Look up an address and open one of its versions. Every way to a capture leads through here and past the one gate.

    look_up      any spelling of an address -> its versions as a calendar and a list
    find_place   one version in its time: the version, its neighbours, the time bar
    open_capture the version closest to a moment, its payload as a stream; revisits resolved across containers

What the reader may not know about is as if it were not there; what is refused says so with the rule's own words.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from webdepot.access import lookup, policy, rules, timeline
from webdepot.access.lookup import Neighbours
from webdepot.access.policy import Reader, Visible
from webdepot.access.replay import title
from webdepot.access.replay.body import negotiated
from webdepot.access.timeline import Bar, Timeline
from webdepot.archive import Archive
from webdepot.container.http import HttpHead
from webdepot.container.reader import Record, read_record
from webdepot.errors import CorruptData, NotFound, NotPermitted, RemoteError
from webdepot.model import EVERYTHING, Capture, RecordKind
from webdepot.services import patching
from webdepot.times import period_of
from webdepot.url import from_typed
from webdepot.url import key as key_of

MOST_LISTED = 500
"""So many versions stand in a list; the calendar counts them all."""
MOST_COUNTED = 200_000
REVISIT_MIME = "warc/revisit"
"""What indexes say of a revisit whose record does not tell the type of the page."""


class NotKept(NotFound):
    """There is no capture at all. Faces say so in their own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """All versions of an address."""

    url: str
    """As captured last."""
    key: str
    collection: str
    timeline: Timeline
    bars: Sequence[Bar]
    year: int
    """The year whose captures are listed."""
    captures: Sequence[Capture]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One version in its time, for the banner above it."""

    capture: Capture
    steps: Neighbours
    total: int
    bars: Sequence[Bar]
    stamps: Sequence[str]
    """Timestamps that the time bar can go to, in order; thinned out when there are very many."""
    title: str
    warning: str
    """Public text of a rule that shows the page with a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """An opened capture. Call `close` when the payload has been read."""

    capture: Capture
    head: HttpHead | None
    status: int
    payload: BinaryIO
    """Transfer-decoded, content coding as captured."""
    size_bytes: int | None
    """Of the payload, where it is known without reading it."""
    close: Callable[[], None]


def look_up(archive: Archive, typed: str, *, reader: Reader, collection: str = EVERYTHING, year: int | None = None) -> Versions:
    """The versions of an address however it was typed; InputError when it is none, NotFound or NotPermitted with words."""
    key = key_of(from_typed(typed))
    visible = gate(archive, key, reader)
    seen = list(islice(_visible_versions(archive, key, collection, visible), 1))
    if not seen:
        raise _nothing(archive, typed, key, collection, visible)
    times = timeline.of(islice(_visible_versions(archive, key, collection, visible), MOST_COUNTED))
    chosen = year if year is not None and f"{year:04d}" in {date[:4] for date in times.days} else int(times.last[:4])
    period = period_of(f"{chosen:04d}")
    listed = [capture for capture in archive.captures.versions(key, period=period, collection=collection) if visible(capture)]
    last = archive.captures.closest(key, times.last, collection=collection) or seen[0]
    return Versions(
        url=last.url,
        key=key,
        collection=collection,
        timeline=times,
        bars=timeline.bars(times),
        year=chosen,
        captures=listed[:MOST_LISTED],
    )


def near_by(archive: Archive, typed: str, *, reader: Reader, collection: str = EVERYTHING) -> list[Capture]:
    """What else is kept of the same host, for a page that says that this address is not."""
    key = key_of(from_typed(typed))
    everything = archive.database.remembered("access rules", rules.by_prefix).every
    visible = policy.visible_to(everything, reader, archive.clock().date())
    return lookup.near_by(archive.captures, key, visible=visible, collection=collection)


def find_place(archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader) -> Place:
    """The version closest to a moment and what stands around it; NotFound or NotPermitted with words."""
    capture, visible = _closest(archive, url, timestamp, collection, reader)
    stamps: list[str] = []
    times = timeline.of(_noting(islice(_visible_versions(archive, capture.key, collection, visible), MOST_COUNTED), stamps))
    verdict = visible(capture)
    return Place(
        capture=capture,
        steps=lookup.neighbours(archive.captures, capture, visible=visible, collection=collection),
        total=times.total,
        bars=timeline.bars(times),
        stamps=_thinned(stamps, capture.timestamp),
        title=_title(archive, capture),
        warning="" if verdict is policy.OPEN else verdict.reason,
    )


def find_closest(archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader) -> Capture:
    """The version that `open_capture` would open; NotFound or NotPermitted with words."""
    return _closest(archive, url, timestamp, collection, reader)[0]


def iter_versions(archive: Archive, url: str, *, collection: str, reader: Reader) -> Iterator[Capture]:
    """Every version in order of time, as a stream; NotFound when there is none."""
    key = key_of(url)
    visible = gate(archive, key, reader)
    found = _visible_versions(archive, key, collection, visible)
    first = next(found, None)
    if first is None:
        raise _nothing(archive, url, key, collection, visible)

    def both() -> Iterator[Capture]:
        yield first
        yield from found

    return both()


def open_capture(archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader) -> Replayed:
    """Open the version closest to a moment.

    NotFound when there is none, NotPermitted when a rule refuses it, CorruptData when its bytes are not where the index says.
    """
    capture, _ = _closest(archive, url, timestamp, collection, reader)
    return _opened(archive, capture)


def gate(archive: Archive, key: str, reader: Reader) -> Visible:
    """The rules of access about one key, as one question per capture."""
    by_prefix = archive.database.remembered("access rules", rules.by_prefix)
    return policy.visible_to(by_prefix.speaking_about(key), reader, archive.clock().date())


def _closest(archive: Archive, url: str, timestamp: str, collection: str, reader: Reader) -> tuple[Capture, Visible]:
    key = key_of(url)
    visible = gate(archive, key, reader)
    capture = lookup.find_closest(archive.captures, key, timestamp, visible=visible, collection=collection)
    if capture is None:
        raise _nothing(archive, url, key, collection, visible)
    # A harvest and its patches are one version: what the patch brought stands where the harvest has an error.
    mended = patching.find_replacement(archive, capture)
    return (mended if mended is not None and visible(mended) else capture), visible


def _nothing(archive: Archive, url: str, key: str, collection: str, visible: Visible) -> NotFound | NotPermitted:
    """Why there is nothing to show: refused by a rule, only redirects to itself, or not kept at all."""
    capture = archive.captures.last(key, collection=collection)
    where = "in this archive" if collection == EVERYTHING else f"in the collection {collection}"
    if capture is not None and (reason := visible(capture).reason) and not visible(capture):
        return NotPermitted(reason)
    if capture is not None and visible(capture):
        return NotFound(f"{url} is kept {where} only as a redirect to itself, so there is no page to show.")
    return NotKept(f"{url} is not kept {where}.")


def _visible_versions(archive: Archive, key: str, collection: str, visible: Visible) -> Iterator[Capture]:
    return (
        capture
        for capture in archive.captures.versions(key, collection=collection)
        if visible(capture) and not lookup.redirects_to_itself(capture)
    )


def _noting(captures: Iterator[Capture], stamps: list[str]) -> Iterator[Capture]:
    """Pass captures through and note their timestamps, so that one walk serves the calendar and the time bar."""
    for capture in captures:
        stamps.append(capture.timestamp)
        yield capture


def _opened(archive: Archive, capture: Capture) -> Replayed:
    stack = ExitStack()
    try:
        record = _record(archive, capture, stack)
        original = _original(archive, capture) if capture.kind is RecordKind.REVISIT else None
        source = _record(archive, original, stack) if original else record
    except BaseException:
        stack.close()
        raise
    # A revisit that says only "not modified" has no page's headers of its own: those of the original count.
    head = record.head if record.head is not None and record.head.status not in (0, 304) else source.head
    return Replayed(
        capture=capture,
        head=head,
        status=(head.status if head else 0) or 200,
        payload=source.payload(),
        size_bytes=source.payload_bytes,
        close=stack.close,
    )


def _record(archive: Archive, capture: Capture, stack: ExitStack) -> Record:
    name = capture.location.container
    try:
        stream = stack.enter_context(archive.open_container(name))
    except (NotFound, RemoteError, OSError) as error:
        raise CorruptData(
            f"The version of {capture.url} is listed, but its container {name} cannot be opened. "
            "The archive's staff can find out why: webdepot doctor",
            where=name,
        ) from error
    return read_record(stream, capture.location)


def _original(archive: Archive, capture: Capture) -> Capture:
    """The capture whose payload a revisit refers to: by address and date as the record says, else by digest."""
    if capture.refers_to_url and capture.refers_to_timestamp:
        key = key_of(capture.refers_to_url)
        for found in islice(lookup.iter_by_distance(archive.captures, key, capture.refers_to_timestamp), 50):
            if found.kind is not RecordKind.REVISIT and found.digest == capture.digest:
                return found
    by_digest = archive.captures.find_digest(capture.digest, url=capture.url) if capture.digest else None
    if by_digest is not None and by_digest.kind is not RecordKind.REVISIT:
        return by_digest
    since = f" of {capture.refers_to_timestamp}" if capture.refers_to_timestamp else ""
    raise NotFound(
        f"{capture.url} was recorded as unchanged since an earlier version{since}, and that version is not in this archive. "
        "It may stand in a container that has not been imported."
    )


def _title(archive: Archive, capture: Capture) -> str:
    """What the banner calls it: the page's own title, or the file's name."""
    name = unquote(urlsplit(capture.url).path.rpartition("/")[2])
    if "html" not in capture.mime and capture.mime != REVISIT_MIME:
        return name
    try:
        replayed = _opened(archive, capture)
    except (NotFound, CorruptData):
        return ""
    try:
        content = _content(replayed)
        return title.of_html(content, replayed.head.get("content-type") or "" if replayed.head else "")
    finally:
        replayed.close()


def _content(replayed: Replayed) -> BinaryIO:
    return negotiated(replayed.payload, replayed.head, "identity").stream


def _thinned(stamps: Sequence[str], current: str, most: int = 400) -> list[str]:
    """At most about `most` of the timestamps, evenly, with the first, the last and the current one."""
    if len(stamps) <= most:
        return list(dict.fromkeys(stamps))
    step = len(stamps) / most
    return sorted({stamps[int(at * step)] for at in range(most)} | {stamps[0], stamps[-1], current})
