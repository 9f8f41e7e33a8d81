"""The scheduler: dates of plans come true. It may run in the server, by itself, or several times at once;
each date is harvested once.

    plans ─ come ─> turns ─ take (lease) ─> one process each: gate ─ harvest ─ examine ─ settle ─> done, waiting again, refused, failed

1. `come`: a plan whose date has come gets a turn, and its next date. Of dates that were missed during a stop
   only the latest is made up for, at a moment of its own within the spread, so that a long stop is followed
   by no flood.
2. `take`: turns that wait are taken, as many as may run at once over all schedulers, with a lease that is
   renewed while they run. A killed scheduler renews nothing: its turns are given back and the harvests
   resumed from their last checkpoint.
3. Each turn runs in a process that ends with its scheduler. It asks the gate first: a target without a ground
   is refused, and the turn says what is missing.
4. At the end of a window a harvest is stopped; the turn waits for the next opening and goes on there.
"""

import hashlib
import logging
import multiprocessing
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from webdepot.archive import Archive
from webdepot.engine.local import die_with_the_parent
from webdepot.errors import Conflict, NoSpace, NotPermitted, RemoteError, WebdepotError
from webdepot.harvest import control, runs
from webdepot.harvest.control import OrderVerb
from webdepot.model import Harvest, HarvestKind, HarvestState
from webdepot.provenance import Event, Outcome, append, difference
from webdepot.reasons import Reason, said
from webdepot.selection import schedule, schedules, targets
from webdepot.selection.schedule import Plan
from webdepot.selection.schedules import Turn, TurnState
from webdepot.services.harvest import harvests, profiles, runner
from webdepot.services.progress import Watch, unwatched
from webdepot.services.review import reviews
from webdepot.services.schedule import plans
from webdepot.services.selection import targets as targets_service

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

log = logging.getLogger(__name__)

MOST_AT_A_LOOK = 1000
"""Plans that get their turns in one transaction; the next look takes the next."""
_PATIENCE_S = 30.0
_MOST_SEEDS = 10_000


