"""Organisations in the portal: profile, table and diagram of domains, corrections, accepting and rejecting
hosts, CSV, and starting a survey.
"""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import InputError
from webdepot.services.selection import discovery, organisation_view, organisations
from webdepot.web.background import BackgroundRuns
from webdepot.web.forms import SHORT_FORM, read_form
from webdepot.web.site import name_of, of_app, render, site_of
from webdepot.web.staff import domain_chart

KINDS = ("own", "ask", "other", "wait")
MOST_ROWS = 2000
_FIELDS = {
    "name": "names",
    "range": "ranges",
    "name_server": "name_servers",
    "domain": "domains",
    "stranger": "strangers",
    "remove": "remove",
}


class Surveys:
    """Surveys in the background, one at a time for each organisation."""

    def __init__(self) -> None:
        self.runs = BackgroundRuns()


def show_list(request: Request) -> Response:
    runs = of_app(request, Surveys).runs
    return render(
        request,
        "organisations.html",
        organisations=organisations.list_organisations(site_of(request).archive),
        running=runs.running(),
        errors=runs.errors,
    )


async def start(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_start, request, form)


def _start(request: Request, form: Mapping[str, str]) -> Response:
    archive, by = site_of(request).archive, name_of(request)
    domain = organisations.parse_domain(form.get("domain", ""))
    runs = of_app(request, Surveys).runs
    if not runs.is_running(domain):
        organisations.note_request(archive, domain, by=by)
    allow_private = archive.config.harvest.allow_private
    runs.start(domain, lambda: discovery.discover(archive, domain, allow_private=allow_private, by=by))
    return RedirectResponse("/organisations", status_code=303)


def show(request: Request) -> Response:
    kind = request.query_params.get("own", "")
    kind = kind if kind in KINDS else ""
    view = organisation_view.view(
        site_of(request).archive, request.path_params["root"], kind=kind, limit=MOST_ROWS
    )
    root = view.organisation.root
    return render(
        request,
        "organisation.html",
        organisation=view.organisation,
        profile=view.organisation.profile,
        hosts=view.hosts,
        counts=view.counts,
        kind=kind,
        kinds=KINDS,
        picture=domain_chart.draw(root, view.every_host),
        is_cut=len(view.hosts) >= MOST_ROWS,
        is_running=of_app(request, Surveys).runs.is_running(root),
    )


def as_csv(request: Request) -> Response:
    archive = site_of(request).archive
    organisation = organisations.get(archive, request.path_params["root"])
    text = organisations.as_csv(organisations.hosts_of(archive, organisation))
    headers = {"Content-Disposition": f'attachment; filename="{organisation.root}.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


async def decide(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_decide, request, form)


def _decide(request: Request, form: Mapping[str, str]) -> Response:
    archive = site_of(request).archive
    organisation = organisations.get(archive, request.path_params["root"])
    answer = form.get("answer", "")
    if answer not in ("accept", "reject"):
        raise InputError("Choose accept or reject.")
    organisations.decide(
        archive, organisation, [form.get("host", "")], accepted=answer == "accept", by=name_of(request)
    )
    kind = form.get("own", "")
    return RedirectResponse(
        f"/organisations/{organisation.root}{f'?own={kind}' if kind in KINDS else ''}#hosts", status_code=303
    )


async def correct(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_correct, request, form)


def _correct(request: Request, form: Mapping[str, str]) -> Response:
    archive = site_of(request).archive
    organisation = organisations.get(archive, request.path_params["root"])
    field = _FIELDS.get(form.get("what", ""), "")
    if not field or not form.get("value", "").strip():
        raise InputError("Choose what to correct, and enter the new value.")
    organisations.correct(archive, organisation, **{field: [form["value"].strip()]}, by=name_of(request))
    return RedirectResponse(f"/organisations/{organisation.root}#profile", status_code=303)
