"""`OpenSearchTextIndex`: the text index on an OpenSearch server, for several machines.

Adding containers:
1. a document records that the container is being added;
2. its pages are divided by address into parts for the workers, which change the pages one by one (`pages.py`)
   and skip a page that already has the container;
3. this is made visible to searches (refresh), words are counted (`words.py`), and waiting revisits get their
   words;
4. the document records that the container was added.

There is no transaction: a process that is killed leaves a part of the container, and adding it again
completes it. Several processes on several machines may write at the same time.

The first request is sent when the index is first used.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from webdepot import durable
from webdepot.errors import Conflict, WebdepotError
from webdepot.index import page_files
from webdepot.index.opensearch import schema
from webdepot.index.opensearch.add import PageAdding, token_of
from webdepot.index.opensearch.client import OpenSearchClient, ServerAddress, ServerRefusal
from webdepot.index.opensearch.find import OpenSearchSearch
from webdepot.index.opensearch.query import OpenSearchQuery
from webdepot.index.opensearch.schema import IndexNames
from webdepot.index.opensearch.words import WordCounts
from webdepot.index.sqlite_file import REBUILD
from webdepot.index.text.tantivy_part import in_pieces, sorted_lines
from webdepot.model import Capture
from webdepot.ports.engine import Engine, Item, Result
from webdepot.ports.search import Hits, PageFile, PageText, State, TextQuery

_SMALL_BYTES = 500_000
"""Up to this many bytes of compressed pages are added in this process."""
_PART_BYTES = 4_000_000
_ANCHORS_AT_ONCE = 500
_MOST_NAMES = 1000
_CONTAINER, _ADDING = "container", "adding"
_CHECK_USER = "Check the rights of the user in [index] opensearch_user on the search server."

FindFormats = Callable[[Iterable[str]], Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchPlace:
    """A server, and which of its indexes belong to the archive."""

    address: ServerAddress
    name: str
    shards: int = 1
    replicas: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageJob:
    """Part `part` of `parts` of the pages in `files`."""

    place: OpenSearchPlace
    files: Sequence[PageFile]
    repeated: frozenset[str]
    """Containers that were partly added before."""
    formats: Mapping[str, str]
    part: int
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedPart:
    pages: int
    payloads: frozenset[str]


def run_part(job: PageJob) -> AddedPart:
    """Add a part of some containers, in a worker process."""
    client, names = OpenSearchClient(job.place.address), IndexNames(job.place.name)
    adding = PageAdding(client, names)
    try:
        with ExitStack() as stack:
            streams = [stack.enter_context(page_files.opened(file.path)) for file in job.files]
            for number, file in enumerate(job.files):
                lines = sorted_lines([file], job.part, job.parts)
                if file.container in job.repeated:
                    adding.sweep(line.key for _, line in lines)
                for some in in_pieces(lines):
                    pages = (page_files.page_at(streams[number], line) for _, line in some)
                    adding.pages(file.container, list(page_files.with_formats(pages, job.formats)))
        adding.refresh()
        WordCounts(client, names).count(adding.texts)
        return AddedPart(pages=adding.added, payloads=frozenset(adding.payloads))
    finally:
        client.close()


class OpenSearchTextIndex:
    """The `TextIndex` of several machines. Threads may share it."""

    def __init__(self, place: OpenSearchPlace, scratch: Path) -> None:
        self._place = place
        self._scratch = scratch
        """Folder for temporary files."""
        self._connection = OpenSearchClient(place.address)
        self._names = IndexNames(place.name)
        self._make = OpenSearchQuery()
        self._lock = threading.Lock()
        self._is_ready = False

    @property
    def _client(self) -> OpenSearchClient:
        """The server, with the indexes of the archive."""
        if not self._is_ready:
            with self._lock:
                if not self._is_ready:
                    self._connection.version()
                    self._create()
                    self._is_ready = True
        return self._connection

    def _create(self) -> None:
        """Create the indexes that are missing. Conflict if they were made by another version."""
        bodies = schema.bodies(self._names, shards=self._place.shards, replicas=self._place.replicas)
        for name, body in bodies.items():
            try:
                mappings = self._connection.read("GET", f"/{name}/_mapping")[name]["mappings"]
                if mappings.get("_meta", {}).get("webdepot") != schema.VERSION:
                    raise Conflict(f"The text index {name} was made by another version. {REBUILD}")
            except ServerRefusal as error:
                if error.status != 404:
                    raise Conflict(
                        f"The text index {name} cannot be used ({error}). {_CHECK_USER}"
                    ) from error
                try:
                    self._connection.write("PUT", f"/{name}?wait_for_active_shards=1", body)
                except ServerRefusal as refusal:
                    if "resource_already_exists" not in refusal.kind:  # by another process
                        raise Conflict(
                            f"The text index {name} cannot be created ({refusal}). {_CHECK_USER}"
                        ) from refusal

    # --- writing ---

    def add(self, container: str, pages: Iterable[PageText]) -> int:
        with self._temporary() as folder:
            file = PageFile(container=container, path=folder / "pages")
            with page_files.written(file.path) as write:
                for page in pages:
                    write(page)
            return self._add([file], engine=None, formats=lambda digests: {})

    def add_files(self, files: Sequence[PageFile], engine: Engine, *, formats: FindFormats) -> int:
        return self._add(files, engine=engine, formats=formats)

    def _add(self, files: Sequence[PageFile], *, engine: Engine | None, formats: FindFormats) -> int:
        known = self._kinds(file.container for file in files)
        files = [file for file in files if known.get(file.container) != _CONTAINER]
        if not files:
            return 0
        self._put_containers(files, _ADDING)
        size_bytes = sum(file.path.stat().st_size for file in files)
        helpers = None if size_bytes < _SMALL_BYTES else engine
        parts = min(
            max(-(-size_bytes // _PART_BYTES), helpers.workers if helpers else 1), page_files.MOST_PARTS
        )
        jobs = (
            PageJob(
                place=self._place,
                files=files,
                repeated=frozenset(known),
                formats=formats(
                    {line.digest for file in files for line in page_files.lines_in(file.path, part, parts)}
                ),
                part=part,
                parts=parts,
            )
            for part in range(parts)
        )
        added = _run(run_part, jobs, helpers)
        self._resolve(frozenset[str]().union(*(part.payloads for part in added)))
        self._put_containers(files, _CONTAINER)
        return sum(part.pages for part in added)

    def _resolve(self, payloads: frozenset[str]) -> None:
        """Give words to revisits that waited for these payloads."""
        adding = PageAdding(self._client, self._names)
        adding.payloads.update(payloads)
        adding.resolve()
        if adding.texts:
            adding.refresh()
            WordCounts(self._client, self._names).count(adding.texts)

    def remove(
        self, container: str, captures: Iterable[tuple[str, Capture]], *, payloads: Sequence[str] = ()
    ) -> int:
        if not self._kinds([container]):
            return 0
        adding = PageAdding(self._client, self._names)
        removed = adding.remove(container, captures, frozenset(payloads))
        adding.refresh()
        WordCounts(self._client, self._names).count_exactly(adding.texts)
        self._client.bulk(
            [({"delete": {"_index": self._names.containers, "_id": token_of(container)}}, None)]
        )
        self._refresh_containers()
        return removed

    def anchor(self, anchors: Iterable[tuple[str, str, str]], engine: Engine) -> int:
        adding, changed = PageAdding(self._client, self._names), 0
        left = iter(anchors)
        while some := [(key, (external, own)) for key, external, own in islice(left, _ANCHORS_AT_ONCE)]:
            changed += adding.anchor(some)
        if changed:
            adding.refresh()
        return changed

    def clear(self) -> None:
        self._connection.version()
        for name in self._names.all():
            with contextlib.suppress(ServerRefusal):
                self._connection.write("DELETE", f"/{name}?ignore_unavailable=true")
        self._create()
        self._is_ready = True

    def compact(self, engine: Engine, *, most_dead: float = 0.0) -> None:
        """OpenSearch itself merges the segments that are worth it; this rewrites the rest. What was replaced
        in the last half minute is kept: a replica of a shard may not have received it yet.
        """
        if self.dead() <= most_dead:
            return
        self._client.write("POST", f"/{self._names.states}/_flush")
        self._client.write("POST", f"/{self._names.states}/_forcemerge?only_expunge_deletes=true")
        self._client.write("POST", f"/{self._names.states}/_refresh")

    def _put_containers(self, files: Sequence[PageFile], kind: str) -> None:
        self._client.bulk(
            (
                {"index": {"_index": self._names.containers, "_id": token_of(file.container)}},
                {"kind": kind, "name": file.container, "token": token_of(file.container)},
            )
            for file in files
        )
        self._refresh_containers()

    def _refresh_containers(self) -> None:
        self._client.write("POST", f"/{self._names.containers}/_refresh")

    # --- reading ---

    def containers(self) -> frozenset[str]:
        return frozenset(self._iter_containers())

    def _iter_containers(self) -> Iterator[str]:
        body: dict[str, Any] = {
            "query": {"term": {"kind": _CONTAINER}},
            "size": 10_000,
            "sort": [{"token": "asc"}],
            "track_total_hits": False,
        }
        while hits := self._client.search(self._names.containers, body)["hits"]["hits"]:
            yield from (hit["_source"]["name"] for hit in hits)
            body["search_after"] = hits[-1]["sort"]

    def having(self, containers: Iterable[str]) -> frozenset[str]:
        return frozenset(name for name, kind in self._kinds(containers).items() if kind == _CONTAINER)

    def _kinds(self, containers: Iterable[str]) -> dict[str, str]:
        """Those of these containers that were added, or that are being added."""
        left, kinds = iter(containers), dict[str, str]()
        while some := list(islice(left, _MOST_NAMES)):
            body = {"ids": [token_of(name) for name in some]}
            answer = self._client.read("POST", f"/{self._names.containers}/_mget", body)
            kinds.update(
                (document["_source"]["name"], document["_source"]["kind"])
                for document in answer["docs"]
                if document.get("found")
            )
        return kinds

    def total(self) -> int:
        body = {"query": {"term": {"kind": "state"}}}
        return int(self._client.read("POST", f"/{self._names.states}/_count", body)["count"])

    def dead(self) -> float:
        stats = self._client.read("GET", f"/{self._names.states}/_stats/docs")["_all"]["primaries"]["docs"]
        documents = stats["count"] + stats["deleted"]
        return float(stats["deleted"] / documents) if documents else 0.0

    def words(self, prefix: str, *, limit: int) -> Sequence[tuple[str, int]]:
        return WordCounts(self._client, self._names).starting_with(prefix, limit)

    def find(self, query: TextQuery) -> Hits:
        return OpenSearchSearch(self._make, self._client, self._names.states, query).hits()

    def scan(self, query: TextQuery) -> Iterator[State]:
        return OpenSearchSearch(self._make, self._client, self._names.states, query).states()

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def _temporary(self) -> Iterator[Path]:
        durable.make_folders(self._scratch)
        with durable.scratch_folder("draft-", self._scratch) as folder:
            yield folder


def _run(work: Callable[[Item], Result], jobs: Iterable[Item], engine: Engine | None) -> list[Result]:
    if engine is None:
        return [work(job) for job in jobs]
    results = []
    for done in engine.map(work, jobs):
        if done.result is None:
            raise WebdepotError(f"The text of pages could not be indexed: {done.error}")
        results.append(done.result)
    return results
