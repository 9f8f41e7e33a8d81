"""Harvest plans: how often a target is harvested, at which hours and with which profile; and what comes next,
as a list and as a calendar.

The dates are computed by `selection.plan_dates`; `scheduler` runs the harvests. Each change is recorded as an
event with before and after.
"""

from calendar import monthrange
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from time import monotonic, sleep
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotFound, NotPermitted
from webdepot.harvest import harvest_rows
from webdepot.model import Harvest, HarvestKind, HarvestState, TargetId, Verdict
from webdepot.provenance import append, difference
from webdepot.reasons import said
from webdepot.selection import plan_dates, plans, scheduled_harvests, targets
from webdepot.selection.plan_dates import Dates, HarvestWindow, Plan
from webdepot.selection.plans import PlanFilter, PlanPage, PlanRow
from webdepot.selection.scheduled_harvests import Turn, TurnPage, TurnState
from webdepot.services.harvest import control, harvests, profiles
from webdepot.services.selection import targets as targets_service

SHOWN_TURNS = 20
_END_OF_TURN_WAIT_S = 15.0
"""How long resuming a harvest waits for the scheduler to end the turn in which it was stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPlan:
    """A target's plan with its verdict, its next dates and its turns."""

    target: TargetId
    name: str
    plan: Plan | None
    verdict: Verdict
    """May it be harvested today, and if not, what is missing."""
    next_dates: Sequence[datetime]
    turns: Sequence[Turn]
    """Newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDay:
    """How many harvests are planned for a day, and the turns that have come due on it."""

    on: date
    planned: int
    turns: Mapping[TurnState, int]
    """How many turns are in each state."""


def zone(archive: Archive) -> ZoneInfo:
    return plan_dates.zone_of(archive.config.schedule.timezone)


def set_plan(
    archive: Archive,
    target: TargetId,
    dates: Dates,
    *,
    window: HarvestWindow | None = None,
    profile: str = "",
    is_active: bool = True,
    by: str = "",
) -> Plan:
    """Set the plan of a target. NotFound or ConfigError if the profile does not exist or is wrong; the gate
    is asked again on each date.
    """
    profiles.options_of(archive, profile)
    with archive.database.transaction() as connection:
        return set_plan_in(
            connection, archive, target, dates, window=window, profile=profile, is_active=is_active, by=by
        )


def set_plan_in(
    connection: Connection,
    archive: Archive,
    target: TargetId,
    dates: Dates,
    *,
    window: HarvestWindow | None = None,
    profile: str = "",
    is_active: bool = True,
    by: str = "",
) -> Plan:
    """As `set_plan`, in the caller's transaction; the profile has been checked."""
    now = archive.clock()
    before = plans.find(connection, target)
    plan = Plan(
        target=targets.get(connection, target).id,
        dates=dates,
        window=window,
        profile=profile,
        is_active=is_active,
        next_at=plan_dates.next_after(dates, now, zone(archive)) if is_active else None,
        last_at=before.last_at if before else None,
        changed_by=by or archive.agent,
        changed_at=now,
    )
    plans.save(connection, plan)
    detail = difference(_plan_detail(before), _plan_detail(plan))
    append(connection, archive.event("planned", "target", str(target), by=by, detail=detail))
    return plan


def set_typed_plan(
    archive: Archive,
    target: TargetId,
    *,
    frequency: str,
    first_on: str = "",
    at_time: str,
    cron: str = "",
    last_on: str = "",
    opens: str = "",
    closes: str = "",
    profile: str = "",
    by: str = "",
) -> Plan:
    """`set_plan` from dates and times as people type them; the first day is today if it is empty."""
    today = archive.clock().astimezone(zone(archive)).date().isoformat()
    dates = plan_dates.read_dates(
        frequency, first_on=first_on or today, at_time=at_time, cron=cron, last_on=last_on
    )
    window = plan_dates.read_window(opens, closes)
    return set_plan(archive, target, dates, window=window, profile=profile, by=by)


def pause(archive: Archive, target: TargetId, *, by: str = "") -> Plan:
    """Pause the plan until it is resumed; waiting turns are skipped."""
    plan = _set_active(archive, target, is_active=False, by=by)
    now = archive.clock()
    with archive.database.transaction() as connection:
        for turn in scheduled_harvests.of_target(connection, target, SHOWN_TURNS):
            if turn.state is TurnState.WAITING:
                reason = said("plan_paused", "the plan was paused")
                scheduled_harvests.move(connection, turn, "skip", now, reason=reason)
                _end_unbegun(connection, archive, turn, reason)
    return plan


