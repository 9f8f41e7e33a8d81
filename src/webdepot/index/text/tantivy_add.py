"""Adding pages to the Tantivy index: joins them with the states in the index, and writes the changes to a
draft.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

import tantivy
from tantivy import Occur, Query

from webdepot.index.text import states, tantivy_schema
from webdepot.index.text.states import FOREVER, Content, SeenCapture, StateRun
from webdepot.index.text.tantivy_draft import Draft
from webdepot.index.text.tantivy_query import QueryMaker
from webdepot.ports.search import PageText

KnownRuns = dict[int, list[Any]]
"""Addresses of the documents of a page's runs, by first capture."""


class Adding:
    """Joins captures of pages with the states in the index, and writes the changes to a draft."""

    def __init__(self, make: QueryMaker, searcher: tantivy.Searcher, draft: Draft) -> None:
        self._make = make
        self._searcher = searcher
        self._draft = draft
        self._waits = count(searcher, make.term("kind", "waiting")) > 0
        self.added = 0
        self.unresolved: set[str] = set()
        """Digests for which revisits wait that may be resolved once this draft is published."""

    def pages(self, pages: Iterable[PageText], keys: Sequence[str]) -> None:
        """Add the captures of these pages, which come in the order of the keys."""
        known = self._states_of(keys)
        for key, group in groupby(pages, key=lambda page: page.key):
            self._page(key, list(group), known.get(tantivy_schema.page_number(key), {}))

    def _page(self, key: str, pages: Sequence[PageText], known: KnownRuns) -> None:
        """Join new captures of one page with its states in the index."""
        new = list(self._resolved(pages))
        self.added += len(pages)
        if not new:
            return
        starts = sorted(known)
        part = states.touched(starts, [capture.stamp for capture in new])
        kept = [self._searcher.doc(address).to_dict() for start in starts[part] for address in known[start]]
        until = starts[part.stop] if part.stop < len(starts) else FOREVER
        for start in starts[part]:
            self._draft.bury(known[start])
        anchors = next(
            (anchors for document in kept if any(anchors := tantivy_schema.anchors_of(document))), ("", "")
        )
        for run in states.merged([seen for document in kept for seen in seen_in(document)], new, until=until):
            for document in tantivy_schema.documents_of(key, run, anchors):
                self._draft.add(document)

    def anchor(self, key: str, anchors: tuple[str, str]) -> bool:
        """Replace the texts of links to a page in its states; return whether that changed anything."""
        addresses = addresses_of(self._searcher, self._make.term("page", tantivy_schema.page_number(key)))
        kept = [self._searcher.doc(address).to_dict() for address in addresses]
        if all("text" not in document or tantivy_schema.anchors_of(document) == anchors for document in kept):
            return False
        self._draft.bury(addresses)
        for document in kept:
            self._draft.add(fields_again(document, anchors))
        return True

    def resolve(self, digests: Iterable[str]) -> None:
        """Add the revisits that waited for those of these payloads that are known now."""
        resolved: list[PageText] = []
        for digest in digests:
            content = self._content_with(digest)
            if content is None:
                continue
            addresses = addresses_of(self._searcher, waiting_for(self._make, digest))
            for address in addresses:
                waiting = PageText(**json.loads(bytes(self._searcher.doc(address)["url"][0])))
                resolved.append(_with_words(waiting, content))
            self._draft.bury(addresses)
        resolved.sort(key=lambda page: (page.key, page.timestamp))
        self.pages(resolved, [page.key for page in resolved])

    def _states_of(self, keys: Sequence[str]) -> dict[int, KnownRuns]:
        """The runs of these pages in the index: by page number and first capture, their documents."""
        numbers = sorted({tantivy_schema.page_number(key) for key in keys})
        runs: dict[int, KnownRuns] = {}
        if not numbers:
            return runs
        addresses = addresses_of(self._searcher, self._make.one_of("page", numbers))
        if addresses:
            pages = self._searcher.fast_field_values("page", addresses)
            starts = self._searcher.fast_field_values("valid_from", addresses)
            for page, start, address in zip(pages, starts, addresses, strict=True):
                runs.setdefault(int(page or 0), {}).setdefault(int(start or 0), []).append(address)
        return runs

    def _resolved(self, pages: Sequence[PageText]) -> Iterator[SeenCapture]:
        """The captures with their own_content; a revisit of unknown bytes is left waiting in the index."""
        own = [(page, None if page.repeats else states.content_of(page)) for page in pages]
        by_payload = {page.digest: content for page, content in own if content is not None and page.digest}
        if self._waits:
            self.unresolved.update(
                digest for digest in by_payload if count(self._searcher, waiting_for(self._make, digest))
            )
        for page, own_content in own:
            content = own_content or by_payload.get(page.digest) or self._content_with(page.digest)
            if content is None:
                # Kept whole in a stored field: only the digest that it waits for is searched.
                self._draft.add(
                    {"kind": "waiting", "name": page.digest, "url": json.dumps(asdict(page)).encode("ascii")}
                )
                self.unresolved.add(page.digest)
            else:
                yield SeenCapture(
                    int(page.timestamp),
                    page.collection,
                    content if own_content else replace(content, url=page.url),
                )

    def _content_with(self, payload: str) -> Content | None:
        hits = self._searcher.search(self._make.term("payload", payload), 1, count=False).hits
        return tantivy_schema.content_of(self._searcher.doc(hits[0][1]).to_dict()) if hits else None


def waiting_for(make: QueryMaker, payload: str) -> Query:
    """Revisits that wait for a payload."""
    return Query.boolean_query(
        [(Occur.Must, make.term("kind", "waiting")), (Occur.Must, make.term("name", payload))]
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
    """Addresses of all matching documents. They are counted first, because Tantivy allocates memory for the
    requested number.
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
