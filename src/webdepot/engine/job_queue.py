"""Jobs: long-running work that a person started, as rows of the database. Any worker on any machine may take
one.

    add ─> waiting ─ take (lease) ─> running ─ finish ─> done
             │  ^                      │  └──── fail ──> failed
             │  └───── give back ──────┘
             └─ cancel ─> cancelled

A worker holds a lease (`webdepot.leases`) and writes progress while it works. Everything it writes about a
job names it as the holder, so a worker that lost its lease can no longer change anything: it gets `JobLost`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from webdepot import leases
from webdepot.engine.tables import jobs
from webdepot.errors import NotFound
from webdepot.reasons import said
from webdepot.states import Machine, Step

ROWS = 50
_LEASED = "job"
"""The kind of these leases."""
CATCH_UP = "index"
"""The kind of job that the indexer adds itself while the search server does not answer."""
MOST_TRIES = 3
"""A job whose workers were killed this often is not repeated: it may be the cause."""


class JobState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


_J = JobState
JOB = Machine(
    noun="job",
    steps=(
        Step(act="add", before=(), after=_J.WAITING, meaning="A person started it in the portal."),
        Step(act="take", before=(_J.WAITING,), after=_J.RUNNING, meaning="A worker takes it, with a lease."),
        Step(act="finish", before=(_J.RUNNING,), after=_J.DONE, meaning="It has ended; its result is kept."),
        Step(
            act="give back",
            before=(_J.RUNNING,),
            after=_J.WAITING,
            meaning="Its worker stopped or was killed. The next one continues or repeats it.",
        ),
        Step(
            act="fail",
            before=(_J.RUNNING,),
            after=_J.FAILED,
            meaning=f"It could not be done, or its worker was killed {MOST_TRIES} times.",
        ),
        Step(
            act="cancel",
            before=(_J.WAITING,),
            after=_J.CANCELLED,
            meaning="A person cancelled it before it began.",
        ),
    ),
)
OPEN = (JobState.WAITING, JobState.RUNNING)


class JobLost(BaseException):
    """The lease of this worker has ended, or the worker must stop: the job belongs to the next one. Not an
    `Exception`, so that no work takes it for a failure of its own.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    id: int
    kind: str
    subject: str
    arguments: Mapping[str, Any]
    needs: str
    state: JobState
    progress: Mapping[str, Any]
    result: Mapping[str, Any]
    reason: str
    """Why it failed."""
    by: str
    tries: int
    holder: str
    lease_ends_at: datetime | None
    created_at: datetime
    began_at: datetime | None
    ended_at: datetime | None

    @property
    def is_open(self) -> bool:
        return self.state in OPEN


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    rows: Sequence[QueuedJob]
    has_more: bool


def add(
    connection: Connection,
    kind: str,
    subject: str,
    arguments: Mapping[str, Any],
    *,
    by: str,
    now: datetime,
    needs: str = "",
) -> tuple[QueuedJob, bool]:
    """A new job; or the open one of this kind for this subject. The second value says whether it is new."""
    latest = find_latest(connection, kind, subject)
    if latest is not None and latest.is_open:
        return latest, False
    values = {
        "kind": kind,
        "subject": subject,
        "arguments": dict(arguments),
        "needs": needs,
        "state": JOB.after(None, "add", "job").value,
        "progress": {},
        "result": {},
        "reason": "",
        "by": by[:200],
        "tries": 0,
        "holder": "",
        "created_at": now,
    }
    row = connection.execute(insert(jobs).values(**values).returning(jobs)).mappings().one()
    return _job(row), True


def get(connection: Connection, number: int) -> QueuedJob:
    row = connection.execute(select(jobs).where(jobs.c.id == number)).mappings().one_or_none()
    if row is None:
        raise NotFound(
            said("no_job", "There is no job {number}. List them: webdepot job list", number=str(number))
        )
    return _job(row)


def find_latest(connection: Connection, kind: str, subject: str) -> QueuedJob | None:
    """The newest job of this kind for this subject."""
    chosen = (
        select(jobs).where(jobs.c.kind == kind, jobs.c.subject == subject).order_by(jobs.c.id.desc()).limit(1)
    )
    row = connection.execute(chosen).mappings().one_or_none()
    return _job(row) if row is not None else None


def newest(
    connection: Connection, *, kinds: Collection[str] = (), limit: int = ROWS, only_open: bool = False
) -> list[QueuedJob]:
    """Jobs of these kinds, or of all, the newest first."""
    chosen = select(jobs).order_by(jobs.c.id.desc()).limit(limit)
    if kinds:
        chosen = chosen.where(jobs.c.kind.in_(list(kinds)))
    if only_open:
        chosen = chosen.where(jobs.c.state.in_([state.value for state in OPEN]))
    return [_job(row) for row in connection.execute(chosen).mappings()]


def listing(connection: Connection, state: JobState | None, *, page: int = 1) -> JobPage:
    """One page of jobs, the newest first."""
    chosen = select(jobs).order_by(jobs.c.id.desc()).limit(ROWS + 1).offset((max(page, 1) - 1) * ROWS)
    if state is not None:
        chosen = chosen.where(jobs.c.state == state.value)
    rows = [_job(row) for row in connection.execute(chosen).mappings()]
    return JobPage(rows=rows[:ROWS], has_more=len(rows) > ROWS)


