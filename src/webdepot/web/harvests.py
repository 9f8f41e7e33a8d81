"""Harvests in the portal: the list, one harvest live with its orders, and its reports. Live parts work by reload where scripts do not."""

from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from webdepot.errors import InputError
from webdepot.harvest.control import Verb
from webdepot.harvest.reports import Kind
from webdepot.model import HarvestKind, HarvestState
from webdepot.services import harvesting, steering
from webdepot.web.account import read_form
from webdepot.web.sheets import csv_answer
from webdepot.web.site import CURATORS, person_of, render, site_of

MOST_LISTED = 100
ROWS = 200
_STEERED = frozenset({HarvestState.RUNNING, HarvestState.STOPPED})
_NUMBERS = ("limit_pages", "limit_bytes", "limit_time_s", "limit_host_pages", "limit_host_bytes", "delay_s", "workers")


def listed(request: Request) -> Response:
    archive = site_of(request).archive
    found = [steering.watch(archive, harvest.id) for harvest in harvesting.latest(archive, MOST_LISTED)]
    return render(request, "harvests.html", harvests=found)


def shown(request: Request) -> Response:
    return render(request, "harvest.html", **_values(request))


def live(request: Request) -> Response:
    """The live part alone, for the script; it says itself when there is nothing more to come."""
    values = _values(request)
    headers = {} if values["watched"].is_running else {"X-Ended": "1"}
    return render(request, "_harvest_live.html", headers=headers, **values)


async def order(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_ordered, request, form)


def report(request: Request) -> Response:
    """A report as page, CSV or JSON by its ending."""
    archive, harvest = site_of(request).archive, request.path_params["harvest"]
    name, _, form = request.path_params["kind"].partition(".")
    if name not in set(Kind) or form not in ("", "csv", "json"):
        raise InputError(f"There is no report {name!r}. There are: {', '.join(Kind)}.")
    kind = Kind(name)
    if not form:
        page = max(int(text) if (text := request.query_params.get("page", "1")).isdigit() and len(text) < 9 else 1, 1)
        made = steering.report(archive, harvest, kind, limit=ROWS, offset=(page - 1) * ROWS)
        watched = steering.watch(archive, harvest)
        return render(
            request, "harvest_report.html", watched=watched, report=made, kinds=list(Kind), page=page, pages=-(-made.total // ROWS)
        )
    made = steering.report(archive, harvest, kind)
    if form == "json":
        return JSONResponse({"harvest": harvest, "kind": kind.value, "rows": made.rows})
    return csv_answer(f"{harvest}-{kind.value}", made.columns, made.rows)


def _values(request: Request) -> dict[str, Any]:
    watched = steering.watch(site_of(request).archive, request.path_params["harvest"])
    person = person_of(request)
    may_steer = person is not None and bool(person.roles & CURATORS) and watched.harvest.state in _STEERED
    has_log = watched.harvest.kind is HarvestKind.HARVEST
    return {"watched": watched, "kinds": list(Kind) if has_log else [], "may_steer": may_steer and has_log, "numbers": _NUMBERS}


def _ordered(request: Request, form: Mapping[str, str]) -> Response:
    archive, harvest = site_of(request).archive, request.path_params["harvest"]
    person = person_of(request)
    by, reason = person.name if person else "", form.get("reason", "").strip()[:500]
    match form.get("order", ""):
        case "pause" | "resume" | "stop" | "abort" as verb:
            steering.give(archive, harvest, Verb(verb), by=by, reason=reason)
        case "limits":
            steering.change(archive, harvest, _changes(form), by=by, reason=reason)
        case "add":
            steering.add(archive, harvest, form.get("urls", "").split(), by=by, reason=reason)
        case "remove":
            steering.remove(archive, harvest, form.get("patterns", "").split(), by=by, reason=reason)
        case "reject":
            steering.reject(archive, harvest, form.get("patterns", "").split(), by=by, reason=reason)
        case other:
            raise InputError(f"{other[:50]!r} is no order.")
    return RedirectResponse(f"/harvests/{harvest}", status_code=303)


def _changes(form: Mapping[str, str]) -> dict[str, object]:
    """Fields that were filled in, as numbers."""
    changes: dict[str, object] = {}
    for name in _NUMBERS:
        text = form.get(name, "").strip()
        if not text:
            continue
        try:
            changes[name] = float(text) if name.endswith("_s") else int(text)
        except ValueError:
            raise InputError(f"{name}: {text[:30]!r} is no number.") from None
    return changes
