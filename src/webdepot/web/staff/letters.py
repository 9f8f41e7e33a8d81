"""Letters in the portal: all letters with their states, letters to a list of targets, and their templates."""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts.roles import CURATORS
from webdepot.errors import InputError
from webdepot.reasons import said
from webdepot.selection.letter_rows import ROWS
from webdepot.selection.letter_templates import FIELDS, LANGUAGES, LetterKind, Template
from webdepot.selection.states import LetterState, TargetState
from webdepot.services.permission import delivery, periodic_run
from webdepot.services.permission import letters as letters_service
from webdepot.services.permission.letters import Asking
from webdepot.services.selection import targets
from webdepot.web.forms import get_number, page_number, read_form
from webdepot.web.mailing import start_sending
from webdepot.web.problems import explain
from webdepot.web.site import may, name_of, of_app, render, site_of
from webdepot.web.staff.targets.nomination import MOST_SHOWN
from webdepot.web.staff.targets.target_list import filter_of


def show_list(request: Request) -> Response:
    archive = site_of(request).archive
    name, page = request.query_params.get("state", ""), page_number(request)
    state = LetterState(name) if name in tuple(LetterState) else None
    letters, total, counts = letters_service.all_letters(archive, state, page)
    sender = of_app(request, delivery.LetterSender)
    return render(
        request,
        "letters.html",
        letters=letters,
        total=total,
        counts=counts,
        state=state,
        page=page,
        pages=max(-(-total // ROWS), 1),
        is_sending=sender.is_running(),
        error=sender.error,
        has_server=bool(archive.config.mail.host),
        kinds=list(LetterKind),
        languages_of_letters=LANGUAGES,
        may_change=may(request, CURATORS),
    )


def show(request: Request) -> Response:
    archive = site_of(request).archive
    letter = letters_service.get_letter(archive, get_number(request.path_params["letter"]))
    name = targets.get(archive, letter.target).name if letter.target else ""
    return render(request, "letter.html", letter=letter, name=name)


def send(request: Request) -> Response:
    """Send waiting letters in the background."""
    site = site_of(request)
    periodic_run.process_deadlines(site.archive, portal_url=site.portal_url)
    sender = of_app(request, delivery.LetterSender)
    sender.start(site.archive)
    return RedirectResponse("/letters", status_code=303)


def show_ask_list(request: Request) -> Response:
    return _ask_page(request)


def _ask_page(request: Request, *, status: int = 200, wrong: str = "") -> Response:
    """The page that shows which targets of the filter in the address would get a letter."""
    archive, wanted = site_of(request).archive, filter_of(request)
    outcome = letters_service.consider_list(archive, wanted)
    return render(
        request,
        "ask_list.html",
        status=status,
        wrong=wrong,
        asking=outcome,
        asked=wanted,
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
    return await run_in_threadpool(_ask, request, form)


def _ask(request: Request, form: Mapping[str, str]) -> Response:
    """Write the letters that the page before counted, and send them in the background."""
    site = site_of(request)
    outcome = letters_service.consider_list(site.archive, filter_of(request))
    if str(len(outcome.ready)) != form.get("count", ""):
        text = "The list has changed since you opened the page. Check it again."
        wrong = explain(request, InputError(said("list_has_changed", text)))
        return _ask_page(request, status=400, wrong=wrong)
    letters_service.ask(
        site.archive,
        [dossier.id for dossier in outcome.ready],
        by=name_of(request),
        portal_url=site.portal_url,
    )
    start_sending(request)
    return RedirectResponse("/letters", status_code=303)


def show_template(request: Request) -> Response:
    return _template_page(request, letters_service.template_of(site_of(request).archive, *_which(request)))


async def save_template(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_save_template, request, form)


def _save_template(request: Request, form: Mapping[str, str]) -> Response:
    kind, language = _which(request)
    template = Template(
        kind=kind, language=language, subject=form.get("subject", ""), body=form.get("body", "")
    )
    try:
        letters_service.save_template(site_of(request).archive, template, by=name_of(request))
    except InputError as error:
        return _template_page(request, template, status=400, wrong=explain(request, error))
    return RedirectResponse(f"/letters/templates/{kind.name.lower()}/{language}?saved=1", status_code=303)


def _template_page(request: Request, template: Template, *, status: int = 200, wrong: str = "") -> Response:
    return render(
        request,
        "letter_template.html",
        status=status,
        letter_template=template,
        wrong=wrong,
        fields=sorted(FIELDS[template.kind]),
        kinds=list(LetterKind),
        languages_of_letters=LANGUAGES,
        is_saved=bool(request.query_params.get("saved")) and not wrong,
        may_change=may(request, CURATORS),
    )


def _which(request: Request) -> tuple[LetterKind, str]:
    kind, language = request.path_params["kind"].upper(), request.path_params["language"]
    if kind not in LetterKind.__members__ or language not in LANGUAGES:
        raise HTTPException(404)
    return LetterKind[kind], language
