"""Survey of a container: identify every distinct payload by its bytes and validate it, one row each.

For each record with a payload (response, resource, conversion):

1. Read the payload and compute its digest.
2. A payload seen before in this container is only counted.
3. For any other, undo the content coding (within a limit). Large payloads go through temporary files.
4. Many at a time (`survey_queue`): those known from an earlier survey get their rows from there, the others
   are identified and validated in guarded processes.

`survey_rows` keeps the rows until the container is read. The functions are importable and their values
pickle, so that an `Engine` can run one container per worker. `ContainerSurvey` is for a worker that reads the
container for other purposes as well.
"""

import gzip
import json
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from webdepot import digest
from webdepot.container.reader import iter_records
from webdepot.container.record import ABOUT_PAGES, Record
from webdepot.formats import media
from webdepot.formats.payload import Payload, SurveyLimits
from webdepot.formats.survey_queue import ExaminationQueue, FindKnownRows, PayloadTask
from webdepot.formats.survey_rows import FindingCollector, Row, RowStore, SurveyCounts
from webdepot.formats.texts import finding
from webdepot.model import Finding, RecordKind

KnownRows = AbstractContextManager[FindKnownRows]
"""Opens what the lookups of one survey need."""

SMALL_BYTES = 4 << 20
"""A container up to this size has one examiner: starting another would take longer than examining the files.
"""
_WITH_PAYLOAD = frozenset((RecordKind.RESPONSE, RecordKind.RESOURCE, RecordKind.CONVERSION))
_NOT_OF_THE_SITE = ("dns:", *ABOUT_PAGES)
"""Beginnings of the addresses of records that a harvester made, such as screenshots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyTask:
    """One container to survey, as a value that travels to a worker."""

    path: Path
    name: str
    rows: Path
    """The file to write the rows to, as gzip JSON lines."""
    already: KnownRows | None = None
    limits: SurveyLimits = field(default_factory=SurveyLimits)
    temporary: Path | None = None
    """Folder for large payloads; the system's temporary folder by default."""
    signatures: Path | None = None
    workers: int = 1
    """Examiners at work at the same time."""

    def find_result(self) -> None:
        """None: the result of a survey is never known before it runs."""

    def elsewhere(self, path: Path, folder: Path, signatures: Path | None) -> "SurveyTask":
        """The same task for a worker on another machine, with paths there. It uses one core."""
        return replace(
            self,
            path=path,
            rows=folder / self.rows.name,
            temporary=folder.parent,
            signatures=signatures,
            workers=1,
        )

    def path_here(self, _name: str) -> Path:
        """The path here of the file that such a worker has written: the rows."""
        return self.rows

    def finish_here(self, result: "SurveyResult") -> "SurveyResult":
        """The result of such a worker, when its rows are here."""
        return replace(result, rows=self.rows)


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
    """Survey one container, as a function of one argument for an `Engine`."""
    with of_task(task) as surveying, task.path.open("rb") as stream:
        for record in iter_records(stream, task.name, on_finding=surveying.add_finding):
            surveying.take(record)
        return surveying.finish()


def of_task(task: SurveyTask) -> "ContainerSurvey":
    """The survey of a task. Its worker keeps an examiner for the next container."""
    return ContainerSurvey(
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
    already: KnownRows | None = None,
    limits: SurveyLimits = SurveyLimits(),  # noqa: B008 - frozen value
    temporary: Path | None = None,
    signatures: Path | None = None,
    workers: int = 1,
    checked: bool = True,
) -> SurveyResult:
    """Identify and (if `checked`) validate everything in a container; the file `rows` appears when complete.
    InputError if the file is not a container.
    """
    with (
        ContainerSurvey(
            path,
            name,
            rows=rows,
            already=already,
            limits=limits,
            temporary=temporary,
            signatures=signatures,
            workers=workers,
            checked=checked,
        ) as surveying,
        path.open("rb") as stream,
    ):
        for record in iter_records(stream, name, on_finding=surveying.add_finding):
            surveying.take(record)
        return surveying.finish()


class ContainerSurvey:
    """The survey of one container whose records somebody else reads: `take` each of them, in order, then
    `finish`. Use it in a `with`; entering waits for the engine.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        *,
        rows: Path,
        already: KnownRows | None = None,
        limits: SurveyLimits = SurveyLimits(),  # noqa: B008 - frozen value
        temporary: Path | None = None,
        signatures: Path | None = None,
        workers: int = 1,
        checked: bool = True,
        keep_examiner: bool = False,
    ) -> None:
        self._name = name
        self._rows = rows
        self._already = already
        self._limits = limits
        self._temporary = temporary
        self._store = RowStore()
        self._collector = FindingCollector()
        self._queue = ExaminationQueue(
            self._store,
            self._collector,
            signatures=signatures,
            limits=limits,
            workers=workers if path.stat().st_size > SMALL_BYTES else 1,
            checked=checked,
            keep_examiner=keep_examiner,
        )
        self._opened = ExitStack()
        self._started = self._ready = time.monotonic()

    def __enter__(self) -> "ContainerSurvey":
        self._started = time.monotonic()
        with ExitStack() as stack:
            stack.enter_context(closing(self._store))
            if self._already is not None:
                self._queue.find_known = stack.enter_context(self._already)
            stack.enter_context(self._queue)
            self._queue.wait_until_ready()
            self._opened = stack.pop_all()
        self._ready = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def add_finding(self, finding: Finding) -> None:
        """Add a finding about the damage of the container."""
        self._collector.add(finding)

    def take(self, record: Record) -> tuple[str, int] | None:
        """Examine the payload of a record; return its digest and size, or None if it has no payload."""
        if record.kind not in _WITH_PAYLOAD or record.url.startswith(_NOT_OF_THE_SITE):
            return None
        payload = Payload(record, self._limits, self._temporary)
        _take(payload, record, self._queue)
        return payload.digest, payload.size_bytes

    def finish(self) -> SurveyResult:
        """Wait for all results and write the rows."""
        self._queue.finish()
        self._store.write(self._rows)
        ended = time.monotonic()
        counts = self._store.counts(dict(self._collector.codes), ended - self._started, ended - self._ready)
        return SurveyResult(
            container=self._name,
            engine=self._queue.engine,
            rows=self._rows,
            findings=tuple(self._collector.findings),
            counts=counts,
        )


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a finished survey, as `survey_rows` describes them."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _take(payload: Payload, record: Record, queue: ExaminationQueue) -> None:
    with payload:
        if not payload.size_bytes:
            return
        _compare_digest(payload, record, queue.collector)
        if not queue.store.count(payload.digest):
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
