"""Adding one container to the Tantivy index: its pages are sorted, joined with the states of the index, and
written.
"""

import contextlib
import heapq
import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import tantivy
from tantivy import Occur, Query

from webdepot.index.text import states, tantivy_schema
from webdepot.index.text.states import FOREVER, Content, SeenCapture, StateRun
from webdepot.index.text.tantivy_query import QueryMaker
from webdepot.ports import PageText


class Adding:
    """Adds the pages of one container."""

    def __init__(
        self, of: tantivy.Schema, make: QueryMaker, searcher: tantivy.Searcher, writer: tantivy.IndexWriter
    ) -> None:
        self._schema = of
        self._make = make
        self._searcher = searcher
        self._writer = writer
        self._waits = count(searcher, make.term("kind", "waiting")) > 0
        self.added = 0

    def with_waiting(self, page: PageText) -> Iterator[PageText]:
        """The page, and the revisits of earlier containers that waited for its payload."""
        yield page
        if page.repeats or not page.digest or not self._waits:
            return
        for address in addresses_of(self._searcher, self._waiting_for(page.digest)):
            waiting = PageText(**json.loads(bytes(self._searcher.doc(address)["url"][0])))
            yield _with_words(waiting, states.content_of(page))
        self._writer.delete_documents_by_query(self._waiting_for(page.digest))

    def page(self, key: str, pages: Sequence[PageText]) -> None:
        """Join new captures of one page with its states in the index."""
        number = tantivy_schema.page_number(key)
        new = list(self._resolved(pages))
        self.added += len(pages)
        if not new:
            return
        starts, addresses = self._runs(number)
        part = states.touched(starts, [capture.stamp for capture in new])
        kept = [
            self._searcher.doc(address).to_dict() for start in starts[part] for address in addresses[start]
        ]
        until = starts[part.stop] if part.stop < len(starts) else FOREVER
        for start in starts[part]:
            self._writer.delete_documents_by_term("run", tantivy_schema.run_name(number, start))
        anchors = next(
            (anchors for document in kept if any(anchors := tantivy_schema.anchors_of(document))), ("", "")
        )
        for run in states.merged([seen for document in kept for seen in seen_in(document)], new, until=until):
            for document in tantivy_schema.documents_of(key, run, anchors):
                self.document(document)

    def anchor(self, key: str, anchors: tuple[str, str]) -> bool:
        """Give a page's states other texts of links to it; whether that changed anything."""
        number = tantivy_schema.page_number(key)
        kept = [
            self._searcher.doc(address).to_dict()
            for address in addresses_of(self._searcher, self._make.term("page", number))
        ]
        if all("text" not in document or tantivy_schema.anchors_of(document) == anchors for document in kept):
            return False
        # By the run: the Python binding does not find unsigned numbers as terms.
        for start in {document["valid_from"][0] for document in kept}:
            self._writer.delete_documents_by_term("run", tantivy_schema.run_name(number, start))
        for document in kept:
            self.document(fields_again(document, anchors))
        return True

    def document(self, fields: dict[str, Any]) -> None:
        self._writer.add_document(tantivy.Document.from_dict(fields, self._schema))

    def _runs(self, number: int) -> tuple[list[int], dict[int, list[Any]]]:
        """First captures of a page's runs in order, and the documents of each."""
        addresses = addresses_of(self._searcher, self._make.term("page", number))
        starts = self._searcher.fast_field_values("valid_from", addresses) if addresses else []
        by_start: dict[int, list[Any]] = {}
        for start, address in zip(starts, addresses, strict=True):
            by_start.setdefault(int(start or 0), []).append(address)
        return sorted(by_start), by_start

    def _resolved(self, pages: Sequence[PageText]) -> Iterator[SeenCapture]:
        """The captures with their words; a revisit of unknown bytes is left waiting in the index."""
        own = [(page, None if page.repeats else states.content_of(page)) for page in pages]
        by_payload = {page.digest: content for page, content in own if content is not None and page.digest}
        for page, words in own:
            content = words or by_payload.get(page.digest) or self._content_with(page.digest)
            if content is None:
                # Kept whole in a stored field: only the digest that it waits for is searched.
                self.document(
                    {"kind": "waiting", "name": page.digest, "url": json.dumps(asdict(page)).encode("ascii")}
                )
            else:
                yield SeenCapture(
                    int(page.timestamp), page.collection, content if words else replace(content, url=page.url)
                )

    def _content_with(self, payload: str) -> Content | None:
        hits = self._searcher.search(self._make.term("payload", payload), 1, count=False).hits
        return tantivy_schema.content_of(self._searcher.doc(hits[0][1]).to_dict()) if hits else None

    def _waiting_for(self, payload: str) -> Query:
        return Query.boolean_query(
            [(Occur.Must, self._make.term("kind", "waiting")), (Occur.Must, self._make.term("name", payload))]
        )


def seen_in(document: dict[str, list[Any]]) -> Iterator[SeenCapture]:
    """The captures of a stored state."""
    content, collection = tantivy_schema.content_of(document), document["collection"][0]
    return (SeenCapture(stamp, collection, content) for stamp in tantivy_schema.stamps_of(document))


def fields_again(document: dict[str, list[Any]], anchors: tuple[str, str] | None = None) -> dict[str, Any]:
    """The fields of a stored state, to be written again; with `anchors`, with other texts of links to it."""
    seen = list(seen_in(document))
    run = StateRun(valid_from=document["valid_from"][0], valid_to=document["valid_to"][0], seen=seen)
    if anchors is None:
        anchors = tantivy_schema.anchors_of(document)
    return next(tantivy_schema.documents_of(document["key"][0], run, anchors))


def count(searcher: Any, query: Query) -> int:
    return int(searcher.search(query, 1).count)


def addresses_of(searcher: tantivy.Searcher, query: Query) -> list[Any]:
    """Addresses of all matching documents. They are counted first, since Tantivy allocates memory for as many
    as are asked for.
    """
    number = count(searcher, query)
    return [address for _, address in searcher.search(query, number, count=False).hits] if number else []


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
        format=content.format,
        likeness=content.likeness,
        images=content.images,
    )


def in_order(pages: Iterable[PageText], folder: Path, memory_bytes: int) -> Iterator[PageText]:
    """Pages by key and time. If they do not fit into memory, they are written to disk in sorted chunks, which
    are then merged.
    """
    chunks: list[Path] = []
    held: list[PageText] = []
    size = 0
    for page in pages:
        held.append(page)
        size += 4 * len(page.text) + 1000
        if size > memory_bytes:
            chunks.append(_write(sorted(held, key=_order), folder / str(len(chunks))))
            held, size = [], 0
    held.sort(key=_order)
    return heapq.merge(*map(_read, chunks), held, key=_order)


def _order(page: PageText) -> tuple[str, str]:
    return page.key, page.timestamp


def _write(pages: Sequence[PageText], path: Path) -> Path:
    with path.open("wb") as stream:
        for page in pages:
            pickle.dump(page, stream, protocol=pickle.HIGHEST_PROTOCOL)
    return path


def _read(path: Path) -> Iterator[PageText]:
    with path.open("rb") as stream, contextlib.suppress(EOFError):
        while True:
            yield pickle.load(stream)  # noqa: S301 - our own file, written a moment ago
