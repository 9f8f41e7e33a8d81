"""What files are: loose files and foreign containers, newer signatures, and old packages looked at again.

Nothing here overwrites an earlier answer: each result names its engine, and another engine adds its own.
"""

import os
import stat
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from webdepot.archive import Archive
from webdepot.errors import InputError
from webdepot.formats import report, signatures, survey
from webdepot.formats.examine import Examined, FileExaminer
from webdepot.formats.report import FormatShare, HarvestTable
from webdepot.formats.signatures import SignatureSet
from webdepot.harvest import runs
from webdepot.model import Finding, Harvest, HarvestState
from webdepot.provenance import Event, append
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.services.quality import harvest_check

_IN_HAND = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """One loose file."""

    path: Path
    size_bytes: int
    found: Examined


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerReport:
    """One container, wherever it comes from: the table of K15 and the share of each format."""

    path: Path
    engine: str
    table: HarvestTable
    shares: Sequence[FormatShare]
    findings: Sequence[Finding]
    unknown: Sequence[str]
    """Addresses of payloads that were not recognised, the first of them."""
    mismatches: int


def examine_files(
    paths: Sequence[Path], *, checked: bool, signature_file: Path | None = None, workers: int = 0
) -> Iterator[FileReport]:
    """Every file of these paths and of the folders among them, in order. InputError for a path that is not
    there.
    """
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
            if len(waiting) > count * _IN_HAND:
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
    """Identify and validate everything in WARC or ARC files that need not belong to the archive."""
    files = list(_iter_files(paths))
    with tempfile.TemporaryDirectory(prefix="webdepot-report-") as folder:
        for number, path in enumerate(files):
            watch(Progress(phase=Phase.IDENTIFY, done=number, total=len(files), note=path.name))
            rows = Path(folder) / "rows.jsonl.gz"
            done = survey.of_container(
                path,
                path.name,
                rows=rows,
                temporary=Path(folder),
                signatures=signature_file,
                workers=os.cpu_count() or 1,
                checked=checked,
            )
            yield ContainerReport(
                path=path,
                engine=done.engine,
                table=report.of_counts(done.counts),
                shares=report.shares_of_rows(survey.read_rows(rows)),
                findings=done.findings,
                unknown=[row["url"] for row in survey.read_rows(rows) if row["verdict"] == "not recognised"][
                    :50
                ],
                mismatches=sum(
                    row["uris"] for row in survey.read_rows(rows) if "server said" in row["warning"]
                ),
            )


def update_signatures(archive: Archive, source: Path) -> tuple[SignatureSet, bool]:
    """Take a newer set of signatures from a file; whether it was new. It is used from now on."""
    found = signatures.install(source, archive.signatures_folder, at=archive.clock(), by=archive.agent)
    with archive.database.transaction() as connection:
        is_new = signatures.add(connection, found)
        if is_new:
            event = Event(
                at=found.installed_at,
                agent=archive.agent,
                action="signatures",
                subject_kind="archive",
                subject=found.name,
                message=found.engine,
                detail={"sha256": found.sha256},
            )
            append(connection, event)
    return found, is_new


def identify_again(
    archive: Archive, harvests: Sequence[str], *, limit: int = 0, watch: Watch = unwatched
) -> Iterator[tuple[Harvest, HarvestTable]]:
    """Kept harvests that today's engine has not seen, one after the other; what is done is done, so that it
    can be stopped.
    """
    with archive.database.reading() as connection:
        chosen = [runs.get(connection, each) for each in harvests] or runs.in_states(
            connection, [HarvestState.KEPT]
        )
    done = 0
    for harvest in chosen:
        if limit and done >= limit:
            return
        table = harvest_check.identify_again(archive, harvest, watch=watch)
        if table is not None:
            done += 1
            yield harvest, table


def signature_sets(archive: Archive) -> list[SignatureSet]:
    with archive.database.reading() as connection:
        return signatures.every(connection)


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
            raise InputError(f"There is no file {path}. Check its name.")
        if not path.is_dir() and not path.is_file():
            raise InputError(f"{path} is neither a file nor a folder, and is not read.")
    return _walk(paths)


def _walk(paths: Sequence[Path]) -> Iterator[Path]:
    """Regular files only: a pipe or device in a folder would never end."""
    for path in paths:
        if path.is_file():
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                found = Path(folder) / name
                try:
                    is_regular = stat.S_ISREG(found.lstat().st_mode) and os.access(found, os.R_OK)
                except OSError:
                    continue
                if is_regular:
                    yield found
