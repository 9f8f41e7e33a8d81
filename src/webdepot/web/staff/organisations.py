"""Organisations in the portal: profile, table and picture of domains, corrections, accepting and rejecting,
CSV; and starting a survey.
"""

import threading
from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.archive import Archive
from webdepot.errors import InputError, WebdepotError
from webdepot.services.selection import discovery, organisations
from webdepot.web.sign_in import read_form
from webdepot.web.site import name_of, of_app, render, site_of
from webdepot.web.staff.domain_picture import picture_of

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
    """Surveys that run beside the portal, one for each organisation; what went wrong with the last one is
    remembered.
    """

    def __init__(self) -> None:
        self._running: dict[str, threading.Thread] = {}
        self.errors: dict[str, str] = {}

    def start(self, archive: Archive, domain: str, *, by: str) -> None:
        if self.is_running(domain):
            return
        self.errors.pop(domain, None)
        thread = threading.Thread(
            target=self._run, args=(archive, domain, by), name=f"survey {domain}", daemon=True
        )
        self._running[domain] = thread
        thread.start()

    def is_running(self, domain: str) -> bool:
        return domain in self._running and self._running[domain].is_alive()

    def running(self) -> list[str]:
        return sorted(domain for domain in self._running if self.is_running(domain))

    def _run(self, archive: Archive, domain: str, by: str) -> None:
        try:
            discovery.discover(archive, domain, allow_private=archive.config.harvest.allow_private, by=by)
        except (WebdepotError, OSError) as error:
            self.errors[domain] = str(error)


def listed(request: Request) -> Response:
    surveys = of_app(request, Surveys)
    found = organisations.list_organisations(site_of(request).archive)
    return render(
        request, "organisations.html", organisations=found, running=surveys.running(), errors=surveys.errors
    )


async def start(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_started, request, form)


def _started(request: Request, form: Mapping[str, str]) -> Response:
    domain = organisations.parse_domain(form.get("domain", ""))
    surveys = of_app(request, Surveys)
    if not surveys.is_running(domain):
        organisations.note_request(site_of(request).archive, domain, by=name_of(request))
    surveys.start(site_of(request).archive, domain, by=name_of(request))
    return RedirectResponse("/organisations", status_code=303)


def shown(request: Request) -> Response:
    archive = site_of(request).archive
    organisation = organisations.get(archive, request.path_params["root"])
    kind = request.query_params.get("own", "")
    kind = kind if kind in KINDS else ""
    everything = organisations.hosts_of(archive, organisation)
    hosts = (
        organisations.hosts_of(archive, organisation, own=kind, limit=MOST_ROWS)
        if kind
        else everything[:MOST_ROWS]
    )
    surveys = of_app(request, Surveys)
    return render(
        request,
        "organisation.html",
        organisation=organisation,
        profile=organisation.profile,
        hosts=hosts,
        counts=organisations.counts_of(archive, organisation),
        kind=kind,
        kinds=KINDS,
        picture=picture_of(organisation.root, everything),
        is_cut=len(hosts) >= MOST_ROWS,
        is_running=surveys.is_running(organisation.root),
    )


def as_csv(request: Request) -> Response:
    archive = site_of(request).archive
    organisation = organisations.get(archive, request.path_params["root"])
    text = organisations.as_csv(organisations.hosts_of(archive, organisation))
    headers = {"Content-Disposition": f'attachment; filename="{organisation.root}.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


async def decide(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_decided, request, form)


def _decided(request: Request, form: Mapping[str, str]) -> Response:
    archive = site_of(request).archive
    organisation = organisations.get(archive, request.path_params["root"])
    answer = form.get("answer", "")
    if answer not in ("accept", "reject"):
        raise InputError("Say accept or reject.")
    organisations.decide(
        archive, organisation, [form.get("host", "")], accepted=answer == "accept", by=name_of(request)
    )
    kind = form.get("own", "")
    return RedirectResponse(
        f"/organisations/{organisation.root}{f'?own={kind}' if kind in KINDS else ''}#hosts", status_code=303
    )


async def correct(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_corrected, request, form)


def _corrected(request: Request, form: Mapping[str, str]) -> Response:
    archive = site_of(request).archive
    organisation = organisations.get(archive, request.path_params["root"])
    field = _FIELDS.get(form.get("what", ""), "")
    if not field or not form.get("value", "").strip():
        raise InputError("Say what is corrected, and how it should read.")
    organisations.correct(archive, organisation, **{field: [form["value"].strip()]}, by=name_of(request))
    return RedirectResponse(f"/organisations/{organisation.root}#profile", status_code=303)
