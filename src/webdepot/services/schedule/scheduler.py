"""The scheduler: runs harvests on the dates of their plans. It may run inside the server, as a separate
process, or several times at once; each date is harvested once.

    plans ─ create ─> turns ─ take (lease) ─> one process each: gate ─ harvest ─ examine ─ settle
                        ^                                                 │
                        └──────────────── waiting again <─────────────────┴─> done, refused, failed

1. Create: a plan whose date has come gets a turn and its next date. Of several dates that were missed while
   no scheduler was running, only the latest is harvested, after a delay that differs for each target, so that
   a long stop is not followed by a flood.
2. Take: waiting turns are taken, up to the limit for all schedulers together, with a lease that is renewed
   while they run. A killed scheduler does not renew its leases: its turns are given back, and the harvests
   resume from their last checkpoint.
3. Each turn runs in its own process, which ends with its scheduler. It asks the gate first: a target without
   a ground is refused, and the turn says what is missing.
4. At the end of a time window a harvest is stopped; the turn waits until the window opens again and resumes.
"""

import hashlib
import logging
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from webdepot import durable, leases
from webdepot.archive import Archive, ScratchPurpose
from webdepot.engine.process_pool import die_with_the_parent
from webdepot.errors import Conflict, NoSpace, NotPermitted, RemoteError, WebdepotError
from webdepot.harvest import harvest_rows
from webdepot.harvest.order_file import OrderVerb
from webdepot.model import Harvest, HarvestKind, HarvestState
from webdepot.provenance import Outcome, append, difference
from webdepot.reasons import Reason, said
from webdepot.selection import plan_dates, scheduled_harvests, targets
from webdepot.selection import plans as selection_plans
from webdepot.selection.plan_dates import Plan
from webdepot.selection.scheduled_harvests import Turn, TurnState
from webdepot.services.harvest import harvests, profiles, runner
from webdepot.services.harvest import orders as harvest_orders
from webdepot.services.intake import ingest
from webdepot.services.progress import Watch, unwatched
from webdepot.services.quality import harvest_run
from webdepot.services.review import reviews
from webdepot.services.schedule import plans
from webdepot.services.selection import targets as targets_service

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

log = logging.getLogger(__name__)

MOST_AT_ONCE = 1000
"""Plans that get their turns in one transaction; the next check takes the next ones."""
_SHUTDOWN_WAIT_S = 30.0


