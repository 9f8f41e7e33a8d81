"""The worker: takes jobs and runs them, a few at a time, each in a thread with an archive of its own.

One runs in `webdepot serve`, others as `webdepot batch` on any machine that has the home, the depot and the
database. While nothing is committed anywhere, it does not query the database. A worker that is stopped lets
its jobs end the next time they report progress, and gives them back; after a kill their leases expire.
"""

import logging
import threading
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

from webdepot import leases
from webdepot.archive import Archive
from webdepot.engine import job_queue
from webdepot.engine.job_queue import JobLost, JobState, QueuedJob
from webdepot.errors import WebdepotError
from webdepot.reasons import said
from webdepot.services.jobs import kinds
from webdepot.services.jobs.task import JobTask

log = logging.getLogger(__name__)
_LOOK_EVERY_S = 1.0
_REPORT_EVERY_S = 2.0
_SHUTDOWN_WAIT_S = 5.0


class Worker:
    """Runs jobs of an archive. One thread calls `run`; any thread may call `wake`."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._config = archive.config.jobs
        self._holder = leases.name_holder()
        self._running: dict[int, tuple[JobTask, threading.Thread]] = {}
        self._wake = threading.Event()
        self._reported_s = self._renewed_s = time.monotonic()

    def wake(self) -> None:
        """Look for jobs now."""
        self._wake.set()

    @property
    def is_woken(self) -> bool:
        """Whether it was woken and has not looked since."""
        return self._wake.is_set()

    def run(self, stop: threading.Event, *, until_idle: bool = False) -> None:
        """Work until stopped, or until there is nothing that this worker can do. What fails is logged, and
        tried again.
        """
        while not stop.is_set():
            self._wake.clear()
            try:
                self.run_once()
                if until_idle and not self._running:
                    break
            except WebdepotError as error:
                log.warning("the worker could not look for jobs", extra={"error": str(error)})
            except Exception:
                log.exception("the worker failed; it continues")
            self._drop_expired()
            self._wake.wait(_LOOK_EVERY_S)
        self.close()

    def run_once(self) -> None:
        """Renew leases, store progress, and start jobs while places are free."""
        for number, (_, thread) in list(self._running.items()):
            if not thread.is_alive():
                thread.join()
                del self._running[number]
        self._report()
        for job in self._take():
            task = JobTask(job)
            thread = threading.Thread(target=self._work, args=(task,), name=f"job-{job.id}", daemon=True)
            self._running[job.id] = task, thread
            thread.start()

    @property
    def running(self) -> int:
        return len(self._running)

    def close(self) -> None:
        """End running jobs the next time they report progress. The next worker continues them. One that does
        not report progress ends with this process.
        """
        for task, _ in self._running.values():
            task.end()
        until_s = time.monotonic() + _SHUTDOWN_WAIT_S
        for task, thread in self._running.values():
            thread.join(max(until_s - time.monotonic(), 0.0))
            if thread.is_alive():
                with suppress(JobLost), self._archive.database.transaction() as connection:
                    job_queue.give_back(connection, task.job)
        self._running.clear()

    def _report(self) -> None:
        """Renew the leases of running jobs, and store their progress."""
        lease_s, now_s = self._config.lease_s, time.monotonic()
        has_news = any(task.has_changed for task, _ in self._running.values())
        pause_s = min(_REPORT_EVERY_S, lease_s / 3) if has_news else lease_s / 3
        if not self._running or now_s - self._reported_s < pause_s:
            return
        until = self._archive.clock() + timedelta(seconds=lease_s)
        with self._archive.database.transaction() as connection:
            held = set(job_queue.renew(connection, list(self._running), holder=self._holder, until=until))
            for number, (task, _) in self._running.items():
                if number in held:
                    task.store_progress(connection)
        self._reported_s = self._renewed_s = now_s
        for number in set(self._running) - held:
            task, thread = self._running[number]
            if thread.is_alive():  # otherwise it has just ended by itself
                task.end()

    def _drop_expired(self) -> None:
        """End all work if the leases could not be renewed in time: another worker may have it."""
        if self._running and time.monotonic() - self._renewed_s > self._config.lease_s:
            for task, _ in self._running.values():
                task.end()

    def _take(self) -> list[QueuedJob]:
        free = self._config.at_once - len(self._running)
        now = self._archive.clock()
        known = self._archive.database.remembered("open jobs", job_queue.open_jobs)
        is_abandoned = any(
            job.state is JobState.RUNNING and leases.is_expired(job.lease_ends_at, now) for job in known
        )
        is_waiting = any(job.state is JobState.WAITING and self._can_run(job) for job in known)
        if not is_abandoned and not (is_waiting and free > 0):
            return []
        lease = timedelta(seconds=self._config.lease_s)
        with self._archive.database.transaction() as connection:
            for job in job_queue.give_back_abandoned(connection, now):
                log.warning("the worker of a job stopped responding", extra={"job": job.id, "kind": job.kind})
            taken = job_queue.take(
                connection, now, holder=self._holder, lease=lease, limit=max(free, 0), can_run=self._can_run
            )
        self._renewed_s = self._reported_s = time.monotonic() if not self._running else self._renewed_s
        return taken

    def _can_run(self, job: QueuedJob) -> bool:
        return kinds.can_run(self._archive, job)

    def _work(self, task: JobTask) -> None:
        archive, job = self._archive, task.job
        try:
            with Archive.open(archive.home, clock=archive.clock, agent=job.by or archive.agent) as own:
                self._run_in(own, task)
        except JobLost:
            log.info("another worker has taken over a job", extra={"job": job.id, "kind": job.kind})
        except Exception:  # the database is away, for example: the lease expires
            log.exception("a job could not be ended", extra={"job": job.id, "kind": job.kind})
        finally:
            self._wake.set()

    def _run_in(self, archive: Archive, task: JobTask) -> None:
        from webdepot.services.jobs import work

        job, reason, result = task.job, "", dict[str, Any]()
        try:
            result = dict(work.RUNS[job.kind](archive, task))
        except JobLost:
            with archive.database.transaction() as connection:
                job_queue.give_back(connection, job)
            return
        except (WebdepotError, OSError) as error:
            reason = error.args[0] if isinstance(error, WebdepotError) and error.args else str(error)
            result = {"http_status": error.http_status} if isinstance(error, WebdepotError) else {}
        except Exception:
            log.exception("a job failed", extra={"job": job.id, "kind": job.kind})
            text = "The program failed. The log has the details; please inform the administrators."
            reason = said("job_broken", text)
        with archive.database.transaction() as connection:
            if reason:
                job_queue.fail(connection, job, reason, archive.clock(), result)
            else:
                job_queue.finish(connection, job, result, archive.clock())
        kinds.clean_up(archive, job)
