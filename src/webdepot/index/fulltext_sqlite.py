"""`SqliteTextIndex`: words and time in one SQLite file, with FTS5. For small collections, and where Tantivy has no wheel.

    containers   name
    states       id, page, valid_from, valid_to, last_seen, collection, and what a hit shows: one for each run and collection
    seen         state, stamp                     every capture
    sites        state, site                      host and every domain above it
    payloads     payload, state                   for revisits
    waiting      payload, page as JSON            revisits whose original has not come yet
    words        FTS5: title, headings, address, text, folded by us; weights 5, 2, 2, 1 (bm25)

The same answers as Tantivy's but for three things: no stems, no bonus for words in a row, and a slow ranking of frequent words, since
FTS5 ranks all matches. Everything about time and closed captures is SQL on single captures. https://sqlite.org/fts5.html
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from webdepot.index import states
from webdepot.index.fulltext_schema import address_words, asked_stamps, sites_of
from webdepot.index.sqlite_file import SqliteFile
from webdepot.index.states import FOREVER, Content, Run, Seen
from webdepot.index.words import prepared, snippet, tokens
from webdepot.model import EVERYTHING
from webdepot.ports import Hit, Hits, PageText, Sort, TextQuery
from webdepot.times import to_timestamp

SCHEMA = 1
_TABLES = """
CREATE TABLE containers (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE states (
    id INTEGER PRIMARY KEY, page TEXT NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER NOT NULL, last_seen INTEGER NOT NULL,
    collection TEXT NOT NULL, url TEXT NOT NULL, mime TEXT NOT NULL, size INTEGER NOT NULL, language TEXT NOT NULL, digest BLOB NOT NULL,
    title TEXT NOT NULL, headings TEXT NOT NULL, text TEXT NOT NULL
);
CREATE INDEX by_page ON states (page, valid_from);
CREATE TABLE seen (state INTEGER, stamp INTEGER, number INTEGER, PRIMARY KEY (state, stamp, number)) WITHOUT ROWID;
CREATE TABLE sites (state INTEGER NOT NULL, site TEXT NOT NULL, PRIMARY KEY (state, site)) WITHOUT ROWID;
CREATE TABLE payloads (payload TEXT NOT NULL, state INTEGER NOT NULL, PRIMARY KEY (payload, state)) WITHOUT ROWID;
CREATE INDEX payloads_of_state ON payloads (state);
CREATE TABLE waiting (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, page TEXT NOT NULL);
CREATE INDEX waiting_for ON waiting (payload);
CREATE VIRTUAL TABLE words USING fts5 (title, headings, address, body, tokenize = 'ascii')
"""
_TEMPORARY = """
CREATE TEMP TABLE IF NOT EXISTS matched (id INTEGER PRIMARY KEY, page TEXT, score REAL, valid_from INTEGER, last_seen INTEGER);
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
_ORDERS = {
    Sort.RELEVANCE: "min(score), max(last_seen) DESC",
    Sort.OLDEST: "min(valid_from)",
    Sort.NEWEST: "max(last_seen) DESC",
}
_BEST = {
    # SQLite gives the other columns of the row that has the one min() or max(): https://sqlite.org/lang_select.html#bareagg
    Sort.RELEVANCE: "min(score - last_seen / 1e18)",
    Sort.OLDEST: "min(valid_from)",
    Sort.NEWEST: "max(last_seen)",
}


class SqliteTextIndex:
    """The `TextIndex` in one file below a folder."""

    def __init__(self, folder: Path) -> None:
        self._file = SqliteFile(folder / "words.db", what="index of words", tables=_TABLES, made_with={"schema": SCHEMA})

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
            for table in ("containers", "states", "seen", "sites", "payloads", "waiting", "words"):
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names from the line above

    # --- reading ---

    def containers(self) -> frozenset[str]:
        return frozenset(name for (name,) in self._file.rows("SELECT name FROM containers", {}))

    def total(self) -> int:
        return int(self._file.rows("SELECT count(*) FROM states", {})[0][0])

    def find(self, query: TextQuery) -> Hits:
        with self._file.snapshot() as connection:
            _match(connection, query)
            pages: int = connection.execute("SELECT count(DISTINCT page) FROM matched").fetchone()[0]
            hits = connection.execute(
                f"SELECT id, score, {_BEST[query.sort]} FROM matched GROUP BY page ORDER BY {_ORDERS[query.sort]}, page "  # noqa: S608
                "LIMIT :limit OFFSET :offset",
                {"limit": query.limit, "offset": query.offset},
            ).fetchall()
            years = connection.execute(
                "SELECT seen.stamp / 10000000000 AS year, count(*) FROM matched AS states JOIN seen ON seen.state = states.id "  # noqa: S608
                f"WHERE {_ASKED} GROUP BY year ORDER BY year",
                _asked(query),
            ).fetchall()
            return Hits(pages=pages, exact=True, hits=[_hit(connection, query, *row[:2]) for row in hits], years=dict(years))

    def close(self) -> None:
        self._file.close()


# --- adding ------------------------------------------------------------------------------------------------------------------


def _with_waiting(connection: sqlite3.Connection, page: PageText) -> Iterator[PageText]:
    """The page, and the revisits that waited for its payload."""
    yield page
    if page.repeats or not page.digest:
        return
    for (waiting,) in connection.execute("DELETE FROM waiting WHERE payload = ? RETURNING page", (page.digest,)).fetchall():
        yield PageText(**json.loads(waiting))


def _add(connection: sqlite3.Connection, page: PageText) -> None:
    """Join one capture with what the index has of its page."""
    content = states.content_of(page) if not page.repeats else _content_with(connection, page.digest)
    if content is None:
        connection.execute("INSERT INTO waiting (payload, page) VALUES (?, ?)", (page.digest, json.dumps(asdict(page))))
        return
    new = Seen(int(page.timestamp), page.collection, replace(content, url=page.url))
    starts = [start for (start,) in connection.execute("SELECT DISTINCT valid_from FROM states WHERE page = ? ORDER BY 1", (page.key,))]
    part = states.touched(starts, [new.stamp])
    known = [seen for start in starts[part] for seen in _taken_out(connection, page.key, start)]
    for run in states.merged(known, [new], until=starts[part.stop] if part.stop < len(starts) else FOREVER):
        _put(connection, page.key, run)


def _taken_out(connection: sqlite3.Connection, page: str, start: int) -> Iterator[Seen]:
    """The captures of a run, whose rows are removed."""
    for (state,) in connection.execute("SELECT id FROM states WHERE page = ? AND valid_from = ?", (page, start)).fetchall():
        content, collection = _content(connection, state)
        stamps = [stamp for (stamp,) in connection.execute("SELECT stamp FROM seen WHERE state = ? ORDER BY stamp, number", (state,))]
        for statement in ("states WHERE id", "seen WHERE state", "sites WHERE state", "payloads WHERE state", "words WHERE rowid"):
            connection.execute(f"DELETE FROM {statement} = ?", (state,))  # noqa: S608 - from the line above
        yield from (Seen(stamp, collection, content) for stamp in stamps)


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
        )
        state = connection.execute(
            "INSERT INTO states VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id", (page, *when, collection, *shown)
        ).fetchone()[0]
        connection.executemany("INSERT INTO seen VALUES (?, ?, ?)", [(state, stamp, number) for number, stamp in enumerate(stamps)])
        connection.executemany("INSERT INTO sites VALUES (?, ?)", [(state, site) for site in sites_of(content.url)])
        connection.executemany("INSERT INTO payloads VALUES (?, ?)", [(payload, state) for payload in content.payloads])
        parts = (content.title, content.headings, address_words(content.url), content.text)
        connection.execute(
            "INSERT INTO words (rowid, title, headings, address, body) VALUES (?, ?, ?, ?, ?)", (state, *map(_indexed, parts))
        )


