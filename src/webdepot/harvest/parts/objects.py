"""The files of a part in the working place, so that another machine can continue it.

    harvests/ID/warc/NAME                          a sealed container
    harvests/ID/parts/N/CCCCCC-G.journal           changes of the frontier up to checkpoint C (`journal`)
    harvests/ID/parts/N/CCCCCC-G.crawl.log         what was written to the log since checkpoint C - 1
    harvests/ID/parts/N/CCCCCC-G.crawl.jsonl
    harvests/ID/parts/N/segments/NAME/CCCCCC-G     the same of a container that is not sealed yet
    harvests/ID/parts/N/whole/CCCCCC-G/crawl.log   the whole log, if the part was given back at checkpoint C
    harvests/ID/parts/N/whole/CCCCCC-G/crawl.jsonl

G is the generation that made the checkpoint (`part_rows`). Objects of a generation that never made that
checkpoint valid are not read by anyone. A gzip file is a sequence of members, so the segments of a container,
one after the other, are the container.
"""

import io
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from webdepot import durable
from webdepot.container import recovery
from webdepot.container.writer import OPEN_SUFFIX
from webdepot.errors import CorruptData, NotFound
from webdepot.harvest import frontier
from webdepot.harvest.parts.harvest_objects import CONTAINERS, LOGS, Spans, root_of, whole_logs
from webdepot.ports.object_store import ObjectStore

FRONTIER = "frontier"
"""Folder below the folder of a part on a machine that works on it, as `CONTAINERS`."""


class PartObjects:
    """The objects of one part."""

    def __init__(self, store: ObjectStore, harvest: str, part: int) -> None:
        self._store = store
        self._containers = f"{root_of(harvest)}{CONTAINERS}/"
        self._own = f"{root_of(harvest)}parts/{part}/"

    def put_checkpoint(
        self,
        number: int,
        generation: int,
        journal: bytes,
        folder: Path,
        before: Mapping[str, int],
        marks: Mapping[str, int],
    ) -> None:
        """Store everything that a checkpoint adds to the one `before`."""
        name = _name(number, generation)
        self._store.put(f"{self._own}{name}.journal", io.BytesIO(journal), overwrite=True)
        for file, size_bytes in marks.items():
            first = before.get(file, 0)
            if size_bytes > first:
                key = f"{name}.{file}" if file in LOGS else f"segments/{file}/{name}"
                path = folder / file if file in LOGS else folder / CONTAINERS / file
                with _open_range(path, first, size_bytes - first) as source:
                    self._store.put(self._own + key, source, overwrite=True)

    def put_container(self, path: Path) -> None:
        """Store a sealed container. Its bytes are its segments one after the other, so they are the same on
        any machine.
        """
        if self._store.size(self._containers + path.name) != path.stat().st_size:
            with path.open("rb") as source:
                self._store.put(self._containers + path.name, source, overwrite=True)

    def delete_segments(self, names: Iterable[str]) -> None:
        """Remove the segments of containers that are sealed and stored."""
        for name in names:
            for key in list(self._store.keys(f"{self._own}segments/{name}/")):
                self._store.delete(key)

    def put_logs(self, folder: Path, number: int, generation: int) -> None:
        """Store the whole logs as they are at a checkpoint, which that generation made."""
        for name in reversed(LOGS):  # crawl.log is stored last: if it exists, both do
            with (folder / name).open("rb") as source:
                self._store.put(f"{self._own}{whole_logs(number, generation)}{name}", source, overwrite=True)

    def complete(self, folder: Path, spans: Spans) -> None:
        """Seal the containers of a part at its last checkpoint, and store its whole logs, if its last
        harvester died before it did so. The folder is used for that.
        """
        if not spans:
            return
        generation, number = spans[-1]
        if self._store.size(f"{self._own}{whole_logs(number, generation)}{LOGS[0]}") is not None:
            return
        self.restore(folder, spans)
        with closing(frontier.LmdbFrontier(folder / FRONTIER)) as restored:
            marks = restored.marks()
        recovery.recover(folder / CONTAINERS, marks)
        for path in sorted((folder / CONTAINERS).glob("*.warc.gz")):
            self.put_container(path)
        for name in LOGS:
            (folder / name).touch()  # it may be empty until then
        self.put_logs(folder, number, generation)

    def restore(self, folder: Path, spans: Spans) -> None:
        """Build the folder of a part as it was at its last checkpoint: frontier, logs, open containers."""
        shutil.rmtree(folder, ignore_errors=True)
        durable.make_folders(folder)
        frontier.restore(folder / FRONTIER, self._iter_journals(spans))
        with closing(frontier.LmdbFrontier(folder / FRONTIER)) as restored:
            marks = restored.marks()
        for name, size_bytes in marks.items():
            if name in LOGS:
                keys = [f"{self._own}{_name(*each)}.{name}" for each in _iter_checkpoints(spans)]
                self._join(keys, folder / name, size_bytes)
            elif name.endswith(OPEN_SUFFIX):
                segments = f"{self._own}segments/{name}/"
                keys = [f"{segments}{_name(*each)}" for each in _iter_checkpoints(spans)]
                self._join(keys, folder / CONTAINERS / name, size_bytes)

    def _iter_journals(self, spans: Spans) -> Iterator[bytes]:
        for each in _iter_checkpoints(spans):
            with closing(self._store.open(f"{self._own}{_name(*each)}.journal")) as source:
                yield source.read()

    def _join(self, keys: Sequence[str], path: Path, size_bytes: int) -> None:
        """Write those of the objects that exist one after the other."""
        durable.make_folders(path.parent)
        with durable.whole_file(path) as sink:
            for key in keys:
                try:
                    source = self._store.open(key)
                except NotFound:  # this file did not grow then
                    continue
                with closing(source):
                    shutil.copyfileobj(source, sink)
        if path.stat().st_size != size_bytes:
            raise CorruptData(
                f"The working place has {path.stat().st_size} bytes of {path.name}, but {size_bytes} were "
                f"stored there ({self._own}). Restore the working place from its backup.",
                where=path.name,
            )


def _name(number: int, generation: int) -> str:
    return f"{number:06d}-{generation}"


def _iter_checkpoints(spans: Spans) -> Iterator[tuple[int, int]]:
    """Number and generation of each checkpoint that was made valid."""
    first = 1
    for generation, last in spans:
        yield from ((number, generation) for number in range(first, last + 1))
        first = last + 1


def _open_range(path: Path, first: int, length: int) -> io.BufferedReader:
    return io.BufferedReader(_FileRange(path, first, length))


class _FileRange(io.RawIOBase):
    """A range of a file that may grow meanwhile."""

    def __init__(self, path: Path, first: int, length: int) -> None:
        self._file = path.open("rb", buffering=0)
        self._first, self._length, self._at = first, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = min(max(start + offset, 0), self._length)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._file.seek(self._first + self._at)
        read = self._file.readinto(memoryview(buffer)[: self._length - self._at]) or 0
        self._at += read
        return read

    def close(self) -> None:
        self._file.close()
        super().close()
