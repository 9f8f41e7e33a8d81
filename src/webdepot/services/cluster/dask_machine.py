"""The part of this machine in a Dask cluster: the workers that `webdepot batch` runs for the archive."""

from collections.abc import Iterator
from contextlib import contextmanager

from webdepot.archive import Archive
from webdepot.engine import dask_workers


@contextmanager
def running_workers(archive: Archive, count: int | None) -> Iterator[None]:
    """Run this many workers in the block, by default one for each processor; none if the archive does not
    use Dask.
    """
    config = archive.config.engine
    count = dask_workers.default_count() if count is None else count
    if config.kind != "dask" or not count:
        yield
        return
    with dask_workers.running(config.scheduler, archive.home / "cache" / "dask", count=count):
        yield
