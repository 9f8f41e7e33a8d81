"""The SQL of the capture index: how captures of a key, a digest, a container or a time are read."""

from collections.abc import Sequence
from functools import cache

Stretch = tuple[int, int]
"""First and last timestamp, as numbers."""
ALWAYS = 10**14 - 1
"""The last timestamp."""

# The order of joins and the index are fixed, not left to SQLite's planner: it has no statistics of a growing
# file.
SELECT = """
SELECT keys.key, captures.timestamp, coalesce(captures.url, keys.url), captures.kind, captures.status,
       mimes.name, captures.digest, containers.name, captures.offset, captures.length, captures.redirect,
       captures.refers_to_url, captures.refers_to_timestamp, captures.loops, captures.container, captures.key
FROM {order}
     CROSS JOIN containers ON containers.id = captures.container CROSS JOIN mimes ON mimes.id = captures.mime
"""
OF_KEY = SELECT.format(order="keys CROSS JOIN captures ON captures.key = keys.id")
OF_KEY_IN_COLLECTION = SELECT.format(
    order="keys CROSS JOIN captures INDEXED BY by_collection ON captures.key = keys.id"
)
IN_COLLECTION = "AND captures.collection = (SELECT id FROM collections WHERE name = :collection)"
OF_DIGEST = SELECT.format(order="captures INDEXED BY by_digest CROSS JOIN keys ON keys.id = captures.key")
OF_CONTAINER = SELECT.format(
    order="captures INDEXED BY by_container CROSS JOIN keys ON keys.id = captures.key"
)
ONLY_IN = """
SELECT DISTINCT one.digest FROM captures AS one INDEXED BY by_container
WHERE one.container = (SELECT id FROM containers WHERE name = :name) AND one.kind IN (0, 2)
AND one.digest IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM captures AS other INDEXED BY by_digest
    WHERE other.kind = 0 AND substr(other.digest, 1, 8) = substr(one.digest, 1, 8)
    AND other.digest = one.digest AND other.container <> one.container)
"""
LATEST = SELECT.format(order="captures INDEXED BY by_time CROSS JOIN keys ON keys.id = captures.key")
REPLACE = """
UPDATE captures SET loops = 1 WHERE key = (SELECT id FROM keys WHERE key = ?) AND timestamp = ?
AND container = (SELECT id FROM containers WHERE name = ?) AND offset = ?
"""
COUNT_KEYS = (
    "SELECT count(*) FROM keys CROSS JOIN captures INDEXED BY by_collection ON captures.key = keys.id"
)
TALLY = """
SELECT captures.timestamp / :width, count(*), min(captures.timestamp), max(captures.timestamp), 0
FROM captures INDEXED BY {index} WHERE {where} GROUP BY 1 ORDER BY 1
"""
TALLY_CHANGES = """
SELECT timestamp / :width, count(*), min(timestamp), max(timestamp), max(changed) FROM (
    SELECT captures.timestamp, captures.digest IS NOT lag(captures.digest) OVER (
        ORDER BY captures.timestamp, captures.container, captures.offset) AS changed
    FROM captures WHERE {where}
) GROUP BY 1 ORDER BY 1
"""


@cache
def nearest_query(in_collection: bool) -> str:
    """The captures of the last second up to a moment, and of the first second after it, in order."""
    select, narrowed = (OF_KEY_IN_COLLECTION, IN_COLLECTION) if in_collection else (OF_KEY, "")
    index = "INDEXED BY by_collection" if in_collection else ""
    seek = f"FROM captures {index} WHERE captures.key = keys.id {narrowed} AND captures.timestamp"
    return f"""{select} WHERE keys.key = :key {narrowed} AND captures.timestamp IN (
        (SELECT max(captures.timestamp) {seek} <= :wanted), (SELECT min(captures.timestamp) {seek} > :wanted))
        ORDER BY captures.timestamp, captures.container, captures.offset"""


@cache
def page_query(in_collection: bool, newest_first: bool) -> str:
    """A page of the captures of one key, after a position."""
    select, narrowed = (OF_KEY_IN_COLLECTION, IN_COLLECTION) if in_collection else (OF_KEY, "")
    way, comparison = (" DESC", "<") if newest_first else ("", ">")
    return (
        f"{select} WHERE keys.key = :key {narrowed} AND captures.timestamp BETWEEN :start AND :end "
        f"AND (captures.timestamp, captures.container, captures.offset) {comparison} "
        "(:timestamp, :container, :offset) "
        f"ORDER BY captures.timestamp{way}, captures.container{way}, captures.offset{way} LIMIT :rows"
    )


def time_condition(stretches: Sequence[Stretch]) -> tuple[str, dict[str, int]]:
    """The condition that a capture is in one of the stretches, and its values."""
    if len(stretches) == 1 and stretches[0] == (0, ALWAYS):
        return "", {}
    either = " OR ".join(f"captures.timestamp BETWEEN :from{at} AND :to{at}" for at in range(len(stretches)))
    bounds = {
        f"{name}{at}": edge
        for at, stretch in enumerate(stretches)
        for name, edge in zip(("from", "to"), stretch, strict=True)
    }
    return f"AND ({either})", bounds
