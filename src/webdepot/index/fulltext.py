"""`TantivyTextIndex`: words and time, embedded. The index is a folder that can be thrown away and made anew.

Adding a container:
1. its pages are sorted by address and time (on disk where they are many: memory is bounded by `memory_bytes`);
2. page by page, the runs around the new captures are read, joined with the new ones and written again (`states.py`); a page's older history
   is not touched, so a harvest costs in proportion to itself;
3. one commit makes all of it visible together with the container's name. A process that is killed before leaves the index as it was.

A revisit whose original stands in another container takes its words from any state with that payload digest; where none is known yet it
waits in the index, and is resolved when a page with that digest comes.

Finding: the best states are fetched in growing numbers until they give enough pages, one hit per page. Readers see the last commit.
"""

import contextlib
import fcntl
import heapq
import json
import pickle
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import tantivy
from tantivy import Occur, Query

from webdepot.errors import Conflict
from webdepot.index import fulltext_schema as schema
from webdepot.index import states
from webdepot.index.sqlite_file import REBUILD
from webdepot.index.states import FOREVER, Content, Seen
from webdepot.index.words import shown, snippet
from webdepot.ports import Hit, Hits, PageText, Sort, TextQuery

EXACT_UP_TO = 1000
"""So many matching states are counted page by page; beyond it the number of pages is an estimate."""
_MOST_FETCHED = 200_000
_MOST_PARTLY = 2000
_AS_GOOD = 0.999


def discard(folder: Path) -> None:
    """Remove an index that cannot be opened."""
    shutil.rmtree(folder, ignore_errors=True)


