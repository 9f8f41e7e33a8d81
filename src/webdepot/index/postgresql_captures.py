"""`PostgresqlCaptureIndex`: the capture index in tables of a PostgreSQL server, for an archive on several
machines. It can be rebuilt from the containers at any time, like the index in a SQLite file.

The tables and their indexes are described in `postgresql_rows`. Everything is found by seeks and read in
pages (keyset). No query outlives a page: iterators may be left unfinished and passed between threads.

Any number of threads, processes and machines read and write at the same time. `add` is one transaction that
holds the row of its container first, so that of two writers of one container the second waits and replaces
what the first has added. Counts by year are changed last and in one order, so that writers cannot deadlock.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import psycopg
from psycopg import errors as refusals

from webdepot import digest as digests
from webdepot.index import postgresql_queries as queries
from webdepot.index import postgresql_rows as table
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
from webdepot.index.capture_queries import ALWAYS, Stretch
from webdepot.index.capture_rows import number_of, order, position_of
from webdepot.index.postgresql_schema import PostgresqlSchema, discard
from webdepot.model import EVERYTHING, Capture
from webdepot.ports.captures import ANY_TIME, Position, Span, Tally
from webdepot.times import Period
from webdepot.url import KEY_VERSION
from webdepot.url import key as key_of

SCHEMA_NAME = "webdepot_captures"
_BATCH = 8000
"""Captures that are sorted and added at once: some 15 MB. Rows in the order of the tree are inserted faster.
"""
_Years = Counter[tuple[int, int]]
"""Captures by collection and year."""


class PostgresqlCaptureIndex:
    """The `CaptureIndex` of several machines. Conflict if another version made it, ConfigError if the
    database cannot be opened, RemoteError if the server does not answer.
    """

    def __init__(
        self, url: str, *, password: str = "", name: str = SCHEMA_NAME, partitions: int = table.PARTITIONS
    ) -> None:
        self._schema = PostgresqlSchema(
            url,
            password,
            name=name,
            what="capture index",
            tables=table.tables(partitions),
            made_with={"schema": table.SCHEMA, "key version": KEY_VERSION},
        )
        self._rows = self._schema.rows

    def close(self) -> None:
        self._schema.close()

    # --- writing ---

    def add(self, container: str, captures: Iterable[Capture], *, collection: str) -> int:
        collection_number = self._numbers("collections", {collection})[collection]
        with self._schema.transaction() as connection:
            number, years = self._clear(connection, container, collection_number)
            waiting = iter(captures)
            while batch := sorted(islice(waiting, _BATCH), key=order):
                mimes = self._numbers("mimes", {capture.mime for capture in batch})
                _add_rows(
                    connection,
                    [table.row_of(capture, number, collection_number, mimes) for capture in batch],
                )
            new = _years_of(connection, number)
            added = new.total()
            connection.execute(
                b"UPDATE containers SET collection = %s, captures = %s WHERE id = %s",
                (collection_number, added, number),
            )
            new.subtract(years)
            _count(connection, new)
        return added

    def remove(self, container: str) -> None:
        if not self.having([container]):
            return
        with self._schema.transaction() as connection:
            number, years = self._clear(connection, container, 0)
            connection.execute(b"DELETE FROM containers WHERE id = %s", (number,))
            _count(connection, Counter({place: -count for place, count in years.items()}))

    def replace(self, captures: Iterable[Capture]) -> None:
        rows = [
            {
                "site": table.site_of(capture.key),
                "key": table.stored_key(capture.key),
                "timestamp": number_of(capture.timestamp),
                "offset": capture.location.offset,
                "container": capture.location.container,
            }
            for capture in sorted(captures, key=order)
        ]
        with self._schema.transaction() as connection, connection.cursor() as cursor:
            cursor.executemany(queries.REPLACE, rows)

    def _clear(
        self, connection: psycopg.Connection[Any], container: str, collection: int
    ) -> tuple[int, _Years]:
        """Remove the captures of a container; return its number and its captures by year. Other writers of it
        wait.
        """
        held = connection.execute(queries.HOLD, {"name": container, "collection": collection}).fetchone()
        assert held is not None  # noqa: S101 - it returns a row
        number, captures = held
        if not captures:
            return number, Counter()
        years = _years_of(connection, number)
        connection.execute(b"DELETE FROM captures WHERE container = %s::integer", (number,))
        return number, years

    def _numbers(self, names_of: str, names: set[str]) -> dict[str, int]:
        """The numbers of collections or media types. New ones are committed at once: a number never changes,
        and writers do not wait for one another.
        """
        values = {"names": sorted(names)}
        known = dict(self._rows(queries.find_names(names_of), values))
        if len(known) < len(names):
            self._rows(queries.add_names(names_of), values)
            known = dict(self._rows(queries.find_names(names_of), values))
        return known

    # --- one capture ---

    def closest(
        self, key: str, timestamp: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        wanted = number_of(timestamp)
        captures = self._edges(
            key, collection, last=stretches_before(spans, wanted), first=stretches_from(spans, wanted + 1)
        )
        if len(captures) < 2:
            return captures[0] if captures else None
        return nearer(timestamp, *captures)

    def first(
        self, key: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        return next(iter(self._edges(key, collection, first=stretches_from(spans, 0))), None)

    def last(
        self, key: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        return next(iter(self._edges(key, collection, last=stretches_before(spans, ALWAYS))), None)

    def before(
        self, key: str, timestamp: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        stretches = stretches_before(spans, number_of(timestamp) - 1)
        return next(iter(self._edges(key, collection, last=stretches)), None)

    def after(
        self, key: str, timestamp: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> Capture | None:
        stretches = stretches_from(spans, number_of(timestamp) + 1)
        return next(iter(self._edges(key, collection, first=stretches)), None)

    def _edges(
        self,
        key: str,
        collection: str,
        *,
        last: Iterable[Stretch] | None = None,
        first: Iterable[Stretch] | None = None,
    ) -> list[Capture]:
        """The last capture in the stretches `last`, and the first one in `first`, in one query."""
        query = queries.edge_query(collection != EVERYTHING, first=first is not None, last=last is not None)
        starts, stops = _arrays(last or ())
        after_starts, after_stops = _arrays(first or ())
        values = {
            **_of_key(key, collection),
            "starts": starts,
            "stops": stops,
            "after_starts": after_starts,
            "after_stops": after_stops,
        }
        return [table.capture_in(row) for row in self._rows(query, values)]

    def find_digests(self, payloads: Sequence[tuple[str, str]]) -> Sequence[Capture | None]:
        values = [(digests.find_value(digest), key_of(url)) for digest, url in payloads]
        places = [place for place, (value, _) in enumerate(values) if value is not None]
        originals: list[Capture | None] = [None] * len(payloads)
        if not places:
            return originals
        keys = [values[place][1] for place in places]
        rows = self._rows(
            queries.DIGESTS,
            {
                "digests": [values[place][0] for place in places],
                "keys": [table.stored_key(key) for key in keys],
                "sites": [table.site_of(key) for key in keys],
            },
        )
        for number, *row in rows:
            originals[places[number - 1]] = table.capture_in(row)
        return originals

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
        page, of_key = queries.page_query(collection != EVERYTHING, newest_first), _of_key(key, collection)

        def fetch(stretch: Stretch, last: Place, rows: int) -> list[Any]:
            place = {"timestamp": last[0], "container": last[1], "offset": last[2]}
            return self._rows(page, {**of_key, **place, "start": stretch[0], "end": stretch[1], "rows": rows})

        last = self._numbered(after) if after else None
        return islice(map(table.capture_in, iter_rows(fetch, position_of, open_, last, newest_first)), limit)

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
        return islice(self._pages_of_keys(start, stop, collection, spans, after, rows), limit)

    def _pages_of_keys(
        self,
        start: str,
        stop: str,
        collection: str,
        spans: Sequence[Span],
        after: Position | None,
        rows_wanted: int,
    ) -> Iterator[Capture]:
        conditions, values = _of_keys(start, stop, collection, spans)
        query = queries.scan_query(*conditions)
        key, place = (table.stored_key(after.key), self._numbered(after)) if after else ("", (-1, -1, -1))
        while rows_wanted:
            position = {"after": key, "timestamp": place[0], "container": place[1], "offset": place[2]}
            rows = self._rows(query, {**values, **position, "rows": rows_wanted})
            yield from map(table.capture_in, rows)
            if len(rows) < rows_wanted:
                return
            key, place = rows[-1][-1], position_of(rows[-1])

    # --- counting ---

    def count(self, key: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME) -> int:
        return sum(
            tally.count for tally in self.tally(key, digits=0, collection=collection, spans=spans, loops=True)
        )

    def count_keys(
        self, start: str, stop: str, *, collection: str = EVERYTHING, spans: Sequence[Span] = ANY_TIME
    ) -> int:
        conditions, values = _of_keys(start, stop, collection, spans)
        return int(self._rows(queries.count_query(*conditions), values)[0][0])

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
        starts, stops = _arrays(within(spans, period))
        is_narrow = collection != EVERYTHING
        values = {
            **_of_key(key, collection),
            "starts": starts,
            "stops": stops,
            "width": 10 ** (14 - digits),
        }
        if changes:
            return tallies_of(self._rows(queries.changes_query(is_narrow, loops), values), (), digits)
        hidden = () if loops else self._rows(queries.tally_query(is_narrow, hidden=True), values)
        return tallies_of(self._rows(queries.tally_query(is_narrow, hidden=False), values), hidden, digits)

    def newest(self, limit: int) -> Sequence[Capture]:
        """As in the port, but only a limited number of captures is read, so a page with very many recent
        captures may hide others.
        """
        newest: dict[str, Capture] = {}
        for row in self._rows(queries.NEWEST, {"rows": limit * 20 + 200}):
            if len(newest) >= limit:
                break
            newest.setdefault(row[0], table.capture_in(row))
        return list(newest.values())

    # --- the whole ---

    def containers(self) -> Iterator[tuple[str, int]]:
        return iter(self._rows(b"SELECT name, captures FROM containers ORDER BY id", {}))

    def having(self, containers: Iterable[str]) -> frozenset[str]:
        rows = self._rows(queries.find_names("containers"), {"names": list(containers)})
        return frozenset(name for name, _ in rows)

    def of_container(self, container: str) -> Iterator[tuple[str, Capture]]:
        known = self._rows(
            b"SELECT containers.id, collections.name FROM containers "
            b"JOIN collections ON collections.id = containers.collection WHERE containers.name = %(name)s",
            {"name": container},
        )
        for number, collection in known:
            rows = self._rows(queries.OF_CONTAINER, {"number": number})
            yield from ((collection, table.capture_in(row)) for row in rows)

    def only_in(self, container: str) -> Sequence[str]:
        rows = self._rows(queries.ONLY_IN, {"name": container})
        return [table.digest_text(digest) for (digest,) in rows]

    def total(self) -> int:
        return int(self._rows(b"SELECT coalesce(sum(captures), 0)::bigint FROM containers", {})[0][0])

    def years(self, collection: str = EVERYTHING) -> Mapping[int, int]:
        return dict(self._rows(queries.YEARS, {"collection": "" if collection == EVERYTHING else collection}))

    # --- private ---

    def _numbered(self, place: Position) -> Place:
        """A position in numbers of these tables; after all of its second if its container is unknown."""
        known = self._rows(queries.find_names("containers"), {"names": [place.container]})
        return number_of(place.timestamp), known[0][1] if known else ALWAYS, place.offset


def remove_tables(url: str, *, password: str = "", name: str = SCHEMA_NAME) -> None:
    """Remove the tables, whatever version created them; the next index creates them again."""
    discard(url, password, name)


def _add_rows(connection: psycopg.Connection[Any], rows: Sequence[tuple[Any, ...]]) -> None:
    """Add rows by COPY; one by one if a container names the same record twice, which is rare."""
    try:
        with connection.transaction(), connection.cursor() as cursor, cursor.copy(queries.COPY) as copy:
            for row in rows:
                copy.write_row(row)
    except refusals.UniqueViolation:
        with connection.cursor() as cursor:
            cursor.executemany(queries.INSERT, rows)


def _years_of(connection: psycopg.Connection[Any], number: int) -> _Years:
    rows = connection.execute(queries.YEARS_OF_CONTAINER, {"number": number}).fetchall()
    return Counter({(collection, year): count for collection, year, count in rows})


def _count(connection: psycopg.Connection[Any], changed: _Years) -> None:
    places = [place for place, count in changed.items() if count]
    connection.execute(
        queries.COUNT_YEARS,
        {
            "collections": [collection for collection, _ in places],
            "years": [year for _, year in places],
            "counts": [changed[place] for place in places],
        },
    )


def _of_key(key: str, collection: str) -> dict[str, Any]:
    return {"site": table.site_of(key), "key": table.stored_key(key), "collection": collection}


def _of_keys(
    start: str, stop: str, collection: str, spans: Sequence[Span]
) -> tuple[tuple[bool, bool, bool, bool], dict[str, Any]]:
    """Which conditions the captures of a range of keys have, for the queries, and their values."""
    low, high, is_inexact = table.range_of(start, stop)
    starts, stops = _arrays(stretches_from(spans, 0))
    # Everything between two keys of one host is of that host. `*` follows `)`.
    host = table.host_of(start)
    of_site = ")" in start and (stop == f"{host}*" or (")" in stop and table.host_of(stop) == host))
    values = {
        "start": low,
        "stop": high,
        "exact_start": start,
        "exact_stop": stop,
        "collection": collection,
        "site": table.site_of(start),
        "starts": starts,
        "stops": stops,
    }
    is_timed = (starts, stops) != ([0], [ALWAYS])
    return (collection != EVERYTHING, is_timed, of_site, is_inexact), values


def _arrays(stretches: Iterable[Stretch]) -> tuple[list[int], list[int]]:
    given = list(stretches)
    return [start for start, _ in given], [stop for _, stop in given]
