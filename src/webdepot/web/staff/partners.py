"""Partners in the portal: the last harvest, counts, refused records and why; harvest, ingest, retry."""

from collections import defaultdict
from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.roles import ADMINISTRATORS, CURATORS
from webdepot.engine.job_queue import QueuedJob
from webdepot.errors import Conflict, InputError
from webdepot.services.exchange import partner_admin
from webdepot.services.jobs import job_control, kinds
from webdepot.web.forms import SHORT_FORM, read_form
from webdepot.web.jobs.portal_worker import error_of, start_job
from webdepot.web.problems import explain
from webdepot.web.site import may, name_of, render, site_of


def show_list(request: Request) -> Response:
    return _list_page(request)


def _list_page(
    request: Request, *, status: int = 200, given: Mapping[str, str] | None = None, wrong: str = ""
) -> Response:
    archive = site_of(request).archive
    harvests = job_control.newest(archive, kinds.PARTNER)
    return render(
        request,
        "partners.html",
        status=status,
        given=defaultdict(str, given or {}),
        wrong=wrong,
        partners=partner_admin.every(archive),
        running=job_control.running(harvests),
        errors=job_control.last_errors(harvests),
        may_add=may(request, ADMINISTRATORS),
    )


def show(request: Request) -> Response:
    archive, name = site_of(request).archive, request.path_params["name"]
    job = job_control.find(archive, kinds.PARTNER, name)
    return render(
        request,
        "partner.html",
        status_=partner_admin.status(archive, name),
        is_running=job is not None and job.is_open,
        error=error_of(request, job),
        may_change=may(request, CURATORS),
    )


async def add(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_add, request, form)


def _add(request: Request, form: Mapping[str, str]) -> Response:
    name = form.get("name", "").strip()
    try:
        partner_admin.add(
            site_of(request).archive,
            name,
            form.get("url", ""),
            set_spec=form.get("set", "").strip(),
            token=form.get("token", "").strip(),
            transfer=form.get("transfer", ""),
            by=name_of(request),
        )
    except (InputError, Conflict) as error:
        return _list_page(request, status=error.http_status, given=form, wrong=explain(request, error))
    return RedirectResponse(f"/partners/{name}", status_code=303)


async def order(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_order, request, form)


def _order(request: Request, form: Mapping[str, str]) -> Response:
    name, what = request.path_params["name"], form.get("what", "")
    partner_admin.status(site_of(request).archive, name, failures=0)
    if what not in ("run", "retry"):
        raise InputError("Choose what to do: run or retry.")
    begin_harvest(request, name, retry=what == "retry", identifier=form.get("identifier", "")[:500])
    return RedirectResponse(f"/partners/{name}", status_code=303)


def begin_harvest(request: Request, name: str, *, retry: bool, identifier: str = "") -> QueuedJob:
    """The job that harvests the list of a partner; with `retry`, refused records are tried again, all of them
    or one. NotFound if there is no such partner.
    """
    archive, by = site_of(request).archive, name_of(request)
    partner_admin.status(archive, name, failures=0)
    if retry:
        partner_admin.retry(archive, name, identifier, by=by)
    return start_job(
        request,
        kinds.PARTNER,
        name,
        note=lambda connection: partner_admin.record_request(connection, archive, name, by=by),
    )
