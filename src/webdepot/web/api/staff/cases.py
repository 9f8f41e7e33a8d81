"""Complaints for programs: the cases, one with its history, recording one, and what to do with it.

GET   /api/cases            POST  /api/cases
GET   /api/cases/{case}     POST  /api/cases/{case}/actions
"""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.errors import InputError
from webdepot.selection.cases import Case, CaseState, Decision, Objection, Who
from webdepot.selection.letter_templates import LANGUAGES
from webdepot.services.permission import case_view, complaints
from webdepot.services.permission.complaints import LONGEST_TEXT, Area, Audience, Ruling
from webdepot.times import to_iso
from webdepot.web.api.cursors import PAGING, ROWS, answer_page, describe_page, make_cursor, read_cursor
from webdepot.web.api.input_fields import InputField, describe_body, describe_query, read_json, read_query
from webdepot.web.api.openapi_parts import (
    MOMENT,
    TEXT,
    TEXTS,
    WHOLE,
    list_of,
    object_of,
    one_of,
    operation,
    parameter,
    ref,
)
from webdepot.web.api.staff.letters import letter_json
from webdepot.web.mailing import start_sending
from webdepot.web.site import Site, name_of, site_of

ACTIONS = ("take", "decide", "drop", "lift", "reopen", "note")
LIST_QUERY = (
    InputField(name="state", meaning="Only cases in this state.", choices=tuple(CaseState)),
    InputField(name="host", meaning="Only cases about this host.", longest=255),
    *PAGING,
)
COMPLAINT = (
    InputField(name="url", meaning="Address of the page.", required=True, longest=4000),
    InputField(name="words", meaning="What is wrong with it.", required=True, longest=LONGEST_TEXT),
    InputField(name="who", meaning="Who complains.", choices=tuple(Who)),
    InputField(name="ground", meaning="What the complaint is about.", choices=tuple(Objection)),
    InputField(name="name", meaning="Name of the person.", longest=200),
    InputField(name="mail", meaning="Email address; it gets a confirmation and the decision.", longest=254),
    InputField(name="captured_at", meaning="Timestamp of the version; empty for all.", longest=14),
    InputField(name="language", meaning="Language of letters. Default: English.", choices=LANGUAGES),
)
ACTION = (
    InputField(name="action", meaning="What to do.", choices=ACTIONS, required=True),
    InputField(
        name="reason",
        meaning="Why; needed for `drop`, `lift` and `reopen`. For `note`, the note.",
        longest=LONGEST_TEXT,
    ),
    InputField(name="decision", meaning="For `decide`: the decision.", choices=tuple(Decision)),
    InputField(name="words", meaning="For `decide`: the reason, for the letter only.", longest=LONGEST_TEXT),
    InputField(name="area", meaning="For `decide`: which addresses it covers.", choices=tuple(Area)),
    InputField(
        name="address",
        meaning="For `decide`: the address that the area is derived from. Default: that of the case.",
        longest=4000,
    ),
    InputField(name="audience", meaning="For `decide`: who loses access.", choices=tuple(Audience)),
    InputField(
        name="captured_from", meaning="For `decide`: captures from then on: 2019 or a day.", longest=20
    ),
    InputField(name="captured_to", meaning="For `decide`: captures until then.", longest=20),
    InputField(
        name="public_text", meaning="For `decide`: the warning, or the message for readers.", longest=1000
    ),
)


def show_list(request: Request) -> Response:
    query = read_query(request, LIST_QUERY)
    limit, past = query.get("limit", ROWS), read_cursor(query.get("cursor", ""), int)
    rows = complaints.list_past(
        site_of(request).archive,
        state=CaseState(query["state"]) if "state" in query else None,
        host=query.get("host", ""),
        last=past[0] if past else None,
        limit=limit + 1,
    )
    return answer_page(
        request,
        rows,
        limit,
        shown=lambda case: _case_json(site_of(request), case),
        cursor_of=lambda case: make_cursor(case.id),
    )


def show(request: Request) -> Response:
    read_query(request, ())
    return JSONResponse(_whole_json(request))


async def record(request: Request) -> Response:
    return await run_in_threadpool(_record, request, await read_json(request, COMPLAINT))


def _record(request: Request, sent: dict[str, Any]) -> Response:
    """Enter a complaint that came by letter, telephone or another program."""
    site = site_of(request)
    case = complaints.complain(site.archive, **sent, origin="staff", by=name_of(request))
    start_sending(request)
    headers = {"Location": f"{site.portal_url}/api/cases/{case.reference}"}
    return JSONResponse(_case_json(site, case), status_code=201, headers=headers)


