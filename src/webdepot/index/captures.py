"""`SqliteCaptureIndex`: which versions exist, in one SQLite file that is rebuilt from the containers at any
time.

    meta         name -> value                       versions, see `sqlite_file.py`
    keys         id, key, url                        each key once; the URL as first seen
    containers   id, name, collection, captures
    mimes        id, name                            1 and 2 are HTML
    captures     (key, timestamp, container, offset) -> everything else; numbers stand for keys, containers and media types
    by_collection  key, collection, timestamp        so that a collection costs no more than everything
    by_loop      key, timestamp                      redirects to their own key and what a patch replaced: no versions to a reader
    by_digest    first 8 bytes of the digest         responses only: for finding duplicates
    by_time      timestamp                           HTML with status 200 only: for what is new
    by_container container                           for replacing a container

Everything is found by seeks and read in pages (keyset), never by offset, and no read transaction outlives a
page: iterators may be left half-read and passed between threads. Of several captures of one key in one second
the methods that return one give the one written last: a redirect from http to https comes before its page.

Any number of threads read; one writes at a time. https://sqlite.org/withoutrowid.html
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from webdepot import digest as digests
from webdepot import times
from webdepot.index.capture_rows import (
    INSERT,
    SCHEMA,
    TABLES,
    capture_of,
    digest_of,
    number_of,
    numbers_of_keys,
    numbers_of_mimes,
    order,
    position_of,
    row_of,
)
from webdepot.index.sqlite_file import SqliteFile
from webdepot.model import EVERYTHING, Capture
from webdepot.ports import ANY_TIME, Position, Span, Tally, place_of
from webdepot.times import Period
from webdepot.url import KEY_VERSION
from webdepot.url import key as key_of

PAGE_ROWS = 500
FIRST_ROWS = 16
"""Of the first page of a walk through the versions of one key: most walks end there."""
_BATCH = 8000
"""Captures that are put in order and added at once: some 15 MB. Rows in the order of the tree find their
place sooner.
"""

# The order of the joins and the index are said, not left to SQLite's guess: it has no statistics of a growing
# file.
_SELECT = """
SELECT keys.key, captures.timestamp, coalesce(captures.url, keys.url), captures.kind, captures.status, mimes.name, captures.digest,
       containers.name, captures.offset, captures.length, captures.redirect, captures.refers_to_url, captures.refers_to_timestamp,
       captures.loops, captures.container, captures.key
FROM {order}
     CROSS JOIN containers ON containers.id = captures.container CROSS JOIN mimes ON mimes.id = captures.mime
"""
_OF_KEY = _SELECT.format(order="keys CROSS JOIN captures ON captures.key = keys.id")
_OF_KEY_IN_COLLECTION = _SELECT.format(
    order="keys CROSS JOIN captures INDEXED BY by_collection ON captures.key = keys.id"
)
_IN_COLLECTION = "AND captures.collection = (SELECT id FROM collections WHERE name = :collection)"
_OF_DIGEST = _SELECT.format(order="captures INDEXED BY by_digest CROSS JOIN keys ON keys.id = captures.key")
_HAS_DIGEST = "SELECT 1 FROM captures INDEXED BY by_digest WHERE kind = 0 AND substr(digest, 1, 8) = ? AND digest = ? LIMIT 1"
_OF_CONTAINER = _SELECT.format(
    order="captures INDEXED BY by_container CROSS JOIN keys ON keys.id = captures.key"
)
_ONLY_IN = """
SELECT DISTINCT one.digest FROM captures AS one INDEXED BY by_container
WHERE one.container = (SELECT id FROM containers WHERE name = :name) AND one.kind IN (0, 2) AND one.digest IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM captures AS other INDEXED BY by_digest
    WHERE other.kind = 0 AND substr(other.digest, 1, 8) = substr(one.digest, 1, 8) AND other.digest = one.digest
    AND other.container <> one.container)
