"""Long-running work that a page starts: a job in the database, which a worker of any machine runs. By default
the portal has a worker itself.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection
from starlette.applications import Starlette
from starlette.requests import Request

from webdepot.archive import Archive
from webdepot.engine.job_queue import QueuedJob
from webdepot.services.jobs import job_control
from webdepot.services.jobs.worker import Worker
from webdepot.web.language import wording
from webdepot.web.site import language_of, name_of, of_app, shared_of, site_of


class PortalWorker:
    """The worker of this portal. `serve` runs it until the server stops; without a server, as in tests, it
    runs as long as there are jobs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._worker: Worker | None = None

    def start(self, archive: Archive, *, until_idle: bool = False) -> None:
        """Run jobs in a thread, unless the configuration leaves them to `webdepot batch`."""
        with self._lock:
            if not archive.config.jobs.in_server or self._stop.is_set():
                return
            if self._thread is None or not self._thread.is_alive():
                self._worker = Worker(archive)
                self._thread = threading.Thread(
                    target=self._run, args=(self._worker, until_idle), name="worker", daemon=True
                )
                self._thread.start()
            elif self._worker is not None:
                self._worker.wake()

    def stop(self) -> None:
        """End running jobs at their next sign of progress; they continue when a worker runs again."""
        self._stop.set()
        with self._lock:
            thread, worker = self._thread, self._worker
        if thread is not None and worker is not None:
            worker.wake()
            thread.join()

    def _run(self, worker: Worker, until_idle: bool) -> None:
        while True:
            worker.run(self._stop, until_idle=until_idle)
            with self._lock:
                if self._stop.is_set() or not worker.is_woken:  # otherwise a job came at the last moment
                    self._thread = None
                    return


def start_worker(portal: Starlette, archive: Archive) -> None:
    shared_of(portal, PortalWorker).start(archive)


def stop_worker(portal: Starlette) -> None:
    shared_of(portal, PortalWorker).stop()


def start_job(
    request: Request,
    kind: str,
    subject: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    needs: str = "",
    note: Callable[[Connection], None] = job_control.note_nothing,
) -> QueuedJob:
    """Start long-running work for the person who is signed in. If there is an open job of this kind for this
    subject, that one; `note` is called in the transaction that adds a new one.
    """
    archive = site_of(request).archive
    job = job_control.add(archive, kind, subject, arguments, by=name_of(request), needs=needs, note=note)
    of_app(request, PortalWorker).start(archive, until_idle=True)
    return job


def error_of(request: Request, job: QueuedJob | None) -> str:
    """Why a job failed, in the reader's language; empty if it did not."""
    return wording.of_reason(language_of(request), job.reason) if job is not None else ""
