"""Plans of people: how often a target is harvested, in which hours and by which profile; and what comes next,
as a list and as a calendar.

The dates themselves are `selection.schedule`; what runs them is `scheduler`. Each change is an event with
before and after.
"""

from calendar import monthrange
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from webdepot.archive import Archive
from webdepot.errors import Conflict, NotFound, NotPermitted
from webdepot.model import TargetId, Verdict
from webdepot.provenance import Event, append, difference
from webdepot.reasons import said
from webdepot.selection import schedule, schedules, targets
from webdepot.selection.schedule import Dates, Plan, Window
from webdepot.selection.schedules import Filter, Planned, Plans, Queue, Turn, TurnState
from webdepot.services.harvest import profiles
from webdepot.services.selection import targets as targets_service

SHOWN_TURNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOf:
    """One target's plan with what a person wants to know about it."""

    target: TargetId
    name: str
    plan: Plan | None
    verdict: Verdict
    """May it be harvested today, and if not, what is missing."""
    next_dates: Sequence[datetime]
    turns: Sequence[Turn]
    """The newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    on: date
    planned: int
    """Dates of plans that lie ahead on this day."""
    turns: Mapping[TurnState, int]
    """What became of those that have come."""


def zone(archive: Archive) -> ZoneInfo:
    return schedule.zone_of(archive.config.schedule.timezone)


def set_plan(
    archive: Archive,
    target: TargetId,
    dates: Dates,
    *,
    window: Window | None = None,
    profile: str = "",
    is_active: bool = True,
    by: str = "",
) -> Plan:
    """The plan of a target from now on. NotFound or ConfigError for a profile that is none; the gate is asked
    on each date.
    """
    profiles.options_of(archive, profile)
    now, agent = archive.clock(), by or archive.agent
    next_at = schedule.next_after(dates, now, zone(archive)) if is_active else None
    with archive.database.transaction() as connection:
        found = targets.get(connection, target)
        before = schedules.find(connection, target)
        plan = Plan(
            target=found.id,
            dates=dates,
            window=window,
            profile=profile,
            is_active=is_active,
            next_at=next_at,
            last_at=before.last_at if before else None,
            changed_by=agent,
            changed_at=now,
        )
        schedules.save(connection, plan)
        append(connection, _event(target, "planned", now, agent, before, plan))
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
    dates = schedule.read_dates(
        frequency, first_on=first_on or today, at_time=at_time, cron=cron, last_on=last_on
    )
    window = schedule.read_window(opens, closes)
    return set_plan(archive, target, dates, window=window, profile=profile, by=by)


def pause(archive: Archive, target: TargetId, *, by: str = "") -> Plan:
    """No date comes true until it is resumed; turns that wait are taken out."""
    plan = _set_active(archive, target, is_active=False, by=by)
    now = archive.clock()
    with archive.database.transaction() as connection:
        for turn in schedules.of_target(connection, target, SHOWN_TURNS):
            if turn.state is TurnState.WAITING:
                schedules.move(
                    connection, turn, "skip", now, reason=said("plan_paused", "the plan was paused")
                )
    return plan


def resume(archive: Archive, target: TargetId, *, by: str = "") -> Plan:
    return _set_active(archive, target, is_active=True, by=by)


def remove(archive: Archive, target: TargetId, *, by: str = "") -> None:
    """No plan any more; what was harvested stays."""
    now, agent = archive.clock(), by or archive.agent
    with archive.database.transaction() as connection:
        before = _get(archive, target)
        schedules.remove(connection, target)
        append(connection, _event(target, "unplanned", now, agent, before, None))


def of_target(archive: Archive, target: TargetId, *, dates: int = 6) -> PlanOf:
    with archive.database.reading() as connection:
        found = targets.get(connection, target)
        plan = schedules.find(connection, target)
        turns = schedules.of_target(connection, target, SHOWN_TURNS)
    ahead: list[datetime] = []
    at = archive.clock()
    while plan is not None and plan.is_active and len(ahead) < dates:
        following = schedule.next_after(plan.dates, at, zone(archive))
        if following is None:
            break
        ahead.append(following)
        at = following
    verdict = targets_service.may_harvest(archive, target)
    return PlanOf(target=target, name=found.name, plan=plan, verdict=verdict, next_dates=ahead, turns=turns)


def listed(archive: Archive, asked: Filter) -> Plans:
    with archive.database.reading() as connection:
        return schedules.listing(connection, asked)


def queue(archive: Archive, state: TurnState | None, *, page: int = 1) -> Queue:
    with archive.database.reading() as connection:
        return schedules.queue(connection, state, page=page)


def counts(archive: Archive) -> Mapping[TurnState, int]:
    with archive.database.reading() as connection:
        return schedules.counts(connection)


def turn_of(archive: Archive, harvest: str) -> Turn | None:
    with archive.database.reading() as connection:
        return schedules.of_harvest(connection, harvest)


def run_now(archive: Archive, target: TargetId, *, by: str = "") -> Turn:
    """A turn now, besides the plan. NotPermitted says what is missing; Conflict when one waits or runs
    already.
    """
    verdict = targets_service.may_harvest(archive, target)
    now, agent = archive.clock(), by or archive.agent
    with archive.database.transaction() as connection:
        found = targets.get(connection, target)
        if not verdict:
            raise NotPermitted(targets_service.refusal(found.name, verdict))
        if schedules.has_open(connection, target):
            raise Conflict(f"A harvest of {found.name} waits or runs already. See: webdepot schedule queue")
        turn = schedules.come(
            connection,
            target,
            now,
            not_before=now,
            reason=said("asked_for_by", "requested by {agent}", agent=agent),
        )
        if turn is None:
            raise Conflict(f"There is a turn of {found.name} at this very moment already.")
        detail = difference({}, {"due_at": now.isoformat()})
        append(
            connection,
            Event(
                at=now,
                agent=agent,
                action="asked for",
                subject_kind="target",
                subject=str(target),
                detail=detail,
            ),
        )
    return turn


def retry(archive: Archive, number: int, *, by: str = "") -> Turn:
    """Try a turn again that failed, was refused or taken out."""
    return _move(archive, number, "retry", by=by)


def skip(archive: Archive, number: int, *, by: str = "") -> Turn:
    """Take a waiting turn out; the next date comes as planned."""
    return _move(archive, number, "skip", by=by)


_PAST = {"retry": "retried", "skip": "skipped"}


def _move(archive: Archive, number: int, act: str, *, by: str) -> Turn:
    now, agent = archive.clock(), by or archive.agent
    with archive.database.transaction() as connection:
        before = schedules.get(connection, number)
        schedules.move(
            connection,
            before,
            act,
            now,
            reason=said(f"turn_{act}", f"{_PAST[act]} by {{agent}}", agent=agent),
            not_before=now if act == "retry" else None,
            forget_harvest=act == "retry",
        )
        after = schedules.get(connection, number)
        detail = difference({"turn": before.state.value}, {"turn": after.state.value})
        append(
            connection,
            Event(
                at=now,
                agent=agent,
                action=f"turn: {act}",
                subject_kind="target",
                subject=str(before.target),
                detail=detail,
            ),
        )
    return after


# --- the calendar ---


def month(archive: Archive, year: int, number: int) -> list[Day]:
    """Every day of a month: how many harvests lie ahead, and what became of those that have come."""
    local, now = zone(archive), archive.clock()
    today = now.astimezone(local).date()
    days = [date(year, number, day) for day in range(1, monthrange(year, number)[1] + 1)]
    first = datetime.combine(days[0], time(), tzinfo=local).astimezone(UTC)
    after = datetime.combine(days[-1] + timedelta(days=1), time(), tzinfo=local).astimezone(UTC)
    planned: Counter[date] = Counter()
    with archive.database.reading() as connection:
        if days[-1] >= today:
            for dates, count in _groups(archive):
                for day in schedule.days_between(dates, max(days[0], today), days[-1], local):
                    planned[day] += count
        come = schedules.by_day(connection, first, after, local)
    # Today's dates that have come already are turns; the rest of today lies ahead.
    planned[today] = max(planned[today] - sum(come.get(today, {}).values()), 0)
    return [Day(on=day, planned=planned[day], turns=come.get(day, {})) for day in days]


def on_day(archive: Archive, day: date, *, limit: int = 50, after: int = 0) -> list[Planned]:
    """Whose date falls on a day, by the number of the target."""
    local = zone(archive)
    with archive.database.reading() as connection:
        groups = _groups(archive)
        return schedules.on_day(
            connection, groups, lambda dates: schedule.falls_on(dates, day, local), limit=limit, after=after
        )


def _groups(archive: Archive) -> list[tuple[Dates, int]]:
    """Active plans by what decides their days; counted anew when anything has been changed."""
    return archive.database.remembered(
        "plans by day", lambda connection: list(schedules.day_groups(connection))
    )


# --- parts ---


def _get(archive: Archive, target: TargetId) -> Plan:
    with archive.database.reading() as connection:
        found = schedules.find(connection, target)
    if found is None:
        raise NotFound(
            f"Target {target} has no plan. Make one: webdepot schedule set {target} --every monthly"
        )
    return found


def _set_active(archive: Archive, target: TargetId, *, is_active: bool, by: str) -> Plan:
    before, now, agent = _get(archive, target), archive.clock(), by or archive.agent
    next_at = schedule.next_after(before.dates, now, zone(archive)) if is_active else None
    plan = replace(before, is_active=is_active, next_at=next_at, changed_by=agent, changed_at=now)
    with archive.database.transaction() as connection:
        schedules.save(connection, plan)
        append(
            connection,
            _event(target, "plan resumed" if is_active else "plan paused", now, agent, before, plan),
        )
    return plan


def _event(
    target: TargetId, action: str, now: datetime, agent: str, before: Plan | None, after: Plan | None
) -> Event:
    detail = difference(_plain(before), _plain(after))
    return Event(
        at=now, agent=agent, action=action, subject_kind="target", subject=str(target), detail=detail
    )


def _plain(plan: Plan | None) -> dict[str, object]:
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
