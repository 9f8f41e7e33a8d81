"""The schedule in the portal: the calendar, the list of plans, the plan of a target, and the queue of
scheduled harvests.
"""

from calendar import Calendar
from collections.abc import Mapping
from datetime import date, timedelta
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.roles import CURATORS
from webdepot.errors import ConfigError, Conflict, InputError, NotFound, NotPermitted
from webdepot.model import TargetId
from webdepot.reasons import said
from webdepot.selection.plan_dates import Frequency, Plan
from webdepot.selection.plans import ROWS, PlanFilter, PlanSort
from webdepot.selection.scheduled_harvests import TurnState
from webdepot.services.schedule import plan_view, plans
from webdepot.services.selection import targets
from webdepot.web import confirmation
from webdepot.web.forms import SHORT_FORM, find_number, page_number, read_form
from webdepot.web.problems import explain
from webdepot.web.site import may, name_of, render, site_of


def show_calendar(request: Request) -> Response:
    """A month; with a day, the plans that have a date on it."""
    archive, query = site_of(request).archive, request.query_params
    day = _day(query.get("day", ""))
    view = plan_view.view_calendar(
        archive,
        month=_month(query.get("month", "")),
        day=day,
        limit=ROWS,
        after=find_number(query.get("after", "")) or 0,
    )
    first, days = view.first, view.days
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
        today=view.today,
        day=day,
        rows=view.rows,
        shown=ROWS,
        counts=view.counts,
        zone=archive.config.schedule.timezone,
    )


def show_list(request: Request) -> Response:
    query = request.query_params
    wanted = PlanFilter(
        frequency=Frequency(query["frequency"]) if query.get("frequency") in set(Frequency) else None,
        is_active={"yes": True, "no": False}.get(query.get("active", "")),
        words=query.get("q", "").strip()[:200],
        sort=PlanSort.NAME if query.get("sort") == "name" else PlanSort.NEXT,
        page=page_number(request),
    )
    fields = {name: query.get(name, "")[:200] for name in ("q", "frequency", "active", "sort")}
    return render(
        request,
        "plans.html",
        found=plans.list_plans(site_of(request).archive, wanted),
        fields=fields,
        frequencies=list(Frequency),
        page=wanted.page,
        query=urlencode({name: value for name, value in fields.items() if value}),
    )


def show(request: Request) -> Response:
    return _page(request, _target(request))


async def change(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_change, request, form)


def show_queue(request: Request) -> Response:
    return _queue_page(request)


def _queue_page(request: Request, *, status: int = 200, wrong: str = "") -> Response:
    archive, name, page = site_of(request).archive, request.query_params.get("state"), page_number(request)
    state = TurnState(name) if name in set(TurnState) else None
    return render(
        request,
        "queue.html",
        status=status,
        wrong=wrong,
        found=plans.queue(archive, state, page=page),
        state=state,
        states=list(TurnState),
        counts=plans.counts(archive),
        page=page,
        may_plan=may(request, CURATORS),
    )


def show_page_form(request: Request) -> Response:
    """The form for one page that is to be archived now."""
    query = request.query_params
    return render(
        request,
        "page_now.html",
        url=query.get("url", "")[:4000],
        begun=query.get("begun", "")[:100],
        wrong="",
    )


async def archive_page(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_archive_page, request, form)


def _archive_page(request: Request, form: Mapping[str, str]) -> Response:
    url = form.get("url", "").strip()[:4000]
    try:
        harvest = plans.archive_page(site_of(request).archive, url, by=name_of(request))
    except (InputError, ConfigError, Conflict, NotPermitted) as error:
        wrong, status = explain(request, error), _status(error)
        return render(request, "page_now.html", status=status, url=url, begun="", wrong=wrong)
    return RedirectResponse(f"/schedule/page?begun={harvest.id}", status_code=303)


async def change_turn(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_change_turn, request, form)


def _page(
    request: Request,
    target: TargetId,
    *,
    wrong: str = "",
    form: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    archive = site_of(request).archive
    view = plan_view.view(archive, target)
    return render(
        request,
        "plan.html",
        status=status,
        found=view.plan_of,
        fields=_fields(view.plan_of.plan, view.today) | dict(form or {}),
        frequencies=list(Frequency),
        profiles=view.profiles,
        wrong=wrong,
        may_plan=may(request, CURATORS),
        zone=archive.config.schedule.timezone,
        is_busy=any(turn.state in (TurnState.WAITING, TurnState.RUNNING) for turn in view.plan_of.turns),
    )


def _change(request: Request, form: Mapping[str, str]) -> Response:
    archive, target, by = site_of(request).archive, _target(request), name_of(request)
    try:
        match form.get("order", ""):
            case "set":
                _set(request, target, form)
            case "pause":
                plans.pause(archive, target, by=by)
            case "resume":
                plans.resume(archive, target, by=by)
            case "remove" if (question := _ask(request, target, form)) is not None:
                return question
            case "remove":
                plans.remove(archive, target, by=by)
            case "run":
                turn = plans.run_now(archive, target, by=by)
                return RedirectResponse(f"/harvests/{turn.harvest}", status_code=303)
            case other:
                raise InputError(f"{other[:50]!r} is not a change to a plan.")
    except (InputError, ConfigError, Conflict, NotPermitted) as error:
        return _page(
            request,
            target,
            wrong=explain(request, error),
            form=form if form.get("order") == "set" else None,
            status=_status(error),
        )
    return RedirectResponse(f"/schedule/targets/{target}", status_code=303)


def _ask(request: Request, target: TargetId, form: Mapping[str, str]) -> Response | None:
    """The second question before a plan is removed."""
    subject = targets.get(site_of(request).archive, target).name
    return confirmation.ask(request, form, "plan", back=f"/schedule/targets/{target}", subject=subject)


def _set(request: Request, target: TargetId, form: Mapping[str, str]) -> None:
    names = ("frequency", "first_on", "at_time", "last_on", "opens", "closes")
    try:
        plan_view.set_from_text(
            site_of(request).archive,
            target,
            **{name: form.get(name, "") for name in names},
            cron=form.get("cron", "") if form.get("frequency") == Frequency.CRON else "",
            profile=form.get("profile", "")[:60],
            by=name_of(request),
        )
    except NotFound as error:
        raise InputError(str(error)) from error


def _change_turn(request: Request, form: Mapping[str, str]) -> Response:
    archive, by, number = site_of(request).archive, name_of(request), find_number(form.get("turn", "")) or 0
    try:
        match form.get("order", ""):
            case "retry":
                plans.retry(archive, number, by=by)
            case "skip":
                plans.skip(archive, number, by=by)
            case other:
                raise InputError(f"{other[:50]!r} is not a change to the queue.")
    except (InputError, Conflict) as error:
        return _queue_page(request, status=error.http_status, wrong=explain(request, error))
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
    number = find_number(request.path_params["target"])
    if number is None:
        raise NotFound(
            said("missing_target", "There is no target {target}.", target=request.path_params["target"][:40])
        )
    return targets.get(site_of(request).archive, number).id


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