class Scheduler:
    """Takes turns, starts their processes and watches them. One per process; `close` stops them cleanly."""

    def __init__(
        self, archive: Archive, *, chores: Mapping[str, Callable[[Archive], None]] | None = None
    ) -> None:
        self._archive = archive
        self._holder = leases.name_holder()
        self._running: dict[int, tuple[Turn, BaseProcess]] = {}
        self._chores = dict(chores or {})
        self._next_chores_at: datetime | None = None
        # A fork server, so that threads and open databases of a web server are not copied into the harvests.
        self._processes = multiprocessing.get_context("forkserver")

    def run(self, stop: threading.Event) -> None:
        """Check for due turns until stopped. A check that fails is logged, and the next one is tried."""
        while not stop.is_set():
            try:
                self.run_once()
            except WebdepotError as error:
                log.warning("the scheduler could not check for due turns", extra={"error": str(error)})
            except Exception:
                log.exception("the scheduler failed; it continues")
            stop.wait(self._archive.config.schedule.look_every_s)
        self.close()

    def run_once(self) -> list[Turn]:
        """Check once: ended processes, abandoned turns, due dates, turns that can start. Returns those that
        started.
        """
        archive, config = self._archive, self._archive.config.schedule
        self._collect_ended()
        self._do_chores()
        now = archive.clock()
        lease = timedelta(seconds=config.lease_s)
        held: set[int] = set()
        if self._running:
            with archive.database.transaction() as connection:
                held = set(
                    scheduled_harvests.renew(
                        connection, list(self._running), holder=self._holder, until=now + lease
                    )
                )
        for number in set(self._running) - held:
            self._kill_lost(number)
        self._close_windows(now)
        give_back_abandoned(archive)
        create_turns(archive)
        taken = _take(archive, holder=self._holder, lease=lease)
        for turn in taken:
            self._start(turn)
        return taken

    @property
    def running(self) -> int:
        return len(self._running)

    def close(self) -> None:
        """Stop running harvests cleanly; they resume when a scheduler runs again."""
        for _, process in self._running.values():
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, signal.SIGTERM)
        for turn, process in list(self._running.values()):
            process.join(_SHUTDOWN_WAIT_S)
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

    def _collect_ended(self) -> None:
        for number, (turn, process) in list(self._running.items()):
            if not process.is_alive():
                process.join()
                del self._running[number]
                self._ended(turn, process)

    def _ended(self, turn: Turn, process: "BaseProcess") -> None:
        """If the process left its turn running, it was killed: the turn is tried again later."""
        archive, now = self._archive, self._archive.clock()
        with archive.database.transaction() as connection:
            current = scheduled_harvests.get(connection, turn.id)
            if current.state is TurnState.RUNNING and current.holder == self._holder:
                reason = f"its process ended with {process.exitcode}"
                again_at = now + _retry_delay(archive)
                scheduled_harvests.move(
                    connection, current, "give back", now, reason=reason, not_before=again_at
                )
        process.close()

    def _kill_lost(self, number: int) -> None:
        """Kill the process of a turn that another scheduler has taken, because this one was suspended too
        long.
        """
        _, process = self._running.pop(number)
        process.kill()
        process.join()
        process.close()

    def _close_windows(self, now: datetime) -> None:
        zone = plans.zone(self._archive)
        for turn, process in self._running.values():
            with self._archive.database.reading() as connection:
                plan = selection_plans.find(connection, turn.target)
            is_open = plan is None or plan_dates.is_open(plan.window, now, zone)
            if not is_open and process.is_alive() and process.pid is not None:
                os.kill(process.pid, signal.SIGTERM)

    def _do_chores(self) -> None:
        """Periodic work besides harvests, once an hour."""
        now = self._archive.clock()
        if self._next_chores_at is not None and now < self._next_chores_at:
            return
        self._next_chores_at = now + timedelta(hours=1)
        for name, chore in self._chores.items():
            try:
                chore(self._archive)
            except WebdepotError as error:
                log.warning("an hourly task failed", extra={"chore": name, "error": str(error)})


def create_turns(archive: Archive) -> list[Turn]:
    """Create the turns for dates that have come; returns the new ones. May be repeated."""
    now, zone = archive.clock(), plans.zone(archive)
    created: list[Turn] = []
    with archive.database.transaction() as connection:
        for plan in selection_plans.due(connection, now, MOST_AT_ONCE):
            assert plan.next_at is not None  # noqa: S101 - `due` selects by it
            due_at, missed = plan_dates.last_before(plan.dates, plan.next_at, now, zone)
            next_at = plan_dates.next_after(plan.dates, now, zone)
            selection_plans.set_dates(connection, plan.target, next_at=next_at, last_at=due_at)
            if missed:
                text = (
                    "{missed} dates passed while no scheduler was running; only the latest is harvested now"
                )
                reason = said("dates_missed", text, missed=missed)
                detail = {"missed": missed, "made up for": due_at.isoformat()}
                _note_missed(connection, archive, plan, reason, detail)
            if scheduled_harvests.has_open(connection, plan.target):
                text = "the previous scheduled harvest is still waiting or running"
                detail = {"missed": 1, "due_at": due_at.isoformat()}
                _note_missed(connection, archive, plan, said("turn_before", text), detail)
                continue
            start = _start_of(archive, plan, due_at, now)
            not_before = plan_dates.opening(plan.window, start, zone)
            turn = scheduled_harvests.add(connection, plan.target, due_at, not_before=not_before)
            created += [turn] if turn else []
    return created


def _note_missed(
    connection: Connection, archive: Archive, plan: Plan, reason: str, detail: Mapping[str, object]
) -> None:
    append(
        connection,
        archive.event(
            "turns missed",
            "target",
            str(plan.target),
            outcome=Outcome.WARNING,
            message=reason,
            detail=detail,
        ),
    )


