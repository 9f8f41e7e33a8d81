"""What the machines of an archive do now: processes, parts of harvests, jobs, what died and who took over."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from webdepot import leases
from webdepot.archive import Archive
from webdepot.engine import job_queue, process_rows
from webdepot.engine.job_queue import JobState, QueuedJob
from webdepot.engine.process_rows import WorkerRow
from webdepot.errors import RemoteError
from webdepot.harvest.parts import harvester_rows, part_rows
from webdepot.harvest.parts.harvester_rows import HarvesterRow
from webdepot.harvest.parts.part_rows import PartRow, PartState
from webdepot.leases import Takeover
from webdepot.selection import scheduled_harvests
from webdepot.selection.scheduled_harvests import Turn
from webdepot.services.index import visible_harvests

_TAKEOVERS = 20
ALIVE_S = 30.0
"""A harvester that was seen since then counts as alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenWorker:
    row: WorkerRow
    seen_s: float
    is_alive: bool
    jobs: Sequence[QueuedJob]
    """What it works on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    now: datetime
    is_shared: bool
    """Whether the database is on a server, so that processes show themselves."""
    workers: Sequence[SeenWorker]
    harvesters: Sequence[HarvesterRow]
    parts: Sequence[tuple[str, PartRow]]
    """Parts of harvests with the id of their harvest."""
    lease_s: float
    """Time after which the part of a silent harvester is taken over."""
    waiting: Sequence[QueuedJob]
    running: Sequence[QueuedJob]
    turns: Sequence[Turn]
    """Scheduled harvests that run."""
    not_indexed: int
    without_words: int
    takeovers: Sequence[Takeover]

    @property
    def lacks_places(self) -> bool:
        """Whether parts wait although every living harvester already runs its maximum."""
        is_waiting = any(
            part.state is PartState.WAITING or (part.state is PartState.RUNNING and not part.is_live)
            for _, part in self.parts
        )
        free = sum(each.places - each.running for each in self.harvesters if each.seen_s < ALIVE_S)
        return is_waiting and free <= 0


def look(archive: Archive) -> Machines:
    """The state of this moment."""
    now = archive.clock()
    is_shared = bool(archive.config.database.url)
    with archive.database.reading() as connection:
        known = job_queue.open_jobs(connection)
        processes = [_seen(row, now, known) for row in process_rows.every(connection)]
        turns = scheduled_harvests.held(connection)
        takeovers = leases.latest_takeovers(connection, _TAKEOVERS)
        # Their times are those of the database server, so they can only be asked there.
        harvesters = harvester_rows.every(connection) if is_shared else []
        parts = _parts(connection) if is_shared else []
    containers = visible_harvests.count_containers(archive)
    indexed = sum(1 for _ in archive.captures.containers())
    return Machines(
        now=now,
        is_shared=is_shared,
        workers=processes,
        harvesters=harvesters,
        parts=parts,
        lease_s=archive.config.cluster.lease_s,
        waiting=[job for job in known if job.state is JobState.WAITING],
        running=[job for job in known if job.state is JobState.RUNNING],
        turns=turns,
        not_indexed=max(containers - indexed, 0),
        without_words=max(containers - _with_words(archive, containers), 0),
        takeovers=takeovers,
    )


def _with_words(archive: Archive, containers: int) -> int:
    try:
        return len(archive.texts.containers())
    except RemoteError:  # the server of the index is away: nothing is known
        return containers


def alive(connection: Connection, now: datetime) -> list[WorkerRow]:
    """Processes that were seen recently."""
    return [row for row in process_rows.every(connection) if row.is_alive(now)]


def _seen(row: WorkerRow, now: datetime, known: Sequence[QueuedJob]) -> SeenWorker:
    return SeenWorker(
        row=row,
        seen_s=max((now - row.seen_at).total_seconds(), 0.0),
        is_alive=row.is_alive(now),
        jobs=[job for job in known if job.holder == row.name],
    )


def _parts(connection: Connection) -> list[tuple[str, PartRow]]:
    harvests = sorted(part_rows.harvests_of(connection))
    return [(harvest, part) for harvest in harvests for part in part_rows.of_harvest(connection, harvest)]
