"""Look up an address and open one of its versions. Every way to a capture leads through here and past the one
gate.

    look_up      any spelling of an address -> its versions as a calendar and a list
    list_addresses  what is kept below a prefix, on a host, in a domain
    find_place   one version in its time: the version, its neighbours, the time bar
    open_capture the version closest to a moment, its payload as a stream; revisits resolved across containers

What the reader may not know about is as if it were not there; what is refused says so with the rule's own
words.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from webdepot.access import closed, fuzzy, lookup, policy, rules, timeline
from webdepot.access.lookup import Listed, Neighbours, Segment
from webdepot.access.policy import Reader, Visible
from webdepot.access.replay import title
from webdepot.access.replay.body import negotiated
from webdepot.access.timeline import Bar, Timeline
from webdepot.archive import Archive
from webdepot.cdxj import REVISIT_MIME
from webdepot.container.http import HttpHead
from webdepot.container.reader import read_record
from webdepot.container.record import Record
from webdepot.depot import migration
from webdepot.depot.migration import Conversion
from webdepot.errors import Closed, CorruptData, NotFound, NotPermitted, RemoteError, WebdepotError
from webdepot.model import EVERYTHING, Capture, RecordKind
from webdepot.ports import ANY_TIME, Position, Span, Tally
from webdepot.services.access import collections, lending
from webdepot.times import Period, period_of
from webdepot.url import from_typed, key_range
from webdepot.url import key as key_of

MOST_LISTED = 500
"""So many versions stand in a list; the calendar counts them all."""
MOST_STAMPS = 400
"""So many versions the time bar's handle can stop at."""
ADDRESSES_A_PAGE = 100
AT_HAND_BYTES = 1 << 17
"""A record that is larger is not opened by those who must not wait."""


class NotAtHand(Exception):
    """To open it may take a while: a large record, a revisit, a container on another machine."""


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
    before: Capture | None
    """The last one before that year."""
    collections: Sequence[str]
    """Those that have versions of it which this reader may see."""


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
    failure: WebdepotError | None = None
    """Why its bytes cannot be shown, where they cannot: container away, damaged, or an original that is
    missing.
    """
    is_lent: bool = False
    """Held for this reader alone, for as long as the page stays open."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What the rules of access say about one key to one reader today."""

    visible: Visible
    spans: tuple[Span, ...]
    """When the captures were made that the reader may see; the same answer as `visible`, for the index."""


