"""Access rules and embargoes in the portal: list, add and end them."""

from collections.abc import Mapping
from datetime import date
from functools import partial
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.access.policy import AccessPoint, RuleAnswer
from webdepot.accounts.roles import REVIEWERS
from webdepot.errors import InputError
from webdepot.reasons import said
from webdepot.services.access import rules
from webdepot.web import confirmation
from webdepot.web.forms import SHORT_FORM, date_typed, get_day, get_number, page_number, read_form
from webdepot.web.language import event_words
from webdepot.web.problems import explain
from webdepot.web.site import language_of, may, name_of, render, site_of

REASONS = ("privacy", "copyright", "owner", "embargo", "court", "robots", "other")
EMBARGOES = "embargo"


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
    query = request.query_params
    kind, words = query.get("kind", ""), query.get("q", "")[:200]
    archive = site_of(request).archive
    listed = rules.list_rules(
        archive,
        words=words,
        answer=RuleAnswer(kind) if kind in tuple(RuleAnswer) else None,
        embargoes=kind == EMBARGOES,
        page=page_number(request),
    )
    return render(
        request,
        "rules.html",
        status=status,
        listed=listed,
        ended=rules.ended(archive),
        kind=kind,
        words=words,
        kinds=[*RuleAnswer, EMBARGOES],
        answers=list(RuleAnswer),
        points=list(AccessPoint),
        reasons=REASONS,
        most_counted=rules.MOST_COUNTED,
        typed=typed if typed is not None else {"pattern": query.get("url", "")[:2000]},
        wrong=wrong,
        wrong_in=wrong_in,
        is_open=bool(query.get("url")),
        link=lambda number: "?" + urlencode({"q": words, "kind": kind, "page": number}),
        today=archive.clock().date(),
        last_day=date.max,
        may_change=may(request, REVIEWERS),
        message_of=partial(event_words.message_of, language_of(request)),
    )


async def change(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_change, request, form)


def _change(request: Request, form: Mapping[str, str]) -> Response:
    ends = form.get("end", "")
    try:
        if ends:
            number = get_number(ends)
            if form.get("why", "").strip() and (
                question := confirmation.ask(request, form, "rule", back="/rules")
            ):
                return question
            rules.end(site_of(request).archive, number, by=name_of(request), why=form.get("why", ""))
        else:
            _add(request, form)
    except InputError as error:
        section = f"end-{ends}" if ends else "add"
        return _page(request, status=400, wrong=explain(request, error), wrong_in=section, typed=form)
    return RedirectResponse("/rules", status_code=303)


def _add(request: Request, form: Mapping[str, str]) -> None:
    given = {name: value.strip() for name, value in form.items()}
    answer, point = given.get("answer", ""), given.get("at", "")
    if answer not in tuple(RuleAnswer):
        raise InputError(said("choose_rule_answer", "Choose what readers get."))
    if point and point not in tuple(AccessPoint):
        raise InputError(said("choose_access_point", "Choose where the rule applies."))
    if not given.get("pattern") or given.get("reason") not in REASONS:
        raise InputError(said("rule_needs", "An access rule needs an address and a reason."))
    rules.add(
        site_of(request).archive,
        given["pattern"][:2000],
        answer=RuleAnswer(answer),
        captured_from=date_typed(given.get("captured_from", "")),
        captured_to=date_typed(given.get("captured_to", "")),
        embargo_days=get_number(given["embargo_days"]) if given.get("embargo_days") else 0,
        valid_from=get_day(given.get("valid_from", "")) or date.min,
        valid_to=get_day(given.get("valid_to", "")) or date.max,
        access_point=AccessPoint(point) if point else None,
        public_text=given.get("text", "")[:2000],
        private_note=given.get("note", "")[:2000],
        reason=given["reason"],
        by=name_of(request),
    )
