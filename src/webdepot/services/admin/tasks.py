"""What waits for a member of staff: the tasks of the dashboard and the counts in the menu.

Each task is one count by an index, so that every page can show them; they are counted again after any commit.
A failed or refused date counts until the site is harvested again, and for three months at most: a list that
never becomes empty is not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, select

from webdepot.archive import Archive
from webdepot.depot import copies
from webdepot.depot.copies import CopyState
from webdepot.harvest.tables import harvests
from webdepot.model import HarvestKind, HarvestState
from webdepot.quality import finding_rows
from webdepot.selection.cases import CaseState
from webdepot.selection.letter_templates import LetterKind
from webdepot.selection.scheduled_harvests import TurnState
from webdepot.selection.states import LetterState, TargetState
from webdepot.selection.tables import cases, letters, schedules, targets, turns

_RECENT = timedelta(days=92)


class TaskKind(StrEnum):
    """Kinds of work, the most urgent first."""

    CASES = "cases"
    DAMAGED = "damaged"
    REVIEW = "review"
    FAILED = "failed"
    REFUSED = "refused"
    STOPPED = "stopped"
    LETTERS = "letters"
    SUGGESTED = "suggested"
    NOMINATED = "nominated"
    JUDGED = "judged"
    LOOK_AGAIN = "look_again"
    SELECTED = "selected"
    UNPLANNED = "unplanned"


class UnderWay(StrEnum):
    """Work in progress that needs no action now."""

    RUNNING = "running"
    CHECKED = "checked"
    DUE = "due"
    DUE_IN_A_DAY = "due_in_a_day"
    LETTERS_OUT = "letters_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    kind: TaskKind
    count: int
    oldest_at: datetime | None
    """Since when the oldest one waits."""

    def days(self, now: datetime) -> int:
        """How many whole days the oldest one has waited."""
        return max((now - self.oldest_at).days, 0) if self.oldest_at else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWork:
    """All tasks, those with something to do first, and what is under way."""

    tasks: Sequence[Task]
    under_way: dict[UnderWay, int]
    is_new: bool
    """Whether the archive has neither sites nor harvests."""

    @property
    def waiting(self) -> Sequence[Task]:
        return [task for task in self.tasks if task.count]

    @property
    def done(self) -> Sequence[Task]:
        """Kinds of work with nothing to do."""
        return [task for task in self.tasks if not task.count]


def open_work(archive: Archive) -> OpenWork:
    """What waits now."""
    now = archive.clock()
    return archive.database.remembered("open work", lambda connection: _count(connection, now))


def _count(connection: Connection, now: datetime) -> OpenWork:
    counted: dict[TaskKind, Select[int, datetime | None]] = {
        TaskKind.CASES: _of(cases.c.state_since, cases.c.state.in_((CaseState.RECEIVED, CaseState.IN_HAND))),
        TaskKind.REVIEW: _of_harvests(HarvestState.FINISHED, finding_rows.is_checked(harvests.c.id)),
        TaskKind.STOPPED: _of_harvests(HarvestState.STOPPED),
        TaskKind.FAILED: _of_turns(TurnState.FAILED, now),
        TaskKind.REFUSED: _of_turns(TurnState.REFUSED, now),
        TaskKind.LETTERS: _of(
            letters.c.queued_at, letters.c.state.in_((LetterState.QUEUED, LetterState.FAILED))
        ),
        TaskKind.SUGGESTED: _of_targets(TargetState.SUGGESTED),
        TaskKind.NOMINATED: _of_targets(TargetState.NOMINATED),
        TaskKind.JUDGED: _of_targets(TargetState.JUDGED),
        TaskKind.LOOK_AGAIN: _of_targets(
            TargetState.PUT_OFF,
            targets.c.look_again_on != "",
            targets.c.look_again_on <= now.date().isoformat(),
        ),
        TaskKind.SELECTED: _of_targets(TargetState.SELECTED),
        TaskKind.UNPLANNED: _of_targets(
            TargetState.CLEARED, ~exists().where(schedules.c.target == targets.c.id)
        ),
    }
    tasks = [_damaged(connection)]
    for kind, chosen in counted.items():
        count, oldest_at = connection.execute(chosen).one()
        tasks.append(Task(kind=kind, count=count, oldest_at=oldest_at))
    order = list(TaskKind)
    tasks.sort(key=lambda task: order.index(task.kind))
    return OpenWork(tasks=tasks, under_way=_under_way(connection, now), is_new=_is_new(connection))


def _of(since: ColumnElement[datetime], *where: ColumnElement[bool]) -> Select[int, datetime | None]:
    oldest: ColumnElement[datetime | None] = func.min(since, type_=since.type)
    return select(func.count(), oldest).where(*where)


def _of_targets(state: TargetState, *where: ColumnElement[bool]) -> Select[int, datetime | None]:
    return _of(targets.c.state_since, targets.c.state == state.value, *where)


def _of_harvests(state: HarvestState, *where: ColumnElement[bool]) -> Select[int, datetime | None]:
    return _of(harvests.c.started_at, *_harvests_in(state), *where)


def _harvests_in(state: HarvestState) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Harvests in a state; patches belong to their harvest."""
    return harvests.c.state == state.value, harvests.c.kind == HarvestKind.HARVEST.value


def _of_turns(state: TurnState, now: datetime) -> Select[int, datetime | None]:
    """Scheduled harvests that ended in this state, unless the site has had a later one."""
    later = turns.alias("later")
    is_last = ~exists().where(and_(later.c.target == turns.c.target, later.c.due_at > turns.c.due_at))
    return _of(turns.c.due_at, turns.c.state == state.value, turns.c.due_at >= now - _RECENT, is_last)


def _damaged(connection: Connection) -> Task:
    bad = (CopyState.DAMAGED, CopyState.LOST)
    count = sum(tally.copies for tally in copies.tally(connection) if tally.state in bad)
    return Task(kind=TaskKind.DAMAGED, count=count, oldest_at=None)


def _under_way(connection: Connection, now: datetime) -> dict[UnderWay, int]:
    def count(*where: ColumnElement[bool]) -> int:
        return connection.execute(select(func.count()).where(*where)).scalar_one()

    return {
        UnderWay.RUNNING: count(harvests.c.state == HarvestState.RUNNING.value),
        UnderWay.CHECKED: count(
            *_harvests_in(HarvestState.FINISHED), ~finding_rows.is_checked(harvests.c.id)
        ),
        UnderWay.DUE: count(turns.c.state == TurnState.WAITING.value),
        UnderWay.DUE_IN_A_DAY: count(
            schedules.c.is_active.is_(True), schedules.c.next_at <= now + timedelta(days=1)
        ),
        UnderWay.LETTERS_OUT: count(
            letters.c.state == LetterState.SENT.value, letters.c.kind == LetterKind.NOTICE.value
        ),
    }


def _is_new(connection: Connection) -> bool:
    """Whether nothing has been nominated, harvested or imported yet."""
    return all(
        connection.execute(select(table.c.id).limit(1)).first() is None for table in (targets, harvests)
    )
