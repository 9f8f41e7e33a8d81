"""`TantivyTextIndex`: the text index in a folder, which can be deleted and rebuilt.

Adding containers:
1. their pages are divided by address into parts, one or more for each worker (`tantivy_part.py`);
2. page by page, the runs around the new captures are read, joined with the new ones and written again
   (`states.py`); a page's older history is not touched, so the cost of a harvest is proportional to its size;
3. each worker writes segments of its own, and one commit (`tantivy_commit.py`) makes them all visible
   together with the names of the containers. A process that is killed before that leaves the index unchanged;
4. segments are merged while others read and write (`tantivy_merge.py`).

A revisit whose original is elsewhere takes its words from any state with that payload digest. If none is
known yet, it waits in the index. The digests that may have become known with a commit are listed in it, and
are resolved with the next.

Searching is in `tantivy_find.py`. Readers see the last commit.
"""

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import tantivy
from tantivy import Occur, Query

from webdepot import durable, query_budget
from webdepot.errors import Conflict, WebdepotError
from webdepot.index import page_files
from webdepot.index.sqlite_file import REBUILD
from webdepot.index.text import tantivy_commit, tantivy_merge, tantivy_part, tantivy_schema
from webdepot.index.text.tantivy_add import Adding, addresses_of, count
from webdepot.index.text.tantivy_commit import META, Segment
from webdepot.index.text.tantivy_draft import Draft, drafted, open_index
from webdepot.index.text.tantivy_find import TantivySearch
from webdepot.index.text.tantivy_part import AnchorJob, BuiltPart, PartJob
from webdepot.index.text.tantivy_query import QueryMaker
from webdepot.index.text.tantivy_remove import Removing
from webdepot.index.text.words import folded
from webdepot.model import Capture
from webdepot.ports.engine import Engine, Item
from webdepot.ports.search import Hits, PageFile, PageText, State, TextQuery

_log = logging.getLogger(__name__)
_LOCK = "writing.lock"
_BLOCK_BYTES = 65_536
"""The size of LZ4's window. Texts take a fifth less space than in Tantivy's 16 kB blocks, and reading one
takes 50 microseconds more.
"""
_DRAFTS = "draft-"
"""Folders in which segments are built; the next writer removes those that a crash left."""
_SMALL_BYTES = 2_000_000
"""Up to this many bytes of compressed pages are indexed in this process: starting others would take
longer.
"""
_SMALL_ANCHORS_BYTES = 100_000
"""Up to this many bytes of link texts are set in this process."""
_PART_BYTES = 16_000_000
"""Bytes of compressed pages in one part."""
_RESOLVED_AT_ONCE = 500

FindFormats = Callable[[Iterable[str]], Mapping[str, str]]


