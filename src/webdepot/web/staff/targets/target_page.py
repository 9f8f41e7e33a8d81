"""The page of one target: its criteria, the decision, its facts, and harvesting it now.

A form that is wrong is shown again on this page, with the reason and what was typed (`attempt`); the forms
about the owner (`owner`) use that, too.
"""

from collections.abc import Callable, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.roles import CURATORS
from webdepot.errors import Conflict, InputError, NotFound, NotPermitted
from webdepot.model import Purpose, TargetId
from webdepot.reasons import said
from webdepot.selection.criteria import SCALE, AnswerKind, Criterion, Judgement
from webdepot.selection.letter_templates import LANGUAGES
from webdepot.selection.permission_basis import WITHOUT_LETTER
from webdepot.selection.targets import Strategy
from webdepot.services.admin import target_view
from webdepot.services.permission.owner_answers import OwnerReply, Showing
from webdepot.services.schedule import plans
from webdepot.services.selection import criteria as criteria_service
from webdepot.services.selection import targets
from webdepot.web.forms import find_number, get_day, read_form
from webdepot.web.problems import explain
from webdepot.web.site import may, name_of, person_of, render, site_of

TABS = ("overview", "owner", "harvests", "record", "history")
_TAB_OF = {"contacts": "owner", "letters": "owner", "grounds": "owner", "harvested": "harvests"}
"""The tab of a part of the page of a target, if it is not the overview."""


def show(request: Request) -> Response:
    return _page(request)


def _page(
    request: Request,
    *,
    status: int = 200,
    wrong: str = "",
    wrong_in: str = "",
    typed: Mapping[str, str] | None = None,
) -> Response:
    """The page of a target. If a form was wrong: why, the part of the page that has this form, and what was
    typed into it.
    """
    archive, person = site_of(request).archive, person_of(request)
    tab = _TAB_OF.get(wrong_in, TABS[0]) if wrong_in else request.query_params.get("tab", "")
    view = target_view.view(archive, target_of(request), roles=person.roles if person else frozenset())
    return render(
        request,
        "target.html",
        status=status,
        tab=tab if tab in TABS else TABS[0],
        tabs=TABS,
        opened=request.query_params.get("new", ""),
        wrong=wrong,
        wrong_in=wrong_in,
        typed=typed or {},
        dossier=view.dossier,
        verdict=view.verdict,
        judged=view.judged,
        answerable=view.answerable,
        scale=SCALE,
        acts=view.acts,
        reasons=targets.NEEDS_REASON,
        contacts=view.contacts,
        letters=view.letters,
        grounds=view.grounds,
        can_ask=view.can_ask,
        can_clear=view.can_clear,
        possible_grounds=WITHOUT_LETTER,
        replies=list(OwnerReply),
        showings=list(Showing),
        purposes=list(Purpose),
        strategies=list(Strategy),
        languages_of_letters=LANGUAGES,
        harvests=view.harvests,
        record=view.record,
        history=view.history,
        path=view.path,
        plan=view.plan,
        latest=view.latest,
        ratings=view.ratings,
        open_turn=plans.find_open(archive, view.dossier.id),
        may_change=may(request, CURATORS),
        is_known=bool(request.query_params.get("known")),
        term_days=archive.config.selection.term_days,
    )


async def answer(request: Request) -> Response:
    return await run_in_threadpool(attempt, _answer, request, await read_form(request), "criteria")


def _answer(request: Request, form: Mapping[str, str]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    answers = [
        _judgement(criterion, value, form.get(f"reason-{criterion.code}", ""))
        for criterion in criteria_service.criteria_of(archive)
        if (value := form.get(f"answer-{criterion.code}", "").strip())
    ]
    if not answers:
        raise InputError("No criterion was answered.")
    before = criteria_service.criteria_result(archive, target).given
    changed = [answer for answer in answers if _is_new(answer, before.get(answer.criterion))]
    if changed:
        criteria_service.answer(archive, target, changed, person=person_of(request))
    return back(target, "criteria")


def _judgement(criterion: Criterion, value: str, reason: str) -> Judgement:
    if criterion.kind is AnswerKind.TEXT:
        return Judgement(criterion=criterion.code, words=value, reason=reason or value)
    number = find_number(value)
    if number is None or number > SCALE:
        raise InputError(f"{value[:20]!r} is not an answer to {criterion.code!r}.")
    share = number / SCALE if criterion.kind is AnswerKind.SCALE else float(number > 0)
    return Judgement(criterion=criterion.code, value=share, reason=reason)


def _is_new(answer: Judgement, before: Judgement | None) -> bool:
    """A form sends every answer it shows; only those that were changed are signed again."""
    return before is None or (answer.value, answer.words, answer.reason.strip()) != (
        before.value,
        before.words,
        before.reason,
    )


async def decide(request: Request) -> Response:
    return await run_in_threadpool(attempt, _decide, request, await read_form(request), "deciding")


def _decide(request: Request, form: Mapping[str, str]) -> Response:
    target = target_of(request)
    targets.decide(
        site_of(request).archive,
        target,
        form.get("act", ""),
        by=name_of(request),
        reason=form.get("reason", ""),
        look_again_on=get_day(form.get("look_again_on", "")),
    )
    return back(target)


async def change(request: Request) -> Response:
    return await run_in_threadpool(attempt, _change, request, await read_form(request), "facts")


def _change(request: Request, form: Mapping[str, str]) -> Response:
    target = target_of(request)
    targets.describe(
        site_of(request).archive,
        target,
        name=form.get("name", ""),
        collection=form.get("collection", ""),
        purpose=form.get("purpose", ""),
        strategy=form.get("strategy", ""),
        note=form.get("note", ""),
        by=name_of(request),
    )
    return back(target)


async def harvest(request: Request) -> Response:
    return await run_in_threadpool(attempt, _harvest, request, await read_form(request), "harvested")


def _harvest(request: Request, form: Mapping[str, str]) -> Response:
    """Harvest now, with the profile that was chosen or else that of the plan; the page of the harvest shows
    what happens.
    """
    try:
        turn = plans.run_now(
            site_of(request).archive, target_of(request), profile=form.get("profile"), by=name_of(request)
        )
    except (Conflict, NotPermitted) as error:
        raise InputError(*error.args) from error
    return RedirectResponse(f"/harvests/{turn.harvest}", status_code=303)


def attempt(
    work: Callable[[Request, Mapping[str, str]], Response],
    request: Request,
    form: Mapping[str, str],
    section: str,
) -> Response:
    """Do what a form asks for; if it is wrong, show the form again with the reason and what was typed."""
    try:
        return work(request, form)
    except (InputError, Conflict, NotPermitted) as error:
        wrong, status = explain(request, error), error.http_status
        return _page(request, status=status, wrong=wrong, wrong_in=section, typed=form)


def target_of(request: Request) -> TargetId:
    """The number of the target in the address; NotFound when it is not a number."""
    text = request.path_params["target"]
    number = find_number(text)
    if number is None:
        raise NotFound(said("missing_target", "There is no target {target}.", target=text[:40]))
    return TargetId(number)


def back(target: TargetId, anchor: str = "") -> Response:
    """Redirect to a part of the page of a target."""
    return RedirectResponse(page_of(target, anchor), status_code=303)


def page_of(target: TargetId, anchor: str = "") -> str:
    """The path of a part of the page of a target."""
    tab = f"?tab={_TAB_OF[anchor]}" if anchor in _TAB_OF else ""
    return f"/targets/{target}{tab}{f'#{anchor}' if anchor else ''}"