def _take(archive: Archive, *, holder: str, lease: timedelta, most: int | None = None) -> list[Turn]:
    """Take waiting turns, as many as may run at once over all schedulers, and at most `most`."""
    now = archive.clock()
    with archive.database.transaction() as connection:
        free = archive.config.schedule.at_once - scheduled_harvests.count_running(connection, now)
        limit = free if most is None else min(free, most)
        return (
            scheduled_harvests.take(connection, now, holder=holder, lease=lease, limit=limit)
            if limit > 0
            else []
        )


def run_due(archive: Archive, *, watch: Watch = unwatched) -> list[Turn]:
    """Run everything that is due now, one after the other, in this process; returns the turns as they ended.
    For `--once` and for tests.
    """
    give_back_abandoned(archive)
    create_turns(archive)
    ended: list[Turn] = []
    with archive.scratch_folder(ScratchPurpose.SCHEDULE) as sign_of_life:
        holder = f"{_once_here()}{sign_of_life.name}"
        while taken := _take(archive, holder=holder, lease=timedelta(days=1), most=1):
            run_turn(archive, taken[0].id, watch=watch)
            with archive.database.reading() as connection:
                ended.append(scheduled_harvests.get(connection, taken[0].id))
    return ended


def _once_here() -> str:
    """The beginning of the names of lease holders that run in the foreground on this machine. The rest is the
    name of a folder, which is locked while the process is alive; the lease itself is for other machines.
    """
    return f"{socket.gethostname()[:40]}-once-"


def run_turn(archive: Archive, number: int, *, watch: Watch = unwatched) -> None:
    """Run a turn that this process holds to its end: harvest, check, then accept by rules or leave it for a
    reviewer.
    """
    with archive.database.reading() as connection:
        turn = scheduled_harvests.get(connection, number)
        target = targets.get(connection, turn.target)
        plan = selection_plans.find(connection, turn.target)
    try:
        targets_service.admit(archive, target)
    except NotPermitted as error:
        _end(archive, turn, "refuse", error.args[0], outcome=Outcome.WARNING)
        return
    try:
        harvest = _harvest_of(archive, turn, plan)
        if harvest.state in (HarvestState.RUNNING, HarvestState.STOPPED, HarvestState.FAILED):
            harvest = harvest_run.run(archive, harvest, watch=watch)
        if harvest.state is HarvestState.STOPPED:
            _end_stopped(archive, turn, plan, harvest)
            return
        if harvest.state is HarvestState.FINISHED:
            reviews.examine(archive, harvest, watch=watch)
            reviews.settle(archive, harvest, watch=watch)
        elif harvest.state is HarvestState.KEPT:  # a process was killed between deposit and indexing
            ingest.publish(archive, harvest.id, watch=watch)
    except (RemoteError, NoSpace, Conflict, OSError) as error:
        _retry_or_fail(archive, turn, _message(error))
        return
    except WebdepotError as error:
        _end(archive, turn, "fail", _message(error), outcome=Outcome.FAILURE)
        return
    _end(archive, turn, "finish", harvest.reason)


def give_back_abandoned(archive: Archive) -> list[Turn]:
    """Give back turns whose holder was killed; they wait again, with their harvest."""
    now = archive.clock()
    with archive.database.transaction() as connection:
        abandoned = [
            turn for turn in scheduled_harvests.held(connection) if _is_abandoned(archive, turn, now)
        ]
        for turn in abandoned:
            leases.note_lost(
                connection, scheduled_harvests.LEASED, str(turn.id), lost_by=turn.holder, now=now
            )
            reason = said("no_sign_of_life", "{holder} stopped responding", holder=turn.holder)
            scheduled_harvests.move(connection, turn, "give back", now, reason=reason, not_before=now)
    return abandoned


def _is_abandoned(archive: Archive, turn: Turn, now: datetime) -> bool:
    if turn.holder.startswith(_once_here()):
        return not durable.is_in_use(archive.home / turn.holder.removeprefix(_once_here()))
    return leases.is_expired(turn.lease_ends_at, now)


# --- parts ---


def _work(home: Path, turn: int) -> None:
    """Run a turn in its own process, which ends with its scheduler."""
    die_with_the_parent()
    with Archive.open(home, agent="scheduler") as archive:
        run_turn(archive, turn)


