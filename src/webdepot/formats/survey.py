"""What is in a container: every distinct payload identified by its bytes and validated, one row each.

Order for each record with a payload (responses, resources, conversions): read it and take its digest; the same bytes again only
count; bytes that an earlier survey knows take their answer from there; the rest has its content coding undone (within a limit), is
identified, then validated behind a guard. Large payloads go through temporary files, small ones stay in memory.

    row   container, digest, url, size_bytes, server_mime, puid, name, version, mime, basis, verdict, warning, validity, engine,
          findings, uris

Rows are put aside in a temporary database while the container is read, since their counts are known only at its end; it keeps memory
flat. The functions are importable and their values pickle, so that an `Engine` runs one container per worker.
"""

import gzip
import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from webdepot import digest
from webdepot.container.reader import Record, iter_records
from webdepot.formats import media
from webdepot.formats.guard import Guard
from webdepot.formats.identify import SiegfriedIdentifier
from webdepot.formats.payload import Payload, SurveyLimits
from webdepot.formats.texts import finding
from webdepot.model import Finding, FormatVerdict, RecordKind, Severity
from webdepot.ports import FormatIdentifier

Row = dict[str, Any]
Already = Callable[[str, str], Row | None]
"""From payload digest and engine to the row of an earlier survey, or None."""

MOST_FINDINGS = 1000
_WITH_PAYLOAD = frozenset((RecordKind.RESPONSE, RecordKind.RESOURCE, RecordKind.CONVERSION))


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyTask:
    """One container to survey, as a value that travels to a worker."""

    path: Path
    name: str
    rows: Path
    """Where the rows go, as gzip JSON lines."""
    already: Already | None = None
    limits: SurveyLimits = field(default_factory=SurveyLimits)
    temporary: Path | None = None
    """Folder for large payloads; the system's own by default."""
    signatures: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyCounts:
    files: int
    """Records with a payload, whatever was done with them."""
    checked: int
    """Of those, identified now or by an earlier survey."""
    distinct: int
    size_bytes: int
    """Content of all files, codings undone."""
    recognised: int
    uncertain: int
    not_recognised: int
    findings: Mapping[str, int]
    """All findings by code."""
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyResult:
    container: str
    engine: str
    rows: Path
    findings: tuple[Finding, ...]
    """Damage of the container and errors and warnings about files, at most a thousand; rows and counts have them all."""
    counts: SurveyCounts


def run(task: SurveyTask) -> SurveyResult:
    """Survey one container; the form in which an `Engine` takes the work."""
    return of_container(
        task.path,
        task.name,
        rows=task.rows,
        already=task.already,
        limits=task.limits,
        temporary=task.temporary,
        signatures=task.signatures,
    )


def of_container(
    path: Path,
    name: str,
    *,
    rows: Path,
    already: Already | None = None,
    limits: SurveyLimits = SurveyLimits(),  # noqa: B008 - frozen value
    temporary: Path | None = None,
    signatures: Path | None = None,
) -> SurveyResult:
    """Identify and validate everything in a container; `rows` appears when it is whole. InputError when it is no container."""
    started = time.monotonic()
    with ExitStack() as stack:
        identifier = stack.enter_context(SiegfriedIdentifier(signatures))
        checker = stack.enter_context(Guard(time_s=limits.check_s, memory_bytes=limits.check_memory_bytes))
        shelf = stack.enter_context(closing(_Shelf()))
        observed = _Observed()
        stream = stack.enter_context(path.open("rb"))
        for record in iter_records(stream, name, on_finding=observed.add):
            if record.kind in _WITH_PAYLOAD and not record.url.startswith("dns:"):
                with Payload(record, limits, temporary) as payload:
                    _take(payload, record, shelf, observed, identifier, checker, already)
        shelf.write(rows)
        counts = shelf.counts(dict(observed.codes), time.monotonic() - started)
        return SurveyResult(container=name, engine=identifier.engine, rows=rows, findings=tuple(observed.findings), counts=counts)


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a survey."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _take(
    payload: Payload,
    record: Record,
    shelf: "_Shelf",
    observed: "_Observed",
    identifier: FormatIdentifier,
    checker: Guard,
    already: Already | None,
) -> None:
    if not payload.size_bytes or shelf.seen_again(payload.digest):
        return
    row = already(payload.digest, identifier.engine) if already else None
    if row is None:
        row = _row(payload, record, identifier, checker)
    for each in row["findings"]:
        observed.add(Finding(**each | {"severity": Severity(each["severity"])}))
    _compare_digest(payload, record, observed)
    shelf.put({"container": record.location.container, **row})