def _content(connection: sqlite3.Connection, state: int) -> tuple[Content, str]:
    row = connection.execute(
        "SELECT url, mime, size, title, headings, text, language, digest, collection FROM states WHERE id = ?", (state,)
    ).fetchone()
    url, mime, size, title, headings, text, language, digest, collection = row
    payloads = frozenset(payload for (payload,) in connection.execute("SELECT payload FROM payloads WHERE state = ?", (state,)))
    content = Content(
        url=url, mime=mime, size_bytes=size, title=title, headings=headings, text=text, language=language, words=digest, payloads=payloads
    )
    return content, collection


def _content_with(connection: sqlite3.Connection, payload: str) -> Content | None:
    row = connection.execute("SELECT state FROM payloads WHERE payload = ? LIMIT 1", (payload,)).fetchone()
    return _content(connection, row[0])[0] if row else None


def _indexed(text: str) -> str:
    return " ".join(tokens(text))


# --- finding -----------------------------------------------------------------------------------------------------------------


def _match(connection: sqlite3.Connection, query: TextQuery) -> None:
    """Put the states that match into a temporary table: searched once, read three times."""
    for statement in _TEMPORARY.split(";\n"):
        connection.execute(statement)
    for number, closed in enumerate(query.closed):
        times = (int(closed.first), int(closed.last))
        connection.execute("INSERT INTO closed VALUES (?, ?, ?, ?, ?)", (number, *_bounds(closed.prefix), *times))
        connection.executemany("INSERT INTO but VALUES (?, ?, ?)", [(number, *_bounds(prefix)) for prefix in closed.but])
    wanted, unwanted = _expression(query), _any_of(query.excluded)
    conditions, values = _conditions(query)
    source, score = "states", "0"
    if wanted:
        source, score = "words JOIN states ON states.id = words.rowid", "bm25(words, 5.0, 2.0, 2.0, 1.0)"
        conditions.append("words MATCH :wanted")
        values["wanted"] = wanted
    if unwanted:
        conditions.append("states.id NOT IN (SELECT rowid FROM words WHERE words MATCH :unwanted)")
        values["unwanted"] = unwanted
    connection.execute(
        f"INSERT INTO matched SELECT states.id, states.page, {score}, states.valid_from, states.last_seen FROM {source} "  # noqa: S608
        f"WHERE {' AND '.join(conditions)}",
        values,
    )


