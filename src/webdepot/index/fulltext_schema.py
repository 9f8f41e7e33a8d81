"""What a document of the Tantivy index is, and how a query is asked. https://docs.rs/tantivy

One index holds three kinds of documents: states (one per run of a page and collection, see `states.py`), containers that are in the index,
and revisits whose original has not been seen yet. All of a container's documents and its own are made visible by one commit.

    field        form                          use
    kind         raw                           `state`, `container`, `waiting`
    name         raw, stored                   container: its name; waiting: the digest it waits for
    run          raw                           page number and first capture: handle for replacing
    page         u64 fast                      hash of the key: one hit per page
    key, url     raw, stored
    words        exact analyser                words of the address
    title        exact, stored                 weight 5
    headings     exact, stored                 weight 2
    text         exact, positions, stored      weight 1; phrases, snippets
    stem_xx      stemmed, frequencies          weight 0.5, of the detected language only
    site         raw, many                     host and every domain above it
    lang, mime, collection   raw fast          filters
    payload      raw, many, stored             digests, for revisits
    stamps       u64 fast, many, stored        14-digit capture times: range = captured then, histogram by 10^6 = calendar days
    surplus      u64 fast, and by month in `more` (JSON)  captures beyond the first of a day, which a histogram counts once
    valid_from, valid_to, last_seen   u64 fast as of a date, order by time
    size, digest stored

Exact words lead, stems only add recall with a low weight: Tantivy's Dutch stemmer makes one of `gemeente` and `menen`. Phrases and
excluded words are never stemmed.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import tantivy
from tantivy import Filter, Occur, Query, Tokenizer

from webdepot import times
from webdepot.index.states import FOREVER, Content, Run
from webdepot.index.words import prepared, shown
from webdepot.model import EVERYTHING
from webdepot.ports import Closed, TextQuery
from webdepot.url import host_of

SCHEMA_VERSION = 1
STEMMERS = {
    "nl": "dutch",
    "de": "german",
    "en": "english",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "da": "danish",
    "sv": "swedish",
}
WEIGHTS = {"title": 5.0, "headings": 2.0, "words": 2.0, "text": 1.0}
STEM_WEIGHT = 0.5
HOME_PAGE_BONUS = 1.0
DAY = 10**6
_LONGEST_TOKEN = 100
_MOST_KEYS = 5000
_NOT_PLAIN = re.compile(r"[^0-9a-zA-Z]")


def make() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in ("kind", "run"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in ("name", "key", "payload"):
        builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
    for name in ("lang", "mime", "collection"):
        builder.add_text_field(name, stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("site", tokenizer_name="raw", index_option="basic")
    for name in ("title", "headings", "text"):
        builder.add_text_field(name, stored=True, tokenizer_name="exact", index_option="position")
    builder.add_text_field("words", tokenizer_name="exact", index_option="position")
    for language in STEMMERS:
        builder.add_text_field(f"stem_{language}", tokenizer_name=f"stem_{language}", index_option="freq")
    for name in ("url", "digest"):
        builder.add_bytes_field(name, stored=True)
    builder.add_unsigned_field("size", stored=True)
    for name in ("page", "depth", "valid_from", "valid_to", "last_seen", "surplus"):
        builder.add_unsigned_field(name, stored=name.startswith("valid"), indexed=True, fast=True)
    builder.add_unsigned_field("stamps", stored=True, indexed=True, fast=True)
    builder.add_json_field("more", fast=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


def analysers() -> dict[str, tantivy.TextAnalyzer]:
    """By the names the schema uses: `exact`, `stem_nl`, …"""

    def plain() -> tantivy.TextAnalyzerBuilder:
        return tantivy.TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.remove_long(_LONGEST_TOKEN)).filter(Filter.lowercase())

    made = {f"stem_{language}": plain().filter(Filter.stemmer(name)).build() for language, name in STEMMERS.items()}
    return {"exact": plain().filter(Filter.ascii_fold()).build(), **made}


# --- documents ---------------------------------------------------------------------------------------------------------------


def page_number(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def run_name(page: int, valid_from: int) -> str:
    return f"{page:016x}-{valid_from}"


def documents_of(key: str, run: Run) -> Iterator[dict[str, Any]]:
    """One document for each collection in which the run was seen."""
    content, page = run.content, page_number(key)
    common = {
        "kind": "state",
        "run": run_name(page, run.valid_from),
        "page": page,
        "key": key,
        "url": content.url.encode("utf-8", "replace"),
        "words": address_words(content.url),
        "depth": _depth(key),
        "site": list(sites_of(content.url)),
        "title": prepared(content.title),
        "headings": prepared(content.headings),
        "text": prepared(content.text),
        "lang": content.language,
        "mime": content.mime,
        "size": content.size_bytes,
        "digest": content.words,
        "payload": sorted(content.payloads),
        "valid_from": run.valid_from,
        "valid_to": run.valid_to,
    }
    if content.language in STEMMERS:
        common[f"stem_{content.language}"] = f"{content.title}\n{content.headings}\n{content.text}"
    for collection in sorted({one.collection for one in run.seen}):
        stamps = [one.stamp for one in run.seen if one.collection == collection]
        yield {**common, "collection": collection, "stamps": stamps, "last_seen": stamps[-1], **_surplus(stamps)}


def content_of(document: tantivy.Document) -> Content:
    """The content of a stored document."""
    found: dict[str, list[Any]] = document.to_dict()
    return Content(
        url=bytes(found["url"][0]).decode("utf-8"),
        mime=found["mime"][0],
        size_bytes=found["size"][0],
        title=shown(found["title"][0]),
        headings=shown(found["headings"][0]),
        text=shown(found["text"][0]),
        language=found["lang"][0],
        words=bytes(found["digest"][0]),
        payloads=frozenset(found.get("payload", ())),
    )


def _surplus(stamps: Sequence[int]) -> dict[str, Any]:
    """How many captures a histogram by day does not see, since it counts a document once for each day."""
    days = Counter(stamp // DAY for stamp in stamps)
    more: Counter[str] = Counter()
    for day, count in days.items():
        if count > 1:
            more[f"m{day // 100}"] += count - 1
    return {"surplus": more.total(), **({"more": dict(more)} if more else {})}


def address_words(url: str) -> str:
    return prepared(unquote(url.partition("://")[2] or url, errors="replace"))


def _depth(key: str) -> int:
    path = key.partition(")")[2]
    return 0 if path == "/" else path.count("/")


def sites_of(url: str) -> Iterator[str]:
    host = host_of(url).lower()
    if host.startswith("["):
        yield host.partition("]")[0] + "]"
        return
    labels = host.partition(":")[0].rstrip(".").split(".")
    for at in range(len(labels)):
        yield ".".join(labels[at:])


def asked_stamps(query: TextQuery) -> tuple[int, int]:
    """First and last capture time that the query asks for."""
    low, high = 0, FOREVER
    if query.period is not None:
        low, high = int(times.to_timestamp(query.period.start)), int(times.to_timestamp(query.period.end))
    return low, high if query.as_of is None else min(high, int(times.to_timestamp(query.as_of)))


# --- queries -----------------------------------------------------------------------------------------------------------------


Areas = Sequence[tuple[Closed, Query]]


def _is_timed(closed: Closed) -> bool:
    return closed.first > "0" * 14 or closed.last < "9" * 14


class QueryMaker:
    """Turns a `TextQuery` into Tantivy's."""

    def __init__(self, schema: tantivy.Schema) -> None:
        self._schema = schema
        self._analysers = analysers()

    def term(self, field: str, value: object) -> Query:
        return Query.term_query(self._schema, field, value)

    def state(self, query: TextQuery, areas: Areas) -> Query:
        """States that match everything the query says and of which not all captures are closed."""
        must = [(Occur.Must, part) for part in self._wanted(query)]
        bonus = [(Occur.Should, part) for part in self._bonuses(query)] if must else []
        filters = [(Occur.Must, Query.const_score_query(part, 0.0)) for part in self._filters(query)]
        unwanted = [(Occur.MustNot, self._exactly(text, WEIGHTS)) for text in query.excluded if self._tokens(text)]
        hidden = [(Occur.MustNot, self._wholly(closed, below)) for closed, below in areas]
        return Query.boolean_query([*must, *bonus, *filters, *unwanted, *hidden])

    def partly_closed(self, query: TextQuery, areas: Areas) -> Query | None:
        """States of which some captures are closed and others may not be; None where there can be none."""
        timed = [(closed, below) for closed, below in areas if _is_timed(closed)]
        if not timed:
            return None
        parts = []
        for closed, below in timed:
            overlap = [self.range("valid_from", None, int(closed.last)), self.range("last_seen", int(closed.first), None)]
            parts.append((Occur.Should, self._all_of([below, *overlap])))
        return self._all_of([self.state(query, areas), Query.boolean_query(parts)])

    def areas(self, searcher: tantivy.Searcher, closed: Sequence[Closed]) -> Areas:
        """Closed areas with the query for what lies below them; those in which the index has nothing are left out.

        The addresses below a prefix are looked up in the list of terms and asked for one by one: a pattern takes a millisecond
        to prepare, and an archive may have a thousand rules. Only an area with very many addresses needs one.
        """
        found: list[tuple[Closed, Query]] = []
        everywhen: set[str] = set()
        for area in closed:
            terms = searcher.terms_with_prefix("key", area.prefix, limit=_MOST_KEYS)
            keys = [key for key, _ in terms if not (area.but and key.startswith(area.but))]
            if len(terms) >= _MOST_KEYS:
                found.append((area, self._below(area)))
            elif not _is_timed(area):
                everywhen.update(keys)
            elif keys:
                found.append((area, Query.term_set_query(self._schema, "key", keys)))
        if everywhen:
            found.append((Closed(prefix=""), Query.term_set_query(self._schema, "key", sorted(everywhen))))
        return found

    def range(self, field: str, lowest: int | None, highest: int | None) -> Query:
        return Query.range_query(self._schema, field, tantivy.FieldType.Unsigned, lowest, highest)

    def phrases(self, query: TextQuery) -> list[list[str]]:
        """What a snippet marks: every wanted word and phrase as folded words."""
        wanted = [*query.phrases, *query.words, *(text for group in query.alternatives for text in group)]
        return [found for found in map(self._tokens, wanted) if found]

    def stems(self, query: TextQuery, language: str) -> frozenset[str]:
        """Stems of the single words, in one language."""
        words = [*query.words, *(text for group in query.alternatives for text in group)]
        return frozenset(stem for word in words for stem in self.stem(word, language)) if language in STEMMERS else frozenset()

    def stem(self, word: str, language: str) -> list[str]:
        return self._analysers[f"stem_{language}"].analyze(word)

    def _tokens(self, text: str) -> list[str]:
        return self._analysers["exact"].analyze(prepared(text))

    def _wanted(self, query: TextQuery) -> Iterator[Query]:
        for word in query.words:
            if self._tokens(word):
                yield self._loosely(word)
        for phrase in query.phrases:
            if self._tokens(phrase):
                yield self._exactly(phrase, {name: 2 * weight for name, weight in WEIGHTS.items()})
        for group in query.alternatives:
            parts = [(Occur.Should, self._loosely(text)) for text in group if self._tokens(text)]
            if parts:
                yield Query.boolean_query(parts)

    def _bonuses(self, query: TextQuery) -> Iterator[Query]:
        yield Query.const_score_query(self.term("depth", 0), HOME_PAGE_BONUS)
        together = [token for word in query.words for token in self._tokens(word)]
        if 2 <= len(together) <= 10:
            for name, weight in WEIGHTS.items():
                yield Query.boost_query(Query.phrase_query(self._schema, name, list(together)), 2 * weight)

    def _loosely(self, text: str) -> Query:
        """A word in any field, or a word with the same stem; what is several words to the index stays a phrase."""
        parts = [self._exactly(text, WEIGHTS)]
        if len(self._tokens(text)) == 1 and " " not in text.strip():
            stems = [(f"stem_{language}", stem) for language in STEMMERS for stem in self.stem(text, language)[:1]]
            parts += [Query.boost_query(Query.term_query(self._schema, name, stem, "freq"), STEM_WEIGHT) for name, stem in stems]
        return Query.boolean_query([(Occur.Should, part) for part in parts])

    def _exactly(self, text: str, weights: dict[str, float]) -> Query:
        found = self._tokens(text)
        if len(found) == 1:
            parts = [Query.boost_query(Query.term_query(self._schema, name, found[0]), weight) for name, weight in weights.items()]
        else:
            parts = [Query.boost_query(Query.phrase_query(self._schema, name, list(found)), weight) for name, weight in weights.items()]
        return Query.boolean_query([(Occur.Should, part) for part in parts])

    def _filters(self, query: TextQuery) -> Iterator[Query]:
        yield self.term("kind", "state")
        for field, values in (("site", query.sites), ("mime", query.mimes), ("lang", query.languages)):
            if values:
                yield Query.boolean_query([(Occur.Should, self.term(field, value)) for value in values])
        if query.collection != EVERYTHING:
            yield self.term("collection", query.collection)
        low, high = asked_stamps(query)
        if (low, high) != (0, FOREVER):
            yield self.range("stamps", low, high)
        if query.as_of is not None:
            # A capture before that moment (above), and none of another state between the two.
            yield self.range("valid_to", int(times.to_timestamp(query.as_of)) + 1, None)

    def _wholly(self, closed: Closed, below: Query) -> Query:
        """States all of whose captures are closed."""
        if not _is_timed(closed):
            return below
        return self._all_of([below, self.range("valid_from", int(closed.first), None), self.range("last_seen", None, int(closed.last))])

    def _below(self, closed: Closed) -> Query:
        but = [(Occur.MustNot, self._starts(prefix)) for prefix in closed.but]
        return Query.boolean_query([(Occur.Must, self._starts(closed.prefix)), *but])

    def _starts(self, prefix: str) -> Query:
        # Tantivy has no range over text.
        pattern = _NOT_PLAIN.sub(lambda found: "\\" + found[0], prefix) + ".*"
        return Query.regex_query(self._schema, "key", pattern)

    def _all_of(self, parts: Sequence[Query]) -> Query:
        return Query.boolean_query([(Occur.Must, part) for part in parts])
