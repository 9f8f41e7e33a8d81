"""What is in a container: every distinct payload identified by its bytes and validated, one row each.

Order for each record with a payload (responses, resources, conversions): read it and take its digest; the
same bytes again only count; bytes that an earlier survey knows take their answer from there; the rest has its
content coding undone (within a limit), is identified and validated behind guards, many at a time. Large
payloads go through temporary files, small ones stay in memory. While guards work on some payloads the next
are read; a few bundles wait at most.

    row   container, digest, url, size_bytes, server_mime, puid, name, version, mime, basis, verdict, warning, validity, engine,
          findings, properties, uris

Rows are put aside in a temporary database while the container is read, since their counts are known only at
its end; it keeps memory flat. The functions are importable and their values pickle, so that an `Engine` runs
one container per worker.
"""

import gzip
import json
import os
import sqlite3
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, cast

from webdepot import digest
from webdepot.container.members import gzip_member
from webdepot.container.reader import iter_records
from webdepot.container.record import Record
from webdepot.formats import guard, media
from webdepot.formats.examine import Begun, Examined, Examiner, Exhibit
from webdepot.formats.payload import Payload, SurveyLimits, remove
from webdepot.formats.texts import finding
from webdepot.model import Finding, FormatVerdict, RecordKind, Severity

Row = dict[str, Any]
Already = Callable[[str, str], Row | None]
"""From payload digest and engine to the row of an earlier survey, or None."""

MOST_FINDINGS = 1000
FIRST_FILES, BUNDLE_FILES = 4, 48
"""The first bundles are small, since guards wait for them; then they grow."""
SMALL_BYTES = 4 << 20
"""A container up to this size is looked at by one guard: starting another would take longer than the files.
"""
BUNDLE_BYTES = 4 << 20
"""So much goes to a guard at once."""
MOST_BEGUN = 2
"""So many bundles a guard has at once: one that it looks at and the next."""
MOST_AHEAD = 4
"""So many bundles are read before a guard is free for them: some take ten times as long as others."""
MOST_IN_MEMORY = 4000
"""So many rows are kept in memory before they go to the temporary database."""
_to_json = json.JSONEncoder(ensure_ascii=False).encode
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
    workers: int = 1
    """Payloads looked at at the same time."""


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
    work_s: float
    """Of that, without the start of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyResult:
    container: str
    engine: str
    rows: Path
    findings: tuple[Finding, ...]
    """Damage of the container and errors and warnings about files, at most a thousand; rows and counts have
    them all.
    """
    counts: SurveyCounts


def run(task: SurveyTask) -> SurveyResult:
    """Survey one container; the form in which an `Engine` takes the work. Its worker keeps the guards for the
    next container.
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
        keep_guards=True,
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
    workers: int = 1,
    checked: bool = True,
    keep_guards: bool = False,
) -> SurveyResult:
    """Identify and (if `checked`) validate everything in a container; `rows` appears when it is whole.
    InputError when it is none.

    With `keep_guards` one pair of them stays for the next call in this process; they end with it.
    """
    started = time.monotonic()
    with ExitStack() as stack:
        stream = stack.enter_context(path.open("rb"))
        shelf = stack.enter_context(closing(_Shelf()))
        observed = _Observed()
        guards = workers if path.stat().st_size > SMALL_BYTES else 1
        desk = stack.enter_context(_Desk(shelf, observed, signatures, limits, guards, checked, keep_guards))
        desk.wait_until_ready()
        ready = time.monotonic()
        for record in iter_records(stream, name, on_finding=observed.add):
            if record.kind in _WITH_PAYLOAD and not record.url.startswith("dns:"):
                _take(Payload(record, limits, temporary), record, desk, already)
        desk.finish()
        shelf.write(rows)
        ended = time.monotonic()
        counts = shelf.counts(dict(observed.codes), ended - started, ended - ready)
        return SurveyResult(
            container=name, engine=desk.engine, rows=rows, findings=tuple(observed.findings), counts=counts
        )


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a survey."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _take(payload: Payload, record: Record, desk: "_Desk", already: Already | None) -> None:
    with payload:
        if not payload.size_bytes:
            return
        _compare_digest(payload, record, desk.observed)
        if not desk.shelf.seen_first(payload.digest):
            return
        row = already(payload.digest, desk.engine) if already else None
        if row is not None:
            desk.put({"container": record.location.container, **row})
            return
        content, cut = payload.content()
        task = _Task(
            digest=payload.digest,
            content=content,
            cut=cut,
            container=record.location.container,
            url=record.url,
            mime=media.essence(record.content_type),
            files=payload.release(),
        )
    desk.give(task)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """A payload on the desk. It owns the payload's temporary files; the record it came from is gone."""

    digest: str
    content: bytes | Path
    cut: bool
    container: str
    url: str
    mime: str
    files: Sequence[Path]


_kept: dict[tuple[Path | None, guard.Limits], Examiner] = {}
"""The examiner of a worker process between two containers: a small one takes less time than the start of its
guards.
"""


