"""Identify and validate the files of harvests, single files and foreign containers; update the signatures.

No earlier result is overwritten: each names its engine, and another engine adds its own.
`services.depot.examination` identifies a kept harvest again.
"""

import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from webdepot import durable
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.errors import InputError
from webdepot.formats import report, results, survey
from webdepot.formats import signature_sets as formats_signature_sets
from webdepot.formats.examine import Examined, FileExaminer
from webdepot.formats.report import FormatShare, HarvestTable
from webdepot.formats.signature_sets import SignatureSet
from webdepot.formats.survey import SurveyResult, SurveyTask
from webdepot.model import Container, Finding, Harvest
from webdepot.ports.engine import Done
from webdepot.provenance import Outcome, append
from webdepot.services.harvest import harvests
from webdepot.services.index import batch_jobs, derive, derived_files
from webdepot.services.index.derive import DeriveTask
from webdepot.services.progress import Phase, Progress, Watch, unwatched

_QUEUED_FOR_EACH_WORKER = 3
MOST_UNKNOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """The identification of a single file."""

    path: Path
    size_bytes: int
    found: Examined


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerReport:
    """The formats of one container, whether it belongs to the archive or not."""

    path: Path
    engine: str
    table: HarvestTable
    shares: Sequence[FormatShare]
    findings: Sequence[Finding]
    unknown: Sequence[str]
    """Addresses of the first `MOST_UNKNOWN` payloads that were not recognised."""
    mismatches: int


