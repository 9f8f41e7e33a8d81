"""A `TextQuery` as a query of Tantivy.

A query for one word is a flat union of terms, since only there can Tantivy skip blocks of documents that
cannot be among the best; everything else (several words, filters, closed areas) is a conjunction. Phrases
are looked for only among the best documents, with a second query (`in_a_row`): looking for them in all would
read the positions of frequent words in every document.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import tantivy
from tantivy import Occur, Query

from webdepot import times
from webdepot.index.text.hits import asked_stamps, wanted_texts
from webdepot.index.text.states import FOREVER
from webdepot.index.text.tantivy_schema import FIELD_WEIGHTS, STAMP
from webdepot.index.text.weights import STEM_WEIGHT
from webdepot.index.text.words import prepared
from webdepot.index.word_analysis import STEMMERS, analysers
from webdepot.model import EVERYTHING
from webdepot.ports.search import ClosedArea, PagePart, TextQuery

_MOST_KEYS = 5000
_NOT_PLAIN = re.compile(r"[^0-9a-zA-Z]")
PART_FIELDS = {
    PagePart.TITLE: ("title",),
    PagePart.HEADINGS: ("headings",),
    PagePart.ADDRESS: ("words",),
    PagePart.TEXT: ("text",),
    PagePart.IMAGE: ("images",),
    PagePart.ANCHOR: ("anchor", "anchor_own"),
}
_EVERY_FIELD = tuple(FIELD_WEIGHTS)
_OWN_FIELDS = tuple(name for name in FIELD_WEIGHTS if not name.startswith("anchor"))

Areas = Sequence[tuple[ClosedArea, Query]]


def fields_of(query: TextQuery) -> Sequence[str]:
    return _EVERY_FIELD if query.anchors else _OWN_FIELDS


def is_timed(closed: ClosedArea) -> bool:
    return closed.first > "0" * 14 or closed.last < "9" * 14


class QueryMaker:
    """Turns a `TextQuery` into Tantivy's."""

    def __init__(self, schema: tantivy.Schema) -> None:
        self._schema = schema
        self._analysers = analysers()

    def term(self, field: str, value: object) -> Query:
        return Query.term_query(self._schema, field, value)

    def one_of(self, field: str, values: Sequence[object]) -> Query:
        return Query.term_set_query(self._schema, field, values)

    def state(self, query: TextQuery, areas: Areas) -> Query:
        """States that match the whole query and of which not all captures are closed."""
        wanted = list(self._wanted(query))
        filters = [(Occur.Must, Query.const_score_query(part, 0.0)) for part in self._filters(query)]
        unwanted = [
            (Occur.MustNot, self._exactly(text, fields_of(query)))
            for text in query.excluded
            if self.tokens(text)
        ]
        hidden = [(Occur.MustNot, self._wholly(closed, below)) for closed, below in areas]
        if len(wanted) == 1 and not (filters or unwanted or hidden):
            return wanted[0]
        if not wanted:
            filters.append((Occur.Must, Query.const_score_query(self.term("kind", "state"), 0.0)))
        return Query.boolean_query([*((Occur.Must, part) for part in wanted), *filters, *unwanted, *hidden])

    def in_a_row(self, query: TextQuery, pages: Sequence[int]) -> Query | None:
        """States of these pages that have the words of the query as a phrase, scored by where; None if the
        query cannot be a phrase.
        """
        together = [token for word in query.words for token in self.tokens(word)]
        if not 2 <= len(together) <= 10 or not pages:
            return None
        rows = [
            Query.boost_query(Query.phrase_query(self._schema, name, list(together)), 2 * FIELD_WEIGHTS[name])
            for name in fields_of(query)
        ]
        among = Query.const_score_query(Query.term_set_query(self._schema, "page", list(pages)), 0.0)
        return self._all_of([among, self._any_of(rows)])

    def partly_closed(self, query: TextQuery, areas: Areas) -> Query | None:
        """States of which some captures are closed and others may be open; None if there cannot be any."""
        timed = [(closed, below) for closed, below in areas if is_timed(closed)]
        if not timed:
            return None
        parts = []
        for closed, below in timed:
            overlap = [
                self.range("valid_from", None, int(closed.last)),
                self.range("last_seen", int(closed.first), None),
            ]
            parts.append((Occur.Should, self._all_of([below, *overlap])))
        return self._all_of([self.state(query, areas), Query.boolean_query(parts)])

    def areas(self, searcher: tantivy.Searcher, closed: Sequence[ClosedArea]) -> Areas:
        """Closed areas, each with the query for its pages; areas without pages in the index are left out.

        The addresses below a prefix are looked up in the list of terms and named one by one: a regular
        expression takes a millisecond to prepare, and an archive may have a thousand rules. Only an area with
        very many addresses needs one.
        """
        areas: list[tuple[ClosedArea, Query]] = []
        always_closed: set[str] = set()
        for area in closed:
            # A key sorts before all longer ones.
            limit = 1 if area.exact else _MOST_KEYS
            terms = searcher.terms_with_prefix("key", area.prefix, limit=limit)
            keys = [key for key, _ in terms if area.covers(key)]
            if len(terms) >= _MOST_KEYS:
                areas.append((area, self._below(area)))
            elif not is_timed(area):
                always_closed.update(keys)
            elif keys:
                areas.append((area, Query.term_set_query(self._schema, "key", keys)))
        if always_closed:
            keys_closed = Query.term_set_query(self._schema, "key", sorted(always_closed))
            areas.append((ClosedArea(prefix=""), keys_closed))
        return areas

    def range(self, field: str, lowest: int | None, highest: int | None) -> Query:
        return Query.range_query(self._schema, field, tantivy.FieldType.Unsigned, lowest, highest)

    def phrases(self, query: TextQuery) -> list[list[str]]:
        """The words and phrases that a snippet marks, as folded words."""
        return [words for words in map(self.tokens, wanted_texts(query)) if words]

    def stems(self, query: TextQuery, language: str) -> frozenset[str]:
        """Stems of the single words, in one language."""
        words = [*query.words, *(text for group in query.alternatives for text in group)]
        return (
            frozenset(stem for word in words for stem in self.stem(word, language))
            if language in STEMMERS
            else frozenset()
        )

    @lru_cache(maxsize=100_000)  # noqa: B019 - a QueryMaker lives as long as the program
    def stem(self, word: str, language: str) -> list[str]:
        return self._analysers[f"stem_{language}"].analyze(word)

    def tokens(self, text: str) -> list[str]:
        return self._analysers["exact"].analyze(prepared(text))

    def _wanted(self, query: TextQuery) -> Iterator[Query]:
        for word in query.words:
            if self.tokens(word):
                yield self._any_of(self._loosely(word, fields_of(query)))
        for phrase in query.phrases:
            if self.tokens(phrase):
                yield self._exactly(phrase, fields_of(query), factor=2.0)
        for group in query.alternatives:
            parts = [
                part for text in group if self.tokens(text) for part in self._loosely(text, fields_of(query))
            ]
            if parts:
                yield self._any_of(parts)
        for part, text in query.parts:
            if self.tokens(text):
                yield (
                    self._exactly(text, PART_FIELDS[part])
                    if query.anchors or part is not PagePart.ANCHOR
                    else Query.empty_query()
                )

    def _loosely(self, text: str, names: Sequence[str]) -> list[Query]:
        """A word in any field, or a word with the same stem; a word that the index splits stays a phrase."""
        parts = self._exact_parts(text, names, 1.0)
        if len(self.tokens(text)) == 1 and " " not in text.strip():
            stems = [
                (f"stem_{language}", stem) for language in STEMMERS for stem in self.stem(text, language)[:1]
            ]
            parts += [
                Query.boost_query(Query.term_query(self._schema, name, stem, "freq"), STEM_WEIGHT)
                for name, stem in stems
            ]
        return parts

    def _exactly(self, text: str, names: Sequence[str], factor: float = 1.0) -> Query:
        return self._any_of(self._exact_parts(text, names, factor))

    def _exact_parts(self, text: str, names: Sequence[str], factor: float) -> list[Query]:
        words = self.tokens(text)
        if len(words) == 1:
            terms = [(Query.term_query(self._schema, name, words[0]), name) for name in names]
        else:
            terms = [(Query.phrase_query(self._schema, name, list(words)), name) for name in names]
        return [Query.boost_query(term, FIELD_WEIGHTS[name] * factor) for term, name in terms]

    def _any_of(self, parts: Sequence[Query]) -> Query:
        return parts[0] if len(parts) == 1 else Query.boolean_query([(Occur.Should, part) for part in parts])

    def _filters(self, query: TextQuery) -> Iterator[Query]:
        filters = (
            ("site", query.sites),
            ("mime", query.mimes),
            ("lang", query.languages),
            ("puid", query.formats),
            ("key", query.keys),
        )
        for field, values in filters:
            if values:
                yield self._any_of([self.term(field, value) for value in values])
        if query.collection != EVERYTHING:
            yield self.term("collection", query.collection)
        low, high = asked_stamps(query)
        if (low, high) != (0, FOREVER):
            yield self.range("stamps", low * STAMP, high * STAMP + STAMP - 1)
        if query.as_of is not None:
            # A capture before that moment (above), and no capture of another state between the two.
            yield self.range("valid_to", int(times.to_timestamp(query.as_of)) + 1, None)

    def _wholly(self, closed: ClosedArea, below: Query) -> Query:
        """States all of whose captures are closed."""
        if not is_timed(closed):
            return below
        return self._all_of(
            [
                below,
                self.range("valid_from", int(closed.first), None),
                self.range("last_seen", None, int(closed.last)),
            ]
        )

    def _below(self, closed: ClosedArea) -> Query:
        but = [(Occur.MustNot, self._starts(prefix)) for prefix in closed.but]
        if closed.but_keys:
            but.append((Occur.MustNot, self.one_of("key", sorted(closed.but_keys))))
        return Query.boolean_query([(Occur.Must, self._starts(closed.prefix)), *but])

    def _starts(self, prefix: str) -> Query:
        # Tantivy has no range over text.
        pattern = _NOT_PLAIN.sub(lambda match: "\\" + match[0], prefix) + ".*"
        return Query.regex_query(self._schema, "key", pattern)

    def _all_of(self, parts: Sequence[Query]) -> Query:
        return Query.boolean_query([(Occur.Must, part) for part in parts])
