"""Review in the portal: harvests that wait for a decision, one harvest with everything a reviewer needs (its
pages, findings and formats), and the decision.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.roles import CURATORS, REVIEWERS
from webdepot.engine.job_queue import JobState
from webdepot.errors import Conflict, InputError, NotFound, NotPermitted, WebdepotError
from webdepot.harvest.harvest_rows import HarvestFilter
from webdepot.model import HarvestState
from webdepot.quality.page_ratings import Rating
from webdepot.services.depot import examination
from webdepot.services.harvest import harvests
from webdepot.services.jobs import job_control, kinds
from webdepot.services.quality import harvest_check
from webdepot.services.review import ratings, replay_pictures, review_view, reviews
from webdepot.web import confirmation
from webdepot.web.forms import SHORT_FORM, find_number, page_number, read_form
from webdepot.web.jobs.portal_worker import error_of, start_job
from webdepot.web.problems import explain
from webdepot.web.site import language_of, local_path, may, name_of, render, site_of

FINDINGS_A_PAGE = 50
WAIT_S = 5.0
"""How long a page waits for work in the background; most of it is done by then."""
_ERRORS = {error.http_status: error for error in (InputError, NotPermitted, NotFound, Conflict)}
_BEGUN = ("accept", "patch", "pictures", "ignored")
_STATES = (
    HarvestState.FINISHED,
    HarvestState.REJECTED,
    HarvestState.KEPT,
    HarvestState.FAILED,
    HarvestState.STOPPED,
)


def show_list(request: Request) -> Response:
    archive, query = site_of(request).archive, request.query_params
    state = HarvestState(query["state"]) if query.get("state") in set(_STATES) else HarvestState.FINISHED
    collection = query.get("collection", "").strip()[:60]
    wanted = HarvestFilter(
        state=state,
        collection=collection,
        oldest_first=state is HarvestState.FINISHED,
        page=page_number(request),
    )
    waits = state is HarvestState.FINISHED
    listing = reviews.list_waiting(archive, wanted) if waits else reviews.list_harvests(archive, wanted)
    in_check = reviews.list_in_check(archive, replace(wanted, page=1)).rows if waits else ()
    filters = urlencode(
        {name: value for name, value in (("state", state.value), ("collection", collection)) if value}
    )
    return render(
        request,
        "reviews.html",
        found=listing,
        in_check=in_check,
        busy=reviews.busy(archive, in_check),
        verdicts=reviews.verdicts_of(archive, listing.rows),
        state=state,
        states=_STATES,
        collection=collection,
        query=filters,
    )


def show(request: Request) -> Response:
    return _page(request)


async def decide(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_decide, request, form)


async def annotate(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_annotate, request, form)


def patch(request: Request) -> Response:
    """Harvest missing parts."""
    return _start(request, kinds.PATCH)


def take_pictures(request: Request) -> Response:
    """Take screenshots of the replay again, for example after a patch."""
    return _start(request, kinds.PICTURES)


def check_again(request: Request) -> Response:
    archive = site_of(request).archive
    harvest = harvests.get(archive, request.path_params["harvest"])
    examination.check_again(archive, harvest, by=name_of(request))
    return RedirectResponse(f"/review/{harvest.id}", status_code=303)


async def ignore(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_ignore, request, form)


async def rate(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_rate, request, form)


def show_quality(request: Request) -> Response:
    """Redirect the former address of the findings to the review page, which shows them now."""
    code = request.query_params.get("code", "")
    path = f"/review/{request.path_params['harvest']}"
    return RedirectResponse(local_path(path + (f"?{urlencode({'code': code})}" if code else "")), 301)


def _page(
    request: Request,
    *,
    wrong: str = "",
    words: str = "",
    given: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    query, page = request.query_params, page_number(request)
    code = query.get("code", "")[:60]
    begun, failure = _begun(request)
    view = review_view.view(
        site_of(request).archive,
        request.path_params["harvest"],
        code=code,
        limit=FINDINGS_A_PAGE + 1 if code else 0,
        offset=(page - 1) * FINDINGS_A_PAGE if code else 0,
    )
    return render(
        request,
        "review.html",
        status=status,
        view=view,
        found=view.dossier,
        harvest=view.dossier.harvest,
        code=code,
        a_page=FINDINGS_A_PAGE,
        has_more=any(len(line.findings) > FINDINGS_A_PAGE for _, lines in view.groups for line in lines),
        page=page,
        rating_names=list(Rating),
        may_decide=may(request, REVIEWERS),
        may_steer=may(request, CURATORS),
        wrong=wrong or failure,
        words=words,
        given=given or {"url": query.get("page_url", "")[:2000]},
        begun=begun,
    )


def _begun(request: Request) -> tuple[str, str]:
    """The work that the person started here and that is still running, and why it failed if it has."""
    begun = request.query_params.get("begun", "")
    if begun not in _BEGUN or begun == "ignored":
        return begun if begun in _BEGUN else "", ""
    job = job_control.find(site_of(request).archive, begun, request.path_params["harvest"])
    return begun if job is not None and job.is_open else "", error_of(request, job)


def _ignore(request: Request, form: Mapping[str, str]) -> Response:
    archive = site_of(request).archive
    harvest = harvests.get(archive, request.path_params["harvest"])
    code, subject = form.get("code", "")[:60], form.get("subject", "")[:500]
    what = subject or language_of(request).texts.get(f"quality.codes.{code.partition('.')[2]}", code)
    back = f"/review/{harvest.id}#findings"
    if question := confirmation.ask(request, form, "ignore", back=back, subject=what):
        return question
    harvest_check.ignore(
        archive,
        harvest,
        code,
        subject,
        reason=form.get("reason", "")[:500],
        by=name_of(request),
    )
    return RedirectResponse(f"/review/{harvest.id}?begun=ignored#findings", status_code=303)


def _rate(request: Request, form: Mapping[str, str]) -> Response:
    harvest = request.path_params["harvest"]
    try:
        ratings.rate(
            site_of(request).archive,
            harvest,
            url=form.get("url", ""),
            rating=form.get("rating", ""),
            words=form.get("words", ""),
            by=name_of(request),
        )
    except InputError as error:
        return _page(request, wrong=explain(request, error), given=form, status=400)
    return RedirectResponse(f"/review/{harvest}#pages", status_code=303)


def _decide(request: Request, form: Mapping[str, str]) -> Response:
    archive, harvest, by = site_of(request).archive, request.path_params["harvest"], name_of(request)
    words = form.get("words", "")[:5000]
    try:
        match form.get("order", ""):
            case "accept":
                reviews.check_acceptance(archive, harvest, by=by)
                return _ask(request, form, "accept") or _start(request, kinds.ACCEPT, {"words": words})
            case "reject" if words.strip() and (question := _ask(request, form, "reject")) is not None:
                return question
            case "reject":
                reviews.reject(archive, harvest, by=by, words=words)
            case "reopen":
                reviews.reopen(archive, harvest, by=by, words=words)
            case other:
                raise InputError(f"{other[:50]!r} is not a decision. Choose accept, reject or reopen.")
    except (InputError, Conflict, NotPermitted) as error:
        return _page(request, wrong=explain(request, error), words=words, status=error.http_status)
    return RedirectResponse(f"/review/{harvest}", status_code=303)


def _ask(request: Request, form: Mapping[str, str], act: str) -> Response | None:
    """The second question before an acceptance or a rejection."""
    harvest = harvests.get(site_of(request).archive, request.path_params["harvest"])
    back, subject = f"/review/{harvest.id}", " ".join(harvest.seeds[:3])
    return confirmation.ask(request, form, act, back=back, subject=subject)


def _annotate(request: Request, form: Mapping[str, str]) -> Response:
    harvest = request.path_params["harvest"]
    try:
        reviews.annotate(site_of(request).archive, harvest, by=name_of(request), words=form.get("words", ""))
    except InputError as error:
        return _page(request, wrong=explain(request, error), status=400)
    return RedirectResponse(f"/review/{harvest}", status_code=303)


def _start(request: Request, kind: str, arguments: Mapping[str, Any] | None = None) -> Response:
    """Start long-running work on a harvest. The page waits a few seconds to show its result."""
    harvest = harvests.get(site_of(request).archive, request.path_params["harvest"]).id
    try:
        is_done = run_job(request, kind, arguments)
    except WebdepotError as error:
        return _page(request, wrong=explain(request, error), status=error.http_status)
    return RedirectResponse(f"/review/{harvest}" + ("" if is_done else f"?begun={kind}"), status_code=303)


def run_job(request: Request, kind: str, arguments: Mapping[str, Any] | None = None) -> bool:
    """Start long-running work on the harvest of a request. Returns after at most `WAIT_S` seconds whether it
    is done; raises its error if it has failed by then.
    """
    archive = site_of(request).archive
    harvest = harvests.get(archive, request.path_params["harvest"]).id
    job = start_job(request, kind, harvest, arguments, needs=f"harvests/{harvest}")
    job = job_control.wait(archive, job, at_most_s=WAIT_S)
    if job.state is JobState.FAILED:
        raise _ERRORS.get(job.result.get("http_status", 0), WebdepotError)(job.reason)
    return not job.is_open


def send_picture(request: Request) -> Response:
    """A screenshot, never interpreted as anything but an image."""
    number = find_number(request.path_params["number"]) or 0
    return _picture(*reviews.read_screenshot(site_of(request).archive, number))


def send_replay_picture(request: Request) -> Response:
    """A screenshot of the replay of a page."""
    name, _, _ = request.path_params["name"].partition(".")
    return _picture(*replay_pictures.read(site_of(request).archive, request.path_params["harvest"], name))


def _picture(mime: str, data: bytes) -> Response:
    headers = {
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, max-age=3600",
    }
    return Response(data, media_type=mime, headers=headers)
