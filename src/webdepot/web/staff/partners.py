"""Partners in the portal: last harvest, counts, what was refused and why; harvest, take in, try again."""

import threading
from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.archive import Archive
from webdepot.errors import InputError, WebdepotError
from webdepot.services.exchange import oai_harvest, partner_admin, takeover
from webdepot.web.sign_in import read_form
from webdepot.web.site import CURATORS, name_of, of_app, person_of, render, site_of


class Runs:
    """Work with partners that goes on beside the portal, one thing at a time for each; what went wrong with
    the last is remembered.
    """

    def __init__(self) -> None:
        self._running: dict[str, threading.Thread] = {}
        self.errors: dict[str, str] = {}

    def start(self, archive: Archive, name: str) -> None:
        if self.is_running(name):
            return
        self.errors.pop(name, None)
        thread = threading.Thread(target=self._run, args=(archive, name), name=f"partner {name}", daemon=True)
        self._running[name] = thread
        thread.start()

    def is_running(self, name: str) -> bool:
        return name in self._running and self._running[name].is_alive()

    def running(self) -> list[str]:
        return sorted(name for name in self._running if self.is_running(name))

    def _run(self, archive: Archive, name: str) -> None:
        try:
            oai_harvest.harvest(archive, name)
            takeover.ingest(archive, name)
        except (WebdepotError, OSError) as error:
            self.errors[name] = str(error)


def listed(request: Request) -> Response:
    runs = of_app(request, Runs)
    found = partner_admin.every(site_of(request).archive)
    return render(
        request,
        "partners.html",
        partners=found,
        running=runs.running(),
        errors=runs.errors,
        may_change=_may_change(request),
    )


def shown(request: Request) -> Response:
    runs = of_app(request, Runs)
    name = request.path_params["name"]
    status = partner_admin.status(site_of(request).archive, name)
    error, may_change = runs.errors.get(name, ""), _may_change(request)
    return render(
        request,
        "partner.html",
        status_=status,
        is_running=runs.is_running(name),
        error=error,
        may_change=may_change,
    )


def _may_change(request: Request) -> bool:
    person = person_of(request)
    return person is not None and bool(person.roles & CURATORS)


async def add(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_added, request, form)


def _added(request: Request, form: Mapping[str, str]) -> Response:
    name = form.get("name", "").strip()
    partner_admin.add(
        site_of(request).archive,
        name,
        form.get("url", ""),
        set_spec=form.get("set", "").strip(),
        token=form.get("token", "").strip(),
        transfer=form.get("transfer", ""),
        by=name_of(request),
    )
    return RedirectResponse(f"/partners/{name}", status_code=303)


async def order(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_ordered, request, form)


def _ordered(request: Request, form: Mapping[str, str]) -> Response:
    archive, name = site_of(request).archive, request.path_params["name"]
    partner_admin.status(archive, name, failures=0)
    what = form.get("what", "")
    if what not in ("run", "retry"):
        raise InputError("Say what is to be done: run or retry.")
    if what == "retry":
        partner_admin.retry(archive, name, form.get("identifier", "")[:500], by=name_of(request))
    runs = of_app(request, Runs)
    if not runs.is_running(name):
        partner_admin.record_request(archive, name, by=name_of(request))
    runs.start(archive, name)
    return RedirectResponse(f"/partners/{name}", status_code=303)
