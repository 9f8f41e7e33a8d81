"""Reviews for programs: what a reviewer needs about a harvest, the decision, notes and ratings of pages.

Harvests that wait for review are those of `GET /api/harvests?state=finished&oldest_first=true`.

    GET   /api/harvests/{harvest}/review
    POST  /api/harvests/{harvest}/review/decisions
    POST  /api/harvests/{harvest}/review/notes
    POST  /api/harvests/{harvest}/review/ratings
    POST  /api/harvests/{harvest}/review/orders
    POST  /api/harvests/{harvest}/review/ignored
"""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.model import Verdict
from webdepot.quality.page_ratings import PageRating, Rating
from webdepot.quality.reviews import Review, ReviewDecision
from webdepot.services.depot import examination
from webdepot.services.harvest import harvests
from webdepot.services.jobs import kinds
from webdepot.services.quality import harvest_check
from webdepot.services.review import ratings, review_view, reviews
from webdepot.services.review.reviews import LONGEST_TEXT
from webdepot.times import to_iso
from webdepot.web.api.input_fields import InputField, describe_body, read_json, read_query
from webdepot.web.api.openapi_parts import (
    COUNTS,
    FLAG,
    MOMENT,
    TEXT,
    VERDICT,
    WHOLE,
    list_of,
    object_of,
    one_of,
    operation,
    ref,
)
from webdepot.web.api.staff.harvests import HARVEST_ID, harvest_json
from webdepot.web.site import Site, name_of, site_of
from webdepot.web.staff.review import run_job

DECISIONS = (ReviewDecision.ACCEPT, ReviewDecision.REJECT, ReviewDecision.REOPEN)
DECISION = (
    InputField(name="decision", meaning="The decision.", choices=DECISIONS, required=True),
    InputField(
        name="words",
        meaning="The reason, which a rejection must have; it is kept with the harvest.",
        longest=LONGEST_TEXT,
    ),
)
NOTE = (InputField(name="words", meaning="The note.", required=True, longest=LONGEST_TEXT),)
RATING = (
    InputField(
        name="url", meaning="Address of a page of the harvest.", required=True, longest=ratings.LONGEST_URL
    ),
    InputField(name="rating", meaning="The rating.", choices=tuple(Rating), required=True),
    InputField(name="words", meaning="A note.", longest=ratings.LONGEST_TEXT),
)
ORDERS = {"patch": kinds.PATCH, "pictures": kinds.PICTURES}
ORDER = (
    InputField(
        name="order",
        meaning="Check the harvest again, harvest missing parts, or take pictures of the replay.",
        choices=("check", *ORDERS),
        required=True,
    ),
)
IGNORED = (
    InputField(name="code", meaning="Code of the findings.", required=True, longest=60),
    InputField(name="subject", meaning="Only this address. Default: all addresses of the site.", longest=500),
    InputField(name="reason", meaning="Why; it is recorded.", required=True, longest=500),
)


def show(request: Request) -> Response:
    read_query(request, ())
    site = site_of(request)
    view = review_view.view(site.archive, request.path_params["harvest"])
    dossier = view.dossier
    return JSONResponse(
        {
            "harvest": harvest_json(site, dossier.harvest),
            "target_name": dossier.target_name,
            "is_checked": dossier.is_checked,
            "is_busy": dossier.is_busy,
            "verdict": _verdict_json(dossier.checked.verdict),
            "by_rules": _verdict_json(dossier.by_rules),
            "findings": dict(dossier.checked.counts),
            "missing": dossier.missing,
            "not_valid": dossier.not_valid,
            "patches": [harvest_json(site, patch) for patch in dossier.patches],
            "decisions": [str(verb) for verb in view.verbs],
            "reviews": [_review_json(review) for review in dossier.reviews],
            "ratings": [_rating_json(page.rating) for page in view.pages if page.rating is not None],
            "page": f"{site.portal_url}/review/{dossier.harvest.id}",
        }
    )


async def decide(request: Request) -> Response:
    return await run_in_threadpool(_decide, request, await read_json(request, DECISION))


def _decide(request: Request, sent: dict[str, Any]) -> Response:
    """The harvest after the decision. 202 if it was accepted but is still being deposited."""
    site, by, words = site_of(request), name_of(request), sent.get("words", "")
    harvest, is_done = harvests.get(site.archive, request.path_params["harvest"]), True
    match ReviewDecision(sent["decision"]):
        case ReviewDecision.ACCEPT:
            reviews.check_acceptance(site.archive, harvest.id, by=by)
            is_done = run_job(request, kinds.ACCEPT, {"words": words})
        case ReviewDecision.REJECT:
            reviews.reject(site.archive, harvest.id, by=by, words=words)
        case _:
            reviews.reopen(site.archive, harvest.id, by=by, words=words)
    after = harvest_json(site, harvests.get(site.archive, harvest.id))
    return JSONResponse(after, status_code=200 if is_done else 202)


async def annotate(request: Request) -> Response:
    return await run_in_threadpool(_annotate, request, await read_json(request, NOTE))


def _annotate(request: Request, sent: dict[str, Any]) -> Response:
    site = site_of(request)
    harvest = reviews.annotate(
        site.archive, request.path_params["harvest"], by=name_of(request), words=sent["words"]
    )
    return JSONResponse(harvest_json(site, harvest), status_code=201)


