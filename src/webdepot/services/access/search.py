"""Search by words and time: results, why they were found, trends over the years, and help while typing.

Every query contains the areas that are closed to the reader, so that no hit, count, suggestion or spelling
reveals closed content.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from webdepot import query_budget
from webdepot.access import search_query as query_text
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.errors import InputError, NotFound
from webdepot.formats import results
from webdepot.index.text.hits import address_words, wanted_texts
from webdepot.index.text.weights import STEM_WEIGHT, WEIGHTS, RankedPart
from webdepot.index.text.words import tokens as words_of
from webdepot.model import EVERYTHING
from webdepot.ports.search import ClosedArea, Facet, Hit, Hits, SearchSort, State, TextQuery
from webdepot.reasons import said
from webdepot.services.access import gate, link_texts, works
from webdepot.services.access.works import VersionCount, WorkEntry

EVERY_FACET = tuple(Facet)
MOST_WORDS = 100
"""Words in a query, including those in phrases. The cost of one call to the text index grows with them, and
it cannot be interrupted.
"""
MOST_ENDINGS = 50
"""How many words a word with a star can match; the most frequent ones are searched."""
STAR = "*"
MOST_STARS = 2
_SHORTEST_STEM = 2
MOST_TREND_WORDS = 6
_COMMON, _FEW_STATES, _MOST_BEGINNINGS = 0.1, 20, 50
"""A word is common if more than a tenth of all states have it, and not only a few."""
_SHORTEST_PREFIX, _MOST_SUGGESTED, _MOST_CANDIDATES = 2, 8, 40
_FARTHEST_SPELLING, _MOST_SPELLINGS = 2, 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """One page of results."""

    text: str
    """The query as typed."""
    pages: int
    """How many pages match in all."""
    exact: bool
    """Whether that is counted or estimated."""
    hits: Sequence[Hit]
    versions: Mapping[str, VersionCount]
    """Versions of each hit, by its key."""
    first_matches: Mapping[str, str]
    """The first version of each hit that matches: its timestamp, by the key of the hit."""
    years: Mapping[int, int]
    """Matching captures by year."""
    months: Mapping[int, int]
    """Matching captures by month, as the number YYYYMM."""
    facets: Mapping[Facet, Sequence[tuple[str, int]]]
    """Matching pages by site, domain, collection, format and language."""
    catalogue: Sequence[WorkEntry]
    """Works of the catalogue that match."""
    format_names: Mapping[str, str]
    """Names of the formats among the facets and hits, by PRONOM identifier."""
    spelling: str
    """The query with its spelling corrected, if no page has all its words; else empty."""
    is_relaxed: bool
    """No page has all the words: the hits have some of them."""
    cut_stars: Sequence[str]
    """Words with a star, as typed, that match more words than are searched."""
    sort: SearchSort
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchReason:
    """Why a page was found: a word of the query, the part of the page that has it, how often, and the weight
    of that part.
    """

    word: str
    part: str
    count: int
    weight: float
    is_stem: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The matching versions of one page, and why the newest of them was found."""

    url: str
    title: str
    reasons: Sequence[MatchReason]
    states: Sequence[State]
    """By time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Captures by year: those with each word, and all."""

    words: Mapping[str, Mapping[int, int]]
    volume: Mapping[int, int]


# --- searching ---


def search(
    archive: Archive,
    text: str,
    *,
    reader: Reader,
    collection: str = EVERYTHING,
    sort: SearchSort = SearchSort.RELEVANCE,
    offset: int = 0,
    limit: int = 10,
    facets: tuple[Facet, ...] = (),
    fold: bool = False,
    relax: bool = False,
) -> SearchPage:
    """One hit per page, in order; closed captures are neither shown nor counted. InputError, with the place
    marked, for a wrong query. With `relax`, pages with some of the words are shown if none has all of them.
    """
    query = replace(
        ask(archive, text, reader=reader, collection=collection),
        sort=sort,
        offset=max(offset, 0),
        limit=max(limit, 1),
        facets=facets,
        fold=fold,
    )
    entries = works.find_entries(archive, query, reader=reader) if not offset else ()
    result = archive.texts.find(query)
    spelling = correct_spelling(archive, text, query) if not result.pages else ""
    is_relaxed = False
    if relax and not result.pages and len(query.words) > 1:
        query = relaxed(archive, query)
        result = archive.texts.find(query)
        is_relaxed = result.pages > 0
    versions = {hit.key: works.count_versions(archive, hit.key, collection, reader) for hit in result.hits}
    return SearchPage(
        text=text,
        pages=result.pages,
        exact=result.exact,
        hits=[replace(hit, versions=versions[hit.key].count) for hit in result.hits],
        versions=versions,
        first_matches=_first_matches(archive, query, result),
        years=result.years,
        months=result.months,
        facets=result.facets,
        catalogue=entries,
        format_names=_format_names(archive, result),
        spelling=spelling,
        is_relaxed=is_relaxed,
        cut_stars=[word for word in _starred(query_text.parse(text)) if _stands_for(archive, word)[1]],
        sort=sort,
        offset=query.offset,
        limit=query.limit,
    )


