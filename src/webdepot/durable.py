"""Durable files: whole writes, folders and their fsync, locks, and temporary folders, in one place.

A whole write: bytes are written to `NAME.new` in the same folder, flushed to the disk, then renamed; then the
folder is flushed. After a crash at any moment the file has its old content or its new content, never a
mixture.

A lock is flock(2) on a file: it belongs to the process, and is released when the process ends, even if it is
killed.

A scratch folder has a file `.lock`, locked while its process runs. One whose lock is free, or that has
other files but no lock (left by a power cut), is abandoned: the next process that needs such a folder removes
it.
"""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

from webdepot.errors import Conflict

NEW_SUFFIX = ".new"
_SCRATCH_LOCK = ".lock"
_SHORTEST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.05


def write_whole(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Replace the content of a file, all or nothing."""
    with whole_file(path, mode=mode) as file:
        file.write(data)


@contextmanager
def whole_file(path: Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """A file to write that takes its name only when the block ends without an error."""
    new = path.with_name(path.name + NEW_SUFFIX)
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, so that `mode` holds from the start
            yield file
            sync_file(file)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_file(file: IO[bytes] | IO[str]) -> None:
    """Flush what was written to an open file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk: after this a created or renamed file survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Flush all files and folders below a folder, and the folder itself, to the disk."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(place, name)
            if not path.is_symlink():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        sync_folder(Path(place))


def make_folders(folder: Path) -> None:
    """Like `mkdir -p`, but durable: each new folder is on the disk before the next one is created."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for step in reversed(missing):
        step.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):  # another process may remove an empty folder at any time
            sync_folder(step.parent)


def acquire(path: Path, *, busy: str | None = None) -> BinaryIO:
    """Take the lock of a file, which is created if need be; closing the returned file releases it.

    With `busy`, Conflict with that message if another process has it; without, wait. Ctrl-C ends the wait.
    """
    while True:
        file = path.open("ab")
        try:
            _lock(file, waits=busy is None)
            if _is_file_of(path, file):
                return file
            file.close()  # its holder removed it, and another process may have locked a new one
        except BlockingIOError:
            file.close()
            raise Conflict(busy or "") from None
        except BaseException:
            file.close()
            raise


def _lock(file: BinaryIO, *, waits: bool) -> None:
    """Lock an open file; BlockingIOError if another process has it and we do not wait."""
    pause_s = _SHORTEST_PAUSE_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not waits:
                raise
        # Not flock() without LOCK_NB: a signal that arrives just before it would not end the wait.
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _is_file_of(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


@contextmanager
def locked(path: Path, *, busy: str | None = None) -> Iterator[None]:
    """Hold the lock of a file for the length of the block; `busy` as in `acquire`."""
    with acquire(path, busy=busy):
        yield


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock of a file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return False
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def scratch_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A new folder for temporary files, removed at the end of the block; by default in the system's folder
    for such files. Folders with the same prefix that were left by processes that have ended are removed
    first.
    """
    parent = parent or Path(tempfile.gettempdir())
    remove_abandoned(parent, prefix)
    folder, lock = _locked_folder(parent, prefix)
    with lock:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def abandoned_folders(parent: Path, prefix: str) -> list[Path]:
    """Scratch folders of processes that have ended. Only real folders of this user: others can create names
    in a shared folder.
    """
    abandoned = []
    for path in sorted(parent.glob(f"{prefix}*")):
        with suppress(FileNotFoundError):
            facts = path.lstat()
            is_ours = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()
            if is_ours and not is_in_use(path):
                abandoned.append(path)
    return abandoned


def is_in_use(scratch_folder: Path) -> bool:
    """Whether the process that created a scratch folder is still in its block."""
    return is_locked(scratch_folder / _SCRATCH_LOCK)


def remove_abandoned(parent: Path, prefix: str) -> int:
    """Remove the scratch folders of processes that have ended; returns how many."""
    return sum(_remove_abandoned(path) for path in abandoned_folders(parent, prefix))


def _locked_folder(parent: Path, prefix: str) -> tuple[Path, BinaryIO]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):  # another process took it for abandoned before it was locked
            return folder, acquire(folder / _SCRATCH_LOCK)


def _remove_abandoned(folder: Path) -> bool:
    """Remove an abandoned folder, holding its lock, so that a process that is just creating it notices."""
    with suppress(OSError):  # it is not empty, or already gone
        folder.rmdir()
        return True
    try:
        lock = (folder / _SCRATCH_LOCK).open("rb")
    except FileNotFoundError:
        shutil.rmtree(folder, ignore_errors=True)  # files, but no lock: a process creates the lock first
        return True
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        shutil.rmtree(folder, ignore_errors=True)
    return True
