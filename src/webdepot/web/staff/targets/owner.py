"""The part of the page of a target about its owner: contacts, letters, replies, grounds without a letter."""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from webdepot.accounts.roles import CURATORS
from webdepot.errors import ConfigError, InputError
from webdepot.selection.contacts import Contact
from webdepot.selection.letter_templates import LANGUAGES
from webdepot.selection.permission_basis import WITHOUT_LETTER, Ground
from webdepot.services.permission import delivery, letters, owner_answers
from webdepot.services.permission.owner_answers import Conditions, OwnerReply, Showing
from webdepot.services.selection import contacts, targets
from webdepot.web import confirmation
from webdepot.web.forms import get_day, get_number, read_form
from webdepot.web.site import may, name_of, render, site_of
from webdepot.web.staff.targets.target_page import attempt, back, page_of, target_of


async def add_contact(request: Request) -> Response:
    return await run_in_threadpool(attempt, _change_contacts, request, await read_form(request), "contacts")


def _change_contacts(request: Request, form: Mapping[str, str]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    if end := form.get("end", ""):
        known = {str(one.id): one.salutation for one in contacts.contacts_of(archive, target)}
        page, subject = page_of(target, "contacts"), known.get(end, "")
        if question := confirmation.ask(request, form, "contact", back=page, subject=subject):
            return question
        contacts.end_contact(archive, target, get_number(end), by=name_of(request))
        return back(target, "contacts")
    language = form.get("language", "")
    contact = Contact(
        target=target,
        name=form.get("name", "").strip(),
        organisation=form.get("organisation", "").strip(),
        mail=form.get("mail", "").strip(),
        post=form.get("post", ""),
        language=language if language in LANGUAGES else LANGUAGES[0],
        note=form.get("note", ""),
    )
    contacts.add_contact(archive, contact, by=name_of(request))
    return back(target, "contacts")


def preview_letter(request: Request) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    dossier = targets.get(archive, target)
    language = request.query_params.get("language", "")
    return render(
        request,
        "letter_preview.html",
        dossier=dossier,
        language_of_letter=language if language in LANGUAGES else "",
        languages_of_letters=LANGUAGES,
        rendered=letters.preview(archive, target, language=language, portal_url=site_of(request).portal_url),
        asking=letters.consider(archive, [target]),
        may_change=may(request, CURATORS),
    )


def ask(request: Request) -> Response:
    """Write the letter and send it now; if that fails it waits, and the page says why."""
    return attempt(_ask, request, {}, "letters")


def _ask(request: Request, form: Mapping[str, str]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    outcome = letters.ask(archive, [target], by=name_of(request), portal_url=site_of(request).portal_url)
    if outcome.left_out:
        raise InputError(f"No letter was written: {outcome.left_out[0][1]}.")
    try:
        delivery.deliver_for(archive, target)
    except ConfigError as error:
        raise InputError(str(error)) from error
    return back(target, "letters")


async def reply(request: Request) -> Response:
    return await run_in_threadpool(attempt, _reply, request, await read_form(request), "letters")


def _reply(request: Request, form: Mapping[str, str]) -> Response:
    target = target_of(request)
    try:
        answer = OwnerReply(form.get("answer", ""))
        showing = Showing(form.get("showing", "") or Showing.OPEN)
    except ValueError:
        raise InputError(f"Choose one of these answers: {', '.join(OwnerReply)}.") from None
    embargo = form.get("embargo_days", "").strip()
    conditions = Conditions(
        showing=showing,
        embargo_days=get_number(embargo) if embargo else 0,
        until=get_day(form.get("until", "")),
        words=form.get("words", "")[:2000],
    )
    owner_answers.reply(
        site_of(request).archive,
        target,
        answer,
        by=name_of(request),
        words=form.get("words", ""),
        conditions=conditions if answer is OwnerReply.CONDITIONS else None,
    )
    return back(target, "letters")


async def ground(request: Request) -> Response:
    return await run_in_threadpool(attempt, _change_grounds, request, await read_form(request), "grounds")


def _change_grounds(request: Request, form: Mapping[str, str]) -> Response:
    archive, target = site_of(request).archive, target_of(request)
    if withdrawn := form.get("withdraw", ""):
        page, subject = page_of(target, "grounds"), targets.get(archive, target).name
        if form.get("reason", "").strip() and (
            question := confirmation.ask(request, form, "withdraw", back=page, subject=subject)
        ):
            return question
        owner_answers.withdraw_ground(
            archive, target, get_number(withdrawn), by=name_of(request), reason=form.get("reason", "")
        )
        return back(target, "grounds")
    try:
        chosen = Ground(form.get("ground", ""))
    except ValueError:
        raise InputError(f"Choose one of these grounds: {', '.join(WITHOUT_LETTER)}.") from None
    until = get_day(form.get("until", ""))
    owner_answers.record_ground(
        archive, target, chosen, by=name_of(request), reason=form.get("reason", ""), until=until
    )
    return back(target, "grounds")