def _keep(key: tuple[Path | None, guard.Limits], examiner: Examiner) -> None:
    """One at most: other signatures or limits need another, and nobody comes back to these."""
    while _kept:
        _kept.popitem()[1].close()
    _kept[key] = examiner


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bundle:
    tasks: list[_Task]
    found: "Future[list[Examined]]" = field(default_factory=Future)


_LATER = _Bundle(tasks=[])
"""What a thread takes for a bundle while its guard is busy enough, or nobody has given one."""


class _Desk:
    """Guards at work on bundles of payloads, each with a thread that waits for it, so that reading goes on
    meanwhile. While a guard looks at one bundle, it has the next one already. Rows are put in the order of
    reading.
    """

    def __init__(
        self,
        shelf: "_Shelf",
        observed: "_Observed",
        signatures: Path | None,
        limits: SurveyLimits,
        workers: int,
        checked: bool,
        keep_guards: bool,
    ) -> None:
        self.shelf = shelf
        self.observed = observed
        self._limits = limits
        self._checked = checked
        guarded = guard.Limits(time_s=limits.check_s, memory_bytes=limits.check_memory_bytes)
        self._kept_as = (signatures, guarded) if keep_guards else None
        kept = _kept.pop(self._kept_as, None) if self._kept_as else None
        self._examiners = [
            kept or Examiner(signatures, limits=guarded),
            *(Examiner(signatures, limits=guarded) for _ in range(workers - 1)),
        ]
        self._given: SimpleQueue[_Bundle | None] = SimpleQueue()
        """For whichever guard comes first; None for each when no more come."""
        self._threads = [
            Thread(target=self._look, args=(examiner,), name="survey") for examiner in self._examiners
        ]
        self._bundle: list[_Task] = []
        self._bundle_bytes = 0
        self._bundle_files = FIRST_FILES
        self._waiting: deque[_Bundle] = deque()
        self._most_waiting = (MOST_BEGUN + 1) * workers + MOST_AHEAD

    def __enter__(self) -> "_Desk":
        for examiner in self._examiners:
            examiner.start(checked=self._checked)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Empty):  # there are some when reading has failed
            while True:
                self._given.get(block=False)
        for _thread in self._threads:
            self._given.put(None)
        for thread in self._threads:
            thread.join()
        for task in (*self._bundle, *(task for bundle in self._waiting for task in bundle.tasks)):
            remove(task.files)
        if self._kept_as:
            _keep(self._kept_as, self._examiners.pop(0))
        for examiner in self._examiners:
            examiner.close()

    @cached_property
    def engine(self) -> str:
        return self._examiners[0].engine

    def wait_until_ready(self) -> None:
        for examiner in self._examiners:
            _ = examiner.engine

    def give(self, task: _Task) -> None:
        if isinstance(task.content, Path):  # goes alone, as it lies on disk
            self._hand_over()
        self._bundle.append(task)
        self._bundle_bytes += BUNDLE_BYTES if isinstance(task.content, Path) else len(task.content)
        if len(self._bundle) >= self._bundle_files or self._bundle_bytes >= BUNDLE_BYTES:
            self._hand_over()
            self._bundle_files = min(self._bundle_files + FIRST_FILES, BUNDLE_FILES)

    def finish(self) -> None:
        self._hand_over()
        while self._waiting:
            self._put_next()

    def _hand_over(self) -> None:
        if not self._bundle:
            return
        bundle = _Bundle(tasks=self._bundle)
        self._bundle, self._bundle_bytes = [], 0
        self._waiting.append(bundle)
        self._given.put(bundle)
        if len(self._waiting) >= self._most_waiting:
            self._put_next()

    def put(self, row: Row) -> None:
        for each in row["findings"]:
            self.observed.add(Finding(**each | {"severity": Severity(each["severity"])}))
        self.shelf.put(row)

    def _put_next(self) -> None:
        bundle = self._waiting[0]
        try:
            for task, found in zip(bundle.tasks, bundle.found.result(), strict=True):
                self.put(self._row(task, found))
        finally:
            self._waiting.popleft()
            for task in bundle.tasks:
                remove(task.files)

    def _look(self, examiner: Examiner) -> None:
        """A thread's life: show bundles to its examiner and fetch what it found, until no more come."""
        begun: deque[tuple[Begun, _Bundle]] = deque()
        while True:
            try:
                bundle = self._given.get(block=not begun) if len(begun) < MOST_BEGUN else _LATER
            except Empty:
                bundle = _LATER
            if bundle is None:
                break
            if bundle is _LATER:
                self._fetch(examiner, *begun.popleft())
                continue
            exhibits = [
                Exhibit(payload=task.content, name=task.url, mime=task.mime, subject=task.url)
                for task in bundle.tasks
            ]
            try:
                begun.append((examiner.begin(exhibits), bundle))
            except Exception as error:  # told by whoever asks for the rows
                bundle.found.set_exception(error)
        for each in begun:
            self._fetch(examiner, *each)

    def _fetch(self, examiner: Examiner, begun: Begun, bundle: _Bundle) -> None:
        try:
            bundle.found.set_result(examiner.end(begun, checked=self._checked))
        except Exception as error:  # told by whoever asks for the rows
            bundle.found.set_exception(error)

    def _row(self, task: _Task, found: Examined) -> Row:
        findings = list(found.findings)
        if task.cut:
            findings.insert(0, finding("content-cut", subject=task.url, limit=self._limits.content_bytes))
        format = found.format
        return {
            "container": task.container,
            "digest": task.digest,
            "url": task.url,
            "size_bytes": len(task.content)
            if isinstance(task.content, bytes)
            else task.content.stat().st_size,
            "server_mime": task.mime,
            "puid": format.puid,
            "name": format.name,
            "version": format.version,
            "mime": format.mime,
            "basis": format.basis.value,
            "verdict": format.verdict.value,
            "warning": format.warning,
            "validity": found.validity.value,
            "engine": self.engine,
            "findings": [asdict(each) for each in findings],
            "properties": dict(found.properties),
        }


