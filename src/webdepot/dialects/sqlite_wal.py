"""Turn on SQLite's write-ahead log (https://sqlite.org/wal.html) when a file is opened.

A new file is not in that mode. If several processes open it at the same time, all but one get "busy" at once:
SQLite does not wait for a lock if that could end in a deadlock. A moment later the mode is on.
"""

import sqlite3
import time
from typing import Any

_AGAIN_S = 0.01


def turn_on(connection: Any, *, patience_s: float) -> None:
    """Turn it on for a connection or cursor; SQLite's error if the file is still busy after that time."""
    until_s = time.monotonic() + patience_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() >= until_s:
                raise
            time.sleep(_AGAIN_S)
        else:
            return
