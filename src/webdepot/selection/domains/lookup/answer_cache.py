"""A cache of look-ups with their time to live, so that no server is queried twice: one SQLite file, which may
be deleted at any time.

    answers(kind, key, until, value)    kind: host, zone, domain, network, bootstrap, ...
                                        value: JSON without personal data

Writes are collected and committed together; answers lost in a crash are looked up again.
"""

import json
import sqlite3
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from webdepot.dialects import sqlite_wal
from webdepot.times import Clock

_PATIENCE_S = 30.0
_BATCH = 200
_MOST_IN_MEMORY = 50_000


class KeptAnswers:
    """The cache, for one thread; `close` writes the rest."""

    def __init__(self, path: Path | None, clock: Clock) -> None:
        self._clock = clock
        self._recent: dict[tuple[str, str], tuple[datetime, Any]] = {}
        self._unwritten: dict[tuple[str, str], tuple[str, str]] = {}
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=_PATIENCE_S)
        sqlite_wal.turn_on(self._connection, patience_s=_PATIENCE_S)
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS answers (kind TEXT, key TEXT, until TEXT NOT NULL, "
            "value TEXT NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID"
        )

    def find(self, kind: str, key: str) -> Any | None:
        """The value until it expires, otherwise None."""
        now = self._clock()
        recent = self._recent.get((kind, key))
        if recent is not None:
            return recent[1] if recent[0] > now else None
        row = self._connection.execute(
            "SELECT until, value FROM answers WHERE kind = ? AND key = ?", (kind, key)
        ).fetchone()
        if row is None or datetime.fromisoformat(row[0]) <= now:
            return None
        value = json.loads(row[1])
        self._remember((kind, key), datetime.fromisoformat(row[0]), value)
        return value

    def keep(self, kind: str, key: str, value: Any, seconds: float) -> None:
        until = self._clock() + timedelta(seconds=min(max(seconds, 0.0), 366 * 86400.0))
        self._remember((kind, key), until, value)
        self._unwritten[kind, key] = (until.isoformat(), json.dumps(value, ensure_ascii=False))
        if len(self._unwritten) >= _BATCH:
            self.write()

    def write(self) -> None:
        if not self._unwritten:
            return
        rows = [(kind, key, until, value) for (kind, key), (until, value) in self._unwritten.items()]
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", rows)
        self._connection.execute("DELETE FROM answers WHERE until < ?", (self._clock().isoformat(),))
        self._connection.execute("COMMIT")
        self._unwritten.clear()

    def close(self) -> None:
        self.write()
        self._connection.close()

    def _remember(self, key: tuple[str, str], until: datetime, value: Any) -> None:
        if len(self._recent) >= _MOST_IN_MEMORY:
            self.write()
            self._recent.clear()
        self._recent[key] = (until, value)