def _compare_digest(payload: Payload, record: Record, observed: "_Observed") -> None:
    if record.payload_digest in ("", payload.digest):
        return
    stated = digest.parse(record.payload_digest)
    if stated is not None and stated.algorithm == "sha1" and str(stated) != payload.digest:
        place = f"{record.location.container} byte {record.location.offset}"
        observed.add(
            finding("digest-differs", subject=record.url, place=place, stated=stated, found=payload.digest)
        )


class _Observed:
    """Findings, counted without end and kept up to a limit."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.codes: Counter[str] = Counter()

    def add(self, each: Finding) -> None:
        self.codes[each.code] += 1
        if each.severity is not Severity.NOTE and len(self.findings) < MOST_FINDINGS:
            self.findings.append(each)


@dataclass(slots=True)
class _Aside:
    """A payload on the shelf; its row comes later."""

    uris: int = 1
    size_bytes: int | None = None
    verdict: str | None = None
    row: str | None = None


class _Shelf:
    """Rows put aside by digest: the latest in memory, the others in a database without a name, which lives in
    memory until it grows, then in a temporary file. A statement for each payload would take as long as
    unpacking it does.
    """

    def __init__(self) -> None:
        self._latest: dict[str, _Aside] = {}
        self._has_older = False
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA cache_size = -8000; BEGIN;"
            "CREATE TABLE rows (number INTEGER PRIMARY KEY, digest TEXT UNIQUE, uris INTEGER, size INTEGER, verdict TEXT, row TEXT)"
        )

    def seen_first(self, key: str) -> bool:
        """Count a payload; whether it is the first time, so that its row is to be put."""
        known = self._latest.get(key)
        if known is not None:
            known.uris += 1
            return False
        if (
            self._has_older
            and self._database.execute("UPDATE rows SET uris = uris + 1 WHERE digest = ?", (key,)).rowcount
        ):
            return False
        if len(self._latest) >= MOST_IN_MEMORY:
            self._move_to_database()
        self._latest[key] = _Aside()
        return True

    def put(self, row: Row) -> None:
        row.pop("uris", None)
        text = _to_json(row)
        aside = self._latest.get(row["digest"])
        if aside is not None:
            aside.size_bytes, aside.verdict, aside.row = row["size_bytes"], row["verdict"], text
            return
        values = (row["size_bytes"], row["verdict"], text, row["digest"])
        self._database.execute("UPDATE rows SET size = ?, verdict = ?, row = ? WHERE digest = ?", values)

    def _move_to_database(self) -> None:
        rows = (
            (key, aside.uris, aside.size_bytes, aside.verdict, aside.row)
            for key, aside in self._latest.items()
        )
        self._database.executemany(
            "INSERT INTO rows (digest, uris, size, verdict, row) VALUES (?, ?, ?, ?, ?)", rows
        )
        self._latest.clear()
        self._has_older = True

    def write(self, path: Path) -> None:
        """All rows in the order of their first sight, when all are put; whole or not at all."""
        unfinished = path.with_name(f"{path.name}.part")
        with unfinished.open("wb") as file:
            for piece in gzip_member(self._iter_lines()):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)

    def _iter_lines(self) -> Iterator[bytes]:
        found = self._database.execute("SELECT row, uris FROM rows ORDER BY number")
        while some := found.fetchmany(MOST_IN_MEMORY):
            yield _lines(some)
        yield _lines((cast(str, aside.row), aside.uris) for aside in self._latest.values())

    def counts(self, findings: Mapping[str, int], duration_s: float, work_s: float) -> SurveyCounts:
        older = self._database.execute(
            "SELECT verdict, count(*), sum(uris), sum(size * uris) FROM rows GROUP BY verdict"
        ).fetchall()
        latest = [
            (aside.verdict, 1, aside.uris, cast(int, aside.size_bytes) * aside.uris)
            for aside in self._latest.values()
        ]
        by_verdict: Counter[str] = Counter()
        distinct = size_bytes = 0
        for verdict, count, uris, taken_bytes in (*older, *latest):
            by_verdict[verdict] += uris
            distinct += count
            size_bytes += taken_bytes
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
