"""The SQL of the capture index on PostgreSQL: how captures of a key, a digest, a container or a time are
read and written.

Rows are found and limited first (`found`), and only these are joined with the names of containers and media
types. Spans and payloads are sent as arrays: one query, however many there are.
"""

from functools import cache

from webdepot.index.postgresql_rows import COLUMNS

_SPANS = "unnest(%(starts)s::bigint[], %(stops)s::bigint[]) AS span (start, stop)"
_IN_SPANS = f"EXISTS (SELECT 1 FROM {_SPANS} WHERE timestamp BETWEEN span.start AND span.stop)"  # noqa: S608
_COLLECTION = "collection = (SELECT id FROM collections WHERE name = %(collection)s)"
_OF_KEY = "site = %(site)s::integer AND key = %(key)s"
# `key || ''`: the checksum finds the key, and no other index can.
_OF_KEY_IN_COLLECTION = (
    "site = %(site)s::integer AND hashtextextended(key, 0) = hashtextextended(%(key)s, 0) "
    f"AND key || '' = %(key)s AND {_COLLECTION}"
)
_PLACE = 'captures.timestamp, captures.container, captures."offset"'


def _of_key(in_collection: bool) -> str:
    return _OF_KEY_IN_COLLECTION if in_collection else _OF_KEY


def found(rows: str, order: str, *, also: str = "") -> bytes:
    """The columns of a capture for rows of the table, in an order."""
    key = "coalesce(captures.full_key, captures.key)"
    return f"""SELECT {also} {key}, captures.timestamp,
        captures.url || CASE WHEN captures.headed THEN substr({key}, strpos({key}, ')') + 1) ELSE '' END,
        captures.kind, captures.status, mimes.name, captures.digest, containers.name, captures."offset",
        captures.length, captures.redirect, captures.refers_to_url, captures.refers_to_timestamp,
        captures.loops, captures.container, captures.key
        FROM ({rows}) AS captures JOIN containers ON containers.id = captures.container
        JOIN mimes ON mimes.id = captures.mime ORDER BY {order}""".encode()  # noqa: S608 - our own


@cache
def edge_query(in_collection: bool, *, first: bool = False, last: bool = False) -> bytes:
    """The capture of the last second of the spans, and that of the first second of the spans `after`: the
    last one of its second.
    """
    edges = [_edge(in_collection, "DESC", "")] if last else []
    edges += [_edge(in_collection, "ASC", "after_")] if first else []
    return found(" UNION ALL ".join(f"({edge})" for edge in edges), "captures.timestamp")


def _edge(in_collection: bool, way: str, spans: str) -> str:
    of_key = _of_key(in_collection)
    return f"""SELECT * FROM captures WHERE {of_key} AND timestamp = (
        SELECT edge.timestamp FROM unnest(%({spans}starts)s::bigint[], %({spans}stops)s::bigint[])
            AS span (start, stop)
        CROSS JOIN LATERAL (
            SELECT timestamp FROM captures WHERE {of_key} AND timestamp BETWEEN span.start AND span.stop
            ORDER BY timestamp {way} LIMIT 1) AS edge
        ORDER BY edge.timestamp {way} LIMIT 1)
        ORDER BY container DESC, "offset" DESC LIMIT 1"""  # noqa: S608 - our own


@cache
def page_query(in_collection: bool, newest_first: bool) -> bytes:
    """A page of the captures of one key, after a place."""
    way, comparison = (" DESC", "<") if newest_first else ("", ">")
    order = f'captures.timestamp{way}, captures.container{way}, captures."offset"{way}'
    return found(
        f"""SELECT * FROM captures WHERE {_of_key(in_collection)}
        AND timestamp BETWEEN %(start)s AND %(end)s
        AND (timestamp, container, "offset") {comparison} (%(timestamp)s, %(container)s, %(offset)s)
        ORDER BY {order} LIMIT %(rows)s""",  # noqa: S608 - our own
        order,
    )


def _of_keys(in_collection: bool, timed: bool, of_site: bool, exact: bool) -> str:
    conditions = ["key >= %(start)s", "key < %(stop)s"]
    conditions += ["site = %(site)s::integer"] if of_site else []
    conditions += [_COLLECTION] if in_collection else []
    conditions += ["coalesce(full_key, key) >= %(exact_start)s"] if exact else []
    conditions += ["coalesce(full_key, key) < %(exact_stop)s"] if exact else []
    conditions += [_IN_SPANS] if timed else []
    return " AND ".join(conditions)


@cache
def scan_query(in_collection: bool, timed: bool, of_site: bool, exact: bool) -> bytes:
    """A page of the captures of many keys, after a place."""
    order = f"captures.key, {_PLACE}"
    return found(
        f"""SELECT * FROM captures WHERE {_of_keys(in_collection, timed, of_site, exact)}
        AND (key, timestamp, container, "offset")
            > (%(after)s, %(timestamp)s, %(container)s, %(offset)s)
        ORDER BY {order} LIMIT %(rows)s""",  # noqa: S608 - our own
        order,
    )


@cache
def count_query(in_collection: bool, timed: bool, of_site: bool, exact: bool) -> bytes:
    """How many captures many keys have."""
    where = _of_keys(in_collection, timed, of_site, exact)
    return f"SELECT count(*) FROM captures WHERE {where}".encode()  # noqa: S608 - our own


