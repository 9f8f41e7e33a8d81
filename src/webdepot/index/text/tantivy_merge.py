"""Compaction of the Tantivy index: many small segments become one, and segments full of replaced documents
are rewritten, in worker processes, while others read and write.

1. `start` gives the files of some segments to a folder of its own (links: nothing is copied).
2. `run`, in a worker, merges them into one segment there. Nobody waits for it.
3. `finish` puts the new segment into the index instead of the old ones. Documents that were replaced in the
   meantime are found in the new segment by name and marked as replaced there as well. Only this step needs
   the lock of writers, for some milliseconds.

One process compacts at a time.

Which segments belong together is decided as in Tantivy's `LogMergePolicy`, since the Python binding can merge
only by it: eight or more of a similar number of living documents. A doubled fan-in halves how often a
document is merged; segments beyond a limit are left alone, so no merge takes longer than some minutes.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tantivy
from tantivy import Occur, Query

from webdepot.index.text import tantivy_commit, tantivy_schema, worker_memory
from webdepot.index.text.tantivy_add import addresses_of, fields_again
from webdepot.index.text.tantivy_commit import Commit, Segment, SegmentChange
from webdepot.index.text.tantivy_draft import LEAST_MEMORY_BYTES, drafted, open_index
from webdepot.index.text.tantivy_find import iter_in_pieces
from webdepot.index.text.tantivy_query import QueryMaker

_BEFORE = "before"
_FAN_IN = 16
_TANTIVY_FAN_IN = 8
_SMALL = 10_000
"""Segments with fewer documents are all of the same level."""
_LEVEL = 0.75
"""Difference of the binary logarithms of sizes within a level."""
_LARGE = 250_000
"""Segments with more living documents are not merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeJob:
    folder: Path
    """Has the files of `segments` in a folder `before`."""
    segments: tuple[Segment, ...]


def due(commit: Commit, most_dead: float) -> list[tuple[Segment, ...]]:
    """Groups of segments to be replaced by one each."""
    groups = [level for level in _levels(commit.segments) if len(level) >= _FAN_IN]
    merged = {segment.id for group in groups for segment in group}
    return groups + [
        (segment,)
        for segment in commit.segments
        if segment.id not in merged and segment.dead > most_dead * segment.documents
    ]


def _levels(segments: Sequence[Segment]) -> Iterator[tuple[Segment, ...]]:
    level: list[Segment] = []
    top = math.inf
    for segment in sorted(segments, key=lambda one: -one.documents):
        if segment.living > _LARGE:
            continue
        size = math.log2(max(segment.living, _SMALL))
        if size < top - _LEVEL:
            yield tuple(level)
            level, top = [], size
        level.append(segment)
    yield tuple(level)


def start(index: Path, folder: Path, segments: Sequence[Segment]) -> MergeJob | None:
    """A job in a new folder; None if the segments are no longer in the index."""
    before = folder / _BEFORE
    before.mkdir()
    with tantivy_commit.held(index) as commit:
        ids = {segment.id for segment in segments}
        chosen = tuple(segment for segment in commit.segments if segment.id in ids)
        if len(chosen) < len(ids):
            return None
        tantivy_commit.link(chosen, index, before)
    tantivy_commit.write(before, replace(commit, segments=chosen, payload=()))
    return MergeJob(folder=folder, segments=chosen)


def run(job: MergeJob) -> SegmentChange:
    """Build the new segment, in a worker."""
    schema, commit = tantivy_schema.make(), tantivy_commit.read(job.folder / _BEFORE)
    make = _merged if len(job.segments) >= _TANTIVY_FAN_IN else _rewritten
    with worker_memory.mapped_files_released(job.folder):
        change = make(schema, commit, job)
    worker_memory.return_free_memory()
    return change


def _merged(schema: tantivy.Schema, commit: Commit, job: MergeJob) -> SegmentChange:
    """The segment into which Tantivy merges the segments."""
    folder = job.folder / "merged"
    folder.mkdir()
    tantivy_commit.link(job.segments, job.folder / _BEFORE, folder)
    tantivy_commit.write(folder, commit)
    writer = open_index(schema, folder).writer(LEAST_MEMORY_BYTES, 1)
    writer.commit()  # a commit makes Tantivy look for segments to merge
    writer.wait_merging_threads()
    segments = tantivy_commit.read(folder).segments
    if len(segments) >= len(job.segments):
        raise RuntimeError("Tantivy did not merge the segments")
    return SegmentChange(folder=folder, segments=segments)


def _rewritten(schema: tantivy.Schema, commit: Commit, job: MergeJob) -> SegmentChange:
    """A new segment with the living documents of the segments."""
    searcher, make = _searcher(schema, job.folder / _BEFORE), QueryMaker(schema)
    with drafted(schema, commit, job.folder / "draft", memory_bytes=4 * LEAST_MEMORY_BYTES) as draft:
        for kind in ("container", "waiting"):
            for address in addresses_of(searcher, make.term("kind", kind)):
                stored = searcher.doc(address).to_dict()
                page = {"url": bytes(stored["url"][0])} if kind == "waiting" else {}
                draft.add({"kind": kind, "name": stored["name"][0], **page})
        kinds = [(Occur.Should, make.term("kind", kind)) for kind in ("state", "gone")]
        for address in iter_in_pieces(searcher, make, Query.boolean_query(kinds)):
            draft.add(fields_again(searcher.doc(address).to_dict()))
        return draft.finish()


def finish(index: Path, job: MergeJob, change: SegmentChange) -> bool:
    """Put the new segment into the index, under the lock of writers; return whether that was possible."""
    now = {segment.id: segment for segment in tantivy_commit.read(index).segments}
    ids = [segment.id for segment in job.segments]
    if now.keys().isdisjoint(ids):
        return False
    schema = tantivy_schema.make()
    make, merged, dead = QueryMaker(schema), _searcher(schema, change.folder), dict[str, set[int]]()
    for query in _replaced_since(index, now, job, make, _searcher(schema, job.folder / _BEFORE)):
        for address in addresses_of(merged, query):
            dead.setdefault(change.segments[address.segment_ord].id, set()).add(address.doc)
    tantivy_commit.publish(index, [replace(change, dead=dead)], without=ids)
    return True


def _replaced_since(
    index: Path, now: Mapping[str, Segment], job: MergeJob, make: QueryMaker, before: tantivy.Searcher
) -> Iterator[Query]:
    """Queries for the documents that were replaced while the job ran. All documents of a run are replaced at
    the same time, and so are all revisits that wait for a payload.
    """
    for place, segment in enumerate(job.segments):
        if now.get(segment.id) == segment:
            continue
        dead = (
            tantivy_commit.dead_documents(index, now[segment.id])
            if segment.id in now
            else set(range(segment.documents))  # a segment without a living document has left the index
        )
        for number in sorted(dead - tantivy_commit.dead_documents(job.folder / _BEFORE, segment)):
            stored = before.doc(tantivy.DocAddress(place, number)).to_dict()
            if "key" in stored:
                page = tantivy_schema.page_number(stored["key"][0])
                yield make.term("run", tantivy_schema.run_name(page, stored["valid_from"][0]))
            else:
                kind = "waiting" if "url" in stored else "container"
                parts = [make.term("kind", kind), make.term("name", stored["name"][0])]
                yield Query.boolean_query([(Occur.Must, part) for part in parts])


def _searcher(schema: tantivy.Schema, folder: Path) -> tantivy.Searcher:
    index = open_index(schema, folder)
    index.reload()
    return index.searcher()
