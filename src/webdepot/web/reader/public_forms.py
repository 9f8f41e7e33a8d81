"""Forms that anybody may fill in: suggest a site, object to a page, answer a letter. Bounded, slowed down,
without accounts.

A field that people do not see (`website`) stops the simplest machines: whoever fills it is thanked and
forgotten.
"""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import Conflict, InputError
from webdepot.mail import checked_address
from webdepot.selection.cases import Objection, Who
from webdepot.selection.states import LetterState
from webdepot.selection.templates import LetterKind
from webdepot.services.permission import complaints, consent, delivery
from webdepot.services.permission.consent import Conditions, OwnerReply, Showing
from webdepot.services.selection import targets
from webdepot.web.forms import Gate, read_form, sender_of
from webdepot.web.problems import words_for
from webdepot.web.site import language_of, of_app, render, site_of

LONGEST_FORM_BYTES = 32_768
TRAP = "website"


def suggest_form(request: Request) -> Response:
    given = {"address": request.query_params.get("url", "")[:2000]}
    return render(request, "suggest.html", given=given, wrong="", done=request.query_params.get("done", ""))


async def suggest(request: Request) -> Response:
    form = await read_form(request, longest=LONGEST_FORM_BYTES)
    return await run_in_threadpool(_suggested, request, form)


def _suggested(request: Request, form: Mapping[str, str]) -> Response:
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
        return render(
            request, "suggest.html", status=400, given=form, wrong=words_for(request, error), done=""
        )
    return RedirectResponse(f"/suggest?done={'new' if is_new else 'known'}", status_code=303)


def complain_form(request: Request) -> Response:
    asked = request.query_params
    given = {"url": asked.get("url", "")[:4000], "at": asked.get("at", "")[:14]}
    return _complaint_page(request, given, done=asked.get("done", "")[:30])


def _complaint_page(
    request: Request, given: Mapping[str, str], *, status: int = 200, wrong: str = "", done: str = ""
) -> Response:
    lists = {"whos": list(Who), "objections": list(Objection)}
    return render(request, "complain.html", status=status, given=given, wrong=wrong, done=done, lists=lists)


async def complain(request: Request) -> Response:
    form = await read_form(request, longest=LONGEST_FORM_BYTES)
    return await run_in_threadpool(_complained, request, form)


def _complained(request: Request, form: Mapping[str, str]) -> Response:
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
            url=form.get("url", ""),
            words=form.get("words", ""),
            who=form.get("who", ""),
            ground=form.get("ground", ""),
            name=form.get("name", ""),
            mail=form.get("mail", ""),
            captured_at=form.get("at", ""),
            language=language_of(request).code,
        )
    except InputError as error:
        return _complaint_page(request, form, status=400, wrong=words_for(request, error))
    if site.archive.config.mail.host:
        postman = of_app(request, delivery.Postman)
        postman.start(site.archive)
    return RedirectResponse(f"/complain?done={case.reference}", status_code=303)


def answer_form(request: Request) -> Response:
    """The page behind the secret address in a letter."""
    return _answer_page(request)


async def answer(request: Request) -> Response:
    form = await read_form(request, longest=LONGEST_FORM_BYTES)
    return await run_in_threadpool(_answered, request, form)


def _answered(request: Request, form: Mapping[str, str]) -> Response:
    archive = site_of(request).archive
    found = consent.find_by_token(archive, request.path_params["token"])
    if found is None:
        raise HTTPException(404)
    dossier, letter = found
    try:
        choice = OwnerReply(form.get("answer", ""))
        showing = Showing(form.get("showing", "") or Showing.OPEN)
    except ValueError:
        return _answer_page(request, status=400, wrong=language_of(request).texts["answer.choose"])
    if choice is OwnerReply.UNDELIVERABLE:
        return _answer_page(request, status=400, wrong=language_of(request).texts["answer.choose"])
    conditions = (
        Conditions(showing=showing, words=form.get("words", "").strip()[:2000])
        if choice is OwnerReply.CONDITIONS
        else None
    )
    given_letter = (
        letter
        if letter.kind is LetterKind.NOTICE and letter.state in (LetterState.SENT, LetterState.SILENT)
        else None
    )
    by = f"owner ({letter.recipient})"
    words = form.get("words", "").strip()[:2000]
    try:
        consent.reply(
            archive, dossier.id, choice, by=by, words=words, conditions=conditions, letter=given_letter
        )
    except Conflict as error:
        return _answer_page(request, status=409, wrong=words_for(request, error))
    return RedirectResponse(f"/answer/{request.path_params['token']}?done=1", status_code=303)


def _answer_page(request: Request, *, status: int = 200, wrong: str = "") -> Response:
    archive = site_of(request).archive
    found = consent.find_by_token(archive, request.path_params["token"])
    if found is None:
        raise HTTPException(404)
    dossier, letter = found
    done = bool(request.query_params.get("done")) and not wrong
    headers = {"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex"}
    return render(
        request,
        "answer.html",
        status=status,
        headers=headers,
        dossier=dossier,
        letter=letter,
        may_harvest=bool(targets.may_harvest(archive, dossier.id)),
        wrong=wrong,
        done=done,
        showings=list(Showing),
    )


def _may_send(request: Request) -> bool:
    gate = of_app(request, Gate)
    config = site_of(request).archive.config.selection
    return gate.lets(
        sender_of(request), most=config.suggestions_per_hour, most_in_all=config.suggestions_in_all
    )