"""
_LATEST = _SELECT.format(order="captures INDEXED BY by_time CROSS JOIN keys ON keys.id = captures.key")
_REPLACE = """
UPDATE captures SET loops = 1 WHERE key = (SELECT id FROM keys WHERE key = ?) AND timestamp = ?
AND container = (SELECT id FROM containers WHERE name = ?) AND offset = ?
"""
_COUNT_KEYS = (
    "SELECT count(*) FROM keys CROSS JOIN captures INDEXED BY by_collection ON captures.key = keys.id"
)
_TALLY = """
SELECT captures.timestamp / :width, count(*), min(captures.timestamp), max(captures.timestamp), 0
FROM captures INDEXED BY {index} WHERE {where} GROUP BY 1 ORDER BY 1
"""
_TALLY_CHANGES = """
SELECT timestamp / :width, count(*), min(timestamp), max(timestamp), max(changed) FROM (
    SELECT captures.timestamp, captures.digest IS NOT lag(captures.digest) OVER (
        ORDER BY captures.timestamp, captures.container, captures.offset) AS changed
    FROM captures WHERE {where}
) GROUP BY 1 ORDER BY 1
"""
_ALWAYS = 10**14 - 1
_Stretch = tuple[int, int]


class SqliteCaptureIndex:
    """The `CaptureIndex` of one machine. Conflict when the file was made by another version, CorruptData when
    it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(
            path,
            what="index of addresses",
            tables=TABLES,
            made_with={"schema": SCHEMA, "key version": KEY_VERSION},
        )
        self._rows = self._file.rows

    def close(self) -> None:
        self._file.close()

    # --- writing ---

    def add(self, container: str, captures: Iterable[Capture], *, collection: str) -> int:
        with self._file.transaction() as connection:
            number = self._clear(connection, container, collection)
            collection_number = connection.execute(
                "SELECT collection FROM containers WHERE id = ?", (number,)
            ).fetchone()[0]
            waiting = iter(captures)
            while batch := sorted(islice(waiting, _BATCH), key=order):
                keys, mimes = numbers_of_keys(connection, batch), numbers_of_mimes(connection, batch)
                connection.executemany(
                    INSERT, [row_of(capture, number, collection_number, keys, mimes) for capture in batch]
                )
            added: int = connection.execute(
                "SELECT count(*) FROM captures WHERE container = ?", (number,)
            ).fetchone()[0]
            connection.execute("UPDATE containers SET captures = ? WHERE id = ?", (added, number))
        return added

    def remove(self, container: str) -> None:
        with self._file.transaction() as connection:
            number = self._clear(connection, container, EVERYTHING)
            connection.execute("DELETE FROM containers WHERE id = ?", (number,))

    def replace(self, captures: Iterable[Capture]) -> None:
        found = (
            (one.key, number_of(one.timestamp), one.location.container, one.location.offset)
            for one in captures
        )
        with self._file.transaction() as connection:
            connection.executemany(_REPLACE, found)

    def _clear(self, connection: sqlite3.Connection, container: str, collection: str) -> int:
        """The number of a container that has no captures (any more) and belongs to that collection."""
        connection.execute("INSERT INTO collections (name) VALUES (?) ON CONFLICT DO NOTHING", (collection,))
        connection.execute(
            "INSERT INTO containers (name, collection, captures) SELECT ?, id, 0 FROM collections WHERE name = ? "
            "ON CONFLICT (name) DO UPDATE SET collection = excluded.collection",
            (container, collection),
        )
        number: int = connection.execute("SELECT id FROM containers WHERE name = ?", (container,)).fetchone()[
            0
        ]
        connection.execute("CREATE TEMP TABLE IF NOT EXISTS touched (key INTEGER PRIMARY KEY)")
        connection.execute(
            "INSERT OR IGNORE INTO touched SELECT key FROM captures WHERE container = ?", (number,)
        )
        connection.execute("DELETE FROM captures WHERE container = ?", (number,))
        connection.execute(
            "DELETE FROM keys WHERE id IN touched AND NOT EXISTS (SELECT 1 FROM captures WHERE captures.key = keys.id)"
        )
        connection.execute("DELETE FROM touched")
        return number

    # --- one capture ---

    def closest(
        self, key: str, timestamp: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        wanted = number_of(timestamp)
        if spans is ANY_TIME:
            return self._nearest(key, wanted, timestamp, collection)
        earlier = self._last_of(key, _before(spans, wanted), collection)
        if earlier is not None and earlier.timestamp == timestamp:
            return earlier
        later = self._first_of(key, _from(spans, wanted + 1), collection)
        if earlier is None or later is None:
            return earlier or later
        return (
            earlier
            if times.gap_s(timestamp, earlier.timestamp) <= times.gap_s(timestamp, later.timestamp)
            else later
        )

    def first(
        self, key: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        return self._first_of(key, _from(spans, 0), collection)

    def last(
        self, key: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        return self._last_of(key, _before(spans, _ALWAYS), collection)

    def before(
        self, key: str, timestamp: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        return self._last_of(key, _before(spans, number_of(timestamp) - 1), collection)

    def after(
        self, key: str, timestamp: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        return self._first_of(key, _from(spans, number_of(timestamp) + 1), collection)

    def _nearest(self, key: str, wanted: int, timestamp: str, collection: str) -> Capture | None:
        """The same where all time is open, as nearly always: both seeks in one question."""
        rows = self._rows(
            _nearest_query(collection != EVERYTHING), {"key": key, "wanted": wanted, "collection": collection}
        )
        if not rows:
            return None
        earliest, latest = rows[0][1], rows[-1][1]
        if earliest == latest or latest <= wanted:
            return capture_of(rows[-1])
        is_near = times.gap_s(timestamp, f"{earliest:014d}") <= times.gap_s(timestamp, f"{latest:014d}")
        return capture_of(next(row for row in reversed(rows) if row[1] == earliest) if is_near else rows[-1])

    def _first_of(self, key: str, stretches: Iterable[_Stretch], collection: str) -> Capture | None:
        return next(
            (found for start, end in stretches if (found := self._one("min", key, start, end, collection))),
            None,
        )

    def _last_of(self, key: str, stretches: Iterable[_Stretch], collection: str) -> Capture | None:
        return next(
            (found for start, end in stretches if (found := self._one("max", key, start, end, collection))),
            None,
        )

    def _one(self, end: str, key: str, start: int, stop: int, collection: str) -> Capture | None:
        """A seek to the nearest second on that side, and one to the last capture of that second."""
        select, narrowed, values = self._narrowed(collection)
        index = "INDEXED BY by_collection" if narrowed else ""
        found = f"""{select} WHERE keys.key = :key {narrowed} AND captures.timestamp = (
            SELECT {end}(captures.timestamp) FROM captures {index} WHERE captures.key = (SELECT id FROM keys WHERE key = :key) {narrowed}
            AND captures.timestamp BETWEEN :start AND :stop) ORDER BY captures.container DESC, captures.offset DESC LIMIT 1"""  # noqa: S608
        rows = self._rows(found, {"key": key, "start": start, "stop": stop, **values})
        return capture_of(rows[0]) if rows else None

    def find_digest(self, digest: str, *, url: str) -> Capture | None:
        wanted = digests.parse(digest)
        if wanted is None:
            return None
        same = f"{_OF_DIGEST} WHERE captures.kind = 0 AND substr(captures.digest, 1, 8) = :start AND captures.digest = :whole"
        if not self._file.has_rows(
            _HAS_DIGEST, (wanted.value[:8], wanted.value)
        ):  # so for most pages of a harvest, hence first
            return None
        values = {"start": wanted.value[:8], "whole": wanted.value, "key": key_of(url)}
        rows = self._rows(f"{same} LIMIT 1", values)
        # The index is ordered by digest, then key: the URL's own captures are one seek away, however many
        # others share the bytes.
        own = f"{same} AND captures.key = (SELECT id FROM keys WHERE key = :key) ORDER BY captures.timestamp LIMIT 1"  # noqa: S608
        found = self._rows(own, values) or rows
        return capture_of(found[0]) if found else None

    # --- many captures ---

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
        start, end = _edges(period)
        open_ = (
            [(start, end)]
            if spans == ANY_TIME
            else [(max(first, start), min(last, end)) for first, last in _from(spans, 0)]
        )
        return islice(self._pages_of_key(key, open_, collection, after, newest_first), limit)

    def _pages_of_key(
        self,
        key: str,
        stretches: Sequence[_Stretch],
        collection: str,
        after: Position | None,
        newest_first: bool = False,
    ) -> Iterator[Capture]:
        page, in_collection = _page_query(collection != EVERYTHING, newest_first), {"collection": collection}
        behind = self._numbered(after) if after else (_ALWAYS, _ALWAYS, 0) if newest_first else (-1, -1, -1)
        rows_wanted = FIRST_ROWS
        for start, end in reversed(stretches) if newest_first else stretches:
            # The walk begins where it left off: without this SQLite would read a stretch from its start to
            # find the place.
            start, end = (start, min(end, behind[0])) if newest_first else (max(start, behind[0]), end)
            while start <= end:
                place = {"timestamp": behind[0], "container": behind[1], "offset": behind[2]}
                rows = self._rows(
                    page,
                    {"key": key, "start": start, "end": end, "rows": rows_wanted, **place, **in_collection},
                )
                yield from map(capture_of, rows)
                if len(rows) < rows_wanted:
                    break
                behind, rows_wanted = position_of(rows[-1]), PAGE_ROWS
                start, end = (start, behind[0]) if newest_first else (behind[0], end)

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
        rows = PAGE_ROWS if limit is None else min(limit, PAGE_ROWS)
        return islice(self._pages_of_keys(start, stop, collection, list(_from(spans, 0)), after, rows), limit)

    def _pages_of_keys(
        self,
        start: str,
        stop: str,
        collection: str,
        stretches: Sequence[_Stretch],
        after: Position | None,
        rows_wanted: int,
    ) -> Iterator[Capture]:
        """Pages over many keys; a key that a page's end cuts in two is finished by itself, so that none is
        walked twice.
        """
        select, narrowed, values = self._narrowed(collection)
        timed, bounds = _timed(stretches)
        comparison = ">="
        if after and after.key >= start:
            yield from self._pages_of_key(after.key, stretches, collection, after) if after.key < stop else ()
            start, comparison = after.key, ">"
        while rows_wanted and stretches:
            page = (
                f"{select} WHERE keys.key {comparison} :start AND keys.key < :stop {narrowed} {timed} "
                "ORDER BY keys.key, captures.timestamp, captures.container, captures.offset LIMIT :rows"
            )
            rows = self._rows(page, {"start": start, "stop": stop, "rows": rows_wanted, **values, **bounds})
            yield from map(capture_of, rows)
            if len(rows) < rows_wanted:
                return
            start, comparison = rows[-1][0], ">"
            yield from self._pages_of_key(start, stretches, collection, place_of(capture_of(rows[-1])))

    # --- counting ---

    def count(self, key: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME) -> int:
        return sum(
            tally.count for tally in self.tally(key, digits=0, collection=collection, spans=spans, loops=True)
        )

    def count_keys(
        self, start: str, stop: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> int:
        _, narrowed, values = self._narrowed(collection)
        timed, bounds = _timed(list(_from(spans, 0)))
        counted = f"{_COUNT_KEYS} WHERE keys.key >= :start AND keys.key < :stop {narrowed} {timed}"
        return int(self._rows(counted, {"start": start, "stop": stop, **values, **bounds})[0][0])

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
        start, end = _edges(period)
        stretches = [(max(first, start), min(last, end)) for first, last in _from(spans, 0)]
        if not stretches:
            return ()
        _, narrowed, values = self._narrowed(collection)
        timed, bounds = _timed(stretches)
        where = f"captures.key = (SELECT id FROM keys WHERE key = :key) {narrowed} {timed}"  # noqa: S608
        values |= {"key": key, "width": 10 ** (14 - digits), **bounds}
        if changes:
            counted = _TALLY_CHANGES.format(where=where if loops else f"{where} AND loops = 0")
        else:
            # The smallest index that has the key: the captures themselves are not read.
            counted = _TALLY.format(index="by_collection", where=where)
        made = {row[0]: row for row in self._rows(counted, values)}
        if not loops and not changes:
            for label, fewer, *_ in self._rows(
                _TALLY.format(index="by_loop", where=f"loops = 1 AND {where}"), values
            ):
                _, count, first, last, changed = made[label]
                made[label] = (label, count - fewer, first, last, changed)
        return [
            Tally(
                label=f"{label:0{digits}d}" if digits else "",
                count=count,
                first=f"{first:014d}",
                last=f"{last:014d}",
                changed=bool(changed),
            )
            for label, count, first, last, changed in made.values()
            if count
        ]

    def newest(self, limit: int) -> Sequence[Capture]:
        """As the port says; a page that was captured very often of late may hide others: so many captures are
        passed over at most.
        """
        found: dict[int, Capture] = {}
        latest = (
            f"{_LATEST} WHERE captures.kind = 0 AND captures.status = 200 AND captures.mime <= 2 "
            "ORDER BY captures.timestamp DESC LIMIT :rows"
        )
        for row in self._rows(latest, {"rows": limit * 20 + 200}):
            if len(found) >= limit:
                break
            found.setdefault(row[-1], capture_of(row))
        return list(found.values())

    # --- the whole ---

    def containers(self) -> Iterator[tuple[str, int]]:
        return iter(self._rows("SELECT name, captures FROM containers ORDER BY name", {}))

    def of_container(self, container: str) -> Iterator[tuple[str, Capture]]:
        known = self._rows(
            "SELECT containers.id, collections.name FROM containers JOIN collections ON collections.id = containers.collection "
            "WHERE containers.name = :name",
            {"name": container},
        )
        for number, collection in known:
            rows = self._rows(
                f"{_OF_CONTAINER} WHERE captures.container = :number ORDER BY captures.offset",
                {"number": number},
            )
            yield from ((collection, capture_of(row)) for row in rows)

    def only_in(self, container: str) -> Sequence[str]:
        return [digest_of(digest) for (digest,) in self._rows(_ONLY_IN, {"name": container})]

    def total(self) -> int:
        return int(self._rows("SELECT coalesce(sum(captures), 0) FROM containers", {})[0][0])

    # --- below ---

    def _numbered(self, place: Position) -> tuple[int, int, int]:
        """A position in the numbers of this file; behind everything of its second where its container is not
        known any more.
        """
        known = self._rows("SELECT id FROM containers WHERE name = :name", {"name": place.container})
        return number_of(place.timestamp), known[0][0] if known else _ALWAYS, place.offset

    def _narrowed(self, collection: str) -> tuple[str, str, dict[str, Any]]:
        """How captures of a key are read, the condition and its value: for one collection or for everything."""
        if collection == EVERYTHING:
            return _OF_KEY, "", {}
        return _OF_KEY_IN_COLLECTION, _IN_COLLECTION, {"collection": collection}


@cache
def _nearest_query(in_collection: bool) -> str:
    """The captures of the last second up to a moment, and of the first one behind it, in order."""
    select, narrowed = (_OF_KEY_IN_COLLECTION, _IN_COLLECTION) if in_collection else (_OF_KEY, "")
    index = "INDEXED BY by_collection" if in_collection else ""
    seek = f"FROM captures {index} WHERE captures.key = keys.id {narrowed} AND captures.timestamp"
    return f"""{select} WHERE keys.key = :key {narrowed} AND captures.timestamp IN (
        (SELECT max(captures.timestamp) {seek} <= :wanted), (SELECT min(captures.timestamp) {seek} > :wanted))
        ORDER BY captures.timestamp, captures.container, captures.offset"""


@cache
def _page_query(in_collection: bool, newest_first: bool) -> str:
    """A page of the captures of one key, behind a place."""
    select, narrowed = (_OF_KEY_IN_COLLECTION, _IN_COLLECTION) if in_collection else (_OF_KEY, "")
    way, comparison = (" DESC", "<") if newest_first else ("", ">")
    return (
        f"{select} WHERE keys.key = :key {narrowed} AND captures.timestamp BETWEEN :start AND :end "
        f"AND (captures.timestamp, captures.container, captures.offset) {comparison} (:timestamp, :container, :offset) "
        f"ORDER BY captures.timestamp{way}, captures.container{way}, captures.offset{way} LIMIT :rows"
    )


@lru_cache(maxsize=64)
def _edges(period: Period) -> _Stretch:
    return number_of(times.to_timestamp(period.start)), number_of(times.to_timestamp(period.end))


def _from(spans: Sequence[Span], start: int) -> Iterator[_Stretch]:
    """The spans that reach to `start` or beyond, cut there, in order."""
    return (
        (max(number_of(first), start), number_of(last)) for first, last in spans if number_of(last) >= start
    )


def _before(spans: Sequence[Span], end: int) -> Iterator[_Stretch]:
    """The spans that begin at `end` or earlier, cut there, the latest first."""
    return (
        (number_of(first), min(number_of(last), end))
        for first, last in reversed(spans)
        if number_of(first) <= end
    )


def _timed(stretches: Sequence[_Stretch]) -> tuple[str, dict[str, int]]:
    """The condition that a capture lies in one of the stretches, and its values."""
    if len(stretches) == 1 and stretches[0] == (0, _ALWAYS):
        return "", {}
    either = " OR ".join(f"captures.timestamp BETWEEN :from{at} AND :to{at}" for at in range(len(stretches)))
    bounds = {
        f"{name}{at}": edge
        for at, stretch in enumerate(stretches)
        for name, edge in zip(("from", "to"), stretch, strict=True)
    }
    return f"AND ({either})", bounds
