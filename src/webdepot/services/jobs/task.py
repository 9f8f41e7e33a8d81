"""What a job sees while it runs: its arguments, what it had saved before its worker was killed, and a `watch`
that reports its progress.
"""

import threading
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection

from webdepot.engine import job_queue
from webdepot.engine.job_queue import JobLost, QueuedJob
from webdepot.services.progress import Progress

WATCHED = "watched"
"""The key of the last `Progress` in the progress of a job; the others belong to the job itself."""


class JobTask:
    """A job that this process holds. Its work runs in one thread; the worker looks at it from another."""

    def __init__(self, job: QueuedJob) -> None:
        self.job = job
        self.arguments: Mapping[str, Any] = job.arguments
        self.saved: dict[str, Any] = {name: value for name, value in job.progress.items() if name != WATCHED}
        """What earlier attempts saved. A change is stored with the next progress, or by `save`."""
        self._watched: Mapping[str, Any] = {}
        self._is_lost = threading.Event()
        self._has_changed = False

    def watch(self, progress: Progress) -> None:
        """Note how far it is. `JobLost` when the work must end."""
        self.check()
        self._watched = asdict(progress)
        self._has_changed = True

    def check(self) -> None:
        """`JobLost` if this worker must not continue."""
        if self._is_lost.is_set():
            raise JobLost(f"Job {self.job.id} ends here")

    def wait(self, seconds: float) -> None:
        """Wait for something outside. `JobLost` when the work must end meanwhile."""
        self._is_lost.wait(seconds)
        self.check()

    def save(self, connection: Connection, **values: Any) -> None:
        """Store values in the transaction that did the work they describe: it happens once, whatever is
        killed. `JobLost`, and nothing of it happens, if another worker has the job.
        """
        self.saved |= values
        job_queue.save(connection, self.job, self._progress())

    def store_progress(self, connection: Connection) -> None:
        """Store what was noted since the last time."""
        if self._has_changed:
            self._has_changed = False
            job_queue.save(connection, self.job, self._progress())

    @property
    def has_changed(self) -> bool:
        return self._has_changed

    def end(self) -> None:
        """Let the work end the next time it reports progress."""
        self._is_lost.set()

    def _progress(self) -> dict[str, Any]:
        return self.saved | ({WATCHED: dict(self._watched)} if self._watched else {})
