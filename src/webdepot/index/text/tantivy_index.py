"""`TantivyTextIndex`: words and time, embedded. The index is a folder that can be thrown away and made anew.

Adding a container:
1. its pages are sorted by address and time (on disk where they are many: memory is bounded by
   `memory_bytes`);
2. page by page, the runs around the new captures are read, joined with the new ones and written again
   (`states.py`); a page's older history is not touched, so a harvest costs in proportion to itself;
3. one commit makes all of it visible together with the container's name. A process that is killed before
   leaves the index as it was.

A revisit whose original stands in another container takes its words from any state with that payload digest;
where none is known yet it waits in the index, and is resolved when a page with that digest comes.

Finding takes three questions to Tantivy: one that counts (states, pages, months, facets: no scores), one for
the best states, one for words in a row among these. They are grouped by page, folded, and only what is shown
is read from the store. Readers see the last commit.
"""

import contextlib
import fcntl
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import tantivy
from tantivy import Occur, Query

from webdepot.errors import Conflict
from webdepot.index.sqlite_file import REBUILD
from webdepot.index.text import tantivy_schema
from webdepot.index.text.folding import Leader, folded_groups
from webdepot.index.text.hits import asked_stamps, digits, hit_of, state_of
from webdepot.index.text.states import FOREVER
from webdepot.index.text.tantivy_add import Adding, again, count, every, in_order
from webdepot.index.text.tantivy_query import Areas, QueryMaker
from webdepot.index.text.tantivy_remove import Removing
from webdepot.index.text.words import folded, snippet
from webdepot.model import Capture
from webdepot.ports import MOST_VALUES, Facet, Hit, Hits, PageText, Sort, State, TextQuery

EXACT_UP_TO = 1000
"""So many matching states are counted page by page; beyond it the number of pages is an estimate."""
_MOST_FETCHED = 200_000
_MOST_PARTLY = 2000
_MOST_ROWS = 100
"""Words in a row are looked for in so many of the best states: always the same ones, whatever page of the
result is shown.
"""
_BLOCK_BYTES = 65_536
"""The reach of LZ4. Texts take a fifth less room than in Tantivy's 16 kB, and reading one takes 50
microseconds more.
"""
_SORTING = "sorting-"
"""Folders in which pages wait for their order; what a crash left of them goes with the next writer."""
_AS_GOOD = 0.999
_SCANNED_AT_ONCE = 4000
_FACET_FIELDS = {
    Facet.SITE: "host",
    Facet.DOMAIN: "domain",
    Facet.COLLECTION: "collection",
    Facet.FORMAT: "puid",
    Facet.LANGUAGE: "lang",
}


