"""`LinkBook`: which page links where with which text, and the link texts for each page (link inversion).

    pages     id, key: pages that link or are linked to
    links     container, target (id), source (id), timestamp, words
    changed   target (key): pages whose link texts may differ from those in the text index

A container's links are replaced when it is read again. For a page, each text counts once for each site that
it comes from: a link in the menu of a thousand pages is one vote. The file can be deleted; the next rebuild
of the index writes it again. Keys and containers are stored as numbers; as texts they would be most of the
file.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from webdepot import durable
from webdepot.index.sqlite_file import PATIENCE_S, SqliteFile

SCHEMA = 2
_TABLES = """
CREATE TABLE containers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE pages (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE links (
    container INTEGER NOT NULL, target INTEGER NOT NULL, source INTEGER NOT NULL, timestamp TEXT NOT NULL,
    words TEXT NOT NULL
);
CREATE INDEX links_of_container ON links (container);
CREATE INDEX links_to ON links (target, source);
CREATE INDEX links_from ON links (source);
CREATE TABLE changed (target TEXT PRIMARY KEY) WITHOUT ROWID
"""
_CONVERTED = f"""
ALTER TABLE links RENAME TO links_before;
DROP INDEX links_of_container;
DROP INDEX links_to;
DROP INDEX links_from;
{_TABLES.rpartition("CREATE TABLE changed")[0].strip()}
INSERT INTO containers (name) SELECT DISTINCT container FROM links_before;
INSERT INTO pages (key) SELECT target FROM links_before UNION SELECT source FROM links_before;
INSERT INTO links SELECT containers.id, targets.id, sources.id, timestamp, words FROM links_before
    JOIN containers ON containers.name = container
    JOIN pages AS targets ON targets.key = target
    JOIN pages AS sources ON sources.key = source;
DROP TABLE links_before;
UPDATE meta SET value = '{SCHEMA}' WHERE name = 'schema'
"""  # noqa: S608 - our own
"""From schema 1, which had the keys and the name of the container in each link."""
_MOST_NUMBERS = 20_000
"""Numbers of pages that are kept in memory while links are added."""
_MOST_TEXTS, _LONGEST_CHARS, _MOST_READ = 50, 2000, 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    target: str
    source: str
    timestamp: str
    words: str


class LinkBook:
    """The links of all indexed containers, in one SQLite file."""

    def __init__(self, path: Path) -> None:
        _convert(path)
        self._file = SqliteFile(path, what="book of links", tables=_TABLES, made_with={"schema": SCHEMA})

    def add(self, container: str, links: Iterable[Link]) -> None:
        """Add the links of a container, replacing those that the book has of it."""
        with self._file.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO containers (name) VALUES (?)", (container,))
            ((number,),) = connection.execute("SELECT id FROM containers WHERE name = ?", (container,))
            _remove(connection, number)
            connection.executemany(
                "INSERT INTO links VALUES (?, ?, ?, ?, ?)", _rows(connection, number, links)
            )
            _mark(connection, "container = ?", (number,))
            connection.execute(
                "DELETE FROM containers WHERE id = :id "
                "AND NOT EXISTS (SELECT 1 FROM links WHERE container = :id)",
                {"id": number},
            )

    def reconsider(self, prefix: str) -> None:
        """Mark the targets of pages below a prefix as changed: links on these pages may have been opened or
        closed.
        """
        below = "source IN (SELECT id FROM pages WHERE key >= ? AND key < ?)"
        with self._file.transaction() as connection:
            _mark(connection, below, (prefix, prefix + "\U0010ffff"))

    def changed(self, *, limit: int) -> list[str]:
        """Some targets whose links have changed since they were given to `settle`, in order."""
        rows = self._file.rows("SELECT target FROM changed ORDER BY target LIMIT :limit", {"limit": limit})
        return [target for (target,) in rows]

    def settle(self, targets: Iterable[str]) -> None:
        """Mark targets as up to date in the text index."""
        with self._file.transaction() as connection:
            connection.executemany("DELETE FROM changed WHERE target = ?", [(target,) for target in targets])

    def anchors(self, target: str, is_open: Callable[[str, str], bool]) -> tuple[str, str, str]:
        """(target, texts of links from other sites, texts from its own): those that most sites use come
        first. `is_open` decides by key and timestamp whether a linking page counts.
        """
        rows = self._file.rows(
            "SELECT pages.key, timestamp, words FROM links JOIN pages ON pages.id = source "
            "WHERE target = (SELECT id FROM pages WHERE key = :target) LIMIT :most",
            {"target": target, "most": _MOST_READ},
        )
        own = target.partition(")")[0]
        votes: tuple[dict[str, set[str]], dict[str, set[str]]] = ({}, {})
        for source, timestamp, text in rows:
            site = source.partition(")")[0]
            if is_open(source, timestamp):
                votes[site == own].setdefault(text, set()).add(site)
        external, internal = map(_most_used, votes)
        return target, external, internal

    def close(self) -> None:
        self._file.close()


def _convert(path: Path) -> None:
    """Convert a book of schema 1; another one is left to `SqliteFile`, which refuses what it cannot read."""
    if not path.exists():
        return
    with closing(sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)) as connection:
        if not _has_schema_1(connection):
            return
        with durable.acquire(path.with_name(f"{path.name}.lock")):
            connection.execute("BEGIN IMMEDIATE")
            if _has_schema_1(connection):
                for statement in _CONVERTED.split(";\n"):
                    connection.execute(statement)
            connection.execute("COMMIT")


def _has_schema_1(connection: sqlite3.Connection) -> bool:
    try:
        return bool(connection.execute("SELECT 1 FROM meta WHERE (name, value) = ('schema', '1')").fetchone())
    except sqlite3.DatabaseError:
        return False


def _mark(connection: sqlite3.Connection, condition: str, values: tuple[str | int, ...]) -> None:
    """Mark the targets of the links that meet a condition as changed."""
    chosen = f"SELECT key FROM pages WHERE id IN (SELECT target FROM links WHERE {condition})"  # noqa: S608 - our own
    connection.execute(f"INSERT OR IGNORE INTO changed {chosen}", values)


def _remove(connection: sqlite3.Connection, container: int) -> None:
    """Remove the links of a container, and pages that no other link has."""
    _mark(connection, "container = ?", (container,))
    connection.execute(
        "CREATE TEMP TABLE touched AS SELECT target AS id FROM links WHERE container = :container "
        "UNION SELECT source FROM links WHERE container = :container",
        {"container": container},
    )
    connection.execute("DELETE FROM links WHERE container = ?", (container,))
    connection.execute(
        "DELETE FROM pages WHERE id IN (SELECT id FROM touched) "
        "AND NOT EXISTS (SELECT 1 FROM links WHERE target = pages.id) "
        "AND NOT EXISTS (SELECT 1 FROM links WHERE source = pages.id)"
    )
    connection.execute("DROP TABLE touched")


def _rows(
    connection: sqlite3.Connection, container: int, links: Iterable[Link]
) -> Iterator[tuple[int, int, int, str, str]]:
    numbers: dict[str, int] = {}

    def number(key: str) -> int:
        if key not in numbers:
            if len(numbers) >= _MOST_NUMBERS:
                numbers.clear()
            row = connection.execute("SELECT id FROM pages WHERE key = ?", (key,)).fetchone()
            numbers[key] = (
                row[0]
                if row
                else connection.execute("INSERT INTO pages (key) VALUES (?) RETURNING id", (key,)).fetchone()[
                    0
                ]
            )
        return numbers[key]

    for link in links:
        yield container, number(link.target), number(link.source), link.timestamp, link.words


def _most_used(votes: dict[str, set[str]]) -> str:
    ordered = sorted(votes, key=lambda text: (-len(votes[text]), text))[:_MOST_TEXTS]
    return "\n".join(ordered)[:_LONGEST_CHARS]
