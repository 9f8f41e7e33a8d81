"""Open an archived version: its payload as a stream, and its place among the other versions.

    find_place        one version with its neighbours and the time bar, for the banner above the page
    open_capture      the version closest to a moment; revisits are resolved across containers
    open_at_hand      the same, only if it can be opened without waiting
    open_conversion   the migrated form of a version

The version is chosen by `lookup.py`, so every way to a capture passes the access gate.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from webdepot.access import lookup, policy, timeline
from webdepot.access.lookup import Neighbours
from webdepot.access.policy import Reader
from webdepot.access.replay import title, xml_view
from webdepot.access.replay.body import negotiated
from webdepot.access.timeline import Bar
from webdepot.archive import Archive
from webdepot.cdxj import REVISIT_MIME
from webdepot.container.http import HttpHead
from webdepot.container.reader import read_record
from webdepot.container.record import Record
from webdepot.depot import migration_tools
from webdepot.depot.migration_tools import Conversion
from webdepot.errors import CorruptData, NotFound, NotPermitted, RemoteError, WebdepotError
from webdepot.model import Capture, RecordKind
from webdepot.ports.captures import Tally
from webdepot.ports.search import TextQuery
from webdepot.services.access import lending
from webdepot.services.access import lookup as lookup_service
from webdepot.services.access.gate import KeyAccess
from webdepot.services.access.lookup import NotKept
from webdepot.times import moment_of
from webdepot.url import key as key_of

MOST_STAMPS = 400
"""Versions that the handle of the time bar can stop at."""
AT_HAND_BYTES = 1 << 17
"""Larger records are not opened for callers that must not wait."""


class NotAtHand(Exception):
    """Opening it may take time: a large record, a revisit, a container on another server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionPlace:
    """One version among the others, for the banner above it."""

    capture: Capture
    steps: Neighbours
    number: int
    """Of this version among all of them, from the oldest."""
    total: int
    bars: Sequence[Bar]
    stamps: Sequence[str]
    """Timestamps that the time bar can go to, in order; thinned out when there are very many."""
    title: str
    warning: str
    """Public text of a rule that shows the page with a warning."""
    failure: WebdepotError | None = None
    """Why its bytes cannot be shown: the container is missing or damaged, or the original of a revisit is
    missing. None if they can.
    """
    is_lent: bool = False
    """Held for this reader alone while the page is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """An opened capture. Call `close` when the payload has been read."""

    capture: Capture
    head: HttpHead | None
    status: int
    payload: BinaryIO
    """Transfer-decoded, content coding as captured."""
    size_bytes: int | None
    """Of the payload, if known without reading it."""
    close: Callable[[], None]


def find_place(
    archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader
) -> VersionPlace:
    """The version closest to a moment, with its neighbours.

    NotFound when there is none, Closed when a rule refuses it, InUse when another reader has it.
    """
    capture, access = lookup_service.find_closest_with_access(
        archive, url, timestamp, collection=collection, reader=reader
    )
    is_lent = lending.hold(archive, capture, reader)
    days = archive.captures.tally(capture.key, digits=8, collection=collection, spans=access.spans)
    times = timeline.of(days)
    verdict = access.verdict(capture)
    steps = lookup.neighbours(archive.captures, capture, collection=collection, spans=access.spans)
    name, failure = _look_into(archive, capture)
    return VersionPlace(
        capture=capture,
        steps=steps,
        number=_number(archive, capture, collection, access),
        total=times.total,
        bars=timeline.bars(times),
        stamps=_stamps(archive, capture, steps, days, collection, access),
        title=name,
        warning="" if verdict is policy.OPEN else verdict.reason,
        failure=failure,
        is_lent=is_lent,
    )


def _number(archive: Archive, capture: Capture, collection: str, access: KeyAccess) -> int:
    earlier = lookup.until(access.spans, capture.timestamp)
    tallies = archive.captures.tally(capture.key, digits=0, collection=collection, spans=earlier)
    return sum(tally.count for tally in tallies)


def open_capture(archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader) -> Replayed:
    """Open the version closest to a moment.

    NotFound when there is none, Closed when a rule refuses it, InUse when one reader at a time may see it and
    another has it, CorruptData when its bytes are not where the index says.
    """
    try:
        capture = lookup_service.find_closest(archive, url, timestamp, collection=collection, reader=reader)
    except NotKept:
        capture = lookup_service.find_closest_without_busters(
            archive, url, timestamp, collection=collection, reader=reader
        )
    lending.hold(archive, capture, reader)
    return _open(archive, capture)


def open_at_hand(archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader) -> Replayed:
    """The same for callers that must not wait: NotAtHand unless it can be opened at once."""
    capture = lookup_service.find_closest(archive, url, timestamp, collection=collection, reader=reader)
    if not lending.needs_no_writing(archive, capture, reader):
        raise NotAtHand
    return _open_at_hand(archive, capture)


def find_conversions(archive: Archive, capture: Capture) -> list[Conversion]:
    """The other formats in which a capture's payload is kept too, the newest first."""
    if not capture.digest:
        return []
    with archive.database.reading() as connection:
        return migration_tools.find(connection, capture.digest)