def resume(archive: Archive, target: TargetId, *, by: str = "") -> Plan:
    return _set_active(archive, target, is_active=True, by=by)


def remove(archive: Archive, target: TargetId, *, by: str = "") -> None:
    """Remove the plan; earlier harvests are kept."""
    with archive.database.transaction() as connection:
        before = _get(archive, target)
        plans.remove(connection, target)
        detail = difference(_plan_detail(before), {})
        append(connection, archive.event("unplanned", "target", str(target), by=by, detail=detail))


def of_target(archive: Archive, target: TargetId, *, dates: int = 6) -> TargetPlan:
    """The plan of a target with up to `dates` next dates; the plan is None if there is none."""
    with archive.database.reading() as connection:
        name = targets.get(connection, target).name
        plan = plans.find(connection, target)
        latest = scheduled_harvests.of_target(connection, target, SHOWN_TURNS)
    ahead: list[datetime] = []
    at = archive.clock()
    while plan is not None and plan.is_active and len(ahead) < dates:
        following = plan_dates.next_after(plan.dates, at, zone(archive))
        if following is None:
            break
        ahead.append(following)
        at = following
    verdict = targets_service.may_harvest(archive, target)
    return TargetPlan(target=target, name=name, plan=plan, verdict=verdict, next_dates=ahead, turns=latest)


def list_plans(archive: Archive, wanted: PlanFilter) -> PlanPage:
    with archive.database.reading() as connection:
        return plans.listing(connection, wanted)


def queue(archive: Archive, state: TurnState | None, *, page: int = 1) -> TurnPage:
    """One page of turns in a state, or of all."""
    with archive.database.reading() as connection:
        return scheduled_harvests.listing(connection, state, page=page)


def counts(archive: Archive) -> Mapping[TurnState, int]:
    """How many turns are in each state, without those that are done."""
    with archive.database.reading() as connection:
        return scheduled_harvests.counts(connection)


def run_now(archive: Archive, target: TargetId, *, profile: str | None = None, by: str = "") -> Turn:
    """Add a turn for now and its harvest, independent of the dates of the plan, with this profile (empty for
    none) or else the profile of the plan. NotPermitted says what is missing; Conflict if one is already
    waiting or running.
    """
    from webdepot.services.harvest import runner  # loads the crawler, which lists of plans do without

    verdict, now = targets_service.may_harvest(archive, target), archive.clock()
    with archive.database.transaction() as connection:
        plan = plans.find(connection, target)
        wanted = profile if profile is not None else plan.profile if plan is not None else ""
        options = profiles.options_of(archive, wanted)
        turn = _add_turn(connection, archive, target, verdict, now, by=by)
        harvest = runner.begin_of_target(connection, archive, target, options)
        scheduled_harvests.set_harvest(connection, turn.id, harvest.id)
        turn = scheduled_harvests.get(connection, turn.id)
        detail = difference({}, {"due_at": now.isoformat()})
        append(connection, archive.event("asked for", "target", str(target), by=by, detail=detail))
    return turn


def continue_harvest(archive: Archive, harvest: str, *, by: str = "") -> Turn:
    """Have the scheduler continue a harvest that was stopped or whose process ended. Then it is reviewed like
    any other. A pause and an earlier stop are lifted.
    """
    stopped = harvests.get(archive, harvest)
    is_idle = stopped.kind is HarvestKind.HARVEST and not harvests.is_locked(archive, stopped)
    if not is_idle or stopped.state not in (HarvestState.STOPPED, HarvestState.RUNNING):
        raise Conflict(f"Harvest {stopped.id} cannot be resumed: it is {stopped.state.value}.")
    _await_end_of_turn(archive, stopped)
    verdict, now = targets_service.may_harvest(archive, stopped.target), archive.clock()
    with archive.database.transaction() as connection:
        turn = _add_turn(connection, archive, stopped.target, verdict, now, by=by)
        scheduled_harvests.set_harvest(connection, turn.id, stopped.id)
        append(connection, archive.event("asked to resume", "harvest", stopped.id, by=by))
    control.lift_pause(archive, stopped.id, by=by)
    return turn


def _await_end_of_turn(archive: Archive, harvest: Harvest) -> None:
    """Wait while the scheduler is about to end the turn of a harvest that has just been stopped."""
    deadline = monotonic() + _END_OF_TURN_WAIT_S
    while is_ending(archive, harvest) and monotonic() < deadline:
        sleep(0.1)


