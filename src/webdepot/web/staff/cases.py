"""Complaints in the portal: the list, a case with its whole history, and its decision."""

from collections import defaultdict
from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.roles import REVIEWERS
from webdepot.errors import Conflict, InputError
from webdepot.selection.cases import ROWS, CaseState, Decision, Objection, Who
from webdepot.selection.letter_templates import LANGUAGES
from webdepot.services.permission import case_view, complaints
from webdepot.services.permission.complaints import Area, Audience, Ruling
from webdepot.web import confirmation
from webdepot.web.forms import date_typed, page_number, read_form
from webdepot.web.mailing import start_sending
from webdepot.web.problems import explain
from webdepot.web.reader.public_forms import complaint_fields
from webdepot.web.site import language_of, may, name_of, render, site_of


def show_list(request: Request) -> Response:
    return _list_page(request)


def _list_page(
    request: Request, *, status: int = 200, given: Mapping[str, str] | None = None, wrong: str = ""
) -> Response:
    archive = site_of(request).archive
    name, host = request.query_params.get("state", ""), request.query_params.get("host", "")[:255]
    state = CaseState(name) if name in tuple(CaseState) else None
    page = page_number(request)
    cases, total = complaints.list_cases(archive, state=state, host=host, page=page)
    return render(
        request,
        "cases.html",
        status=status,
        given=defaultdict(str, given or {"language": language_of(request).code}),
        wrong=wrong,
        cases=cases,
        total=total,
        state=state,
        host=host,
        page=page,
        pages=max(-(-total // ROWS), 1),
        counts=complaints.counts(archive),
        whos=list(Who),
        objections=list(Objection),
        languages_of_letters=LANGUAGES,
    )


async def record(request: Request) -> Response:
    """Enter a complaint that came by letter or telephone."""
    form = await read_form(request)
    return await run_in_threadpool(_record, request, form)


def _record(request: Request, form: Mapping[str, str]) -> Response:
    try:
        case = complaints.complain(
            site_of(request).archive,
            **complaint_fields(form),
            language=form.get("language", ""),
            origin="staff",
            by=name_of(request),
        )
    except InputError as error:
        return _list_page(request, status=400, given=form, wrong=explain(request, error))
    start_sending(request)
    return RedirectResponse(f"/cases/{case.reference}", status_code=303)


def show(request: Request) -> Response:
    return _page(request)


def _page(
    request: Request, *, status: int = 200, given: Mapping[str, str] | None = None, wrong: str = ""
) -> Response:
    view = case_view.view(site_of(request).archive, request.path_params["case"])
    case = view.case
    return render(
        request,
        "case.html",
        status=status,
        case=case,
        given=given
        or {**{name: str(value) for name, value in case.detail.items()}, "decision": case.decision or ""},
        wrong=wrong,
        acts=view.acts,
        history=view.history,
        letters=view.letters,
        others=view.others,
        decisions=list(Decision),
        areas=list(Area),
        audiences=list(Audience),
        may_decide=may(request, REVIEWERS),
    )


async def act(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_act, request, form)


def _act(request: Request, form: Mapping[str, str]) -> Response:
    archive, which, by = site_of(request).archive, request.path_params["case"], name_of(request)
    reason = form.get("reason", "")
    try:
        match form.get("act", ""):
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
            case "decide":
                ruling = _ruling(form)
                if question := confirmation.ask(
                    request, form, "decide", back=f"/cases/{which}", subject=which
                ):
                    return question
                complaints.decide(archive, which, ruling, by=by)
                start_sending(request)
            case other:
                raise InputError(f"{other[:40]!r} is not an action on a case.")
    except (InputError, Conflict) as error:
        return _page(request, status=error.http_status, given=form, wrong=explain(request, error))
    return RedirectResponse(f"/cases/{which}", status_code=303)


def _ruling(form: Mapping[str, str]) -> Ruling:
    try:
        return Ruling(
            decision=Decision(form.get("decision", "")),
            words=form.get("words", ""),
            area=Area(form.get("area", "") or Area.PAGE),
            address=form.get("address", "").strip(),
            audience=Audience(form.get("audience", "") or Audience.EVERYONE),
            captured_from=date_typed(form.get("captured_from", "")),
            captured_to=date_typed(form.get("captured_to", "")),
            public_text=form.get("public_text", "").strip(),
        )
    except ValueError:
        raise InputError("Choose a decision, the area and the audience it applies to.") from None
