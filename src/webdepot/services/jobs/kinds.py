"""The kinds of jobs, and why a worker may do each again. What it does is in `work.py`, which is loaded with
the first job: a portal for readers does not need it.

A worker may be killed at any moment, and the next one starts the same job again. So each kind either stores
how far it is in the transactions of its work, or calls a service that can be repeated.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from webdepot.archive import Archive
from webdepot.engine import job_queue
from webdepot.engine.job_queue import QueuedJob
from webdepot.errors import NotFound
from webdepot.harvest import harvest_rows
from webdepot.model import HarvestId, HarvestState
from webdepot.services.harvest import harvests

AUDIT = "audit"
FILL = "fill"
BULK = "bulk"
IMPORT = "import"
SURVEY = "survey"
PARTNER = "partner"
CRAWL_TEST = "crawl test"
ACCEPT = "accept"
PATCH = "patch"
PICTURES = "pictures"
END_HARVEST = "end harvest"
INDEX = job_queue.CATCH_UP


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    repeats: str
    """Why it may be started again after its worker was killed."""
    ends_folder: bool = False
    """Whether it works on a harvest, whose working folder is removed when it is in the depot."""
    can_fetch: bool = False
    """Whether it can work without that folder, if harvesters ran the harvest."""


KINDS: Mapping[str, JobKind] = {
    BULK: JobKind(repeats="Each batch of sites stores in its transaction how far the run is."),
    AUDIT: JobKind(repeats="Copies that were read since the job was added are not read again."),
    FILL: JobKind(repeats="Packages that the place already has are not copied again."),
    IMPORT: JobKind(
        repeats="The uploaded files stay until the end; files that were imported are recognised."
    ),
    SURVEY: JobKind(repeats="Profile and verdicts replace those of the survey before."),
    PARTNER: JobKind(repeats="The list continues where it was; objects that were taken over are known."),
    CRAWL_TEST: JobKind(repeats="Nothing of a test crawl is kept; it starts again."),
    ACCEPT: JobKind(
        repeats="The decision is recorded once; deposit and index are continued.",
        ends_folder=True,
        can_fetch=True,
    ),
    PATCH: JobKind(repeats="The unfinished patch of the harvest is continued.", ends_folder=True),
    PICTURES: JobKind(repeats="The pictures replace earlier ones.", ends_folder=True),
    END_HARVEST: JobKind(
        repeats="The harvest continues from the state that it is in.", ends_folder=True, can_fetch=True
    ),
    INDEX: JobKind(repeats="Containers that are in both indexes are not read again."),
}


def can_run(archive: Archive, job: QueuedJob) -> bool:
    """Whether a worker with this home can run a job: it knows the kind, and has the files."""
    kind = KINDS.get(job.kind)
    if kind is None:
        return False
    if not job.needs or (archive.home / job.needs).exists():
        return True
    return kind.ends_folder and _needs_no_folder(archive, job.subject, can_fetch=kind.can_fetch)


def _needs_no_folder(archive: Archive, number: str, *, can_fetch: bool) -> bool:
    with archive.database.reading() as connection:
        try:
            harvest = harvest_rows.get(connection, HarvestId(number))
        except NotFound:
            return False
    return harvest.state is HarvestState.KEPT or (can_fetch and bool(harvests.parts_of(archive, harvest)))


def clean_up(archive: Archive, job: QueuedJob) -> None:
    """Remove what only this job needed, when it has ended or was cancelled: the files of an upload."""
    if job.kind == IMPORT and job.needs.startswith("uploads/"):
        shutil.rmtree(archive.home / job.needs, ignore_errors=True)
