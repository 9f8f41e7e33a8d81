"""One query to OpenSearch: the best state of each page, and counts.

One request answers most queries: OpenSearch groups states by page (`collapse`) and counts pages, months and
facets (aggregations). States of which some captures are closed are examined one by one first. A second
request counts the pages of a small result exactly, or finds the texts to show where near-duplicates are
folded.

The rest of the request's budget is the time limit of each search on the server, and a search whose client has
disconnected is cancelled there. An answer without some shards is an error, never a smaller result.
"""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from webdepot import query_budget
from webdepot.errors import RemoteError
from webdepot.index.opensearch import schema
from webdepot.index.opensearch.client import OpenSearchClient, ServerRefusal
from webdepot.index.opensearch.query import Clause, OpenSearchQuery, stamps_between
from webdepot.index.text import tantivy_schema
from webdepot.index.text.hits import address_words, asked_stamps, digits, hit_of, state_of
from webdepot.index.text.near_duplicates import Leader, fold_groups
from webdepot.index.text.snippets import snippet
from webdepot.index.text.states import FOREVER
from webdepot.index.text.tantivy_find import EXACT_UP_TO, FACET_FIELDS, MOST_PARTLY_CLOSED, facet_values
from webdepot.index.text.tantivy_schema import MONTH, STAMP
from webdepot.index.text.words import prepared
from webdepot.ports.search import MOST_VALUES, Hit, Hits, SearchSort, State, TextQuery

_MOST_COUNTED = 3 * MOST_VALUES
_MOST_VALUES_IN_SHARD = 1000
_PRECISE_UP_TO = 3000
_SCANNED_AT_ONCE = 500
_SCAN_MINUTES = "5m"
_ORDERS: dict[SearchSort, list[dict[str, str]]] = {
    SearchSort.RELEVANCE: [{"_score": "desc"}, {"last_seen": "desc"}, {"page": "asc"}],
    SearchSort.OLDEST: [{"valid_from": "asc"}, {"page": "asc"}],
    SearchSort.NEWEST: [{"last_seen": "desc"}, {"page": "asc"}],
}
_CAPTURES_BETWEEN = (
    "int n = 0; "
    "for (def stamp : doc['stamps']) { if (stamp >= params.low && stamp <= params.high) { n++; } } "
    "return n;"
)