class Scheduler:
    """Looks, takes, starts and watches over processes. One per process; `close` stops tidily what it started."""

    def __init__(
        self, archive: Archive, *, chores: Mapping[str, Callable[[Archive], None]] | None = None
    ) -> None:
        self._archive = archive
        self._holder = f"{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(4)}"
        self._running: dict[int, tuple[Turn, BaseProcess]] = {}
        self._chores = dict(chores or {})
        self._next_chores_at: datetime | None = None
        # A fork server: threads and open databases of a web server are not copied into the harvests.
        self._processes = multiprocessing.get_context("forkserver")

    def run(self, stop: threading.Event) -> None:
        """Look again and again until told to stop. A look that fails is told and the next one is tried."""
        while not stop.is_set():
            try:
                self.look()
            except WebdepotError as error:
                log.warning("the scheduler could not look", extra={"error": str(error)})
            except Exception:
                log.exception("the scheduler failed; it goes on")
            stop.wait(self._archive.config.schedule.look_every_s)
        self.close()

    def look(self) -> list[Turn]:
        """Once: what ended, what is abandoned, what has come, what can begin. Those that began."""
        archive, given = self._archive, self._archive.config.schedule
        self._gather()
        self._do_chores()
        now = archive.clock()
        lease = timedelta(seconds=given.lease_s)
        held: set[int] = set()
        if self._running:
            with archive.database.transaction() as connection:
                held = set(
                    schedules.renew(connection, list(self._running), holder=self._holder, until=now + lease)
                )
        for number in set(self._running) - held:
            self._lose(number)
        self._close_windows(now)
        give_back_abandoned(archive)
        come(archive)
        with archive.database.transaction() as connection:
            free = given.at_once - schedules.count_running(connection, now)
            taken = (
                schedules.take(connection, now, holder=self._holder, lease=lease, limit=free)
                if free > 0
                else []
            )
        for turn in taken:
            self._start(turn)
        return taken

    @property
    def running(self) -> int:
        return len(self._running)

    def close(self) -> None:
        """Stop what runs, tidily; it goes on when a scheduler runs again."""
        for _, process in self._running.values():
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, signal.SIGTERM)
        for turn, process in list(self._running.values()):
            process.join(_PATIENCE_S)
            if process.is_alive():
                process.kill()
                process.join()
            self._ended(turn, process)
        self._running.clear()

    def _start(self, turn: Turn) -> None:
        process = self._processes.Process(
            target=_work, args=(self._archive.home, turn.id), name=f"turn-{turn.id}"
        )
        process.start()
        self._running[turn.id] = (turn, process)

    def _gather(self) -> None:
        for number, (turn, process) in list(self._running.items()):
            if not process.is_alive():
                process.join()
                del self._running[number]
                self._ended(turn, process)

    def _ended(self, turn: Turn, process: "BaseProcess") -> None:
        """A process that said nothing about its turn was killed: another try, after a while."""
        archive, now = self._archive, self._archive.clock()
        with archive.database.transaction() as connection:
            current = schedules.get(connection, turn.id)
            if current.state is TurnState.RUNNING and current.holder == self._holder:
                words = f"its process ended with {process.exitcode}"
                schedules.move(
                    connection,
                    current,
                    "give back",
                    now,
                    reason=words,
                    not_before=now + _retry_after(archive, current),
                )
        process.close()

    def _lose(self, number: int) -> None:
        """Somebody else has the turn now, since this scheduler slept too long: its process must not go on."""
        _, process = self._running.pop(number)
        process.kill()
        process.join()
        process.close()

    def _close_windows(self, now: datetime) -> None:
        zone = plans.zone(self._archive)
        for turn, process in self._running.values():
            with self._archive.database.reading() as connection:
                plan = schedules.find(connection, turn.target)
            is_open = plan is None or schedule.is_open(plan.window, now, zone)
            if not is_open and process.is_alive() and process.pid is not None:
                os.kill(process.pid, signal.SIGTERM)

    def _do_chores(self) -> None:
        """What time asks for besides harvests, once an hour: terms that are over, letters that wait."""
        now = self._archive.clock()
        if self._next_chores_at is not None and now < self._next_chores_at:
            return
        self._next_chores_at = now + timedelta(hours=1)
        for name, chore in self._chores.items():
            try:
                chore(self._archive)
            except WebdepotError as error:
                log.warning("a chore was not done", extra={"chore": name, "error": str(error)})


def come(archive: Archive) -> list[Turn]:
    """Turns for the dates that have come. Twice is once."""
    now, zone = archive.clock(), plans.zone(archive)
    made: list[Turn] = []
    with archive.database.transaction() as connection:
        for plan in schedules.due(connection, now, MOST_AT_A_LOOK):
            assert plan.next_at is not None  # noqa: S101 - that is how they were chosen
            due_at, missed = schedule.last_before(plan.dates, plan.next_at, now, zone)
            schedules.move_on(
                connection, plan.target, next_at=schedule.next_after(plan.dates, now, zone), last_at=due_at
            )
            if missed:
                append(connection, _missed(archive, plan, due_at, missed))
            if schedules.has_open(connection, plan.target):
                append(connection, _skipped(archive, plan, due_at))
                continue
            start = _start_of(archive, plan, due_at, now)
            turn = schedules.come(
                connection, plan.target, due_at, not_before=schedule.opening(plan.window, start, zone)
            )
            made += [turn] if turn else []
    return made


