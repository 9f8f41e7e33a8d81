"""Partner depots for programs: their state, adding one, harvesting its list, trying refused records again.

GET   /api/partners              POST  /api/partners
GET   /api/partners/{partner}    POST  /api/partners/{partner}/orders
"""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.exchange.partners import ListRun, RunState
from webdepot.services.exchange import partner_admin
from webdepot.services.exchange.partner_admin import PartnerStatus
from webdepot.times import to_iso
from webdepot.web.api.input_fields import InputField, describe_body, read_json, read_query
from webdepot.web.api.openapi_parts import (
    COUNTS,
    MOMENT,
    TEXT,
    WHOLE,
    list_of,
    nullable,
    object_of,
    one_of,
    operation,
    parameter,
    ref,
)
from webdepot.web.api.staff.jobs import job_json
from webdepot.web.site import Site, name_of, site_of
from webdepot.web.staff.partners import begin_harvest

ORDERS = ("run", "retry")
NEW_PARTNER = (
    InputField(name="name", meaning="A short name: letters, digits, - and _.", required=True, longest=40),
    InputField(name="url", meaning="Base URL of its OAI-PMH.", required=True),
    InputField(name="set", meaning="Only this set.", longest=200),
    InputField(name="token", meaning="The token that it gave us.", longest=500),
    InputField(
        name="transfer",
        meaning="The form in which it gets our objects. Default: as configured.",
        choices=("containers", "files"),
    ),
)
ORDER = (
    InputField(
        name="order", meaning="Harvest its list, or try refused records again.", choices=ORDERS, required=True
    ),
    InputField(name="identifier", meaning="For `retry`: only this record.", longest=500),
)


def show_list(request: Request) -> Response:
    read_query(request, ())
    every = partner_admin.every(site_of(request).archive)
    return JSONResponse({"partners": [_partner_json(each) for each in every]})


def show(request: Request) -> Response:
    read_query(request, ())
    return JSONResponse(_whole_json(request, request.path_params["partner"]))


async def add(request: Request) -> Response:
    return await run_in_threadpool(_add, request, await read_json(request, NEW_PARTNER))


def _add(request: Request, sent: dict[str, Any]) -> Response:
    partner_admin.add(
        site_of(request).archive,
        sent["name"],
        sent["url"],
        set_spec=sent.get("set", "").strip(),
        token=sent.get("token", "").strip(),
        transfer=sent.get("transfer", ""),
        by=name_of(request),
    )
    return JSONResponse(_whole_json(request, sent["name"]), status_code=201)


async def order(request: Request) -> Response:
    return await run_in_threadpool(_order, request, await read_json(request, ORDER))


def _order(request: Request, sent: dict[str, Any]) -> Response:
    job = begin_harvest(
        request,
        request.path_params["partner"],
        retry=sent["order"] == "retry",
        identifier=sent.get("identifier", ""),
    )
    return JSONResponse(job_json(job), status_code=202)


def _whole_json(request: Request, name: str) -> dict[str, Any]:
    status = partner_admin.status(site_of(request).archive, name)
    refused = [
        {"identifier": each.identifier, "urn": each.urn, "reason": str(each.reason)}
        for each in status.failures
    ]
    return {**_partner_json(status), "refused": refused}


def _partner_json(status: PartnerStatus) -> dict[str, Any]:
    partner = status.partner
    return {
        "name": partner.name,
        "url": partner.url,
        "prefix": partner.prefix,
        "set": partner.set_spec,
        "collection": partner.collection,
        "transfer": partner.transfer,
        "added_at": to_iso(partner.added_at),
        "records": dict(status.counts),
        "last_run": _run_json(status.last),
        "last_complete_run": _run_json(status.complete),
    }


def _run_json(run: ListRun | None) -> dict[str, Any] | None:
    if run is None:
        return None
    return {
        "state": run.state.value,
        "started_at": to_iso(run.started_at),
        "ended_at": to_iso(run.ended_at) if run.ended_at else None,
        "records": run.records,
        "deleted": run.deleted,
        "error": str(run.error),
    }


# --- description ---

_RUN = object_of(
    {
        "state": one_of(list(RunState)),
        "started_at": MOMENT,
        "ended_at": nullable(MOMENT),
        "records": WHOLE,
        "deleted": WHOLE,
        "error": TEXT,
    }
)
_PARTNER = {
    "name": TEXT,
    "url": TEXT,
    "prefix": TEXT,
    "set": TEXT,
    "collection": TEXT,
    "transfer": TEXT,
    "added_at": MOMENT,
    "records": COUNTS,
    "last_run": {"anyOf": [_RUN, {"type": "null"}]},
    "last_complete_run": {"anyOf": [_RUN, {"type": "null"}]},
}
SCHEMAS = {
    "Partner": object_of(_PARTNER),
    "WholePartner": object_of(
        {**_PARTNER, "refused": list_of(object_of({"identifier": TEXT, "urn": TEXT, "reason": TEXT}))}
    ),
}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    partner = ref("WholePartner")
    name = parameter("partner", "Name of the partner.", where="path", required=True)
    listed = object_of({"partners": list_of(ref("Partner"))})
    return {
        "/api/partners": {
            "get": operation("listPartners", "Partner depots", listed),
            "post": operation(
                "addPartner",
                "Add a partner, without contacting it yet",
                partner,
                status=201,
                body=describe_body(NEW_PARTNER),
                errors=[409],
            ),
        },
        "/api/partners/{partner}": {
            "parameters": [name],
            "get": operation("getPartner", "One partner and its refused records", partner, errors=[404]),
        },
        "/api/partners/{partner}/orders": {
            "parameters": [name],
            "post": operation(
                "orderPartner",
                "Harvest the list of a partner, or try refused records again",
                ref("Job"),
                status=202,
                body=describe_body(ORDER),
                errors=[404],
            ),
        },
    }
