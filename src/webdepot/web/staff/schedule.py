"""Plans in the portal: the calendar, the list of plans, one target's plan, and the queue of turns."""

from calendar import Calendar
from collections.abc import Mapping
from datetime import date, timedelta
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import ConfigError, Conflict, InputError, NotFound, NotPermitted
from webdepot.model import TargetId
from webdepot.selection import schedule as reading
from webdepot.selection.schedule import Frequency, Plan
from webdepot.selection.schedules import ROWS, PlanFilter, PlanSort
from webdepot.selection.turns import TurnState
from webdepot.services.harvest import profiles as profiles_service
from webdepot.services.schedule import plans
from webdepot.services.selection import targets
from webdepot.web.problems import words_for
from webdepot.web.sign_in import read_form
from webdepot.web.site import CURATORS, may, name_of, render, site_of

_OPEN = (TurnState.RUNNING, TurnState.WAITING, TurnState.FAILED, TurnState.REFUSED)


def calendar(request: Request) -> Response:
    """A month; with a day, whose date falls on it."""
    archive, asked = site_of(request).archive, request.query_params
    today = archive.clock().astimezone(plans.zone(archive)).date()
    day = _day(asked.get("day", ""))
    first = _month(asked.get("month", "")) or (day or today).replace(day=1)
    days = {each.on: each for each in plans.month(archive, first.year, first.month)}
    after = number_of(asked.get("after", ""))
    return render(
        request,
        "calendar.html",
        first=first,
        before=(first - timedelta(days=1)).replace(day=1),
        following=(first + timedelta(days=32)).replace(day=1),
        weeks=[
            [days.get(each) for each in week]
            for week in Calendar().monthdatescalendar(first.year, first.month)
        ],
        most=max((each.planned + sum(each.turns.values()) for each in days.values()), default=0) or 1,
        today=today,
        day=day,
        rows=plans.on_day(archive, day, limit=ROWS, after=after) if day else [],
        shown=ROWS,
        counts=plans.counts(archive),
        zone=archive.config.schedule.timezone,
    )


def listed(request: Request) -> Response:
    archive, given = site_of(request).archive, request.query_params
    asked = PlanFilter(
        frequency=Frequency(given["frequency"]) if given.get("frequency") in set(Frequency) else None,
        is_active={"yes": True, "no": False}.get(given.get("active", "")),
        words=given.get("q", "").strip()[:200],
        sort=PlanSort.NAME if given.get("sort") == "name" else PlanSort.NEXT,
        page=max(number_of(given.get("page", "")), 1),
    )
    found = plans.list_plans(archive, asked)
    fields = {name: given.get(name, "")[:200] for name in ("q", "frequency", "active", "sort")}
    query = urlencode({name: value for name, value in fields.items() if value})
    return render(
        request,
        "plans.html",
        found=found,
        fields=fields,
        frequencies=list(Frequency),
        page=asked.page,
        query=query,
    )


def shown(request: Request) -> Response:
    return _page(request, _target(request))


async def change(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_changed, request, form)


def queue(request: Request) -> Response:
    archive, given = site_of(request).archive, request.query_params
    state = TurnState(given["state"]) if given.get("state") in set(TurnState) else None
    page = max(number_of(given.get("page", "")), 1)
    found = plans.queue(archive, state, page=page)
    return render(
        request,
        "queue.html",
        found=found,
        state=state,
        states=list(TurnState),
        counts=plans.counts(archive),
        page=page,
        may_plan=may(request, CURATORS),
    )


async def change_turn(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_turn_changed, request, form)


def _page(
    request: Request,
    target: TargetId,
    *,
    wrong: str = "",
    form: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    archive = site_of(request).archive
    found = plans.of_target(archive, target)
    profiles, _ = profiles_service.every(archive)
    today = archive.clock().astimezone(plans.zone(archive)).date()
    return render(
        request,
        "plan.html",
        status=status,
        found=found,
        fields=_fields(found.plan, today) | dict(form or {}),
        frequencies=list(Frequency),
        profiles=[profile.name for profile in profiles],
        wrong=wrong,
        may_plan=may(request, CURATORS),
        zone=archive.config.schedule.timezone,
        is_busy=any(turn.state in (TurnState.WAITING, TurnState.RUNNING) for turn in found.turns),
    )


def _changed(request: Request, form: Mapping[str, str]) -> Response:
    archive, target, by = site_of(request).archive, _target(request), name_of(request)
    try:
        match form.get("order", ""):
            case "set":
                _set(request, target, form)
            case "pause":
                plans.pause(archive, target, by=by)
            case "resume":
                plans.resume(archive, target, by=by)
            case "remove":
                plans.remove(archive, target, by=by)
            case "run":
                plans.run_now(archive, target, by=by)
            case other:
                raise InputError(f"{other[:50]!r} is no order.")
    except (InputError, ConfigError, Conflict, NotPermitted) as error:
        return _page(
            request,
            target,
            wrong=words_for(request, error),
            form=form if form.get("order") == "set" else None,
            status=_status(error),
        )
    return RedirectResponse(f"/schedule/targets/{target}", status_code=303)


def _set(request: Request, target: TargetId, form: Mapping[str, str]) -> None:
    dates = reading.read_dates(
        form.get("frequency", ""),
        first_on=form.get("first_on", ""),
        at_time=form.get("at_time", ""),
        cron=form.get("cron", "") if form.get("frequency") == Frequency.CRON else "",
        last_on=form.get("last_on", ""),
    )
    window = reading.read_window(form.get("opens", ""), form.get("closes", ""))
    try:
        plans.set_plan(
            site_of(request).archive,
            target,
            dates,
            window=window,
            profile=form.get("profile", "")[:60],
            by=name_of(request),
        )
    except NotFound as error:
        raise InputError(str(error)) from error


def _turn_changed(request: Request, form: Mapping[str, str]) -> Response:
    archive, by, number = site_of(request).archive, name_of(request), number_of(form.get("turn", ""))
    match form.get("order", ""):
        case "retry":
            plans.retry(archive, number, by=by)
        case "skip":
            plans.skip(archive, number, by=by)
        case other:
            raise InputError(f"{other[:50]!r} is no order.")
    return RedirectResponse("/schedule/queue", status_code=303)


def _fields(plan: Plan | None, today: date) -> dict[str, str]:
    if plan is None:
        return {
            "frequency": "monthly",
            "first_on": today.isoformat(),
            "at_time": "03:00",
            "cron": "",
            "last_on": "",
        } | dict.fromkeys(("opens", "closes", "profile"), "")
    return {
        "frequency": plan.dates.frequency.value,
        "first_on": plan.dates.first_on.isoformat(),
        "at_time": f"{plan.dates.at_time:%H:%M}",
        "cron": plan.dates.cron,
        "last_on": plan.dates.last_on.isoformat() if plan.dates.last_on else "",
        "opens": f"{plan.window.opens:%H:%M}" if plan.window else "",
        "closes": f"{plan.window.closes:%H:%M}" if plan.window else "",
        "profile": plan.profile,
    }


def _target(request: Request) -> TargetId:
    text = request.path_params["target"]
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise NotFound(f"There is no target {text[:50]}.")
    return targets.get(site_of(request).archive, int(text)).id


def _status(error: Exception) -> int:
    return error.http_status if isinstance(error, (InputError, Conflict, NotPermitted)) else 400


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if 1990 <= day.year <= 2200 else None


def _month(text: str) -> date | None:
    return _day(f"{text}-01") if len(text) == 7 else None


def number_of(text: str) -> int:
    """A number in an address; 0 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0
