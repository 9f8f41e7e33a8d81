"""One action on many sites: choose them in the list, look at what would happen, do it, and watch it."""

import secrets
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.accounts import Person
from webdepot.archive import Archive
from webdepot.errors import ConfigError, InputError, NotFound
from webdepot.reasons import said
from webdepot.selection.plan_dates import Frequency
from webdepot.selection.target_batches import TargetChoice
from webdepot.services.admin import bulk_actions
from webdepot.services.admin.bulk_actions import BulkAct, BulkOrder, BulkResult
from webdepot.services.harvest import profiles
from webdepot.services.selection import criteria
from webdepot.web.background import BackgroundRuns
from webdepot.web.forms import find_number, get_day, read_fields
from webdepot.web.mailing import start_postman
from webdepot.web.problems import explain
from webdepot.web.site import of_app, person_of, render, site_of
from webdepot.web.staff.targets import filter_of, link_of, list_page

MOST_RUNS = 100
SHORT_WAIT_S = 2.0
"""A run on few sites is over before the next page is shown."""
_FIELDS = ("reason", "look_again_on", "collection", "frequency", "first_on", "at_time", "profile")


@dataclass(slots=True, kw_only=True)
class BulkRun:
    act: BulkAct
    query: str
    """The filter of the list to return to."""
    result: BulkResult = field(default_factory=BulkResult)


class BulkRuns:
    """Runs of this server, the last hundred."""

    def __init__(self) -> None:
        self.work = BackgroundRuns()
        self.known: dict[str, BulkRun] = {}

    def add(self, run: BulkRun) -> str:
        token = secrets.token_urlsafe(9)
        self.known[token] = run
        for old in list(self.known)[:-MOST_RUNS]:
            del self.known[old]
        return token


async def prepare(request: Request) -> Response:
    """The page that says what would happen."""
    fields = await read_fields(request)
    return await run_in_threadpool(_prepare, request, fields)


def _prepare(request: Request, fields: Sequence[tuple[str, str]]) -> Response:
    try:
        return _page(request, fields)
    except InputError as error:
        return list_page(request, status=400, wrong=explain(request, error))


async def run(request: Request) -> Response:
    fields = await read_fields(request)
    return await run_in_threadpool(_run, request, fields)


def _page(
    request: Request, fields: Sequence[tuple[str, str]], *, wrong: str = "", status: int = 200
) -> Response:
    archive, form = site_of(request).archive, dict(fields)
    act = _act_of(form.get("act", ""))
    choice = _choice_of(request, fields)
    asked = criteria.criteria_of(archive) if act is BulkAct.JUDGE else []
    return render(
        request,
        "bulk.html",
        status=status,
        wrong=wrong,
        act=act,
        form=defaultdict(str, form),
        choice=choice,
        query=link_of(filter_of(request)),
        preview=bulk_actions.preview(archive, choice, act),
        needs_reason=act in ("put off", "reject", "reopen", "end", "judge"),
        frequencies=[each for each in Frequency if each is not Frequency.CRON],
        profiles=[profile.name for profile in profiles.every(archive)[0]],
        criteria=[one for one in asked if one.kind != "text"],
    )


def _run(request: Request, fields: Sequence[tuple[str, str]]) -> Response:
    archive, form, person = site_of(request).archive, dict(fields), person_of(request)
    assert person is not None  # noqa: S101 - the route asks for a role
    try:
        choice, order = _choice_of(request, fields), _order_of(form)
        bulk_actions.check(archive, order)
        expected = bulk_actions.preview(archive, choice, order.act)
        if str(expected.ready) != form.get("count", ""):
            text = "The list has changed since you opened the page. Check it again."
            raise InputError(said("list_has_changed", text))
    except (InputError, ConfigError, NotFound) as error:
        return _wrong(request, fields, explain(request, error))
    runs = of_app(request, BulkRuns)
    begun = BulkRun(act=order.act, query=link_of(filter_of(request)))
    begun.result.total = expected.total
    token = runs.add(begun)
    runs.work.start(token, lambda: _work(request, archive, choice, order, person, begun))
    deadline = time.monotonic() + SHORT_WAIT_S
    while runs.work.is_running(token) and time.monotonic() < deadline:
        time.sleep(0.02)
    return RedirectResponse(f"/targets/bulk/{token}", status_code=303)


def _wrong(request: Request, fields: Sequence[tuple[str, str]], wrong: str) -> Response:
    try:
        return _page(request, fields, wrong=wrong, status=400)
    except InputError:  # without sites or action there is no such page
        return list_page(request, status=400, wrong=wrong)


def _work(
    request: Request, archive: Archive, choice: TargetChoice, order: BulkOrder, person: Person, begun: BulkRun
) -> None:
    portal_url = site_of(request).portal_url
    bulk_actions.run(archive, choice, order, person=person, portal_url=portal_url, result=begun.result)
    if order.act is BulkAct.ASK:
        start_postman(request)


def show(request: Request) -> Response:
    """How far a run is."""
    runs, token = of_app(request, BulkRuns), request.path_params["token"]
    run = runs.known.get(token)
    if run is None:
        raise NotFound("This run is not known. It belongs to an earlier start of the server.")
    return render(
        request,
        "bulk_run.html",
        run=run,
        is_running=runs.work.is_running(token),
        error=runs.work.errors.get(token, ""),
    )


def _act_of(text: str) -> BulkAct:
    try:
        return BulkAct(text)
    except ValueError:
        raise InputError(said("choose_action", "Choose what to do with these sites.")) from None


def _order_of(form: dict[str, str]) -> BulkOrder:
    given = {name: form[name].strip() for name in _FIELDS if form.get(name, "").strip()}
    day = get_day(given.pop("look_again_on", ""))
    return BulkOrder(
        act=_act_of(form.get("act", "")),
        look_again_on=day,
        criterion=form.get("criterion", "")[:60],
        answer=float(form.get("answer", "") == "1"),
        **given,
    )


def _choice_of(request: Request, fields: Sequence[tuple[str, str]]) -> TargetChoice:
    """The ticked sites, or all that the filter in the address matches."""
    if ("all", "1") in fields:
        return TargetChoice(wanted=filter_of(request))
    numbers = [number for name, text in fields if name == "target" and (number := find_number(text))]
    if not numbers:
        text = "No site was chosen. Tick some in the list, or choose all that match the filter."
        raise InputError(said("no_site_chosen", text))
    return TargetChoice(numbers=numbers)