async def act(request: Request) -> Response:
    return await run_in_threadpool(_act, request, await read_json(request, ACTION))


def _act(request: Request, sent: dict[str, Any]) -> Response:
    archive, which, by = site_of(request).archive, request.path_params["case"], name_of(request)
    reason = sent.get("reason", "")
    match sent["action"]:
        case "take":
            complaints.take(archive, which, by=by)
        case "drop":
            complaints.drop(archive, which, by=by, reason=reason)
        case "reopen":
            complaints.reopen(archive, which, by=by, reason=reason)
        case "lift":
            complaints.lift(archive, which, by=by, reason=reason)
        case "note":
            complaints.note(archive, which, reason, by=by)
        case _:
            complaints.decide(archive, which, _ruling(sent), by=by)
            start_sending(request)
    return JSONResponse(_whole_json(request))


def _ruling(sent: dict[str, Any]) -> Ruling:
    if "decision" not in sent:
        raise InputError(f"The field decision is missing. Send one of {', '.join(Decision)}.")
    texts = ("words", "address", "captured_from", "captured_to", "public_text")
    return Ruling(
        decision=Decision(sent["decision"]),
        area=Area(sent.get("area", Area.PAGE)),
        audience=Audience(sent.get("audience", Audience.EVERYONE)),
        **{name: sent.get(name, "").strip() for name in texts},
    )


def _whole_json(request: Request) -> dict[str, Any]:
    site = site_of(request)
    view = case_view.view(site.archive, request.path_params["case"])
    return {
        **_case_json(site, view.case),
        "actions": list(view.acts),
        "letters": [letter_json(letter) for letter in view.letters],
        "history": [
            {
                "at": to_iso(event.at),
                "by": event.agent,
                "action": event.action,
                "message": str(event.message),
            }
            for event in view.history
        ],
        "others": [case.reference for case in view.others],
    }


def _case_json(site: Site, case: Case) -> dict[str, Any]:
    return {
        "id": case.id,
        "reference": case.reference,
        "state": case.state.value,
        "since": to_iso(case.since),
        "host": case.host,
        "url": case.url,
        "captured_at": case.captured_at,
        "who": case.who.value,
        "ground": case.ground.value,
        "words": case.words,
        "name": case.name,
        "mail": case.mail,
        "language": case.language,
        "origin": case.origin,
        "created_at": to_iso(case.created_at),
        "handled_by": case.handled_by,
        "decision": case.decision.value if case.decision else None,
        "decision_words": case.decision_words,
        "detail": {name: str(value) for name, value in case.detail.items()},
        "rules": list(case.rules),
        "page": f"{site.portal_url}/cases/{case.reference}",
    }


# --- description ---

_CASE = {
    "id": WHOLE,
    "reference": TEXT,
    "state": one_of(list(CaseState)),
    "since": MOMENT,
    "host": TEXT,
    "url": TEXT,
    "captured_at": TEXT,
    "who": one_of(list(Who)),
    "ground": one_of(list(Objection)),
    "words": TEXT,
    "name": TEXT,
    "mail": TEXT,
    "language": TEXT,
    "origin": TEXT,
    "created_at": MOMENT,
    "handled_by": TEXT,
    "decision": {"enum": [*map(str, Decision), None]},
    "decision_words": TEXT,
    "detail": {"type": "object", "additionalProperties": TEXT},
    "rules": list_of(WHOLE),
    "page": TEXT,
}
SCHEMAS = {
    "Case": object_of(_CASE),
    "WholeCase": object_of(
        {
            **_CASE,
            "actions": TEXTS,
            "letters": list_of(ref("Letter")),
            "history": list_of(object_of({"at": MOMENT, "by": TEXT, "action": TEXT, "message": TEXT})),
            "others": TEXTS,
        }
    ),
}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    which = parameter("case", "Reference or number of the case.", where="path", required=True)
    return {
        "/api/cases": {
            "get": operation(
                "listCases",
                "Complaints, the newest first",
                describe_page(ref("Case")),
                parameters=describe_query(LIST_QUERY),
            ),
            "post": operation(
                "recordCase", "Record a complaint", ref("Case"), status=201, body=describe_body(COMPLAINT)
            ),
        },
        "/api/cases/{case}": {
            "parameters": [which],
            "get": operation("getCase", "One complaint", ref("WholeCase"), errors=[404]),
        },
        "/api/cases/{case}/actions": {
            "parameters": [which],
            "post": operation(
                "actOnCase",
                "Work on a complaint; the access rules of a decision hold at once",
                ref("WholeCase"),
                body=describe_body(ACTION),
                errors=[404, 409],
            ),
        },
    }