class TantivyTextIndex:
    """The `TextIndex` of one machine. Threads may share it; one process writes at a time and others wait for
    it.
    """

    def __init__(self, folder: Path, *, memory_bytes: int = 128 << 20) -> None:
        self._folder = folder
        self._memory_bytes = memory_bytes
        folder.mkdir(parents=True, exist_ok=True)
        self._schema = tantivy_schema.make()
        self._index = self._opened()
        for name, analyser in tantivy_schema.analysers().items():
            self._index.register_tokenizer(name, analyser)
        self._index.config_reader("manual")
        self._make = QueryMaker(self._schema)
        self._commit = b""

    def _opened(self) -> tantivy.Index:
        try:
            return self._with_larger_blocks(tantivy.Index(self._schema, path=str(self._folder)))
        except (ValueError, OSError) as error:
            raise Conflict(
                f"The index of words {self._folder} was made by another version or is damaged ({error}). {REBUILD}"
            ) from error

    def _with_larger_blocks(self, index: tantivy.Index) -> tantivy.Index:
        """A new index with texts packed in blocks of this size. Tantivy keeps that with the index, but the
        binding cannot say it.
        """
        path = self._folder / "meta.json"
        meta = json.loads(path.read_bytes())
        settings = meta["index_settings"]
        if meta["segments"] or settings.get("docstore_blocksize") == _BLOCK_BYTES:
            return index
        meta["index_settings"] = {**settings, "docstore_blocksize": _BLOCK_BYTES}
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(meta))
        fresh.replace(path)
        return tantivy.Index(self._schema, path=str(self._folder))

    # --- writing ---

    def add(self, container: str, pages: Iterable[PageText]) -> int:
        with self._writer() as writer:
            searcher = self._searcher()
            if count(searcher, self._of_kind("container", container)):
                return 0
            adding = Adding(self._schema, self._make, searcher, writer)
            with tempfile.TemporaryDirectory(prefix=_SORTING, dir=self._folder) as folder:
                arriving = (found for page in pages for found in adding.with_waiting(page))
                for key, group in groupby(
                    in_order(arriving, Path(folder), self._memory_bytes), key=lambda page: page.key
                ):
                    adding.page(key, list(group))
            adding.document({"kind": "container", "name": container})
            writer.commit()
        return adding.added

    def remove(
        self, container: str, captures: Iterable[tuple[str, Capture]], *, payloads: Sequence[str] = ()
    ) -> int:
        with self._writer() as writer:
            searcher = self._searcher()
            if not count(searcher, self._of_kind("container", container)):
                return 0
            removing = Removing(self._schema, self._make, searcher, writer)
            removed = removing.captures(captures, frozenset(payloads))
            writer.delete_documents_by_query(self._of_kind("container", container))
            writer.commit()
        return removed

    def anchor(self, anchors: Iterable[tuple[str, str, str]]) -> int:
        with self._writer() as writer:
            adding = Adding(self._schema, self._make, self._searcher(), writer)
            changed = sum(adding.anchor(key, (external, internal)) for key, external, internal in anchors)
            writer.commit()
        return changed

    def clear(self) -> None:
        with self._writer() as writer:
            writer.delete_all_documents()
            writer.commit()

    def compact(self) -> None:
        with self._writer() as writer:
            searcher = self._searcher()
            # Old segments are dropped by the same commit that shows the new ones: readers never see less than
            # everything.
            writer.delete_all_documents()
            for kind in ("container", "waiting"):
                for address in every(searcher, self._make.term("kind", kind)):
                    document = searcher.doc(address).to_dict()
                    found = {"kind": kind, "name": document["name"][0]}
                    writer.add_document(tantivy.Document.from_dict(found | _waiting(document), self._schema))
            states = [self._make.term("kind", kind) for kind in ("state", "gone")]
            for address in _in_pieces(
                searcher, self._make, Query.boolean_query([(Occur.Should, one) for one in states])
            ):
                writer.add_document(
                    tantivy.Document.from_dict(again(searcher.doc(address).to_dict()), self._schema)
                )
            writer.commit()
            writer.garbage_collect_files()

    @contextlib.contextmanager
    def _writer(self) -> Iterator[tantivy.IndexWriter]:
        """Tantivy refuses a second writer; our own lock makes it wait instead."""
        with (self._folder / "writing.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left_by_a_crash in self._folder.glob(f"{_SORTING}*"):
                shutil.rmtree(left_by_a_crash, ignore_errors=True)
            writer = self._index.writer(self._memory_bytes, 1)
            try:
                yield writer
            except BaseException:
                writer.rollback()
                raise
            finally:
                # Ends the writer too: references to it may live on in a traceback, and Tantivy's own lock
                # with them.
                writer.wait_merging_threads()

    # --- reading ---

    def containers(self) -> frozenset[str]:
        searcher = self._searcher()
        return frozenset(
            searcher.doc(address)["name"][0]
            for address in every(searcher, self._make.term("kind", "container"))
        )

    def total(self) -> int:
        return count(self._searcher(), self._make.term("kind", "state"))

    def dead(self) -> float:
        segments = json.loads((self._folder / "meta.json").read_bytes())["segments"]
        every_one = sum(segment["max_doc"] for segment in segments)
        return (
            sum((segment.get("deletes") or {}).get("num_deleted_docs", 0) for segment in segments) / every_one
            if every_one
            else 0.0
        )

    def words(self, prefix: str, *, limit: int) -> Sequence[tuple[str, int]]:
        return self._searcher().terms_with_prefix("text", folded(prefix), limit=limit)

    def find(self, query: TextQuery) -> Hits:
        searcher = self._searcher()
        asked, partly = self._asked(searcher, query)
        counted = searcher.aggregate(asked, self._counting(query))
        total = int(counted["states"]["value"] or 0)
        if not total:
            return Hits(pages=0, exact=True, hits=[])
        groups, seen, exact = self._grouped(searcher, asked, query, total)
        first = groups[query.offset : query.offset + query.limit]
        return Hits(
            pages=seen if exact else max(round(counted["pages"]["value"]), seen),
            exact=exact,
            hits=[self._hit(searcher, query, leader) for leader in first],
            months=self._months(searcher, asked, query, counted, partly) if query.histogram else {},
            facets={facet: _values(counted[facet.value]["buckets"]) for facet in query.facets},
        )

    def scan(self, query: TextQuery) -> Iterator[State]:
        searcher = self._searcher()
        asked, _ = self._asked(searcher, query)
        for address in _in_pieces(searcher, self._make, asked):
            state = _state(query, searcher.doc(address).to_dict())
            if state.timestamps:
                yield state

    def close(self) -> None:
        """Nothing is held open between calls."""

    def _searcher(self) -> tantivy.Searcher:
        """On the last commit. Its file is small, and reading it takes a tenth of what opening all segments
        anew takes.
        """
        commit = (self._folder / "meta.json").read_bytes()
        if commit != self._commit:
            self._index.reload()
            self._commit = commit
        return self._index.searcher()

    def _of_kind(self, kind: str, name: str) -> Query:
        return Query.boolean_query(
            [(Occur.Must, self._make.term("kind", kind)), (Occur.Must, self._make.term("name", name))]
        )

    def _document(self, run: str, collection: str) -> Query:
        return Query.boolean_query(
            [
                (Occur.Must, self._make.term("run", run)),
                (Occur.Must, self._make.term("collection", collection)),
            ]
        )

    def _asked(self, searcher: tantivy.Searcher, query: TextQuery) -> tuple[Query, "_Partly"]:
        """The states that answer the query and have a capture that may be shown."""
        areas = self._make.areas(searcher, query.closed)
        asked = self._make.state(query, areas)
        partly = self._partly_closed(searcher, query, areas)
        if partly.hidden:
            asked = Query.boolean_query(
                [(Occur.Must, asked), *((Occur.MustNot, one) for one in partly.hidden)]
            )
        return asked, partly

    # --- the best states ---

    def _grouped(
        self, searcher: tantivy.Searcher, asked: Query, query: TextQuery, total: int
    ) -> tuple[list[Leader], int, bool]:
        """The best states in order, one for each page (or for each group of pages that are nearly the same),
        how many pages were seen for that, and whether these are all.
        """
        wanted = query.offset + query.limit
        limit = total if total <= EXACT_UP_TO else max(wanted * 10, _MOST_ROWS)
        while True:
            hits = self._with_rows(searcher, query, self._search(searcher, asked, query.sort, limit))
            best = _best_of_each(hits, *_fast(searcher, hits, "page", "last_seen"))
            is_all = len(hits) >= total or len(hits) < limit
            groups = self._folded(searcher, best) if query.fold else [Leader(*one) for one in best]
            if len(groups) >= wanted or is_all or limit >= _MOST_FETCHED:
                return groups, len(best), is_all
            limit *= 4

    def _search(
        self, searcher: tantivy.Searcher, asked: Query, sort: Sort, limit: int
    ) -> list[tuple[float, Any]]:
        if sort is Sort.RELEVANCE:
            return list(searcher.search(asked, limit, count=False).hits)
        field, order = (
            ("valid_from", tantivy.Order.Asc) if sort is Sort.OLDEST else ("last_seen", tantivy.Order.Desc)
        )
        return [
            (0.0, address)
            for _, address in searcher.search(
                asked, limit, count=False, order_by_field=field, order=order
            ).hits
        ]

    def _with_rows(
        self, searcher: tantivy.Searcher, query: TextQuery, hits: list[tuple[float, Any]]
    ) -> list[tuple[float, Any]]:
        """The hits, those with the words in a row moved up."""
        if query.sort is not Sort.RELEVANCE or len(query.words) < 2:
            return hits
        among = [address for _, address in hits[:_MOST_ROWS]]
        row = self._make.in_a_row(
            query, sorted({int(page or 0) for page in searcher.fast_field_values("page", among)})
        )
        found = (
            {
                _place(address): score
                for score, address in searcher.search(row, 10 * _MOST_ROWS, count=False).hits
            }
            if row
            else {}
        )
        if not found:
            return hits
        first = [(score + found.get(_place(address), 0.0), address) for score, address in hits[:_MOST_ROWS]]
        first.sort(key=lambda hit: -hit[0])
        return first + hits[_MOST_ROWS:]

    def _folded(self, searcher: tantivy.Searcher, best: Sequence[tuple[float, Any]]) -> list[Leader]:
        (likeness,) = _fast(searcher, best, "likeness")
        return folded_groups(
            [(score, address, int(like or 0)) for (score, address), like in zip(best, likeness, strict=True)]
        )

    def _hit(self, searcher: tantivy.Searcher, query: TextQuery, leader: Leader) -> Hit:
        document: dict[str, list[Any]] = searcher.doc(leader.place).to_dict()
        state, language = _state(query, document), document["lang"][0]
        stems = self._make.stems(query, language)
        is_match = (
            (lambda word: any(stem in stems for stem in self._stemmed(word, language))) if stems else None
        )
        return hit_of(query, state, leader, snippet(document["text"][0], self._make.phrases(query), is_match))

    @lru_cache(maxsize=100_000)  # noqa: B019 - an index lives as long as the program
    def _stemmed(self, word: str, language: str) -> list[str]:
        return self._make.stem(word, language)

    # --- counting ---

    def _counting(self, query: TextQuery) -> dict[str, Any]:
        """One question for all that is counted."""
        asked: dict[str, Any] = {
            "states": {"value_count": {"field": "valid_from"}},
            "pages": {"cardinality": {"field": "page"}},
        }
        if query.histogram:
            asked["months"] = {"histogram": {"field": "months", "interval": 1, "min_doc_count": 1}}
        for facet in query.facets:
            # As many for each segment as there may be: else the counts of rarer values would be too low.
            asked[facet.value] = {
                "terms": {"field": _FACET_FIELDS[facet], "size": MOST_VALUES + 1, "segment_size": 65_000}
            }
        return asked

    def _months(
        self,
        searcher: tantivy.Searcher,
        asked: Query,
        query: TextQuery,
        counted: Mapping[str, Any],
        partly: "_Partly",
    ) -> dict[int, int]:
        """Captures by month: whole months are counted; those in which the asked time begins or ends are
        counted capture by capture.
        """
        low, high = asked_stamps(query)
        found: dict[int, int] = {}
        for bucket in counted["months"]["buckets"]:
            month = int(bucket["key"]) % tantivy_schema.MONTH
            if low <= month * 10**8 and month * 10**8 + 10**8 - 1 <= high:
                found[month] = found.get(month, 0) + int(bucket["doc_count"])
        for month in sorted({low // 10**8, high // 10**8} - {0, FOREVER // 10**8}):
            if month not in found:
                number = self._captures_between(
                    searcher, asked, max(low, month * 10**8), min(high, month * 10**8 + 10**8 - 1)
                )
                if number:
                    found[month] = number
        for month, number in partly.closed.items():
            found[month] = found.get(month, 0) - number
        return {month: number for month, number in sorted(found.items()) if number > 0}

    def _captures_between(self, searcher: tantivy.Searcher, asked: Query, low: int, high: int) -> int:
        bounds = {
            "min": low * tantivy_schema.STAMP,
            "max": high * tantivy_schema.STAMP + tantivy_schema.STAMP - 1,
        }
        histogram = {"field": "stamps", "interval": 1, "min_doc_count": 1, "hard_bounds": bounds}
        return sum(
            int(bucket["doc_count"])
            for bucket in searcher.aggregate(asked, {"one": {"histogram": histogram}})["one"]["buckets"]
        )

    def _partly_closed(self, searcher: tantivy.Searcher, query: TextQuery, areas: Areas) -> "_Partly":
        """States of which some captures are closed, looked at one by one; too many of them are taken as
        closed.
        """
        partly = _Partly()
        asked = self._make.partly_closed(query, areas)
        if asked is None:
            return partly
        if count(searcher, asked) > _MOST_PARTLY:
            partly.hidden.append(asked)
            return partly
        for address in every(searcher, asked):
            document: dict[str, list[Any]] = searcher.doc(address).to_dict()
            key = document["key"][0]
            inside = [
                stamp for stamp in map(digits, tantivy_schema.stamps_of(document)) if _is_asked(query, stamp)
            ]
            closed = [stamp for stamp in inside if any((key, stamp) in one for one in query.closed)]
            if len(closed) == len(inside):
                run = tantivy_schema.run_name(tantivy_schema.page_number(key), document["valid_from"][0])
                partly.hidden.append(self._document(run, document["collection"][0]))
            else:
                for stamp in closed:
                    partly.closed[int(stamp[:6])] = partly.closed.get(int(stamp[:6]), 0) + 1
        return partly


@dataclass(slots=True)
class _Partly:
    """What is known about states of which some captures are closed."""

    hidden: list[Query] = field(default_factory=list)
    """States that have no open capture."""
    closed: dict[int, int] = field(default_factory=dict)
    """Closed captures by month."""


def _in_pieces(searcher: tantivy.Searcher, make: QueryMaker, asked: Query) -> Iterator[Any]:
    """Addresses of all matching documents, in bounded memory: by stretches of the page number, which is a
    hash and so spreads evenly.
    """
    pieces = count(searcher, asked) // _SCANNED_AT_ONCE + 1
    width = (1 << 64) // pieces + 1
    for number in range(pieces):
        piece = (
            make.range("page", number * width, min((number + 1) * width, 1 << 64) - 1)
            if pieces > 1
            else Query.all_query()
        )
        addresses = every(searcher, Query.boolean_query([(Occur.Must, asked), (Occur.Must, piece)]))
        pages, starts = _fast(searcher, [(0.0, address) for address in addresses], "page", "valid_from")
        order = sorted(range(len(addresses)), key=lambda at: (pages[at], starts[at]))
        yield from (addresses[at] for at in order)


def _fast(searcher: tantivy.Searcher, hits: Sequence[tuple[float, Any]], *names: str) -> list[list[Any]]:
    addresses = [address for _, address in hits]
    return [searcher.fast_field_values(name, addresses) if addresses else [] for name in names]


def _best_of_each(
    hits: Sequence[tuple[float, Any]], pages: Sequence[Any], last_seen: Sequence[Any]
) -> list[tuple[float, Any]]:
    """For each page, in the order of their first hits, the best state; of equally good ones (the same words
    at two times) the later.
    """
    best: dict[Any, tuple[float, Any]] = {}
    seen: dict[Any, int] = {}
    for (score, address), page, last in zip(hits, pages, last_seen, strict=True):
        if page not in best or (score and score >= best[page][0] * _AS_GOOD and last > seen[page]):
            best[page], seen[page] = (max(score, best[page][0]) if page in best else score, address), last
    return list(best.values())


def _place(address: Any) -> tuple[int, int]:
    return address.segment_ord, address.doc


def _values(buckets: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    found = [(str(bucket["key"]), int(bucket["doc_count"])) for bucket in buckets if bucket["key"]]
    return sorted(found, key=lambda value: (-value[1], value[0]))[:MOST_VALUES]


def _state(query: TextQuery, document: dict[str, list[Any]]) -> State:
    key = document["key"][0]
    return state_of(
        query,
        tantivy_schema.content_of(document),
        key=key,
        collection=document["collection"][0],
        valid=(document["valid_from"][0], document["valid_to"][0]),
        stamps=[
            stamp for stamp in map(digits, tantivy_schema.stamps_of(document)) if _is_shown(query, key, stamp)
        ],
        anchors=tantivy_schema.anchors_of(document),
    )


def _waiting(document: dict[str, list[Any]]) -> dict[str, Any]:
    return {"url": bytes(document["url"][0])} if "url" in document else {}


def _is_asked(query: TextQuery, timestamp: str) -> bool:
    low, high = asked_stamps(query)
    return low <= int(timestamp) <= high


def _is_shown(query: TextQuery, key: str, timestamp: str) -> bool:
    """Whether this capture of a matching state is one the query asks for and may show."""
    return _is_asked(query, timestamp) and not any((key, timestamp) in closed for closed in query.closed)