@cache
def tally_query(in_collection: bool, hidden: bool) -> bytes:
    """The captures of a key by period, or only those that version lists hide."""
    where = _OF_KEY_IN_COLLECTION if in_collection else _OF_KEY
    where += " AND loops" if hidden else ""
    return f"""SELECT timestamp / %(width)s, count(*), min(timestamp), max(timestamp), 0
        FROM {_SPANS} JOIN captures ON timestamp BETWEEN span.start AND span.stop
        WHERE {where} GROUP BY 1 ORDER BY 1""".encode()  # noqa: S608 - our own


@cache
def changes_query(in_collection: bool, loops: bool) -> bytes:
    """The captures of a key by period, and whether one has other bytes than the one before it."""
    where = _of_key(in_collection) + ("" if loops else " AND NOT loops")
    return f"""SELECT timestamp / %(width)s, count(*), min(timestamp), max(timestamp), max(changed) FROM (
            SELECT timestamp, (digest IS DISTINCT FROM lag(digest) OVER earlier)::integer AS changed
            FROM {_SPANS} JOIN captures ON timestamp BETWEEN span.start AND span.stop WHERE {where}
            WINDOW earlier AS (ORDER BY timestamp, container, "offset")
        ) AS steps GROUP BY 1 ORDER BY 1""".encode()  # noqa: S608 - our own


_SAME_PAYLOAD = """
SELECT {rank} AS rank, captures.* FROM captures
WHERE kind = 0 AND substr(digest, 1, 8) = substr(wanted.digest, 1, 8) AND digest = wanted.digest"""
DIGESTS = found(
    f"""SELECT wanted.number, same.* FROM unnest(
            %(digests)s::bytea[], %(keys)s::text[], %(sites)s::integer[]
        ) WITH ORDINALITY AS wanted (digest, key, site, number)
        CROSS JOIN LATERAL (
            ({_SAME_PAYLOAD.format(rank=0)} AND site = wanted.site
                AND hashtextextended(captures.key, 0) = hashtextextended(wanted.key, 0)
                AND captures.key || '' = wanted.key ORDER BY timestamp LIMIT 1)
            UNION ALL ({_SAME_PAYLOAD.format(rank=1)} LIMIT 1)
            ORDER BY rank LIMIT 1) AS same""",  # noqa: S608 - our own
    "captures.number",
    also="captures.number,",
)
NEWEST = found(
    """SELECT * FROM captures WHERE kind = 0 AND status = 200 AND mime <= 2
    ORDER BY timestamp DESC LIMIT %(rows)s""",
    "captures.timestamp DESC",
)
OF_CONTAINER = found("SELECT * FROM captures WHERE container = %(number)s::integer", 'captures."offset"')
ONLY_IN = b"""
SELECT DISTINCT one.digest FROM captures AS one
WHERE one.container = (SELECT id FROM containers WHERE name = %(name)s) AND one.kind IN (0, 2)
AND one.digest IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM captures AS other WHERE other.kind = 0
    AND substr(other.digest, 1, 8) = substr(one.digest, 1, 8) AND other.digest = one.digest
    AND other.container <> one.container)
"""
HOLD = b"""
INSERT INTO containers (name, collection, captures) VALUES (%(name)s, %(collection)s, 0)
ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id, captures
"""
YEARS_OF_CONTAINER = b"""
SELECT collection, timestamp / 10000000000, count(*) FROM captures
WHERE container = %(number)s::integer GROUP BY 1, 2
"""
COUNT_YEARS = b"""
INSERT INTO years SELECT * FROM unnest(%(collections)s::integer[], %(years)s::integer[], %(counts)s::bigint[])
ORDER BY 1, 2 ON CONFLICT (collection, year) DO UPDATE SET captures = years.captures + excluded.captures
"""
YEARS = b"""
SELECT year, sum(captures)::bigint FROM years
WHERE %(collection)s = '' OR collection = (SELECT id FROM collections WHERE name = %(collection)s)
GROUP BY 1 HAVING sum(captures) > 0 ORDER BY 1
"""
REPLACE = b"""
UPDATE captures SET loops = true WHERE site = %(site)s::integer AND key = %(key)s
AND timestamp = %(timestamp)s AND "offset" = %(offset)s
AND container = (SELECT id FROM containers WHERE name = %(container)s)
"""
COPY = f"COPY captures ({COLUMNS}) FROM STDIN".encode()
_IN_KEY = ("key", "timestamp", "container", '"offset"', "site")
_OTHERS = [column for column in COLUMNS.split(", ") if column not in _IN_KEY]
INSERT = (
    f"INSERT INTO captures ({COLUMNS}) VALUES ({', '.join(['%s'] * len(COLUMNS.split(', ')))}) "  # noqa: S608
    f"ON CONFLICT ({', '.join(_IN_KEY)}) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in _OTHERS)
).encode()


@cache
def add_names(table: str) -> bytes:
    """Add those of these names that a table does not have yet."""
    return (
        f"INSERT INTO {table} (name) SELECT wanted FROM unnest(%(names)s::text[]) AS wanted "  # noqa: S608
        f"WHERE NOT EXISTS (SELECT 1 FROM {table} WHERE name = wanted) ORDER BY 1 ON CONFLICT DO NOTHING "
        "RETURNING id"
    ).encode()


@cache
def find_names(table: str) -> bytes:
    """Those of these names that a table has, with their numbers."""
    return f"SELECT name, id FROM {table} WHERE name = ANY(%(names)s::text[])".encode()  # noqa: S608
