"""Tasks about containers, run by the archive's workers: processes of this machine, or machines of a cluster.

On this machine a task is run as it is. For a cluster (`[engine] kind = "dask"`), files are named by place,
key and checksum, and travel through the working place (`[work] place`):

    jobs/TIME-TOKEN/            one for each call
      begun                     a worker that cannot see it has another folder at that path
      containers/NAME           containers that are not in the depot yet
      signatures/NAME
      NAME/FILE                 what a worker has written for the container NAME

1. The starter names the container, or copies it to the working place.
2. The worker fetches it, runs the task in a temporary folder, and copies the files that it has written to the
   working place.
3. The starter fetches these files, each with its checksum, to where the task would have written them.
4. Files are removed when their task is done. Those of a starter that was killed are removed after a week.
"""

import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from webdepot import durable
from webdepot.archive import WORK, Archive
from webdepot.depot import places
from webdepot.depot.store import stored_file
from webdepot.depot.store.stored_file import StoredFile
from webdepot.errors import NotFound
from webdepot.ports.engine import Done
from webdepot.times import to_timestamp

_FOLDER, _BEGUN = "jobs/", "begun"
_KEPT_FOR = timedelta(days=7)


class ContainerTask(Protocol):
    """A task about one container that can run on another machine."""

    @property
    def name(self) -> str:
        """The name of the container."""

    def find_result(self) -> Any | None:
        """The result, if it is known already."""

    def elsewhere(self, path: Path, folder: Path, signatures: Path | None) -> Self:
        """In a worker: the same task, for a container at `path`, which writes its files into `folder`."""

    def path_here(self, name: str) -> Path:
        """Where a file with that name belongs that a worker elsewhere has written into its folder."""

    def finish_here(self, result: Any) -> Any:
        """The result of a worker elsewhere, when its files are here."""


Task = TypeVar("Task", bound=ContainerTask)
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteJob:
    """A task as it travels to another machine."""

    function: Callable[[Any], Any]
    task: Any
    container: StoredFile
    signatures: StoredFile | None
    work: str
    """Address of the working place."""
    prefix: str
    """Prefix of the keys of this call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteResult:
    result: Any
    files: Mapping[str, StoredFile]
    """What the worker has written, by name."""


def path_for_task(archive: Archive, name: str) -> Path:
    """The container of a task: its file, or a name if another machine reads it. NotFound if it is lost."""
    return archive.containers.path(name) if archive.cluster is None else Path(name)


def run_tasks(
    archive: Archive,
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    elsewhere: Callable[[Task], Any] | None = None,
    signatures: Path | None = None,
) -> Iterator[Done[Task, Result]]:
    """Outcomes in the order they are ready. On another machine, `elsewhere` is run instead of the function;
    `signatures` is a file that it needs.
    """
    if archive.cluster is None:
        yield from archive.engine.map(function, tasks)
        return
    with _begun(archive) as call:
        jobs = call.jobs(elsewhere or function, tasks, signatures)
        for done in archive.cluster.map(run, jobs):
            job = done.item
            result = None if done.result is None else call.take_back(job.task, done.result)
            call.forget(job, done.result)
            yield Done(job.task, result, done.error)
            yield from call.take_settled()
        yield from call.take_settled()


def run(job: RemoteJob) -> RemoteResult:
    """Run a job in a worker, on any machine."""
    work = places.open_store(WORK, job.work)
    if work.size(job.prefix + _BEGUN) is None:
        raise NotFound(
            f"The working place {job.work} of this machine is not that of the archive. Set [work] place to "
            "an s3:// address, or to a folder that all machines have at the same path."
        )
    with tempfile.TemporaryDirectory(prefix="webdepot-job-") as scratch:
        folder = Path(scratch) / "pass" / "files"
        folder.mkdir(parents=True)
        path = stored_file.local_path(job.container, Path(scratch))
        signatures = stored_file.local_path(job.signatures, Path(scratch)) if job.signatures else None
        result = job.function(job.task.elsewhere(path, folder, signatures))
        files = {
            file.name: stored_file.put(WORK, job.work, f"{job.prefix}{job.task.name}/{file.name}", file)
            for file in sorted(folder.iterdir())
        }
    return RemoteResult(result=result, files=files)


@contextmanager
def _begun(archive: Archive) -> Iterator["_Call"]:
    now = archive.clock()
    prefix = f"{_FOLDER}{to_timestamp(now)}-{secrets.token_hex(6)}/"
    work = archive.work
    oldest = f"{_FOLDER}{to_timestamp(now - _KEPT_FOR)}"
    for key in [key for key in work.keys(_FOLDER) if key < oldest]:
        work.delete(key)
    work.put(prefix + _BEGUN, BytesIO(b""))
    try:
        yield _Call(archive, prefix)
    finally:
        for key in list(work.keys(prefix)):
            work.delete(key)


class _Call:
    """One call of `run_tasks`, on the machine that started it."""

    def __init__(self, archive: Archive, prefix: str) -> None:
        self._archive = archive
        self._prefix = prefix
        self._settled: list[Done[Any, Any]] = []
        """Tasks that nobody has to run: their result is known, or their container is lost."""

    def jobs(
        self, function: Callable[[Any], Any], tasks: Iterable[Any], signatures: Path | None
    ) -> Iterator[RemoteJob]:
        shared = self._put("signatures", signatures) if signatures else None
        for task in tasks:
            if (known := task.find_result()) is not None:
                self._settled.append(Done(task, known))
                continue
            try:
                container = self._archive.find_stored(task.name) or self._put(
                    "containers", self._archive.containers.path(task.name)
                )
            except NotFound as error:
                self._settled.append(Done(task, None, str(error)))
                continue
            yield RemoteJob(
                function=function,
                task=task,
                container=container,
                signatures=shared,
                work=self._archive.work_address,
                prefix=self._prefix,
            )

    def take_settled(self) -> list[Done[Any, Any]]:
        settled, self._settled = self._settled, []
        return settled

    def take_back(self, task: ContainerTask, done: RemoteResult) -> Any:
        for name, file in done.files.items():
            path = task.path_here(name)
            durable.make_folders(path.parent)
            stored_file.fetch(file, path)
        return task.finish_here(done.result)

    def forget(self, job: RemoteJob, done: RemoteResult | None) -> None:
        work = self._archive.work
        keys = [file.key for file in done.files.values()] if done else []
        for key in (*keys, job.container.key):
            if key.startswith(self._prefix):
                work.delete(key)

    def _put(self, kind: str, path: Path) -> StoredFile:
        return stored_file.put(WORK, self._archive.work_address, f"{self._prefix}{kind}/{path.name}", path)
