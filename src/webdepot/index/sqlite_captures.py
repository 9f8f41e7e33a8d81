"""`SqliteCaptureIndex`: the capture index in one SQLite file, which can be rebuilt from the containers at any
time.

    meta         name -> value                       versions, see `sqlite_file.py`
    keys         id, key, url                        each key once; the URL as first seen
    containers   id, name, collection, captures
    mimes        id, name                            1 and 2 are HTML
    years        collection, year, captures          see `capture_years.py`
    captures     (key, timestamp, container, offset) -> everything else; keys, containers and media types as
                                                     numbers
    by_collection key, collection, timestamp so that one collection is as fast as all
    by_loop      key, timestamp                      redirects to their own key and captures that a patch
                                                     replaced: hidden from version lists
    by_digest    first 8 bytes of the digest         responses only: for finding duplicates
    by_time      timestamp                           HTML with status 200 only: for the newest pages
    by_container container                           for replacing a container

Everything is found by seeks and read in pages (keyset), never by offset, and no read transaction outlives a
page: iterators may be left unfinished and passed between threads. If a key has several captures in one
second, methods that return one capture return the last written: a redirect from http to https comes before
its page.

Any number of threads may read; one writes at a time. https://sqlite.org/withoutrowid.html
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from webdepot import digest as digests
from webdepot import times
from webdepot.index import capture_years
from webdepot.index.capture_pages import (
    PAGE_ROWS,
    Place,
    edges,
    iter_rows,
    nearer,
    stretches_before,
    stretches_from,
    tallies_of,
    within,
)
from webdepot.index.capture_queries import (
    ALWAYS,
    COUNT_KEYS,
    IN_COLLECTION,
    LATEST,
    OF_CONTAINER,
    OF_DIGEST,
    OF_KEY,
    OF_KEY_IN_COLLECTION,
    ONLY_IN,
    REPLACE,
    TALLY,
    TALLY_CHANGES,
    Stretch,
    nearest_query,
    page_query,
    time_condition,
)
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
from webdepot.ports.captures import ANY_TIME, Position, Span, Tally, place_of
from webdepot.times import Period
from webdepot.url import KEY_VERSION
from webdepot.url import key as key_of

_BATCH = 8000
"""Captures that are sorted and added at once: some 15 MB. Rows in the order of the tree are inserted faster.
"""


class SqliteCaptureIndex:
    """The `CaptureIndex` of one machine. Conflict if another version made the file, CorruptData if it is
    damaged.
    """

    def __init__(self, path: Path) -> None:
        self._file = SqliteFile(
            path,
            what="capture index",
            tables=TABLES + capture_years.TABLE,
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
            capture_years.count(connection, container, 1)
        return added

    def remove(self, container: str) -> None:
        with self._file.transaction() as connection:
            number = self._clear(connection, container, EVERYTHING)
            connection.execute("DELETE FROM containers WHERE id = ?", (number,))

    def replace(self, captures: Iterable[Capture]) -> None:
        rows = (
            (capture.key, number_of(capture.timestamp), capture.location.container, capture.location.offset)
            for capture in captures
        )
        with self._file.transaction() as connection:
            connection.executemany(REPLACE, rows)

    def _clear(self, connection: sqlite3.Connection, container: str, collection: str) -> int:
        """Remove the captures of a container and assign it to a collection; return its number."""
        capture_years.prepare(connection)
        capture_years.count(connection, container, -1)
        connection.execute("INSERT INTO collections (name) VALUES (?) ON CONFLICT DO NOTHING", (collection,))
        connection.execute(
            "INSERT INTO containers (name, collection, captures) "
            "SELECT ?, id, 0 FROM collections WHERE name = ? "
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
            "DELETE FROM keys WHERE id IN touched "
            "AND NOT EXISTS (SELECT 1 FROM captures WHERE captures.key = keys.id)"
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
        earlier = self._last_of(key, stretches_before(spans, wanted), collection)
        if earlier is not None and earlier.timestamp == timestamp:
            return earlier
        return nearer(timestamp, earlier, self._first_of(key, stretches_from(spans, wanted + 1), collection))

    def first(
        self, key: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        return self._first_of(key, stretches_from(spans, 0), collection)

    def last(
        self, key: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        return self._last_of(key, stretches_before(spans, ALWAYS), collection)

    def before(
        self, key: str, timestamp: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        return self._last_of(key, stretches_before(spans, number_of(timestamp) - 1), collection)

    def after(
        self, key: str, timestamp: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        return self._first_of(key, stretches_from(spans, number_of(timestamp) + 1), collection)

    def _nearest(self, key: str, wanted: int, timestamp: str, collection: str) -> Capture | None:
        """As `closest`, for the usual case that all times are allowed: both seeks in one query."""
        rows = self._rows(
            nearest_query(collection != EVERYTHING), {"key": key, "wanted": wanted, "collection": collection}
        )
        if not rows:
            return None
        earliest, latest = rows[0][1], rows[-1][1]
        if earliest == latest or latest <= wanted:
            return capture_of(rows[-1])
        is_near = times.gap_s(timestamp, f"{earliest:014d}") <= times.gap_s(timestamp, f"{latest:014d}")
        return capture_of(next(row for row in reversed(rows) if row[1] == earliest) if is_near else rows[-1])

    def _first_of(self, key: str, stretches: Iterable[Stretch], collection: str) -> Capture | None:
        return next(
            (
                capture
                for start, end in stretches
                if (capture := self._one("min", key, start, end, collection))
            ),
            None,
        )

    def _last_of(self, key: str, stretches: Iterable[Stretch], collection: str) -> Capture | None:
        return next(
            (
                capture
                for start, end in stretches
                if (capture := self._one("max", key, start, end, collection))
            ),
            None,
        )

    def _one(self, end: str, key: str, start: int, stop: int, collection: str) -> Capture | None:
        """The capture by two seeks: to the nearest second on that side, and to its last capture."""
        select, narrowed, values = self._narrowed(collection)
        index = "INDEXED BY by_collection" if narrowed else ""
        query = f"""{select} WHERE keys.key = :key {narrowed} AND captures.timestamp = (
            SELECT {end}(captures.timestamp) FROM captures {index}
            WHERE captures.key = (SELECT id FROM keys WHERE key = :key) {narrowed}
            AND captures.timestamp BETWEEN :start AND :stop)
            ORDER BY captures.container DESC, captures.offset DESC LIMIT 1"""  # noqa: S608
        rows = self._rows(query, {"key": key, "start": start, "stop": stop, **values})
        return capture_of(rows[0]) if rows else None

    def find_digests(self, payloads: Sequence[tuple[str, str]]) -> Sequence[Capture | None]:
        return [self._find_digest(digest, url) for digest, url in payloads]

    def _find_digest(self, digest: str, url: str) -> Capture | None:
        wanted = digests.parse(digest)
        if wanted is None:
            return None
        same = (
            f"{OF_DIGEST} WHERE captures.kind = 0 AND substr(captures.digest, 1, 8) = :start "
            "AND captures.digest = :whole"
        )
        values = {"start": wanted.value[:8], "whole": wanted.value, "key": key_of(url)}
        rows = self._rows(f"{same} LIMIT 1", values)
        if not rows:
            return None
        # The index is ordered by digest, then key: the captures of the URL itself are one seek away, however
        # many others have the same bytes.
        of_url = f"{same} AND captures.key = (SELECT id FROM keys WHERE key = :key)"  # noqa: S608
        rows = self._rows(f"{of_url} ORDER BY captures.timestamp LIMIT 1", values) or rows
        return capture_of(rows[0])

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
        open_ = [edges(period)] if spans == ANY_TIME else within(spans, period)
        return islice(self._pages_of_key(key, open_, collection, after, newest_first), limit)

    def _pages_of_key(
        self,
        key: str,
        stretches: Sequence[Stretch],
        collection: str,
        after: Position | None,
        newest_first: bool = False,
    ) -> Iterator[Capture]:
        page = page_query(collection != EVERYTHING, newest_first)

        def fetch(stretch: Stretch, last: Place, rows: int) -> list[Any]:
            place = {"timestamp": last[0], "container": last[1], "offset": last[2]}
            bounds = {"key": key, "start": stretch[0], "end": stretch[1], "collection": collection}
            return self._rows(page, {**bounds, **place, "rows": rows})

        last = self._numbered(after) if after else None
        return map(capture_of, iter_rows(fetch, position_of, stretches, last, newest_first))

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
        return islice(
            self._pages_of_keys(start, stop, collection, list(stretches_from(spans, 0)), after, rows), limit
        )

    def _pages_of_keys(
        self,
        start: str,
        stop: str,
        collection: str,
        stretches: Sequence[Stretch],
        after: Position | None,
        rows_wanted: int,
    ) -> Iterator[Capture]:
        """Captures of many keys, page by page; a key that a page cuts in two is finished separately, so that
        none is read twice.
        """
        select, narrowed, values = self._narrowed(collection)
        timed, bounds = time_condition(stretches)
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
        timed, bounds = time_condition(list(stretches_from(spans, 0)))
        counted = f"{COUNT_KEYS} WHERE keys.key >= :start AND keys.key < :stop {narrowed} {timed}"
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
        stretches = within(spans, period)
        if not stretches:
            return ()
        _, narrowed, values = self._narrowed(collection)
        timed, bounds = time_condition(stretches)
        where = f"captures.key = (SELECT id FROM keys WHERE key = :key) {narrowed} {timed}"  # noqa: S608
        values |= {"key": key, "width": 10 ** (14 - digits), **bounds}
        if changes:
            counted = TALLY_CHANGES.format(where=where if loops else f"{where} AND loops = 0")
        else:
            # The smallest index with the key: the captures themselves are not read.
            counted = TALLY.format(index="by_collection", where=where)
        hidden = (
            []
            if loops or changes
            else self._rows(TALLY.format(index="by_loop", where=f"loops = 1 AND {where}"), values)
        )
        return tallies_of(self._rows(counted, values), hidden, digits)

    def newest(self, limit: int) -> Sequence[Capture]:
        """As in the port, but only a limited number of captures is read, so a page with very many recent
        captures may hide others.
        """
        newest: dict[int, Capture] = {}
        latest = (
            f"{LATEST} WHERE captures.kind = 0 AND captures.status = 200 AND captures.mime <= 2 "
            "ORDER BY captures.timestamp DESC LIMIT :rows"
        )
        for row in self._rows(latest, {"rows": limit * 20 + 200}):
            if len(newest) >= limit:
                break
            newest.setdefault(row[-1], capture_of(row))
        return list(newest.values())

    # --- the whole ---

    def containers(self) -> Iterator[tuple[str, int]]:
        return iter(self._rows("SELECT name, captures FROM containers ORDER BY id", {}))

    def having(self, containers: Iterable[str]) -> frozenset[str]:
        return self._file.names_in("containers", containers)

    def of_container(self, container: str) -> Iterator[tuple[str, Capture]]:
        known = self._rows(
            "SELECT containers.id, collections.name FROM containers "
            "JOIN collections ON collections.id = containers.collection WHERE containers.name = :name",
            {"name": container},
        )
        for number, collection in known:
            rows = self._rows(
                f"{OF_CONTAINER} WHERE captures.container = :number ORDER BY captures.offset",
                {"number": number},
            )
            yield from ((collection, capture_of(row)) for row in rows)

    def only_in(self, container: str) -> Sequence[str]:
        return [digest_of(digest) for (digest,) in self._rows(ONLY_IN, {"name": container})]

    def total(self) -> int:
        return int(self._rows("SELECT coalesce(sum(captures), 0) FROM containers", {})[0][0])

    def years(self, collection: str = EVERYTHING) -> Mapping[int, int]:
        return capture_years.read(self._rows, collection)

    # --- private ---

    def _numbered(self, place: Position) -> tuple[int, int, int]:
        """A position in numbers of this file; after all of its second if its container is unknown."""
        known = self._rows("SELECT id FROM containers WHERE name = :name", {"name": place.container})
        return number_of(place.timestamp), known[0][0] if known else ALWAYS, place.offset

    def _narrowed(self, collection: str) -> tuple[str, str, dict[str, Any]]:
        """The query for captures of a key, its condition and value: for one collection or for everything."""
        if collection == EVERYTHING:
            return OF_KEY, "", {}
        return OF_KEY_IN_COLLECTION, IN_COLLECTION, {"collection": collection}
