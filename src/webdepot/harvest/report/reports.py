"""Reports of a harvest, counted from crawl.jsonl: hosts, types, status codes, seeds, rejections, traps,
software.

The counts are kept in a small database beside the log, with the position up to which the log was read. So a
report of a running harvest reads only new lines, and memory does not grow with the log. If the log was cut
back to a checkpoint after a crash, the digest before that position no longer matches, and everything is
counted again.

    progress   bytes read, digest of the last bytes before that position
    counts     kind, name, documents, bytes, errors, refused, duplicates, example, reason
               one row for each host, type, status or rule
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

from webdepot.harvest.report.log import MISSING, PROBE, SOFTWARE
from webdepot.harvest.scope.hop_path import is_guess
from webdepot.harvest.scope.mazes import MAZES
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
        MAZES,
    }
    | {"path_depth", "query_length", "address_length", "query_arguments"}
)
"""Rules that reject crawler traps."""
LEFT_OUT = "left_out_"
"""Prefix of the counts of a harvest that say how many addresses of a kind were left out."""
MISSING_RULE = "soft 404"
"""The name of soft 404 pages among the traps: they are kept, but their links are not followed."""
_TAIL_BYTES = 4096
_FLUSH_KEYS = 20_000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS progress (bytes INTEGER NOT NULL, tail TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS counts (
  kind TEXT NOT NULL, name TEXT NOT NULL, documents INTEGER NOT NULL, bytes INTEGER NOT NULL,
  errors INTEGER NOT NULL, refused INTEGER NOT NULL, duplicates INTEGER NOT NULL, example TEXT NOT NULL,
  reason TEXT NOT NULL, PRIMARY KEY (kind, name)
) WITHOUT ROWID;
"""
_ADD = """
INSERT INTO counts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET
  documents = documents + excluded.documents, bytes = bytes + excluded.bytes,
  errors = errors + excluded.errors, refused = refused + excluded.refused,
  duplicates = duplicates + excluded.duplicates,
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
    SOFTWARE = "software"


COLUMNS: Mapping[ReportKind, tuple[str, ...]] = {
    ReportKind.HOSTS: ("name", "documents", "bytes", "errors", "refused", "duplicates"),
    ReportKind.MIME: ("name", "documents", "bytes", "duplicates"),
    ReportKind.STATUS: ("name", "documents", "bytes", "example", "reason"),
    ReportKind.SEEDS: ("name", "status", "documents", "reason"),
    ReportKind.REJECTED: ("name", "refused", "example", "reason"),
    ReportKind.TRAPS: ("name", "host", "refused", "example", "reason"),
    ReportKind.SOFTWARE: ("name", "host", "example"),
}
"""The columns of each report, in order."""


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
    """Number of rows without the limit."""
    read_bytes: int = 0
    """How much of the log is counted."""


def left_out_of(counts: Mapping[str, int]) -> dict[str, int]:
    """Kinds of addresses that a harvest left out, by its counts, most first."""
    names = sorted((name for name in counts if name.startswith(LEFT_OUT)), key=lambda name: -counts[name])
    return {name.removeprefix(LEFT_OUT): counts[name] for name in names}


def refresh(log: Path, database: Path) -> None:
    """Count the new lines of the log. A second call at the same time waits."""
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


def count_all(stream: BinaryIO, database: Path) -> None:
    """Count a whole log that no longer changes, from any stream."""
    with closing(_connect(database)) as connection, connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM counts")
        connection.execute("DELETE FROM progress")
        connection.execute("INSERT INTO progress VALUES (?, '')", (_read(stream, 0, connection),))


def read(database: Path, kind: ReportKind, *, limit: int = 0, offset: int = 0) -> HarvestReport:
    """One report, largest counts first; `limit` 0 means all rows."""
    with closing(_connect(database)) as connection:
        total = connection.execute("SELECT count(*) FROM counts WHERE kind = ?", (kind.value,)).fetchone()[0]
        read_bytes = (connection.execute("SELECT bytes FROM progress").fetchone() or (0,))[0]
        selected = connection.execute(
            "SELECT name, documents, bytes, errors, refused, duplicates, example, reason FROM counts"
            " WHERE kind = ? ORDER BY documents + refused DESC, name LIMIT ? OFFSET ?",
            (kind.value, limit or -1, offset),
        )
        rows = [_row(kind, *values) for values in selected]
    return HarvestReport(kind=kind, columns=COLUMNS[kind], rows=rows, total=total, read_bytes=read_bytes)


def _row(kind: ReportKind, name: str, *values: Any) -> dict[str, Any]:
    row = dict(
        zip(
            ("documents", "bytes", "errors", "refused", "duplicates", "example", "reason"),
            values,
            strict=True,
        )
    )
    if kind in (ReportKind.TRAPS, ReportKind.SOFTWARE):
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
    """A digest of the bytes before a position, to see whether the log is still the one that was read."""
    if not at:
        return ""
    start = max(at - _TAIL_BYTES, 0)
    stream.seek(start)
    data = stream.read(at - start)
    return blake2b(data, digest_size=16).hexdigest() if len(data) == at - start else "cut"


def _read(stream: BinaryIO, at: int, connection: sqlite3.Connection) -> int:
    """Count complete lines from a position; return the position after them."""
    if at or stream.seekable():
        stream.seek(at)
    counts: dict[tuple[str, str], _Count] = {}
    for line in stream:
        if not line.endswith(b"\n"):
            break  # an incomplete line: it is being written
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
    for (kind, name), count in items:
        yield (
            kind,
            name,
            count.documents,
            count.bytes,
            count.errors,
            count.refused,
            count.duplicates,
            count.example,
            count.reason,
        )


def _of(counts: dict[tuple[str, str], _Count], kind: str, name: str) -> _Count:
    return counts.setdefault((kind, name), _Count())


def _note(line: Mapping[str, Any], counts: dict[tuple[str, str], _Count]) -> None:
    """Count one line of the log in every report it belongs to."""
    status, url, size = int(line["status"]), str(line["url"]), int(line["size"])
    if line["note"] == PROBE:
        return  # not an address of the site
    is_answer, is_duplicate = status > 0, "warcRevisit:digest" in line["note"]
    is_refused = status in REFUSED
    host = _of(counts, "hosts", host_of(url))
    by_status = _of(counts, "status", str(status))
    by_status.documents += 1
    by_status.bytes += size
    by_status.example = by_status.example or url
    if status <= 0:
        by_status.reason = by_status.reason or _STATUS_NAMES.get(status, "")
    if is_answer:
        mime = _of(counts, "mime", str(line["mime"]))
        for count in (host, mime):
            count.documents += 1
            count.bytes += size
            count.duplicates += is_duplicate
    if not is_guess(str(line["path"])):  # a wrong guess is not an error of the site
        host.errors += (status >= 400) or (status <= 0 and not is_refused)
    host.refused += is_refused
    if is_refused:
        _note_refusal(line, url, counts)
    for note in filter(None, str(line["note"]).split(",")):
        _note_annotation(note, url, counts)
    if not str(line["path"]).strip("R") and (is_answer or not is_refused or line["tries"] == 0):
        seed = _of(counts, "seeds", url)
        seed.documents += is_answer
        seed.example = str(status)
        seed.reason = str(line["reason"])


def _note_annotation(note: str, url: str, counts: dict[tuple[str, str], _Count]) -> None:
    """Count a page that is the first to show signs of a software, or that is a soft 404."""
    if note.startswith(SOFTWARE):
        software = _of(counts, "software", f"{note.removeprefix(SOFTWARE)}\t{host_of(url)}")
        software.documents += 1
        software.example = software.example or url
    elif note == MISSING:
        trap = _of(counts, "traps", f"{MISSING_RULE}\t{host_of(url)}")
        trap.refused += 1
        trap.example = trap.example or url
        trap.reason = "it is the page that the host shows for missing pages; its links were not followed"


def _note_refusal(line: Mapping[str, Any], url: str, counts: dict[tuple[str, str], _Count]) -> None:
    rule = str(line["rule"] or "?")
    refusals = [_of(counts, "rejected", rule)]
    if rule in TRAP_RULES:
        refusals.append(_of(counts, "traps", f"{rule}\t{host_of(url)}"))
    for refusal in refusals:
        refusal.refused += 1
        refusal.example = refusal.example or url
        refusal.reason = refusal.reason or str(line["reason"])


REFUSED = frozenset(
    {Failure.SCOPE.status, Failure.ROBOTS.status, Failure.LIMIT.status, Failure.PRIVATE_ADDRESS.status}
)
_STATUS_NAMES = {failure.status: failure.value for failure in Failure}