def run_due(archive: Archive, *, watch: Watch = unwatched) -> list[Turn]:
    """Everything that is due now, one after the other, in this process; the turns as they ended. For `--once`
    and for tests.
    """
    holder = f"{socket.gethostname()[:40]}-{os.getpid()}-once-{secrets.token_hex(4)}"
    give_back_abandoned(archive)
    come(archive)
    ended: list[Turn] = []
    while True:
        now = archive.clock()
        with archive.database.transaction() as connection:
            free = archive.config.schedule.at_once - schedules.count_running(connection, now)
            taken = (
                schedules.take(connection, now, holder=holder, lease=timedelta(days=1), limit=min(free, 1))
                if free > 0
                else []
            )
        if not taken:
            return ended
        run_turn(archive, taken[0].id, watch=watch)
        with archive.database.reading() as connection:
            ended.append(schedules.get(connection, taken[0].id))


def run_turn(archive: Archive, number: int, *, watch: Watch = unwatched) -> None:
    """One turn that this process holds, to its end: harvested, checked, accepted by rules or left for a
    reviewer.
    """
    with archive.database.reading() as connection:
        turn = schedules.get(connection, number)
        target = targets.get(connection, turn.target)
        plan = schedules.find(connection, turn.target)
    try:
        targets_service.admit(archive, target)
    except NotPermitted as error:
        _end(archive, turn, "refuse", error.args[0], outcome=Outcome.WARNING)
        return
    try:
        harvest = _harvest_of(archive, turn, plan)
        if harvest.state in (HarvestState.RUNNING, HarvestState.STOPPED, HarvestState.FAILED):
            harvest = runner.run(archive, harvest, watch=watch)
        if harvest.state is HarvestState.STOPPED:
            _stopped(archive, turn, plan, harvest)
            return
        if harvest.state is HarvestState.FINISHED:
            reviews.examine(archive, harvest, watch=watch)
            reviews.settle(archive, harvest, watch=watch)
    except (RemoteError, NoSpace, Conflict, OSError) as error:
        _failed(archive, turn, _words(error))
        return
    except WebdepotError as error:
        _end(archive, turn, "fail", _words(error), outcome=Outcome.FAILURE)
        return
    _end(archive, turn, "finish", harvest.reason)


def give_back_abandoned(archive: Archive) -> list[Turn]:
    """Turns whose holder was killed wait again, with their harvest."""
    now = archive.clock()
    with archive.database.transaction() as connection:
        found = schedules.abandoned(connection, now)
        for turn in found:
            reason = said("no_sign_of_life", "{holder} stopped responding", holder=turn.holder)
            schedules.move(connection, turn, "give back", now, reason=reason, not_before=now)
    return found


# --- parts ---


def _work(home: Path, turn: int) -> None:
    """In a process of its own, which ends when its scheduler does."""
    die_with_the_parent()
    with Archive.open(home, agent="scheduler") as archive:
        run_turn(archive, turn)


def _harvest_of(archive: Archive, turn: Turn, plan: Plan | None) -> Harvest:
    """The harvest of a turn: the one it began before it was given back, or a new one, bound to it in one
    transaction.
    """
    if turn.harvest:
        found = harvests.get(archive, turn.harvest)
        if found.state is not HarvestState.FAILED:
            return found
    options = profiles.options_of(archive, plan.profile if plan else "")
    with archive.database.transaction() as connection:
        target = targets.get(connection, turn.target)
        unfinished = runs.unfinished(connection, target.id, HarvestKind.HARVEST)
        if (
            unfinished is not None
            and unfinished.state is HarvestState.RUNNING
            and not harvests.is_locked(archive, unfinished)
        ):
            harvest = unfinished  # begun by a process that was killed before it could say so
        else:
            collection = options.collection if options.collection != "sites" else target.collection
            harvest = runner.begin(
                connection,
                archive,
                target.id,
                target.seeds[:_MOST_SEEDS],
                replace(options, collection=collection),
            )
        schedules.bind(connection, turn.id, harvest.id)
    return harvest


