"""One action on many sites: choose them in the list, look at what would happen, do it, and watch it."""

import secrets
from collections import defaultdict
from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import ConfigError, InputError, NotFound
from webdepot.reasons import said
from webdepot.selection.plan_dates import Frequency
from webdepot.selection.target_batches import TargetChoice
from webdepot.services.admin import bulk_actions
from webdepot.services.admin.bulk_actions import BulkAct, BulkOrder
from webdepot.services.harvest import profiles
from webdepot.services.jobs import bulk, job_control, kinds
from webdepot.services.selection import criteria
from webdepot.web.forms import find_number, get_day, get_number, read_fields
from webdepot.web.jobs.portal_worker import error_of, start_job
from webdepot.web.problems import explain
from webdepot.web.site import render, site_of
from webdepot.web.staff.targets.target_list import filter_of, link_of, list_page

SHORT_WAIT_S = 2.0
"""A run on few sites is over before the next page is shown."""
_FIELDS = ("reason", "look_again_on", "collection", "frequency", "first_on", "at_time", "profile")


async def prepare(request: Request) -> Response:
    """The page that says what would happen."""
    fields = await read_fields(request)
    return await run_in_threadpool(_prepare, request, fields)


def _prepare(request: Request, fields: Sequence[tuple[str, str]]) -> Response:
    try:
        return _page(request, fields)
    except InputError as error:
        return list_page(request, status=400, wrong=explain(request, error))


async def run(request: Request) -> Response:
    fields = await read_fields(request)
    return await run_in_threadpool(_run, request, fields)


def _page(
    request: Request, fields: Sequence[tuple[str, str]], *, wrong: str = "", status: int = 200
) -> Response:
    archive, form = site_of(request).archive, dict(fields)
    act = _act_of(form.get("act", ""))
    choice = _choice_of(request, fields)
    questions = criteria.criteria_of(archive) if act is BulkAct.JUDGE else []
    return render(
        request,
        "bulk.html",
        status=status,
        wrong=wrong,
        act=act,
        form=defaultdict(str, form),
        choice=choice,
        query=link_of(filter_of(request)),
        preview=bulk_actions.preview(archive, choice, act),
        needs_reason=act in ("put off", "reject", "reopen", "end", "judge"),
        frequencies=[each for each in Frequency if each is not Frequency.CRON],
        profiles=[profile.name for profile in profiles.every(archive)[0]],
        criteria=[one for one in questions if one.kind != "text"],
    )


def _run(request: Request, fields: Sequence[tuple[str, str]]) -> Response:
    archive, form = site_of(request).archive, dict(fields)
    try:
        choice, order = _choice_of(request, fields), _order_of(form)
        bulk_actions.check(archive, order)
        expected = bulk_actions.preview(archive, choice, order.act)
        if str(expected.ready) != form.get("count", ""):
            text = "The list has changed since you opened the page. Check it again."
            raise InputError(said("list_has_changed", text))
    except (InputError, ConfigError, NotFound) as error:
        return _wrong(request, fields, explain(request, error))
    arguments = bulk.to_arguments(
        choice,
        order,
        total=expected.total,
        portal_url=site_of(request).portal_url,
        query=link_of(filter_of(request)),
    )
    # Each run is a job of its own: two of them may act on the same sites, one after the other.
    job = start_job(request, kinds.BULK, secrets.token_hex(8), arguments)
    job_control.wait(archive, job, at_most_s=SHORT_WAIT_S)
    return RedirectResponse(f"/targets/bulk/{job.id}", status_code=303)


def _wrong(request: Request, fields: Sequence[tuple[str, str]], wrong: str) -> Response:
    try:
        return _page(request, fields, wrong=wrong, status=400)
    except InputError:  # without sites or action there is no such page
        return list_page(request, status=400, wrong=wrong)


def show(request: Request) -> Response:
    """How far a run is."""
    job = job_control.get(site_of(request).archive, get_number(request.path_params["job"]))
    if job.kind != kinds.BULK:
        raise NotFound(said("no_job", "There is no job {number}.", number=str(job.id)))
    return render(
        request,
        "bulk_run.html",
        act=job.arguments["order"]["act"],
        query=job.arguments["query"],
        result=bulk.result_of(job),
        is_running=job.is_open,
        error=error_of(request, job),
    )


def _act_of(text: str) -> BulkAct:
    try:
        return BulkAct(text)
    except ValueError:
        raise InputError(said("choose_action", "Choose what to do with these sites.")) from None


def _order_of(form: dict[str, str]) -> BulkOrder:
    given = {name: form[name].strip() for name in _FIELDS if form.get(name, "").strip()}
    day = get_day(given.pop("look_again_on", ""))
    return BulkOrder(
        act=_act_of(form.get("act", "")),
        look_again_on=day,
        criterion=form.get("criterion", "")[:60],
        answer=float(form.get("answer", "") == "1"),
        **given,
    )


def _choice_of(request: Request, fields: Sequence[tuple[str, str]]) -> TargetChoice:
    """The ticked sites, or all that the filter in the address matches."""
    if ("all", "1") in fields:
        return TargetChoice(wanted=filter_of(request))
    numbers = [number for name, text in fields if name == "target" and (number := find_number(text))]
    if not numbers:
        text = "No site was chosen. Tick some in the list, or choose all that match the filter."
        raise InputError(said("no_site_chosen", text))
    return TargetChoice(numbers=numbers)
