"""The rows of a survey while it runs: one for each distinct payload, written when the container has been
read.

    row   container, digest, url, size_bytes, server_mime, puid, name, version, mime, basis, verdict, warning,
          validity, engine, findings, properties, uris

`uris`, the number of records with that payload, is known only at the end of the container. Until then rows
are in a temporary database, so that memory use does not grow with the container.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from webdepot import durable
from webdepot.container.members import gzip_member
from webdepot.model import Finding, FormatVerdict, Severity

Row = dict[str, Any]
MOST_FINDINGS = 1000
MOST_IN_MEMORY = 4000
"""Rows kept in memory before they are moved to the temporary database."""
_to_json = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyCounts:
    files: int
    """Records with a payload."""
    checked: int
    """Of those, identified now or by an earlier survey."""
    distinct: int
    size_bytes: int
    """Total content of all files, without content codings."""
    recognised: int
    uncertain: int
    not_recognised: int
    findings: Mapping[str, int]
    """Number of findings by code."""
    duration_s: float
    work_s: float
    """The duration without the start of the engine."""


class FindingCollector:
    """Counts all findings by code, and keeps the first errors and warnings up to `MOST_FINDINGS`."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.codes: Counter[str] = Counter()

    def add(self, finding: Finding) -> None:
        self.codes[finding.code] += 1
        if finding.severity is not Severity.NOTE and len(self.findings) < MOST_FINDINGS:
            self.findings.append(finding)


@dataclass(slots=True)
class _PendingRow:
    """A payload that was counted; its row is filled in by `RowStore.put`."""

    uris: int = 1
    size_bytes: int | None = None
    verdict: str | None = None
    row: str | None = None


class RowStore:
    """Rows by digest: the latest in memory, older ones in an unnamed SQLite database, which SQLite moves to a
    temporary file when it grows. Rows are inserted in batches, because one statement for each payload takes
    as long as unpacking it.
    """

    def __init__(self) -> None:
        self._pending: dict[str, _PendingRow] = {}
        self._has_older = False
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA cache_size = -8000; BEGIN;"
            "CREATE TABLE rows (number INTEGER PRIMARY KEY, digest TEXT UNIQUE, uris INTEGER, size INTEGER,"
            " verdict TEXT, row TEXT)"
        )

    def count(self, key: str) -> bool:
        """Count a payload. True the first time: the caller must then `put` its row."""
        known = self._pending.get(key)
        if known is not None:
            known.uris += 1
            return False
        if (
            self._has_older
            and self._database.execute("UPDATE rows SET uris = uris + 1 WHERE digest = ?", (key,)).rowcount
        ):
            return False
        if len(self._pending) >= MOST_IN_MEMORY:
            self._move_to_database()
        self._pending[key] = _PendingRow()
        return True

    def put(self, row: Row) -> None:
        row.pop("uris", None)
        text = _to_json(row)
        pending = self._pending.get(row["digest"])
        if pending is not None:
            pending.size_bytes, pending.verdict, pending.row = row["size_bytes"], row["verdict"], text
            return
        values = (row["size_bytes"], row["verdict"], text, row["digest"])
        self._database.execute("UPDATE rows SET size = ?, verdict = ?, row = ? WHERE digest = ?", values)

    def _move_to_database(self) -> None:
        rows = (
            (key, pending.uris, pending.size_bytes, pending.verdict, pending.row)
            for key, pending in self._pending.items()
        )
        self._database.executemany(
            "INSERT INTO rows (digest, uris, size, verdict, row) VALUES (?, ?, ?, ?, ?)", rows
        )
        self._pending.clear()
        self._has_older = True

    def write(self, path: Path) -> None:
        """Write all rows in the order of their first record, all or nothing. Every counted payload must have
        its row.
        """
        with durable.whole_file(path) as file:
            for piece in gzip_member(self._iter_lines()):
                file.write(piece)

    def _iter_lines(self) -> Iterator[bytes]:
        cursor = self._database.execute("SELECT row, uris FROM rows ORDER BY number")
        while batch := cursor.fetchmany(MOST_IN_MEMORY):
            yield _lines(batch)
        yield _lines((cast(str, pending.row), pending.uris) for pending in self._pending.values())

    def counts(self, findings: Mapping[str, int], duration_s: float, work_s: float) -> SurveyCounts:
        older = self._database.execute(
            "SELECT verdict, count(*), sum(uris), sum(size * uris) FROM rows GROUP BY verdict"
        ).fetchall()
        latest = [
            (pending.verdict, 1, pending.uris, cast(int, pending.size_bytes) * pending.uris)
            for pending in self._pending.values()
        ]
        by_verdict: Counter[str] = Counter()
        distinct = size_bytes = 0
        for verdict, payloads, uris, group_bytes in (*older, *latest):
            by_verdict[verdict] += uris
            distinct += payloads
            size_bytes += group_bytes
        files = by_verdict.total()
        return SurveyCounts(
            files=files,
            checked=files,
            distinct=distinct,
            size_bytes=size_bytes,
            recognised=by_verdict[FormatVerdict.RECOGNISED.value],
            uncertain=by_verdict[FormatVerdict.UNCERTAIN.value],
            not_recognised=by_verdict[FormatVerdict.NOT_RECOGNISED.value],
            findings=findings,
            duration_s=duration_s,
            work_s=work_s,
        )

    def close(self) -> None:
        self._database.close()


def _lines(rows: Iterable[tuple[str, int]]) -> bytes:
    return "".join([f'{row[:-1]}, "uris": {uris}}}\n' for row, uris in rows]).encode(errors="replace")
