"""Targets for programs: list and show them, nominate, describe and decide, record a ground, and harvest.

GET   /api/targets                        POST  /api/targets
GET   /api/targets/{target}               PATCH /api/targets/{target}
POST  /api/targets/{target}/answers       POST  /api/targets/{target}/decisions
POST  /api/targets/{target}/grounds       POST  /api/targets/{target}/harvests
"""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.model import EVERYTHING, Purpose
from webdepot.selection.criteria import AnswerKind, Judgement
from webdepot.selection.permission_basis import WITHOUT_LETTER, Ground
from webdepot.selection.states import TargetState
from webdepot.selection.target_list import TargetFilter
from webdepot.selection.targets import LONGEST_NAME, LONGEST_NOTE, Dossier, Origin, Strategy
from webdepot.services.admin import target_view
from webdepot.services.harvest import harvests
from webdepot.services.permission import owner_answers
from webdepot.services.schedule import plans
from webdepot.services.selection import criteria, targets
from webdepot.services.selection.criteria import CriteriaResult
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
    TEXTS,
    VERDICT,
    WHOLE,
    list_of,
    nullable,
    object_of,
    one_of,
    operation,
    parameter,
    ref,
)
from webdepot.web.api.staff.harvests import HARVEST_FIELDS, harvest_json
from webdepot.web.site import Site, name_of, person_of, site_of
from webdepot.web.staff.targets.nomination import origin_of
from webdepot.web.staff.targets.target_page import target_of

_REASON = InputField(name="reason", meaning="Why; it is kept with the target.", longest=LONGEST_NOTE)
LIST_QUERY = (
    InputField(name="state", meaning="Only targets in this state.", choices=tuple(TargetState)),
    InputField(name="q", meaning="Words of the name or of an address.", longest=200),
    InputField(name="collection", meaning="Only targets of this collection.", longest=60),
    InputField(name="origin", meaning="Only targets nominated by these.", choices=tuple(Origin)),
    *PAGING,
)
_FACTS = (
    InputField(name="name", meaning="Name of the site.", longest=LONGEST_NAME),
    InputField(name="collection", meaning="Name of its collection.", longest=60),
    InputField(name="purpose", meaning="Why it is kept.", choices=tuple(Purpose)),
    InputField(name="strategy", meaning="How it is harvested.", choices=tuple(Strategy)),
    InputField(name="note", meaning="A note for staff.", longest=LONGEST_NOTE),
)
NOMINATION = (
    InputField(
        name="seeds",
        meaning="Addresses at which harvests start.",
        kind=FieldKind.TEXTS,
        required=True,
        most=targets.MOST_SEEDS,
    ),
    *_FACTS,
)
ANSWER = (
    InputField(name="criterion", meaning="Code of the criterion.", required=True, longest=60),
    InputField(name="reason", meaning="Why.", required=True, longest=LONGEST_NOTE),
    InputField(
        name="value", meaning="From 0 for no to 1 for yes. Default: 0.", kind=FieldKind.NUMBER, highest=1
    ),
    InputField(name="words", meaning="The answer, if it is a text.", longest=LONGEST_NOTE),
)
DECISION = (
    InputField(name="act", meaning="The step.", choices=targets.DECISIONS, required=True),
    _REASON,
    InputField(name="look_again_on", meaning="For `put off`: when to reconsider it.", kind=FieldKind.DAY),
)
GROUND = (
    InputField(
        name="ground",
        meaning="Why it may be harvested without a letter to its owner.",
        choices=tuple(WITHOUT_LETTER),
        required=True,
    ),
    InputField(
        name="reason",
        meaning="The source of the ground: the address of the licence, the letter or the law.",
        required=True,
        longest=LONGEST_NOTE,
    ),
    InputField(name="until", meaning="The last day on which it holds.", kind=FieldKind.DAY),
)
START = (
    InputField(
        name="profile",
        meaning="Profile of the harvest; empty for none. Default: that of the plan.",
        longest=100,
    ),
)


# --- reading ---


def show_list(request: Request) -> Response:
    query = read_query(request, LIST_QUERY)
    limit, past = query.get("limit", ROWS), read_cursor(query.get("cursor", ""), int)
    wanted = TargetFilter(
        state=TargetState(query["state"]) if "state" in query else None,
        words=query.get("q", ""),
        collection=query.get("collection", ""),
        origin=Origin(query["origin"]) if "origin" in query else None,
    )
    rows = targets.list_past(site_of(request).archive, wanted, last=past[0] if past else 0, limit=limit + 1)
    return answer_page(
        request,
        rows,
        limit,
        shown=lambda row: target_json(site_of(request), row),
        cursor_of=lambda row: make_cursor(row.id),
    )


