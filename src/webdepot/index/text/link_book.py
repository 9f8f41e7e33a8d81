"""`LinkBook`: which page links where with which text, and the link texts for each page (link inversion).

    links     container, target (key), source (key), timestamp, words
    changed   target: pages whose link texts may differ from those in the text index

A container's links are replaced when it is read again. For a page, each text counts once for each site that
it comes from: a link in the menu of a thousand pages is one vote. The file can be deleted; the next rebuild
of the index writes it again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from webdepot.index.sqlite_file import SqliteFile

SCHEMA = 1
_TABLES = """
CREATE TABLE links (
    container TEXT NOT NULL, target TEXT NOT NULL, source TEXT NOT NULL, timestamp TEXT NOT NULL,
    words TEXT NOT NULL
);
CREATE INDEX links_of_container ON links (container);
CREATE INDEX links_to ON links (target, source);
CREATE INDEX links_from ON links (source);
CREATE TABLE changed (target TEXT PRIMARY KEY) WITHOUT ROWID
"""
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
        self._file = SqliteFile(path, what="book of links", tables=_TABLES, made_with={"schema": SCHEMA})

    def add(self, container: str, links: Iterable[Link]) -> None:
        """Add the links of a container, replacing those that the book has of it."""
        with self._file.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO changed SELECT target FROM links WHERE container = ?",
                (container,),
            )
            connection.execute("DELETE FROM links WHERE container = ?", (container,))
            rows = ((container, link.target, link.source, link.timestamp, link.words) for link in links)
            connection.executemany("INSERT INTO links VALUES (?, ?, ?, ?, ?)", rows)
            connection.execute(
                "INSERT OR IGNORE INTO changed SELECT target FROM links WHERE container = ?",
                (container,),
            )

    def reconsider(self, prefix: str) -> None:
        """Mark the targets of pages below a prefix as changed: links on these pages may have been opened or
        closed.
        """
        with self._file.transaction() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO changed SELECT target FROM links WHERE source >= ? AND source < ?",
                (prefix, prefix + "\U0010ffff"),
            )

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
            "SELECT source, timestamp, words FROM links WHERE target = :target LIMIT :most",
            {"target": target, "most": _MOST_READ},
        )
        own = target.partition(")")[0]
        votes: tuple[dict[str, set[str]], dict[str, set[str]]] = ({}, {})
        for source, timestamp, words in rows:
            site = source.partition(")")[0]
            if is_open(source, timestamp):
                votes[site == own].setdefault(words, set()).add(site)
        external, internal = map(_most_used, votes)
        return target, external, internal

    def close(self) -> None:
        self._file.close()


def _most_used(votes: dict[str, set[str]]) -> str:
    ordered = sorted(votes, key=lambda words: (-len(votes[words]), words))[:_MOST_TEXTS]
    return "\n".join(ordered)[:_LONGEST_CHARS]
