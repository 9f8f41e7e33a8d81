"""`TantivyTextIndex`: words and time, embedded. The index is a folder that can be deleted and rebuilt.

Adding a container:
1. its pages are sorted by address and time (on disk when there are many: memory is bounded by
   `memory_bytes`);
2. page by page, the runs around the new captures are read, joined with the new ones and written again
   (`states.py`); a page's older history is not touched, so the cost of a harvest is proportional to its size;
3. one commit makes all of it visible together with the container's name. A process that is killed before that
   leaves the index unchanged.

A revisit whose original is in another container takes its words from any state with that payload digest. If
none is known yet, it waits in the index and is resolved when a page with that digest is added.

Searching is in `tantivy_find.py`. Readers see the last commit.
"""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import tantivy
from tantivy import Occur, Query

from webdepot import durable, query_budget
from webdepot.errors import Conflict
from webdepot.index.sqlite_file import REBUILD
from webdepot.index.text import tantivy_schema
from webdepot.index.text.tantivy_add import Adding, addresses_of, count, fields_again, in_order
from webdepot.index.text.tantivy_find import TantivySearch, iter_in_pieces
from webdepot.index.text.tantivy_query import QueryMaker
from webdepot.index.text.tantivy_remove import Removing
from webdepot.index.text.words import folded
from webdepot.model import Capture
from webdepot.ports import Hits, PageText, State, TextQuery

