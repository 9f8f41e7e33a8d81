"""Harvests for programs: list them, watch one, control it, and read its findings.

GET   /api/harvests
GET   /api/harvests/{harvest}
POST  /api/harvests/{harvest}/orders
GET   /api/harvests/{harvest}/findings
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.harvest.harvest_rows import HarvestFilter
from webdepot.model import Finding, Harvest, HarvestKind, HarvestState, Severity
from webdepot.services.harvest import control, harvests
from webdepot.services.quality import harvest_check
from webdepot.services.review import reviews
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
    FLAG,
    MOMENT,
    TEXT,
    TEXTS,
    WHOLE,
    nullable,
    object_of,
    one_of,
    operation,
    parameter,
    ref,
)
from webdepot.web.site import Site, site_of
from webdepot.web.staff.harvests import HarvestCommand, obey

MOST_SEEDS = 200
"""Seeds that are listed in an answer; a patch has up to 100,000."""
LIST_QUERY = (
    InputField(name="state", meaning="Only harvests in this state.", choices=tuple(HarvestState)),
    InputField(name="kind", meaning="Only harvests of this kind.", choices=tuple(HarvestKind)),
    InputField(name="collection", meaning="Only harvests of this collection.", longest=60),
    InputField(name="target", meaning="Only harvests of this target.", kind=FieldKind.WHOLE, least=1),
    InputField(name="oldest_first", meaning="The oldest first, not the newest.", kind=FieldKind.FLAG),
    *PAGING,
)
FINDINGS_QUERY = (
    InputField(name="code", meaning="Only findings with this code.", longest=60),
    *PAGING,
)
_LIMITS = ("pages", "documents", "bytes", "host_pages", "host_documents", "host_bytes")
ORDER = (
    InputField(name="order", meaning="What to do.", choices=tuple(HarvestCommand), required=True),
    InputField(name="reason", meaning="Why; it is recorded.", longest=500),
    *(
        InputField(
            name=f"limit_{name}", meaning="For `limits`: the new limit; 0 for none.", kind=FieldKind.WHOLE
        )
        for name in _LIMITS
    ),
    InputField(
        name="limit_time_s", meaning="For `limits`: the longest time in seconds.", kind=FieldKind.NUMBER
    ),
    InputField(
        name="delay_s",
        meaning="For `limits`: seconds between two requests to a server.",
        kind=FieldKind.NUMBER,
        highest=3600,
    ),
    InputField(
        name="workers",
        meaning="For `limits`: requests at the same time.",
        kind=FieldKind.WHOLE,
        least=1,
        highest=1000,
    ),
    InputField(name="urls", meaning="For `add`: addresses to fetch.", kind=FieldKind.TEXTS),
    InputField(
        name="patterns",
        meaning="For `remove` and `reject`: regular expressions of addresses.",
        kind=FieldKind.TEXTS,
    ),
)


def show_list(request: Request) -> Response:
    query = read_query(request, LIST_QUERY)
    limit, past = query.get("limit", ROWS), read_cursor(query.get("cursor", ""), datetime, str)
    wanted = HarvestFilter(
        state=HarvestState(query["state"]) if "state" in query else None,
        kind=HarvestKind(query["kind"]) if "kind" in query else None,
        collection=query.get("collection", ""),
        target=query.get("target", 0),
        oldest_first=query.get("oldest_first", False),
        limit=limit + 1,
        past=(past[0], past[1]) if past else None,
    )
    return answer_page(
        request,
        reviews.list_harvests(site_of(request).archive, wanted).rows,
        limit,
        shown=lambda row: harvest_json(site_of(request), row),
        cursor_of=lambda row: make_cursor(row.started_at, row.id),
    )


def show(request: Request) -> Response:
    read_query(request, ())
    return JSONResponse(_watched(site_of(request), request.path_params["harvest"]))


def _watched(site: Site, harvest: str) -> dict[str, Any]:
    watched = control.watch(site.archive, harvest)
    course = watched.course
    return {
        **harvest_json(site, watched.harvest),
        "is_running": watched.is_running,
        "course": course.name,
        "course_reason": str(course.reason),
        "counts": dict(course.counts),
    }


def harvest_json(site: Site, harvest: Harvest) -> dict[str, Any]:
    return {
        "id": harvest.id,
        "target": harvest.target,
        "kind": harvest.kind.value,
        "state": harvest.state.value,
        "seeds": list(harvest.seeds[:MOST_SEEDS]),
        "seed_count": len(harvest.seeds),
        "collection": harvest.collection,
        "started_at": to_iso(harvest.started_at),
        "ended_at": to_iso(harvest.ended_at) if harvest.ended_at else None,
        "reason": str(harvest.reason),
        "counts": dict(harvest.counts),
        "page": f"{site.portal_url}/harvests/{harvest.id}",
    }


async def order(request: Request) -> Response:
    return await run_in_threadpool(_order, request, await read_json(request, ORDER))


def _order(request: Request, sent: Mapping[str, Any]) -> Response:
    """The harvest after the order was given. A process that works on it obeys within a second."""
    changes = {
        name: value
        for name, value in sent.items()
        if name.startswith("limit_") or name in ("delay_s", "workers")
    }
    obey(
        request,
        HarvestCommand(sent["order"]),
        reason=sent.get("reason", "").strip(),
        changes=changes,
        urls=sent.get("urls", []),
        patterns=sent.get("patterns", []),
    )
    return JSONResponse(_watched(site_of(request), request.path_params["harvest"]))


def show_findings(request: Request) -> Response:
    """What the checks found, the most severe first."""
    query, archive = read_query(request, FINDINGS_QUERY), site_of(request).archive
    limit, past = query.get("limit", ROWS), read_cursor(query.get("cursor", ""), str, int)
    if past is not None and past[0] not in tuple(Severity):
        past = read_cursor("-")  # not a cursor of this list
    rows = harvest_check.findings_page(
        archive,
        harvests.get(archive, request.path_params["harvest"]),
        code=query.get("code", ""),
        limit=limit + 1,
        past=(Severity(past[0]), past[1]) if past else None,
    )
    return answer_page(
        request,
        rows,
        limit,
        shown=_finding_json,
        cursor_of=lambda row: make_cursor(row[1].severity.value, row[0]),
    )


def _finding_json(row: tuple[int, Finding]) -> dict[str, Any]:
    number, finding = row
    return {
        "id": number,
        "code": finding.code,
        "severity": finding.severity.value,
        "subject": finding.subject,
        "message": finding.message,
        "place": finding.place,
        "action": finding.action,
        "facts": dict(finding.facts),
    }


# --- description ---

HARVEST_FIELDS: dict[str, Any] = {
    "id": TEXT,
    "target": WHOLE,
    "kind": one_of(list(HarvestKind)),
    "state": one_of(list(HarvestState)),
    "seeds": TEXTS,
    "seed_count": WHOLE,
    "collection": TEXT,
    "started_at": MOMENT,
    "ended_at": nullable(MOMENT),
    "reason": TEXT,
    "counts": COUNTS,
    "page": TEXT,
}
SCHEMAS = {
    "Harvest": object_of(HARVEST_FIELDS),
    "WatchedHarvest": object_of(
        {**HARVEST_FIELDS, "is_running": FLAG, "course": TEXT, "course_reason": TEXT}
    ),
    "Finding": object_of(
        {
            "id": WHOLE,
            "code": TEXT,
            "severity": one_of(list(Severity)),
            "subject": TEXT,
            "message": TEXT,
            "place": TEXT,
            "action": TEXT,
            "facts": {"type": "object"},
        }
    ),
}
HARVEST_ID = parameter("harvest", "Identifier of the harvest.", where="path", required=True)


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    watched = ref("WatchedHarvest")
    return {
        "/api/harvests": {
            "get": operation(
                "listHarvests",
                "Harvests and imports, the newest first",
                describe_page(ref("Harvest")),
                parameters=describe_query(LIST_QUERY),
            )
        },
        "/api/harvests/{harvest}": {
            "parameters": [HARVEST_ID],
            "get": operation("getHarvest", "One harvest and what it is doing", watched, errors=[404]),
        },
        "/api/harvests/{harvest}/orders": {
            "parameters": [HARVEST_ID],
            "post": operation(
                "controlHarvest",
                "Pause, resume, stop or abort a harvest, or change its limits and its queue",
                watched,
                body=describe_body(ORDER),
                errors=[404, 409],
            ),
        },
        "/api/harvests/{harvest}/findings": {
            "parameters": [HARVEST_ID],
            "get": operation(
                "listFindings",
                "What the checks found, the most severe first",
                describe_page(ref("Finding")),
                parameters=describe_query(FINDINGS_QUERY),
                errors=[404],
            ),
        },
    }
