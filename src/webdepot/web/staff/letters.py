"""Letters in the portal: all of them with their states, asking a whole list, and the texts they are written
from.
"""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import InputError
from webdepot.selection.letters import ROWS
from webdepot.selection.states import LetterState, TargetState
from webdepot.selection.templates import FIELDS, LANGUAGES, LetterKind, Template
from webdepot.services.permission import deadlines, delivery
from webdepot.services.permission import letters as letters_service
from webdepot.services.permission.letters import Asking
from webdepot.web.forms import read_form
from webdepot.web.problems import words_for
from webdepot.web.site import of_app, render, site_of
from webdepot.web.staff.targets import MOST_SHOWN, by, filter_of, may_change, number_of


def listed(request: Request) -> Response:
    archive = site_of(request).archive
    name, page = request.query_params.get("state", ""), request.query_params.get("page", "1")
    state = LetterState(name) if name in tuple(LetterState) else None
    number = max(int(page), 1) if page.isascii() and page.isdigit() and len(page) < 8 else 1
    letters, total, counts = letters_service.all_letters(archive, state, number)
    postman = of_app(request, delivery.Postman)
    return render(
        request,
        "letters.html",
        letters=letters,
        total=total,
        counts=counts,
        state=state,
        page=number,
        pages=max(-(-total // ROWS), 1),
        is_sending=postman.is_running(),
        error=postman.error,
        has_server=bool(archive.config.mail.host),
        kinds=list(LetterKind),
        languages_of_letters=LANGUAGES,
        may_change=may_change(request),
    )


def shown(request: Request) -> Response:
    letter = letters_service.get_letter(site_of(request).archive, number_of(request.path_params["letter"]))
    return render(request, "letter.html", letter=letter)


def send(request: Request) -> Response:
    """Send what waits, beside the portal."""
    site = site_of(request)
    deadlines.process_deadlines(site.archive, portal_url=site.portal_url)
    postman = of_app(request, delivery.Postman)
    postman.start(site.archive)
    return RedirectResponse("/letters", status_code=303)


def ask_list(request: Request) -> Response:
    """Who would get a letter, of the list that the address asks for."""
    archive, asked = site_of(request).archive, filter_of(request)
    outcome = letters_service.consider_list(archive, asked)
    return render(
        request,
        "ask_list.html",
        asking=outcome,
        asked=asked,
        most=MOST_SHOWN,
        states=[TargetState.SELECTED, TargetState.CLEARED],
        query=request.url.query,
        example=_example(request, outcome),
        term_days=archive.config.selection.term_days,
    )


def _example(request: Request, outcome: Asking) -> object:
    site = site_of(request)
    return (
        letters_service.preview(site.archive, outcome.ready[0].id, portal_url=site.portal_url)
        if outcome.ready
        else None
    )


async def ask(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_asked, request, form)


def _asked(request: Request, form: Mapping[str, str]) -> Response:
    """Write the letters that were counted on the page before, and send them beside the portal."""
    site = site_of(request)
    outcome = letters_service.consider_list(site.archive, filter_of(request))
    if str(len(outcome.ready)) != form.get("count", ""):
        raise InputError(
            "The list has changed since you looked at it. Look at it again before letters go out."
        )
    letters_service.ask(
        site.archive, [one.id for one in outcome.ready], by=by(request), portal_url=site.portal_url
    )
    if site.archive.config.mail.host:
        postman = of_app(request, delivery.Postman)
        postman.start(site.archive)
    return RedirectResponse("/letters", status_code=303)


def template(request: Request) -> Response:
    return _template_page(request, letters_service.template_of(site_of(request).archive, *_which(request)))


async def save_template(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_template_saved, request, form)


def _template_saved(request: Request, form: Mapping[str, str]) -> Response:
    kind, language = _which(request)
    given = Template(kind=kind, language=language, subject=form.get("subject", ""), body=form.get("body", ""))
    try:
        letters_service.save_template(site_of(request).archive, given, by=by(request))
    except InputError as error:
        return _template_page(request, given, status=400, wrong=words_for(request, error))
    return RedirectResponse(f"/letters/templates/{kind.name.lower()}/{language}?saved=1", status_code=303)


def _template_page(request: Request, given: Template, *, status: int = 200, wrong: str = "") -> Response:
    return render(
        request,
        "letter_template.html",
        status=status,
        letter_template=given,
        wrong=wrong,
        fields=sorted(FIELDS[given.kind]),
        kinds=list(LetterKind),
        languages_of_letters=LANGUAGES,
        is_saved=bool(request.query_params.get("saved")) and not wrong,
        may_change=may_change(request),
    )


def _which(request: Request) -> tuple[LetterKind, str]:
    kind, language = request.path_params["kind"].upper(), request.path_params["language"]
    if kind not in LetterKind.__members__ or language not in LANGUAGES:
        raise HTTPException(404)
    return LetterKind[kind], language