def open_conversion(
    archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader
) -> Replayed:
    """The migrated form of the version closest to a moment, through the same gate as the original.

    NotFound when it was never migrated.
    """
    capture = lookup_service.find_closest(archive, url, timestamp, collection=collection, reader=reader)
    conversions = find_conversions(archive, capture)
    if not conversions:
        raise NotFound(f"{url} has not been migrated: it is kept in its original format only.")
    newest = conversions[0]
    with ExitStack() as stack:
        container = stack.enter_context(archive.containers.open(newest.location.container))
        record = read_record(container, newest.location)
        head = HttpHead(version="HTTP/1.1", status=200, reason="OK", headers=(("Content-Type", newest.mime),))
        return Replayed(
            capture=capture,
            head=head,
            status=200,
            payload=record.payload(),
            size_bytes=record.payload_bytes,
            close=stack.pop_all().close,
        )


def find_original(archive: Archive, capture: Capture) -> Capture | None:
    """The capture whose payload a revisit refers to; None if it is not in this archive."""
    try:
        return _get_original(archive, capture)
    except NotFound:
        return None


def find_page_title(archive: Archive, capture: Capture) -> str:
    """The title of a page; empty if it has none or cannot be read."""
    name, failure = _look_into(archive, capture)
    return "" if failure else name


def find_indexed_title(archive: Archive, capture: Capture) -> str:
    """The title of a page or document at the time of the capture, from the index: containers may be on
    another server, and titles of PDF files take long to read. Empty if it has none, or if the search server
    does not answer.
    """
    moment = moment_of(capture.timestamp) + timedelta(seconds=1)
    query = TextQuery(keys=(capture.key,), as_of=moment, limit=1, histogram=False)
    try:
        return next((hit.title for hit in archive.texts.find(query).hits), "")
    except RemoteError:
        return ""


def content_of(replayed: Replayed) -> BinaryIO:
    """The payload without its content coding."""
    return negotiated(replayed.payload, replayed.head, "identity").stream


def _stamps(
    archive: Archive,
    capture: Capture,
    steps: Neighbours,
    days: Sequence[Tally],
    collection: str,
    access: KeyAccess,
) -> Sequence[str]:
    """Where the handle of the time bar can stop: every version, or, when there are very many, some of the
    days, spread evenly.
    """
    if sum(day.count for day in days) <= MOST_STAMPS:
        versions = lookup_service.iter_open_versions(archive, capture.key, collection, access)
        return list(dict.fromkeys(version.timestamp for version in versions))
    near = {step.timestamp for step in (steps.first, steps.previous, steps.next, steps.last) if step}
    step = max(len(days) / MOST_STAMPS, 1)
    return sorted(
        {days[int(at * step)].first for at in range(min(len(days), MOST_STAMPS))} | near | {capture.timestamp}
    )


