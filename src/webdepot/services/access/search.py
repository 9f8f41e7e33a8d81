"""Search by words and time: results, why they were found, words over the years, and help while typing.

Rules of access are part of every question, so that no hit, count, suggestion or spelling tells of what this
reader must not know.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from webdepot.access import query
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.errors import InputError, NotFound
from webdepot.formats import results
from webdepot.index.text.words import tokens as words_of
from webdepot.model import EVERYTHING
from webdepot.ports import Closed, Facet, Hit, Hits, Sort, State, TextQuery
from webdepot.services.access import link_texts, rules, works
from webdepot.services.access.works import Entry, Versions

EVERY_FACET = tuple(Facet)
MOST_TREND_WORDS = 6
_SHORTEST_PREFIX, _MOST_SUGGESTED, _MOST_LOOKED_AT = 2, 8, 40
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
    versions: Mapping[str, Versions]
    """Of each hit, by its key."""
    years: Mapping[int, int]
    """Matching captures by year."""
    months: Mapping[int, int]
    """Matching captures by month, as the number YYYYMM."""
    facets: Mapping[Facet, Sequence[tuple[str, int]]]
    """Matching states of pages by site, domain, collection, format, language."""
    catalogue: Sequence[Entry]
    """What the catalogue has about the words."""
    format_names: Mapping[str, str]
    """What the formats among the facets and hits are called, by PRONOM identifier."""
    spelling: str
    """The query with words that are there, where this one found nothing; else empty."""
    sort: Sort
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a page was found: a word of the query, where it stands, how often, and what that place weighs."""

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
    reasons: Sequence[Reason]
    states: Sequence[State]
    """By time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Captures with a word by year, and of all pages."""

    words: Mapping[str, Mapping[int, int]]
    volume: Mapping[int, int]


# --- searching ---


def search(
    archive: Archive,
    text: str,
    *,
    reader: Reader,
    collection: str = EVERYTHING,
    sort: Sort = Sort.RELEVANCE,
    offset: int = 0,
    limit: int = 10,
    facets: tuple[Facet, ...] = (),
    fold: bool = False,
) -> SearchPage:
    """One hit per page, in order; InputError with the place marked for a wrong query. What is closed is
    neither shown nor counted.
    """
    asked = replace(
        ask(archive, text, reader=reader, collection=collection),
        sort=sort,
        offset=max(offset, 0),
        limit=max(limit, 1),
        facets=facets,
        fold=fold,
    )
    found = archive.texts.find(asked)
    versions = {hit.key: works.versions(archive, hit.key, collection, reader) for hit in found.hits}
    return SearchPage(
        text=text,
        pages=found.pages,
        exact=found.exact,
        hits=[replace(hit, versions=versions[hit.key].count) for hit in found.hits],
        versions=versions,
        years=found.years,
        months=found.months,
        facets=found.facets,
        catalogue=works.entries(archive, asked, reader=reader) if not offset else (),
        format_names=_format_names(archive, found),
        spelling=spelling(archive, text, asked) if not found.pages else "",
        sort=sort,
        offset=asked.offset,
        limit=asked.limit,
    )


def ask(archive: Archive, text: str, *, reader: Reader, collection: str = EVERYTHING) -> TextQuery:
    """What was typed, as a query that leaves out what this reader must not know."""
    closed_areas = rules.closed_to(archive, reader)
    anchors = link_texts.may_be_searched(archive, closed_areas)
    return replace(
        works.narrowed(archive, query.parse(text)),
        collection=collection,
        closed=closed_areas,
        anchors=anchors,
    )


def is_address(text: str) -> bool:
    """Whether a query looks like a web address."""
    return query.is_address(text)


def _format_names(archive: Archive, found: Hits) -> dict[str, str]:
    known = {name for name, _ in found.facets.get(Facet.FORMAT, ())} | {
        hit.format for hit in found.hits if hit.format
    }
    with archive.database.reading() as connection:
        return results.names(connection, known)


def volume(archive: Archive, *, reader: Reader, collection: str = EVERYTHING) -> Mapping[int, int]:
    """All captures with words by month, as far as this reader may know: what a histogram is set against."""
    return archive.texts.find(
        TextQuery(collection=collection, closed=rules.closed_to(archive, reader), limit=1)
    ).months


