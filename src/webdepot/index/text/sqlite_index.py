"""`SqliteTextIndex`: words and time in one SQLite file, with FTS5. For small collections, and where Tantivy
has no wheel.

    containers   name
    states       id, page, valid_from, valid_to, last_seen, collection, and what a hit shows: one for each run and collection
    seen         state, stamp                     every capture
    sites        state, site                      host and every domain above it
    payloads     payload, state                   for revisits
    waiting      payload, page as JSON            revisits whose original has not come yet
    anchors      page, external, internal         words of links to a page
    words        FTS5: title, anchors, headings, address, images, text, folded by us; weights as Tantivy's (bm25)

The same answers as Tantivy's but for three things: no stems, no bonus for words in a row, and a slow ranking
of frequent words, since FTS5 ranks all matches. Dead rows are reused by SQLite itself. Everything about time
and closed captures is SQL on single captures. https://sqlite.org/fts5.html
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from webdepot.index.sqlite_file import SqliteFile
from webdepot.index.text import states
from webdepot.index.text.folding import Leader, folded_groups
from webdepot.index.text.hits import (
    address_words,
    asked_stamps,
    digits,
    hit_of,
    sites_of,
    state_of,
    wanted_texts,
)
from webdepot.index.text.states import FOREVER, Content, Gone, Run, Seen, remaining
from webdepot.index.text.words import folded, prepared, snippet, tokens
from webdepot.model import EVERYTHING, Capture
from webdepot.ports import MOST_VALUES, Facet, Hit, Hits, PageText, Part, Sort, State, TextQuery
from webdepot.times import to_timestamp
from webdepot.url import domain_of

SCHEMA = 2
_TABLES = """
CREATE TABLE containers (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE states (
    id INTEGER PRIMARY KEY, page TEXT NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER NOT NULL, last_seen INTEGER NOT NULL,
    collection TEXT NOT NULL, url TEXT NOT NULL, mime TEXT NOT NULL, size INTEGER NOT NULL, language TEXT NOT NULL, digest BLOB NOT NULL,
    title TEXT NOT NULL, headings TEXT NOT NULL, text TEXT NOT NULL, images TEXT NOT NULL, format TEXT NOT NULL, likeness INTEGER NOT NULL,
    gone INTEGER NOT NULL, host TEXT NOT NULL, domain TEXT NOT NULL
);
CREATE TABLE anchors (page TEXT PRIMARY KEY, external TEXT NOT NULL, internal TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX by_page ON states (page, valid_from);
CREATE TABLE seen (state INTEGER, stamp INTEGER, number INTEGER, PRIMARY KEY (state, stamp, number)) WITHOUT ROWID;
CREATE TABLE sites (state INTEGER NOT NULL, site TEXT NOT NULL, PRIMARY KEY (state, site)) WITHOUT ROWID;
CREATE TABLE payloads (payload TEXT NOT NULL, state INTEGER NOT NULL, PRIMARY KEY (payload, state)) WITHOUT ROWID;
CREATE INDEX payloads_of_state ON payloads (state);
CREATE TABLE waiting (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, page TEXT NOT NULL);
CREATE INDEX waiting_for ON waiting (payload);
CREATE VIRTUAL TABLE words USING fts5 (title, external, internal, headings, address, images, body, tokenize = 'ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, 'col')
"""
_TEMPORARY = """
CREATE TEMP TABLE IF NOT EXISTS matched (
    id INTEGER PRIMARY KEY, page TEXT, score REAL, valid_from INTEGER, last_seen INTEGER, likeness INTEGER
);
CREATE TEMP TABLE IF NOT EXISTS closed (number INTEGER PRIMARY KEY, start TEXT, stop TEXT, first INTEGER, last INTEGER);
CREATE TEMP TABLE IF NOT EXISTS but (number INTEGER, start TEXT, stop TEXT);
DELETE FROM matched;
DELETE FROM closed;
DELETE FROM but
"""
# The condition on single captures: asked for, and not closed.
_ASKED = """seen.stamp BETWEEN :low AND :high AND NOT EXISTS (
    SELECT 1 FROM closed WHERE states.page >= closed.start AND states.page < closed.stop AND seen.stamp BETWEEN closed.first AND closed.last
    AND NOT EXISTS (SELECT 1 FROM but WHERE but.number = closed.number AND states.page >= but.start AND states.page < but.stop))"""
_SIGNLESS = (1 << 64) - 1
_COLUMNS = {
    Part.TITLE: "title",
    Part.HEADINGS: "headings",
    Part.ADDRESS: "address",
    Part.TEXT: "body",
    Part.IMAGE: "images",
    Part.ANCHOR: "external internal",
}
_FACETS = {
    Facet.SITE: "host",
    Facet.DOMAIN: "domain",
    Facet.COLLECTION: "collection",
    Facet.FORMAT: "format",
    Facet.LANGUAGE: "language",
}
_ORDERS = {
    Sort.RELEVANCE: "min(score), max(last_seen) DESC",
    Sort.OLDEST: "min(valid_from)",
    Sort.NEWEST: "max(last_seen) DESC",
}
_BEST = {
    # SQLite gives the other columns of the row that has the one min() or max():
    # https://sqlite.org/lang_select.html#bareagg
    Sort.RELEVANCE: "min(score - last_seen / 1e18)",
    Sort.OLDEST: "min(valid_from)",
    Sort.NEWEST: "max(last_seen)",
}


class SqliteTextIndex:
    """The `TextIndex` in one file below a folder."""

    def __init__(self, folder: Path) -> None:
        self._file = SqliteFile(
            folder / "words.db", what="index of words", tables=_TABLES, made_with={"schema": SCHEMA}
        )

    # --- writing ---

    def add(self, container: str, pages: Iterable[PageText]) -> int:
        added = 0
        with self._file.transaction() as connection:
            if connection.execute("SELECT 1 FROM containers WHERE name = ?", (container,)).fetchone():
                return 0
            for page in pages:
                for found in _with_waiting(connection, page):
                    _add(connection, found)
                    added += 1
            connection.execute("INSERT INTO containers VALUES (?)", (container,))
        return added

    def clear(self) -> None:
        with self._file.transaction() as connection:
            for table in ("containers", "states", "seen", "sites", "payloads", "waiting", "anchors", "words"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names from the line above

    def remove(
        self, container: str, captures: Iterable[tuple[str, Capture]], *, payloads: Sequence[str] = ()
    ) -> int:
        with self._file.transaction() as connection:
            if not connection.execute("DELETE FROM containers WHERE name = ?", (container,)).rowcount:
                return 0
            leaving: dict[str, Gone] = {}
            removed = 0
            for collection, capture in captures:
                leaving.setdefault(capture.key, Counter())[int(capture.timestamp), collection] += 1
                removed += connection.execute(
                    "DELETE FROM waiting WHERE payload = ? AND page ->> '$.key' = ? AND page ->> '$.timestamp' = ?",
                    (capture.digest, capture.key, capture.timestamp),
                ).rowcount
            for payload in payloads:
                found = connection.execute(
                    "SELECT page FROM states JOIN payloads ON payloads.state = states.id WHERE payload = ?",
                    (payload,),
                )
                for (page,) in found.fetchall():
                    leaving.setdefault(page, Counter())
            return removed + sum(
                _without(connection, page, gone, frozenset(payloads)) for page, gone in leaving.items()
            )

    def anchor(self, anchors: Iterable[tuple[str, str, str]]) -> int:
        with self._file.transaction() as connection:
            return sum(_anchor(connection, *one) for one in anchors)

    def compact(self) -> None:
        with self._file.transaction() as connection:
            connection.execute("INSERT INTO words(words) VALUES ('optimize')")

    # --- reading ---

    def containers(self) -> frozenset[str]:
        return frozenset(name for (name,) in self._file.rows("SELECT name FROM containers", {}))

    def total(self) -> int:
        return int(self._file.rows("SELECT count(*) FROM states WHERE NOT gone", {})[0][0])

    def dead(self) -> float:
        return 0.0

    def words(self, prefix: str, *, limit: int) -> Sequence[tuple[str, int]]:
        start, stop = _bounds(folded(prefix))
        found = self._file.rows(
            "SELECT term, doc FROM vocabulary WHERE term >= :start AND term < :stop AND col = 'body' ORDER BY doc DESC, term LIMIT :limit",
            {"start": start, "stop": stop, "limit": limit},
        )
        return [(term, count) for term, count in found]

    def find(self, query: TextQuery) -> Hits:
        with self._file.snapshot() as connection:
            _match(connection, query)
            pages: int = connection.execute("SELECT count(DISTINCT page) FROM matched").fetchone()[0]
            ranked = connection.execute(
                f"SELECT id, score, likeness, {_BEST[query.sort]} FROM matched GROUP BY page ORDER BY {_ORDERS[query.sort]}, page"  # noqa: S608
                + ("" if query.fold else " LIMIT :limit OFFSET :offset"),
                {} if query.fold else {"limit": query.limit, "offset": query.offset},
            ).fetchall()
            found = [(-score, state, like & _SIGNLESS) for state, score, like, _ in ranked]
            leaders = (
                folded_groups(found)[query.offset :][: query.limit]
                if query.fold
                else [Leader(*one[:2]) for one in found]
            )
            months = connection.execute(
                "SELECT seen.stamp / 100000000 AS month, count(*) FROM matched AS states JOIN seen ON seen.state = states.id "  # noqa: S608
                f"WHERE {_ASKED} GROUP BY month ORDER BY month",
                _asked(query),
            )
            return Hits(
                pages=pages,
                exact=True,
                hits=[_hit(connection, query, leader) for leader in leaders],
                months=dict(months.fetchall()) if query.histogram else {},
                facets={facet: _values(connection, facet) for facet in query.facets} if pages else {},
            )

    def scan(self, query: TextQuery) -> Iterator[State]:
        with self._file.snapshot() as connection:
            _match(connection, query)
            found = [
                state
                for (state,) in connection.execute("SELECT id FROM matched ORDER BY page, valid_from, id")
            ]
            for state in found:
                yield _state(connection, query, state)

    def close(self) -> None:
        self._file.close()


# --- adding ---


def _with_waiting(connection: sqlite3.Connection, page: PageText) -> Iterator[PageText]:
    """The page, and the revisits that waited for its payload."""
    yield page
    if page.repeats or not page.digest:
        return
    for (waiting,) in connection.execute(
        "DELETE FROM waiting WHERE payload = ? RETURNING page", (page.digest,)
    ).fetchall():
        yield PageText(**json.loads(waiting))


def _add(connection: sqlite3.Connection, page: PageText) -> None:
    """Join one capture with what the index has of its page."""
    content = states.content_of(page) if not page.repeats else _content_with(connection, page.digest)
    if content is None:
        connection.execute(
            "INSERT INTO waiting (payload, page) VALUES (?, ?)", (page.digest, json.dumps(asdict(page)))
        )
        return
    new = Seen(int(page.timestamp), page.collection, replace(content, url=page.url))
    starts = [
        start
        for (start,) in connection.execute(
            "SELECT DISTINCT valid_from FROM states WHERE page = ? ORDER BY 1", (page.key,)
        )
    ]
    part = states.touched(starts, [new.stamp])
    known = [seen for start in starts[part] for seen in _taken_out(connection, page.key, start)]
    for run in states.merged(known, [new], until=starts[part.stop] if part.stop < len(starts) else FOREVER):
        _put(connection, page.key, run)


def _taken_out(connection: sqlite3.Connection, page: str, start: int) -> Iterator[Seen]:
    """The captures of a run, whose rows are removed."""
    for (state,) in connection.execute(
        "SELECT id FROM states WHERE page = ? AND valid_from = ?", (page, start)
    ).fetchall():
        content, collection = _content(connection, state)
        stamps = [
            stamp
            for (stamp,) in connection.execute(
                "SELECT stamp FROM seen WHERE state = ? ORDER BY stamp, number", (state,)
            )
        ]
        for statement in (
            "states WHERE id",
            "seen WHERE state",
            "sites WHERE state",
            "payloads WHERE state",
            "words WHERE rowid",
        ):
            connection.execute(f"DELETE FROM {statement} = ?", (state,))  # noqa: S608 - from the line above
        yield from (Seen(stamp, collection, content) for stamp in stamps)


def _without(connection: sqlite3.Connection, page: str, gone: Gone, payloads: frozenset[str]) -> int:
    """Write a page again without some of its captures; how many left."""
    starts = connection.execute(
        "SELECT DISTINCT valid_from FROM states WHERE page = ? ORDER BY 1", (page,)
    ).fetchall()
    known = [seen for (start,) in starts for seen in _taken_out(connection, page, start)]
    staying = list(remaining(known, gone, payloads))
    for run in states.merged(staying, (), until=FOREVER):
        _put(connection, page, run)
    return len(known) - len(staying)


def _put(connection: sqlite3.Connection, page: str, run: Run) -> None:
    content = run.content
    for collection in sorted({one.collection for one in run.seen}):
        stamps = [one.stamp for one in run.seen if one.collection == collection]
        when = (run.valid_from, run.valid_to, stamps[-1])
        shown = (
            content.url,
            content.mime,
            content.size_bytes,
            content.language,
            content.words,
            content.title,
            content.headings,
            content.text,
            content.images,
            content.format,
            _signed(content.likeness),
            content.gone,
            next(sites_of(content.url)),
            domain_of(content.url),
        )
        state = connection.execute(
            f"INSERT INTO states VALUES (NULL{', ?' * (5 + len(shown))}) RETURNING id",  # noqa: S608 - question marks
            (page, *when, collection, *shown),
        ).fetchone()[0]
        connection.executemany(
            "INSERT INTO seen VALUES (?, ?, ?)",
            [(state, stamp, number) for number, stamp in enumerate(stamps)],
        )
        connection.executemany(
            "INSERT INTO sites VALUES (?, ?)", [(state, site) for site in sites_of(content.url)]
        )
        connection.executemany(
            "INSERT INTO payloads VALUES (?, ?)", [(payload, state) for payload in content.payloads]
        )
        if not content.gone:
            _index(connection, state, page, content)


def _index(connection: sqlite3.Connection, state: int, page: str, content: Content) -> None:
    anchors = connection.execute(
        "SELECT external, internal FROM anchors WHERE page = ?", (page,)
    ).fetchone() or ("", "")
    parts = (
        content.title,
        *anchors,
        content.headings,
        address_words(content.url),
        content.images,
        content.text,
    )
    connection.execute(
        "INSERT INTO words (rowid, title, external, internal, headings, address, images, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (state, *map(_indexed, parts)),
    )


def _anchor(connection: sqlite3.Connection, page: str, external: str, internal: str) -> bool:
    states_of_page = connection.execute(
        "SELECT id FROM states WHERE page = ? AND NOT gone", (page,)
    ).fetchall()
    known = connection.execute(
        "SELECT external, internal FROM anchors WHERE page = ?", (page,)
    ).fetchone() or ("", "")
    if not states_of_page or known == (external, internal):
        return False
    connection.execute("INSERT OR REPLACE INTO anchors VALUES (?, ?, ?)", (page, external, internal))
    for (state,) in states_of_page:
        connection.execute("DELETE FROM words WHERE rowid = ?", (state,))
        _index(connection, state, page, _content(connection, state)[0])
    return True


def _content(connection: sqlite3.Connection, state: int) -> tuple[Content, str]:
    row = connection.execute(
        "SELECT url, mime, size, title, headings, text, language, digest, collection, images, format, likeness, gone "
        "FROM states WHERE id = ?",
        (state,),
    ).fetchone()
    url, mime, size, title, headings, text, language, digest, collection, images, pronom, like, gone = row
    payloads = frozenset(
        payload for (payload,) in connection.execute("SELECT payload FROM payloads WHERE state = ?", (state,))
    )
    content = Content(
        url=url,
        mime=mime,
        size_bytes=size,
        title=title,
        headings=headings,
        text=text,
        language=language,
        words=digest,
        payloads=payloads,
        format=pronom,
        likeness=like & _SIGNLESS,
        images=images,
        gone=bool(gone),
    )
    return content, collection


def _signed(likeness: int) -> int:
    """SQLite's numbers have a sign."""
    return likeness - (1 << 64) if likeness >> 63 else likeness


def _content_with(connection: sqlite3.Connection, payload: str) -> Content | None:
    row = connection.execute("SELECT state FROM payloads WHERE payload = ? LIMIT 1", (payload,)).fetchone()
    return _content(connection, row[0])[0] if row else None


def _indexed(text: str) -> str:
    return " ".join(tokens(text))


# --- finding ---


def _match(connection: sqlite3.Connection, query: TextQuery) -> None:
    """Put the states that match into a temporary table: searched once, read three times."""
    for statement in _TEMPORARY.split(";\n"):
        connection.execute(statement)
    for number, closed in enumerate(query.closed):
        times = (int(closed.first), int(closed.last))
        connection.execute(
            "INSERT INTO closed VALUES (?, ?, ?, ?, ?)", (number, *_bounds(closed.prefix), *times)
        )
        connection.executemany(
            "INSERT INTO but VALUES (?, ?, ?)", [(number, *_bounds(prefix)) for prefix in closed.but]
        )
    wanted, unwanted = (
        _without_anchors(query, text) for text in (_expression(query), _any_of(query.excluded))
    )
    conditions, values = _conditions(query)
    source, score = "states", "0"
    if wanted:
        source, score = (
            "words JOIN states ON states.id = words.rowid",
            "bm25(words, 5.0, 5.0, 2.0, 2.0, 2.0, 0.5, 1.0)",
        )
        conditions.append("words MATCH :wanted")
        values["wanted"] = wanted
    if unwanted:
        conditions.append("states.id NOT IN (SELECT rowid FROM words WHERE words MATCH :unwanted)")
        values["unwanted"] = unwanted
    connection.execute(
        f"INSERT INTO matched SELECT states.id, states.page, {score}, states.valid_from, states.last_seen, states.likeness FROM {source} "  # noqa: S608
        f"WHERE {' AND '.join(conditions)}",
        values,
    )


def _conditions(query: TextQuery) -> tuple[list[str], dict[str, Any]]:
    values = _asked(query)
    conditions = ["NOT states.gone", f"EXISTS (SELECT 1 FROM seen WHERE seen.state = states.id AND {_ASKED})"]  # noqa: S608
    filters = (
        ("mime", query.mimes),
        ("language", query.languages),
        ("format", query.formats),
        ("page", query.keys),
    )
    for name, wanted in filters:
        if wanted:
            conditions.append(f"states.{name} IN ({_named(values, name, wanted)})")
    if query.sites:
        conditions.append(
            "EXISTS (SELECT 1 FROM sites WHERE sites.state = states.id"  # noqa: S608
            f" AND site IN ({_named(values, 'site', query.sites)}))"
        )
    if query.collection != EVERYTHING:
        conditions.append("states.collection = :collection")
        values["collection"] = query.collection
    if query.as_of is not None:
        conditions.append("states.valid_to > :as_of")
        values["as_of"] = int(to_timestamp(query.as_of))
    return conditions, values


def _asked(query: TextQuery) -> dict[str, Any]:
    low, high = asked_stamps(query)
    return {"low": low, "high": high}


def _bounds(prefix: str) -> tuple[str, str]:
    """Keys are ASCII, so what begins with the prefix lies below the prefix and the last character there is."""
    return prefix, prefix + "\U0010ffff"


def _named(values: dict[str, Any], name: str, wanted: Iterable[str]) -> str:
    names = {f"{name}{number}": value for number, value in enumerate(wanted)}
    values |= names
    return ", ".join(f":{one}" for one in names)


def _expression(query: TextQuery) -> str:
    """The query in FTS5's language; every word is quoted, so that nothing in it is a command."""
    parts = [_quoted(text) for text in (*query.words, *query.phrases)]
    parts += [f"({alternatives})" for group in query.alternatives if (alternatives := _any_of(group))]
    parts += [f"{{{_COLUMNS[part]}}} : {words}" for part, text in query.parts if (words := _quoted(text))]
    return " AND ".join(part for part in parts if part)


def _without_anchors(query: TextQuery, expression: str) -> str:
    return expression if query.anchors or not expression else f"- {{external internal}} : ({expression})"


def _any_of(texts: Iterable[str]) -> str:
    return " OR ".join(part for part in map(_quoted, texts) if part)


def _quoted(text: str) -> str:
    found = tokens(text)
    return f'"{" ".join(found)}"' if found else ""


def _values(connection: sqlite3.Connection, facet: Facet) -> list[tuple[str, int]]:
    column = _FACETS[facet]
    return connection.execute(
        f"SELECT states.{column}, count(*) AS number FROM matched JOIN states USING (id) WHERE states.{column} != '' "  # noqa: S608
        f"GROUP BY states.{column} ORDER BY number DESC, states.{column} LIMIT {MOST_VALUES}"
    ).fetchall()


def _hit(connection: sqlite3.Connection, query: TextQuery, leader: Leader) -> Hit:
    state = _state(connection, query, leader.place)
    return hit_of(query, state, leader, snippet(prepared(state.text), _phrases(query)))


def _state(connection: sqlite3.Connection, query: TextQuery, state: int) -> State:
    content, collection = _content(connection, state)
    page, valid_from, valid_to = connection.execute(
        "SELECT page, valid_from, valid_to FROM states WHERE id = ?", (state,)
    ).fetchone()
    stamps = connection.execute(
        f"SELECT seen.stamp FROM states JOIN seen ON seen.state = states.id WHERE states.id = :state AND {_ASKED} ORDER BY seen.stamp",  # noqa: S608
        {**_asked(query), "state": state},
    )
    anchors = connection.execute(
        "SELECT external, internal FROM anchors WHERE page = ?", (page,)
    ).fetchone() or ("", "")
    return state_of(
        query,
        content,
        key=page,
        collection=collection,
        valid=(valid_from, valid_to),
        stamps=[digits(stamp) for (stamp,) in stamps],
        anchors=anchors,
    )


def _phrases(query: TextQuery) -> list[list[str]]:
    return [found for found in map(tokens, wanted_texts(query)) if found]