def _conditions(query: TextQuery) -> tuple[list[str], dict[str, Any]]:
    values = _asked(query)
    conditions = [f"EXISTS (SELECT 1 FROM seen WHERE seen.state = states.id AND {_ASKED})"]  # noqa: S608
    for column, name, wanted in (("states.mime", "mime", query.mimes), ("states.language", "language", query.languages)):
        if wanted:
            conditions.append(f"{column} IN ({_named(values, name, wanted)})")
    if query.sites:
        conditions.append(f"EXISTS (SELECT 1 FROM sites WHERE sites.state = states.id AND site IN ({_named(values, 'site', query.sites)}))")  # noqa: S608
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
    return " AND ".join(part for part in parts if part)


def _any_of(texts: Iterable[str]) -> str:
    return " OR ".join(part for part in map(_quoted, texts) if part)


def _quoted(text: str) -> str:
    found = tokens(text)
    return f'"{" ".join(found)}"' if found else ""


def _hit(connection: sqlite3.Connection, query: TextQuery, state: int, score: float) -> Hit:
    content, _ = _content(connection, state)
    page: str = connection.execute("SELECT page FROM states WHERE id = ?", (state,)).fetchone()[0]
    stamps = [
        f"{stamp:014d}"
        for (stamp,) in connection.execute(
            f"SELECT seen.stamp FROM states JOIN seen ON seen.state = states.id WHERE states.id = :state AND {_ASKED} ORDER BY seen.stamp",  # noqa: S608
            {**_asked(query), "state": state},
        )
    ]
    text, marks = snippet(prepared(content.text), _phrases(query))
    return Hit(
        key=page,
        url=content.url,
        timestamp=stamps[0] if query.sort is Sort.OLDEST else stamps[-1],
        title=content.title,
        snippet=text,
        marks=marks,
        mime=content.mime,
        size_bytes=content.size_bytes,
        language=content.language,
        versions=len(stamps),
        score=-score,
    )


def _phrases(query: TextQuery) -> list[list[str]]:
    wanted = [*query.phrases, *query.words, *(text for group in query.alternatives for text in group)]
    return [found for found in map(tokens, wanted) if found]