def trend(archive: Archive, words: Sequence[str], *, reader: Reader, collection: str = EVERYTHING) -> Trend:
    """Several queries over the years, and the archive's volume; InputError when one is wrong or there are too
    many.
    """
    if len(words) > MOST_TREND_WORDS:
        raise InputError(f"A trend compares at most {MOST_TREND_WORDS} words.")
    found = {
        text: archive.texts.find(
            replace(ask(archive, text, reader=reader, collection=collection), limit=1)
        ).years
        for text in words
    }
    everything = TextQuery(collection=collection, closed=rules.closed_to(archive, reader), limit=1)
    return Trend(words=found, volume=archive.texts.find(everything).years)


def explain(
    archive: Archive, text: str, key: str, *, reader: Reader, collection: str = EVERYTHING
) -> Explained:
    """Why a page was found, and its matching versions; NotFound when it does not match or is closed."""
    asked = replace(ask(archive, text, reader=reader, collection=collection), keys=(key,))
    states = sorted(archive.texts.scan(asked), key=lambda state: state.valid_from)
    if not states:
        raise NotFound("That page has no version with these words that can be shown.")
    last = states[-1]
    return Explained(url=last.url, title=last.title, states=states, reasons=list(_reasons(asked, last)))


def _reasons(asked: TextQuery, state: State) -> Iterator[Reason]:
    parts = {
        "title": (state.title, 5.0),
        "anchor": (state.anchors, 5.0),
        "headings": (state.headings, 2.0),
        "address": (state.url, 2.0),
        "text": (state.text, 1.0),
        "image": (state.images, 0.5),
    }
    for word in (
        *asked.phrases,
        *asked.words,
        *(one for group in asked.alternatives for one in group),
        *(one for _, one in asked.parts),
    ):
        wanted = words_of(word)
        exact = [
            Reason(word=word, part=name, count=_times(wanted, where), weight=weight)
            for name, (where, weight) in parts.items()
        ]
        found = [reason for reason in exact if reason.count]
        yield from found or [Reason(word=word, part="text", count=0, weight=0.5, is_stem=True)]


def _times(wanted: Sequence[str], text: str) -> int:
    """How often words stand in a row in a text."""
    found = words_of(text)
    return sum(found[at : at + len(wanted)] == list(wanted) for at in range(len(found))) if wanted else 0


# --- help while typing ---


def suggest(archive: Archive, typed: str, *, reader: Reader, collection: str = EVERYTHING) -> list[str]:
    """Queries that what was typed may become: its last word completed by words that this reader can find."""
    before, _, prefix = typed[: query.LONGEST_QUERY].rpartition(" ")
    if len(prefix) < _SHORTEST_PREFIX or not prefix.isalnum():
        return []
    areas, found = rules.closed_to(archive, reader), []
    for word, _ in archive.texts.words(prefix, limit=_MOST_LOOKED_AT):
        if _is_known(archive, word, areas, collection):
            found.append(f"{before} {word}".strip())
        if len(found) >= _MOST_SUGGESTED:
            break
    return found


def spelling(archive: Archive, text: str, asked: TextQuery) -> str:
    """The query with each unknown word replaced by the most frequent one that is written nearly so; empty
    where that is none.
    """
    mended = text
    for word in (*asked.words, *(one for group in asked.alternatives for one in group)):
        if (
            len(word) > _SHORTEST_PREFIX + 1
            and word.isalnum()
            and not _is_known(archive, word, asked.closed, asked.collection)
        ):
            near = _nearest(archive, word, asked)
            if not near:
                return ""
            mended = mended.replace(word, near, 1)
    return mended if mended != text else ""


def _nearest(archive: Archive, word: str, asked: TextQuery) -> str:
    from rapidfuzz.distance.OSA import distance  # only for searches that find nothing

    wanted = "".join(words_of(word))
    starts = dict.fromkeys((wanted[:2], wanted[1] + wanted[0], wanted[:1]))
    candidates = {
        known: count for start in starts for known, count in archive.texts.words(start, limit=_MOST_SPELLINGS)
    }
    near = [
        (distance(wanted, known, score_cutoff=_FARTHEST_SPELLING), -count, known)
        for known, count in candidates.items()
    ]
    for far, _, known in sorted(near)[:_MOST_LOOKED_AT]:
        if far > _FARTHEST_SPELLING or far * 3 > len(wanted):
            return ""
        if known != wanted and _is_known(archive, known, asked.closed, asked.collection):
            return known
    return ""


def _is_known(archive: Archive, word: str, areas: tuple[Closed, ...], collection: str) -> bool:
    """Whether a search for the word would find anything: no word of what is closed is ever offered."""
    return (
        archive.texts.find(
            TextQuery(words=(word,), closed=areas, collection=collection, limit=1, histogram=False)
        ).pages
        > 0
    )
