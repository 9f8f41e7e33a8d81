"""Which versions of an address a reader may see: lists, calendar, and the version closest to a moment.

    look_up         an address as typed -> its versions as a calendar and a list
    list_addresses  addresses below a prefix, on a host, in a domain
    find_near_by    other pages of the same host, when an address is not archived
    iter_versions   every version of an address
    find_example    a page that everybody may see
    find_closest    one version
    find_shorter    a page with fewer parameters, when its address was not archived with this query

Every question goes through the access gate (`gate.py`). Captures that the reader must not learn about are
treated as if they did not exist; a refused one raises Closed with the public text of its rule.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from webdepot.access import closed_areas, fuzzy, lookup, timeline
from webdepot.access.lookup import ListedAddress, Neighbours
from webdepot.access.policy import ANYONE, Reader
from webdepot.access.timeline import Bar, Month, Timeline
from webdepot.archive import Archive
from webdepot.errors import Closed, NotFound
from webdepot.model import EVERYTHING, Capture
from webdepot.ports.captures import Position, Tally
from webdepot.reasons import said
from webdepot.services.access import collections, gate
from webdepot.services.access.gate import KeyAccess
from webdepot.times import Period, period_of
from webdepot.url import from_typed, key_range
from webdepot.url import key as key_of

MOST_LISTED = 500
"""Versions in a list; the calendar counts all of them."""
ADDRESSES_A_PAGE = 100
EXAMPLES_EXAMINED = 200
MOST_EXAMINED = 50_000
"""Captures that are read for a list of versions."""


class NotKept(NotFound):
    """There is no capture at all. Interfaces have their own text for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressVersions:
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
    """The last capture before that year."""
    collections: Sequence[str]
    """Collections with versions that this reader may see."""

    @property
    def months(self) -> Sequence[Month]:
        """The calendar of the year."""
        return timeline.months(self.timeline, self.year)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFilter:
    """Which versions are wanted in the list."""

    status: str = ""
    """Leading digits: `2`, `404`."""
    mime: str = ""
    """Leading characters: `text/html`, `image/`."""
    changed_only: bool = False
    """Of consecutive versions with the same bytes, only the first."""


def look_up(
    archive: Archive,
    typed: str,
    *,
    reader: Reader,
    collection: str = EVERYTHING,
    year: int | None = None,
    narrowed: VersionFilter = VersionFilter(),  # noqa: B008 - frozen value
) -> AddressVersions:
    """The versions of an address, however it was typed.

    InputError when it is not an address, NotFound when nothing is archived, Closed when a rule refuses it.
    """
    key = key_of(from_typed(typed))
    access = gate.of_key(archive, key, reader)
    captures = archive.captures
    days = captures.tally(key, digits=8, collection=collection, spans=access.spans)
    if not days:
        raise _absence(archive, typed, key, collection, access)
    chosen = (
        year
        if year is not None and any(day.label[:4] == f"{year:04d}" for day in days)
        else int(days[-1].label[:4])
    )
    period = _whole_year(chosen)
    days_of_year = captures.tally(
        key, digits=8, period=period, collection=collection, spans=access.spans, changes=True
    )
    times = timeline.of(
        [*_other_years(days, chosen, before=True), *days_of_year, *_other_years(days, chosen, before=False)]
    )
    in_year = captures.versions(key, period=period, collection=collection, spans=access.spans)
    last = captures.last(key, collection=collection, spans=access.spans)
    return AddressVersions(
        url=last.url if last else typed,
        key=key,
        collection=collection,
        timeline=times,
        bars=timeline.bars(times),
        year=chosen,
        captures=list(islice(_filter(islice(in_year, MOST_EXAMINED), narrowed), MOST_LISTED)),
        before=captures.before(
            key, f"{max(chosen, 1):04d}0000000000", collection=collection, spans=access.spans
        ),
        collections=_collections_with_versions(archive, key, access),
    )


def list_addresses(
    archive: Archive,
    typed: str,
    *,
    reader: Reader,
    collection: str = EVERYTHING,
    after: str = "",
    limit: int = ADDRESSES_A_PAGE,
) -> Sequence[ListedAddress]:
    """Addresses that a wildcard covers (`example.org/news/*`, `*.example.org`), in the order of their keys,
    starting after the key `after`.
    """
    start, stop = key_range(typed)
    if after:
        start = max(start, after + "\0")
    return lookup.addresses(
        archive.captures, gate.segments(archive, start, stop, reader), collection=collection, limit=limit
    )


def find_near_by(
    archive: Archive, typed: str, *, reader: Reader, collection: str = EVERYTHING
) -> list[Capture]:
    """Other archived pages of the same host, for an address that is not archived; those that sort after it
    are preferred.
    """
    key = key_of(from_typed(typed))
    host = key.partition(")")[0] + ")"
    after_then_before = (
        [*gate.segments(archive, key, host[:-1] + "*", reader), *gate.segments(archive, host, key, reader)]
        if ")" in key
        else []
    )
    return sorted(
        lookup.near_by(archive.captures, after_then_before, collection=collection),
        key=lambda capture: capture.key,
    )


def find_example(archive: Archive) -> Capture | None:
    """A page that everybody may see, for examples: one of the newest; None if there is none among them."""
    newest = gate.filter_open(archive, archive.captures.newest(EXAMPLES_EXAMINED), ANYONE)
    return next((capture for capture in newest if capture.url.startswith(("http://", "https://"))), None)


def find_closest(archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader) -> Capture:
    """The version closest to a moment; NotFound when there is none, Closed when a rule refuses it."""
    return find_closest_with_access(archive, url, timestamp, collection=collection, reader=reader)[0]


