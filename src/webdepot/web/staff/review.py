"""Review in the portal: harvests that wait for a decision, one harvest with everything a reviewer needs, and
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
from webdepot.services.review import patches, review_view, reviews
from webdepot.web.forms import SHORT_FORM, find_number, page_number, read_form
from webdepot.web.problems import explain
from webdepot.web.site import REVIEWERS, language_of, may, name_of, render, site_of

log = logging.getLogger(__name__)
FINDINGS_A_PAGE = 50
WAIT_S = 5.0
"""How long a page waits for work in the background; most of it is done by then."""
_STATES = (
    HarvestState.FINISHED,
    HarvestState.REJECTED,
    HarvestState.KEPT,
    HarvestState.FAILED,
    HarvestState.STOPPED,
)


def show_list(request: Request) -> Response:
    archive, query = site_of(request).archive, request.query_params
    state = HarvestState(query["state"]) if query.get("state") in set(_STATES) else HarvestState.FINISHED
    collection = query.get("collection", "").strip()[:60]
    wanted = HarvestFilter(
        state=state,
        collection=collection,
        oldest_first=state is HarvestState.FINISHED,
        page=page_number(request),
    )
    listing = reviews.list_harvests(archive, wanted)
    filters = urlencode(
        {name: value for name, value in (("state", state.value), ("collection", collection)) if value}
    )
    return render(
        request,
        "reviews.html",
        found=listing,
        verdicts=reviews.verdicts_of(archive, listing.rows),
        state=state,
        states=_STATES,
        collection=collection,
        query=filters,
    )


def show(request: Request) -> Response:
    return _page(request)


async def decide(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_decide, request, form)


async def annotate(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_annotate, request, form)


def patch(request: Request) -> Response:
    """Harvest missing parts."""
    return _in_background(request, lambda archive, harvest: patches.patch(archive, harvest), "patch")


def _page(request: Request, *, wrong: str = "", words: str = "", status: int = 200) -> Response:
    query, page = request.query_params, page_number(request)
    view = review_view.view(
        site_of(request).archive,
        request.path_params["harvest"],
        group=query.get("group", ""),
        limit=FINDINGS_A_PAGE + 1,
        offset=(page - 1) * FINDINGS_A_PAGE,
    )
    return render(
        request,
        "review.html",
        status=status,
        found=view.dossier,
        harvest=view.dossier.harvest,
        group=view.group,
        groups=view.groups,
        findings=view.findings[:FINDINGS_A_PAGE],
        has_more=len(view.findings) > FINDINGS_A_PAGE,
        page=page,
        pictures=view.pictures,
        may_decide=may(request, REVIEWERS),
        verbs=view.verbs,
        wrong=wrong,
        words=words,
        begun=query.get("begun", "") if query.get("begun") in ("accept", "patch") else "",
    )


def _decide(request: Request, form: Mapping[str, str]) -> Response:
    archive, harvest, by = site_of(request).archive, request.path_params["harvest"], name_of(request)
    words = form.get("words", "")[:5000]
    try:
        match form.get("order", ""):
            case "accept":
                return _in_background(
                    request, lambda own, each: reviews.accept(own, each, by=by, words=words), "accept"
                )
            case "reject":
                reviews.reject(archive, harvest, by=by, words=words)
            case "reopen":
                reviews.reopen(archive, harvest, by=by, words=words)
            case other:
                raise InputError(f"{other[:50]!r} is not a decision. Choose accept, reject or reopen.")
    except InputError as error:
        return _page(request, wrong=explain(request, error), words=words, status=400)
    return RedirectResponse(f"/review/{harvest}", status_code=303)


def _annotate(request: Request, form: Mapping[str, str]) -> Response:
    harvest = request.path_params["harvest"]
    try:
        reviews.annotate(site_of(request).archive, harvest, by=name_of(request), words=form.get("words", ""))
    except InputError as error:
        return _page(request, wrong=explain(request, error), status=400)
    return RedirectResponse(f"/review/{harvest}", status_code=303)


def _in_background(request: Request, work: Callable[[Archive, str], object], name: str) -> Response:
    """Start long work in an archive opened for it. The page waits a few seconds to show its result."""
    archive = site_of(request).archive
    harvest = harvests.get(archive, request.path_params["harvest"]).id
    by, failed = name_of(request), list[WebdepotError]()

    def run() -> None:
        with Archive.open(archive.home, clock=archive.clock, agent=by or archive.agent) as own:
            try:
                work(own, harvest)
            except WebdepotError as error:
                failed.append(error)
            except Exception:  # a worker that died, a full disk: it must not look as if it had succeeded
                log.exception(
                    "background work of a review page failed", extra={"harvest": harvest, "work": name}
                )
                failed.append(WebdepotError(language_of(request).texts["errors.text_500"]))

    thread = threading.Thread(target=run, name=name)
    thread.start()
    thread.join(WAIT_S)
    if failed:
        return _page(request, wrong=explain(request, failed[0]), status=failed[0].http_status)
    return RedirectResponse(
        f"/review/{harvest}" + (f"?begun={name}" if thread.is_alive() else ""), status_code=303
    )


def send_picture(request: Request) -> Response:
    """A screenshot, never interpreted as anything but a picture."""
    number = find_number(request.path_params["number"]) or 0
    mime, data = reviews.read_screenshot(site_of(request).archive, number)
    headers = {
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, max-age=3600",
    }
    return Response(data, media_type=mime, headers=headers)
