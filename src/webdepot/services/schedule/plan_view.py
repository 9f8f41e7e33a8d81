"""What the pages of the schedule show, and a plan set from what a person typed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from webdepot.archive import Archive
from webdepot.model import TargetId
from webdepot.selection import plan_dates
from webdepot.selection.plan_dates import Plan
from webdepot.selection.plans import PlanRow
from webdepot.selection.scheduled_harvests import TurnState
from webdepot.services.harvest import profiles
from webdepot.services.schedule import plans
from webdepot.services.schedule.plans import PlanDay, TargetPlan
from webdepot.services.selection import targets


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarView:
    """A month of the calendar."""

    today: date
    first: date
    """The first day of the month."""
    days: Mapping[date, PlanDay]
    rows: Sequence[PlanRow]
    """Plans with a date on the day that was asked for."""
    counts: Mapping[TurnState, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """The plan of a target and what a form to change it needs."""

    plan_of: TargetPlan
    profiles: Sequence[str]
    today: date


def view_calendar(
    archive: Archive, *, month: date | None, day: date | None, limit: int, after: int = 0
) -> CalendarView:
    """The calendar of the given month, else of the day's month, else of the current one; with a day, up to
    `limit` plans that fall on it, those after the target `after`.
    """
    today = _today(archive)
    first = month or (day or today).replace(day=1)
    return CalendarView(
        today=today,
        first=first,
        days={each.on: each for each in plans.month(archive, first.year, first.month)},
        rows=plans.on_day(archive, day, limit=limit, after=after) if day else [],
        counts=plans.counts(archive),
    )


def view(archive: Archive, target: TargetId) -> PlanView:
    """The plan of a target; NotFound when there is no such target."""
    usable, _ = profiles.every(archive)
    return PlanView(
        plan_of=plans.of_target(archive, target),
        profiles=[profile.name for profile in usable],
        today=_today(archive),
    )


def set_from_text(
    archive: Archive,
    target: TargetId,
    *,
    frequency: str,
    first_on: str,
    at_time: str,
    cron: str,
    last_on: str,
    opens: str,
    closes: str,
    profile: str,
    by: str,
) -> Plan:
    """Set the plan of a target; InputError names the part that is wrong."""
    dates = plan_dates.read_dates(frequency, first_on=first_on, at_time=at_time, cron=cron, last_on=last_on)
    window = plan_dates.read_window(opens, closes)
    return plans.set_plan(archive, target, dates, window=window, profile=profile, by=by)


def _today(archive: Archive) -> date:
    return archive.clock().astimezone(plans.zone(archive)).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlTestStart:
    """What a test crawl of a target starts from."""

    seeds: Sequence[str]
    profile: str
    """Of its plan; empty without one."""


def crawl_test_start(archive: Archive, target: int) -> CrawlTestStart:
    """The seeds of a target and the profile of its plan; NotFound if there is no such target."""
    dossier = targets.get(archive, target)
    plan = plans.of_target(archive, dossier.id, dates=0).plan
    return CrawlTestStart(seeds=dossier.target.seeds, profile=plan.profile if plan is not None else "")