async def rate(request: Request) -> Response:
    return await run_in_threadpool(_rate, request, await read_json(request, RATING))


def _rate(request: Request, sent: dict[str, Any]) -> Response:
    rated = ratings.rate(
        site_of(request).archive,
        request.path_params["harvest"],
        url=sent["url"],
        rating=sent["rating"],
        words=sent.get("words", ""),
        by=name_of(request),
    )
    return JSONResponse(_rating_json(rated), status_code=201)


async def order(request: Request) -> Response:
    return await run_in_threadpool(_order, request, await read_json(request, ORDER))


def _order(request: Request, sent: dict[str, Any]) -> Response:
    """The harvest after the order. 202 if the work has started but is not done."""
    site, is_done = site_of(request), True
    harvest = harvests.get(site.archive, request.path_params["harvest"])
    if sent["order"] == "check":
        examination.check_again(site.archive, harvest, by=name_of(request))
    else:
        is_done = run_job(request, ORDERS[sent["order"]])
    after = harvest_json(site, harvests.get(site.archive, harvest.id))
    return JSONResponse(after, status_code=200 if is_done else 202)


async def ignore(request: Request) -> Response:
    return await run_in_threadpool(_ignore, request, await read_json(request, IGNORED))


def _ignore(request: Request, sent: dict[str, Any]) -> Response:
    """Leave findings out of the verdicts of a site, with the reason."""
    site = site_of(request)
    harvest = harvests.get(site.archive, request.path_params["harvest"])
    harvest_check.ignore(
        site.archive,
        harvest,
        sent["code"],
        sent.get("subject", ""),
        reason=sent["reason"],
        by=name_of(request),
    )
    return JSONResponse(harvest_json(site, harvest), status_code=201)


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {"answer": verdict.answer.value, "rule": verdict.rule, "reason": str(verdict.reason)}


def _review_json(review: Review) -> dict[str, Any]:
    return {
        "decision": review.decision.value,
        "words": str(review.words),
        "by": review.by,
        "at": to_iso(review.at),
        "is_automatic": bool(review.is_automatic),
    }


def _rating_json(rated: PageRating) -> dict[str, Any]:
    return {
        "url": rated.url,
        "rating": rated.rating.value,
        "words": rated.words,
        "by": rated.by,
        "at": to_iso(rated.at),
    }


# --- description ---

SCHEMAS = {
    "Rating": object_of(
        {"url": TEXT, "rating": one_of(list(Rating)), "words": TEXT, "by": TEXT, "at": MOMENT}
    ),
    "Review": object_of(
        {
            "harvest": ref("Harvest"),
            "target_name": TEXT,
            "is_checked": FLAG,
            "is_busy": FLAG,
            "verdict": VERDICT,
            "by_rules": VERDICT,
            "findings": COUNTS,
            "missing": WHOLE,
            "not_valid": WHOLE,
            "patches": list_of(ref("Harvest")),
            "decisions": list_of(one_of(DECISIONS)),
            "reviews": list_of(
                object_of(
                    {
                        "decision": one_of(list(ReviewDecision)),
                        "words": TEXT,
                        "by": TEXT,
                        "at": MOMENT,
                        "is_automatic": FLAG,
                    }
                )
            ),
            "ratings": list_of(ref("Rating")),
            "page": TEXT,
        }
    ),
}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    harvest, path = ref("Harvest"), "/api/harvests/{harvest}/review"
    decided = operation(
        "decideReview",
        "Accept, reject or reopen a harvest",
        harvest,
        body=describe_body(DECISION),
        errors=[404, 409],
    )
    decided["responses"]["202"] = {
        **decided["responses"]["200"],
        "description": "It was accepted and is still being deposited.",
    }
    return {
        path: {
            "parameters": [HARVEST_ID],
            "get": operation(
                "getReview", "What a reviewer needs about a harvest", ref("Review"), errors=[404]
            ),
        },
        f"{path}/decisions": {"parameters": [HARVEST_ID], "post": decided},
        **_describe_steps(path),
    }


def _describe_steps(path: str) -> dict[str, Any]:
    """Notes, ratings, findings to ignore, and orders."""
    harvest = ref("Harvest")
    ordered = operation(
        "orderReview",
        "Check a harvest again, harvest missing parts, or take pictures",
        harvest,
        body=describe_body(ORDER),
        errors=[404, 409],
    )
    ordered["responses"]["202"] = {**ordered["responses"]["200"], "description": "The work has started."}
    return {
        f"{path}/notes": {
            "parameters": [HARVEST_ID],
            "post": operation(
                "addNote",
                "Add a note to a harvest",
                harvest,
                status=201,
                body=describe_body(NOTE),
                errors=[404],
            ),
        },
        f"{path}/ratings": {
            "parameters": [HARVEST_ID],
            "post": operation(
                "ratePage",
                "Rate a page of a harvest",
                ref("Rating"),
                status=201,
                body=describe_body(RATING),
                errors=[404],
            ),
        },
        f"{path}/orders": {"parameters": [HARVEST_ID], "post": ordered},
        f"{path}/ignored": {
            "parameters": [HARVEST_ID],
            "post": operation(
                "ignoreFindings",
                "Leave findings of a site out from the next check on",
                harvest,
                status=201,
                body=describe_body(IGNORED),
                errors=[404],
            ),
        },
    }
