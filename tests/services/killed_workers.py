"""Workers that are killed in the middle of a job: processes that end themselves with SIGKILL when a function is
called for the nth time.
"""

import importlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from webdepot.archive import Archive
from webdepot.engine import job_queue
from webdepot.engine.job_queue import QueuedJob
from webdepot.selection import target_batches
from webdepot.services.jobs.worker import Worker


def killed_in(home: Path, function: str, *, call: int = 1, batch: int = 0) -> None:
    """Let a worker run the jobs that wait, until it calls `module:name` for the nth time. `batch` is how many
    sites it changes in a transaction.
    """
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=_work, args=(home, function, call, batch))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL, f"{function} was not called: {process.exitcode}"
    process.close()


def _work(home: Path, function: str, call: int, batch: int) -> None:
    target_batches.BATCH = batch or target_batches.BATCH
    module_name, _, name = function.partition(":")
    module = importlib.import_module(module_name)
    real: Callable[..., Any] = getattr(module, name)
    calls = 0

    def kill_at_last(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given, **named)

    setattr(module, name, kill_at_last)
    with Archive.open(home) as archive:
        Worker(archive).run(threading.Event(), until_idle=True)


def finish(archive: Archive, job: QueuedJob) -> QueuedJob:
    """Run the job again after the lease of the killed worker, by another one."""
    with archive.database.reading() as connection:
        held = job_queue.get(connection, job.id)
    assert held.state is job_queue.JobState.RUNNING and held.holder
    assert held.lease_ends_at is not None
    Worker(archive).run(threading.Event(), until_idle=True)
    with archive.database.reading() as connection:
        assert job_queue.get(connection, job.id).holder == held.holder, "the lease protects it"
    later = max(held.lease_ends_at, archive.clock()) + timedelta(seconds=1)
    archive.clock, clock = (lambda: later), archive.clock
    try:
        Worker(archive).run(threading.Event(), until_idle=True)
    finally:
        archive.clock = clock
    with archive.database.reading() as connection:
        done = job_queue.get(connection, job.id)
    assert done.tries == 2
    return done


def run_jobs(archive: Archive) -> None:
    """Run all jobs that wait."""
    Worker(archive).run(threading.Event(), until_idle=True)


def until(ask: Callable[[], object], *, at_most_s: float = 60) -> None:
    end_s = time.monotonic() + at_most_s
    while not ask():
        assert time.monotonic() < end_s
        time.sleep(0.02)
