"""Memory of the processes that build and merge segments of the Tantivy index.

Tantivy maps the files of the index into memory. Each page of a file that was read counts as memory of the
process until the system needs the space, so a process would seem to need as much as the segments are large.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_RELEASE_EVERY_S = 0.1
_MADV_DONTNEED = 4


def return_free_memory() -> None:
    """Give memory that is no longer used back to the system. The C library keeps some of each of Tantivy's
    threads, and a worker builds many parts.
    """
    with suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def mapped_files_released(*folders: Path) -> Iterator[None]:
    """During the block, release mapped files of these folders from the memory of this process every tenth of
    a second. Pages that are needed again come from the cache of the system, so nothing is lost and little
    time is needed.
    """
    ended = threading.Event()
    below = tuple(f"{folder.resolve()}/" for folder in folders)
    thread = threading.Thread(target=_release_until, args=(ended, below), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _release(below)


def _release_until(ended: threading.Event, below: tuple[str, ...]) -> None:
    while not ended.wait(_RELEASE_EVERY_S):
        _release(below)


def _release(below: tuple[str, ...]) -> None:
    """Release shared read-only mappings: pages of other mappings may not be in a file."""
    with suppress(OSError, AttributeError):  # only Linux has them
        lines = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
        madvise = ctypes.CDLL(None).madvise
        for line in lines:
            # 7f0c00000000-7f0c00021000 r--s 00000000 08:01 1234    /home/archive/index/text/….store
            addresses, access, _, _, _, *path = line.split(None, 5)
            if access == "r--s" and path and path[0].startswith(below):
                start, end = (int(each, 16) for each in addresses.split("-"))
                madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_DONTNEED)