class TantivyTextIndex:
    """The `TextIndex` of one machine. Threads may share it; one process writes at a time and others wait for it."""

    def __init__(self, folder: Path, *, memory_bytes: int = 128 << 20) -> None:
        self._folder = folder
        self._memory_bytes = memory_bytes
        folder.mkdir(parents=True, exist_ok=True)
        self._schema = schema.make()
        self._index = self._opened()
        for name, analyser in schema.analysers().items():
            self._index.register_tokenizer(name, analyser)
        self._index.config_reader("manual")
        self._make = schema.QueryMaker(self._schema)

    def _opened(self) -> tantivy.Index:
        try:
            return tantivy.Index(self._schema, path=str(self._folder))
        except (ValueError, OSError) as error:
            raise Conflict(f"The index of words {self._folder} was made by another version or is damaged ({error}). {REBUILD}") from error

    # --- writing ---

    def add(self, container: str, pages: Iterable[PageText]) -> int:
        with self._writer() as writer:
            searcher = self._searcher()
            if _count(searcher, self._of_kind("container", container)):
                return 0
            adding = _Adding(self._schema, self._make, searcher, writer)
            with tempfile.TemporaryDirectory(prefix="webdepot-text-") as folder:
                arriving = (found for page in pages for found in adding.with_waiting(page))
                for key, group in groupby(_sorted(arriving, Path(folder), self._memory_bytes), key=lambda page: page.key):
                    adding.page(key, list(group))
            adding.document({"kind": "container", "name": container})
            writer.commit()
        return adding.added

    def clear(self) -> None:
        with self._writer() as writer:
            writer.delete_all_documents()
            writer.commit()

    @contextlib.contextmanager
    def _writer(self) -> Iterator[tantivy.IndexWriter]:
        """Tantivy refuses a second writer; our own lock makes it wait instead."""
        with (self._folder / "writing.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            writer = self._index.writer(self._memory_bytes, 1)
            try:
                yield writer
            except BaseException:
                writer.rollback()
                raise
            finally:
                # Ends the writer too: references to it may live on in a traceback, and Tantivy's own lock with them.
                writer.wait_merging_threads()

    # --- reading ---

    def containers(self) -> frozenset[str]:
        searcher = self._searcher()
        return frozenset(searcher.doc(address)["name"][0] for address in _all(searcher, self._make.term("kind", "container")))

    def total(self) -> int:
        return _count(self._searcher(), self._make.term("kind", "state"))

    def find(self, query: TextQuery) -> Hits:
        searcher = self._searcher()
        areas = self._make.areas(searcher, query.closed)
        asked = self._make.state(query, areas)
        partly = self._partly_closed(searcher, query, areas)
        if partly.hidden:
            asked = Query.boolean_query([(Occur.Must, asked), *((Occur.MustNot, one) for one in partly.hidden)])
        total = _count(searcher, asked)
        if not total:
            return Hits(pages=0, exact=True, hits=[])
        found, pages, exact = self._grouped(searcher, asked, query, total)
        return Hits(
            pages=pages,
            exact=exact,
            hits=[self._hit(searcher, query, score, address) for score, address in found],
            years=self._years(searcher, asked, query, partly),
        )

    def close(self) -> None:
        """Nothing is held open between calls."""

    def _searcher(self) -> tantivy.Searcher:
        self._index.reload()
        return self._index.searcher()

    def _of_kind(self, kind: str, name: str) -> Query:
        return Query.boolean_query([(Occur.Must, self._make.term("kind", kind)), (Occur.Must, self._make.term("name", name))])

    def _document(self, run: str, collection: str) -> Query:
        return Query.boolean_query([(Occur.Must, self._make.term("run", run)), (Occur.Must, self._make.term("collection", collection))])

    def _grouped(self, searcher: tantivy.Searcher, asked: Query, query: TextQuery, total: int) -> tuple[list[tuple[float, Any]], int, bool]:
        """The wanted hits, one per page, and how many pages there are."""
        wanted = query.offset + query.limit
        limit = max(min(total, EXACT_UP_TO), wanted * 10)
        while True:
            hits = self._search(searcher, asked, query.sort, limit)
            first = _best_of_each(
                hits, *(searcher.fast_field_values(name, [address for _, address in hits]) for name in ("page", "last_seen"))
            )
            is_all = len(hits) >= total or len(hits) < limit
            if len(first) >= wanted or is_all or limit >= _MOST_FETCHED:
                break
            limit *= 4
        pages = len(first) if is_all else max(round(searcher.cardinality(asked, "page")), len(first))
        return list(first.values())[query.offset : wanted], pages, is_all

    def _search(self, searcher: tantivy.Searcher, asked: Query, sort: Sort, limit: int) -> list[tuple[float, Any]]:
        if sort is Sort.RELEVANCE:
            return list(searcher.search(asked, limit, count=False).hits)
        field, order = ("valid_from", tantivy.Order.Asc) if sort is Sort.OLDEST else ("last_seen", tantivy.Order.Desc)
        return [(0.0, address) for _, address in searcher.search(asked, limit, count=False, order_by_field=field, order=order).hits]

    def _hit(self, searcher: tantivy.Searcher, query: TextQuery, score: float, address: Any) -> Hit:
        document: dict[str, list[Any]] = searcher.doc(address).to_dict()
        key, language = document["key"][0], document["lang"][0]
        stamps = [stamp for stamp in map(_digits, document["stamps"]) if _is_shown(query, key, stamp)]
        stems = self._make.stems(query, language)
        text, marks = snippet(
            document["text"][0],
            self._make.phrases(query),
            (lambda word: any(stem in stems for stem in self._make.stem(word, language))) if stems else None,
        )
        return Hit(
            key=key,
            url=bytes(document["url"][0]).decode("utf-8"),
            timestamp=stamps[0] if query.sort is Sort.OLDEST else stamps[-1],
            title=shown(document["title"][0]),
            snippet=text,
            marks=marks,
            mime=document["mime"][0],
            size_bytes=document["size"][0],
            language=language,
            versions=len(stamps),
            score=score,
        )

    # --- counting captures ---

    def _years(self, searcher: tantivy.Searcher, asked: Query, query: TextQuery, partly: "_Partly") -> dict[int, int]:
        """Captures by year: days from a histogram, what it does not see from the surplus, minus what is closed."""
        histogram: dict[str, Any] = {"field": "stamps", "interval": schema.DAY, "min_doc_count": 1}
        low, high = schema.asked_stamps(query)
        if (low, high) != (0, FOREVER):
            histogram["hard_bounds"] = {"min": low, "max": high}
        found = searcher.aggregate(asked, {"days": {"histogram": histogram}, "surplus": {"sum": {"field": "surplus"}}})
        years: dict[int, int] = {}
        months = set()
        for bucket in found["days"]["buckets"]:
            day = int(bucket["key"]) // schema.DAY
            years[day // 10000] = years.get(day // 10000, 0) + int(bucket["doc_count"])
            months.add(day // 100)
        if found["surplus"]["value"]:
            inside = [month for month in sorted(months) if low <= month * 10**8 + 10**6 and month * 10**8 + 31 * 10**6 <= high]
            sums = {f"m{month}": {"sum": {"field": f"more.m{month}"}} for month in inside}
            for name, value in (searcher.aggregate(asked, sums) if sums else {}).items():
                years[int(name[1:5])] += int(value["value"] or 0)
        for year, count in partly.closed_by_year.items():
            years[year] = years.get(year, 0) - count
        return {year: count for year, count in sorted(years.items()) if count > 0}

    def _partly_closed(self, searcher: tantivy.Searcher, query: TextQuery, areas: schema.Areas) -> "_Partly":
        """States of which some captures are closed, looked at one by one; too many of them are taken as closed."""
        partly = _Partly()
        asked = self._make.partly_closed(query, areas)
        if asked is None:
            return partly
        if _count(searcher, asked) > _MOST_PARTLY:
            partly.hidden.append(asked)
            return partly
        for address in _all(searcher, asked):
            document: dict[str, list[Any]] = searcher.doc(address).to_dict()
            key = document["key"][0]
            inside = [stamp for stamp in map(_digits, document["stamps"]) if _is_asked(query, stamp)]
            closed = [stamp for stamp in inside if any((key, stamp) in one for one in query.closed)]
            if len(closed) == len(inside):
                run = schema.run_name(schema.page_number(key), document["valid_from"][0])
                partly.hidden.append(self._document(run, document["collection"][0]))
            else:
                for stamp in closed:
                    partly.closed_by_year[int(stamp[:4])] = partly.closed_by_year.get(int(stamp[:4]), 0) + 1
        return partly


class _Partly:
    """What is known about states of which some captures are closed."""

    def __init__(self) -> None:
        self.hidden: list[Query] = []
        """States that have no open capture."""
        self.closed_by_year: dict[int, int] = {}


class _Adding:
    """One container on its way into the index."""

    def __init__(self, of: tantivy.Schema, make: schema.QueryMaker, searcher: tantivy.Searcher, writer: tantivy.IndexWriter) -> None:
        self._schema = of
        self._make = make
        self._searcher = searcher
        self._writer = writer
        self._waits = _count(searcher, make.term("kind", "waiting")) > 0
        self.added = 0

    def with_waiting(self, page: PageText) -> Iterator[PageText]:
        """The page, and what waited for its payload: revisits of other containers that came earlier."""
        yield page
        if page.repeats or not page.digest or not self._waits:
            return
        for address in _all(self._searcher, self._waiting_for(page.digest)):
            waiting = PageText(**json.loads(bytes(self._searcher.doc(address)["url"][0])))
            yield _with_words(waiting, states.content_of(page))
        self._writer.delete_documents_by_query(self._waiting_for(page.digest))

    def page(self, key: str, pages: Sequence[PageText]) -> None:
        """Join new captures of one page with what the index has of it."""
        number = schema.page_number(key)
        new = list(self._resolved(pages))
        self.added += len(pages)
        if not new:
            return
        starts, addresses = self._runs(number)
        part = states.touched(starts, [one.stamp for one in new])
        known = [seen for start in starts[part] for address in addresses[start] for seen in _seen(self._searcher.doc(address))]
        until = starts[part.stop] if part.stop < len(starts) else FOREVER
        for start in starts[part]:
            self._writer.delete_documents_by_term("run", schema.run_name(number, start))
        for run in states.merged(known, new, until=until):
            for document in schema.documents_of(key, run):
                self.document(document)

    def document(self, fields: dict[str, Any]) -> None:
        self._writer.add_document(tantivy.Document.from_dict(fields, self._schema))

    def _runs(self, number: int) -> tuple[list[int], dict[int, list[Any]]]:
        """First captures of a page's runs in order, and the documents of each."""
        found = _all(self._searcher, self._make.term("page", number))
        by_start: dict[int, list[Any]] = {}
        for start, address in zip(self._searcher.fast_field_values("valid_from", found) if found else [], found, strict=True):
            by_start.setdefault(int(start or 0), []).append(address)
        return sorted(by_start), by_start

    def _resolved(self, pages: Sequence[PageText]) -> Iterator[Seen]:
        """The captures with their words; what repeats unknown bytes waits in the index."""
        own = [(page, None if page.repeats else states.content_of(page)) for page in pages]
        by_payload = {page.digest: content for page, content in own if content is not None and page.digest}
        for page, words in own:
            content = words or by_payload.get(page.digest) or self._content_with(page.digest)
            if content is None:
                # Kept whole in a stored field: nothing about it is searched but the digest it waits for.
                self.document({"kind": "waiting", "name": page.digest, "url": json.dumps(asdict(page)).encode("ascii")})
            else:
                yield Seen(int(page.timestamp), page.collection, content if words else replace(content, url=page.url))

    def _content_with(self, payload: str) -> Content | None:
        hits = self._searcher.search(self._make.term("payload", payload), 1, count=False).hits
        return schema.content_of(self._searcher.doc(hits[0][1])) if hits else None

    def _waiting_for(self, payload: str) -> Query:
        return Query.boolean_query([(Occur.Must, self._make.term("kind", "waiting")), (Occur.Must, self._make.term("name", payload))])


def _seen(document: tantivy.Document) -> Iterator[Seen]:
    content, collection = schema.content_of(document), document["collection"][0]
    return (Seen(stamp, collection, content) for stamp in document["stamps"])


def _count(searcher: Any, asked: Query) -> int:
    return int(searcher.search(asked, 1).count)


def _all(searcher: tantivy.Searcher, asked: Query) -> list[Any]:
    """Addresses of all documents; their number first, since Tantivy makes room for as many as are asked for."""
    count = _count(searcher, asked)
    return [address for _, address in searcher.search(asked, count, count=False).hits] if count else []


def _best_of_each(hits: Sequence[tuple[float, Any]], pages: Sequence[Any], last_seen: Sequence[Any]) -> dict[Any, tuple[float, Any]]:
    """By page, in the order of their first hits, the best state; of equally good ones (the same words at two times) the later."""
    best: dict[Any, tuple[float, Any]] = {}
    seen: dict[Any, int] = {}
    for (score, address), page, last in zip(hits, pages, last_seen, strict=True):
        if page not in best or (score and score >= best[page][0] * _AS_GOOD and last > seen[page]):
            best[page], seen[page] = (max(score, best[page][0]) if page in best else score, address), last
    return best


def _with_words(waiting: PageText, content: Content) -> PageText:
    return PageText(
        key=waiting.key,
        url=waiting.url,
        timestamp=waiting.timestamp,
        mime=content.mime,
        size_bytes=content.size_bytes,
        collection=waiting.collection,
        title=content.title,
        headings=content.headings,
        text=content.text,
        language=content.language,
        digest=waiting.digest,
    )


def _digits(stamp: int) -> str:
    return f"{stamp:014d}"


def _is_asked(query: TextQuery, timestamp: str) -> bool:
    low, high = schema.asked_stamps(query)
    return low <= int(timestamp) <= high


def _is_shown(query: TextQuery, key: str, timestamp: str) -> bool:
    """Whether this capture of a matching state is one the query asks for and may show."""
    return _is_asked(query, timestamp) and not any((key, timestamp) in closed for closed in query.closed)


def _sorted(pages: Iterable[PageText], folder: Path, memory_bytes: int) -> Iterator[PageText]:
    """Pages by key and time; what does not fit into memory goes to disk in sorted stretches, which are then merged."""
    stretches: list[Path] = []
    held: list[PageText] = []
    size = 0
    for page in pages:
        held.append(page)
        size += 4 * len(page.text) + 1000
        if size > memory_bytes:
            stretches.append(_written(sorted(held, key=_order), folder / str(len(stretches))))
            held, size = [], 0
    held.sort(key=_order)
    return heapq.merge(*map(_read, stretches), held, key=_order)


def _order(page: PageText) -> tuple[str, str]:
    return page.key, page.timestamp


def _written(pages: Sequence[PageText], path: Path) -> Path:
    with path.open("wb") as stream:
        for page in pages:
            pickle.dump(page, stream, protocol=pickle.HIGHEST_PROTOCOL)
    return path


def _read(path: Path) -> Iterator[PageText]:
    with path.open("rb") as stream, contextlib.suppress(EOFError):
        while True:
            yield pickle.load(stream)  # noqa: S301 - our own file, written a moment ago
