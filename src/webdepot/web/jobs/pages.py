"""Jobs in the portal: long-running work, its progress and outcome; cancelling a job."""

from collections.abc import Callable, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.roles import CURATORS
from webdepot.engine.job_queue import JobState, QueuedJob
from webdepot.errors import Conflict, NotPermitted
from webdepot.reasons import said
from webdepot.services.jobs import job_control, kinds
from webdepot.services.jobs.task import WATCHED
from webdepot.web import confirmation
from webdepot.web.forms import SHORT_FORM, get_number, page_number, read_form
from webdepot.web.problems import explain
from webdepot.web.site import may, name_of, render, site_of

_PATHS: Mapping[str, Callable[[QueuedJob], str]] = {
    kinds.AUDIT: lambda job: "/depot#audit",
    kinds.FILL: lambda job: "/depot#audit",
    kinds.BULK: lambda job: f"/targets/bulk/{job.id}",
    kinds.IMPORT: lambda job: "/import",
    kinds.SURVEY: lambda job: "/organisations",
    kinds.PARTNER: lambda job: f"/partners/{job.subject}",
    kinds.CRAWL_TEST: lambda job: f"/scope/test/{job.subject}",
    kinds.ACCEPT: lambda job: f"/review/{job.subject}",
    kinds.PATCH: lambda job: f"/review/{job.subject}",
    kinds.PICTURES: lambda job: f"/review/{job.subject}",
    kinds.END_HARVEST: lambda job: f"/harvests/{job.subject}",
    kinds.INDEX: lambda job: "/status",
}


def show_list(request: Request) -> Response:
    return _page(request)


def _page(request: Request, *, wrong: str = "", status: int = 200) -> Response:
    wanted = request.query_params.get("state", "")
    state = JobState(wanted) if wanted in set(JobState) else None
    listing = job_control.list_page(site_of(request).archive, state, page=page_number(request))
    return render(
        request,
        "jobs.html",
        status=status,
        wrong=wrong,
        listing=listing,
        state=state or "",
        states=list(JobState),
        page=page_number(request),
        is_changing=any(job.is_open for job in listing.rows),
        page_of=_page_of,
        subject_of=_subject_of,
        watched=WATCHED,
        may_cancel=[job.id for job in listing.rows if _may_cancel(request, job)],
    )


async def cancel(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_cancel, request, form)


def _cancel(request: Request, form: Mapping[str, str]) -> Response:
    if question := confirmation.ask(request, form, "job", back="/jobs"):
        return question
    try:
        cancel_job(request, get_number(form.get("job", "")))
    except Conflict as error:
        return _page(request, wrong=explain(request, error), status=409)
    return RedirectResponse("/jobs", status_code=303)


def cancel_job(request: Request, number: int) -> QueuedJob:
    """Cancel a job that waits, for the person who is signed in; NotPermitted, or Conflict if it no longer
    waits.
    """
    archive = site_of(request).archive
    if not _may_cancel(request, job_control.get(archive, number), in_any_state=True):
        text = "Only curators and the person who started a job can cancel it."
        raise NotPermitted(said("job_of_another", text))
    job = job_control.cancel(archive, number, by=name_of(request))
    kinds.clean_up(archive, job)
    return job


def _may_cancel(request: Request, job: QueuedJob, *, in_any_state: bool = False) -> bool:
    is_theirs = may(request, CURATORS) or job.by == name_of(request)
    return is_theirs and (in_any_state or job.state is JobState.WAITING)


def _page_of(job: QueuedJob) -> str:
    """The page where the work was started."""
    return _PATHS[job.kind](job) if job.kind in _PATHS else "/jobs"


def _subject_of(job: QueuedJob) -> str:
    """What the job works on, if its subject says so."""
    if job.kind == kinds.IMPORT:
        return ", ".join(job.arguments.get("names", ())[:3])
    return "" if job.kind in (kinds.BULK, kinds.CRAWL_TEST) else job.subject