def _harvest_of(archive: Archive, turn: Turn, plan: Plan | None) -> Harvest:
    """The harvest of a turn: the one it began before it was given back, or a new one. A new harvest and its
    turn are stored in one transaction.
    """
    if turn.harvest:
        begun = harvests.get(archive, turn.harvest)
        if begun.state is not HarvestState.FAILED or harvest_rows.is_page(begun):
            return begun
    options = profiles.options_of(archive, plan.profile if plan else "")
    with archive.database.transaction() as connection:
        target = targets.get(connection, turn.target)
        unfinished = harvest_rows.unfinished(connection, target.id, HarvestKind.HARVEST)
        if (
            unfinished is not None
            and unfinished.state is HarvestState.RUNNING
            and not harvest_rows.is_page(unfinished)
            and not harvests.is_locked(archive, unfinished)
        ):
            harvest = unfinished  # its process was killed before it stored the harvest with the turn
        else:
            harvest = runner.begin_of_target(connection, archive, target.id, options)
        scheduled_harvests.set_harvest(connection, turn.id, harvest.id)
    return harvest


def _end_stopped(archive: Archive, turn: Turn, plan: Plan | None, harvest: Harvest) -> None:
    """End the turn if a person stopped its harvest. If its window ended, the scheduler was stopped or the
    disk was full, the turn waits and resumes.
    """
    orders = harvest_orders.orders_of(archive, harvest)
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
    is_open = plan is None or plan_dates.is_open(plan.window, now, zone)
    again_at = now + _retry_delay(archive) if is_open and _is_disk_full(harvest.reason) else now
    opens = plan_dates.opening(plan.window, again_at, zone) if plan else again_at
    waits_because = harvest.reason if is_open else said("window_ended", "its time window has ended")
    with archive.database.transaction() as connection:
        scheduled_harvests.move(connection, turn, "give back", now, reason=waits_because, not_before=opens)


def _is_disk_full(reason: str) -> bool:
    if not isinstance(reason, Reason):
        return False
    return reason.key == "no_room" or any(map(_is_disk_full, reason.values.get("parts", ())))


def _retry_or_fail(archive: Archive, turn: Turn, reason: str) -> None:
    """Try again later, up to the configured number of tries."""
    if turn.tries >= archive.config.schedule.tries:
        _end(archive, turn, "fail", reason, outcome=Outcome.FAILURE)
        return
    now = archive.clock()
    with archive.database.transaction() as connection:
        again_at = now + _retry_delay(archive)
        scheduled_harvests.move(connection, turn, "give back", now, reason=reason, not_before=again_at)


def _end(archive: Archive, turn: Turn, act: str, reason: str, *, outcome: Outcome = Outcome.SUCCESS) -> None:
    with archive.database.transaction() as connection:
        scheduled_harvests.move(connection, turn, act, archive.clock(), reason=reason)
        ended = scheduled_harvests.get(connection, turn.id)
        detail: dict[str, object] = {
            "turn": turn.id,
            "due_at": turn.due_at.isoformat(),
            "harvest": ended.harvest,
            **difference({"turn state": turn.state.value}, {"turn state": ended.state.value}),
        }
        subject = str(turn.target)
        append(
            connection,
            archive.event(f"turn: {act}", "target", subject, outcome=outcome, message=reason, detail=detail),
        )


def _message(error: Exception) -> str:
    """The message of an error; a `Reason` keeps its key."""
    return error.args[0] if error.args and isinstance(error.args[0], Reason) else str(error)


def _retry_delay(archive: Archive) -> timedelta:
    return timedelta(seconds=archive.config.schedule.retry_s)


def _start_of(archive: Archive, plan: Plan, due_at: datetime, now: datetime) -> datetime:
    """When the harvest starts: now if it is on time; after a stop with a delay that is derived from target
    and date, so that a repeated call gives the same result.
    """
    config = archive.config.schedule
    if now - due_at <= timedelta(seconds=config.late_s):
        return now
    share = (
        int.from_bytes(hashlib.sha256(f"{plan.target} {due_at.isoformat()}".encode()).digest()[:4]) / 2**32
    )
    return now + timedelta(seconds=config.spread_s * share)
