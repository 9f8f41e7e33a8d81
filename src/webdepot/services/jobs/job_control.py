"""Jobs for pages and commands: add one, look at it, wait for it for a moment, cancel it."""

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.engine import job_queue
from webdepot.engine.job_queue import JobPage, JobState, QueuedJob
from webdepot.harvest import harvest_rows
from webdepot.model import HarvestId, HarvestState
from webdepot.provenance import append, difference
from webdepot.services.jobs import kinds

_LOOK_EVERY_S = 0.03


def note_nothing(_connection: Connection) -> None:
    """For callers who have nothing to note."""


def add(
    archive: Archive,
    kind: str,
    subject: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    by: str,
    needs: str = "",
    note: Callable[[Connection], None] = note_nothing,
) -> QueuedJob:
    """A job that a worker will take; the open one of this kind for this subject, if there is one. `note` is
    called in the transaction that adds a new one.
    """
    with archive.database.transaction() as connection:
        job, is_new = job_queue.add(
            connection, kind, subject, arguments or {}, by=by, now=archive.clock(), needs=needs
        )
        if is_new:
            note(connection)
    return job


def add_end(archive: Archive, harvest: str) -> None:
    """Have a worker end a harvest that harvesters have done, and whose own process was killed. Not again if
    that failed: a person decides then.
    """
    with archive.database.reading() as connection:
        is_running = harvest_rows.get(connection, HarvestId(harvest)).state is HarvestState.RUNNING
        latest = job_queue.find_latest(connection, kinds.END_HARVEST, harvest)
    if is_running and (latest is None or latest.state not in (JobState.FAILED, *job_queue.OPEN)):
        add(archive, kinds.END_HARVEST, harvest, by="harvester")


def get(archive: Archive, number: int) -> QueuedJob:
    with archive.database.reading() as connection:
        return job_queue.get(connection, number)


def find(archive: Archive, kind: str, subject: str) -> QueuedJob | None:
    """The newest job of this kind for this subject."""
    with archive.database.reading() as connection:
        return job_queue.find_latest(connection, kind, subject)


def newest(archive: Archive, *kinds: str, limit: int = job_queue.ROWS) -> list[QueuedJob]:
    """The newest jobs of these kinds."""
    with archive.database.reading() as connection:
        return job_queue.newest(connection, kinds=kinds, limit=limit)


def list_page(archive: Archive, state: JobState | None, *, page: int = 1) -> JobPage:
    with archive.database.reading() as connection:
        return job_queue.listing(connection, state, page=page)


def list_past(
    archive: Archive, state: JobState | None, *, kind: str = "", last: int | None = None, limit: int
) -> list[QueuedJob]:
    """The next jobs, the newest first, after the one with the number `last`."""
    with archive.database.reading() as connection:
        return job_queue.past(connection, state, kind=kind, last=last, limit=limit)


def running(jobs: Collection[QueuedJob]) -> list[str]:
    """The subjects of the open jobs among these."""
    return sorted({job.subject for job in jobs if job.is_open})


def last_errors(jobs: Collection[QueuedJob]) -> dict[str, str]:
    """The subjects whose newest job among these failed, with the reason."""
    newest_of: dict[str, QueuedJob] = {}
    for job in sorted(jobs, key=lambda each: each.id):
        newest_of[job.subject] = job
    return {job.subject: job.reason for job in newest_of.values() if job.state is JobState.FAILED}


def wait(archive: Archive, job: QueuedJob, *, at_most_s: float) -> QueuedJob:
    """The job when it has ended, or as it is after that time."""
    until_s = time.monotonic() + at_most_s
    while job.is_open and time.monotonic() < until_s:
        time.sleep(_LOOK_EVERY_S)
        job = get(archive, job.id)
    return job


def cancel(archive: Archive, number: int, *, by: str) -> QueuedJob:
    """Cancel a job that no worker has taken yet; Conflict otherwise."""
    with archive.database.transaction() as connection:
        before = job_queue.get(connection, number)
        job = job_queue.cancel(connection, number, archive.clock(), by=by)
        detail = difference({"state": before.state.value}, {"state": job.state.value})
        event = archive.event(
            "cancelled", "job", str(number), by=by, message=f"{job.kind} {job.subject}".strip(), detail=detail
        )
        append(connection, event)
    return job