_OPEN = Gate(visible=lambda _: policy.OPEN, spans=ANY_TIME)
"""Where no rule speaks about a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """Which versions are wanted in the list."""

    status: str = ""
    """Its first digits: `2`, `404`."""
    mime: str = ""
    """Its first signs: `text/html`, `image/`."""
    changed_only: bool = False
    """Of versions with the same bytes one after another only the first."""


def look_up(
    archive: Archive,
    typed: str,
    *,
    reader: Reader,
    collection: str = EVERYTHING,
    year: int | None = None,
    narrowed: Narrowed = Narrowed(),  # noqa: B008 - frozen value
) -> Versions:
    """The versions of an address however it was typed; InputError when it is none, NotFound or Closed with
    words.
    """
    key = key_of(from_typed(typed))
    gate = gate_of(archive, key, reader)
    captures = archive.captures
    days = captures.tally(key, digits=8, collection=collection, spans=gate.spans)
    if not days:
        raise _nothing(archive, typed, key, collection, gate)
    chosen = (
        year
        if year is not None and any(day.label[:4] == f"{year:04d}" for day in days)
        else int(days[-1].label[:4])
    )
    period = _whole_year(chosen)
    shown = captures.tally(
        key, digits=8, period=period, collection=collection, spans=gate.spans, changes=True
    )
    times = timeline.of(
        [*_other_years(days, chosen, before=True), *shown, *_other_years(days, chosen, before=False)]
    )
    listed = captures.versions(key, period=period, collection=collection, spans=gate.spans)
    last = captures.last(key, collection=collection, spans=gate.spans)
    return Versions(
        url=last.url if last else typed,
        key=key,
        collection=collection,
        timeline=times,
        bars=timeline.bars(times),
        year=chosen,
        captures=list(islice(_narrowed(listed, narrowed), MOST_LISTED)),
        before=captures.before(
            key, f"{max(chosen, 1):04d}0000000000", collection=collection, spans=gate.spans
        ),
        collections=_with_versions(archive, key, gate),
    )


def list_addresses(
    archive: Archive,
    typed: str,
    *,
    reader: Reader,
    collection: str = EVERYTHING,
    after: str = "",
    limit: int = ADDRESSES_A_PAGE,
) -> Sequence[Listed]:
    """Addresses that a wildcard covers (`example.org/news/*`, `*.example.org`), in order of their keys, those
    behind the key `after`.
    """
    start, stop = key_range(typed)
    if after:
        start = max(start, after + "\0")
    return lookup.addresses(
        archive.captures, segments(archive, start, stop, reader), collection=collection, limit=limit
    )


def near_by(archive: Archive, typed: str, *, reader: Reader, collection: str = EVERYTHING) -> list[Capture]:
    """What else is kept of the same host, for a page that says that this address is not: what sorts behind it
    first.
    """
    key = key_of(from_typed(typed))
    host = key.partition(")")[0] + ")"
    both = (
        [*segments(archive, key, host[:-1] + "*", reader), *segments(archive, host, key, reader)]
        if ")" in key
        else []
    )
    return sorted(
        lookup.near_by(archive.captures, both, collection=collection), key=lambda capture: capture.key
    )


def find_place(archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader) -> Place:
    """The version closest to a moment and what stands around it; NotFound or Closed with words."""
    capture, gate = _closest(archive, url, timestamp, collection, reader)
    is_lent = lending.hold(archive, capture, reader)
    days = archive.captures.tally(capture.key, digits=8, collection=collection, spans=gate.spans)
    times = timeline.of(days)
    verdict = gate.visible(capture)
    steps = lookup.neighbours(archive.captures, capture, collection=collection, spans=gate.spans)
    name, failure = _looked_into(archive, capture)
    return Place(
        capture=capture,
        steps=steps,
        total=times.total,
        bars=timeline.bars(times),
        stamps=_stamps(archive, capture, steps, days, collection, gate),
        title=name,
        warning="" if verdict is policy.OPEN else verdict.reason,
        failure=failure,
        is_lent=is_lent,
    )


def find_closest(archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader) -> Capture:
    """The version that `open_capture` would open; NotFound or Closed with words."""
    return _closest(archive, url, timestamp, collection, reader)[0]


def iter_versions(
    archive: Archive, url: str, *, collection: str, reader: Reader, after: Position | None = None
) -> Iterator[Capture]:
    """Every version in order of time, as a stream, those behind a position alone where one is given; NotFound
    when there is none.
    """
    key = key_of(url)
    gate = gate_of(archive, key, reader)
    found = _versions(archive, key, collection, gate, after)
    first = next(found, None)
    if first is None and after is None:
        raise _nothing(archive, url, key, collection, gate)
    return chain(() if first is None else (first,), found)


def count_versions(archive: Archive, url: str, *, collection: str, reader: Reader) -> int:
    """How many `iter_versions` would give."""
    key = key_of(url)
    tallies = archive.captures.tally(
        key, digits=0, collection=collection, spans=gate_of(archive, key, reader).spans
    )
    return sum(tally.count for tally in tallies)


def open_capture(archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader) -> Replayed:
    """Open the version closest to a moment.

    NotFound when there is none, Closed when a rule refuses it, InUse when one reader at a time may see it and
    another does, CorruptData when its bytes are not where the index says.
    """
    try:
        capture, _ = _closest(archive, url, timestamp, collection, reader)
    except NotKept:
        capture = _without_busters(archive, url, timestamp, collection, reader)
    lending.hold(archive, capture, reader)
    return _opened(archive, capture)


def open_at_hand(archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader) -> Replayed:
    """The same for callers that must not wait: NotAtHand, or the same errors, unless it is opened in next to
    no time.
    """
    capture, _ = _closest(archive, url, timestamp, collection, reader)
    if not lending.needs_no_writing(archive, capture, reader):
        raise NotAtHand
    return _opened_at_hand(archive, capture)


def find_conversions(archive: Archive, capture: Capture) -> list[Conversion]:
    """The other formats in which a capture's payload is kept too, the newest first."""
    if not capture.digest:
        return []
    with archive.database.reading() as connection:
        return migration.find(connection, capture.digest)


