"""Identify the files of a harvest or an import while it runs: each container as soon as it is sealed.

A sealed container never changes, so what is derived from it (`identification`,
`services.index.derived_files`) is as good as after the end; and nothing of it is visible before the harvest
is deposited and indexed. After a crash or a stop the next run begins with the containers that were not
identified. What fails here is tried again, and reported, by `identification.identify`.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager

from webdepot.archive import Archive
from webdepot.model import Container
from webdepot.services.progress import Phase, Progress, Watch
from webdepot.services.quality import identification


@contextmanager
def identifying(archive: Archive) -> Iterator["EarlyIdentification"]:
    """At the end of the block, containers that are not begun yet are left to `identification.identify`."""
    threads = ThreadPoolExecutor(archive.engine.workers, thread_name_prefix="identify")
    try:
        yield EarlyIdentification(archive, threads)
    finally:
        threads.shutdown(cancel_futures=True)


class EarlyIdentification:
    """Containers that are identified in the background, one by each worker of the archive."""

    def __init__(self, archive: Archive, threads: ThreadPoolExecutor) -> None:
        self._archive = archive
        self._threads = threads
        self._begun: set[Future[None]] = set()

    def add(self, container: Container) -> None:
        """Identify the files of a sealed container; returns at once."""
        self._begun = {each for each in self._begun if not each.done()}
        cores = identification.cores_for_each(self._archive, len(self._begun) + 1)
        self._begun.add(
            self._threads.submit(identification.identify_container, self._archive, container, cores=cores)
        )

    def wait(self, watch: Watch) -> None:
        """Wait until all are identified."""
        total = len(self._begun)
        watch(Progress(phase=Phase.IDENTIFY, done=0, total=total))
        for number, _ in enumerate(as_completed(self._begun), start=1):
            watch(Progress(phase=Phase.IDENTIFY, done=number, total=total))
