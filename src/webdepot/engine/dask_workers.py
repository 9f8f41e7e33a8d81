"""Workers of a Dask cluster on this machine, which `webdepot batch` runs in addition to its jobs.

A child process is Dask's own program: it watches over the workers, and starts one again that dies. Dask ends
it when the scheduler is away for long; it is started again here until that answers. It ends with us, even if
we are killed.
"""

import logging
import multiprocessing
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from webdepot import durable
from webdepot.engine.process_pool import die_with_the_parent

log = logging.getLogger(__name__)
_START_AGAIN_S = 2.0
_SHUTDOWN_WAIT_S = 15.0


@contextmanager
def running(scheduler: str, folder: Path, *, count: int) -> Iterator[None]:
    """Run `count` workers of this scheduler in the block. The folder is for files that can be lost."""
    stop = threading.Event()
    durable.make_folders(folder)
    arguments = [scheduler, "--nworkers", str(count), "--nthreads", "1", "--no-dashboard"]
    thread = threading.Thread(
        target=_keep_running,
        args=([*arguments, "--local-directory", str(folder)], stop),
        name="dask-workers",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _keep_running(arguments: list[str], stop: threading.Event) -> None:
    processes = multiprocessing.get_context("spawn")
    while not stop.is_set():
        process = processes.Process(target=_work, args=(arguments,), name="dask-workers")
        process.start()
        while process.is_alive() and not stop.wait(0.2):
            pass
        if process.is_alive():
            process.terminate()
            process.join(_SHUTDOWN_WAIT_S)
            process.kill()
        process.join()
        if not stop.is_set():
            log.warning("the Dask workers have ended; they are started again")
            stop.wait(_START_AGAIN_S)


def _work(arguments: list[str]) -> None:
    from distributed.cli.dask_worker import main

    die_with_the_parent()
    main(arguments, standalone_mode=False)
    os._exit(0)


def default_count() -> int:
    """One worker for each processor that this process may use."""
    return len(os.sched_getaffinity(0))
