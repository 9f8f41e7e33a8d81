"""SQLite's write-ahead log (https://sqlite.org/wal.html), turned on by whoever opens a file first.

A new file is not in that mode. When several processes open it at once, all but one are told that it is busy,
and at once: SQLite does not wait for a lock where waiting could mean that two wait for each other. A moment
later it is done.
"""

import sqlite3
import time
from typing import Any

_AGAIN_S = 0.01


def turn_on(connection: Any, *, patience_s: float) -> None:
    """For a connection or cursor; what SQLite says when it is still busy after that time."""
    until_s = time.monotonic() + patience_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if (
                getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY
                or time.monotonic() >= until_s
            ):
                raise
            time.sleep(_AGAIN_S)
        else:
            return