def show(request: Request) -> Response:
    read_query(request, ())
    site, person = site_of(request), person_of(request)
    view = target_view.view(site.archive, target_of(request), roles=person.roles if person else frozenset())
    grounds = [
        {
            "ground": kept.basis.ground.value,
            "since": kept.basis.since.isoformat(),
            "until": kept.basis.until.isoformat() if kept.basis.until else None,
            "reason": str(kept.basis.reason),
            "by": kept.agent,
            "has_ended": kept.ended_at is not None,
        }
        for kept in view.grounds
    ]
    verdict = view.verdict
    return JSONResponse(
        {
            **target_json(site, view.dossier),
            "may_harvest": {
                "answer": verdict.answer.value,
                "rule": verdict.rule,
                "reason": str(verdict.reason),
            },
            "criteria": _criteria_json(view.judged),
            "decisions": list(view.acts),
            "grounds": grounds,
            "latest_harvests": [harvest_json(site, harvest) for harvest in view.latest],
        }
    )


def _criteria_json(judged: CriteriaResult) -> list[dict[str, Any]]:
    """The questions about a target with the answers that were given."""
    rows = []
    for criterion in judged.asked:
        given = judged.given.get(criterion.code)
        rows.append(
            {
                "code": criterion.code,
                "question": criterion.question,
                "kind": criterion.kind.value,
                "is_required": criterion.required,
                "is_answered": given is not None,
                "value": given.value if given else None,
                "words": given.words if given else "",
                "reason": given.reason if given else "",
            }
        )
    return rows


def target_json(site: Site, dossier: Dossier) -> dict[str, Any]:
    target = dossier.target
    return {
        "id": target.id,
        "name": target.name,
        "host": dossier.host,
        "seeds": list(target.seeds),
        "collection": target.collection,
        "purpose": target.purpose.value,
        "strategy": dossier.strategy.value,
        "state": dossier.state.value,
        "since": to_iso(dossier.since),
        "reason": str(dossier.reason),
        "origin": dossier.origin.value,
        "nominated_by": dossier.nominated_by,
        "note": dossier.note,
        "look_again_on": dossier.look_again_on.isoformat() if dossier.look_again_on else None,
        "created_at": to_iso(target.created_at),
        "page": f"{site.portal_url}/targets/{target.id}",
    }


# --- changing ---


async def nominate(request: Request) -> Response:
    return await run_in_threadpool(_nominate, request, await read_json(request, NOMINATION))


def _nominate(request: Request, sent: dict[str, Any]) -> Response:
    """201 for a new target, 200 for one that is known. In both cases
    partners only see that it was received: contacts and notes are internal.
    """
    site, by, origin = site_of(request), name_of(request), origin_of(request)
    nomination = targets.draft(
        sent["seeds"],
        name=sent.get("name", ""),
        collection=sent.get("collection", EVERYTHING),
        purpose=sent.get("purpose", Purpose.HERITAGE),
        strategy=sent.get("strategy", Strategy.SELECTIVE),
        origin=origin,
        by=by,
        note=sent.get("note", ""),
    )
    known = targets.find_known(site.archive, nomination.seeds[0])
    is_known = known is not None and known.is_same
    dossier = (
        known.dossier if known is not None and is_known else targets.enter(site.archive, nomination, by=by)[0]
    )
    if origin is Origin.PARTNER:
        return JSONResponse({"target": None}, status_code=201)
    headers = {"Location": f"{site.portal_url}/api/targets/{dossier.id}"}
    content = {"target": target_json(site, dossier)}
    return JSONResponse(content, status_code=200 if is_known else 201, headers=headers)


async def describe(request: Request) -> Response:
    return await run_in_threadpool(_describe, request, await read_json(request, _FACTS))


def _describe(request: Request, sent: dict[str, Any]) -> Response:
    """Change what is sent; the other fields stay as they are."""
    site = site_of(request)
    before = targets.get(site.archive, target_of(request))
    given = {
        "name": before.name,
        "collection": before.target.collection,
        "purpose": before.target.purpose,
        "strategy": before.strategy,
        "note": before.note,
        **sent,
    }
    after = targets.describe(site.archive, before.id, **given, by=name_of(request))
    return JSONResponse(target_json(site, after))


async def answer(request: Request) -> Response:
    return await run_in_threadpool(_answer, request, await read_json(request, ANSWER))


def _answer(request: Request, sent: dict[str, Any]) -> Response:
    """Answer one criterion; once the verdict is clear, the target is judged."""
    site, target = site_of(request), target_of(request)
    judgement = Judgement(
        criterion=sent["criterion"],
        value=float(sent.get("value", 0)),
        words=sent.get("words", ""),
        reason=sent["reason"],
    )
    criteria.answer(site.archive, target, [judgement], person=person_of(request))
    return JSONResponse(target_json(site, targets.get(site.archive, target)))


async def decide(request: Request) -> Response:
    return await run_in_threadpool(_decide, request, await read_json(request, DECISION))


def _decide(request: Request, sent: dict[str, Any]) -> Response:
    site = site_of(request)
    moved = targets.decide(
        site.archive,
        target_of(request),
        sent["act"],
        by=name_of(request),
        reason=sent.get("reason", ""),
        look_again_on=sent.get("look_again_on"),
    )
    return JSONResponse(target_json(site, moved))


