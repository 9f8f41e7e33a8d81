"""A folder as object store: the embedded default of the depot.

Order of a put: write a file without a name (`O_TMPFILE`), fsync it, give it its name, fsync the folder. A
crash before it is named leaves nothing. Where the file system cannot do that (NFS, other kernels), the file
has a name starting with `.part-` until it is complete; no listing shows such names.

The name is given with `link`, which fails if the name exists, so two writers can never both create one key.
Keys are relative POSIX paths without `.`, `..`, empty steps or control characters. Symbolic links below the
root are refused, because OCFL forbids them and because they could lead out of the depot.
"""

import errno
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from webdepot import durable
from webdepot.depot.store.keys import UNFINISHED, steps_of
from webdepot.digest import CHUNK_BYTES
from webdepot.errors import Conflict, InputError, NoSpace, NotFound

_NO_SPACE = {
    errno.ENOSPC: "is full",
    errno.EDQUOT: "has used up its quota",
    errno.EFBIG: "does not accept files of that size",
}
_NOT_WRITABLE = {
    errno.EROFS: "is read-only",
    errno.EACCES: "cannot be written by this user",
    errno.EPERM: "cannot be written by this user",
}
_NO_TMPFILE = {errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL}


class FolderStore:
    """An `ObjectStore` in a folder. Any thread or process may use it at the same time."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, key: str, source: BinaryIO, *, overwrite: bool = False) -> int:
        path = self._path(key)
        if not overwrite and os.path.lexists(path):
            raise _exists(key)
        with _disk_errors(self.root, key):
            durable.make_folders(path.parent)
            self._refuse_links(path.parent, key)
            return _write(path, source, key, overwrite=overwrite)

    def open(self, key: str, *, offset: int = 0, length: int | None = None) -> BinaryIO:
        path = self._path(key)
        try:
            stream = path.open("rb")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise NotFound(
                f"The depot at {self.root} has no file {key}. Run: webdepot depot verify"
            ) from None
        stream.seek(offset)
        if length is None:
            return stream
        return cast(BinaryIO, io.BufferedReader(_Part(stream, length)))

    def size(self, key: str) -> int | None:
        path = self._path(key)
        return path.stat().st_size if path.is_file() else None

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Every key that starts with the prefix, folder by folder, sorted by name."""
        folder = prefix.rpartition("/")[0]
        start = self._path(folder) if folder else self.root
        return _walk(start, f"{folder}/" if folder else "", prefix)

    def delete(self, key: str) -> None:
        """Remove the key and the folders that are empty without it. A missing key is not an error."""
        path = self._path(key)
        with _disk_errors(self.root, key):
            try:
                path.unlink()
            except (FileNotFoundError, NotADirectoryError):
                return
            _sync_folder(path.parent)
            self._remove_empty(path.parent)

    def local_path(self, key: str) -> Path | None:
        return self._path(key)

    def _path(self, key: str) -> Path:
        return self.root.joinpath(*steps_of(key))

    def _refuse_links(self, folder: Path, key: str) -> None:
        if not folder.resolve().is_relative_to(self.root.resolve()):
            raise InputError(
                f"{key} is below a symbolic link that leads out of the depot {self.root}. Remove the link."
            )

    def _remove_empty(self, folder: Path) -> None:
        while folder != self.root and folder.is_relative_to(self.root):
            try:
                folder.rmdir()
            except OSError:  # not empty, or removed by another process
                return
            folder = folder.parent
            _sync_folder(folder)


class _Part(io.RawIOBase):
    """The next `length` bytes of a stream; closing it closes the stream."""

    def __init__(self, stream: BinaryIO, length: int) -> None:
        self._stream = stream
        self._left = length

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self._stream.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _write(path: Path, source: BinaryIO, key: str, *, overwrite: bool) -> int:
    """Copy, fsync, name: the file is complete before anyone can see it."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        descriptor, unfinished = _create(path.parent, folder)
        try:
            with os.fdopen(descriptor, "wb", buffering=0, closefd=False) as sink:
                written = _copy(source, sink)
            os.fsync(descriptor)
            _name(descriptor, unfinished, path.name, folder, key, overwrite=overwrite)
        finally:
            os.close(descriptor)
            if unfinished:
                with suppress(FileNotFoundError):
                    os.unlink(unfinished, dir_fd=folder)
        os.fsync(folder)
        return written
    finally:
        os.close(folder)


def _create(place: Path, folder: int) -> tuple[int, str]:
    """A new file to write to, and its temporary name (empty if it has none)."""
    tmpfile = getattr(os, "O_TMPFILE", 0)
    if tmpfile:
        try:
            return os.open(place, tmpfile | os.O_WRONLY, 0o644), ""
        except OSError as error:
            if error.errno not in _NO_TMPFILE:
                raise
    name = f"{UNFINISHED}{secrets.token_hex(8)}"
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder), name


def _name(descriptor: int, unfinished: str, name: str, folder: int, key: str, *, overwrite: bool) -> None:
    # With a descriptor for the destination folder, Python calls linkat() with AT_SYMLINK_FOLLOW, which a file
    # without a name needs.
    source = unfinished or f"/proc/self/fd/{descriptor}"
    source_folder = folder if unfinished else None
    if not overwrite:
        try:
            os.link(source, name, src_dir_fd=source_folder, dst_dir_fd=folder, follow_symlinks=True)
        except FileExistsError:
            raise _exists(key) from None
        return
    if not unfinished:
        unfinished = f"{UNFINISHED}{secrets.token_hex(8)}"
        os.link(source, unfinished, dst_dir_fd=folder, follow_symlinks=True)
    os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)


def _copy(source: BinaryIO, sink: io.RawIOBase) -> int:
    written = 0
    while chunk := source.read(CHUNK_BYTES):
        rest = memoryview(chunk)
        while rest:  # a raw write may be partial, for example when the disk is nearly full
            rest = rest[sink.write(rest) or 0 :]
        written += len(chunk)
    return written


def _sync_folder(folder: Path) -> None:
    with suppress(FileNotFoundError):  # another process may remove an empty folder at any time
        durable.sync_folder(folder)


def _walk(folder: Path, above: str, prefix: str) -> Iterator[str]:
    """Depth first, with one open folder at a time; folders that cannot contain the prefix are skipped."""
    try:
        with os.scandir(folder) as entries:
            names = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return
    for name, is_folder in names:
        key = above + name
        if is_folder and (key.startswith(prefix) or prefix.startswith(f"{key}/")):
            yield from _walk(folder / name, f"{key}/", prefix)
        elif not is_folder and key.startswith(prefix) and not name.startswith(UNFINISHED):
            yield key


def _exists(key: str) -> Conflict:
    return Conflict(f"The depot already has {key}. Kept files are never overwritten.")


@contextmanager
def _disk_errors(root: Path, key: str) -> Iterator[None]:
    """Raise NoSpace, with an explanation, when the disk is full or not writable."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            state, action = _NO_SPACE[error.errno], "Free some space"
        elif error.errno in _NOT_WRITABLE:
            state, action = _NOT_WRITABLE[error.errno], "Make it writable"
        else:
            raise
        raise NoSpace(
            f"The disk of the depot {root} {state}: {key} was not written, and nothing was lost. "
            f"{action} and try again."
        ) from error