def find_closest_with_access(
    archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader
) -> tuple[Capture, KeyAccess]:
    """The version closest to a moment, and what the reader may see of its key; errors as `find_closest`."""
    key = key_of(url)
    access = gate.of_key(archive, key, reader)
    capture = lookup.find_closest(
        archive.captures, key, timestamp, collection=collection, spans=access.spans, url=url
    )
    if capture is None:
        raise _absence(archive, url, key, collection, access)
    return capture, access


def find_memento(
    archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader
) -> tuple[Capture, Neighbours]:
    """The version closest to a moment, and its open neighbours. Raises as `find_closest`."""
    capture, access = find_closest_with_access(archive, url, timestamp, collection=collection, reader=reader)
    return capture, lookup.neighbours(archive.captures, capture, collection=collection, spans=access.spans)


def find_closest_without_busters(
    archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader
) -> Capture:
    """The closest version of an address that differs from this one only in cache busters; errors as
    `find_closest`.
    """
    key = key_of(url)
    similar = find_fuzzy_key(archive, key, collection=collection, reader=reader)
    capture = None
    if similar:
        spans = gate.of_key(archive, similar, reader).spans
        capture = lookup.find_closest(
            archive.captures, similar, timestamp, collection=collection, spans=spans
        )
    if capture is None:
        raise _absence(archive, url, key, collection, gate.of_key(archive, key, reader))
    return capture


def find_shorter(
    archive: Archive, url: str, timestamp: str, *, collection: str, reader: Reader
) -> Capture | None:
    """The capture of the same address without some of its parameters, or without its query; None if the
    reader cannot see one, or if it is an error.
    """
    for shorter in fuzzy.shorter_queries(url):
        try:
            capture = find_closest(archive, shorter, timestamp, collection=collection, reader=reader)
        except (NotFound, Closed):
            continue
        if capture.status < 400:
            return capture
    return None


def find_fuzzy_key(archive: Archive, key: str, *, collection: str, reader: Reader) -> str | None:
    """An archived key that differs from this one only in cache busters."""
    bare = fuzzy.without_busters(key)
    segments = [
        *gate.segments(archive, bare, bare + " ", reader),
        *gate.segments(archive, bare + "&", closed_areas.after_prefix(bare + "&"), reader),
    ]
    if "?" not in bare:
        segments += gate.segments(archive, bare + "?", closed_areas.after_prefix(bare + "?"), reader)
    for start in fuzzy.starts_with_buster(key):
        segments += gate.segments(archive, start, closed_areas.after_prefix(start), reader)
    return fuzzy.find_key(archive.captures, key, segments, collection=collection)


class OpenVersions:
    """The versions of one key that are open, in the order of time, as a stream. It ends after
    `MOST_EXAMINED` captures, however few of them are versions.
    """

    def __init__(self, captures: Iterator[Capture]) -> None:
        self.cut = ""
        """The timestamp to continue from, if the stream ended before the last capture; known at its end."""
        self._captures = self._read(captures)

    def __iter__(self) -> Iterator[Capture]:
        return self._captures

    def __next__(self) -> Capture:
        return next(self._captures)

    def put_back(self, capture: Capture) -> None:
        self._captures = chain((capture,), self._captures)

    def _read(self, captures: Iterator[Capture]) -> Iterator[Capture]:
        for number, capture in enumerate(captures):
            if number >= MOST_EXAMINED:
                self.cut = capture.timestamp
                return
            if lookup.is_version(capture):
                yield capture


def iter_versions(
    archive: Archive, url: str, *, collection: str, reader: Reader, after: Position | None = None
) -> OpenVersions:
    """Every version in the order of time, as a stream; with `after`, those after that position.

    NotFound or Closed when there is none at all.
    """
    key = key_of(url)
    access = gate.of_key(archive, key, reader)
    versions = iter_open_versions(archive, key, collection, access, after)
    first = next(versions, None)
    if first is not None:
        versions.put_back(first)
    elif after is None and not versions.cut:
        raise _absence(archive, url, key, collection, access)
    return versions


def iter_open_versions(
    archive: Archive, key: str, collection: str, access: KeyAccess, after: Position | None = None
) -> OpenVersions:
    """The versions of one key that are open, in the order of time."""
    return OpenVersions(
        archive.captures.versions(key, collection=collection, spans=access.spans, after=after)
    )


def _absence(archive: Archive, url: str, key: str, collection: str, access: KeyAccess) -> NotFound | Closed:
    """Why there is nothing to show: refused by a rule, only redirects to itself, or not archived at all."""
    where = "in this archive" if collection == EVERYTHING else f"in the collection {collection}"
    if archive.captures.last(key, collection=collection, spans=access.spans) is not None:
        return NotFound(
            said(
                "only_redirects",
                "{url} is kept only as a redirect to itself, so there is no page to show.",
                url=url,
            )
        )
    capture = archive.captures.last(key, collection=collection)
    if capture is not None and (reason := access.verdict(capture).reason):
        return Closed(reason)
    return NotKept(f"{url} is not archived {where}.")


def _collections_with_versions(archive: Archive, key: str, access: KeyAccess) -> list[str]:
    return [
        name
        for name in collections.names(archive)
        if archive.captures.last(key, collection=name, spans=access.spans) is not None
    ]


def _whole_year(year: int) -> Period:
    """The year with months and days `00` too, which old indexes have."""
    return period_of(f"{max(year, 1):04d}")


def _other_years(days: Sequence[Tally], year: int, *, before: bool) -> list[Tally]:
    return [day for day in days if (int(day.label[:4]) < year if before else int(day.label[:4]) > year)]


def _filter(captures: Iterator[Capture], wanted: VersionFilter) -> Iterator[Capture]:
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
