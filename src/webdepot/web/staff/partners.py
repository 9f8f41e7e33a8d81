"""Partners in the portal: the last harvest, counts, refused records and why; harvest, ingest, retry."""

from collections import defaultdict
from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError
from webdepot.services.exchange import oai_harvest, partner_admin, takeover
from webdepot.web.background import BackgroundRuns
from webdepot.web.forms import SHORT_FORM, read_form
from webdepot.web.problems import explain
from webdepot.web.site import ADMINISTRATORS, CURATORS, may, name_of, of_app, render, site_of


class PartnerRuns:
    """Harvests of partners in the background."""

    def __init__(self) -> None:
        self.runs = BackgroundRuns()


def show_list(request: Request) -> Response:
    return _list_page(request)


def _list_page(
    request: Request, *, status: int = 200, given: Mapping[str, str] | None = None, wrong: str = ""
) -> Response:
    runs = of_app(request, PartnerRuns).runs
    return render(
        request,
        "partners.html",
        status=status,
        given=defaultdict(str, given or {}),
        wrong=wrong,
        partners=partner_admin.every(site_of(request).archive),
        running=runs.running(),
        errors=runs.errors,
        may_add=may(request, ADMINISTRATORS),
    )


def show(request: Request) -> Response:
    runs, name = of_app(request, PartnerRuns).runs, request.path_params["name"]
    return render(
        request,
        "partner.html",
        status_=partner_admin.status(site_of(request).archive, name),
        is_running=runs.is_running(name),
        error=runs.errors.get(name, ""),
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
    archive, name = site_of(request).archive, request.path_params["name"]
    partner_admin.status(archive, name, failures=0)
    what = form.get("what", "")
    if what not in ("run", "retry"):
        raise InputError("Choose what to do: run or retry.")
    if what == "retry":
        partner_admin.retry(archive, name, form.get("identifier", "")[:500], by=name_of(request))
    runs = of_app(request, PartnerRuns).runs
    if not runs.is_running(name):
        partner_admin.record_request(archive, name, by=name_of(request))
    runs.start(name, lambda: _harvest_and_ingest(archive, name))
    return RedirectResponse(f"/partners/{name}", status_code=303)


def _harvest_and_ingest(archive: Archive, name: str) -> None:
    oai_harvest.harvest(archive, name)
    takeover.ingest(archive, name)