def ask(archive: Archive, text: str, *, reader: Reader, collection: str = EVERYTHING) -> TextQuery:
    """The typed text as a query that leaves out everything closed to this reader. InputError if it is wrong
    or too long.
    """
    query = query_text.parse(text)
    if sum(len(words_of(part)) for part in (*wanted_texts(query), *query.excluded)) > MOST_WORDS:
        raise InputError(
            said(
                "query_words",
                "The query has more than {most} words, counting those in phrases. Shorten it.",
                most=MOST_WORDS,
            )
        )
    closed_areas = gate.closed_areas(archive, reader)
    anchors = link_texts.may_be_searched(archive, closed_areas)
    return replace(
        works.restrict_sites(archive, _with_endings(archive, query)),
        collection=collection,
        closed=closed_areas,
        anchors=anchors,
    )


def relaxed(archive: Archive, query: TextQuery) -> TextQuery:
    """The query for pages that have at least one of its words. Words that very many pages have, such as
    articles, are left out if there are others: pages with many of them would come first.
    """
    counts = {word: _states_with(archive, word) for word in query.words}
    most = max(archive.texts.total() * _COMMON, _FEW_STATES)
    rare = tuple(word for word in query.words if counts[word] <= most)
    wanted = rare if any(map(counts.get, rare)) else query.words
    return replace(query, words=(), alternatives=(*query.alternatives, wanted))


def _states_with(archive: Archive, typed: str) -> int:
    """How many states have a word; 0 if it is not among the most frequent words that begin like it."""
    return max(
        (dict(archive.texts.words(word, limit=_MOST_BEGINNINGS)).get(word, 0) for word in words_of(typed)),
        default=0,
    )


