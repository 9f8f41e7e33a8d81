"""Access rules for programs: list, add and end them.

GET   /api/rules
POST  /api/rules
POST  /api/rules/{rule}/end
"""

from datetime import date
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.access.policy import AccessPoint, Rule, RuleAnswer
from webdepot.errors import NotFound
from webdepot.services.access import rules
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
    DAY,
    FLAG,
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
from webdepot.web.forms import find_number
from webdepot.web.site import Site, name_of, site_of
from webdepot.web.staff.rules import REASONS

LIST_QUERY = (
    InputField(name="q", meaning="Part of an address, of the reason or of the public text.", longest=200),
    InputField(name="answer", meaning="Only rules with this answer.", choices=tuple(RuleAnswer)),
    InputField(name="embargoes", meaning="Only rules with a rolling embargo.", kind=FieldKind.FLAG),
    *PAGING,
)
NEW_RULE = (
    InputField(
        name="pattern",
        meaning="example.org/news/* (all that begin so), example.org/page.html, example.org, *.example.org",
        required=True,
    ),
    InputField(name="answer", meaning="What readers get.", choices=tuple(RuleAnswer), required=True),
    InputField(name="reason", meaning="Why, in one word.", choices=REASONS, required=True),
    InputField(name="captured_from", meaning="Captures from then on: 2019, 2019-03 or a day.", longest=20),
    InputField(name="captured_to", meaning="Captures until then.", longest=20),
    InputField(
        name="embargo_days",
        meaning="Only captures younger than this number of days.",
        kind=FieldKind.WHOLE,
        highest=100_000,
    ),
    InputField(name="valid_from", meaning="The first day of the rule.", kind=FieldKind.DAY),
    InputField(name="valid_to", meaning="The last day of the rule.", kind=FieldKind.DAY),
    InputField(
        name="access_point", meaning="Where it applies; everywhere if left out.", choices=tuple(AccessPoint)
    ),
    InputField(name="public_text", meaning="The message for readers."),
    InputField(name="private_note", meaning="A note for staff."),
)
END = (InputField(name="why", meaning="Why the rule ends.", required=True, longest=1000),)


def show_list(request: Request) -> Response:
    query = read_query(request, LIST_QUERY)
    limit, past = query.get("limit", ROWS), read_cursor(query.get("cursor", ""), int)
    rows = rules.list_past(
        site_of(request).archive,
        words=query.get("q", ""),
        answer=RuleAnswer(query["answer"]) if "answer" in query else None,
        embargoes=query.get("embargoes", False),
        last=past[0] if past else None,
        limit=limit + 1,
    )
    return answer_page(request, rows, limit, shown=_rule_json, cursor_of=lambda rule: make_cursor(rule.id))


async def add(request: Request) -> Response:
    return await run_in_threadpool(_add, request, await read_json(request, NEW_RULE))


def _add(request: Request, sent: dict[str, Any]) -> Response:
    """The rules of the pattern: `*.example.org` makes two, one for the host and one for those below it."""
    point = sent.get("access_point")
    added = rules.add(
        site_of(request).archive,
        sent["pattern"],
        answer=RuleAnswer(sent["answer"]),
        captured_from=sent.get("captured_from", ""),
        captured_to=sent.get("captured_to", ""),
        embargo_days=sent.get("embargo_days", 0),
        valid_from=sent.get("valid_from", date.min),
        valid_to=sent.get("valid_to", date.max),
        access_point=AccessPoint(point) if point else None,
        public_text=sent.get("public_text", ""),
        private_note=sent.get("private_note", ""),
        reason=sent["reason"],
        by=name_of(request),
    )
    return JSONResponse({"rules": [_rule_json(rule) for rule in added]}, status_code=201)


async def end(request: Request) -> Response:
    return await run_in_threadpool(_end, request, await read_json(request, END))


def _end(request: Request, sent: dict[str, Any]) -> Response:
    text = request.path_params["rule"]
    number = find_number(text)
    if number is None:
        raise NotFound(f"There is no access rule {text[:40]}.")
    ended = rules.end(site_of(request).archive, number, by=name_of(request), why=sent["why"])
    return JSONResponse(_rule_json(ended))


def _rule_json(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "pattern": rules.pattern_of(rule),
        "key": rule.prefix,
        "is_exact": rule.exact,
        "answer": rule.answer.value,
        "captured_from": rule.captured_from,
        "captured_to": rule.captured_to,
        "embargo_days": rule.embargo_days,
        "valid_from": rule.valid_from.isoformat() if rule.valid_from != date.min else None,
        "valid_to": rule.valid_to.isoformat() if rule.valid_to != date.max else None,
        "access_point": rule.access_point.value if rule.access_point else None,
        "public_text": rule.public_text,
        "private_note": rule.private_note,
        "reason": rule.reason,
        "created_by": rule.created_by,
        "created_at": to_iso(rule.created_at),
    }


# --- description ---

SCHEMAS = {
    "AccessRule": object_of(
        {
            "id": WHOLE,
            "pattern": TEXT,
            "key": TEXT,
            "is_exact": FLAG,
            "answer": one_of(list(RuleAnswer)),
            "captured_from": TEXT,
            "captured_to": TEXT,
            "embargo_days": WHOLE,
            "valid_from": nullable(DAY),
            "valid_to": nullable(DAY),
            "access_point": {"enum": [*map(str, AccessPoint), None]},
            "public_text": TEXT,
            "private_note": TEXT,
            "reason": TEXT,
            "created_by": TEXT,
            "created_at": MOMENT,
        }
    )
}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    rule = ref("AccessRule")
    number = parameter(
        "rule", "Number of the access rule.", "integer", where="path", required=True, minimum=0
    )
    return {
        "/api/rules": {
            "get": operation(
                "listRules",
                "Access rules, the newest first",
                describe_page(rule),
                parameters=describe_query(LIST_QUERY),
            ),
            "post": operation(
                "addRule",
                "Add an access rule; it holds with the next request",
                object_of({"rules": list_of(rule)}),
                status=201,
                body=describe_body(NEW_RULE),
            ),
        },
        "/api/rules/{rule}/end": {
            "parameters": [number],
            "post": operation("endRule", "End an access rule", rule, body=describe_body(END), errors=[404]),
        },
    }