def past(
    connection: Connection, state: JobState | None, *, kind: str = "", last: int | None = None, limit: int
) -> list[QueuedJob]:
    """The next jobs, newest first, after the one with the number `last`."""
    where = [jobs.c.state == state.value] if state else []
    where += [jobs.c.kind == kind] if kind else []
    where += [jobs.c.id < last] if last is not None else []
    chosen = select(jobs).where(*where).order_by(jobs.c.id.desc()).limit(limit)
    return [_job(row) for row in connection.execute(chosen).mappings()]


def counts(connection: Connection) -> dict[JobState, int]:
    grouped = select(jobs.c.state, func.count()).group_by(jobs.c.state)
    known = {JobState(state): count for state, count in connection.execute(grouped)}
    return {state: known.get(state, 0) for state in JobState}


def open_jobs(connection: Connection) -> list[QueuedJob]:
    """Waiting and running jobs, the oldest first."""
    chosen = select(jobs).where(jobs.c.state.in_([state.value for state in OPEN])).order_by(jobs.c.id)
    return [_job(row) for row in connection.execute(chosen).mappings()]


def take(
    connection: Connection,
    now: datetime,
    *,
    holder: str,
    lease: timedelta,
    limit: int,
    can_run: Callable[[QueuedJob], bool],
) -> list[QueuedJob]:
    """Take up to `limit` waiting jobs that this worker can run, the oldest first."""
    waiting = [job for job in open_jobs(connection) if job.state is JobState.WAITING and can_run(job)]
    values = {"state": JobState.RUNNING.value, "holder": holder, "lease_ends_at": now + lease}
    taken = []
    for job in waiting[:limit]:
        changed = (
            update(jobs)
            .where(jobs.c.id == job.id)
            .values(**values, tries=job.tries + 1, began_at=job.began_at or now)
            .returning(jobs)
        )
        taken.append(_job(connection.execute(changed).mappings().one()))
        leases.note_taken(connection, _LEASED, str(job.id), taken_by=holder)
    return taken


def renew(connection: Connection, numbers: Sequence[int], *, holder: str, until: datetime) -> list[int]:
    """Renew leases; returns the jobs that are still held."""
    return leases.renew(connection, jobs, numbers, holder=holder, until=until, state=JobState.RUNNING.value)


def save(connection: Connection, job: QueuedJob, progress: Mapping[str, Any]) -> None:
    """Store how far a job is, in the transaction of its own work; `JobLost` if it is no longer held."""
    _change(connection, job, {"progress": dict(progress)})


def finish(connection: Connection, job: QueuedJob, result: Mapping[str, Any], now: datetime) -> None:
    _end(connection, job, "finish", now, {"result": dict(result)})


def fail(
    connection: Connection,
    job: QueuedJob,
    reason: str,
    now: datetime,
    result: Mapping[str, Any] | None = None,
) -> None:
    _end(connection, job, "fail", now, {"reason": reason, "result": dict(result or {})})


def give_back(connection: Connection, job: QueuedJob) -> None:
    """Put a job that its holder did not finish back into the queue. It does not count as a try."""
    state = JOB.after(job.state, "give back", f"Job {job.id}")
    values = {"state": state.value, "holder": "", "lease_ends_at": None, "tries": max(job.tries - 1, 0)}
    _change(connection, job, values)


def cancel(connection: Connection, number: int, now: datetime, *, by: str) -> QueuedJob:
    """Cancel a job that no worker has taken yet; Conflict otherwise."""
    job = get(connection, number)
    state = JOB.after(job.state, "cancel", f"Job {number}")
    reason = said("job_cancelled", "cancelled by {name}", name=by)
    values = {"state": state.value, "ended_at": now, "reason": reason}
    connection.execute(update(jobs).where(jobs.c.id == number).values(**values))
    return get(connection, number)


def forget(connection: Connection, *, before: datetime) -> None:
    """Remove the jobs that ended before then."""
    connection.execute(delete(jobs).where(jobs.c.ended_at < before))


def give_back_abandoned(connection: Connection, now: datetime) -> list[QueuedJob]:
    """Put the jobs of workers that were killed back into the queue. A job that was started too often fails.
    Returns all of them.
    """
    running = [job for job in open_jobs(connection) if job.state is JobState.RUNNING]
    abandoned = [job for job in running if leases.is_expired(job.lease_ends_at, now)]
    for job in abandoned:
        leases.note_lost(connection, _LEASED, str(job.id), lost_by=job.holder, now=now)
        if job.tries >= MOST_TRIES:
            text = "its worker stopped {tries} times without finishing it"
            fail(connection, job, said("job_killed", text, tries=job.tries), now)
        else:
            values = {"state": JobState.WAITING.value, "holder": "", "lease_ends_at": None}
            _change(connection, job, values)
    return abandoned


def _end(connection: Connection, job: QueuedJob, act: str, now: datetime, values: Mapping[str, Any]) -> None:
    state = JOB.after(job.state, act, f"Job {job.id}")
    ended = {"state": state.value, "holder": "", "lease_ends_at": None, "ended_at": now}
    _change(connection, job, ended | dict(values))


def _change(connection: Connection, job: QueuedJob, values: Mapping[str, Any]) -> None:
    held = (jobs.c.id == job.id, jobs.c.holder == job.holder, jobs.c.state == JobState.RUNNING.value)
    if connection.execute(update(jobs).where(*held).values(**values)).rowcount == 0:
        raise JobLost(f"Job {job.id} is no longer held by {job.holder}")


def _job(row: RowMapping) -> QueuedJob:
    return QueuedJob(**{**row, "state": JobState(row["state"])})
