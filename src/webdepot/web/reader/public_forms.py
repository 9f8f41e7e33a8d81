"""Forms for everybody, without accounts: suggest a site, complain about a page, answer a letter. Their size
and number are limited.

A field that people do not see (`website`) stops simple robots: if it is filled in, the
sender sees the usual thanks and the form is dropped.
"""

from collections import defaultdict
from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.accounts import rate_limits
from webdepot.errors import Conflict, InputError
from webdepot.mail import checked_address
from webdepot.selection.cases import Objection, Who
from webdepot.selection.letter_rows import Letter
from webdepot.selection.letter_templates import LetterKind
from webdepot.selection.states import LetterState
from webdepot.selection.targets import Dossier
from webdepot.services.permission import complaints, owner_answers
from webdepot.services.permission.owner_answers import Conditions, OwnerReply, Showing
from webdepot.services.selection import targets
from webdepot.times import utc_now
from webdepot.web.forms import PUBLIC_FORM, read_form, sender_of
from webdepot.web.mailing import start_sending
from webdepot.web.problems import explain
from webdepot.web.site import language_of, render, site_of

TRAP = "website"


def suggest_form(request: Request) -> Response:
    given = {"address": request.query_params.get("url", "")[:2000]}
    return render(request, "suggest.html", given=given, wrong="", done=request.query_params.get("done", ""))


async def suggest(request: Request) -> Response:
    form = await read_form(request, limits=PUBLIC_FORM)
    return await run_in_threadpool(_suggest, request, form)


def _suggest(request: Request, form: Mapping[str, str]) -> Response:
    archive = site_of(request).archive
    if form.get(TRAP):
        return RedirectResponse("/suggest?done=new", status_code=303)
    if not _may_send(request):
        return render(
            request,
            "suggest.html",
            status=429,
            given=form,
            wrong=language_of(request).texts["suggest.too_many"],
            done="",
        )
    try:
        mail = form.get("mail", "").strip()
        if mail:
            checked_address(mail)
        _, is_new = targets.suggest(
            archive,
            form.get("address", ""),
            name=form.get("name", ""),
            reason=form.get("reason", ""),
            by=form.get("who", ""),
            mail=mail,
        )
    except InputError as error:
        return render(request, "suggest.html", status=400, given=form, wrong=explain(request, error), done="")
    return RedirectResponse(f"/suggest?done={'new' if is_new else 'known'}", status_code=303)


def complain_form(request: Request) -> Response:
    query = request.query_params
    given = {"url": query.get("url", "")[:4000], "at": query.get("at", "")[:14]}
    return _complaint_page(request, given, done=query.get("done", "")[:30])


def _complaint_page(
    request: Request, given: Mapping[str, str], *, status: int = 200, wrong: str = "", done: str = ""
) -> Response:
    lists = {"whos": list(Who), "objections": list(Objection)}
    return render(request, "complain.html", status=status, given=given, wrong=wrong, done=done, lists=lists)


def complaint_fields(form: Mapping[str, str]) -> dict[str, str]:
    """The fields that the public form and the form for staff have in common."""
    return {name: form.get(name, "") for name in ("url", "words", "who", "ground", "name", "mail")}


async def complain(request: Request) -> Response:
    form = await read_form(request, limits=PUBLIC_FORM)
    return await run_in_threadpool(_complain, request, form)


def _complain(request: Request, form: Mapping[str, str]) -> Response:
    site = site_of(request)
    if form.get(TRAP):
        return RedirectResponse("/complain?done=-", status_code=303)
    if not _may_send(request):
        return _complaint_page(
            request, form, status=429, wrong=language_of(request).texts["suggest.too_many"]
        )
    try:
        case = complaints.complain(
            site.archive,
            **complaint_fields(form),
            captured_at=form.get("at", ""),
            language=language_of(request).code,
        )
    except InputError as error:
        return _complaint_page(request, form, status=400, wrong=explain(request, error))
    start_sending(request)
    return RedirectResponse(f"/complain?done={case.reference}", status_code=303)


def answer_form(request: Request) -> Response:
    """The page at the secret address in a letter."""
    return _answer_page(request)


async def answer(request: Request) -> Response:
    form = await read_form(request, limits=PUBLIC_FORM)
    return await run_in_threadpool(_answer, request, form)


def _answer(request: Request, form: Mapping[str, str]) -> Response:
    archive = site_of(request).archive
    dossier, letter = _get_letter(request)
    try:
        choice = OwnerReply(form.get("answer", ""))
        showing = Showing(form.get("showing", "") or Showing.OPEN)
    except ValueError:
        choice = OwnerReply.UNDELIVERABLE
    if choice is OwnerReply.UNDELIVERABLE:
        wrong = language_of(request).texts["answer.choose"]
        return _answer_page(request, status=400, wrong=wrong, given=form)
    conditions = (
        Conditions(showing=showing, words=form.get("words", "").strip()[:2000])
        if choice is OwnerReply.CONDITIONS
        else None
    )
    answered = (
        letter
        if letter.kind is LetterKind.NOTICE and letter.state in (LetterState.SENT, LetterState.SILENT)
        else None
    )
    by = f"owner ({letter.recipient})"
    words = form.get("words", "").strip()[:2000]
    try:
        owner_answers.reply(
            archive, dossier.id, choice, by=by, words=words, conditions=conditions, letter=answered
        )
    except (InputError, Conflict) as error:
        return _answer_page(request, status=error.http_status, wrong=explain(request, error), given=form)
    return RedirectResponse(f"/answer/{request.path_params['token']}?done=1", status_code=303)


def _get_letter(request: Request) -> tuple[Dossier, Letter]:
    """The target and the letter of the secret address."""
    letter = owner_answers.find_by_token(site_of(request).archive, request.path_params["token"])
    if letter is None:
        raise HTTPException(404)
    return letter


def _answer_page(
    request: Request, *, status: int = 200, wrong: str = "", given: Mapping[str, str] | None = None
) -> Response:
    dossier, letter = _get_letter(request)
    done = bool(request.query_params.get("done")) and not wrong
    headers = {"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex"}
    return render(
        request,
        "answer.html",
        status=status,
        headers=headers,
        dossier=dossier,
        letter=letter,
        may_harvest=bool(targets.may_harvest(site_of(request).archive, dossier.id)),
        wrong=wrong,
        done=done,
        given=defaultdict(str, given or {}),
        showings=list(Showing),
    )


def _may_send(request: Request) -> bool:
    """Count what comes from one network, and from all together, within an hour, so that nobody can flood the
    curators.
    """
    archive = site_of(request).archive
    config, now = archive.config.selection, utc_now()
    limits = {
        f"form of {sender_of(request)}": config.suggestions_per_hour,
        "form": config.suggestions_in_all,
    }
    return rate_limits.note_unless_limited(archive.database, limits, now, since=now - rate_limits.LONGEST)