class OpenSearchSearch:
    """One query."""

    def __init__(
        self, make: OpenSearchQuery, client: OpenSearchClient, states: str, query: TextQuery
    ) -> None:
        self._make = make
        self._client = client
        self._states = states
        self._query = query
        # The same copies of the shards for all pages of a result: scores may differ a little between copies.
        words = " ".join((*query.words, *query.phrases)).encode("utf-8", "replace")
        self._preference = hashlib.blake2b(words, digest_size=8).hexdigest()
        self._closed_by_month: dict[int, int] = {}
        self._matching = self._without_closed()

    def hits(self) -> Hits:
        query = self._query
        first = min(query.offset, schema.MOST_FETCHED)
        size = 0 if query.fold else min(query.limit, schema.MOST_FETCHED - first)
        answer = self._search(
            {"size": size, "from": first if size else 0, "track_total_hits": True, "aggs": self._counting()}
        )
        total, counted = int(answer["hits"]["total"]["value"]), answer["aggregations"]
        if not total:
            return Hits(pages=0, exact=True, hits=[])
        if query.fold:
            hits, seen, exact = self._folded(total)
        else:
            hits = [self._hit(Leader(_score(hit), hit), hit) for hit in answer["hits"]["hits"]]
            seen, exact = self._pages_of(total, len(hits))
        return Hits(
            pages=seen if exact else max(round(counted["pages"]["value"]), seen),
            exact=exact,
            hits=hits,
            months=self._months(counted) if query.histogram else {},
            facets={
                facet: facet_values(bucket for bucket in counted[facet.value]["buckets"] if bucket["key"])
                for facet in query.facets
            },
        )

    def states(self) -> Iterator[State]:
        """Every matching state, from a view of the index that does not change meanwhile."""
        path = f"/{self._states}/_search/point_in_time?keep_alive={_SCAN_MINUTES}"
        view = {"id": self._client.read("POST", path)["pit_id"], "keep_alive": _SCAN_MINUTES}
        body: dict[str, Any] = {
            "query": self._matching,
            "pit": view,
            "size": _SCANNED_AT_ONCE,
            "sort": [{"page": "asc"}, {"valid_from": "asc"}, {"collection": "asc"}],
            "track_total_hits": False,
        }
        try:
            while hits := self._client.search("", body)["hits"]["hits"]:
                for hit in hits:
                    state = self._state(schema.stored_of(hit["_source"]))
                    if state.timestamps:
                        yield state
                body["search_after"] = hits[-1]["sort"]
        finally:
            with contextlib.suppress(ServerRefusal, RemoteError):  # it ends by itself
                self._client.read("DELETE", "/_search/point_in_time", {"pit_id": [view["id"]]})

    def _search(self, body: Mapping[str, Any]) -> Any:
        return self._client.search(
            self._states,
            {
                "query": self._matching,
                "collapse": {"field": "page"},
                "sort": _ORDERS[self._query.sort],
                **body,
            },
            preference=self._preference,
        )

    # --- pages ---

    def _pages_of(self, total: int, shown: int) -> tuple[int, bool]:
        """The number of pages that match, and whether it is exact."""
        if shown < self._query.limit and (shown or not self._query.offset):
            return self._query.offset + shown, True
        if total > EXACT_UP_TO:
            return self._query.offset + shown if shown else 0, False
        body = {"size": EXACT_UP_TO, "_source": False, "track_total_hits": False}
        return len(self._search(body)["hits"]["hits"]), True

    def _folded(self, total: int) -> tuple[list[Hit], int, bool]:
        """The hits without near-duplicates, how many pages were read for them, and whether that is all
        pages.
        """
        wanted = self._query.offset + self._query.limit
        limit = EXACT_UP_TO if total <= EXACT_UP_TO else max(wanted * 10, 100)
        while True:
            limit = min(limit, schema.MOST_FETCHED)
            body = {
                "size": limit,
                "_source": False,
                "docvalue_fields": ["likeness"],
                "track_total_hits": False,
            }
            pages = self._search(body)["hits"]["hits"]
            groups = fold_groups([(_score(hit), hit, _likeness(hit)) for hit in pages])
            is_all = len(pages) < limit or total <= limit
            if len(groups) >= wanted or is_all or limit >= schema.MOST_FETCHED:
                break
            limit *= 4
        leaders = groups[self._query.offset :][: self._query.limit]
        shown = self._read([leader.place["_id"] for leader in leaders])
        return (
            [
                self._hit(leader, shown[leader.place["_id"]])
                for leader in leaders
                if leader.place["_id"] in shown
            ],
            len(pages),
            is_all,
        )

    def _read(self, names: Sequence[str]) -> dict[str, Any]:
        query_budget.check()
        body = {"query": {"ids": {"values": list(names)}}, "size": len(names)}
        return {hit["_id"]: hit for hit in self._client.search(self._states, body)["hits"]["hits"]}

    def _hit(self, leader: Leader, hit: Mapping[str, Any]) -> Hit:
        query_budget.check()
        document = schema.stored_of(hit["_source"])
        state, language = self._state(document), document["lang"][0]
        stems = self._make.stems(self._query, language)
        is_match = (
            (lambda word: any(stem in stems for stem in self._make.stem(word, language))) if stems else None
        )
        shown = snippet(prepared(state.text), self._make.phrases(self._query), is_match)
        return hit_of(self._query, state, leader, shown)

    def _state(self, document: dict[str, list[Any]]) -> State:
        query_budget.check()
        key, content, home = document["key"][0], tantivy_schema.content_of(document), ""
        if tantivy_schema.is_home_page(key):
            home = f"{content.title}\n{content.headings}\n{address_words(content.url)}"
        return state_of(
            self._query,
            content,
            key=key,
            collection=document["collection"][0],
            valid=(document["valid_from"][0], document["valid_to"][0]),
            stamps=[stamp for stamp in self._asked(document) if not self._is_closed(key, stamp)],
            anchors=tantivy_schema.anchors_of(document),
            home=home,
        )

    def _asked(self, document: dict[str, list[Any]]) -> list[str]:
        low, high = asked_stamps(self._query)
        return [digits(stamp) for stamp in tantivy_schema.stamps_of(document) if low <= stamp <= high]

    def _is_closed(self, key: str, timestamp: str) -> bool:
        return any((key, timestamp) in area for area in self._query.closed)

    # --- counting ---

    def _counting(self) -> dict[str, Any]:
        """The aggregations for everything that is counted."""
        pages = {"cardinality": {"field": "page", "precision_threshold": _PRECISE_UP_TO}}
        aggregations: dict[str, Any] = {"pages": pages}
        if self._query.histogram:
            aggregations["months"] = {"histogram": {"field": "months", "interval": 1, "min_doc_count": 1}}
            for month, (low, high) in self._edges().items():
                parameters = {"low": low * STAMP, "high": high * STAMP + STAMP - 1}
                script = {"source": _CAPTURES_BETWEEN, "params": parameters}
                aggregations[f"month {month}"] = {
                    "filter": stamps_between(low, high),
                    "aggs": {"captures": {"sum": {"script": script}}},
                }
        for facet in self._query.facets:
            aggregations[facet.value] = {
                "terms": {
                    "field": FACET_FIELDS[facet],
                    "size": _MOST_COUNTED,
                    "shard_size": _MOST_VALUES_IN_SHARD,
                    "collect_mode": "breadth_first",
                },
                "aggs": {"pages": {"cardinality": {"field": "page"}}},
            }
        return aggregations

    def _edges(self) -> dict[int, tuple[int, int]]:
        """Months in which the period of the query begins or ends, with the part within the period: their
        captures are counted one by one.
        """
        low, high = asked_stamps(self._query)
        edges = {}
        for month in sorted({low // 10**8, high // 10**8} - {0, FOREVER // 10**8}):
            first, last = max(low, month * 10**8), min(high, month * 10**8 + 10**8 - 1)
            if (first, last) != (month * 10**8, month * 10**8 + 10**8 - 1):
                edges[month] = first, last
        return edges

    def _months(self, counted: Mapping[str, Any]) -> dict[int, int]:
        """Captures by month."""
        (low, high), edges = asked_stamps(self._query), self._edges()
        numbers: dict[int, int] = {}
        for bucket in counted["months"]["buckets"]:
            bit, month = divmod(int(bucket["key"]), MONTH)
            if month not in edges and low <= month * 10**8 and month * 10**8 + 10**8 - 1 <= high:
                numbers[month] = numbers.get(month, 0) + (int(bucket["doc_count"]) << bit)
        for month in edges:
            numbers[month] = round(counted[f"month {month}"]["captures"]["value"])
        for month, number in self._closed_by_month.items():
            numbers[month] = numbers.get(month, 0) - number
        return {month: number for month, number in sorted(numbers.items()) if number > 0}

    def _without_closed(self) -> Clause:
        """States that match and have an open capture. Those of which some captures are closed are examined
        one by one; if there are too many, all of them count as closed.
        """
        candidates = self._make.partly_closed(self._query)
        if candidates is None:
            return self._make.state(self._query)
        body = {
            "query": candidates,
            "size": MOST_PARTLY_CLOSED + 1,
            "_source": ["key", "long_key", "url", "digest", "stamps"],
            "track_total_hits": False,
        }
        hits = self._client.search(self._states, body, preference=self._preference)["hits"]["hits"]
        if len(hits) > MOST_PARTLY_CLOSED:
            return {"bool": {"must": [self._make.state(self._query)], "must_not": [candidates]}}
        hidden = []
        for hit in hits:
            query_budget.check()
            document = schema.stored_of(hit["_source"])
            stamps = self._asked(document)
            closed = [stamp for stamp in stamps if self._is_closed(document["key"][0], stamp)]
            if len(closed) == len(stamps):
                hidden.append(hit["_id"])
            else:
                for stamp in closed:
                    month = int(stamp[:6])
                    self._closed_by_month[month] = self._closed_by_month.get(month, 0) + 1
        return self._make.state(self._query, hidden)


def _score(hit: Mapping[str, Any]) -> float:
    return float(hit.get("_score") or 0.0)


def _likeness(hit: Mapping[str, Any]) -> int:
    return schema.unsigned(int(hit.get("fields", {}).get("likeness", [0])[0]))
