"""Survey of a container: identify every distinct payload by its bytes and validate it, one row each.

For each record with a payload (response, resource, conversion):

1. Read the payload and compute its digest.
2. A payload seen before in this container is only counted.
3. A payload known from an earlier survey gets its row from there.
4. For any other, undo the content coding (within a limit), identify and validate it in guarded processes
   (`survey_queue`), many at a time. Large payloads go through temporary files.

`survey_rows` keeps the rows until the container is read. The functions are importable and their values
pickle, so that an `Engine` can run one container per worker.
"""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from webdepot import digest
from webdepot.container.reader import iter_records
from webdepot.container.record import Record
from webdepot.formats import media
from webdepot.formats.payload import Payload, SurveyLimits
from webdepot.formats.survey_queue import ExaminationQueue, PayloadTask
from webdepot.formats.survey_rows import FindingCollector, Row, RowStore, SurveyCounts
from webdepot.formats.texts import finding
from webdepot.model import Finding, RecordKind

FindKnownRow = Callable[[str, str], Row | None]
"""From payload digest and engine to the row of an earlier survey, or None."""

SMALL_BYTES = 4 << 20
"""A container up to this size has one examiner: starting another would take longer than examining the files.
"""
_WITH_PAYLOAD = frozenset((RecordKind.RESPONSE, RecordKind.RESOURCE, RecordKind.CONVERSION))


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyTask:
    """One container to survey, as a value that travels to a worker."""

    path: Path
    name: str
    rows: Path
    """The file to write the rows to, as gzip JSON lines."""
    already: FindKnownRow | None = None
    limits: SurveyLimits = field(default_factory=SurveyLimits)
    temporary: Path | None = None
    """Folder for large payloads; the system's temporary folder by default."""
    signatures: Path | None = None
    workers: int = 1
    """Examiners at work at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyResult:
    container: str
    engine: str
    rows: Path
    findings: tuple[Finding, ...]
    """Damage to the container, and errors and warnings about files; at most a thousand. Rows and counts
    include all of them.
    """
    counts: SurveyCounts


def run(task: SurveyTask) -> SurveyResult:
    """Survey one container, as a function of one argument for an `Engine`. Its worker keeps an examiner for
    the next container.
    """
    return of_container(
        task.path,
        task.name,
        rows=task.rows,
        already=task.already,
        limits=task.limits,
        temporary=task.temporary,
        signatures=task.signatures,
        workers=task.workers,
        keep_examiner=True,
    )


def of_container(
    path: Path,
    name: str,
    *,
    rows: Path,
    already: FindKnownRow | None = None,
    limits: SurveyLimits = SurveyLimits(),  # noqa: B008 - frozen value
    temporary: Path | None = None,
    signatures: Path | None = None,
    workers: int = 1,
    checked: bool = True,
    keep_examiner: bool = False,
) -> SurveyResult:
    """Identify and (if `checked`) validate everything in a container; the file `rows` appears when complete.
    InputError if the file is not a container.

    With `keep_examiner` one examiner is kept for the next call in this process.
    """
    started = time.monotonic()
    with ExitStack() as stack:
        stream = stack.enter_context(path.open("rb"))
        store = stack.enter_context(closing(RowStore()))
        collector = FindingCollector()
        queue = stack.enter_context(
            ExaminationQueue(
                store,
                collector,
                signatures=signatures,
                limits=limits,
                workers=workers if path.stat().st_size > SMALL_BYTES else 1,
                checked=checked,
                keep_examiner=keep_examiner,
            )
        )
        queue.wait_until_ready()
        ready = time.monotonic()
        for record in iter_records(stream, name, on_finding=collector.add):
            if record.kind in _WITH_PAYLOAD and not record.url.startswith("dns:"):
                _take(Payload(record, limits, temporary), record, queue, already)
        queue.finish()
        store.write(rows)
        ended = time.monotonic()
        counts = store.counts(dict(collector.codes), ended - started, ended - ready)
        return SurveyResult(
            container=name,
            engine=queue.engine,
            rows=rows,
            findings=tuple(collector.findings),
            counts=counts,
        )


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a finished survey, as `survey_rows` describes them."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _take(payload: Payload, record: Record, queue: ExaminationQueue, already: FindKnownRow | None) -> None:
    with payload:
        if not payload.size_bytes:
            return
        _compare_digest(payload, record, queue.collector)
        if not queue.store.count(payload.digest):
            return
        row = already(payload.digest, queue.engine) if already else None
        if row is not None:
            queue.put({"container": record.location.container, **row})
            return
        content, cut = payload.content()
        task = PayloadTask(
            digest=payload.digest,
            content=content,
            cut=cut,
            container=record.location.container,
            url=record.url,
            mime=media.essence(record.content_type),
            files=payload.release(),
        )
    queue.add(task)


def _compare_digest(payload: Payload, record: Record, collector: FindingCollector) -> None:
    if record.payload_digest in ("", payload.digest):
        return
    stated = digest.parse(record.payload_digest)
    if stated is not None and stated.algorithm == "sha1" and str(stated) != payload.digest:
        place = f"{record.location.container} byte {record.location.offset}"
        collector.add(
            finding("digest-differs", subject=record.url, place=place, stated=stated, found=payload.digest)
        )