def _row(payload: Payload, record: Record, identifier: FormatIdentifier, checker: Guard) -> Row:
    content, cut = payload.content()
    said = media.essence(record.content_type)
    found = identifier.identify(content, name=record.url, mime=said)
    validity, findings = checker.check(content, found, subject=record.url)
    if cut:
        findings.insert(0, finding("content-cut", subject=record.url, limit=payload.limits.content_bytes))
    return {
        "digest": payload.digest,
        "url": record.url,
        "size_bytes": len(content) if isinstance(content, bytes) else content.stat().st_size,
        "server_mime": said,
        "puid": found.puid,
        "name": found.name,
        "version": found.version,
        "mime": found.mime,
        "basis": found.basis.value,
        "verdict": found.verdict.value,
        "warning": found.warning,
        "validity": validity.value,
        "engine": identifier.engine,
        "findings": [asdict(each) for each in findings],
    }


def _compare_digest(payload: Payload, record: Record, observed: "_Observed") -> None:
    stated = digest.parse(record.payload_digest) if record.payload_digest else None
    if stated is not None and stated.algorithm == "sha1" and str(stated) != payload.digest:
        place = f"{record.location.container} byte {record.location.offset}"
        observed.add(finding("digest-differs", subject=record.url, place=place, stated=stated, found=payload.digest))


class _Observed:
    """Findings, counted without end and kept up to a limit."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.codes: Counter[str] = Counter()

    def add(self, each: Finding) -> None:
        self.codes[each.code] += 1
        if each.severity is not Severity.NOTE and len(self.findings) < MOST_FINDINGS:
            self.findings.append(each)


class _Shelf:
    """Rows put aside by digest. A database without a name lives in memory until it grows, then in a temporary file."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA cache_size = -8000; BEGIN;"
            "CREATE TABLE rows (number INTEGER PRIMARY KEY, digest TEXT UNIQUE, uris INTEGER, size INTEGER, verdict TEXT, row TEXT)"
        )

    def seen_again(self, key: str) -> bool:
        return self._database.execute("UPDATE rows SET uris = uris + 1 WHERE digest = ?", (key,)).rowcount > 0

    def put(self, row: Row) -> None:
        facts = {name: value for name, value in row.items() if name != "uris"}
        values = (row["digest"], row["size_bytes"], row["verdict"], json.dumps(facts, ensure_ascii=False))
        self._database.execute("INSERT INTO rows (digest, uris, size, verdict, row) VALUES (?, 1, ?, ?, ?)", values)

    def write(self, path: Path) -> None:
        """All rows in the order of their first sight; whole or not at all."""
        unfinished = path.with_name(f"{path.name}.part")
        with unfinished.open("wb") as file:
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
                for row, uris in self._database.execute("SELECT row, uris FROM rows ORDER BY number"):
                    packed.write(f'{row[:-1]}, "uris": {uris}}}\n'.encode(errors="replace"))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)

    def counts(self, findings: Mapping[str, int], duration_s: float) -> SurveyCounts:
        found = self._database.execute("SELECT verdict, count(*), sum(uris), sum(size * uris) FROM rows GROUP BY verdict").fetchall()
        by_verdict = {verdict: cast(int, uris) for verdict, _, uris, _ in found}
        files = sum(by_verdict.values())
        return SurveyCounts(
            files=files,
            checked=files,
            distinct=sum(each[1] for each in found),
            size_bytes=sum(each[3] for each in found),
            recognised=by_verdict.get(FormatVerdict.RECOGNISED.value, 0),
            uncertain=by_verdict.get(FormatVerdict.UNCERTAIN.value, 0),
            not_recognised=by_verdict.get(FormatVerdict.NOT_RECOGNISED.value, 0),
            findings=findings,
            duration_s=duration_s,
        )

    def close(self) -> None:
        self._database.close()
