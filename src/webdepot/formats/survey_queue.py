"""Payloads of a survey on their way through guarded examiners, in bundles.

The rows of payloads that an earlier survey has examined are looked up once for each bundle. Each examiner has
a thread that waits for its answers, so that the container is read meanwhile. An examiner has the next bundle
before it finishes the current one. Rows are stored in the order of reading.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from webdepot.formats.examine import Examined, Exhibit, FileExaminer, PendingExamination
from webdepot.formats.payload import SurveyLimits, remove
from webdepot.formats.survey_rows import FindingCollector, Row, RowStore
from webdepot.formats.texts import finding
from webdepot.guard import process
from webdepot.model import Finding, Severity

FIRST_FILES, BUNDLE_FILES = 4, 48
"""Payloads in a bundle. The first bundles are small, since examiners wait for them; then they grow."""
BUNDLE_BYTES = 4 << 20
MOST_BEGUN = 2
"""Bundles that an examiner has at once: the current one and the next."""
MOST_AHEAD = 4
"""Bundles read before an examiner is free for them: some take ten times as long as others."""


FindKnownRows = Callable[[Sequence[str], str], Mapping[str, Row]]
"""From payload digests and engine to the rows of earlier surveys, by digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadTask:
    """A payload to examine. It owns the payload's temporary files; its record has been closed."""

    digest: str
    content: bytes | Path
    cut: bool
    container: str
    url: str
    mime: str
    files: Sequence[Path]


_kept: dict[tuple[Path | None, process.Limits], FileExaminer] = {}
"""The examiner that a worker process keeps between two containers: examining a small container takes less
time than starting an examiner.
"""


def _keep(key: tuple[Path | None, process.Limits], examiner: FileExaminer) -> None:
    """Keep at most one: a call with other signatures or limits replaces it."""
    while _kept:
        _kept.popitem()[1].close()
    _kept[key] = examiner


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bundle:
    tasks: list[PayloadTask]
    known: Mapping[str, Row] = field(default_factory=dict)
    """Rows of earlier surveys by digest; their payloads are not examined again."""
    results: "Future[list[Examined]]" = field(default_factory=Future)

    @property
    def unknown(self) -> list[PayloadTask]:
        return [task for task in self.tasks if task.digest not in self.known]


_NO_BUNDLE = _Bundle(tasks=[])
"""Used instead of a bundle while the examiner has enough to do, or none is waiting."""


class ExaminationQueue:
    """Examiners, their threads, and the bundles that wait for them. Use it in a `with`."""

    def __init__(
        self,
        store: RowStore,
        collector: FindingCollector,
        *,
        signatures: Path | None,
        limits: SurveyLimits,
        workers: int,
        checked: bool,
        keep_examiner: bool,
    ) -> None:
        self.store = store
        self.collector = collector
        self.find_known: FindKnownRows = lambda _digests, _engine: {}
        self._limits = limits
        self._checked = checked
        file_limits = process.Limits(time_s=limits.check_s, memory_bytes=limits.check_memory_bytes)
        self._kept_as = (signatures, file_limits) if keep_examiner else None
        kept = _kept.pop(self._kept_as, None) if self._kept_as else None
        self._examiners = [
            kept or FileExaminer(signatures, limits=file_limits),
            *(FileExaminer(signatures, limits=file_limits) for _ in range(workers - 1)),
        ]
        self._submitted: SimpleQueue[_Bundle | None] = SimpleQueue()
        """For the first free examiner; one None for each thread at the end."""
        self._threads = [
            Thread(target=self._run, args=(examiner,), name="survey") for examiner in self._examiners
        ]
        self._bundle: list[PayloadTask] = []
        self._bundle_bytes = 0
        self._bundle_files = FIRST_FILES
        self._waiting: deque[_Bundle] = deque()
        self._most_waiting = (MOST_BEGUN + 1) * workers + MOST_AHEAD

    def __enter__(self) -> "ExaminationQueue":
        for examiner in self._examiners:
            examiner.start(checked=self._checked)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Empty):  # bundles are left over if reading failed
            while True:
                self._submitted.get(block=False)
        for _thread in self._threads:
            self._submitted.put(None)
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

    def add(self, task: PayloadTask) -> None:
        if isinstance(task.content, Path):  # a file on disk makes a bundle alone
            self._submit()
        self._bundle.append(task)
        self._bundle_bytes += BUNDLE_BYTES if isinstance(task.content, Path) else len(task.content)
        if len(self._bundle) >= self._bundle_files or self._bundle_bytes >= BUNDLE_BYTES:
            self._submit()
            self._bundle_files = min(self._bundle_files + FIRST_FILES, BUNDLE_FILES)

    def finish(self) -> None:
        """Wait for all results and store them."""
        self._submit()
        while self._waiting:
            self._put_next()

    def _submit(self) -> None:
        if not self._bundle:
            return
        known = self.find_known([task.digest for task in self._bundle], self.engine)
        bundle = _Bundle(tasks=self._bundle, known=known)
        self._bundle, self._bundle_bytes = [], 0
        self._waiting.append(bundle)
        if bundle.unknown:
            self._submitted.put(bundle)
        else:
            bundle.results.set_result([])
        if len(self._waiting) >= self._most_waiting:
            self._put_next()

    def _put(self, row: Row) -> None:
        """Store a row and collect its findings."""
        for each in row["findings"]:
            self.collector.add(Finding(**each | {"severity": Severity(each["severity"])}))
        self.store.put(row)

    def _put_next(self) -> None:
        bundle = self._waiting[0]
        try:
            examined = iter(bundle.results.result())
            for task in bundle.tasks:
                known = bundle.known.get(task.digest)
                self._put(
                    {"container": task.container, **known} if known else self._row(task, next(examined))
                )
        finally:
            self._waiting.popleft()
            for task in bundle.tasks:
                remove(task.files)

    def _run(self, examiner: FileExaminer) -> None:
        """Body of a thread: pass bundles to its examiner and fetch the results, until the queue ends."""
        begun: deque[tuple[PendingExamination, _Bundle]] = deque()
        while True:
            try:
                bundle = self._submitted.get(block=not begun) if len(begun) < MOST_BEGUN else _NO_BUNDLE
            except Empty:
                bundle = _NO_BUNDLE
            if bundle is None:
                break
            if bundle is _NO_BUNDLE:
                self._fetch(examiner, *begun.popleft())
                continue
            exhibits = [
                Exhibit(payload=task.content, name=task.url, mime=task.mime, subject=task.url)
                for task in bundle.unknown
            ]
            try:
                begun.append((examiner.begin(exhibits), bundle))
            except Exception as error:  # raised again where the rows are stored
                bundle.results.set_exception(error)
        for each in begun:
            self._fetch(examiner, *each)

    def _fetch(self, examiner: FileExaminer, begun: PendingExamination, bundle: _Bundle) -> None:
        try:
            bundle.results.set_result(examiner.end(begun, checked=self._checked))
        except Exception as error:  # raised again where the rows are stored
            bundle.results.set_exception(error)

    def _row(self, task: PayloadTask, examined: Examined) -> Row:
        findings = list(examined.findings)
        if task.cut:
            findings.insert(0, finding("content-cut", subject=task.url, limit=self._limits.content_bytes))
        format = examined.format
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
            "validity": examined.validity.value,
            "engine": self.engine,
            "findings": [asdict(each) for each in findings],
            "properties": dict(examined.properties),
        }
