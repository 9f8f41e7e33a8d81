"""Adding captures to the states of pages, and removing them: the revisions of `pages.py`."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

from webdepot.index.opensearch import schema
from webdepot.index.opensearch.client import OpenSearchClient
from webdepot.index.opensearch.pages import PageChange, PageHead, PageStates, Revision
from webdepot.index.opensearch.schema import IndexNames
from webdepot.index.text import states, tantivy_schema
from webdepot.index.text.states import FOREVER, Content, LeavingCaptures, SeenCapture, remaining
from webdepot.index.text.tantivy_add import seen_in
from webdepot.model import Capture
from webdepot.ports.search import PageText

Tokens = Sequence[tuple[str, Sequence[SeenCapture]]]
"""What is added to a page: captures, and the token that records in its head that they were added."""
_WAITING = "waiting"
_MOST_TERMS = 1000


def token_of(container: str) -> str:
    """A short name of a container, for the heads of pages."""
    return hashlib.blake2b(container.encode("utf-8", "replace"), digest_size=9).hexdigest()


class PageAdding:
    """Adds pages, and remembers the words whose number of states may have changed."""

    def __init__(self, client: OpenSearchClient, names: IndexNames) -> None:
        self._client = client
        self._names = names
        self._pages = PageStates(client, names)
        self.texts: list[str] = []
        self.payloads: set[str] = set()
        """Digests that may have become known, or for which revisits are now waiting."""
        self.added = 0

    def pages(self, container: str, pages: Sequence[PageText]) -> None:
        """Add pages of a container, which come in the order of their keys."""
        token = token_of(container)
        contents = {id(page): states.content_of(page) for page in pages if not page.repeats}
        by_payload = {
            page.digest: contents[id(page)]
            for page in pages
            if not (page.repeats or page.gone) and page.digest
        }
        unknown = {page.digest for page in pages if page.repeats} - by_payload.keys()
        by_payload |= self.contents_with(unknown)
        self.payloads.update(page.digest for page in pages if page.digest)
        revisions, waiting = [], []
        for key, group in groupby(pages, key=lambda page: page.key):
            seen = []
            for page in group:
                content = contents.get(id(page)) or by_payload.get(page.digest)
                if content is None:
                    waiting.append(page)
                else:
                    seen.append(_seen(page, content if not page.repeats else replace(content, url=page.url)))
            if seen:
                revisions.append(self.revision(key, [(token, seen)]))
        self._put_waiting(token, waiting)
        self._pages.rewrite(revisions)
        self.added += len(pages)

    def revision(self, key: str, added: Tokens) -> Revision:
        def missing(head: PageHead) -> Tokens:
            return [(token, seen) for token, seen in added if token not in head.applied]

        def wanted(head: PageHead) -> slice | None:
            new = [capture.stamp for _, seen in missing(head) for capture in seen]
            if not new:
                self.texts.extend(_text(capture.content) for _, seen in added for capture in seen)
                return None
            return states.touched([start for start, _ in head.runs], new)

        def revise(head: PageHead, part: slice, documents: Sequence[Mapping[str, Any]]) -> PageChange:
            stored = [schema.stored_of(document) for document in documents]
            new = [capture for _, seen in missing(head) for capture in seen]
            until = head.runs[part.stop][0] if part.stop < len(head.runs) else FOREVER
            runs = states.merged([seen for each in stored for seen in seen_in(each)], new, until=until)
            known = {bytes(each["digest"][0]) for each in stored}
            self.texts.extend(_text(run.content) for run in runs if run.content.words not in known)
            anchors = _anchors_in(stored)
            return PageChange(
                replaced=part,
                documents=[each for run in runs for each in schema.documents_of(key, run, anchors)],
                applied=head.applied | {token for token, _ in missing(head)},
            )

        return Revision(key=key, wanted=wanted, revise=revise)

    def resolve(self) -> None:
        """Add the words of the original to revisits that wait for one of `payloads`. Everything must have
        been refreshed: then, if two writers add a revisit and its original, at least one of them sees the
        other's page.
        """
        if not self._waiting_number():
            return
        for some in _pieces(sorted(self.payloads), _MOST_TERMS):
            waiting = list(self._iter_waiting({"terms": {"name": some}}))
            contents = self.contents_with({page.digest for _, page in waiting})
            resolved = sorted(
                ((name, page) for name, page in waiting if page.digest in contents),
                key=lambda each: each[1].key,
            )
            self._pages.rewrite(
                self.revision(
                    key,
                    [
                        (name, [_seen(page, replace(contents[page.digest], url=page.url))])
                        for name, page in group
                    ],
                )
                for key, group in groupby(resolved, key=lambda each: each[1].key)
            )
            self._client.bulk(
                ({"delete": {"_index": self._names.containers, "_id": name}}, None) for name, _ in resolved
            )

    def contents_with(self, payloads: Iterable[str]) -> dict[str, Content]:
        """The content of a state for each of these payloads that a state has."""
        contents: dict[str, Content] = {}
        for some in _pieces(sorted(payloads), _MOST_TERMS):
            left = set(some)
            while left:
                body = {"query": {"terms": {"payload": sorted(left)}}, "size": len(left)}
                hits = self._client.search(self._names.states, body)["hits"]["hits"]
                for hit in hits:
                    content = tantivy_schema.content_of(schema.stored_of(hit["_source"]))
                    contents.update(dict.fromkeys(content.payloads & left, content))
                    left -= content.payloads
                if not hits:
                    break
        return contents

    def _put_waiting(self, token: str, pages: Sequence[PageText]) -> None:
        seen: Counter[str] = Counter()
        actions = []
        for page in pages:
            named = token_of(f"{page.key} {page.timestamp} {page.collection} {page.digest}")
            seen[named] += 1
            # The same if the container is added again.
            own = f"{token}+{named}{seen[named]}"
            document = {
                "kind": _WAITING,
                "name": page.digest,
                "token": own,
                "container": token,
                "page": asdict(page),
            }
            actions.append(({"index": {"_index": self._names.containers, "_id": own}}, document))
        self._client.bulk(actions)

    def _waiting_number(self) -> int:
        body = {"query": {"term": {"kind": _WAITING}}}
        number: int = self._client.read("POST", f"/{self._names.containers}/_count", body)["count"]
        return number

    def _iter_waiting(self, condition: Mapping[str, Any]) -> Iterator[tuple[str, PageText]]:
        body: dict[str, Any] = {
            "query": {"bool": {"filter": [{"term": {"kind": _WAITING}}, condition]}},
            "size": 1000,
            "sort": [{"token": "asc"}],
        }
        while hits := self._client.search(self._names.containers, body)["hits"]["hits"]:
            for hit in hits:
                page = hit["_source"]["page"]
                yield hit["_id"], PageText(**{**page, "links": ()})
            body["search_after"] = hits[-1]["sort"]

    # --- taking out ---

    def remove(
        self, container: str, captures: Iterable[tuple[str, Capture]], payloads: frozenset[str]
    ) -> int:
        """Remove the captures of a container from their pages, and payloads that no longer exist; return the
        number of captures.
        """
        token = token_of(container)
        leaving: dict[str, LeavingCaptures] = {}
        for collection, capture in captures:
            leaving.setdefault(capture.key, Counter())[int(capture.timestamp), collection] += 1
        for some in _pieces(sorted(payloads), _MOST_TERMS):
            for key in self._keys_with(some):
                leaving.setdefault(key, Counter())
        counts: Counter[str] = Counter()
        revisions = [self._removal(key, token, gone, payloads, counts) for key, gone in leaving.items()]
        for some in _pieces(revisions, 500):
            self._pages.rewrite(some)
        waiting = [name for name, _ in self._iter_waiting({"term": {"container": token}})]
        self._client.bulk(
            ({"delete": {"_index": self._names.containers, "_id": name}}, None) for name in waiting
        )
        return sum(counts.values()) + len(waiting)

    def _removal(
        self, key: str, token: str, gone: LeavingCaptures, payloads: frozenset[str], counts: Counter[str]
    ) -> Revision:
        def is_its(applied: str) -> bool:
            return applied.partition("+")[0] == token

        def wanted(head: PageHead) -> slice | None:
            return slice(0, len(head.runs)) if head.version is not None else None

        def revise(head: PageHead, part: slice, documents: Sequence[Mapping[str, Any]]) -> PageChange | None:
            stored = [schema.stored_of(document) for document in documents]
            known = [seen for each in stored for seen in seen_in(each)]
            # A page that lost the captures of this container before, in a removal that was interrupted.
            leaving = gone if any(map(is_its, head.applied)) else Counter[tuple[int, str]]()
            staying = list(remaining(known, leaving, payloads))
            applied = frozenset(each for each in head.applied if not is_its(each))
            if staying == known and applied == head.applied:
                return None
            counts[key] = len(known) - len(staying)
            runs = states.merged(staying, (), until=FOREVER)
            left = {run.content.words for run in runs}
            self.texts.extend(
                tantivy_schema.content_of(each).text
                for each in stored
                if bytes(each["digest"][0]) not in left
            )
            anchors = _anchors_in(stored)
            return PageChange(
                replaced=part,
                documents=[each for run in runs for each in schema.documents_of(key, run, anchors)],
                applied=applied,
            )

        return Revision(key=key, wanted=wanted, revise=revise)

    def _keys_with(self, payloads: Sequence[str]) -> Iterator[str]:
        body: dict[str, Any] = {
            "query": {"terms": {"payload": payloads}},
            "size": 1000,
            "_source": ["key", "long_key"],
            "sort": [{"page": "asc"}, {"valid_from": "asc"}, {"collection": "asc"}],
        }
        while hits := self._client.search(self._names.states, body)["hits"]["hits"]:
            yield from (hit["_source"].get("long_key", hit["_source"]["key"]) for hit in hits)
            body["search_after"] = hits[-1]["sort"]

    # --- link texts ---

    def anchor(self, anchors: Iterable[tuple[str, tuple[str, str]]]) -> int:
        """Set the texts of links to pages; return the number of pages changed."""
        changed: set[str] = set()
        self._pages.rewrite(self._anchoring(key, texts, changed) for key, texts in anchors)
        return len(changed)

    def _anchoring(self, key: str, anchors: tuple[str, str], changed: set[str]) -> Revision:
        def wanted(head: PageHead) -> slice | None:
            return slice(0, len(head.runs)) if head.runs else None

        def revise(head: PageHead, part: slice, documents: Sequence[Mapping[str, Any]]) -> PageChange | None:
            stored = [schema.stored_of(document) for document in documents]
            if all("text" not in each or tantivy_schema.anchors_of(each) == anchors for each in stored):
                return None
            changed.add(key)
            runs = states.merged([seen for each in stored for seen in seen_in(each)], (), until=FOREVER)
            return PageChange(
                replaced=part,
                documents=[each for run in runs for each in schema.documents_of(key, run, anchors)],
                applied=head.applied,
            )

        return Revision(key=key, wanted=wanted, revise=revise)

    def sweep(self, keys: Iterable[str]) -> None:
        self._pages.sweep(keys)

    def refresh(self) -> None:
        self._pages.refresh()
        self._client.write("POST", f"/{self._names.containers}/_refresh")


def _seen(page: PageText, content: Content) -> SeenCapture:
    return SeenCapture(int(page.timestamp), page.collection, content)


def _text(content: Content) -> str:
    return "" if content.gone else content.text


def _anchors_in(stored: Sequence[dict[str, list[Any]]]) -> tuple[str, str]:
    return next((anchors for each in stored if any(anchors := tantivy_schema.anchors_of(each))), ("", ""))


def _pieces(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (values[at : at + size] for at in range(0, len(values), size))
