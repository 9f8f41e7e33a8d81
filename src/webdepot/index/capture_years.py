"""The number of captures of each collection by year, updated as containers are added and removed, so that the
home page need not count millions of captures.

A file of an earlier version has no such table. It is created when the next container is added; until then the
captures are counted.
"""

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from webdepot.model import EVERYTHING

TABLE = """
CREATE TABLE years (
    collection INTEGER NOT NULL, year INTEGER NOT NULL, captures INTEGER NOT NULL,
    PRIMARY KEY (collection, year)
) WITHOUT ROWID"""
_EXISTS = "SELECT 1 FROM sqlite_master WHERE name = 'years'"
_COUNTED = (
    "SELECT collection, timestamp / 10000000000 AS year, count(*) AS captures FROM captures GROUP BY 1, 2"
)
_ADD = """
INSERT INTO years
SELECT containers.collection, captures.timestamp / 10000000000, :sign * count(*)
FROM containers CROSS JOIN captures INDEXED BY by_container ON captures.container = containers.id
WHERE containers.name = :name GROUP BY 1, 2
ON CONFLICT (collection, year) DO UPDATE SET captures = captures + excluded.captures
"""
_READ = """
SELECT year, sum(captures) FROM {counted}
WHERE :collection = '' OR collection = (SELECT id FROM collections WHERE name = :collection)
GROUP BY 1 HAVING sum(captures) > 0 ORDER BY 1
"""


def prepare(connection: sqlite3.Connection) -> None:
    """Create the table in a file that has none."""
    if not connection.execute(_EXISTS).fetchone():
        connection.execute(TABLE)
        connection.execute(f"INSERT INTO years {_COUNTED}")


def count(connection: sqlite3.Connection, container: str, sign: int) -> None:
    """Add the captures of a container, or with -1, subtract them."""
    connection.execute(_ADD, {"name": container, "sign": sign})


def read(rows: Callable[[str, Mapping[str, Any]], list[Any]], collection: str) -> dict[int, int]:
    """The captures of each year that has any, in order."""
    source = "years" if rows(_EXISTS, {}) else f"({_COUNTED})"
    name = "" if collection == EVERYTHING else collection
    return dict(rows(_READ.format(counted=source), {"collection": name}))
