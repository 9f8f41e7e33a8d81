"""Organisations in the portal: profile, table and diagram of domains, corrections, accepting and rejecting
hosts, CSV, and starting a survey.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.roles import CURATORS
from webdepot.engine.job_queue import QueuedJob
from webdepot.errors import InputError
from webdepot.model import EVERYTHING
from webdepot.services.jobs import job_control, kinds
from webdepot.services.selection import organisation_sites, organisation_view, organisations
from webdepot.web.forms import SHORT_FORM, find_number, read_fields, read_form
from webdepot.web.jobs.portal_worker import start_job
from webdepot.web.problems import explain
from webdepot.web.site import may, name_of, render, site_of
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


def show_list(request: Request) -> Response:
    return _list_page(request)


def _list_page(request: Request, *, status: int = 200, wrong: str = "", typed: str = "") -> Response:
    archive = site_of(request).archive
    surveys = job_control.newest(archive, kinds.SURVEY)
    return render(
        request,
        "organisations.html",
        status=status,
        wrong=wrong,
        typed=typed,
        organisations=organisations.list_organisations(archive),
        running=job_control.running(surveys),
        errors=job_control.last_errors(surveys),
    )


async def start(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_start, request, form)


def _start(request: Request, form: Mapping[str, str]) -> Response:
    try:
        begin_survey(request, form.get("domain", ""))
    except InputError as error:
        return _list_page(request, status=400, wrong=explain(request, error), typed=form.get("domain", ""))
    return RedirectResponse("/organisations", status_code=303)


def begin_survey(request: Request, typed: str) -> QueuedJob:
    """The job that finds the hosts of the organisation of a domain; InputError if it is not a domain."""
    archive, by, domain = site_of(request).archive, name_of(request), organisations.parse_domain(typed)
    return start_job(
        request,
        kinds.SURVEY,
        domain,
        note=lambda connection: organisations.note_request(connection, archive, domain, by=by),
    )


def show(request: Request) -> Response:
    return _page(request)


def _page(
    request: Request,
    *,
    status: int = 200,
    wrong: str = "",
    wrong_in: str = "",
    typed: Sequence[tuple[str, str]] = (),
) -> Response:
    kind = request.query_params.get("own", "")
    kind = kind if kind in KINDS else ""
    archive = site_of(request).archive
    view = organisation_view.view(archive, request.path_params["root"], kind=kind, limit=MOST_ROWS)
    root = view.organisation.root
    return render(
        request,
        "organisation.html",
        status=status,
        wrong=wrong,
        wrong_in=wrong_in,
        typed=defaultdict(str, typed),
        ticked=[value for name, value in typed if name == "host"],
        nominated=find_number(request.query_params.get("nominated", "")),
        may_change=may(request, CURATORS),
        organisation=view.organisation,
        profile=view.organisation.profile,
        hosts=view.hosts,
        counts=view.counts,
        kind=kind,
        kinds=KINDS,
        picture=domain_chart.draw(root, view.every_host),
        is_cut=len(view.hosts) >= MOST_ROWS,
        is_running=(survey := job_control.find(archive, kinds.SURVEY, root)) is not None and survey.is_open,
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
    try:
        if answer not in ("accept", "reject"):
            raise InputError("Choose accept or reject.")
        organisations.decide(
            archive, organisation, [form.get("host", "")], accepted=answer == "accept", by=name_of(request)
        )
    except InputError as error:
        return _page(request, status=400, wrong=explain(request, error), wrong_in="hosts")
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
    try:
        if not field or not form.get("value", "").strip():
            raise InputError("Choose what to correct, and enter the new value.")
        organisations.correct(archive, organisation, **{field: [form["value"].strip()]}, by=name_of(request))
    except InputError as error:
        wrong = explain(request, error)
        return _page(request, status=400, wrong=wrong, wrong_in="profile", typed=list(form.items()))
    return RedirectResponse(f"/organisations/{organisation.root}#profile", status_code=303)


async def nominate(request: Request) -> Response:
    fields = await read_fields(request)
    return await run_in_threadpool(_nominate, request, fields)


def _nominate(request: Request, fields: Sequence[tuple[str, str]]) -> Response:
    """Make sites of the ticked hosts, or of all that belong to the organisation."""
    archive, form = site_of(request).archive, dict(fields)
    organisation = organisations.get(archive, request.path_params["root"])
    hosts = [value for name, value in fields if name == "host"]
    if form.get("which") == "own":
        hosts = organisation_sites.own_hosts(archive, organisation)
    try:
        result = organisation_sites.nominate(
            archive,
            organisation,
            hosts,
            as_one=form.get("as") == "one",
            collection=form.get("collection", "").strip() or EVERYTHING,
            by=name_of(request),
        )
    except InputError as error:
        return _page(request, status=400, wrong=explain(request, error), wrong_in="sites", typed=fields)
    if len(result.new) == 1:
        return RedirectResponse(f"/targets/{result.new[0]}", status_code=303)
    return RedirectResponse(
        f"/organisations/{organisation.root}?nominated={len(result.new)}#sites", status_code=303
    )
