"""One query to the SQLite text index: hits, counts, matching states. The tables are in `sqlite_index.py`."""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from webdepot import query_budget
from webdepot.index.text import sqlite_add
from webdepot.index.text.hits import asked_stamps, digits, hit_of, state_of, wanted_texts
from webdepot.index.text.near_duplicates import Leader, fold_groups
from webdepot.index.text.snippets import snippet
from webdepot.index.text.weights import WEIGHTS, RankedPart
from webdepot.index.text.words import prepared, tokens
from webdepot.model import EVERYTHING
from webdepot.ports.search import MOST_VALUES, Facet, Hit, Hits, PagePart, SearchSort, State, TextQuery
from webdepot.times import to_timestamp

_TEMPORARY = """
CREATE TEMP TABLE IF NOT EXISTS matched (
    id INTEGER PRIMARY KEY, page TEXT, score REAL, valid_from INTEGER, last_seen INTEGER, likeness INTEGER
);
CREATE TEMP TABLE IF NOT EXISTS closed (
    number INTEGER PRIMARY KEY, start TEXT, stop TEXT, first INTEGER, last INTEGER
);
CREATE TEMP TABLE IF NOT EXISTS but (number INTEGER, start TEXT, stop TEXT);
DELETE FROM matched;
DELETE FROM closed;
DELETE FROM but
"""
# The condition on single captures: within the period of the query, and not closed.
_ASKED = """seen.stamp BETWEEN :low AND :high AND NOT EXISTS (
    SELECT 1 FROM closed
    WHERE states.page >= closed.start AND states.page < closed.stop
    AND seen.stamp BETWEEN closed.first AND closed.last
    AND NOT EXISTS (
        SELECT 1 FROM but
        WHERE but.number = closed.number AND states.page >= but.start AND states.page < but.stop))"""
_COLUMNS = {
    PagePart.TITLE: "title",
    PagePart.HEADINGS: "headings",
    PagePart.ADDRESS: "address",
    PagePart.TEXT: "body",
    PagePart.IMAGE: "images",
    PagePart.ANCHOR: "external internal",
}
_RANKED_COLUMNS = (
    RankedPart.TITLE,
    RankedPart.ANCHOR,
    RankedPart.OWN_ANCHOR,
    RankedPart.HEADINGS,
    RankedPart.ADDRESS,
    RankedPart.IMAGE,
    RankedPart.TEXT,
)
"""In the order of the columns of `words`."""
_SCORE = f"bm25(words, {', '.join(str(WEIGHTS[part]) for part in _RANKED_COLUMNS)})"
_FACETS = {
    Facet.SITE: "host",
    Facet.DOMAIN: "domain",
    Facet.COLLECTION: "collection",
    Facet.FORMAT: "format",
    Facet.LANGUAGE: "language",
}
_ORDERS = {
    SearchSort.RELEVANCE: "min(score), max(last_seen) DESC",
    SearchSort.OLDEST: "min(valid_from)",
    SearchSort.NEWEST: "max(last_seen) DESC",
}
_BEST = {
    # SQLite takes the other columns from the row that has the one min() or max():
    # https://sqlite.org/lang_select.html#bareagg
    SearchSort.RELEVANCE: "min(score - last_seen / 1e18)",
    SearchSort.OLDEST: "min(valid_from)",
    SearchSort.NEWEST: "max(last_seen)",
}


def find(connection: sqlite3.Connection, query: TextQuery) -> Hits:
    _match(connection, query)
    pages: int = connection.execute("SELECT count(DISTINCT page) FROM matched").fetchone()[0]
    months = connection.execute(
        "SELECT seen.stamp / 100000000 AS month, count(*) "  # noqa: S608
        f"FROM matched AS states JOIN seen ON seen.state = states.id WHERE {_ASKED} "
        "GROUP BY month ORDER BY month",
        _asked(query),
    )
    return Hits(
        pages=pages,
        exact=True,
        hits=[_hit(connection, query, leader) for leader in _leaders(connection, query)],
        months=dict(months.fetchall()) if query.histogram else {},
        facets={facet: _facet_values(connection, facet) for facet in query.facets} if pages else {},
    )


def scan(connection: sqlite3.Connection, query: TextQuery) -> Iterator[State]:
    _match(connection, query)
    matched = connection.execute("SELECT id FROM matched ORDER BY page, valid_from, id").fetchall()
    for (state,) in matched:
        yield _state(connection, query, state)


def bounds(prefix: str, *, exact: bool = False) -> tuple[str, str]:
    """The range of keys that begin with a prefix; with `exact`, of this one key. Keys are ASCII without
    spaces, so they sort after the space and before the last character of Unicode.
    """
    return prefix, prefix + (" " if exact else "\U0010ffff")


