"""Imports and other jobs for programs: send files, and follow the jobs.

POST  /api/imports
GET   /api/jobs
GET   /api/jobs/{job}      POST  /api/jobs/{job}/cancellations
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.engine.job_queue import JobState, QueuedJob
from webdepot.errors import NotFound
from webdepot.reasons import said
from webdepot.services.jobs import job_control, kinds
from webdepot.times import to_iso
from webdepot.web.api.cursors import PAGING, ROWS, answer_page, describe_page, make_cursor, read_cursor
from webdepot.web.api.input_fields import InputField, describe_query, read_query
from webdepot.web.api.openapi_parts import (
    MOMENT,
    TEXT,
    WHOLE,
    nullable,
    object_of,
    one_of,
    operation,
    parameter,
    ref,
)
from webdepot.web.forms import find_number
from webdepot.web.jobs.pages import cancel_job
from webdepot.web.site import Site, site_of
from webdepot.web.staff.imports import IMPORTED, receive

LIST_QUERY = (
    InputField(name="state", meaning="Only jobs in this state.", choices=tuple(JobState)),
    InputField(name="kind", meaning="Only jobs of this kind.", choices=tuple(kinds.KINDS)),
    *PAGING,
)


async def import_files(request: Request) -> Response:
    """Receive the files of a form and import them in the background."""
    job = await receive(request, {})
    headers = {"Location": f"{site_of(request).portal_url}/api/jobs/{job.id}"}
    return JSONResponse(job_json(job), status_code=202, headers=headers)


def show_list(request: Request) -> Response:
    query = read_query(request, LIST_QUERY)
    limit, past = query.get("limit", ROWS), read_cursor(query.get("cursor", ""), int)
    rows = job_control.list_past(
        site_of(request).archive,
        JobState(query["state"]) if "state" in query else None,
        kind=query.get("kind", ""),
        last=past[0] if past else None,
        limit=limit + 1,
    )
    return answer_page(request, rows, limit, shown=job_json, cursor_of=lambda job: make_cursor(job.id))


def show(request: Request) -> Response:
    read_query(request, ())
    job = job_control.get(site_of(request).archive, _number(request))
    return JSONResponse({**job_json(job), "progress": dict(job.progress), "result": dict(job.result)})


def cancel(request: Request) -> Response:
    return JSONResponse(job_json(cancel_job(request, _number(request))))


def _number(request: Request) -> int:
    text = request.path_params["job"]
    number = find_number(text)
    if number is None:
        raise NotFound(said("no_job", "There is no job {number}.", number=text[:40]))
    return number


def job_json(job: QueuedJob) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.kind,
        "subject": job.subject,
        "state": job.state.value,
        "reason": str(job.reason),
        "by": job.by,
        "tries": job.tries,
        "created_at": to_iso(job.created_at),
        "began_at": to_iso(job.began_at) if job.began_at else None,
        "ended_at": to_iso(job.ended_at) if job.ended_at else None,
    }


# --- description ---

_JOB = {
    "id": WHOLE,
    "kind": one_of(list(kinds.KINDS)),
    "subject": TEXT,
    "state": one_of(list(JobState)),
    "reason": TEXT,
    "by": TEXT,
    "tries": WHOLE,
    "created_at": MOMENT,
    "began_at": nullable(MOMENT),
    "ended_at": nullable(MOMENT),
}
_FACTS = {"type": "object", "additionalProperties": {}}
SCHEMAS = {
    "Job": object_of(_JOB),
    "WatchedJob": object_of({**_JOB, "progress": _FACTS, "result": _FACTS}),
}
_FORM = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {
                    "collection": {
                        "type": "string",
                        "description": "Name of the collection; before the files.",
                    },
                    "what": {
                        "type": "string",
                        "enum": list(IMPORTED),
                        "description": "Web archive files, or the files of one object; before the files.",
                    },
                    "file": {
                        "type": "array",
                        "items": {"type": "string", "format": "binary"},
                        "description": "The files.",
                    },
                },
                "required": ["file"],
            }
        }
    },
}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    number = parameter("job", "Number of the job.", "integer", where="path", required=True, minimum=0)
    return {
        "/api/imports": {
            "post": operation("importFiles", "Send files and import them", ref("Job"), status=202, body=_FORM)
        },
        "/api/jobs": {
            "get": operation(
                "listJobs",
                "Jobs, the newest first",
                describe_page(ref("Job")),
                parameters=describe_query(LIST_QUERY),
            )
        },
        "/api/jobs/{job}": {
            "parameters": [number],
            "get": operation(
                "getJob", "One job with its progress and result", ref("WatchedJob"), errors=[404]
            ),
        },
        "/api/jobs/{job}/cancellations": {
            "parameters": [number],
            "post": operation(
                "cancelJob",
                "Cancel a job that waits: curators, and the person who started it",
                ref("Job"),
                errors=[404, 409],
            ),
        },
    }
