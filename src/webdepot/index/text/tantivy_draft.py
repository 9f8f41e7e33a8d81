"""A draft: documents that will be added to the Tantivy index, and those of the index that they replace.

New documents become segments in a folder of the draft's own, so that several processes can each write one at
the same time. Nothing changes in the index before `tantivy_commit.publish`.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import tantivy

from webdepot.index.text import tantivy_commit
from webdepot.index.text.tantivy_commit import Commit, SegmentChange
from webdepot.index.word_analysis import analysers

LEAST_MEMORY_BYTES = 16 << 20
"""Tantivy refuses less."""


class Draft:
    """Documents to add and to replace, written by one thread. `commit` is the commit of the searcher whose
    addresses are passed to `bury`.
    """

    def __init__(
        self, schema: tantivy.Schema, commit: Commit, folder: Path, writer: tantivy.IndexWriter
    ) -> None:
        self._schema = schema
        self._commit = commit
        self._folder = folder
        self._writer = writer
        self._dead: dict[str, set[int]] = {}

    def add(self, fields: dict[str, Any]) -> None:
        self._writer.add_document(tantivy.Document.from_dict(fields, self._schema))

    def bury(self, addresses: Iterable[Any]) -> None:
        """Mark documents of the index as replaced or removed by this draft."""
        for address in addresses:
            segment = self._commit.segments[address.segment_ord]
            self._dead.setdefault(segment.id, set()).add(address.doc)

    def finish(self) -> SegmentChange:
        self._writer.commit()
        self._writer.wait_merging_threads()
        segments = tantivy_commit.read(self._folder).segments
        return SegmentChange(folder=self._folder, segments=segments, dead=self._dead)


@contextmanager
def drafted(
    schema: tantivy.Schema, commit: Commit, folder: Path, *, memory_bytes: int = LEAST_MEMORY_BYTES
) -> Iterator[Draft]:
    """A draft in a new folder; the block ends with `finish`, or the draft is lost."""
    folder.mkdir()
    empty = Commit(segments=(), opstamp=0, payload=(), head=commit.head)
    tantivy_commit.write(folder, empty)
    writer = open_index(schema, folder).writer(max(memory_bytes, LEAST_MEMORY_BYTES), 1)
    try:
        yield Draft(schema, commit, folder, writer)
    finally:
        # Ends the writer also after an error: a traceback may keep references to it alive.
        with suppress(RuntimeError, ValueError):  # `finish` has ended it
            writer.rollback()
            writer.wait_merging_threads()


def open_index(schema: tantivy.Schema, folder: Path) -> tantivy.Index:
    index = tantivy.Index(schema, path=str(folder))
    for name, analyser in analysers().items():
        index.register_tokenizer(name, analyser)
    index.config_reader("manual")
    return index
