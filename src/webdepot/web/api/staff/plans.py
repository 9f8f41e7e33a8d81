"""Plans of targets and harvest profiles for programs.

GET   /api/targets/{target}/plan           PUT   /api/targets/{target}/plan
POST  /api/targets/{target}/plan/orders    DELETE /api/targets/{target}/plan
POST  /api/pages
POST  /api/turns/{turn}/orders
GET   /api/profiles
GET   /api/profiles/{profile}              PUT   /api/profiles/{profile}
"""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.accounts.roles import ADMINISTRATORS
from webdepot.errors import ConfigError, InputError, NotFound
from webdepot.selection.plan_dates import Frequency, Plan
from webdepot.selection.scheduled_harvests import TurnState
from webdepot.services.harvest import profiles
from webdepot.services.schedule import plans
from webdepot.services.schedule.plans import TargetPlan
from webdepot.times import to_iso
from webdepot.web.api.input_fields import FieldKind, InputField, describe_body, read_json, read_query
from webdepot.web.api.openapi_parts import (
    DAY,
    FLAG,
    MOMENT,
    TEXT,
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
from webdepot.web.api.staff.harvests import harvest_json
from webdepot.web.api.staff.targets import TARGET_ID
from webdepot.web.forms import find_number
from webdepot.web.site import Site, may, name_of, site_of
from webdepot.web.staff.targets.target_page import target_of

ORDERS = ("pause", "resume")
PLAN = (
    InputField(name="frequency", meaning="How often.", choices=tuple(Frequency), required=True),
    InputField(name="first_on", meaning="The first day. Default: today.", kind=FieldKind.DAY),
    InputField(name="last_on", meaning="The last day.", kind=FieldKind.DAY),
    InputField(name="at_time", meaning="The time of day, like 03:00.", longest=8),
    InputField(name="cron", meaning="A cron expression, for the frequency `cron`.", longest=200),
    InputField(name="opens", meaning="Harvests run from this time of day, like 22:00.", longest=8),
    InputField(name="closes", meaning="Harvests run until this time of day.", longest=8),
    InputField(name="profile", meaning="Name of the profile; empty for the configuration.", longest=100),
)
ORDER = (InputField(name="order", meaning="What to do.", choices=ORDERS, required=True),)
PAGE = (InputField(name="url", meaning="Address of a page of a site.", required=True, longest=4000),)
TURN_ORDERS = ("retry", "skip")
TURN_ORDER = (InputField(name="order", meaning="What to do.", choices=TURN_ORDERS, required=True),)
PROFILE = (InputField(name="text", meaning="The profile, as TOML.", required=True, longest=200_000),)


def show(request: Request) -> Response:
    read_query(request, ())
    return JSONResponse(_planned_json(plans.of_target(site_of(request).archive, target_of(request))))


async def save(request: Request) -> Response:
    return await run_in_threadpool(_save, request, await read_json(request, PLAN))


def _save(request: Request, sent: dict[str, Any]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    plans.of_target(archive, target)  # NotFound before anything else
    plans.set_typed_plan(
        archive,
        target,
        frequency=sent["frequency"],
        first_on=sent["first_on"].isoformat() if "first_on" in sent else "",
        last_on=sent["last_on"].isoformat() if "last_on" in sent else "",
        at_time=sent.get("at_time", "03:00"),
        cron=sent.get("cron", ""),
        opens=sent.get("opens", ""),
        closes=sent.get("closes", ""),
        profile=sent.get("profile", ""),
        by=name_of(request),
    )
    return JSONResponse(_planned_json(plans.of_target(archive, target)))


async def order(request: Request) -> Response:
    return await run_in_threadpool(_order, request, await read_json(request, ORDER))


def _order(request: Request, sent: dict[str, Any]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    do = plans.pause if sent["order"] == "pause" else plans.resume
    do(archive, target, by=name_of(request))
    return JSONResponse(_planned_json(plans.of_target(archive, target)))


def remove(request: Request) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    plans.remove(archive, target, by=name_of(request))
    return JSONResponse(_planned_json(plans.of_target(archive, target)))


def _planned_json(planned: TargetPlan) -> dict[str, Any]:
    verdict = planned.verdict
    return {
        "target": planned.target,
        "plan": _plan_json(planned.plan) if planned.plan else None,
        "next_dates": [to_iso(each) for each in planned.next_dates],
        "may_harvest": {
            "answer": verdict.answer.value,
            "rule": verdict.rule,
            "reason": str(verdict.reason),
        },
    }


def _plan_json(plan: Plan) -> dict[str, Any]:
    dates, window = plan.dates, plan.window
    return {
        "frequency": dates.frequency.value,
        "first_on": dates.first_on.isoformat(),
        "last_on": dates.last_on.isoformat() if dates.last_on else None,
        "at_time": f"{dates.at_time:%H:%M}",
        "cron": dates.cron,
        "opens": f"{window.opens:%H:%M}" if window else None,
        "closes": f"{window.closes:%H:%M}" if window else None,
        "profile": plan.profile,
        "is_active": plan.is_active,
        "last_at": to_iso(plan.last_at) if plan.last_at else None,
        "changed_by": plan.changed_by,
    }


# --- single pages and scheduled harvests ---


async def archive_page(request: Request) -> Response:
    return await run_in_threadpool(_archive_page, request, await read_json(request, PAGE))


def _archive_page(request: Request, sent: dict[str, Any]) -> Response:
    """Have the scheduler harvest one page with its parts now."""
    site = site_of(request)
    harvest = plans.archive_page(site.archive, sent["url"].strip(), by=name_of(request))
    headers = {"Location": f"{site.portal_url}/api/harvests/{harvest.id}"}
    return JSONResponse(harvest_json(site, harvest), status_code=202, headers=headers)


async def order_turn(request: Request) -> Response:
    return await run_in_threadpool(_order_turn, request, await read_json(request, TURN_ORDER))


def _order_turn(request: Request, sent: dict[str, Any]) -> Response:
    """Retry a scheduled harvest that failed, or skip one that waits."""
    text = request.path_params["turn"]
    number = find_number(text)
    if number is None:
        raise NotFound(f"There is no scheduled harvest {text[:40]}.")
    do = plans.retry if sent["order"] == "retry" else plans.skip
    turn = do(site_of(request).archive, number, by=name_of(request))
    return JSONResponse(
        {
            "id": turn.id,
            "target": turn.target,
            "state": turn.state.value,
            "due_at": to_iso(turn.due_at),
            "harvest": turn.harvest,
            "reason": str(turn.reason),
        }
    )


# --- profiles ---


def show_profiles(request: Request) -> Response:
    read_query(request, ())
    good, broken = profiles.every(site_of(request).archive)
    items = [{"name": each.name, "description": each.description, "problem": ""} for each in good]
    items += [{"name": each.name, "description": "", "problem": each.problem} for each in broken]
    return JSONResponse({"profiles": sorted(items, key=lambda each: each["name"])})


def show_profile(request: Request) -> Response:
    read_query(request, ())
    return JSONResponse(_profile_json(request))


async def save_profile(request: Request) -> Response:
    return await run_in_threadpool(_save_profile, request, await read_json(request, PROFILE))


def _save_profile(request: Request, sent: dict[str, Any]) -> Response:
    try:
        profiles.save(
            site_of(request).archive,
            request.path_params["profile"],
            sent["text"],
            agent=name_of(request),
            by_administrator=may(request, ADMINISTRATORS),
        )
    except ConfigError as error:  # what was sent is wrong, not the configuration of the archive
        raise InputError(str(error)) from error
    return JSONResponse(_profile_json(request))


def _profile_json(request: Request) -> dict[str, Any]:
    archive, name = site_of(request).archive, request.path_params["profile"]
    profile = profiles.get(archive, name)
    return {
        "name": profile.name,
        "description": profile.description,
        "text": profiles.text_of(archive, name),
        "seeds": len(profile.seeds),
        "rules": len(profile.rules),
    }


# --- description ---

_PLAN = {
    "frequency": one_of(list(Frequency)),
    "first_on": DAY,
    "last_on": nullable(DAY),
    "at_time": TEXT,
    "cron": TEXT,
    "opens": nullable(TEXT),
    "closes": nullable(TEXT),
    "profile": TEXT,
    "is_active": FLAG,
    "last_at": nullable(MOMENT),
    "changed_by": TEXT,
}
SCHEMAS = {
    "Plan": object_of(
        {
            "target": WHOLE,
            "plan": {"anyOf": [object_of(_PLAN), {"type": "null"}]},
            "next_dates": list_of(MOMENT),
            "may_harvest": VERDICT,
        }
    ),
    "Turn": object_of(
        {
            "id": WHOLE,
            "target": WHOLE,
            "state": one_of(list(TurnState)),
            "due_at": MOMENT,
            "harvest": TEXT,
            "reason": TEXT,
        }
    ),
    "Profile": object_of({"name": TEXT, "description": TEXT, "text": TEXT, "seeds": WHOLE, "rules": WHOLE}),
}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    plan, profile, path = ref("Plan"), ref("Profile"), "/api/targets/{target}/plan"
    name = parameter("profile", "Name of the profile.", where="path", required=True)
    listed = object_of({"name": TEXT, "description": TEXT, "problem": TEXT})
    return {
        path: {
            "parameters": [TARGET_ID],
            "get": operation("getPlan", "The plan of a target and its next dates", plan, errors=[404]),
            "put": operation(
                "setPlan", "Set the plan of a target", plan, body=describe_body(PLAN), errors=[404]
            ),
            "delete": operation("removePlan", "Remove the plan of a target", plan, errors=[404]),
        },
        f"{path}/orders": {
            "parameters": [TARGET_ID],
            "post": operation(
                "orderPlan",
                "Pause or resume the plan of a target",
                plan,
                body=describe_body(ORDER),
                errors=[404],
            ),
        },
        **_describe_turns(),
        "/api/profiles": {
            "get": operation("listProfiles", "Harvest profiles", object_of({"profiles": list_of(listed)}))
        },
        "/api/profiles/{profile}": {
            "parameters": [name],
            "get": operation("getProfile", "One harvest profile", profile, errors=[404]),
            "put": operation(
                "saveProfile",
                "Save a harvest profile; only an administrator may change its logins",
                profile,
                body=describe_body(PROFILE),
                errors=[404],
            ),
        },
    }


def _describe_turns() -> dict[str, Any]:
    """Single pages and scheduled harvests."""
    turn = parameter(
        "turn", "Number of the scheduled harvest.", "integer", where="path", required=True, minimum=0
    )
    return {
        "/api/pages": {
            "post": operation(
                "archivePage",
                "Archive one page of a site now",
                ref("Harvest"),
                status=202,
                body=describe_body(PAGE),
                errors=[409],
            )
        },
        "/api/turns/{turn}/orders": {
            "parameters": [turn],
            "post": operation(
                "orderTurn",
                "Repeat a scheduled harvest that failed, or skip one that waits",
                ref("Turn"),
                body=describe_body(TURN_ORDER),
                errors=[404, 409],
            ),
        },
    }