def _stopped(archive: Archive, turn: Turn, plan: Plan | None, harvest: Harvest) -> None:
    """By a person: then it is theirs. By its window, by this scheduler's end, or for want of room: it goes
    on.
    """
    orders = control.read(harvests.folder_of(archive, harvest))
    if orders and orders[-1].verb is OrderVerb.STOP:
        reason = said(
            "stopped_by", "stopped by {agent}: {reason}", agent=orders[-1].by, reason=orders[-1].reason
        )
        if not orders[-1].reason:
            reason = said("stopped_by_person", "stopped by {agent}", agent=orders[-1].by)
        _end(archive, turn, "finish", reason, outcome=Outcome.WARNING)
        return
    now = archive.clock()
    zone = plans.zone(archive)
    is_open = plan is None or schedule.is_open(plan.window, now, zone)
    again = (
        now + _retry_after(archive, turn) if is_open and harvest.reason and "room" in harvest.reason else now
    )
    opens = schedule.opening(plan.window, again, zone) if plan else again
    with archive.database.transaction() as connection:
        words = harvest.reason if is_open else said("window_ended", "its time window has ended")
        schedules.move(connection, turn, "give back", now, reason=words, not_before=opens)


def _failed(archive: Archive, turn: Turn, words: str) -> None:
    """Another try after a while, until there were enough."""
    if turn.tries >= archive.config.schedule.tries:
        _end(archive, turn, "fail", words, outcome=Outcome.FAILURE)
        return
    now = archive.clock()
    with archive.database.transaction() as connection:
        schedules.move(
            connection, turn, "give back", now, reason=words, not_before=now + _retry_after(archive, turn)
        )


def _end(archive: Archive, turn: Turn, act: str, words: str, *, outcome: Outcome = Outcome.SUCCESS) -> None:
    now = archive.clock()
    with archive.database.transaction() as connection:
        schedules.move(connection, turn, act, now, reason=words)
        ended = schedules.get(connection, turn.id)
        detail: dict[str, object] = {
            "turn": turn.id,
            "due_at": turn.due_at.isoformat(),
            "harvest": ended.harvest,
            **difference({"turn state": turn.state.value}, {"turn state": ended.state.value}),
        }
        event = Event(
            at=now,
            agent=archive.agent,
            action=f"turn: {act}",
            subject_kind="target",
            subject=str(turn.target),
            outcome=outcome,
            message=words,
            detail=detail,
        )
        append(connection, event)


def _words(error: Exception) -> str:
    """What an error says; a reason stays one."""
    return error.args[0] if error.args and isinstance(error.args[0], Reason) else str(error)


def _retry_after(archive: Archive, turn: Turn) -> timedelta:
    return timedelta(seconds=archive.config.schedule.retry_s)


def _start_of(archive: Archive, plan: Plan, due_at: datetime, now: datetime) -> datetime:
    """At once when it is on time; after a stop at a moment of its own, by the number of the target, so that
    twice is the same.
    """
    given = archive.config.schedule
    if now - due_at <= timedelta(seconds=given.late_s):
        return now
    share = (
        int.from_bytes(hashlib.sha256(f"{plan.target} {due_at.isoformat()}".encode()).digest()[:4]) / 2**32
    )
    return now + timedelta(seconds=given.spread_s * share)


def _missed(archive: Archive, plan: Plan, due_at: datetime, missed: int) -> Event:
    return Event(
        at=archive.clock(),
        agent=archive.agent,
        action="turns missed",
        subject_kind="target",
        subject=str(plan.target),
        outcome=Outcome.WARNING,
        message=said(
            "dates_missed",
            "{missed} dates passed while no scheduler was running; only the latest is harvested now",
            missed=missed,
        ),
        detail={"missed": missed, "made up for": due_at.isoformat()},
    )


def _skipped(archive: Archive, plan: Plan, due_at: datetime) -> Event:
    return Event(
        at=archive.clock(),
        agent=archive.agent,
        action="turns missed",
        subject_kind="target",
        subject=str(plan.target),
        outcome=Outcome.WARNING,
        message=said("turn_before", "the previous scheduled harvest is still waiting or running"),
        detail={"missed": 1, "due_at": due_at.isoformat()},
    )
