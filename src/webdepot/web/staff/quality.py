"""The quality of a harvest for staff: verdict, findings, its formats, and what can be done about them."""

import threading

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.archive import Archive
from webdepot.errors import WebdepotError
from webdepot.services.harvest import harvests
from webdepot.services.quality import format_watch, harvest_check
from webdepot.services.review import patches
from webdepot.web.sign_in import read_form
from webdepot.web.site import name_of, person_of, render, site_of

FINDINGS_A_PAGE = 100


def quality(request: Request) -> Response:
    archive = site_of(request).archive
    harvest = harvests.get(archive, request.path_params["harvest"])
    code = request.query_params.get("code", "")[:60]
    page = max(
        1,
        int(request.query_params.get("page", "1")) if request.query_params.get("page", "1").isdigit() else 1,
    )
    found = harvest_check.findings_page(
        archive, harvest, code=code, limit=FINDINGS_A_PAGE, offset=(page - 1) * FINDINGS_A_PAGE
    )
    table, shares = format_watch.of_harvest(archive, harvest.id)
    return render(
        request,
        "quality.html",
        harvest=harvest,
        checked=harvest_check.last_check(archive, harvest.id),
        findings=found,
        code=code,
        page=page,
        has_more=len(found) == FINDINGS_A_PAGE,
        missing=len(patches.missing(archive, harvest)),
        patches=harvest_check.patches_of(archive, harvest),
        table=table,
        shares=shares[:12],
        started=request.query_params.get("started", ""),
    )


def patch(request: Request) -> Response:
    """Begin to harvest what is missing. It goes on behind this answer; a stopped server leaves it to be
    resumed.
    """
    archive = site_of(request).archive
    harvest = harvests.get(archive, request.path_params["harvest"])
    person = person_of(request)
    started = "none"
    if patches.missing(archive, harvest):
        threading.Thread(
            target=_patch, args=(archive, harvest.id, person.name if person else ""), name="patch"
        ).start()
        started = "patch"
    return RedirectResponse(f"/quality/{harvest.id}?started={started}", status_code=303)


def check_again(request: Request) -> Response:
    archive = site_of(request).archive
    harvest = harvests.get(archive, request.path_params["harvest"])
    harvest_check.check(archive, harvest, again=True, by=name_of(request))
    return RedirectResponse(f"/quality/{harvest.id}", status_code=303)


async def ignore(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_ignored, request, form)


def _ignored(request: Request, form: dict[str, str]) -> Response:
    archive = site_of(request).archive
    harvest = harvests.get(archive, request.path_params["harvest"])
    person = person_of(request)
    harvest_check.ignore(
        archive,
        harvest,
        form.get("code", "")[:60],
        form.get("subject", "")[:500],
        reason=form.get("reason", "")[:500],
        by=person.name if person else "",
    )
    return RedirectResponse(f"/quality/{harvest.id}?started=ignored", status_code=303)


def _patch(archive: Archive, harvest: str, agent: str) -> None:
    """With an archive of its own: the server's is not for long work."""
    with Archive.open(archive.home, clock=archive.clock, agent=agent or archive.agent) as own:
        try:
            patches.patch(own, harvest)
        except WebdepotError:
            return  # its reason stands with the harvest and in the events