def find_open(archive: Archive, target: TargetId) -> Turn | None:
    """The turn of a target that is waiting or running; None if there is none."""
    with archive.database.reading() as connection:
        turns = scheduled_harvests.of_target(connection, target, SHOWN_TURNS)
    return next((turn for turn in turns if turn.state in (TurnState.WAITING, TurnState.RUNNING)), None)


def find_waiting(archive: Archive, harvest: Harvest) -> Turn | None:
    """The turn with which a harvest waits for the scheduler; None if it does not wait."""
    if harvest.state not in (HarvestState.RUNNING, HarvestState.STOPPED, HarvestState.FAILED):
        return None
    turn = find_open(archive, harvest.target)
    if turn is None or turn.harvest != harvest.id:
        return None
    return None if _is_ending(turn, harvest) else turn


def is_ending(archive: Archive, harvest: Harvest) -> bool:
    """Whether a harvest has ended, but not yet its turn; until then it cannot be resumed."""
    turn = find_open(archive, harvest.target)
    return turn is not None and turn.harvest == harvest.id and _is_ending(turn, harvest)


def _is_ending(turn: Turn, harvest: Harvest) -> bool:
    """Whether the harvest of a turn has ended, so that it waits for nothing: the scheduler is about to end
    the turn too.
    """
    if turn.state is not TurnState.RUNNING or harvest.ended_at is None or turn.began_at is None:
        return False
    return harvest.ended_at >= turn.began_at


def archive_page(archive: Archive, typed: str, *, by: str = "") -> Harvest:
    """Have the scheduler harvest one page with its parts now; then it is reviewed like any other harvest.

    InputError if the address belongs to no site of the archive, NotPermitted if that site may not be
    harvested, Conflict if a harvest of it is waiting or running.
    """
    from webdepot.services.harvest import runner  # loads the crawler, which lists of plans do without

    url = targets_service.public_address(typed)
    known = targets_service.find_known(archive, url)
    if known is None:
        text = "{url} does not belong to a site of this archive. Nominate the site first."
        raise InputError(said("page_without_site", text, url=url))
    site = known.dossier
    verdict, now = targets_service.may_harvest(archive, site.id), archive.clock()
    with archive.database.transaction() as connection:
        turn = _add_turn(connection, archive, site.id, verdict, now, by=by)
        plan = plans.find(connection, site.id)
        options = replace(
            profiles.options_of(archive, plan.profile if plan else ""),
            scope="list",
            only_page=True,
            collection=site.target.collection,
            organisation="",
        )
        harvest = runner.begin(connection, archive, site.id, [url], options)
        scheduled_harvests.set_harvest(connection, turn.id, harvest.id)
        detail = difference({}, {"page": url, "harvest": harvest.id})
        append(connection, archive.event("asked for", "target", str(site.id), by=by, detail=detail))
    return harvest


def _add_turn(
    connection: Connection, archive: Archive, target: TargetId, verdict: Verdict, now: datetime, *, by: str
) -> Turn:
    """A turn for now, if the site may be harvested and none is waiting or running."""
    name = targets.get(connection, target).name
    if not verdict:
        raise NotPermitted(targets_service.refusal(name, verdict))
    reason = said("asked_for_by", "requested by {agent}", agent=by or archive.agent)
    is_free = not scheduled_harvests.has_open(connection, target)
    turn = scheduled_harvests.add(connection, target, now, not_before=now, reason=reason) if is_free else None
    if turn is None:
        raise Conflict(
            said("harvest_is_open", "A harvest of {name} is already waiting or running.", name=name)
        )
    return turn


def retry(archive: Archive, number: int, *, by: str = "") -> Turn:
    """Repeat a turn that failed, was refused or skipped."""
    return _move(archive, number, "retry", by=by)


def skip(archive: Archive, number: int, *, by: str = "") -> Turn:
    """Skip a waiting turn; the next date comes as planned."""
    return _move(archive, number, "skip", by=by)


_PAST_TENSE = {"retry": "retried", "skip": "skipped"}


def _is_page(connection: Connection, turn: Turn) -> bool:
    """Whether a turn is about one page: another attempt is for that page, too."""
    return bool(turn.harvest) and harvest_rows.is_page(harvest_rows.get(connection, turn.harvest))