class TantivyTextIndex:
    """The `TextIndex` of one server. Threads may share it; one process writes at a time and others wait for
    it.
    """

    def __init__(self, folder: Path, *, memory_bytes: int = 128 << 20) -> None:
        self._folder = folder
        self._memory_bytes = memory_bytes
        durable.make_folders(folder)
        self._schema = tantivy_schema.make()
        self._index = self._open()
        self._make = QueryMaker(self._schema)
        self._commit = b""
        self._compaction: threading.Thread | None = None

    def _open(self) -> tantivy.Index:
        try:
            if not self._has_larger_blocks():
                # Two processes may begin at the same time, and one of them may write already.
                with durable.locked(self._folder / _LOCK):
                    return self._create()
            return open_index(self._schema, self._folder)
        except (ValueError, OSError) as error:
            raise Conflict(
                f"The text index {self._folder} was made by another version or is damaged ({error}). "
                f"{REBUILD}"
            ) from error

    def _has_larger_blocks(self) -> bool:
        """Whether the index is complete: it exists, and has its block size or documents."""
        path = self._folder / META
        if not path.exists():
            return False
        meta = json.loads(path.read_bytes())
        return bool(meta["segments"]) or meta["index_settings"].get("docstore_blocksize") == _BLOCK_BYTES

    def _create(self) -> tantivy.Index:
        """Create the index and set its block size, unless another process has done so. Tantivy keeps the size
        with the index, but the Python binding has no option for it.
        """
        index = open_index(self._schema, self._folder)
        if self._has_larger_blocks():
            return index
        path = self._folder / META
        meta = json.loads(path.read_bytes())
        meta["index_settings"] = {**meta["index_settings"], "docstore_blocksize": _BLOCK_BYTES}
        durable.write_whole(path, json.dumps(meta).encode())
        return open_index(self._schema, self._folder)

    # --- writing ---

    def add(self, container: str, pages: Iterable[PageText]) -> int:
        with self._scratch() as folder:
            file = PageFile(container=container, path=folder / "pages")
            with page_files.written(file.path) as write:
                for page in pages:
                    write(page)
            with self._writing():
                return self._add(self._not_there([file]), folder, engine=None, formats=_no_formats)

    def add_files(self, files: Sequence[PageFile], engine: Engine, *, formats: FindFormats) -> int:
        with self._scratch() as folder, self._writing():
            return self._add(self._not_there(files), folder, engine=engine, formats=formats)

    def _not_there(self, files: Sequence[PageFile]) -> list[PageFile]:
        searcher = self._searcher()
        return [file for file in files if not count(searcher, self._of_kind("container", file.container))]

    def _add(
        self, files: Sequence[PageFile], folder: Path, *, engine: Engine | None, formats: FindFormats
    ) -> int:
        if not files:
            return 0
        size_bytes = sum(file.path.stat().st_size for file in files)
        helpers = None if size_bytes < _SMALL_BYTES else engine
        workers = helpers.workers if helpers else 1
        rounds = -(-size_bytes // (workers * _PART_BYTES))
        parts = min(max(rounds, 1) * workers, page_files.MOST_PARTS)
        jobs = (
            PartJob(
                index=self._folder,
                folder=folder / f"part-{part}",
                files=files,
                formats=formats(
                    {line.digest for file in files for line in page_files.lines_in(file.path, part, parts)}
                ),
                part=part,
                parts=parts,
                memory_bytes=self._memory_bytes // workers,
            )
            for part in range(parts)
        )
        built = _built(tantivy_part.run, jobs, helpers)
        unresolved = sorted(frozenset[str]().union(*(part.unresolved for part in built)))
        tantivy_commit.publish(self._folder, [part.change for part in built], payload=unresolved)
        self._resolve()
        if engine is not None:
            self._compact_meanwhile(engine)
        return sum(part.pages for part in built)

    def _resolve(self) -> None:
        """Add the words of the original to revisits that waited for pages of the last commit. If this is
        interrupted, the next writer continues: the digests are in the commit.
        """
        while unresolved := tantivy_commit.read(self._folder).payload:
            with self._draft() as (draft, searcher):
                Adding(self._make, searcher, draft).resolve(unresolved[:_RESOLVED_AT_ONCE])
                self._publish(draft, payload=unresolved[_RESOLVED_AT_ONCE:])

    def remove(
        self, container: str, captures: Iterable[tuple[str, Capture]], *, payloads: Sequence[str] = ()
    ) -> int:
        with self._writing(), self._draft() as (draft, searcher):
            addresses = addresses_of(searcher, self._of_kind("container", container))
            if not addresses:
                return 0
            removed = Removing(self._make, searcher, draft).captures(captures, frozenset(payloads))
            draft.bury(addresses)
            self._publish(draft)
        return removed

    def anchor(self, anchors: Iterable[tuple[str, str, str]], engine: Engine) -> int:
        with self._scratch() as folder:
            file = folder / "anchors"
            with file.open("w", encoding="ascii") as lines:
                for key, external, internal in anchors:
                    page_files.write_line(lines, key, external, internal)
            helpers = None if file.stat().st_size < _SMALL_ANCHORS_BYTES else engine
            workers = helpers.workers if helpers else 1
            jobs = (
                AnchorJob(
                    index=self._folder,
                    folder=folder / f"part-{part}",
                    file=file,
                    part=part,
                    parts=workers,
                    memory_bytes=self._memory_bytes // workers,
                )
                for part in range(workers)
            )
            with self._writing():
                built = _built(tantivy_part.run_anchors, jobs, helpers)
                changed = sum(part.pages for part in built)
                if changed:
                    tantivy_commit.publish(self._folder, [part.change for part in built])
        return changed

    def clear(self) -> None:
        with self._writing():
            segments = tantivy_commit.read(self._folder).segments
            tantivy_commit.publish(self._folder, [], without={segment.id for segment in segments})

    def compact(self, engine: Engine, *, most_dead: float = 0.0) -> None:
        """Compact the index, and join small segments. Returns when nothing is left to do."""
        if self._compaction is not None:
            self._compaction.join()
        self._compact(engine, most_dead)

    def _compact_meanwhile(self, engine: Engine) -> None:
        """Start to join small segments in the background, if that is due and not already running."""
        is_running = self._compaction is not None and self._compaction.is_alive()
        if is_running or not tantivy_merge.due(tantivy_commit.read(self._folder), 1.0):
            return
        self._compaction = threading.Thread(target=self._compact, args=(engine, 1.0), daemon=True)
        self._compaction.start()

    def _compact(self, engine: Engine, most_dead: float) -> None:
        with (
            contextlib.suppress(Conflict),  # another process is compacting
            durable.locked(self._folder / "compacting.lock", busy="The text index is being compacted."),
        ):
            while groups := tantivy_merge.due(tantivy_commit.read(self._folder), most_dead):
                if not any(self._merge(engine, group) for group in groups):
                    return

    def _merge(self, engine: Engine, segments: Sequence[Segment]) -> bool:
        """Replace some segments by one; return whether that was possible."""
        with self._scratch() as folder:
            job = tantivy_merge.start(self._folder, folder, segments)
            if job is None:
                return False
            (done,) = engine.map(tantivy_merge.run, [job])
            if done.result is None:
                # The index is whole without it, and the next update tries again.
                _log.warning("compaction of the text index failed", extra={"error": done.error})
                return False
            with self._writing():
                return tantivy_merge.finish(self._folder, job, done.result)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the lock of writers: one process writes at a time, others wait for it."""
        with durable.locked(self._folder / _LOCK):
            self._resolve()
            yield

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A folder on the disk of the index for drafts; those left by a crash are removed first."""
        with durable.scratch_folder(_DRAFTS, self._folder) as folder:
            yield folder

    @contextlib.contextmanager
    def _draft(self) -> Iterator[tuple[Draft, tantivy.Searcher]]:
        """A draft, and the searcher whose documents it may replace; only inside `_writing`."""
        commit = tantivy_commit.read(self._folder)
        with (
            self._scratch() as folder,
            drafted(self._schema, commit, folder / "draft", memory_bytes=self._memory_bytes) as draft,
        ):
            yield draft, self._searcher()

    def _publish(self, draft: Draft, *, payload: Sequence[str] = ()) -> None:
        tantivy_commit.publish(self._folder, [draft.finish()], payload=payload)

    # --- reading ---

    def containers(self) -> frozenset[str]:
        searcher = self._searcher()
        return frozenset(
            searcher.doc(address)["name"][0]
            for address in addresses_of(searcher, self._make.term("kind", "container"))
        )

    def having(self, containers: Iterable[str]) -> frozenset[str]:
        searcher = self._searcher()
        return frozenset(name for name in containers if count(searcher, self._of_kind("container", name)))

    def total(self) -> int:
        return count(self._searcher(), self._make.term("kind", "state"))

    def dead(self) -> float:
        segments = tantivy_commit.read(self._folder).segments
        documents = sum(segment.documents for segment in segments)
        return sum(segment.dead for segment in segments) / documents if documents else 0.0

    def words(self, prefix: str, *, limit: int) -> Sequence[tuple[str, int]]:
        query_budget.check()
        return self._searcher().terms_with_prefix("text", folded(prefix), limit=limit)

    def find(self, query: TextQuery) -> Hits:
        return TantivySearch(self._make, self._searcher(), query).hits()

    def scan(self, query: TextQuery) -> Iterator[State]:
        return TantivySearch(self._make, self._searcher(), query).states()

    def close(self) -> None:
        """Do nothing: nothing is held open between calls."""

    def _searcher(self) -> tantivy.Searcher:
        """A searcher on the last commit. The commit's file is small; reading it takes a tenth of the time of
        reopening all segments.
        """
        commit = (self._folder / META).read_bytes()
        if commit != self._commit:
            self._index.reload()
            self._commit = commit
        return self._index.searcher()

    def _of_kind(self, kind: str, name: str) -> Query:
        return Query.boolean_query(
            [(Occur.Must, self._make.term("kind", kind)), (Occur.Must, self._make.term("name", name))]
        )


def _no_formats(digests: Iterable[str]) -> Mapping[str, str]:
    return {}


def _built(
    build: Callable[[Item], BuiltPart], jobs: Iterable[Item], engine: Engine | None
) -> list[BuiltPart]:
    """The parts in their order, whichever is ready first: it decides the order of equally good hits."""
    if engine is None:
        return [build(job) for job in jobs]
    built = []
    for done in engine.map(build, jobs):
        if done.result is None:
            raise WebdepotError(f"The text of pages could not be indexed: {done.error}")
        built.append(done.result)
    return sorted(built, key=lambda result: result.part)