def identify(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> HarvestTable:
    """Identify and validate every payload of a harvest; containers that were surveyed before are not read
    again. In the same pass, everything is derived from them that the next steps need (`derived_files`).
    """
    waiting = _unidentified(archive, harvest)
    workers = cores_for_each(archive, len(waiting))
    tasks = (_derive_task(archive, harvest, each, workers=workers) for each in waiting)
    outcomes = batch_jobs.run_tasks(
        archive, derive.run, tasks, elsewhere=derive.read, signatures=archive.signatures()
    )
    for result in _iter_recorded(archive, outcomes, len(waiting), watch):
        _record(archive, harvest, result)
    with archive.database.reading() as connection:
        return report.of_harvest(connection, harvest.id)


def _unidentified(archive: Archive, harvest: Harvest) -> list[Container]:
    """The containers of a harvest that were not surveyed yet."""
    with archive.database.reading() as connection:
        containers = locations.of_harvest(connection, harvest.id)
        surveyed = results.surveyed(connection, harvest.id)
    return [container for container in containers if container.name not in surveyed]


def identify_container(archive: Archive, container: Container, *, cores: int) -> None:
    """As `identify`, for one sealed container, also of a harvest that still runs. If it fails, nothing is
    recorded: `identify` tries it again.
    """
    harvest = harvests.get(archive, container.harvest)
    with archive.database.reading() as connection:
        if results.is_surveyed(connection, container.name):
            return
    task = _derive_task(archive, harvest, container, workers=cores)
    outcomes = batch_jobs.run_tasks(
        archive, derive.run, [task], elsewhere=derive.read, signatures=archive.signatures()
    )
    for outcome in outcomes:
        if outcome.result is not None:
            _record(archive, harvest, outcome.result)


def rows_folder(archive: Archive, harvest: Harvest) -> Path:
    """Where the rows of a survey are kept until the harvest is deposited."""
    return harvests.folder_of(archive, harvest) / "formats"


def iter_surveys(
    archive: Archive, containers: Sequence[Container], folder: Path, watch: Watch
) -> Iterator[SurveyResult]:
    """Survey containers, their rows to `folder`. A container that fails is recorded as an event, and does not
    stop the others.
    """
    workers = cores_for_each(archive, len(containers))
    tasks = (_task(archive, container, folder, workers=workers) for container in containers)
    outcomes = batch_jobs.run_tasks(archive, survey.run, tasks, signatures=archive.signatures())
    return _iter_recorded(archive, outcomes, len(containers), watch)


def _iter_recorded(
    archive: Archive,
    outcomes: Iterable[Done[Any, SurveyResult]],
    total: int,
    watch: Watch,
) -> Iterator[SurveyResult]:
    """The results, of tasks with a name; a container that fails is recorded as an event."""
    watch(Progress(phase=Phase.IDENTIFY, done=0, total=total))
    failed = 0
    for number, outcome in enumerate(outcomes, start=1):
        name = outcome.item.name
        if outcome.result is not None:
            yield outcome.result
        else:
            failed += 1
            event = archive.event(
                "identified", "container", name, outcome=Outcome.FAILURE, message=outcome.error
            )
            with archive.database.transaction() as connection:
                append(connection, event)
        watch(Progress(phase=Phase.IDENTIFY, done=number, total=total, errors=failed, note=name))


def cores_for_each(archive: Archive, tasks: int) -> int:
    """Cores for each container: a single container gets all of them, many get one each."""
    cores = archive.config.index.workers or os.cpu_count() or 1
    return max(1, cores // max(1, min(cores, tasks)))


def _derive_task(archive: Archive, harvest: Harvest, container: Container, *, workers: int) -> DeriveTask:
    surveying = _task(archive, container, rows_folder(archive, harvest), workers=workers)
    return derived_files.task(archive, harvest, container, surveying)


def _record(archive: Archive, harvest: Harvest, result: SurveyResult) -> None:
    with archive.database.transaction() as connection:
        results.record(connection, harvest.id, result, at=archive.clock())


def _task(archive: Archive, container: Container, folder: Path, *, workers: int) -> SurveyTask:
    durable.make_folders(folder)
    return SurveyTask(
        path=batch_jobs.path_for_task(archive, container.name),
        name=container.name,
        rows=folder / f"{container.name}.jsonl.gz",
        already=_known_results(archive),
        temporary=folder,
        signatures=archive.signatures(),
        workers=workers,
    )


def _known_results(archive: Archive) -> results.KnownResults | None:
    """Finds the results of earlier surveys. None for workers on other machines if the database is a file."""
    database = archive.config.database
    if archive.cluster is None:
        return results.KnownResults(archive.database.url, password=database.password)
    return results.KnownResults(database.url) if database.url else None


def examine_files(
    paths: Sequence[Path], *, checked: bool, signature_file: Path | None = None, workers: int = 0
) -> Iterator[FileReport]:
    """Examine these files and all files in these folders, in order. InputError if a path does not exist."""
    files = _iter_files(paths)
    count = 1 if len(paths) == 1 and paths[0].is_file() else workers or os.cpu_count() or 1
    with ExitStack() as stack:
        free: SimpleQueue[FileExaminer] = SimpleQueue()
        for _ in range(count):
            free.put(stack.enter_context(FileExaminer(signature_file)))
        threads = stack.enter_context(ThreadPoolExecutor(count))
        waiting: deque[Future[FileReport]] = deque()
        for path in files:
            waiting.append(threads.submit(_examine, free, path, checked))
            if len(waiting) > count * _QUEUED_FOR_EACH_WORKER:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def report_containers(
    paths: Sequence[Path],
    *,
    signature_file: Path | None = None,
    checked: bool = True,
    watch: Watch = unwatched,
) -> Iterator[ContainerReport]:
    """Identify and validate everything in WARC or ARC files, which need not belong to the archive."""
    files = list(_iter_files(paths))
    with durable.scratch_folder("webdepot-report-") as folder:
        for number, path in enumerate(files):
            watch(Progress(phase=Phase.IDENTIFY, done=number, total=len(files), note=path.name))
            rows = folder / "rows.jsonl.gz"
            done = survey.of_container(
                path,
                path.name,
                rows=rows,
                temporary=folder,
                signatures=signature_file,
                workers=os.cpu_count() or 1,
                checked=checked,
            )
            unknown = (row["url"] for row in survey.read_rows(rows) if row["verdict"] == "not recognised")
            yield ContainerReport(
                path=path,
                engine=done.engine,
                table=report.of_counts(done.counts),
                shares=report.shares_of_rows(survey.read_rows(rows)),
                findings=done.findings,
                unknown=list(islice(unknown, MOST_UNKNOWN)),
                mismatches=sum(
                    row["uris"] for row in survey.read_rows(rows) if "server said" in row["warning"]
                ),
            )


def update_signatures(archive: Archive, source: Path) -> tuple[SignatureSet, bool]:
    """Install a set of signatures from a file and use it from now on; return it, and whether it was new."""
    installed = formats_signature_sets.install(
        source, archive.signatures_folder, at=archive.clock(), by=archive.agent
    )
    with archive.database.transaction() as connection:
        is_new = formats_signature_sets.add(connection, installed)
        if is_new:
            event = archive.event(
                "signatures",
                "archive",
                installed.name,
                message=installed.engine,
                detail={"sha256": installed.sha256},
            )
            append(connection, event)
    return installed, is_new


def signature_sets(archive: Archive) -> list[SignatureSet]:
    with archive.database.reading() as connection:
        return formats_signature_sets.every(connection)


def _examine(free: "SimpleQueue[FileExaminer]", path: Path, checked: bool) -> FileReport:
    examiner = free.get()
    try:
        size_bytes = path.stat().st_size
        return FileReport(
            path=path,
            size_bytes=size_bytes,
            found=examiner.examine(path, name=path.name, mime="", subject=str(path), checked=checked),
        )
    finally:
        free.put(examiner)


def _iter_files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise InputError(f"There is no file or folder {path}. Check the name.")
        if not path.is_dir() and not path.is_file():
            raise InputError(f"{path} is neither a file nor a folder, so it cannot be read.")
    return _walk(paths)


def _walk(paths: Sequence[Path]) -> Iterator[Path]:
    """Regular files only: reading a pipe or device might never end."""
    for path in paths:
        if path.is_file():
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                file = Path(folder) / name
                try:
                    is_readable = stat.S_ISREG(file.lstat().st_mode) and os.access(file, os.R_OK)
                except OSError:
                    continue
                if is_readable:
                    yield file
