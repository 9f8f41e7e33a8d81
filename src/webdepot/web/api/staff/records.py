"""Catalogue records for programs: works of the catalogue, one record with what is above and below it, and its
description.

GET   /api/records
GET   /api/records/{record}         PATCH /api/records/{record}
POST  /api/targets/{target}/record
"""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.exchange.catalogue import Access, CatalogueRecord, RecordLevel
from webdepot.services.catalogue import description, records
from webdepot.services.catalogue.records import LONGEST_TEXT, MOST_VALUES
from webdepot.services.selection import targets
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
    FLAG,
    MOMENT,
    TEXT,
    TEXTS,
    WHOLE,
    list_of,
    nullable,
    object_of,
    one_of,
    operation,
    parameter,
    ref,
)
from webdepot.web.api.staff.targets import TARGET_ID
from webdepot.web.site import Site, name_of, site_of
from webdepot.web.staff.targets.target_page import target_of

_SEARCHED = ("words", "creator", "genre", "keyword", "subject", "collection")
LIST_QUERY = (
    *(InputField(name=name, meaning=f"Only works with this {name}.", longest=200) for name in _SEARCHED),
    *PAGING,
)
_OTHER = ("date", "part", "responsibility", "identifiers", "addresses")
"""Fields of objects that are not web sites."""
_LISTED = description.LISTED | {"identifiers", "addresses"}
CHANGE = (
    *(
        InputField(
            name=name,
            meaning=f"{name.replace('_', ' ').capitalize()} of the work.",
            kind=FieldKind.TEXTS if name in _LISTED else FieldKind.TEXT,
            longest=LONGEST_TEXT,
            most=MOST_VALUES,
        )
        for name in (*description.FIELDS, *_OTHER)
    ),
    InputField(name="access", meaning="Who may fetch it and all below it.", choices=tuple(Access)),
    InputField(
        name="urn", meaning="The URN:NBN of its publisher, until it is in the depot under ours.", longest=200
    ),
)


def show_list(request: Request) -> Response:
    query = read_query(request, LIST_QUERY)
    limit, past = query.get("limit", ROWS), read_cursor(query.get("cursor", ""), str)
    site = site_of(request)
    rows = records.list_records(
        site.archive,
        **{name: query.get(name, "") for name in _SEARCHED},
        limit=limit + 1,
        after=past[0] if past else "",
    )
    return answer_page(
        request,
        rows,
        limit,
        shown=lambda record: _record_json(site, record),
        cursor_of=lambda record: make_cursor(record.key),
    )


def show(request: Request) -> Response:
    read_query(request, ())
    return JSONResponse(_whole_json(site_of(request), request.path_params["record"]))


async def change(request: Request) -> Response:
    return await run_in_threadpool(_change, request, await read_json(request, CHANGE))


def _change(request: Request, sent: dict[str, Any]) -> Response:
    """Change what is sent; the other fields keep their values and the people who entered them."""
    site, by = site_of(request), name_of(request)
    record = records.get(site.archive, request.path_params["record"])
    urn, access = sent.pop("urn", ""), sent.pop("access", "")
    if sent:
        records.write(site.archive, record.key, sent, by=by)
    if access:
        records.restrict(site.archive, record.key, access, by=by)
    if urn:
        records.assign_urn(site.archive, record.key, urn, by=by)
    return JSONResponse(_whole_json(site, record.key))


def make(request: Request) -> Response:
    """The record of a site, created now if there is none: a site can be described before a harvest."""
    site = site_of(request)
    target = targets.get(site.archive, target_of(request)).target
    record = records.site_record(site.archive, target, by=name_of(request))
    headers = {"Location": f"{site.portal_url}/api/records/{record.key}"}
    return JSONResponse(_whole_json(site, record.key), headers=headers)


def _whole_json(site: Site, key: str) -> dict[str, Any]:
    view = records.view(site.archive, key)
    return {
        **_record_json(site, view.record),
        "sources": dict(view.record.sources),
        "above": [_short_json(each) for each in view.levels[:-1]],
        "below": [_short_json(each) for each in view.children],
    }


def _short_json(record: CatalogueRecord) -> dict[str, Any]:
    return {"key": record.key, "level": record.level.value, "title": record.title, "urn": record.urn}


def _record_json(site: Site, record: CatalogueRecord) -> dict[str, Any]:
    fields = {name: getattr(record, name) for name in (*description.FIELDS, *_OTHER)}
    return {
        **_short_json(record),
        **{name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()},
        "access": record.access.value,
        "collection": record.collection,
        "target": record.target,
        "harvest": record.harvest,
        "package": record.package,
        "is_object": record.is_object,
        "created_at": to_iso(record.created_at),
        "changed_at": to_iso(record.changed_at),
        "withdrawn_at": to_iso(record.withdrawn_at) if record.withdrawn_at else None,
        "page": f"{site.portal_url}/title/{record.key}",
    }


# --- description ---

_SHORT = {"key": TEXT, "level": one_of(list(RecordLevel)), "title": TEXT, "urn": TEXT}
_RECORD = {
    **_SHORT,
    **{name: TEXTS if name in _LISTED else TEXT for name in (*description.FIELDS, *_OTHER)},
    "access": one_of(list(Access)),
    "collection": TEXT,
    "target": nullable(WHOLE),
    "harvest": TEXT,
    "package": TEXT,
    "is_object": FLAG,
    "created_at": MOMENT,
    "changed_at": MOMENT,
    "withdrawn_at": nullable(MOMENT),
    "page": TEXT,
}
SCHEMAS = {
    "Record": object_of(_RECORD),
    "WholeRecord": object_of(
        {
            **_RECORD,
            "sources": {"type": "object", "additionalProperties": TEXT},
            "above": list_of(object_of(_SHORT)),
            "below": list_of(object_of(_SHORT)),
        }
    ),
}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    record = ref("WholeRecord")
    key = parameter("record", "Key or URN of the record.", where="path", required=True)
    return {
        "/api/records": {
            "get": operation(
                "listRecords",
                "Works of the catalogue by title",
                describe_page(ref("Record")),
                parameters=describe_query(LIST_QUERY),
            )
        },
        "/api/records/{record}": {
            "parameters": [key],
            "get": operation("getRecord", "One record", record, errors=[404]),
            "patch": operation(
                "describeRecord",
                "Describe a work; fields that are not sent stay as they are",
                record,
                body=describe_body(CHANGE),
                errors=[404, 409],
            ),
        },
        "/api/targets/{target}/record": {
            "parameters": [TARGET_ID],
            "post": operation(
                "makeRecord", "The record of a site; it is created if there is none", record, errors=[404]
            ),
        },
    }