def open_conversion(
    archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader
) -> Replayed:
    """The migrated form of the version closest to a moment, past the same gate as the original. NotFound when
    it was never migrated.
    """
    capture = find_closest(archive, url, timestamp, collection=collection, reader=reader)
    found = find_conversions(archive, capture)
    if not found:
        raise NotFound(f"{url} has not been migrated: it is kept in its original format only.")
    with ExitStack() as stack:
        record = read_record(
            stack.enter_context(archive.open_container(found[0].location.container)), found[0].location
        )
        head = HttpHead(
            version="HTTP/1.1", status=200, reason="OK", headers=(("Content-Type", found[0].mime),)
        )
        return Replayed(
            capture=capture,
            head=head,
            status=200,
            payload=record.payload(),
            size_bytes=record.payload_bytes,
            close=stack.pop_all().close,
        )


def _without_busters(archive: Archive, url: str, timestamp: str, collection: str, reader: Reader) -> Capture:
    """A page kept under the same address but for its cache-busters; NotKept when there is none."""
    key = key_of(url)
    known = find_fuzzy_key(archive, key, collection=collection, reader=reader)
    gate = gate_of(archive, known or key, reader)
    found = (
        lookup.find_closest(archive.captures, known, timestamp, collection=collection, spans=gate.spans)
        if known
        else None
    )
    if found is None:
        raise _nothing(archive, url, key, collection, gate_of(archive, key, reader))
    return found


def find_fuzzy_key(archive: Archive, key: str, *, collection: str, reader: Reader) -> str | None:
    """A kept key that differs from this one in cache-busters alone."""
    bare = fuzzy.without_busters(key)
    both = [
        *segments(archive, bare, bare + " ", reader),
        *segments(archive, bare + "&", closed.behind(bare + "&"), reader),
    ]
    if "?" not in bare:
        both += segments(archive, bare + "?", closed.behind(bare + "?"), reader)
    return fuzzy.find_key(archive.captures, key, both, collection=collection)


def find_original(archive: Archive, capture: Capture) -> Capture | None:
    """The capture whose payload a revisit refers to; None where it is not in this archive."""
    try:
        return _original(archive, capture)
    except NotFound:
        return None


def gate_of(archive: Archive, key: str, reader: Reader) -> Gate:
    """The rules of access about one key, as a question per capture and as what the index may tell."""
    speaking = archive.database.remembered("access rules", rules.by_prefix).speaking_about(key)
    if not speaking:
        return _OPEN
    today = archive.clock().date()
    return Gate(
        visible=policy.visible_to(speaking, reader, today),
        spans=closed.open_spans(speaking, key, reader, today),
    )


def is_open_to(archive: Archive, capture: Capture, reader: Reader) -> bool:
    """Whether the rules of access let this reader see this capture."""
    return bool(gate_of(archive, capture.key, reader).visible(capture))


def segments(archive: Archive, start: str, stop: str, reader: Reader) -> Iterator[Segment]:
    """Keys from `start` to before `stop`, cut where the rules change, with what the index may tell about each
    piece.
    """
    by_prefix = archive.database.remembered("access rules", rules.by_prefix)
    return closed.open_segments(
        by_prefix.speaking_between(start, stop), start, stop, reader, archive.clock().date()
    )


def _closest(
    archive: Archive, url: str, timestamp: str, collection: str, reader: Reader
) -> tuple[Capture, Gate]:
    key = key_of(url)
    gate = gate_of(archive, key, reader)
    capture = lookup.find_closest(archive.captures, key, timestamp, collection=collection, spans=gate.spans)
    if capture is None:
        raise _nothing(archive, url, key, collection, gate)
    return capture, gate


def _nothing(archive: Archive, url: str, key: str, collection: str, gate: Gate) -> NotFound | Closed:
    """Why there is nothing to show: refused by a rule, only redirects to itself, or not kept at all."""
    where = "in this archive" if collection == EVERYTHING else f"in the collection {collection}"
    if archive.captures.last(key, collection=collection, spans=gate.spans) is not None:
        return NotFound(f"{url} is kept {where} only as a redirect to itself, so there is no page to show.")
    capture = archive.captures.last(key, collection=collection)
    if capture is not None and (reason := gate.visible(capture).reason):
        return Closed(reason)
    return NotKept(f"{url} is not kept {where}.")


