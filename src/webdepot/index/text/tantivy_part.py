"""Build one part of what is added to the Tantivy index, in a worker process.

Pages are divided by their key, so that all new captures of a page are in one part and parts do not depend on
each other. A part sorts its pages by key and time, looks up the states of these pages in the index, a few
hundred pages at a time, and writes the changes to a draft. There are more parts if there are more pages, so
the memory of a process does not depend on how many there are.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from webdepot.index import page_files
from webdepot.index.page_files import PageLine
from webdepot.index.text import tantivy_commit, tantivy_schema, worker_memory
from webdepot.index.text.tantivy_add import Adding
from webdepot.index.text.tantivy_commit import SegmentChange
from webdepot.index.text.tantivy_draft import Draft, drafted, open_index
from webdepot.index.text.tantivy_query import QueryMaker
from webdepot.ports.search import PageFile

_PAGES_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PartJob:
    """Part `part` of `parts` of the pages in `files`. The index must not change before the end."""

    index: Path
    folder: Path
    """New; for the draft."""
    files: Sequence[PageFile]
    formats: Mapping[str, str]
    """PRONOM identifiers by digest."""
    part: int
    parts: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorJob:
    """Part `part` of `parts` of the link texts in `file`. The index must not change before the end."""

    index: Path
    folder: Path
    """New; for the draft."""
    file: Path
    """A line for each page: key, text from other sites, text from the same site."""
    part: int
    parts: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPart:
    part: int
    change: SegmentChange
    pages: int
    """The number of captures added, or of pages changed."""
    unresolved: frozenset[str] = frozenset()
    """Digests for which revisits wait that may be resolved once all parts are published."""


def run(job: PartJob) -> BuiltPart:
    """Add the pages of a part."""
    with _draft(job) as (draft, adding):
        with ExitStack() as stack:
            streams = [stack.enter_context(page_files.opened(file.path)) for file in job.files]
            for lines in in_pieces(sorted_lines(job.files, job.part, job.parts)):
                pages = (page_files.page_at(streams[number], line) for number, line in lines)
                adding.pages(page_files.with_formats(pages, job.formats), [line.key for _, line in lines])
        if job.part == 0:
            for file in job.files:
                draft.add({"kind": "container", "name": file.container})
        change, unresolved = draft.finish(), frozenset(adding.unresolved)
        return BuiltPart(part=job.part, change=change, pages=adding.added, unresolved=unresolved)


def run_anchors(job: AnchorJob) -> BuiltPart:
    """Set the texts of links to pages."""
    with _draft(job) as (draft, adding):
        lines = page_files.read_part(job.file, job.part, job.parts)
        changed = sum(adding.anchor(key, (external, internal)) for key, external, internal in lines)
        return BuiltPart(part=job.part, change=draft.finish(), pages=changed)


@contextmanager
def _draft(job: PartJob | AnchorJob) -> Iterator[tuple[Draft, Adding]]:
    schema = tantivy_schema.make()
    index = open_index(schema, job.index)
    index.reload()
    commit = tantivy_commit.read(job.index)
    with drafted(schema, commit, job.folder, memory_bytes=job.memory_bytes) as draft:
        yield draft, Adding(QueryMaker(schema), index.searcher(), draft)
    worker_memory.return_free_memory()


def sorted_lines(files: Sequence[PageFile], part: int, parts: int) -> list[tuple[int, PageLine]]:
    """Pages of a part by key and time, each with the number of its file."""
    lines = [
        (line.key, line.timestamp, number, line)
        for number, file in enumerate(files)
        for line in page_files.lines_in(file.path, part, parts)
    ]
    lines.sort(key=itemgetter(0, 1))
    return [(number, line) for _, _, number, line in lines]


def in_pieces(lines: Sequence[tuple[int, PageLine]]) -> Iterator[Sequence[tuple[int, PageLine]]]:
    """Some pages at a time; those with the same key stay together."""
    start = 0
    while start < len(lines):
        end = min(start + _PAGES_AT_ONCE, len(lines))
        while end < len(lines) and lines[end][1].key == lines[end - 1][1].key:
            end += 1
        yield lines[start:end]
        start = end
