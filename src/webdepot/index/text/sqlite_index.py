"""`SqliteTextIndex`: the text index in one SQLite file, with FTS5. For small collections, and for systems
without a Tantivy wheel.

    containers   name
    states       id, page, valid_from, valid_to, last_seen, collection, and what a hit shows; one row for each
                 run and collection
    seen         state, stamp, number             every capture
    sites        state, site                      the host and every domain above it
    payloads     payload, state                   for revisits
    waiting      payload, page as JSON            revisits whose original has not been added yet
    anchors      page, external, internal         texts of links to a page
    words        FTS5: title, external, internal, headings, address, images, body; folded by us, ranked by
                 bm25 with the weights of `weights.py`

It gives the same answers as Tantivy, with four differences: no stems, no bonus for phrases, a home page
counts like any other page, and ranking frequent words is slow, since FTS5 ranks all matches. SQLite reuses
the space of deleted rows. Everything about time and closed captures is SQL on single captures.
https://sqlite.org/fts5.html

Writing is in `sqlite_add.py`, searching in `sqlite_find.py`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from webdepot.index import page_files
from webdepot.index.sqlite_file import SqliteFile
from webdepot.index.text import sqlite_add, sqlite_find
from webdepot.index.text.states import LeavingCaptures
from webdepot.index.text.words import folded
from webdepot.model import Capture
from webdepot.ports.engine import Engine
from webdepot.ports.search import Hits, PageFile, PageText, State, TextQuery

SCHEMA = 2
_TABLES = """
CREATE TABLE containers (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE states (
    id INTEGER PRIMARY KEY, page TEXT NOT NULL, valid_from INTEGER NOT NULL, valid_to INTEGER NOT NULL,
    last_seen INTEGER NOT NULL, collection TEXT NOT NULL, url TEXT NOT NULL, mime TEXT NOT NULL,
    size INTEGER NOT NULL, language TEXT NOT NULL, digest BLOB NOT NULL, title TEXT NOT NULL,
    headings TEXT NOT NULL, text TEXT NOT NULL, images TEXT NOT NULL, format TEXT NOT NULL,
    likeness INTEGER NOT NULL, gone INTEGER NOT NULL, host TEXT NOT NULL, domain TEXT NOT NULL
);
CREATE TABLE anchors (page TEXT PRIMARY KEY, external TEXT NOT NULL, internal TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX by_page ON states (page, valid_from);
CREATE TABLE seen (
    state INTEGER, stamp INTEGER, number INTEGER, PRIMARY KEY (state, stamp, number)
) WITHOUT ROWID;
CREATE TABLE sites (state INTEGER NOT NULL, site TEXT NOT NULL, PRIMARY KEY (state, site)) WITHOUT ROWID;
CREATE TABLE payloads (
    payload TEXT NOT NULL, state INTEGER NOT NULL, PRIMARY KEY (payload, state)
) WITHOUT ROWID;
CREATE INDEX payloads_of_state ON payloads (state);
CREATE TABLE waiting (id INTEGER PRIMARY KEY, payload TEXT NOT NULL, page TEXT NOT NULL);
CREATE INDEX waiting_for ON waiting (payload);
CREATE VIRTUAL TABLE words USING fts5 (
    title, external, internal, headings, address, images, body, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, 'col')
"""


class SqliteTextIndex:
    """The `TextIndex` in one file of a folder."""

    def __init__(self, folder: Path) -> None:
        self._file = SqliteFile(
            folder / "words.db", what="text index", tables=_TABLES, made_with={"schema": SCHEMA}
        )

    # --- writing ---

    def add(self, container: str, pages: Iterable[PageText]) -> int:
        added = 0
        with self._file.transaction() as connection:
            if connection.execute("SELECT 1 FROM containers WHERE name = ?", (container,)).fetchone():
                return 0
            for new in pages:
                for page in sqlite_add.with_waiting(connection, new):
                    sqlite_add.add(connection, page)
                    added += 1
            connection.execute("INSERT INTO containers VALUES (?)", (container,))
        return added

    def add_files(
        self,
        files: Sequence[PageFile],
        engine: Engine,
        *,
        formats: Callable[[Iterable[str]], Mapping[str, str]],
    ) -> int:
        """Add the files in this process: SQLite has one writer."""
        return sum(self.add(file.container, page_files.pages_in(file.path, formats)) for file in files)

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
            leaving: dict[str, LeavingCaptures] = {}
            removed = 0
            for collection, capture in captures:
                leaving.setdefault(capture.key, Counter())[int(capture.timestamp), collection] += 1
                removed += connection.execute(
                    "DELETE FROM waiting "
                    "WHERE payload = ? AND page ->> '$.key' = ? AND page ->> '$.timestamp' = ?",
                    (capture.digest, capture.key, capture.timestamp),
                ).rowcount
            for payload in payloads:
                rows = connection.execute(
                    "SELECT page FROM states JOIN payloads ON payloads.state = states.id WHERE payload = ?",
                    (payload,),
                )
                for (page,) in rows.fetchall():
                    leaving.setdefault(page, Counter())
            gone = frozenset(payloads)
            return removed + sum(
                sqlite_add.remove(connection, page, of_page, gone) for page, of_page in leaving.items()
            )

    def anchor(self, anchors: Iterable[tuple[str, str, str]], engine: Engine) -> int:
        with self._file.transaction() as connection:
            return sum(
                sqlite_add.anchor(connection, page, external, internal)
                for page, external, internal in anchors
            )

    def compact(self, engine: Engine, *, most_dead: float = 0.0) -> None:
        with self._file.transaction() as connection:
            connection.execute("INSERT INTO words(words) VALUES ('optimize')")

    # --- reading ---

    def containers(self) -> frozenset[str]:
        return frozenset(name for (name,) in self._file.rows("SELECT name FROM containers", {}))

    def having(self, containers: Iterable[str]) -> frozenset[str]:
        return self._file.names_in("containers", containers)

    def total(self) -> int:
        return int(self._file.rows("SELECT count(*) FROM states WHERE NOT gone", {})[0][0])

    def dead(self) -> float:
        return 0.0

    def words(self, prefix: str, *, limit: int) -> Sequence[tuple[str, int]]:
        start, stop = sqlite_find.bounds(folded(prefix))
        rows = self._file.rows(
            "SELECT term, doc FROM vocabulary WHERE term >= :start AND term < :stop AND col = 'body' "
            "ORDER BY doc DESC, term LIMIT :limit",
            {"start": start, "stop": stop, "limit": limit},
        )
        return [(term, count) for term, count in rows]

    def find(self, query: TextQuery) -> Hits:
        with self._file.snapshot() as connection:
            return sqlite_find.find(connection, query)

    def scan(self, query: TextQuery) -> Iterator[State]:
        with self._file.snapshot() as connection:
            yield from sqlite_find.scan(connection, query)

    def close(self) -> None:
        self._file.close()
