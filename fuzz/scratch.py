"""A folder in memory for fuzzers of things that need files."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

VARIABLE = "FUZZ_SCRATCH"
_MEMORY = Path("/dev/shm")


@cache
def root() -> Path:
    """The folder of this process. `fuzz.__main__` passes one to its fuzzers, because most of them are killed
    and cannot remove it.
    """
    if given := os.environ.get(VARIABLE):
        return Path(given)
    path = new()
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def new() -> Path:
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    return Path(tempfile.mkdtemp(prefix="webdepot-fuzz-", dir=parent))


@contextmanager
def folder() -> Iterator[Path]:
    """A new empty folder, removed afterwards."""
    path = root() / "input"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