def _with_endings(archive: Archive, query: TextQuery) -> TextQuery:
    """The query with each word with a star, as in `sal*`, replaced by the words of the index that begin with
    these letters, as alternatives. InputError if there are many such words: each costs as much as a long
    query.
    """
    starred = _starred(query)
    if not starred:
        return query
    if len(starred) > MOST_STARS:
        raise InputError(
            said(
                "query_stars",
                "A query can have at most {most} words with a star. Write the others in full.",
                most=MOST_STARS,
            )
        )
    endings = {word: _stands_for(archive, word)[0] for word in starred}

    def whole(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(text for each in texts for text in endings.get(each, (each,)))

    groups = [*map(whole, query.alternatives), *(endings[word] for word in query.words if word in endings)]
    return replace(
        query,
        words=tuple(word for word in query.words if word not in endings),
        alternatives=tuple(groups),
        excluded=whole(query.excluded),
    )


def _starred(query: TextQuery) -> list[str]:
    """Words with a star at their end. InputError if too few letters are before it."""
    words = [*query.words, *query.excluded, *(text for group in query.alternatives for text in group)]
    starred = [word for word in dict.fromkeys(words) if word.endswith(STAR) and len(words_of(word)) == 1]
    for word in starred:
        if len(words_of(word)[0]) < _SHORTEST_STEM:
            raise InputError(
                said(
                    "query_stem",
                    "At least {least} letters must be before the star of {word}.",
                    least=_SHORTEST_STEM,
                    word=word,
                )
            )
    return starred


def _stands_for(archive: Archive, word: str) -> tuple[tuple[str, ...], bool]:
    """The words that a word with a star matches, and whether there are more of them."""
    [stem] = words_of(word)
    known = [each for each, _ in archive.texts.words(stem, limit=MOST_ENDINGS + 1)]
    # A word that nobody wrote finds nothing, as it should.
    return tuple(known[:MOST_ENDINGS]) or (stem,), len(known) > MOST_ENDINGS


def is_address(text: str) -> bool:
    """Whether a query looks like a web address."""
    return query_text.is_address(text)


def _format_names(archive: Archive, result: Hits) -> dict[str, str]:
    formats = {name for name, _ in result.facets.get(Facet.FORMAT, ())}
    formats |= {hit.format for hit in result.hits if hit.format}
    with archive.database.reading() as connection:
        return results.names(connection, formats)


def volume(archive: Archive, *, reader: Reader, collection: str = EVERYTHING) -> Mapping[int, int]:
    """All indexed captures by month that are open to this reader, for comparison with a histogram."""
    return archive.texts.find(
        TextQuery(collection=collection, closed=gate.closed_areas(archive, reader), limit=1)
    ).months


def trend(archive: Archive, words: Sequence[str], *, reader: Reader, collection: str = EVERYTHING) -> Trend:
    """Several queries over the years, and all captures; InputError if one is wrong or there are too many."""
    if len(words) > MOST_TREND_WORDS:
        raise InputError(
            said("query_trend", "A trend can compare at most {most} words.", most=MOST_TREND_WORDS)
        )
    by_word = {
        text: archive.texts.find(
            replace(ask(archive, text, reader=reader, collection=collection), limit=1)
        ).years
        for text in words
    }
    everything = TextQuery(collection=collection, closed=gate.closed_areas(archive, reader), limit=1)
    return Trend(words=by_word, volume=archive.texts.find(everything).years)


def _first_matches(archive: Archive, query: TextQuery, result: Hits) -> dict[str, str]:
    """The timestamp of the earliest matching version of each hit, by the key of the hit."""
    if not result.hits:
        return {}
    keys = tuple(hit.key for hit in result.hits)
    oldest = replace(
        query, keys=keys, sort=SearchSort.OLDEST, offset=0, limit=len(keys), facets=(), fold=False
    )
    return {hit.key: hit.timestamp for hit in archive.texts.find(oldest).hits}


def explain(
    archive: Archive, text: str, key: str, *, reader: Reader, collection: str = EVERYTHING
) -> Explained:
    """Why a page was found, and its matching versions; NotFound if it does not match or is closed."""
    query = replace(ask(archive, text, reader=reader, collection=collection), keys=(key,))
    states = sorted(archive.texts.scan(query), key=lambda state: state.valid_from)
    if not states:
        raise NotFound(
            said("query_no_version", "No version of this page that can be shown matches the query.")
        )
    last = states[-1]
    return Explained(url=last.url, title=last.title, states=states, reasons=list(_reasons(query, last)))


def _reasons(query: TextQuery, state: State) -> Iterator[MatchReason]:
    parts = {
        RankedPart.TITLE: state.title,
        RankedPart.ANCHOR: state.anchors,
        RankedPart.OWN_ANCHOR: state.own_anchors,
        RankedPart.HEADINGS: state.headings,
        RankedPart.ADDRESS: address_words(state.url),
        RankedPart.HOME: state.home,
        RankedPart.TEXT: state.text,
        RankedPart.IMAGE: state.images,
    }
    words = {part: words_of(text) for part, text in parts.items()}
    choices = {text for group in query.alternatives for text in group}
    for word in wanted_texts(query):
        query_budget.check()
        wanted = words_of(word)
        counted = [
            MatchReason(word=word, part=part.value, count=_times(wanted, words[part]), weight=WEIGHTS[part])
            for part in parts
        ]
        exact = [reason for reason in counted if reason.count]
        if exact or word in choices:  # of alternatives only those that the page has are reasons
            yield from exact
        else:
            yield MatchReason(word=word, part="text", count=0, weight=STEM_WEIGHT, is_stem=True)


def _times(wanted: Sequence[str], words: Sequence[str]) -> int:
    """How often these words occur one after another."""
    if len(wanted) == 1:
        return words.count(wanted[0])
    return sum(words[at : at + len(wanted)] == wanted for at in range(len(words))) if wanted else 0


# --- help while typing ---


def suggest(archive: Archive, typed: str, *, reader: Reader, collection: str = EVERYTHING) -> list[str]:
    """Completions of the typed query: its last word completed to words that this reader can find."""
    before, _, prefix = typed[: query_text.LONGEST_QUERY].rpartition(" ")
    if len(prefix) < _SHORTEST_PREFIX or not prefix.isalnum():
        return []
    areas, suggestions = gate.closed_areas(archive, reader), []
    for word, _ in archive.texts.words(prefix, limit=_MOST_CANDIDATES):
        if _is_known(archive, word, areas, collection):
            suggestions.append(f"{before} {word}".strip())
        if len(suggestions) >= _MOST_SUGGESTED:
            break
    return suggestions


def correct_spelling(archive: Archive, text: str, query: TextQuery) -> str:
    """The query with each unknown word replaced by the most frequent word with a similar spelling; empty if
    there is none.
    """
    corrected = text
    for word in (*query.words, *(word for group in query.alternatives for word in group)):
        if (
            len(word) > _SHORTEST_PREFIX + 1
            and word.isalnum()
            and not _is_known(archive, word, query.closed, query.collection)
        ):
            near = _find_similar(archive, word, query)
            if not near:
                return ""
            corrected = corrected.replace(word, near, 1)
    return corrected if corrected != text else ""


def _find_similar(archive: Archive, word: str, query: TextQuery) -> str:
    from rapidfuzz.distance.OSA import distance  # only for searches that find nothing

    query_budget.check()
    wanted = "".join(words_of(word))
    starts = dict.fromkeys((wanted[:2], wanted[1] + wanted[0], wanted[:1]))
    candidates = {
        known: count for start in starts for known, count in archive.texts.words(start, limit=_MOST_SPELLINGS)
    }
    near = [
        (distance(wanted, known, score_cutoff=_FARTHEST_SPELLING), -count, known)
        for known, count in candidates.items()
    ]
    for far, _, known in sorted(near)[:_MOST_CANDIDATES]:
        if far > _FARTHEST_SPELLING or far * 3 > len(wanted):
            return ""
        if known != wanted and _is_known(archive, known, query.closed, query.collection):
            return known
    return ""


def _is_known(archive: Archive, word: str, areas: tuple[ClosedArea, ...], collection: str) -> bool:
    """Whether a search for the word finds anything: words that only closed pages have are never offered."""
    return (
        archive.texts.find(
            TextQuery(words=(word,), closed=areas, collection=collection, limit=1, histogram=False)
        ).pages
        > 0
    )
