"""A temporary folder in memory for a child process that reads hostile files. It is removed however parent or
child end.

The parent creates the folder, holds the lock of a file in it, and removes it. If the parent was killed, the
child empties the folder (its walls do not let it change the folder above), and the next process removes it:
the lock is free or gone.
"""

import os
import shutil
import stat
import tempfile
import time
from functools import cache
from pathlib import Path

from webdepot import durable

_PREFIX = "webdepot-guard-"
_LOCK_NAME = ".lock"
_YOUNG_S = 60.0
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder in it is made safely


class Scratch:
    """One folder. Close it."""

    def __init__(self) -> None:
        _sweep()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_parent()))
        self._lock = durable.acquire(self.path / _LOCK_NAME)

    def close(self) -> None:
        if not self._lock.closed:
            remove(str(self.path))
            self._lock.close()


def remove(folder: str) -> None:
    """Remove a scratch folder; does nothing to any other folder."""
    path = Path(folder)
    if path.name.startswith(_PREFIX):
        shutil.rmtree(path, ignore_errors=True)


def empty(folder: str) -> None:
    """Remove what is in a scratch folder; does nothing to any other folder."""
    path = Path(folder)
    if not path.name.startswith(_PREFIX) or not path.is_dir():
        return
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


@cache
def _sweep() -> None:
    """Remove abandoned folders, once per process. Young ones stay: they may not be locked yet."""
    for path in _parent().glob(f"{_PREFIX}*"):
        try:
            facts = path.lstat()
            # Anyone can create names in /dev/shm: only a real folder of this user is opened.
            is_ours = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()
            is_old = facts.st_mtime < time.time() - _YOUNG_S
            if is_ours and is_old and not durable.is_locked(path / _LOCK_NAME):
                remove(str(path))
        except OSError:
            continue


def _parent() -> Path:
    return _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
