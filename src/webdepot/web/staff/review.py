"""Review in the portal: what waits for a decision, one harvest with all that speaks for and against it, and
the decision.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.archive import Archive
from webdepot.errors import InputError, WebdepotError
from webdepot.harvest.runs import HarvestFilter
from webdepot.model import HarvestState
from webdepot.services.harvest import harvests
from webdepot.services.review import reviews
from webdepot.web.problems import words_for
from webdepot.web.sign_in import read_form
from webdepot.web.site import REVIEWERS, language_of, may, name_of, render, site_of
from webdepot.web.staff.schedule import number_of

log = logging.getLogger(__name__)
FINDINGS_A_PAGE = 50
PATIENCE_S = 5.0
"""So long a page waits for work that goes on behind it; most of it is done by then."""
_STATES = (
    HarvestState.FINISHED,
    HarvestState.REJECTED,
    HarvestState.KEPT,
    HarvestState.FAILED,
    HarvestState.STOPPED,
)


def listed(request: Request) -> Response:
    archive, given = site_of(request).archive, request.query_params
    state = HarvestState(given["state"]) if given.get("state") in set(_STATES) else HarvestState.FINISHED
    page = max(number_of(given.get("page", "")), 1)
    collection = given.get("collection", "").strip()[:60]
    asked = HarvestFilter(
        state=state, collection=collection, oldest_first=state is HarvestState.FINISHED, page=page
    )
    found = reviews.list_harvests(archive, asked)
    query = urlencode(
        {name: value for name, value in (("state", state.value), ("collection", collection)) if value}
    )
    return render(
        request,
        "reviews.html",
        found=found,
        verdicts=reviews.verdicts_of(archive, found.rows),
        state=state,
        states=_STATES,
        collection=collection,
        query=query,
    )


def shown(request: Request) -> Response:
    return _page(request)


async def decide(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_decided, request, form)


async def annotate(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_annotated, request, form)


def patch(request: Request) -> Response:
    """Harvest what is missing; one click."""
    return _behind(request, lambda archive, harvest: reviews.patch(archive, harvest), "patch")


def _page(request: Request, *, wrong: str = "", words: str = "", status: int = 200) -> Response:
    archive, given = site_of(request).archive, request.query_params
    found = reviews.dossier(archive, request.path_params["harvest"])
    known = [group for group, codes in found.groups.items() if codes]
    group = given.get("group", "") if given.get("group") in known else (known[0] if known else "")
    page = max(number_of(given.get("page", "")), 1)
    findings = reviews.findings(
        archive, found.harvest.id, group, limit=FINDINGS_A_PAGE + 1, offset=(page - 1) * FINDINGS_A_PAGE
    )
    return render(
        request,
        "review.html",
        status=status,
        found=found,
        harvest=found.harvest,
        group=group,
        groups=known,
        findings=findings[:FINDINGS_A_PAGE],
        has_more=len(findings) > FINDINGS_A_PAGE,
        page=page,
        pictures=reviews.screenshot_pairs(archive, found),
        may_decide=may(request, REVIEWERS),
        verbs=reviews.possible_decisions(found.harvest),
        wrong=wrong,
        words=words,
        begun=given.get("begun", "") if given.get("begun") in ("accept", "patch") else "",
    )


def _decided(request: Request, form: Mapping[str, str]) -> Response:
    archive, harvest, by = site_of(request).archive, request.path_params["harvest"], name_of(request)
    words = form.get("words", "")[:5000]
    try:
        match form.get("order", ""):
            case "accept":
                return _behind(
                    request, lambda own, each: reviews.accept(own, each, by=by, words=words), "accept"
                )
            case "reject":
                reviews.reject(archive, harvest, by=by, words=words)
            case "reopen":
                reviews.reopen(archive, harvest, by=by, words=words)
            case other:
                raise InputError(f"{other[:50]!r} is no decision.")
    except InputError as error:
        return _page(request, wrong=words_for(request, error), words=words, status=400)
    return RedirectResponse(f"/review/{harvest}", status_code=303)


def _annotated(request: Request, form: Mapping[str, str]) -> Response:
    harvest = request.path_params["harvest"]
    try:
        reviews.annotate(site_of(request).archive, harvest, by=name_of(request), words=form.get("words", ""))
    except InputError as error:
        return _page(request, wrong=words_for(request, error), status=400)
    return RedirectResponse(f"/review/{harvest}", status_code=303)


def _behind(request: Request, work: Callable[[Archive, str], object], name: str) -> Response:
    """Long work goes on behind the answer, with an archive of its own; what is done in a moment is told at
    once.
    """
    archive = site_of(request).archive
    harvest = harvests.get(archive, request.path_params["harvest"]).id
    by, failed = name_of(request), list[WebdepotError]()

    def run() -> None:
        with Archive.open(archive.home, clock=archive.clock, agent=by or archive.agent) as own:
            try:
                work(own, harvest)
            except WebdepotError as error:
                failed.append(error)
            except Exception:  # a worker that died, a full disk: nobody may be told that it went well
                log.exception("work behind a page of review failed", extra={"harvest": harvest, "work": name})
                failed.append(WebdepotError(language_of(request).texts["errors.text_500"]))

    thread = threading.Thread(target=run, name=name)
    thread.start()
    thread.join(PATIENCE_S)
    if failed:
        return _page(request, wrong=words_for(request, failed[0]), status=failed[0].http_status)
    return RedirectResponse(
        f"/review/{harvest}" + (f"?begun={name}" if thread.is_alive() else ""), status_code=303
    )


def picture(request: Request) -> Response:
    """A screenshot; nothing but a picture, whatever its bytes say."""
    mime, data = reviews.read_screenshot(site_of(request).archive, number_of(request.path_params["number"]))
    headers = {
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, max-age=3600",
    }
    return Response(data, media_type=mime, headers=headers)
