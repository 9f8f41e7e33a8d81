"""Removing captures from the Tantivy index: withdrawn captures are removed from their states, and the rest
are joined again.

A page that loses captures is rewritten as a whole: when a run disappears, the one before it lasts longer, or
two with the same words become one.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import tantivy

from webdepot.index.text import states, tantivy_schema
from webdepot.index.text.states import FOREVER, LeavingCaptures, remaining
from webdepot.index.text.tantivy_add import addresses_of, seen_in, waiting_for
from webdepot.index.text.tantivy_draft import Draft
from webdepot.index.text.tantivy_query import QueryMaker
from webdepot.model import Capture


class Removing:
    """Removes the captures of one container, and payloads that no container has after that."""

    def __init__(self, make: QueryMaker, searcher: tantivy.Searcher, draft: Draft) -> None:
        self._make = make
        self._searcher = searcher
        self._draft = draft

    def captures(self, captures: Iterable[tuple[str, Capture]], payloads: frozenset[str]) -> int:
        leaving: dict[str, LeavingCaptures] = {}
        waiting: set[str] = set()
        for collection, capture in captures:
            leaving.setdefault(capture.key, Counter())[int(capture.timestamp), collection] += 1
            waiting.add(capture.digest)
        for payload in payloads:
            for address in addresses_of(self._searcher, self._make.term("payload", payload)):
                leaving.setdefault(self._searcher.doc(address)["key"][0], Counter())
        removed = sum(self._page(key, gone, payloads) for key, gone in leaving.items())
        return removed + sum(self._waiting(payload, leaving) for payload in waiting - {""})

    def _page(self, key: str, gone: LeavingCaptures, payloads: frozenset[str]) -> int:
        addresses = addresses_of(self._searcher, self._make.term("page", tantivy_schema.page_number(key)))
        kept = [self._searcher.doc(address).to_dict() for address in addresses]
        known = [seen for document in kept for seen in seen_in(document)]
        staying = list(remaining(known, gone, payloads))
        if staying == known:
            return 0
        self._draft.bury(addresses)
        anchors = next(
            (anchors for document in kept if any(anchors := tantivy_schema.anchors_of(document))), ("", "")
        )
        for run in states.merged(staying, (), until=FOREVER):
            for document in tantivy_schema.documents_of(key, run, anchors):
                self._draft.add(document)
        return len(known) - len(staying)

    def _waiting(self, payload: str, leaving: dict[str, LeavingCaptures]) -> int:
        """Remove withdrawn revisits from those that wait for this payload; return how many."""
        addresses = addresses_of(self._searcher, waiting_for(self._make, payload))
        waiting = [bytes(self._searcher.doc(address)["url"][0]) for address in addresses]
        if not waiting:
            return 0
        self._draft.bury(addresses)
        kept = [page for page in waiting if not _leaves(json.loads(page), leaving)]
        for page in kept:
            self._draft.add({"kind": "waiting", "name": payload, "url": page})
        return len(waiting) - len(kept)


def _leaves(page: dict[str, Any], leaving: dict[str, LeavingCaptures]) -> bool:
    return page["key"] in leaving and leaving[page["key"]][int(page["timestamp"]), page["collection"]] > 0
