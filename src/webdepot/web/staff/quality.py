"""The quality of a harvest for staff: verdict, findings, formats, and what can be done about them."""

import threading

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.archive import Archive
from webdepot.errors import WebdepotError
from webdepot.services.depot import examination
from webdepot.services.harvest import harvests
from webdepot.services.quality import harvest_check
from webdepot.services.review import patches, quality_view
from webdepot.web.forms import SHORT_FORM, page_number, read_form
from webdepot.web.site import name_of, render, site_of

FINDINGS_A_PAGE = 100


def show(request: Request) -> Response:
    code, page = request.query_params.get("code", "")[:60], page_number(request)
    view = quality_view.view(
        site_of(request).archive,
        request.path_params["harvest"],
        code=code,
        limit=FINDINGS_A_PAGE,
        offset=(page - 1) * FINDINGS_A_PAGE,
    )
    return render(
        request,
        "quality.html",
        harvest=view.harvest,
        checked=view.checked,
        findings=view.findings,
        code=code,
        page=page,
        has_more=len(view.findings) == FINDINGS_A_PAGE,
        missing=view.missing,
        patches=view.patches,
        table=view.table,
        shares=view.shares[:12],
        started=request.query_params.get("started", ""),
    )


def patch(request: Request) -> Response:
    """Start to harvest missing parts. The patch continues after this answer; if the server stops, it can be
    resumed.
    """
    archive = site_of(request).archive
    harvest = harvests.get(archive, request.path_params["harvest"])
    started = "none"
    if patches.missing(archive, harvest):
        threading.Thread(target=_patch, args=(archive, harvest.id, name_of(request)), name="patch").start()
        started = "patch"
    return RedirectResponse(f"/quality/{harvest.id}?started={started}", status_code=303)


def check_again(request: Request) -> Response:
    archive = site_of(request).archive
    harvest = harvests.get(archive, request.path_params["harvest"])
    examination.check_again(archive, harvest, by=name_of(request))
    return RedirectResponse(f"/quality/{harvest.id}", status_code=303)


async def ignore(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_ignore, request, form)


def _ignore(request: Request, form: dict[str, str]) -> Response:
    archive = site_of(request).archive
    harvest = harvests.get(archive, request.path_params["harvest"])
    harvest_check.ignore(
        archive,
        harvest,
        form.get("code", "")[:60],
        form.get("subject", "")[:500],
        reason=form.get("reason", "")[:500],
        by=name_of(request),
    )
    return RedirectResponse(f"/quality/{harvest.id}?started=ignored", status_code=303)


def _patch(archive: Archive, harvest: str, agent: str) -> None:
    """In an archive opened for this work: the server's connections are not meant for long work."""
    with Archive.open(archive.home, clock=archive.clock, agent=agent or archive.agent) as own:
        try:
            patches.patch(own, harvest)
        except WebdepotError:
            return  # the reason is kept with the harvest and in the events