def _open(archive: Archive, capture: Capture) -> Replayed:
    stack = ExitStack()
    try:
        record = _read(archive, capture, stack)
        original = _get_original(archive, capture) if capture.kind is RecordKind.REVISIT else None
        source = _read(archive, original, stack) if original else record
    except BaseException:
        stack.close()
        raise
    if original and capture.mime == REVISIT_MIME:  # the record has no head that says what the page is
        capture = replace(capture, mime=original.mime)
    # A revisit that says only "not modified" does not have the page's headers: those of the original count.
    head = record.head if record.head is not None and record.head.status not in (0, 304) else source.head
    return Replayed(
        capture=capture,
        head=head,
        status=(head.status if head else 0) or 200,
        payload=source.payload(),
        size_bytes=source.payload_bytes,
        close=stack.close,
    )


def _open_at_hand(archive: Archive, capture: Capture) -> Replayed:
    """A small record on a disk of this server that needs no other record: read into memory, so that no file
    stays open. NotAtHand otherwise.
    """
    if capture.location.length > AT_HAND_BYTES or capture.kind is RecordKind.REVISIT:
        raise NotAtHand
    path = archive.containers.find_local(capture.location.container)
    if path is None:
        raise NotAtHand
    # Unbuffered: the reader of one record fetches just what it needs.
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - half the time of Path.open
        record = read_record(file, capture.location)
        if not record.is_held or record.size_bytes > 8 * AT_HAND_BYTES:
            raise NotAtHand
    head = record.head
    return Replayed(
        capture=capture,
        head=head,
        status=(head.status if head else 0) or 200,
        payload=record.payload(),
        size_bytes=record.payload_bytes,
        close=_close_nothing,
    )


def _close_nothing() -> None:
    """Do nothing: the bytes are in memory."""


def _read(archive: Archive, capture: Capture, stack: ExitStack) -> Record:
    name = capture.location.container
    try:
        return read_record(stack.enter_context(archive.containers.open(name)), capture.location)
    except (NotFound, NotPermitted, RemoteError, OSError) as error:
        raise CorruptData(
            f"The version of {capture.url} is in the index, but its container {name} cannot be opened. "
            "The archive's staff can find out why: webdepot doctor",
            where=name,
        ) from error


def _get_original(archive: Archive, capture: Capture) -> Capture:
    """The capture whose payload a revisit refers to: by the record's address and date, else by digest."""
    if capture.refers_to_url and capture.refers_to_timestamp:
        key = key_of(capture.refers_to_url)
        for captures in archive.capture_indexes:
            near = lookup.iter_by_distance(captures, key, capture.refers_to_timestamp)
            for earlier in islice(near, 50):
                if earlier.kind is not RecordKind.REVISIT and earlier.digest == capture.digest:
                    return earlier
    for captures in archive.capture_indexes if capture.digest else ():
        (by_digest,) = captures.find_digests([(capture.digest, capture.url)])
        if by_digest is not None and by_digest.kind is not RecordKind.REVISIT:
            return by_digest
    since = f" of {capture.refers_to_timestamp}" if capture.refers_to_timestamp else ""
    raise NotFound(
        f"{capture.url} was recorded as unchanged since an earlier version{since}, and that version is not "
        "in this archive. It may be in a container that has not been imported."
    )


def _look_into(archive: Archive, capture: Capture) -> tuple[str, WebdepotError | None]:
    """What the banner calls a version (the page's title or the file's name), and the error if it cannot be
    opened.
    """
    name = unquote(urlsplit(capture.url).path.rpartition("/")[2])
    try:
        replayed = _open(archive, capture)
    except (NotFound, CorruptData) as error:
        return name, error
    try:
        content_type = replayed.head.get("content-type") or "" if replayed.head else ""
        if "html" in capture.mime or capture.mime == REVISIT_MIME:
            # A page that scripts build has its title in the index only, if a browser has shown it.
            own = title.of_html(content_of(replayed), content_type)
            return own or find_indexed_title(archive, capture), None
        if xml_view.is_xml(capture.mime):
            return title.of_feed(content_of(replayed), content_type) or name, None
        return find_indexed_title(archive, capture) or name, None
    except CorruptData as error:
        return name, error
    finally:
        replayed.close()