def _versions(
    archive: Archive, key: str, collection: str, gate: Gate, after: Position | None = None
) -> Iterator[Capture]:
    found = archive.captures.versions(key, collection=collection, spans=gate.spans, after=after)
    return (capture for capture in found if lookup.is_version(capture))


def _with_versions(archive: Archive, key: str, gate: Gate) -> list[str]:
    """The collections that have any: one seek for each."""
    names = collections.names(archive)
    return [
        name for name in names if archive.captures.last(key, collection=name, spans=gate.spans) is not None
    ]


def _whole_year(year: int) -> Period:
    """Old indexes hold months and days `00`; they belong to their year."""
    return period_of(f"{max(year, 1):04d}")


def _other_years(days: Sequence[Tally], year: int, *, before: bool) -> list[Tally]:
    return [day for day in days if (int(day.label[:4]) < year if before else int(day.label[:4]) > year)]


def _narrowed(captures: Iterator[Capture], wanted: Narrowed) -> Iterator[Capture]:
    digest = ""
    for capture in captures:
        if not lookup.is_version(capture):
            continue
        is_same, digest = bool(capture.digest) and capture.digest == digest, capture.digest
        if (
            (wanted.changed_only and is_same)
            or not str(capture.status).startswith(wanted.status)
            or not capture.mime.startswith(wanted.mime)
        ):
            continue
        yield capture


def _stamps(
    archive: Archive, capture: Capture, steps: Neighbours, days: Sequence[Tally], collection: str, gate: Gate
) -> Sequence[str]:
    """Where the time bar's handle can stop: every version, or one of a day, thinned out evenly, when there
    are very many.
    """
    if sum(day.count for day in days) <= MOST_STAMPS:
        return list(dict.fromkeys(one.timestamp for one in _versions(archive, capture.key, collection, gate)))
    near = {step.timestamp for step in (steps.first, steps.previous, steps.next, steps.last) if step}
    step = max(len(days) / MOST_STAMPS, 1)
    return sorted(
        {days[int(at * step)].first for at in range(min(len(days), MOST_STAMPS))} | near | {capture.timestamp}
    )


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


def _opened_at_hand(archive: Archive, capture: Capture) -> Replayed:
    """A small record on a disk of this machine, and no other one behind it: read at once, nothing is left
    open. Else NotAtHand.
    """
    if capture.location.length > AT_HAND_BYTES or capture.kind is RecordKind.REVISIT:
        raise NotAtHand
    path = archive.find_local(capture.location.container)
    if path is None:
        raise NotAtHand
    # Unbuffered: a reader of one record fetches just what it needs.
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - half the time of Path.open
        record = read_record(file, capture.location)
        if not record.is_held or record.size_bytes > 8 * AT_HAND_BYTES:
            raise NotAtHand
    head = record.head
    status = (head.status if head else 0) or 200
    return Replayed(
        capture=capture,
        head=head,
        status=status,
        payload=record.payload(),
        size_bytes=record.payload_bytes,
        close=_nothing_to_close,
    )


def _nothing_to_close() -> None:
    """The bytes are in memory."""


def _record(archive: Archive, capture: Capture, stack: ExitStack) -> Record:
    name = capture.location.container
    try:
        return read_record(stack.enter_context(archive.open_container(name)), capture.location)
    except (NotFound, NotPermitted, RemoteError, OSError) as error:
        raise CorruptData(
            f"The version of {capture.url} is listed, but its container {name} cannot be opened. "
            "The archive's staff can find out why: webdepot doctor",
            where=name,
        ) from error


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


def _looked_into(archive: Archive, capture: Capture) -> tuple[str, WebdepotError | None]:
    """What the banner calls it, the page's own title or the file's name; and what is wrong where it cannot be
    opened.
    """
    name = unquote(urlsplit(capture.url).path.rpartition("/")[2])
    try:
        replayed = _opened(archive, capture)
    except (NotFound, CorruptData) as error:
        return name, error
    try:
        if "html" not in capture.mime and capture.mime != REVISIT_MIME:
            return name, None
        return title.of_html(
            content_of(replayed), replayed.head.get("content-type") or "" if replayed.head else ""
        ), None
    except CorruptData as error:
        return name, error
    finally:
        replayed.close()


def content_of(replayed: Replayed) -> BinaryIO:
    """The payload without its content coding."""
    return negotiated(replayed.payload, replayed.head, "identity").stream
