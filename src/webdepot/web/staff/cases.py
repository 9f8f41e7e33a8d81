"""Complaints in the portal: the list, a case with everything said about it, and its decision."""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import InputError
from webdepot.selection.cases import CASE, ROWS, CaseState, Decision, Objection, Who
from webdepot.selection.templates import LANGUAGES
from webdepot.services.permission import complaints, delivery
from webdepot.services.permission.complaints import Area, Audience, Ruling
from webdepot.web.forms import read_form
from webdepot.web.problems import words_for
from webdepot.web.site import REVIEWERS, of_app, person_of, render, site_of
from webdepot.web.staff.targets import by


def listed(request: Request) -> Response:
    archive = site_of(request).archive
    asked = request.query_params
    name, page, host = asked.get("state", ""), asked.get("page", "1"), asked.get("host", "")[:255]
    state = CaseState(name) if name in tuple(CaseState) else None
    number = max(int(page), 1) if page.isascii() and page.isdigit() and len(page) < 8 else 1
    found, total = complaints.list_cases(archive, state=state, host=host, page=number)
    return render(
        request,
        "cases.html",
        cases=found,
        total=total,
        state=state,
        host=host,
        page=number,
        pages=max(-(-total // ROWS), 1),
        counts=complaints.counts(archive),
        whos=list(Who),
        objections=list(Objection),
        languages_of_letters=LANGUAGES,
    )


async def record(request: Request) -> Response:
    """A complaint that came by letter or telephone."""
    form = await read_form(request)
    return await run_in_threadpool(_recorded, request, form)


def _recorded(request: Request, form: Mapping[str, str]) -> Response:
    site = site_of(request)
    case = complaints.complain(
        site.archive,
        url=form.get("url", ""),
        words=form.get("words", ""),
        who=form.get("who", ""),
        ground=form.get("ground", ""),
        name=form.get("name", ""),
        mail=form.get("mail", ""),
        language=form.get("language", ""),
        origin="staff",
        by=by(request),
    )
    _start_postman(request)
    return RedirectResponse(f"/cases/{case.reference}", status_code=303)


def shown(request: Request) -> Response:
    return _page(request)


def _page(
    request: Request, *, status: int = 200, given: Mapping[str, str] | None = None, wrong: str = ""
) -> Response:
    archive = site_of(request).archive
    case = complaints.get(archive, request.path_params["case"])
    person = person_of(request)
    return render(
        request,
        "case.html",
        status=status,
        case=case,
        given=given
        or {**{name: str(value) for name, value in case.detail.items()}, "decision": case.decision or ""},
        wrong=wrong,
        acts=list(CASE.acts(case.state)),
        history=complaints.history(archive, case),
        letters=complaints.letters_of(archive, case),
        others=complaints.same_host(archive, case),
        decisions=list(Decision),
        areas=list(Area),
        audiences=list(Audience),
        may_decide=person is not None and bool(person.roles & REVIEWERS),
    )


async def act(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_acted, request, form)


def _acted(request: Request, form: Mapping[str, str]) -> Response:
    archive, which, name = site_of(request).archive, request.path_params["case"], by(request)
    reason = form.get("reason", "")
    try:
        match form.get("act", ""):
            case "take":
                complaints.take(archive, which, by=name)
            case "drop":
                complaints.drop(archive, which, by=name, reason=reason)
            case "reopen":
                complaints.reopen(archive, which, by=name, reason=reason)
            case "lift":
                complaints.lift(archive, which, by=name, reason=reason)
            case "note":
                complaints.note(archive, which, reason, by=name)
            case "decide":
                complaints.decide(archive, which, _ruling(form), by=name)
                _start_postman(request)
            case other:
                raise InputError(f"{other[:40]!r} is nothing that can be done with a case.")
    except InputError as error:
        return _page(request, status=400, given=form, wrong=words_for(request, error))
    return RedirectResponse(f"/cases/{which}", status_code=303)


def _ruling(form: Mapping[str, str]) -> Ruling:
    try:
        return Ruling(
            decision=Decision(form.get("decision", "")),
            words=form.get("words", ""),
            area=Area(form.get("area", "") or Area.PAGE),
            address=form.get("address", "").strip(),
            audience=Audience(form.get("audience", "") or Audience.EVERYONE),
            captured_from=form.get("captured_from", "").strip(),
            captured_to=form.get("captured_to", "").strip(),
            public_text=form.get("public_text", "").strip(),
        )
    except ValueError:
        raise InputError("Choose a decision, what it is about, and for whom.") from None


def _start_postman(request: Request) -> None:
    archive = site_of(request).archive
    if archive.config.mail.host:
        postman = of_app(request, delivery.Postman)
        postman.start(archive)
