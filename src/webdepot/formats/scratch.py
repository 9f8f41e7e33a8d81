"""A folder in memory for a child that looks at hostile files: nothing is left of it, however parent or child
end.

The parent makes it, keeps a lock on it as long as it lives, and removes it. A folder whose lock is free
belongs to a parent that was killed: the next one sweeps it away.
"""

import fcntl
import os
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path

_PREFIX = "webdepot-guard-"
_YOUNG_S = 60.0
_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder in it is made safely


class Scratch:
    """One folder. Close it."""

    def __init__(self) -> None:
        _sweep()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_parent()))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        if self._lock >= 0:
            forget(str(self.path))
            os.close(self._lock)
            self._lock = -1


def forget(folder: str) -> None:
    """Remove a folder of this kind, and no other."""
    path = Path(folder)
    if path.name.startswith(_PREFIX):
        shutil.rmtree(path, ignore_errors=True)


@cache
def _sweep() -> None:
    """Once in a process. A folder made this moment may not be locked yet, so that young ones stay."""
    for path in _parent().glob(f"{_PREFIX}*"):
        try:
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock).st_uid == os.getuid() and os.fstat(lock).st_mtime < time.time() - _YOUNG_S:
                forget(str(path))
        except OSError:
            continue
        finally:
            os.close(lock)


def _parent() -> Path:
    return _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
