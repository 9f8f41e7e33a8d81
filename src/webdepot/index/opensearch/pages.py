"""Changing the states of pages on a server without transactions, by several writers at the same time.

Each page has a *head*, a document that is always read and written by its name:

    runs      [first capture, [names of the states of that run]], ascending
    applied   tokens of what was added to the page: containers, and revisits that had waited

To change a page:
1. read the head, and by their names the states that change;
2. write new states, under names that were never used;
3. write the head, on the condition that nobody has changed it since (`if_seq_no`);
4. delete the states that were replaced; or, if another writer was first, those just written, and begin again.

Searches see all this only after a refresh, which a writer asks for at its end. A writer that is killed leaves
states that no head names. It also leaves the container without its document, so that the container is added
again: the tokens show which pages have it already, and `sweep` removes what was left.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webdepot.errors import RemoteError
from webdepot.index.opensearch import schema
from webdepot.index.opensearch.client import OpenSearchClient
from webdepot.index.opensearch.schema import IndexNames

_MOST_READ = 500
_MOST_SWEPT = 100
_MOST_TRIES = 100


@dataclass(frozen=True, slots=True)
class PageHead:
    page: str
    runs: Sequence[tuple[int, Sequence[str]]] = ()
    applied: frozenset[str] = frozenset()
    version: tuple[int, int] | None = None
    """Sequence number and primary term; None if there is no such document."""

    def names(self, part: slice = slice(None)) -> list[str]:
        return [name for _, names in self.runs[part] for name in names]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageChange:
    """New states in place of some runs of a page."""

    replaced: slice
    documents: Sequence[Mapping[str, Any]]
    applied: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """How to change a page. Its functions are called again if another writer was first."""

    key: str
    wanted: Callable[[PageHead], slice | None]
    """Returns the runs that must be read; None if there is nothing to change."""
    revise: Callable[[PageHead, slice, Sequence[Mapping[str, Any]]], PageChange | None]
    """Returns the change; the last argument contains the states of those runs."""


@dataclass(slots=True)
class _Attempt:
    revision: Revision
    head: PageHead
    part: slice
    new: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    head_after: dict[str, Any] = field(default_factory=dict)

    @property
    def replaced(self) -> list[str]:
        return self.head.names(self.part)


class PageStates:
    """The pages and their states on the server."""

    def __init__(self, client: OpenSearchClient, names: IndexNames) -> None:
        self._client = client
        self._names = names

    def rewrite(self, revisions: Iterable[Revision]) -> None:
        """Carry out the revisions, one for each page."""
        waiting = list(revisions)
        for _ in range(_MOST_TRIES):
            waiting = self._try(waiting)
            if not waiting:
                return
        raise RemoteError(
            "The text index could not be written: other writers kept changing the same pages. "
            "Try again later.",
            retry=True,
        )

    def refresh(self) -> None:
        """Make everything that was written visible to searches."""
        self._client.write("POST", f"/{self._names.states}/_refresh")

    def heads(self, pages: Sequence[str]) -> dict[str, PageHead]:
        """The heads of these pages, whether they exist or not."""
        heads = {}
        for document in self._read(self._names.pages, [(page, page) for page in pages]):
            page, source = document["_id"], document.get("_source")
            heads[page] = (
                PageHead(page)
                if source is None
                else PageHead(
                    page,
                    [(start, names) for start, names in source["runs"]],
                    frozenset(source["applied"]),
                    (document["_seq_no"], document["_primary_term"]),
                )
            )
        return heads

    def documents(self, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """States by name, as they are now; those that another writer has deleted are missing."""
        documents = self._read(self._names.states, [(name, name[:16]) for name in names])
        return {each["_id"]: each["_source"] for each in documents if "_source" in each}

    def sweep(self, keys: Iterable[str]) -> None:
        """Delete the states of these pages that a killed writer left. The head is written again first, so
        that a writer that is only slow cannot refer to them later.
        """
        self.refresh()
        for some in _pieces(sorted({schema.page_name(key) for key in keys}), _MOST_SWEPT):
            existing: dict[str, set[str]] = {}
            for name in self._names_in(some):
                existing.setdefault(name[:16], set()).add(name)
            heads = self.heads(sorted(existing))
            left = {page: names - set(heads[page].names()) for page, names in existing.items()}
            suspects = [page for page, names in left.items() if names]
            results = self._client.bulk(
                self._head_action(heads[page], _head_source(heads[page].runs, heads[page].applied))
                for page in suspects
            )
            sure = [page for page, result in zip(suspects, results, strict=True) if result["status"] < 300]
            self._delete(name for page in sure for name in left[page])

    def _try(self, revisions: Sequence[Revision]) -> list[Revision]:
        """Try to carry out the revisions; return those that must be tried again."""
        again: list[Revision] = []
        heads = self.heads([schema.page_name(revision.key) for revision in revisions])
        attempts = []
        for revision in revisions:
            head = heads[schema.page_name(revision.key)]
            part = revision.wanted(head)
            if part is not None:
                attempts.append(_Attempt(revision, head, part))
        known = self.documents([name for attempt in attempts for name in attempt.replaced])
        ready = []
        for attempt in attempts:
            if any(name not in known for name in attempt.replaced):
                again.append(attempt.revision)  # another writer has replaced them meanwhile
            elif self._prepare(attempt, [known[name] for name in attempt.replaced]):
                ready.append(attempt)
        self._check(
            self._client.bulk(
                ({"index": {"_index": self._names.states, "_id": name, "routing": name[:16]}}, document)
                for attempt in ready
                for name, document in attempt.new
            )
        )
        results = self._client.bulk(self._head_action(each.head, each.head_after) for each in ready)
        lost = [attempt for attempt, result in zip(ready, results, strict=True) if not self._is_done(result)]
        # A conflict may also mean that our own request succeeded but its answer was lost.
        now = self.heads([attempt.head.page for attempt in lost]) if lost else {}
        lost = [
            attempt
            for attempt in lost
            if {name for name, _ in attempt.new} - set(now[attempt.head.page].names()) or not attempt.new
        ]
        lost_pages = {attempt.head.page for attempt in lost}
        self._delete(name for each in ready if each.head.page not in lost_pages for name in each.replaced)
        self._delete(name for attempt in lost for name, _ in attempt.new)
        return again + [attempt.revision for attempt in lost]

    def _prepare(self, attempt: _Attempt, documents: Sequence[Mapping[str, Any]]) -> bool:
        change = attempt.revision.revise(attempt.head, attempt.part, documents)
        if change is None:
            return False
        page, runs = attempt.head.page, list(attempt.head.runs)
        starts: dict[int, list[str]] = {}
        for document in change.documents:
            name = f"{page}-{secrets.token_hex(8)}"
            attempt.new.append((name, document))
            starts.setdefault(document["valid_from"], []).append(name)
        runs[attempt.part] = sorted(starts.items())
        attempt.head_after = _head_source(runs, change.applied)
        return True

    def _head_action(self, head: PageHead, source: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        place: dict[str, Any] = {"_index": self._names.pages, "_id": head.page, "routing": head.page}
        if head.version is None:
            return {"create": place}, source
        place |= {"if_seq_no": head.version[0], "if_primary_term": head.version[1]}
        return (
            ({"index": place}, source) if source["runs"] or source["applied"] else ({"delete": place}, None)
        )

    def _is_done(self, result: Mapping[str, Any]) -> bool:
        if result["status"] == 409:
            return False
        self._check([result])
        return True

    def _check(self, results: Iterable[Mapping[str, Any]]) -> None:
        for result in results:
            if result["status"] >= 300:
                reason = result.get("error", {}).get("reason", result["status"])
                raise RemoteError(f"The search server refused a page ({reason}).", retry=False)

    def _delete(self, names: Iterable[str]) -> None:
        self._client.bulk(
            ({"delete": {"_index": self._names.states, "_id": name, "routing": name[:16]}}, None)
            for name in names
        )

    def _read(self, index: str, places: Sequence[tuple[str, str]]) -> Iterator[Mapping[str, Any]]:
        """Documents by name and routing, as they are now."""
        for some in _pieces(places, _MOST_READ):
            body = {"docs": [{"_id": name, "routing": routing} for name, routing in some]}
            for document in self._client.write("POST", f"/{index}/_mget", body)["docs"]:
                if "error" in document:
                    raise RemoteError(
                        f"The search server could not read a page ({document['error'].get('reason')}).",
                        retry=True,
                    )
                yield document

    def _names_in(self, pages: Sequence[str]) -> Iterator[str]:
        """Names of the states of these pages that a search finds."""
        body = {
            "query": {"terms": {"page": [schema.signed(int(page, 16)) for page in pages]}},
            "size": schema.MOST_FETCHED,
            "_source": False,
        }
        return (hit["_id"] for hit in self._client.search(self._names.states, body)["hits"]["hits"])


def _head_source(runs: Iterable[tuple[int, Sequence[str]]], applied: Iterable[str]) -> dict[str, Any]:
    return {"runs": [[start, list(names)] for start, names in runs], "applied": sorted(applied)}


def _pieces(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (values[at : at + size] for at in range(0, len(values), size))
