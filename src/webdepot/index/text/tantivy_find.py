"""One query to the Tantivy index: the best states, and counts.

Searching takes three queries to Tantivy: one that counts (states, pages, months, facets: without scores),
one for the best states, and one for phrases among these. The states are grouped by page and folded, and only
those that are shown are read from the store.

Tantivy cannot be interrupted. The budget of the request is checked before each query and each state that is
read; the limit of words in a query (`services/access/search.py`) bounds one query.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tantivy
from tantivy import Occur, Query

from webdepot import query_budget
from webdepot.index.text import tantivy_schema
from webdepot.index.text.hits import address_words, asked_stamps, digits, hit_of, state_of
from webdepot.index.text.near_duplicates import Leader, fold_groups
from webdepot.index.text.snippets import snippet
from webdepot.index.text.states import FOREVER
from webdepot.index.text.tantivy_add import addresses_of, count
from webdepot.index.text.tantivy_query import Areas, QueryMaker
from webdepot.ports.search import MOST_VALUES, Facet, Hit, Hits, SearchSort, State, TextQuery

EXACT_UP_TO = 1000
"""Up to this many matching states are counted page by page; beyond that the number of pages is an
estimate.
"""
_MOST_FETCHED = 200_000
MOST_PARTLY_CLOSED = 2000
_MOST_ROWS = 100
"""The number of best states among which phrases are looked for: always the same states, whatever page of the
result is shown.
"""
_MOST_COUNTED = 3 * MOST_VALUES
"""The number of values of a facet, those with most states, whose pages are counted."""
_AS_GOOD = 0.999
_SCANNED_AT_ONCE = 4000
FACET_FIELDS = {
    Facet.SITE: "host",
    Facet.DOMAIN: "domain",
    Facet.COLLECTION: "collection",
    Facet.FORMAT: "puid",
    Facet.LANGUAGE: "lang",
}


@dataclass(slots=True)
class _PartlyClosed:
    """The result of examining states of which some captures are closed."""

    hidden: list[Query] = field(default_factory=list)
    """States without an open capture."""
    closed: dict[int, int] = field(default_factory=dict)
    """Closed captures by month."""


class TantivySearch:
    """One query, asked of one commit."""

    def __init__(self, make: QueryMaker, searcher: tantivy.Searcher, query: TextQuery) -> None:
        self._make = make
        self._searcher = searcher
        self._query = query
        areas = make.areas(searcher, query.closed)
        self._partly_closed = self._find_partly_closed(areas)
        # States that answer the query and have a capture that may be shown.
        self._matching = make.state(query, areas)
        if self._partly_closed.hidden:
            hidden = [(Occur.MustNot, state) for state in self._partly_closed.hidden]
            self._matching = Query.boolean_query([(Occur.Must, self._matching), *hidden])

    def hits(self) -> Hits:
        query = self._query
        counted = self._aggregate(self._counting())
        total = int(counted["states"]["value"] or 0)
        if not total:
            return Hits(pages=0, exact=True, hits=[])
        groups, seen, exact = self._best(total)
        return Hits(
            pages=seen if exact else max(round(counted["pages"]["value"]), seen),
            exact=exact,
            hits=[self._hit(leader) for leader in groups[query.offset : query.offset + query.limit]],
            months=self._months(counted) if query.histogram else {},
            facets=self._facets(counted),
        )

    def states(self) -> Iterator[State]:
        for address in iter_in_pieces(self._searcher, self._make, self._matching):
            query_budget.check()
            state = self._state(self._searcher.doc(address).to_dict())
            if state.timestamps:
                yield state

    # --- the best states ---

    def _best(self, total: int) -> tuple[list[Leader], int, bool]:
        """The best states in order, one for each page (or for each group of near-duplicate pages), how many
        pages were read for them, and whether that is all pages.
        """
        wanted = self._query.offset + self._query.limit
        limit = total if total <= EXACT_UP_TO else min(max(wanted * 10, _MOST_ROWS), _MOST_FETCHED)
        while True:
            query_budget.check()
            hits = self._raise_phrases(self._search(limit))
            best = _best_of_each(hits, *self._fast_values(hits, "page", "last_seen"))
            is_all = len(hits) >= total or len(hits) < limit
            groups = self._fold(best) if self._query.fold else [Leader(*hit) for hit in best]
            if len(groups) >= wanted or is_all or limit >= _MOST_FETCHED:
                return groups, len(best), is_all
            limit = min(limit * 4, _MOST_FETCHED)

    def _search(self, limit: int) -> list[tuple[float, Any]]:
        sort = self._query.sort
        if sort is SearchSort.RELEVANCE:
            return list(self._searcher.search(self._matching, limit, count=False).hits)
        name, order = (
            ("valid_from", tantivy.Order.Asc)
            if sort is SearchSort.OLDEST
            else ("last_seen", tantivy.Order.Desc)
        )
        result = self._searcher.search(self._matching, limit, count=False, order_by_field=name, order=order)
        return [(0.0, address) for _, address in result.hits]

    def _raise_phrases(self, hits: list[tuple[float, Any]]) -> list[tuple[float, Any]]:
        """The hits, with those moved up that have the words of the query as a phrase."""
        if self._query.sort is not SearchSort.RELEVANCE or len(self._query.words) < 2:
            return hits
        addresses = [address for _, address in hits[:_MOST_ROWS]]
        pages = self._searcher.fast_field_values("page", addresses)
        row = self._make.in_a_row(self._query, sorted({int(page or 0) for page in pages}))
        if row is None:
            return hits
        bonus = {
            _place(address): score
            for score, address in self._searcher.search(row, 10 * _MOST_ROWS, count=False).hits
        }
        if not bonus:
            return hits
        first = [(score + bonus.get(_place(address), 0.0), address) for score, address in hits[:_MOST_ROWS]]
        first.sort(key=lambda hit: -hit[0])
        return first + hits[_MOST_ROWS:]

    def _fold(self, best: Sequence[tuple[float, Any]]) -> list[Leader]:
        (likeness,) = self._fast_values(best, "likeness")
        return fold_groups(
            [(score, address, int(like or 0)) for (score, address), like in zip(best, likeness, strict=True)]
        )

    def _fast_values(self, hits: Sequence[tuple[float, Any]], *names: str) -> list[list[Any]]:
        return _fast_values(self._searcher, [address for _, address in hits], *names)

    def _hit(self, leader: Leader) -> Hit:
        query_budget.check()
        document: dict[str, list[Any]] = self._searcher.doc(leader.place).to_dict()
        state, language = self._state(document), document["lang"][0]
        stems = self._make.stems(self._query, language)
        is_match = (
            (lambda word: any(stem in stems for stem in self._make.stem(word, language))) if stems else None
        )
        shown = snippet(document["text"][0], self._make.phrases(self._query), is_match)
        return hit_of(self._query, state, leader, shown)

    def _state(self, document: dict[str, list[Any]]) -> State:
        key, content, home = document["key"][0], tantivy_schema.content_of(document), ""
        if tantivy_schema.is_home_page(key):
            home = f"{content.title}\n{content.headings}\n{address_words(content.url)}"
        stamps = map(digits, tantivy_schema.stamps_of(document))
        return state_of(
            self._query,
            content,
            key=key,
            collection=document["collection"][0],
            valid=(document["valid_from"][0], document["valid_to"][0]),
            stamps=[stamp for stamp in stamps if self._is_asked(stamp) and not self._is_closed(key, stamp)],
            anchors=tantivy_schema.anchors_of(document),
            home=home,
        )

    def _is_asked(self, timestamp: str) -> bool:
        low, high = asked_stamps(self._query)
        return low <= int(timestamp) <= high

    def _is_closed(self, key: str, timestamp: str) -> bool:
        return any((key, timestamp) in area for area in self._query.closed)

    # --- counting ---

    def _counting(self) -> dict[str, Any]:
        """The aggregations of the one query for everything that is counted."""
        aggregations: dict[str, Any] = {
            "states": {"value_count": {"field": "valid_from"}},
            "pages": {"cardinality": {"field": "page"}},
        }
        if self._query.histogram:
            aggregations["months"] = {"histogram": {"field": "months", "interval": 1, "min_doc_count": 1}}
        for facet in self._query.facets:
            # As many for each segment as there may be: otherwise counts of rarer values would be too low.
            aggregations[facet.value] = {
                "terms": {"field": FACET_FIELDS[facet], "size": _MOST_COUNTED, "segment_size": 65_000}
            }
        return aggregations

    def _facets(self, counted: Mapping[str, Any]) -> dict[Facet, list[tuple[str, int]]]:
        """Pages by value. The values with most states are found first: counting the distinct pages of every
        value would take too much memory. Large numbers are estimates, as the number of all pages is.
        """
        by_page = {
            facet.value: {
                "terms": {"field": FACET_FIELDS[facet], "size": _MOST_COUNTED, "include": values},
                "aggs": {"pages": {"cardinality": {"field": "page"}}},
            }
            for facet in self._query.facets
            if (values := [bucket["key"] for bucket in counted[facet.value]["buckets"] if bucket["key"]])
        }
        if not by_page:
            return {facet: [] for facet in self._query.facets}
        pages = self._aggregate(by_page)
        return {
            facet: facet_values(pages[facet.value]["buckets"]) if facet.value in pages else []
            for facet in self._query.facets
        }

    def _months(self, counted: Mapping[str, Any]) -> dict[int, int]:
        """Captures by month: whole months are counted by Tantivy; those in which the period of the query
        begins or ends are counted capture by capture.
        """
        low, high = asked_stamps(self._query)
        numbers: dict[int, int] = {}
        for bucket in counted["months"]["buckets"]:
            month = int(bucket["key"]) % tantivy_schema.MONTH
            if low <= month * 10**8 and month * 10**8 + 10**8 - 1 <= high:
                numbers[month] = numbers.get(month, 0) + int(bucket["doc_count"])
        for month in sorted({low // 10**8, high // 10**8} - {0, FOREVER // 10**8}):
            if month not in numbers:
                first, last = max(low, month * 10**8), min(high, month * 10**8 + 10**8 - 1)
                if number := self._count_captures(first, last):
                    numbers[month] = number
        for month, number in self._partly_closed.closed.items():
            numbers[month] = numbers.get(month, 0) - number
        return {month: number for month, number in sorted(numbers.items()) if number > 0}

    def _count_captures(self, low: int, high: int) -> int:
        bounds = {
            "min": low * tantivy_schema.STAMP,
            "max": high * tantivy_schema.STAMP + tantivy_schema.STAMP - 1,
        }
        histogram = {"field": "stamps", "interval": 1, "min_doc_count": 1, "hard_bounds": bounds}
        counted = self._aggregate({"captures": {"histogram": histogram}})
        return sum(int(bucket["doc_count"]) for bucket in counted["captures"]["buckets"])

    def _aggregate(self, aggregations: dict[str, Any]) -> dict[str, Any]:
        query_budget.check()
        counted: dict[str, Any] = self._searcher.aggregate(self._matching, aggregations)
        return counted

    def _find_partly_closed(self, areas: Areas) -> _PartlyClosed:
        """States of which some captures are closed, examined one by one; if there are too many, all of them
        count as closed.
        """
        partly = _PartlyClosed()
        candidates = self._make.partly_closed(self._query, areas)
        if candidates is None:
            return partly
        if count(self._searcher, candidates) > MOST_PARTLY_CLOSED:
            partly.hidden.append(candidates)
            return partly
        for address in addresses_of(self._searcher, candidates):
            query_budget.check()
            document: dict[str, list[Any]] = self._searcher.doc(address).to_dict()
            key = document["key"][0]
            stamps = [
                stamp for stamp in map(digits, tantivy_schema.stamps_of(document)) if self._is_asked(stamp)
            ]
            closed = [stamp for stamp in stamps if self._is_closed(key, stamp)]
            if len(closed) == len(stamps):
                run = tantivy_schema.run_name(tantivy_schema.page_number(key), document["valid_from"][0])
                partly.hidden.append(self._document(run, document["collection"][0]))
            else:
                for stamp in closed:
                    partly.closed[int(stamp[:6])] = partly.closed.get(int(stamp[:6]), 0) + 1
        return partly

    def _document(self, run: str, collection: str) -> Query:
        return Query.boolean_query(
            [
                (Occur.Must, self._make.term("run", run)),
                (Occur.Must, self._make.term("collection", collection)),
            ]
        )


def iter_in_pieces(searcher: tantivy.Searcher, make: QueryMaker, query: Query) -> Iterator[Any]:
    """Addresses of all matching documents, those of a page together, in bounded memory: by ranges of the page
    number, which is a hash and so evenly spread.
    """
    pieces = count(searcher, query) // _SCANNED_AT_ONCE + 1
    width = (1 << 64) // pieces + 1
    for number in range(pieces):
        piece = (
            make.range("page", number * width, min((number + 1) * width, 1 << 64) - 1)
            if pieces > 1
            else Query.all_query()
        )
        addresses = addresses_of(searcher, Query.boolean_query([(Occur.Must, query), (Occur.Must, piece)]))
        pages, starts = _fast_values(searcher, addresses, "page", "valid_from")
        order = sorted(range(len(addresses)), key=lambda at: (pages[at], starts[at]))
        yield from (addresses[at] for at in order)


def _fast_values(searcher: tantivy.Searcher, addresses: list[Any], *names: str) -> list[list[Any]]:
    return [searcher.fast_field_values(name, addresses) if addresses else [] for name in names]


def _best_of_each(
    hits: Sequence[tuple[float, Any]], pages: Sequence[Any], last_seen: Sequence[Any]
) -> list[tuple[float, Any]]:
    """The best state of each page, in the order of the first hits. If two states are equally good (the same
    words at two times), the later one.
    """
    best: dict[Any, tuple[float, Any]] = {}
    seen: dict[Any, int] = {}
    for (score, address), page, last in zip(hits, pages, last_seen, strict=True):
        if page not in best or (score and score >= best[page][0] * _AS_GOOD and last > seen[page]):
            best[page], seen[page] = (max(score, best[page][0]) if page in best else score, address), last
    return list(best.values())


def _place(address: Any) -> tuple[int, int]:
    return address.segment_ord, address.doc


def facet_values(buckets: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    # An estimate may be higher than the number of states, each of which belongs to one page.
    counts = [
        (str(bucket["key"]), min(round(bucket["pages"]["value"]), int(bucket["doc_count"])))
        for bucket in buckets
    ]
    return sorted(counts, key=lambda value: (-value[1], value[0]))[:MOST_VALUES]
