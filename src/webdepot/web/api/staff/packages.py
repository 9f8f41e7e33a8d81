"""The depot for programs: its packages, one package with its copies and its files, and the result of audits.

GET   /api/packages
GET   /api/packages/{package}
GET   /api/depot
POST  /api/depot/audits
POST  /api/depot/places
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.depot.copies import Copy, CopyState
from webdepot.depot.places import PlaceState
from webdepot.errors import ConfigError, InputError, RemoteError
from webdepot.model import Package
from webdepot.provenance import Event, Outcome
from webdepot.services.depot import status
from webdepot.times import to_iso
from webdepot.web.api.cursors import PAGING, ROWS, answer_page, describe_page, make_cursor, read_cursor
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
from webdepot.web.site import Site, site_of
from webdepot.web.staff.depot import DOWNLOADS, begin_audit, begin_place

AUDIT = (
    InputField(
        name="which",
        meaning="All copies, or those whose check is due.",
        choices=("due", "all"),
        required=True,
    ),
)
NEW_PLACE = (
    InputField(name="name", meaning="Name of the place.", required=True, longest=60),
    InputField(name="address", meaning="A folder, or s3://bucket/prefix.", required=True),
    InputField(name="write_once", meaning="Whether it refuses to overwrite files.", kind=FieldKind.FLAG),
)


def show_list(request: Request) -> Response:
    query = read_query(request, PAGING)
    limit, past = query.get("limit", ROWS), read_cursor(query.get("cursor", ""), datetime, str)
    site = site_of(request)
    rows = status.list_packages(site.archive, limit=limit + 1, past=(past[0], past[1]) if past else None)
    return answer_page(
        request,
        rows,
        limit,
        shown=lambda row: _package_json(site, row.package, row.copies),
        cursor_of=lambda row: make_cursor(row.package.stored_at, row.package.id),
    )


def show(request: Request) -> Response:
    read_query(request, ())
    site = site_of(request)
    seen = status.view(site.archive, request.path_params["package"])
    return JSONResponse(
        {
            **_package_json(site, seen.package, seen.copies),
            "files": [
                {
                    "path": file.path,
                    "size_bytes": file.size_bytes,
                    "sha256": file.sha256,
                    "format": file.format,
                    "version": file.version,
                }
                for file in seen.files
            ],
            "trouble": seen.trouble,
            "events": [_event_json(event) for event in seen.events],
            "holds": [
                {
                    "kind": hold.kind.value,
                    "reason": hold.reason,
                    "by": hold.agent,
                    "until": to_iso(hold.until) if hold.until else None,
                }
                for hold in seen.holds
            ],
            "downloads": {
                form.value: f"{site.portal_url}/depot/packages/{seen.package.id}/download.{form.value}"
                for form in DOWNLOADS
            },
        }
    )


def show_depot(request: Request) -> Response:
    """The places of the depot with the results of their audits, and the copies that need attention."""
    read_query(request, ())
    report = status.status(site_of(request).archive)
    return JSONResponse(
        {
            "packages": report.packages,
            "size_bytes": report.size_bytes,
            "tombstones": report.tombstones,
            "places": [
                {
                    "name": place.name,
                    "state": place.state,
                    "copies": dict(place.copies),
                    "size_bytes": place.size_bytes,
                    "oldest_check": to_iso(place.oldest_check) if place.oldest_check else None,
                    "away_since": to_iso(place.away_since) if place.away_since else None,
                    "note": str(place.note),
                }
                for place in report.places
            ],
            "alarms": [{"package": copy.package, **_copy_json(copy)} for copy in report.alarms],
        }
    )


def _package_json(site: Site, package: Package, copies: Sequence[Copy]) -> dict[str, Any]:
    return {
        "id": package.id,
        "harvest": package.harvest,
        "urn": package.urn,
        "title": package.title,
        "version": package.version,
        "size_bytes": package.size_bytes,
        "stored_at": to_iso(package.stored_at),
        "copies": [_copy_json(copy) for copy in copies],
        "page": f"{site.portal_url}/depot/packages/{package.id}",
    }


def _copy_json(copy: Copy) -> dict[str, Any]:
    return {
        "place": copy.place,
        "version": copy.version,
        "state": copy.state.value,
        "checked_at": to_iso(copy.checked_at),
        "note": str(copy.note),
    }


def _event_json(event: Event) -> dict[str, Any]:
    return {
        "at": to_iso(event.at),
        "agent": event.agent,
        "action": event.action,
        "outcome": event.outcome.value,
        "message": str(event.message),
    }


async def start_audit(request: Request) -> Response:
    return await run_in_threadpool(_start_audit, request, await read_json(request, AUDIT))


def _start_audit(request: Request, sent: dict[str, Any]) -> Response:
    """The job of the audit: a new one, or the one that is running."""
    job = begin_audit(request, everything=sent["which"] == "all")
    shown = {"job": job.id, "state": job.state.value, "by": job.by, "created_at": to_iso(job.created_at)}
    return JSONResponse(shown, status_code=202)


async def add_place(request: Request) -> Response:
    return await run_in_threadpool(_add_place, request, await read_json(request, NEW_PLACE))


def _add_place(request: Request, sent: dict[str, Any]) -> Response:
    try:
        job = begin_place(
            request, sent["name"].strip(), sent["address"].strip(), write_once=sent.get("write_once", False)
        )
    except (ConfigError, RemoteError, OSError) as error:  # what was sent is wrong
        raise InputError(str(error)) from error
    return JSONResponse(job_json(job), status_code=202)


# --- description ---

_COPY: dict[str, Any] = {
    "place": TEXT,
    "version": WHOLE,
    "state": one_of(list(CopyState)),
    "checked_at": MOMENT,
    "note": TEXT,
}
_PACKAGE: dict[str, Any] = {
    "id": TEXT,
    "harvest": TEXT,
    "urn": TEXT,
    "title": TEXT,
    "version": WHOLE,
    "size_bytes": WHOLE,
    "stored_at": MOMENT,
    "copies": list_of(object_of(_COPY)),
    "page": TEXT,
}
_EVENT = {"at": MOMENT, "agent": TEXT, "action": TEXT, "outcome": one_of(list(Outcome)), "message": TEXT}
_FILE = {"path": TEXT, "size_bytes": WHOLE, "sha256": TEXT, "format": TEXT, "version": WHOLE}
_PLACE: dict[str, Any] = {
    "name": TEXT,
    "state": one_of(list(PlaceState)),
    "copies": COUNTS,
    "size_bytes": WHOLE,
    "oldest_check": nullable(MOMENT),
    "away_since": nullable(MOMENT),
    "note": TEXT,
}
SCHEMAS = {
    "Package": object_of(_PACKAGE),
    "PackageDossier": object_of(
        {
            **_PACKAGE,
            "files": list_of(object_of(_FILE)),
            "trouble": {**TEXT, "description": "Why the files cannot be listed; empty if they can."},
            "events": list_of(object_of(_EVENT)),
            "holds": list_of(
                object_of({"kind": TEXT, "reason": TEXT, "by": TEXT, "until": nullable(MOMENT)})
            ),
            "downloads": {
                "type": "object",
                "additionalProperties": TEXT,
                "description": "Addresses of the package as a file, for administrators.",
            },
        }
    ),
    "Depot": object_of(
        {
            "packages": WHOLE,
            "size_bytes": WHOLE,
            "tombstones": WHOLE,
            "places": list_of(object_of(_PLACE)),
            "alarms": list_of(object_of({"package": TEXT, **_COPY})),
        }
    ),
}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    identifier = parameter("package", "Identifier of the package.", where="path", required=True)
    return {
        "/api/packages": {
            "get": operation(
                "listPackages",
                "Packages with their copies, the newest first",
                describe_page(ref("Package")),
                parameters=describe_query(PAGING),
            )
        },
        "/api/packages/{package}": {
            "parameters": [identifier],
            "get": operation(
                "getPackage",
                "One package with its copies, files, history and download addresses",
                ref("PackageDossier"),
                errors=[404],
            ),
        },
        "/api/depot/audits": {
            "post": operation(
                "startAudit",
                "Start an audit of the copies; the job is that of the page *Jobs*",
                object_of({"job": WHOLE, "state": TEXT, "by": TEXT, "created_at": MOMENT}),
                status=202,
                body=describe_body(AUDIT),
            )
        },
        "/api/depot/places": {
            "post": operation(
                "addPlace",
                "Add a place for copies, and copy every package to it",
                ref("Job"),
                status=202,
                body=describe_body(NEW_PLACE),
                errors=[409],
            )
        },
        "/api/depot": {
            "get": operation(
                "getDepot", "The places of the depot, the results of audits, and alarms", ref("Depot")
            )
        },
    }
