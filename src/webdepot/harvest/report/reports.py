"""Reports of a harvest, counted from crawl.jsonl: hosts, types, status codes, seeds, rejected by rule, traps.

The counts are kept in a small database beside the log, together with how far the log was read, so a report of
a running harvest reads only what is new, and memory does not grow with the log. A log that was cut back to a
checkpoint after a crash no longer ends where it was left off: then everything is counted again.

    progress   bytes read, digest of the last bytes before that
    counts     kind, name, documents, bytes, errors, refused, duplicates, example     one row per host, type, status or rule
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from webdepot.model import Failure
from webdepot.url import host_of

FILE_NAME = "reports.db"
TRAP_RULES = frozenset(
    {
        "hops",
        "guesses",
        "redirects",
        "path depth",
        "repeating",
        "length",
        "query length",
        "calendar",
        "same answers",
    }
    | {"path_depth", "query_length", "address_length", "query_arguments"}
)
"""Rules that reject what would never end."""
_TAIL_BYTES = 4096
_FLUSH_KEYS = 20_000
_BATCH_LINES = 200_000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS progress (bytes INTEGER NOT NULL, tail TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS counts (
  kind TEXT NOT NULL, name TEXT NOT NULL, documents INTEGER NOT NULL, bytes INTEGER NOT NULL, errors INTEGER NOT NULL,
  refused INTEGER NOT NULL, duplicates INTEGER NOT NULL, example TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (kind, name)
) WITHOUT ROWID;
"""
_ADD = """
INSERT INTO counts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET
  documents = documents + excluded.documents, bytes = bytes + excluded.bytes, errors = errors + excluded.errors,
  refused = refused + excluded.refused, duplicates = duplicates + excluded.duplicates,
  example = CASE WHEN excluded.kind = 'seeds' OR example = '' THEN excluded.example ELSE example END,
  reason = CASE WHEN excluded.kind = 'seeds' OR reason = '' THEN excluded.reason ELSE reason END
"""


class ReportKind(StrEnum):
    HOSTS = "hosts"
    MIME = "mime"
    STATUS = "status"
    SEEDS = "seeds"
    REJECTED = "rejected"
    TRAPS = "traps"


COLUMNS: Mapping[ReportKind, tuple[str, ...]] = {
    ReportKind.HOSTS: ("name", "documents", "bytes", "errors", "refused", "duplicates"),
    ReportKind.MIME: ("name", "documents", "bytes", "duplicates"),
    ReportKind.STATUS: ("name", "documents", "bytes", "example", "reason"),
    ReportKind.SEEDS: ("name", "status", "documents", "reason"),
    ReportKind.REJECTED: ("name", "refused", "example", "reason"),
    ReportKind.TRAPS: ("name", "host", "refused", "example", "reason"),
}
"""What each report shows, in this order."""


@dataclass(slots=True)
class _Count:
    documents: int = 0
    bytes: int = 0
    errors: int = 0
    refused: int = 0
    duplicates: int = 0
    example: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestReport:
    kind: ReportKind
    columns: tuple[str, ...]
    rows: list[dict[str, Any]] = field(default_factory=list)
    total: int = 0
    """Rows there are; more than `rows` where a limit cut them."""
    read_bytes: int = 0
    """So much of the log is counted."""


def refresh(log: Path, database: Path) -> None:
    """Count what the log has more than last time. Two at once do no harm: the second waits, then has nothing
    to do.
    """
    with closing(_connect(database)) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
        if not log.exists():
            return
        with log.open("rb") as stream:
            read_bytes, tail = connection.execute("SELECT bytes, tail FROM progress").fetchone() or (0, "")
            if tail != _tail(stream, read_bytes):
                connection.execute("DELETE FROM counts")
                read_bytes = 0
            read_bytes = _read(stream, read_bytes, connection)
            connection.execute("DELETE FROM progress")
            connection.execute("INSERT INTO progress VALUES (?, ?)", (read_bytes, _tail(stream, read_bytes)))


def count(stream: BinaryIO, database: Path) -> None:
    """Count a whole log that will not change any more, from wherever it is kept."""
    with closing(_connect(database)) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM counts")
        connection.execute("DELETE FROM progress")
        connection.execute("INSERT INTO progress VALUES (?, '')", (_read(stream, 0, connection),))


def read(database: Path, kind: ReportKind, *, limit: int = 0, offset: int = 0) -> HarvestReport:
    """One report, the largest first; `limit` 0 means all rows."""
    with closing(_connect(database)) as connection:
        total = connection.execute("SELECT count(*) FROM counts WHERE kind = ?", (kind.value,)).fetchone()[0]
        read_bytes = (connection.execute("SELECT bytes FROM progress").fetchone() or (0,))[0]
        found = connection.execute(
            "SELECT name, documents, bytes, errors, refused, duplicates, example, reason FROM counts WHERE kind = ?"
            " ORDER BY documents + refused DESC, name LIMIT ? OFFSET ?",
            (kind.value, limit or -1, offset),
        )
        rows = [_row(kind, *values) for values in found]
    return HarvestReport(kind=kind, columns=COLUMNS[kind], rows=rows, total=total, read_bytes=read_bytes)


