"""Organisations and their hosts for programs: survey a domain, decide about hosts, correct the profile, and
nominate hosts as sites.

GET   /api/organisations                          POST  /api/organisations
GET   /api/organisations/{organisation}           POST  /api/organisations/{organisation}/decisions
POST  /api/organisations/{organisation}/corrections
POST  /api/organisations/{organisation}/targets
"""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.model import EVERYTHING
from webdepot.selection.domains.organisations import Organisation
from webdepot.services.selection import organisation_sites, organisation_view, organisations
from webdepot.times import to_iso
from webdepot.web.api.input_fields import (
    FieldKind,
    InputField,
    describe_body,
    describe_query,
    read_json,
    read_query,
)
from webdepot.web.api.openapi_parts import (
    COUNTS,
    MOMENT,
    TEXT,
    TEXTS,
    WHOLE,
    list_of,
    nullable,
    object_of,
    operation,
    parameter,
    ref,
)
from webdepot.web.api.staff.jobs import job_json
from webdepot.web.site import Site, name_of, site_of
from webdepot.web.staff.organisations import KINDS, MOST_ROWS, begin_survey

_PROFILE = ("names", "ranges", "name_servers", "domains", "strangers")
ONE_QUERY = (InputField(name="own", meaning="Only hosts of this kind.", choices=KINDS),)
SURVEY = (InputField(name="domain", meaning="A domain or host of it.", required=True, longest=255),)
DECISION = (
    InputField(name="hosts", meaning="The hosts.", kind=FieldKind.TEXTS, required=True, longest=255),
    InputField(name="accepted", meaning="Whether they belong to it.", kind=FieldKind.FLAG, required=True),
)
CORRECTION = (
    *(
        InputField(name=name, meaning="Values to add.", kind=FieldKind.TEXTS, longest=255)
        for name in _PROFILE
    ),
    InputField(name="remove", meaning="Values to remove.", kind=FieldKind.TEXTS, longest=255),
)
NOMINATION = (
    InputField(
        name="hosts",
        meaning="Hosts to nominate. Default: all that belong to it.",
        kind=FieldKind.TEXTS,
        longest=255,
    ),
    InputField(name="as_one", meaning="As one site with all of them as seeds.", kind=FieldKind.FLAG),
    InputField(name="collection", meaning="Name of the collection.", longest=60),
)


def show_list(request: Request) -> Response:
    read_query(request, ())
    every = organisations.list_organisations(site_of(request).archive)
    return JSONResponse(
        {"organisations": [{**_short_json(each), "hosts": dict(counts)} for each, counts in every]}
    )


async def survey(request: Request) -> Response:
    return await run_in_threadpool(_survey, request, await read_json(request, SURVEY))


def _survey(request: Request, sent: dict[str, Any]) -> Response:
    return JSONResponse(job_json(begin_survey(request, sent["domain"])), status_code=202)


def show(request: Request) -> Response:
    query = read_query(request, ONE_QUERY)
    return JSONResponse(_whole_json(request, kind=query.get("own", "")))


async def decide(request: Request) -> Response:
    return await run_in_threadpool(_decide, request, await read_json(request, DECISION))


def _decide(request: Request, sent: dict[str, Any]) -> Response:
    organisations.decide(
        site_of(request).archive,
        _organisation(request),
        sent["hosts"],
        accepted=sent["accepted"],
        by=name_of(request),
    )
    return JSONResponse(_whole_json(request))


async def correct(request: Request) -> Response:
    return await run_in_threadpool(_correct, request, await read_json(request, CORRECTION))


def _correct(request: Request, sent: dict[str, Any]) -> Response:
    organisations.correct(site_of(request).archive, _organisation(request), **sent, by=name_of(request))
    return JSONResponse(_whole_json(request))


async def nominate(request: Request) -> Response:
    return await run_in_threadpool(_nominate, request, await read_json(request, NOMINATION))


def _nominate(request: Request, sent: dict[str, Any]) -> Response:
    archive, organisation = site_of(request).archive, _organisation(request)
    result = organisation_sites.nominate(
        archive,
        organisation,
        sent.get("hosts") or organisation_sites.own_hosts(archive, organisation),
        as_one=sent.get("as_one", False),
        collection=sent.get("collection", "") or EVERYTHING,
        by=name_of(request),
    )
    return JSONResponse({"new": [int(number) for number in result.new], "known": result.known})


def _organisation(request: Request) -> Organisation:
    return organisations.get(site_of(request).archive, request.path_params["organisation"])


def _whole_json(request: Request, *, kind: str = "") -> dict[str, Any]:
    archive = site_of(request).archive
    view = organisation_view.view(archive, request.path_params["organisation"], kind=kind, limit=MOST_ROWS)
    profile = view.organisation.profile
    return {
        **_short_json(view.organisation),
        "counts": dict(view.counts),
        **{name: [each.value for each in getattr(profile, name)] for name in _PROFILE},
        "hosts": [
            {
                "host": host.host,
                "domain": host.domain,
                "own": host.own,
                "score": round(host.score, 4),
                "decision": host.decision,
                "decided_by": host.decided_by,
                "evidence": [str(each) for each in host.evidence],
            }
            for host in view.hosts
        ],
    }


def _short_json(organisation: Organisation) -> dict[str, Any]:
    return {
        "root": organisation.root,
        "name": organisation.profile.name,
        "surveyed_at": to_iso(organisation.surveyed_at),
    }


# --- description ---

_SHORT = {"root": TEXT, "name": TEXT, "surveyed_at": MOMENT}
_HOST = {
    "host": TEXT,
    "domain": TEXT,
    "own": nullable({"type": "boolean"}),
    "score": {"type": "number"},
    "decision": TEXT,
    "decided_by": TEXT,
    "evidence": TEXTS,
}
SCHEMAS = {
    "Organisation": object_of(
        {
            **_SHORT,
            "counts": COUNTS,
            **dict.fromkeys(_PROFILE, TEXTS),
            "hosts": list_of(object_of(_HOST)),
        }
    )
}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    organisation, path = ref("Organisation"), "/api/organisations/{organisation}"
    name = parameter("organisation", "Its domain, or one of its hosts.", where="path", required=True)
    listed = object_of({"organisations": list_of(object_of({**_SHORT, "hosts": COUNTS}))})
    return {
        "/api/organisations": {
            "get": operation("listOrganisations", "Organisations that were surveyed", listed),
            "post": operation(
                "surveyOrganisation",
                "Find the hosts of an organisation",
                ref("Job"),
                status=202,
                body=describe_body(SURVEY),
            ),
        },
        path: {
            "parameters": [name],
            "get": operation(
                "getOrganisation",
                f"One organisation with up to {MOST_ROWS} hosts",
                organisation,
                parameters=describe_query(ONE_QUERY),
                errors=[404],
            ),
        },
        f"{path}/decisions": {
            "parameters": [name],
            "post": operation(
                "decideHosts",
                "Say whether hosts belong to an organisation",
                organisation,
                body=describe_body(DECISION),
                errors=[404],
            ),
        },
        f"{path}/corrections": {
            "parameters": [name],
            "post": operation(
                "correctOrganisation",
                "Add or remove values of its profile",
                organisation,
                body=describe_body(CORRECTION),
                errors=[404],
            ),
        },
        f"{path}/targets": {
            "parameters": [name],
            "post": operation(
                "nominateHosts",
                "Nominate hosts as sites",
                object_of({"new": list_of(WHOLE), "known": WHOLE}),
                body=describe_body(NOMINATION),
                errors=[404],
            ),
        },
    }
