"""A `TextQuery` as a query of OpenSearch.

OpenSearch refuses a query with more than 1,024 clauses. So closed areas with the same times are joined: the
prefixes that end with a boundary are one list of terms (`schema.py`, `above`), and only the others are
clauses of their own.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from webdepot import times
from webdepot.index.opensearch import schema
from webdepot.index.text.hits import asked_stamps, wanted_texts
from webdepot.index.text.states import FOREVER
from webdepot.index.text.tantivy_query import PART_FIELDS, fields_of, is_timed
from webdepot.index.text.tantivy_schema import FIELD_WEIGHTS, STAMP
from webdepot.index.text.weights import STEM_WEIGHT
from webdepot.index.text.words import prepared
from webdepot.index.word_analysis import STEMMERS, analysers
from webdepot.model import EVERYTHING
from webdepot.ports.search import ClosedArea, PagePart, TextQuery

Clause = dict[str, Any]
_MOST_SCORED = 8
"""Up to this many alternatives are scored one by one; more of them count as one."""
_MOST_TIMES = 50
"""Most different periods of closed areas; with more of them, each matching state in one of the areas is
examined.
"""


class OpenSearchQuery:
    """Turns a `TextQuery` into OpenSearch's."""

    def __init__(self) -> None:
        self._analysers = analysers()

    def state(self, query: TextQuery, hidden: Sequence[str] = ()) -> Clause:
        """States that match the whole query and of which not all captures are closed; without those named in
        `hidden`.
        """
        wanted = list(self._wanted(query))
        unwanted = [self._exactly(text, fields_of(query)) for text in query.excluded if self.tokens(text)]
        unwanted += _wholly_closed(query.closed)
        if hidden:
            unwanted.append({"ids": {"values": list(hidden)}})
        return {
            "bool": {
                "must": wanted,
                "filter": [{"term": {"kind": "state"}}, *_filters(query)],
                "should": self._in_a_row(query) if wanted else [],
                "must_not": unwanted,
            }
        }

    def partly_closed(self, query: TextQuery) -> Clause | None:
        """States of which some captures are closed and others may be open; None if there cannot be any."""
        timed = [area for area in query.closed if is_timed(area)]
        if not timed:
            return None
        overlapping = [
            _all_of([below, _range("valid_from", None, int(last)), _range("last_seen", int(first), None)])
            for (first, last), below in _by_time(timed)
        ]
        return _all_of([self.state(query), _any_of(overlapping)])

    def phrases(self, query: TextQuery) -> list[list[str]]:
        """The words and phrases that a snippet marks, as folded words."""
        return [words for words in map(self.tokens, wanted_texts(query)) if words]

    def stems(self, query: TextQuery, language: str) -> frozenset[str]:
        """Stems of the single words, in one language."""
        if language not in STEMMERS:
            return frozenset()
        words = [*query.words, *(text for group in query.alternatives for text in group)]
        return frozenset(stem for word in words for stem in self.stem(word, language))

    def stem(self, word: str, language: str) -> list[str]:
        return self._analysers[f"stem_{language}"].analyze(word)

    def tokens(self, text: str) -> list[str]:
        return self._analysers["exact"].analyze(prepared(text))

    def _wanted(self, query: TextQuery) -> Iterator[Clause]:
        names = fields_of(query)
        for word in query.words:
            if self.tokens(word):
                yield _any_of(self._loosely(word, names))
        for phrase in query.phrases:
            if self.tokens(phrase):
                yield self._exactly(phrase, names, factor=2.0)
        for group in query.alternatives:
            texts = [text for text in group if self.tokens(text)]
            if texts:
                yield _any_of(self._alternatives(texts, names))
        for part, text in query.parts:
            if self.tokens(text):
                yield (
                    self._exactly(text, PART_FIELDS[part])
                    if query.anchors or part is not PagePart.ANCHOR
                    else {"match_none": {}}
                )

    def _alternatives(self, texts: Sequence[str], names: Sequence[str]) -> list[Clause]:
        if len(texts) <= _MOST_SCORED:
            return [part for text in texts for part in self._loosely(text, names)]
        single = sorted({words[0] for text in texts if len(words := self.tokens(text)) == 1})
        several = [text for text in texts if len(self.tokens(text)) > 1]
        joined: list[Clause] = [{"terms": {name: single, "boost": FIELD_WEIGHTS[name]}} for name in names]
        return joined + [self._exactly(text, names) for text in several]

    def _loosely(self, text: str, names: Sequence[str]) -> list[Clause]:
        """A word in any field, or a word with the same stem; a word that the index splits stays a phrase."""
        parts = self._exact_parts(text, names, 1.0)
        if len(self.tokens(text)) == 1 and " " not in text.strip():
            parts += [
                {"term": {f"stem_{language}": {"value": stem, "boost": STEM_WEIGHT}}}
                for language in STEMMERS
                for stem in self.stem(text, language)[:1]
            ]
        return parts

    def _exactly(self, text: str, names: Sequence[str], factor: float = 1.0) -> Clause:
        return _any_of(self._exact_parts(text, names, factor))

    def _exact_parts(self, text: str, names: Sequence[str], factor: float) -> list[Clause]:
        words = self.tokens(text)
        if len(words) > 1:
            return [_phrase(name, words, FIELD_WEIGHTS[name] * factor) for name in names]
        return [
            {"term": {name: {"value": words[0], "boost": FIELD_WEIGHTS[name] * factor}}} for name in names
        ]

    def _in_a_row(self, query: TextQuery) -> list[Clause]:
        """The words of the query as a phrase, which raises the score but is not required."""
        together = [token for word in query.words for token in self.tokens(word)]
        if len(query.words) < 2 or not 2 <= len(together) <= 10:
            return []
        return [_phrase(name, together, 2 * FIELD_WEIGHTS[name]) for name in fields_of(query)]


