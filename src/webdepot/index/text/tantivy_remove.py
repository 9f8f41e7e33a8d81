"""Captures on their way out of the Tantivy index: what is withdrawn leaves its states, and these are joined
anew.

A page that loses captures is written again as a whole: where a run disappears the one before it stands
longer, or two with the same words become one.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import tantivy
from tantivy import Occur, Query

from webdepot.index.text import states, tantivy_schema
from webdepot.index.text.states import FOREVER, Gone, remaining
from webdepot.index.text.tantivy_add import every, seen_in
from webdepot.index.text.tantivy_query import QueryMaker
from webdepot.model import Capture


class Removing:
    """Captures of one container, and payloads that are nowhere any more."""

    def __init__(
        self, of: tantivy.Schema, make: QueryMaker, searcher: tantivy.Searcher, writer: tantivy.IndexWriter
    ) -> None:
        self._schema = of
        self._make = make
        self._searcher = searcher
        self._writer = writer

    def captures(self, captures: Iterable[tuple[str, Capture]], payloads: frozenset[str]) -> int:
        leaving: dict[str, Gone] = {}
        waiting: set[str] = set()
        for collection, capture in captures:
            leaving.setdefault(capture.key, Counter())[int(capture.timestamp), collection] += 1
            waiting.add(capture.digest)
        for payload in payloads:
            for address in every(self._searcher, self._make.term("payload", payload)):
                leaving.setdefault(self._searcher.doc(address)["key"][0], Counter())
        removed = sum(self._page(key, gone, payloads) for key, gone in leaving.items())
        return removed + sum(self._waiting(payload, leaving) for payload in waiting - {""})

    def _page(self, key: str, gone: Gone, payloads: frozenset[str]) -> int:
        number = tantivy_schema.page_number(key)
        kept = [
            self._searcher.doc(address).to_dict()
            for address in every(self._searcher, self._make.term("page", number))
        ]
        known = [seen for document in kept for seen in seen_in(document)]
        staying = list(remaining(known, gone, payloads))
        if staying == known:
            return 0
        for start in {document["valid_from"][0] for document in kept}:
            self._writer.delete_documents_by_term("run", tantivy_schema.run_name(number, start))
        anchors = next(
            (found for document in kept if any(found := tantivy_schema.anchors_of(document))), ("", "")
        )
        for run in states.merged(staying, (), until=FOREVER):
            for document in tantivy_schema.documents_of(key, run, anchors):
                self._writer.add_document(tantivy.Document.from_dict(document, self._schema))
        return len(known) - len(staying)

    def _waiting(self, payload: str, leaving: dict[str, Gone]) -> int:
        """Revisits of this payload that wait for their original: those that leave are taken off the list."""
        parts = [self._make.term("kind", "waiting"), self._make.term("name", payload)]
        asked = Query.boolean_query([(Occur.Must, part) for part in parts])
        found = [bytes(self._searcher.doc(address)["url"][0]) for address in every(self._searcher, asked)]
        if not found:
            return 0
        self._writer.delete_documents_by_query(asked)
        kept = [told for told in found if not _leaves(json.loads(told), leaving)]
        for told in kept:
            fields = {"kind": "waiting", "name": payload, "url": told}
            self._writer.add_document(tantivy.Document.from_dict(fields, self._schema))
        return len(found) - len(kept)


def _leaves(page: dict[str, Any], leaving: dict[str, Gone]) -> bool:
    return page["key"] in leaving and leaving[page["key"]][int(page["timestamp"]), page["collection"]] > 0
