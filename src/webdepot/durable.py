"""Durable files: whole writes, folder fsync and locks, in one place.

A whole write: bytes go to `NAME.new` beside the file, are flushed to the disk, then renamed; then the folder
is flushed. After a crash at any moment the file has its old content or its new content, never a mixture.

A lock is flock(2) on a file: it belongs to the process, and a killed process releases it by dying.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from webdepot.errors import Conflict

NEW_SUFFIX = ".new"


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


def acquire(path: Path, *, busy: str | None = None) -> BinaryIO:
    """Take the lock of a file, which is created if need be; closing the returned file releases it.

    With `busy`, Conflict with that message if another process has it; without, wait.
    """
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX if busy is None else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise Conflict(busy or "") from None
    except BaseException:
        file.close()
        raise
    return file


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
