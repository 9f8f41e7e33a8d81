"""Errors of this program that the content of a page causes. They end the page, or a step of it, never the
crawl: the page is logged with the error and the place where it was raised, and counted (`program_errors`).

Errors of the archive itself, such as a full disk, end the crawl; it can be resumed.
"""

import sqlite3
import traceback
from pathlib import Path

import lmdb

from webdepot.errors import WebdepotError

_OF_ARCHIVE = (WebdepotError, OSError, MemoryError, sqlite3.Error, lmdb.Error)
_OF_VALUES = (lmdb.BadValsizeError,)
"""Subclasses of the above that the content of a page can cause."""


def is_of_archive(error: Exception) -> bool:
    return isinstance(error, _OF_ARCHIVE) and not isinstance(error, _OF_VALUES)


def describe(error: Exception) -> str:
    """The error with the place where it was raised, for the log."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({Path(place[0].filename).name}, line {place[0].lineno})" if place else ""
    return f"internal error: {type(error).__name__}: {error}"[:300] + where
