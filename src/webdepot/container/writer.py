"""Write containers: WARC 1.1, one gzip member for each record, safe against a crash at any moment.

    PREFIX-00000.warc.gz.open     being written: a warcinfo, then groups of records
    PREFIX-00000.warc.gz          sealed: never changed again

1. `write` adds a group of records to one file, all or nothing: if the disk is full, the file is cut back to
   where the group began.
2. When the file has reached its size, the next group begins a new one. The full file stays `.open` for now.
3. `sync` makes everything durable and returns the size of each open file. The caller stores these marks with
   its own state (the frontier). A full file that an earlier `sync` had covered is sealed: renamed, announced.
   So a sealed file never contains a record that its harvest could forget, and after a crash
   `recovery.recover` cuts open files back to their marks.
4. `close` seals the remaining files.
"""

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdepot.container import new_records
from webdepot.container.members import IN_MEMORY_BYTES, gzip_member, packed
from webdepot.container.new_records import NewRecord
from webdepot.container.streams import PIECE_BYTES
from webdepot.digest import sha1_label
from webdepot.durable import make_folders, sync_folder
from webdepot.errors import NoSpace
from webdepot.model import Location
from webdepot.times import Clock

OPEN_SUFFIX = ".open"
_END = b"\r\n\r\n"
_MOST_HELD_BYTES = 128 << 10
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A container that is complete, durable and never changed again."""

    path: Path
    name: str
    size_bytes: int
    sha256: str
    """Hexadecimal."""
    records: int
    """Including its warcinfo."""


def iter_member(record: NewRecord) -> Iterator[bytes]:
    """The gzip member of a record, in pieces; the body is read from its beginning, twice if it is large."""
    if not is_large(record):
        yield packed(_plain_record(record))
    else:
        assert record.body is not None  # noqa: S101 - a large record has a body
        hasher = hashlib.sha1(usedforsecurity=False)
        for piece in _iter_block(record):
            hasher.update(piece)
        header = new_records.header(record, sha1_label(hasher.digest()))
        yield from gzip_member(_chained(header, record))


def is_large(record: NewRecord) -> bool:
    """Whether a record is too large for memory and is written in pieces."""
    return record.body_bytes > 0 and len(record.head) + record.body_bytes > IN_MEMORY_BYTES


def _plain_record(record: NewRecord) -> bytes:
    """A small record before compression."""
    head = record.head
    if record.body is None or record.body_bytes == 0:
        header = new_records.header(record, sha1_label(hashlib.sha1(head, usedforsecurity=False).digest()))
        return b"".join((header, head, _END))
    record.body.seek(0)
    body = record.body.read(record.body_bytes)
    if len(body) != record.body_bytes:
        raise _short(record, len(body))
    hasher = hashlib.sha1(head, usedforsecurity=False)
    hasher.update(body)
    return b"".join((new_records.header(record, sha1_label(hasher.digest())), head, body, _END))


def _chained(header: bytes, record: NewRecord) -> Iterator[bytes]:
    yield header
    yield from _iter_block(record)
    yield _END


def _iter_block(record: NewRecord) -> Iterator[bytes]:
    assert record.body is not None  # noqa: S101 - only large records come here
    yield record.head
    record.body.seek(0)
    left = record.body_bytes
    while left > 0:
        piece = record.body.read(min(left, PIECE_BYTES))
        if not piece:
            raise _short(record, record.body_bytes - left)
        yield piece
        left -= len(piece)


def _short(record: NewRecord, read_bytes: int) -> ValueError:
    return ValueError(f"The body of {record.url} ends after {read_bytes} of {record.body_bytes} bytes")


def seal(path: Path, *, sha256: str, size_bytes: int, count: int) -> Sealed:
    """Give a complete, synced `.open` file its final name."""
    sealed = path.with_name(path.name.removesuffix(OPEN_SUFFIX))
    path.rename(sealed)
    sync_folder(path.parent)
    return Sealed(path=sealed, name=sealed.name, size_bytes=size_bytes, sha256=sha256, records=count)


class ContainerWriter:
    """Writes records into files of one folder. One process, one thread."""

    def __init__(
        self,
        folder: Path,
        *,
        prefix: str,
        size_bytes: int,
        info: Mapping[str, str],
        clock: Clock,
        on_sealed: Callable[[Sealed], None],
    ) -> None:
        self._folder = folder
        self._prefix = prefix
        self._size_bytes = size_bytes
        self._info = dict(info)
        self._clock = clock
        self._on_sealed = on_sealed
        self._current: _OpenFile | None = None
        self._full: list[_OpenFile] = []

    def write(self, group: Sequence[NewRecord]) -> list[Location]:
        """Write records after each other into one file; if the disk is full, NoSpace and none of them is
        written.
        """
        if not group:
            return []
        if self._current is not None and self._current.size_bytes >= self._size_bytes:
            self._current.flush()
            self._full.append(self._current)
            self._current = None
        if self._current is None:
            self._current = self._begin()
        return self._current.write(group)

    def append(self, group: Sequence[NewRecord]) -> None:
        """As `write`, if the locations are not needed: small records are compressed together with later ones,
        at the latest by `sync`.
        """
        if (
            self._current is None
            or self._current.size_bytes >= self._size_bytes
            or any(is_large(record) for record in group)
        ):
            self.write(group)
        else:
            self._current.append(group)

    def sync(self) -> Mapping[str, int]:
        """Make all written records durable. Returns name and size of each open file. Files covered by an
        earlier sync are sealed first.
        """
        waiting, self._full = self._full, []
        for file in waiting:
            if file.synced_bytes == file.size_bytes:
                self._on_sealed(file.seal())
            else:
                self._full.append(file)
        files = [*self._full, *([self._current] if self._current else [])]
        is_new = any(file.synced_bytes == 0 for file in files)
        for file in files:
            file.sync()
        if is_new:
            sync_folder(self._folder)
        return {file.path.name: file.size_bytes for file in files}

    def close(self) -> None:
        """Seal all files; a file with only its warcinfo is removed."""
        files = [*self._full, *([self._current] if self._current else [])]
        self._full, self._current = [], None
        for file in files:
            file.sync()
            if file.count > 1:
                self._on_sealed(file.seal())
            else:
                file.remove()

    def _begin(self) -> "_OpenFile":
        make_folders(self._folder)
        number = _next_number(self._folder, self._prefix)
        while True:
            name = f"{self._prefix}-{number:05d}.warc.gz"
            try:
                file = _OpenFile(self._folder / (name + OPEN_SUFFIX))
            except FileExistsError:
                number += 1
                continue
            try:
                file.write([new_records.warcinfo(name, self._info, self._clock())])
            except BaseException:
                file.remove()
                raise
            return file


def _next_number(folder: Path, prefix: str) -> int:
    named = re.compile(rf"{re.escape(prefix)}-([0-9]+)\.warc\.gz(?:\.open)?\Z")
    numbers = [int(match[1]) for path in folder.iterdir() if (match := named.match(path.name))]
    return max(numbers, default=-1) + 1


class _OpenFile:
    """One `.open` file. `write` is not buffered: it returns a location only after the disk took the bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = path.name.removesuffix(OPEN_SUFFIX)
        self.size_bytes = 0
        self.synced_bytes = 0
        self.count = 0
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._hasher = hashlib.sha256()
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if explained := no_space(error, path):
                raise explained from error
            raise

    def write(self, group: Sequence[NewRecord]) -> list[Location]:
        self.flush()
        start, hasher, ends = self.size_bytes, self._hasher.copy(), []
        try:
            held = bytearray()
            for record in group:
                for piece in iter_member(record):
                    held += piece
                    if len(held) >= 1 << 20:
                        self._append(held)
                        held = bytearray()
                ends.append(self.size_bytes + len(held))
            self._append(held)
        except BaseException as error:
            os.ftruncate(self._descriptor, start)
            os.lseek(self._descriptor, start, os.SEEK_SET)
            self.size_bytes, self._hasher = start, hasher
            if isinstance(error, OSError) and (explained := no_space(error, self.path)):
                raise explained from error
            raise
        self.count += len(group)
        return [
            Location(container=self._name, offset=begin, length=end - begin)
            for begin, end in zip([start, *ends], ends)
        ]

    def append(self, group: Sequence[NewRecord]) -> None:
        """Hold small records for the next `flush`."""
        plain = [_plain_record(record) for record in group]
        self._held += plain
        self._held_bytes += sum(map(len, plain))
        self.count += len(group)
        if self._held_bytes >= _MOST_HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Compress the held records and write them together. Compressing each at once would displace from the
        processor's cache what the next record needs: a tenth of the time of a harvest.
        """
        if not self._held:
            return
        data = b"".join(map(packed, self._held))
        self._held, self._held_bytes = [], 0
        start = self.size_bytes
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):  # the disk is nearly full
                written += os.write(self._descriptor, data[written:])
        except BaseException as error:
            os.ftruncate(self._descriptor, start)
            os.lseek(self._descriptor, start, os.SEEK_SET)
            if isinstance(error, OSError) and (explained := no_space(error, self.path)):
                raise explained from error
            raise
        self._hasher.update(data)
        self.size_bytes = start + len(data)

    def sync(self) -> None:
        self.flush()
        if self.synced_bytes != self.size_bytes:
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                if explained := no_space(error, self.path):
                    raise explained from error
                raise
            self.synced_bytes = self.size_bytes

    def seal(self) -> Sealed:
        """Close and rename; everything is synced already."""
        os.close(self._descriptor)
        return seal(self.path, sha256=self._hasher.hexdigest(), size_bytes=self.size_bytes, count=self.count)

    def remove(self) -> None:
        os.close(self._descriptor)
        self.path.unlink()

    def _append(self, data: bytearray) -> None:
        view = memoryview(data)
        while view:
            written = os.write(self._descriptor, view)
            self._hasher.update(view[:written])
            self.size_bytes += written
            view = view[written:]


def no_space(error: OSError, path: Path) -> NoSpace | None:
    """The error for a full or read-only disk; None if the error is another one."""
    if error.errno not in _NO_SPACE:
        return None
    return NoSpace(
        f"Cannot write {path}: {os.strerror(error.errno or 0)}. "
        "Everything written before is complete. Make room or choose another folder, then start it again."
    )