_BLOCK_BYTES = 65_536
"""The window of LZ4. Texts take a fifth less space than in Tantivy's 16 kB blocks, and reading one takes 50
microseconds more.
"""
_SORTING = "sorting-"
"""Folders in which pages are sorted; the next writer removes those that a crash left."""


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
        for name, analyser in tantivy_schema.analysers().items():
            self._index.register_tokenizer(name, analyser)
        self._index.config_reader("manual")
        self._make = QueryMaker(self._schema)
        self._commit = b""

    def _open(self) -> tantivy.Index:
        try:
            return self._with_larger_blocks(tantivy.Index(self._schema, path=str(self._folder)))
        except (ValueError, OSError) as error:
            raise Conflict(
                f"The index of words {self._folder} was made by another version or is damaged ({error}). "
                f"{REBUILD}"
            ) from error

    def _with_larger_blocks(self, index: tantivy.Index) -> tantivy.Index:
        """Set the block size of a new index. Tantivy keeps it with the index, but the Python binding has no
        option for it.
        """
        path = self._folder / "meta.json"
        meta = json.loads(path.read_bytes())
        settings = meta["index_settings"]
        if meta["segments"] or settings.get("docstore_blocksize") == _BLOCK_BYTES:
            return index
        meta["index_settings"] = {**settings, "docstore_blocksize": _BLOCK_BYTES}
        durable.write_whole(path, json.dumps(meta).encode())
        return tantivy.Index(self._schema, path=str(self._folder))

    # --- writing ---

    def add(self, container: str, pages: Iterable[PageText]) -> int:
        with self._writer() as writer:
            searcher = self._searcher()
            if count(searcher, self._of_kind("container", container)):
                return 0
            adding = Adding(self._schema, self._make, searcher, writer)
            with tempfile.TemporaryDirectory(prefix=_SORTING, dir=self._folder) as folder:
                arriving = (page for new in pages for page in adding.with_waiting(new))
                for key, group in groupby(
                    in_order(arriving, Path(folder), self._memory_bytes), key=lambda page: page.key
                ):
                    adding.page(key, list(group))
            adding.document({"kind": "container", "name": container})
            self._store(writer)
        return adding.added

    def remove(
        self, container: str, captures: Iterable[tuple[str, Capture]], *, payloads: Sequence[str] = ()
    ) -> int:
        with self._writer() as writer:
            searcher = self._searcher()
            if not count(searcher, self._of_kind("container", container)):
                return 0
            removing = Removing(self._schema, self._make, searcher, writer)
            removed = removing.captures(captures, frozenset(payloads))
            writer.delete_documents_by_query(self._of_kind("container", container))
            self._store(writer)
        return removed

    def anchor(self, anchors: Iterable[tuple[str, str, str]]) -> int:
        with self._writer() as writer:
            adding = Adding(self._schema, self._make, self._searcher(), writer)
            changed = sum(adding.anchor(key, (external, internal)) for key, external, internal in anchors)
            self._store(writer)
        return changed

    def clear(self) -> None:
        with self._writer() as writer:
            writer.delete_all_documents()
            self._store(writer)

    def compact(self) -> None:
        with self._writer() as writer:
            searcher = self._searcher()
            # The commit that shows the new segments also drops the old ones: readers always see everything.
            writer.delete_all_documents()
            for kind in ("container", "waiting"):
                for address in addresses_of(searcher, self._make.term("kind", kind)):
                    stored = searcher.doc(address).to_dict()
                    fields = {"kind": kind, "name": stored["name"][0], **_waiting(stored)}
                    writer.add_document(tantivy.Document.from_dict(fields, self._schema))
            states = [self._make.term("kind", kind) for kind in ("state", "gone")]
            any_state = Query.boolean_query([(Occur.Should, kind) for kind in states])
            for address in iter_in_pieces(searcher, self._make, any_state):
                fields = fields_again(searcher.doc(address).to_dict())
                writer.add_document(tantivy.Document.from_dict(fields, self._schema))
            self._store(writer)
            writer.garbage_collect_files()

    def _store(self, writer: tantivy.IndexWriter) -> None:
        """Commit. Tantivy syncs its files, but not the folder after it has renamed the last of them."""
        writer.commit()
        durable.sync_folder(self._folder)

    @contextlib.contextmanager
    def _writer(self) -> Iterator[tantivy.IndexWriter]:
        """Tantivy refuses a second writer; our own lock makes it wait instead."""
        with durable.locked(self._folder / "writing.lock"):
            for left_by_a_crash in self._folder.glob(f"{_SORTING}*"):
                shutil.rmtree(left_by_a_crash, ignore_errors=True)
            writer = self._index.writer(self._memory_bytes, 1)
            try:
                yield writer
            except BaseException:
                writer.rollback()
                raise
            finally:
                # Also ends the writer: a traceback may keep references to it alive, and with them Tantivy's
                # own lock.
                writer.wait_merging_threads()

    # --- reading ---

    def containers(self) -> frozenset[str]:
        searcher = self._searcher()
        return frozenset(
            searcher.doc(address)["name"][0]
            for address in addresses_of(searcher, self._make.term("kind", "container"))
        )

    def total(self) -> int:
        return count(self._searcher(), self._make.term("kind", "state"))

    def dead(self) -> float:
        segments = json.loads((self._folder / "meta.json").read_bytes())["segments"]
        documents = sum(segment["max_doc"] for segment in segments)
        deleted = sum((segment.get("deletes") or {}).get("num_deleted_docs", 0) for segment in segments)
        return deleted / documents if documents else 0.0

    def words(self, prefix: str, *, limit: int) -> Sequence[tuple[str, int]]:
        query_budget.check()
        return self._searcher().terms_with_prefix("text", folded(prefix), limit=limit)

    def find(self, query: TextQuery) -> Hits:
        return TantivySearch(self._make, self._searcher(), query).hits()

    def scan(self, query: TextQuery) -> Iterator[State]:
        return TantivySearch(self._make, self._searcher(), query).states()

    def close(self) -> None:
        """Nothing is held open between calls."""

    def _searcher(self) -> tantivy.Searcher:
        """A searcher on the last commit. The commit's file is small; reading it takes a tenth of the time of
        reopening all segments.
        """
        commit = (self._folder / "meta.json").read_bytes()
        if commit != self._commit:
            self._index.reload()
            self._commit = commit
        return self._index.searcher()

    def _of_kind(self, kind: str, name: str) -> Query:
        return Query.boolean_query(
            [(Occur.Must, self._make.term("kind", kind)), (Occur.Must, self._make.term("name", name))]
        )


def _waiting(document: dict[str, list[Any]]) -> dict[str, Any]:
    return {"url": bytes(document["url"][0])} if "url" in document else {}