def _leaders(connection: sqlite3.Connection, query: TextQuery) -> list[Leader]:
    """The best state of each page, or of each group of near-duplicate pages, as far as they are shown."""
    ranked = connection.execute(
        f"SELECT id, score, likeness, {_BEST[query.sort]} FROM matched "  # noqa: S608
        f"GROUP BY page ORDER BY {_ORDERS[query.sort]}, page"
        + ("" if query.fold else " LIMIT :limit OFFSET :offset"),
        {} if query.fold else {"limit": query.limit, "offset": query.offset},
    ).fetchall()
    if not query.fold:
        return [Leader(-score, state) for state, score, _, _ in ranked]
    groups = fold_groups(
        [(-score, state, sqlite_add.unsigned(likeness)) for state, score, likeness, _ in ranked]
    )
    return groups[query.offset :][: query.limit]


def _match(connection: sqlite3.Connection, query: TextQuery) -> None:
    """Put the states that match into a temporary table: searched once, read three times."""
    for statement in _TEMPORARY.split(";\n"):
        connection.execute(statement)
    for number, area in enumerate(query.closed):
        times = (int(area.first), int(area.last))
        connection.execute(
            "INSERT INTO closed VALUES (?, ?, ?, ?, ?)",
            (number, *bounds(area.prefix, exact=area.exact), *times),
        )
        excepted = [*map(bounds, area.but), *(bounds(key, exact=True) for key in area.but_keys)]
        connection.executemany("INSERT INTO but VALUES (?, ?, ?)", [(number, *each) for each in excepted])
    wanted, unwanted = (
        _without_anchors(query, text) for text in (_expression(query), _any_of(query.excluded))
    )
    conditions, values = _conditions(query)
    source, score = "states", "0"
    if wanted:
        source, score = "words JOIN states ON states.id = words.rowid", _SCORE
        conditions.append("words MATCH :wanted")
        values["wanted"] = wanted
    if unwanted:
        conditions.append("states.id NOT IN (SELECT rowid FROM words WHERE words MATCH :unwanted)")
        values["unwanted"] = unwanted
    connection.execute(
        f"INSERT INTO matched SELECT states.id, states.page, {score}, states.valid_from, states.last_seen, "  # noqa: S608
        f"states.likeness FROM {source} WHERE {' AND '.join(conditions)}",
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


def _named(values: dict[str, Any], name: str, wanted: Iterable[str]) -> str:
    """Add values under numbered names; return the list of parameters for the SQL."""
    numbered = {f"{name}{number}": value for number, value in enumerate(wanted)}
    values |= numbered
    return ", ".join(f":{key}" for key in numbered)


def _expression(query: TextQuery) -> str:
    """The query in the syntax of FTS5; every word is quoted, so that none of it is taken as a command."""
    parts = [_quoted(text) for text in (*query.words, *query.phrases)]
    parts += [f"({alternatives})" for group in query.alternatives if (alternatives := _any_of(group))]
    parts += [f"{{{_COLUMNS[part]}}} : {words}" for part, text in query.parts if (words := _quoted(text))]
    return " AND ".join(part for part in parts if part)


def _without_anchors(query: TextQuery, expression: str) -> str:
    return expression if query.anchors or not expression else f"- {{external internal}} : ({expression})"


def _any_of(texts: Iterable[str]) -> str:
    return " OR ".join(part for part in map(_quoted, texts) if part)


def _quoted(text: str) -> str:
    words = tokens(text)
    return f'"{" ".join(words)}"' if words else ""


def _facet_values(connection: sqlite3.Connection, facet: Facet) -> list[tuple[str, int]]:
    column = f"states.{_FACETS[facet]}"
    return connection.execute(
        f"SELECT {column}, count(DISTINCT states.page) AS number "  # noqa: S608
        f"FROM matched JOIN states USING (id) WHERE {column} != '' "
        f"GROUP BY {column} ORDER BY number DESC, {column} LIMIT {MOST_VALUES}"
    ).fetchall()


def _hit(connection: sqlite3.Connection, query: TextQuery, leader: Leader) -> Hit:
    state = _state(connection, query, leader.place)
    phrases = [words for words in map(tokens, wanted_texts(query)) if words]
    return hit_of(query, state, leader, snippet(prepared(state.text), phrases))


def _state(connection: sqlite3.Connection, query: TextQuery, state: int) -> State:
    query_budget.check()
    content, collection = sqlite_add.content_of(connection, state)
    page, valid_from, valid_to = connection.execute(
        "SELECT page, valid_from, valid_to FROM states WHERE id = ?", (state,)
    ).fetchone()
    stamps = connection.execute(
        "SELECT seen.stamp FROM states JOIN seen ON seen.state = states.id "  # noqa: S608
        f"WHERE states.id = :state AND {_ASKED} ORDER BY seen.stamp",
        {**_asked(query), "state": state},
    )
    return state_of(
        query,
        content,
        key=page,
        collection=collection,
        valid=(valid_from, valid_to),
        stamps=[digits(stamp) for (stamp,) in stamps],
        anchors=sqlite_add.anchors_of(connection, page),
    )