def _move(archive: Archive, number: int, act: str, *, by: str) -> Turn:
    now, agent = archive.clock(), by or archive.agent
    reason = said(f"turn_{act}", f"{_PAST_TENSE[act]} by {{agent}}", agent=agent)
    with archive.database.transaction() as connection:
        before = scheduled_harvests.get(connection, number)
        scheduled_harvests.move(
            connection,
            before,
            act,
            now,
            reason=reason,
            not_before=now if act == "retry" else None,
            forget_harvest=act == "retry" and not _is_page(connection, before),
        )
        if act == "skip":
            _end_unbegun(connection, archive, before, reason)
        after = scheduled_harvests.get(connection, number)
        detail = difference({"turn": before.state.value}, {"turn": after.state.value})
        append(connection, archive.event(f"turn: {act}", "target", str(before.target), by=by, detail=detail))
    return after


def _end_unbegun(connection: Connection, archive: Archive, turn: Turn, reason: str) -> None:
    """End the harvest of a turn that was skipped, if no process has worked on it yet."""
    harvest = harvest_rows.get(connection, turn.harvest) if turn.harvest else None
    if harvest is None or harvest.state is not HarvestState.RUNNING:
        return
    if not harvests.folder_of(archive, harvest).exists() and not harvests.is_locked(archive, harvest):
        harvest_rows.move(
            connection, harvest.id, HarvestState.FAILED, reason=reason, ended_at=archive.clock()
        )


# --- the calendar ---


def month(archive: Archive, year: int, number: int) -> list[PlanDay]:
    """Every day of a month: how many harvests are planned, and the turns that have come due."""
    local = zone(archive)
    today = archive.clock().astimezone(local).date()
    days = [date(year, number, day) for day in range(1, monthrange(year, number)[1] + 1)]
    first = datetime.combine(days[0], time(), tzinfo=local).astimezone(UTC)
    after = datetime.combine(days[-1] + timedelta(days=1), time(), tzinfo=local).astimezone(UTC)
    planned: Counter[date] = Counter()
    with archive.database.reading() as connection:
        if days[-1] >= today:
            for dates, count in _groups(archive):
                for day in plan_dates.days_between(dates, max(days[0], today), days[-1], local):
                    planned[day] += count
        due = scheduled_harvests.count_by_day(connection, first, after, local)
    # Today's dates that have already come are turns; only the others are still planned.
    planned[today] = max(planned[today] - sum(due.get(today, {}).values()), 0)
    return [PlanDay(on=day, planned=planned[day], turns=due.get(day, {})) for day in days]


def on_day(archive: Archive, day: date, *, limit: int = 50, after: int = 0) -> list[PlanRow]:
    """Plans with a date on a day, in the order of their targets' numbers."""
    local = zone(archive)
    with archive.database.reading() as connection:
        groups = _groups(archive)
        return plans.on_day(
            connection, groups, lambda dates: plan_dates.falls_on(dates, day, local), limit=limit, after=after
        )


def _groups(archive: Archive) -> list[tuple[Dates, int]]:
    """The rules for dates of active plans with their numbers; counted again after any change."""
    return archive.database.remembered("plans by day", lambda connection: list(plans.day_groups(connection)))


# --- parts ---


def _get(archive: Archive, target: TargetId) -> Plan:
    with archive.database.reading() as connection:
        plan = plans.find(connection, target)
    if plan is None:
        raise NotFound(
            said(
                "missing_plan",
                "Target {target} has no plan. Make one: webdepot schedule set {target} --every monthly",
                target=str(target),
            )
        )
    return plan


def _set_active(archive: Archive, target: TargetId, *, is_active: bool, by: str) -> Plan:
    before, now, agent = _get(archive, target), archive.clock(), by or archive.agent
    next_at = plan_dates.next_after(before.dates, now, zone(archive)) if is_active else None
    plan = replace(before, is_active=is_active, next_at=next_at, changed_by=agent, changed_at=now)
    with archive.database.transaction() as connection:
        plans.save(connection, plan)
        action = "plan resumed" if is_active else "plan paused"
        detail = difference(_plan_detail(before), _plan_detail(plan))
        append(connection, archive.event(action, "target", str(target), by=by, detail=detail))
    return plan


def _plan_detail(plan: Plan | None) -> dict[str, object]:
    if plan is None:
        return {}
    window = f"{plan.window.opens:%H:%M}-{plan.window.closes:%H:%M}" if plan.window else ""
    return {
        "frequency": plan.dates.frequency.value,
        "first_on": plan.dates.first_on.isoformat(),
        "at_time": f"{plan.dates.at_time:%H:%M}",
        "cron": plan.dates.cron,
        "last_on": plan.dates.last_on.isoformat() if plan.dates.last_on else "",
        "window": window,
        "profile": plan.profile,
        "active": plan.is_active,
    }
