"""The words of the index with the number of states that have them, for suggestions and spelling.

OpenSearch cannot list the terms of an index. So the words are documents of an index of their own, and a
writer that adds states counts their words again: from the list of terms of each shard, which costs the same
in any index (states that were replaced count until their segment is merged); or exactly, when captures are
taken out, whose words must not stay. Counting again, unlike adding to a count, may be repeated, also by
several writers.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from webdepot.index.opensearch.client import OpenSearchClient
from webdepot.index.opensearch.schema import IndexNames
from webdepot.index.text.words import folded, prepared
from webdepot.index.word_analysis import analysers

_COUNTED_AT_ONCE = 2000
_MOST_AT_ONCE = 10_000
"""The server refuses to return more hits at once."""
_MOST_ROUTINGS = 10_000


class WordCounts:
    """The words on the server."""

    def __init__(self, client: OpenSearchClient, names: IndexNames) -> None:
        self._client = client
        self._names = names
        self._exact = analysers()["exact"]

    def count(self, texts: Iterable[str]) -> None:
        """Count the words of these texts again. The states must have been refreshed."""
        for words in _pieces(self._words_in(texts), _COUNTED_AT_ONCE):
            counts = dict.fromkeys(words, 0)
            for routing in self._routings:
                self._add_counts(counts, routing)
            self._put(counts)
        self._refresh()

    def count_exactly(self, texts: Iterable[str]) -> None:
        """As `count`, without the states that were replaced; words that no state has then are deleted."""
        for words in _pieces(self._words_in(texts), _COUNTED_AT_ONCE):
            self._put({word: self._number_of(word) for word in words})
        self._refresh()

    def starting_with(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        counts, after = list[tuple[str, int]](), dict[str, object]()
        while (size := min(limit - len(counts), _MOST_AT_ONCE)) > 0:
            body = {
                "query": {"prefix": {"word": folded(prefix)}},
                "sort": [{"states": "desc"}, {"word": "asc"}],
                "size": size,
                "track_total_hits": False,
                **after,
            }
            hits = self._client.search(self._names.words, body)["hits"]["hits"]
            counts += [(hit["_source"]["word"], hit["_source"]["states"]) for hit in hits]
            if len(hits) < size:
                break
            after = {"search_after": hits[-1]["sort"]}
        return counts

    def _number_of(self, word: str) -> int:
        body = {"query": {"term": {"text": word}}}
        number: int = self._client.write("POST", f"/{self._names.states}/_count", body)["count"]
        return number

    def _words_in(self, texts: Iterable[str]) -> list[str]:
        words: set[str] = set()
        for text in texts:
            words.update(self._exact.analyze(prepared(text)))
        return sorted(words)

    def _add_counts(self, counts: dict[str, int], routing: str) -> None:
        body = {
            "doc": {"text": " ".join(counts)},
            "per_field_analyzer": {"text": "whitespace"},
            "fields": ["text"],
            "term_statistics": True,
            "field_statistics": False,
            "positions": False,
            "offsets": False,
            "payloads": False,
        }
        path = f"/{self._names.states}/_termvectors?routing={routing}"
        terms = self._client.write("POST", path, body)["term_vectors"].get("text", {}).get("terms", {})
        for word, facts in terms.items():
            counts[word] = counts.get(word, 0) + facts.get("doc_freq", 0)

    @cached_property
    def _routings(self) -> list[str]:
        """A routing for each shard: the statistics of terms are those of one shard."""
        routings: dict[int, str] = {}
        settings = self._client.write("GET", f"/{self._names.states}/_settings?flat_settings=true")
        shards = int(settings[self._names.states]["settings"]["index.number_of_shards"])
        for number in range(_MOST_ROUTINGS):
            path = f"/{self._names.states}/_search_shards?routing={number}"
            ((shard, *_), *_) = self._client.write("GET", path)["shards"]
            routings.setdefault(shard["shard"], str(number))
            if len(routings) == shards:
                break
        return sorted(routings.values())

    def _put(self, counts: dict[str, int]) -> None:
        self._client.bulk(
            ({"index": {"_index": self._names.words, "_id": word}}, {"word": word, "states": number})
            if number
            else ({"delete": {"_index": self._names.words, "_id": word}}, None)
            for word, number in counts.items()
        )

    def _refresh(self) -> None:
        self._client.write("POST", f"/{self._names.words}/_refresh")


def _pieces(values: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (values[at : at + size] for at in range(0, len(values), size))