async def ground(request: Request) -> Response:
    return await run_in_threadpool(_ground, request, await read_json(request, GROUND))


def _ground(request: Request, sent: dict[str, Any]) -> Response:
    site = site_of(request)
    moved = owner_answers.record_ground(
        site.archive,
        target_of(request),
        Ground(sent["ground"]),
        by=name_of(request),
        reason=sent["reason"],
        until=sent.get("until"),
    )
    return JSONResponse(target_json(site, moved))


async def harvest(request: Request) -> Response:
    return await run_in_threadpool(_harvest, request, await read_json(request, START))


def _harvest(request: Request, sent: dict[str, Any]) -> Response:
    """Have the scheduler harvest the target now."""
    site = site_of(request)
    turn = plans.run_now(site.archive, target_of(request), profile=sent.get("profile"), by=name_of(request))
    begun = harvests.get(site.archive, str(turn.harvest))
    headers = {"Location": f"{site.portal_url}/api/harvests/{begun.id}"}
    return JSONResponse(harvest_json(site, begun), status_code=202, headers=headers)


# --- description ---

_TARGET_FIELDS: dict[str, Any] = {
    "id": WHOLE,
    "name": TEXT,
    "host": TEXT,
    "seeds": TEXTS,
    "collection": TEXT,
    "purpose": one_of(list(Purpose)),
    "strategy": one_of(list(Strategy)),
    "state": one_of(list(TargetState)),
    "since": MOMENT,
    "reason": TEXT,
    "origin": one_of(list(Origin)),
    "nominated_by": TEXT,
    "note": TEXT,
    "look_again_on": nullable(DAY),
    "created_at": MOMENT,
    "page": TEXT,
}
_KEPT_GROUND = object_of(
    {
        "ground": one_of(list(Ground)),
        "since": DAY,
        "until": nullable(DAY),
        "reason": TEXT,
        "by": TEXT,
        "has_ended": FLAG,
    }
)
_CRITERION = object_of(
    {
        "code": TEXT,
        "question": TEXT,
        "kind": one_of(list(AnswerKind)),
        "is_required": FLAG,
        "is_answered": FLAG,
        "value": {"type": ["number", "null"]},
        "words": TEXT,
        "reason": TEXT,
    }
)
SCHEMAS = {
    "Target": object_of(_TARGET_FIELDS),
    "TargetDossier": object_of(
        {
            **_TARGET_FIELDS,
            "may_harvest": VERDICT,
            "criteria": list_of(_CRITERION),
            "decisions": list_of(one_of(targets.DECISIONS)),
            "grounds": list_of(_KEPT_GROUND),
            "latest_harvests": list_of(object_of(HARVEST_FIELDS)),
        }
    ),
    "Nominated": object_of({"target": {"anyOf": [ref("Target"), {"type": "null"}]}}),
}
TARGET_ID = parameter("target", "Number of the target.", "integer", where="path", required=True, minimum=0)


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    target, listed = ref("Target"), describe_page(ref("Target"))
    nominated = operation(
        "nominateTarget", "Nominate a site", ref("Nominated"), status=201, body=describe_body(NOMINATION)
    )
    nominated["responses"]["200"] = {
        **nominated["responses"]["201"],
        "description": "It is a target already.",
    }
    return {
        "/api/targets": {
            "get": operation(
                "listTargets", "Targets by number", listed, parameters=describe_query(LIST_QUERY)
            ),
            "post": nominated,
        },
        "/api/targets/{target}": {
            "parameters": [TARGET_ID],
            "get": operation("getTarget", "One target", ref("TargetDossier"), errors=[404]),
            "patch": operation(
                "describeTarget",
                "Change the description of a target; fields that are not sent stay as they are",
                target,
                body=describe_body(_FACTS),
                errors=[404],
            ),
        },
        **{
            f"/api/targets/{{target}}/{name}": {"parameters": [TARGET_ID], "post": step}
            for name, step in _describe_steps().items()
        },
    }


def _describe_steps() -> dict[str, Any]:
    """What can be done with a target, by the last part of the path."""
    target = ref("Target")
    return {
        "answers": operation(
            "answerCriterion",
            "Answer a criterion about a target",
            target,
            body=describe_body(ANSWER),
            errors=[404, 409],
        ),
        "decisions": operation(
            "decideTarget",
            "Nominate, select, put off, reject, reopen or end a target",
            target,
            body=describe_body(DECISION),
            errors=[404, 409],
        ),
        "grounds": operation(
            "recordGround",
            "Record why a target may be harvested",
            target,
            body=describe_body(GROUND),
            errors=[404, 409],
        ),
        "harvests": operation(
            "startHarvest",
            "Harvest a target now; the scheduler begins with it",
            ref("Harvest"),
            status=202,
            body=describe_body(START),
            errors=[404, 409],
        ),
    }