def _row(kind: ReportKind, name: str, *values: Any) -> dict[str, Any]:
    row = dict(
        zip(
            ("documents", "bytes", "errors", "refused", "duplicates", "example", "reason"),
            values,
            strict=True,
        )
    )
    if kind is ReportKind.TRAPS:
        rule, _, host = name.partition("\t")
        return {"name": rule, "host": host, **{column: row[column] for column in COLUMNS[kind][2:]}}
    if kind is ReportKind.SEEDS:
        return {
            "name": name,
            "status": int(row["example"] or 0),
            "documents": row["documents"],
            "reason": row["reason"],
        }
    return {"name": name, **{column: row[column] for column in COLUMNS[kind][1:]}}


def _connect(database: Path) -> sqlite3.Connection:
    database.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(database, timeout=30, isolation_level=None)
    connection.executescript(_SCHEMA)
    return connection


def _tail(stream: BinaryIO, at: int) -> str:
    """What tells whether the log is still the one that was read."""
    start = max(at - _TAIL_BYTES, 0)
    stream.seek(start)
    data = stream.read(at - start)
    return (
        blake2b(data, digest_size=16).hexdigest()
        if at and len(data) == at - start
        else ""
        if not at
        else "cut"
    )


def _read(stream: BinaryIO, at: int, connection: sqlite3.Connection) -> int:
    """Count whole lines from there; where they end."""
    if at or stream.seekable():
        stream.seek(at)
    counts: dict[tuple[str, str], _Count] = {}
    for line in stream:
        if not line.endswith(b"\n"):
            break  # half a line: it is being written
        at += len(line)
        try:
            _note(json.loads(line), counts)
        except (ValueError, KeyError, TypeError, AttributeError):
            _of(counts, "status", "unreadable line").documents += 1
        if len(counts) > _FLUSH_KEYS:
            _flush(counts, connection)
    _flush(counts, connection)
    return at


def _flush(counts: dict[tuple[str, str], _Count], connection: sqlite3.Connection) -> None:
    connection.executemany(_ADD, _values(counts.items()))
    counts.clear()


def _values(items: Iterable[tuple[tuple[str, str], _Count]]) -> Iterator[tuple[object, ...]]:
    for (kind, name), made in items:
        yield (
            kind,
            name,
            made.documents,
            made.bytes,
            made.errors,
            made.refused,
            made.duplicates,
            made.example,
            made.reason,
        )


def _of(counts: dict[tuple[str, str], _Count], kind: str, name: str) -> _Count:
    found = counts.get((kind, name))
    if found is None:
        found = counts[kind, name] = _Count()
    return found


def _note(line: Mapping[str, Any], counts: dict[tuple[str, str], _Count]) -> None:
    """One line of the log goes into every report it belongs to."""
    status, url, size = int(line["status"]), str(line["url"]), int(line["size"])
    is_answer, is_duplicate = status > 0, "warcRevisit:digest" in line["note"]
    is_refused = status in _REFUSED
    host = _of(counts, "hosts", host_of(url))
    by_status = _of(counts, "status", str(status))
    by_status.documents += 1
    by_status.bytes += size
    by_status.example = by_status.example or url
    if status <= 0:
        by_status.reason = by_status.reason or _STATUS_WORDS.get(status, "")
    if is_answer:
        mime = _of(counts, "mime", str(line["mime"]))
        for made in (host, mime):
            made.documents += 1
            made.bytes += size
            made.duplicates += is_duplicate
    host.errors += (status >= 400) or (status <= 0 and not is_refused)
    host.refused += is_refused
    if is_refused:
        _note_refusal(line, url, counts)
    if not str(line["path"]).strip("R") and (is_answer or not is_refused or line["tries"] == 0):
        seed = _of(counts, "seeds", url)
        seed.documents += is_answer
        seed.example = str(status)
        seed.reason = str(line["reason"])


def _note_refusal(line: Mapping[str, Any], url: str, counts: dict[tuple[str, str], _Count]) -> None:
    rule = str(line["rule"] or "?")
    made = [_of(counts, "rejected", rule)]
    if rule in TRAP_RULES:
        made.append(_of(counts, "traps", f"{rule}\t{host_of(url)}"))
    for refusal in made:
        refusal.refused += 1
        refusal.example = refusal.example or url
        refusal.reason = refusal.reason or str(line["reason"])


_REFUSED = frozenset(
    {Failure.SCOPE.status, Failure.ROBOTS.status, Failure.LIMIT.status, Failure.PRIVATE_ADDRESS.status}
)
_STATUS_WORDS = {failure.status: failure.value for failure in Failure}