def _filters(query: TextQuery) -> Iterator[Clause]:
    filters = (
        ("site", query.sites),
        ("mime", query.mimes),
        ("lang", query.languages),
        ("puid", query.formats),
        ("key", tuple(map(schema.indexed_key, query.keys))),
    )
    for field, values in filters:
        if values:
            yield {"terms": {field: list(values)}}
    if query.collection != EVERYTHING:
        yield {"term": {"collection": query.collection}}
    low, high = asked_stamps(query)
    if (low, high) != (0, FOREVER):
        yield stamps_between(low, high)
    if query.as_of is not None:
        # A capture before that moment (above), and no capture of another state between the two.
        yield _range("valid_to", int(times.to_timestamp(query.as_of)) + 1, None)


def stamps_between(low: int, high: int) -> Clause:
    return _range("stamps", low * STAMP, high * STAMP + STAMP - 1)


def _wholly_closed(areas: Sequence[ClosedArea]) -> list[Clause]:
    """States all of whose captures are closed by an area."""
    always = [area for area in areas if not is_timed(area)]
    timed = [area for area in areas if is_timed(area)]
    closed = [_below(always)] if always else []
    if len({(area.first, area.last) for area in timed}) > _MOST_TIMES:
        return closed
    return closed + [
        _all_of([below, _range("valid_from", int(first), None), _range("last_seen", None, int(last))])
        for (first, last), below in _by_time(timed)
    ]


def _by_time(areas: Sequence[ClosedArea]) -> list[tuple[tuple[str, str], Clause]]:
    """One clause for the areas with the same period. If there are too many different periods, one clause for
    all areas, with a period that contains them all: then each state must be examined.
    """
    by_time: dict[tuple[str, str], list[ClosedArea]] = {}
    for area in areas:
        by_time.setdefault((area.first, area.last), []).append(area)
    if len(by_time) > _MOST_TIMES:
        by_time = {(min(area.first for area in areas), max(area.last for area in areas)): list(areas)}
    return [(time, _below(several)) for time, several in by_time.items()]


def _below(areas: Sequence[ClosedArea]) -> Clause:
    """States whose key is in one of the areas, whatever their time."""
    keys = [schema.indexed_key(area.prefix) for area in areas if area.exact]
    joined: dict[tuple[tuple[str, ...], frozenset[str]], list[str]] = {}
    for area in areas:
        if not area.exact:
            joined.setdefault((area.but, area.but_keys), []).append(area.prefix)
    parts = [_one_of_keys(keys)] if keys else []
    for (but, but_keys), prefixes in joined.items():
        below = _any_of(_starting_with(prefixes))
        excepted = _starting_with(but)
        if but_keys:
            excepted.append(_one_of_keys([schema.indexed_key(key) for key in sorted(but_keys)]))
        parts.append({"bool": {"filter": [below], "must_not": excepted}} if excepted else below)
    return _any_of(parts)


def _one_of_keys(keys: Sequence[str]) -> Clause:
    return {"terms": {"key": list(keys)}}


def _starting_with(prefixes: Sequence[str]) -> list[Clause]:
    boundaries = [prefix for prefix in prefixes if schema.is_boundary(prefix)]
    others = [prefix for prefix in prefixes if not schema.is_boundary(prefix)]
    joined: list[Clause] = [{"terms": {"above": boundaries}}] if boundaries else []
    return joined + [{"prefix": {"key": schema.indexed_key(prefix)}} for prefix in others]


def _phrase(name: str, words: Sequence[str], boost: float) -> Clause:
    return {"match_phrase": {name: {"query": " ".join(words), "analyzer": "whitespace", "boost": boost}}}


def _range(field: str, lowest: int | None, highest: int | None) -> Clause:
    bounds = {name: value for name, value in (("gte", lowest), ("lte", highest)) if value is not None}
    return {"range": {field: bounds}}


def _all_of(parts: Sequence[Clause]) -> Clause:
    return {"bool": {"filter": list(parts)}}


def _any_of(parts: Sequence[Clause]) -> Clause:
    return parts[0] if len(parts) == 1 else {"bool": {"should": list(parts), "minimum_should_match": 1}}
