"""Letters to owners for programs: contacts of a target, letters and their delivery, the owner's answer, and
the templates.

GET   /api/targets/{target}/contacts      POST   /api/targets/{target}/contacts
                                          DELETE /api/targets/{target}/contacts/{contact}
GET   /api/targets/{target}/letters       POST   /api/targets/{target}/letters
POST  /api/targets/{target}/replies
GET   /api/letters                        GET    /api/letters/{letter}
POST  /api/letters/deliveries
GET   /api/letters/templates/{kind}/{language}    PUT  /api/letters/templates/{kind}/{language}
"""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.errors import Conflict, NotFound
from webdepot.reasons import said
from webdepot.selection.contacts import LONGEST_POST, Contact
from webdepot.selection.letter_rows import Letter
from webdepot.selection.letter_templates import (
    FIELDS,
    LANGUAGES,
    LONGEST_BODY,
    LONGEST_SUBJECT,
    LetterKind,
    Template,
)
from webdepot.selection.states import LetterState
from webdepot.services.permission import letters, owner_answers, periodic_run
from webdepot.services.permission.owner_answers import Conditions, OwnerReply, Showing
from webdepot.services.selection import contacts, targets
from webdepot.times import to_iso
from webdepot.web.api.cursors import PAGING, ROWS, answer_page, describe_page, make_cursor, read_cursor
from webdepot.web.api.input_fields import (
    FieldKind,
    InputField,
    describe_body,
    describe_query,
    read_json,
    read_query,
)
from webdepot.web.api.openapi_parts import (
    DAY,
    FLAG,
    MOMENT,
    TEXT,
    TEXTS,
    WHOLE,
    list_of,
    nullable,
    object_of,
    one_of,
    operation,
    parameter,
    ref,
)
from webdepot.web.api.staff.targets import TARGET_ID, target_json
from webdepot.web.forms import find_number
from webdepot.web.mailing import start_sending
from webdepot.web.site import Site, name_of, site_of
from webdepot.web.staff.targets.target_page import target_of

_KINDS = {kind.name.lower(): kind for kind in LetterKind}
"""Kinds of letters as in addresses."""
LIST_QUERY = (
    InputField(name="state", meaning="Only letters in this state.", choices=tuple(LetterState)),
    *PAGING,
)
CONTACT = (
    InputField(name="name", meaning="Name of the person.", longest=200),
    InputField(name="organisation", meaning="Name of the organisation.", longest=200),
    InputField(name="mail", meaning="Email address.", longest=254),
    InputField(name="post", meaning="Postal address, for letters that are printed.", longest=LONGEST_POST),
    InputField(name="language", meaning="Language of letters. Default: English.", choices=LANGUAGES),
    InputField(name="note", meaning="A note for staff."),
)
ASK = (
    InputField(
        name="term_days",
        meaning="Days that the owner has to answer. Default: as configured.",
        kind=FieldKind.WHOLE,
        least=1,
        highest=3650,
    ),
)
REPLY = (
    InputField(name="answer", meaning="What the owner answered.", choices=tuple(OwnerReply), required=True),
    InputField(name="words", meaning="In the owner's words."),
    InputField(
        name="showing", meaning="For `conditions`: where the site may be read.", choices=tuple(Showing)
    ),
    InputField(
        name="embargo_days",
        meaning="For `conditions`: days until a capture is shown.",
        kind=FieldKind.WHOLE,
        highest=100_000,
    ),
    InputField(name="until", meaning="For `conditions`: the last day of harvests.", kind=FieldKind.DAY),
)
TEMPLATE = (
    InputField(name="subject", meaning="The subject line.", required=True, longest=LONGEST_SUBJECT),
    InputField(name="body", meaning="The text, with `{fields}`.", required=True, longest=LONGEST_BODY),
)


# --- contacts ---


def show_contacts(request: Request) -> Response:
    read_query(request, ())
    archive, target = site_of(request).archive, _known_target(request)
    return JSONResponse({"contacts": [_contact_json(each) for each in contacts.contacts_of(archive, target)]})


async def add_contact(request: Request) -> Response:
    return await run_in_threadpool(_add_contact, request, await read_json(request, CONTACT))


def _add_contact(request: Request, sent: dict[str, Any]) -> Response:
    contact = Contact(
        target=target_of(request),
        name=sent.get("name", "").strip(),
        organisation=sent.get("organisation", "").strip(),
        mail=sent.get("mail", "").strip(),
        post=sent.get("post", ""),
        language=sent.get("language", LANGUAGES[0]),
        note=sent.get("note", ""),
    )
    added = contacts.add_contact(site_of(request).archive, contact, by=name_of(request))
    return JSONResponse(_contact_json(added), status_code=201)


def end_contact(request: Request) -> Response:
    text = request.path_params["contact"]
    number = find_number(text)
    if number is None:
        raise NotFound(said("missing_contact", "There is no contact {contact}.", contact=text[:40]))
    archive, target = site_of(request).archive, _known_target(request)
    contacts.end_contact(archive, target, number, by=name_of(request))
    return JSONResponse({"contacts": [_contact_json(each) for each in contacts.contacts_of(archive, target)]})


def _contact_json(contact: Contact) -> dict[str, Any]:
    names = ("id", "name", "organisation", "mail", "post", "language", "note")
    return {name: getattr(contact, name) for name in names}


# --- letters ---


def show_list(request: Request) -> Response:
    query = read_query(request, LIST_QUERY)
    limit, past = query.get("limit", ROWS), read_cursor(query.get("cursor", ""), int)
    rows = letters.list_past(
        site_of(request).archive,
        LetterState(query["state"]) if "state" in query else None,
        last=past[0] if past else None,
        limit=limit + 1,
    )
    return answer_page(
        request, rows, limit, shown=letter_json, cursor_of=lambda letter: make_cursor(letter.id)
    )


def show(request: Request) -> Response:
    read_query(request, ())
    text = request.path_params["letter"]
    number = find_number(text)
    if number is None:
        raise NotFound(said("missing_letter", "There is no letter {number}.", number=text[:40]))
    letter = letters.get_letter(site_of(request).archive, number)
    # While a letter waits, its text is the secret address at which its owner answers.
    return JSONResponse({**letter_json(letter), "body": letter.body if letter.sent_at else ""})


def show_of_target(request: Request) -> Response:
    """The letters of a target, and the one that would be sent now."""
    read_query(request, ())
    site, target = site_of(request), _known_target(request)
    asking = letters.consider(site.archive, [target])
    preview = letters.preview(site.archive, target, portal_url=site.portal_url)
    return JSONResponse(
        {
            "letters": [letter_json(each) for each in letters.letters_of(site.archive, target)],
            "can_ask": bool(asking.ready),
            "reason": str(asking.left_out[0][1]) if asking.left_out else "",
            "preview": {"subject": preview.subject, "body": preview.body},
        }
    )


async def ask(request: Request) -> Response:
    return await run_in_threadpool(_ask, request, await read_json(request, ASK))


def _ask(request: Request, sent: dict[str, Any]) -> Response:
    """Write the letter; it is sent in the background if there is a mail server, and waits otherwise."""
    site, target = site_of(request), _known_target(request)
    outcome = letters.ask(
        site.archive,
        [target],
        by=name_of(request),
        portal_url=site.portal_url,
        term_days=sent.get("term_days", 0),
    )
    if outcome.left_out:
        reason = outcome.left_out[0][1]
        raise Conflict(said("no_letter_written", "No letter was written: {reason}.", reason=reason))
    start_sending(request)
    return JSONResponse(letter_json(letters.letters_of(site.archive, target)[0]), status_code=201)


async def reply(request: Request) -> Response:
    return await run_in_threadpool(_reply, request, await read_json(request, REPLY))


def _reply(request: Request, sent: dict[str, Any]) -> Response:
    """The target after the owner's answer. A refusal stops harvests and closes access at once."""
    site, answer = site_of(request), OwnerReply(sent["answer"])
    conditions = Conditions(
        showing=Showing(sent.get("showing", Showing.OPEN)),
        embargo_days=sent.get("embargo_days", 0),
        until=sent.get("until"),
        words=sent.get("words", ""),
    )
    moved = owner_answers.reply(
        site.archive,
        target_of(request),
        answer,
        by=name_of(request),
        words=sent.get("words", ""),
        conditions=conditions if answer is OwnerReply.CONDITIONS else None,
    )
    return JSONResponse(target_json(site, moved))


def deliver(request: Request) -> Response:
    """Write the reminders that are due, and send waiting letters in the background."""
    site = site_of(request)
    periodic_run.process_deadlines(site.archive, portal_url=site.portal_url)
    start_sending(request)
    _, _, counts = letters.all_letters(site.archive, None, 1)
    shown = {"is_sending": bool(site.archive.config.mail.host)}
    return JSONResponse({**shown, "letters": {state.value: count for state, count in counts.items()}})


def _known_target(request: Request) -> Any:
    return targets.get(site_of(request).archive, target_of(request)).id


def letter_json(letter: Letter) -> dict[str, Any]:
    """A letter without its text."""
    return {
        "id": letter.id,
        "reference": letter.reference,
        "kind": letter.kind.value,
        "state": letter.state.value,
        "target": letter.target,
        "case": letter.case,
        "language": letter.language,
        "recipient": letter.recipient,
        "subject": letter.subject,
        "term_ends_on": letter.term_ends_on.isoformat() if letter.term_ends_on else None,
        "error": str(letter.error),
        "by": letter.agent,
        "queued_at": to_iso(letter.queued_at),
        "sent_at": to_iso(letter.sent_at) if letter.sent_at else None,
    }


# --- templates ---


def show_template(request: Request) -> Response:
    read_query(request, ())
    return JSONResponse(_template_json(letters.template_of(site_of(request).archive, *_which(request))))


async def save_template(request: Request) -> Response:
    return await run_in_threadpool(_save_template, request, await read_json(request, TEMPLATE))


def _save_template(request: Request, sent: dict[str, Any]) -> Response:
    kind, language = _which(request)
    template = Template(kind=kind, language=language, subject=sent["subject"], body=sent["body"])
    letters.save_template(site_of(request).archive, template, by=name_of(request))
    return JSONResponse(_template_json(letters.template_of(site_of(request).archive, kind, language)))


def _which(request: Request) -> tuple[LetterKind, str]:
    kind, language = request.path_params["kind"], request.path_params["language"]
    if kind not in _KINDS or language not in LANGUAGES:
        text = "There is no letter {kind} in the language {language}."
        raise NotFound(said("missing_template", text, kind=kind[:40], language=language[:40]))
    return _KINDS[kind], language


def _template_json(template: Template) -> dict[str, Any]:
    return {
        "kind": template.kind.name.lower(),
        "language": template.language,
        "subject": template.subject,
        "body": template.body,
        "fields": sorted(FIELDS[template.kind]),
        "is_default": template.at is None,
    }


# --- description ---

_CONTACT = object_of(
    {
        "id": WHOLE,
        "name": TEXT,
        "organisation": TEXT,
        "mail": TEXT,
        "post": TEXT,
        "language": TEXT,
        "note": TEXT,
    }
)
_LETTER = {
    "id": WHOLE,
    "reference": TEXT,
    "kind": one_of(list(LetterKind)),
    "state": one_of(list(LetterState)),
    "target": nullable(WHOLE),
    "case": nullable(WHOLE),
    "language": TEXT,
    "recipient": TEXT,
    "subject": TEXT,
    "term_ends_on": nullable(DAY),
    "error": TEXT,
    "by": TEXT,
    "queued_at": MOMENT,
    "sent_at": nullable(MOMENT),
}
SCHEMAS = {
    "Contact": _CONTACT,
    "Letter": object_of(_LETTER),
    "WholeLetter": object_of({**_LETTER, "body": TEXT}),
    "LetterTemplate": object_of(
        {"kind": TEXT, "language": TEXT, "subject": TEXT, "body": TEXT, "fields": TEXTS, "is_default": FLAG}
    ),
}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    letter, template = ref("Letter"), ref("LetterTemplate")
    number = parameter("letter", "Number of the letter.", "integer", where="path", required=True, minimum=0)
    which = [
        parameter("kind", "Kind of letter.", where="path", required=True, enum=list(_KINDS)),
        parameter("language", "Language.", where="path", required=True, enum=list(LANGUAGES)),
    ]
    counts = object_of({state.value: WHOLE for state in LetterState})
    return {
        **_describe_targets(),
        "/api/letters": {
            "get": operation(
                "listLetters",
                "Letters, the newest first",
                describe_page(letter),
                parameters=describe_query(LIST_QUERY),
            )
        },
        "/api/letters/deliveries": {
            "post": operation(
                "deliverLetters",
                "Write the reminders that are due and send waiting letters",
                object_of({"is_sending": FLAG, "letters": counts}),
            )
        },
        "/api/letters/{letter}": {
            "parameters": [number],
            "get": operation("getLetter", "One letter with its text", ref("WholeLetter"), errors=[404]),
        },
        "/api/letters/templates/{kind}/{language}": {
            "parameters": which,
            "get": operation("getTemplate", "The text of a kind of letter", template, errors=[404]),
            "put": operation(
                "saveTemplate",
                "Save the text of a kind of letter; older versions are kept",
                template,
                body=describe_body(TEMPLATE),
                errors=[404],
            ),
        },
    }


def _describe_targets() -> dict[str, Any]:
    """The paths below a target."""
    letter, listed = ref("Letter"), object_of({"contacts": list_of(ref("Contact"))})
    contact = parameter(
        "contact", "Number of the contact.", "integer", where="path", required=True, minimum=0
    )
    of_target = object_of(
        {
            "letters": list_of(letter),
            "can_ask": FLAG,
            "reason": TEXT,
            "preview": object_of({"subject": TEXT, "body": TEXT}),
        }
    )
    return {
        "/api/targets/{target}/contacts": {
            "parameters": [TARGET_ID],
            "get": operation("listContacts", "Contacts of a target", listed, errors=[404]),
            "post": operation(
                "addContact",
                "Add a contact; it needs an email address or a postal address",
                ref("Contact"),
                status=201,
                body=describe_body(CONTACT),
                errors=[404],
            ),
        },
        "/api/targets/{target}/contacts/{contact}": {
            "parameters": [TARGET_ID, contact],
            "delete": operation("endContact", "End a contact; it stays in the history", listed, errors=[404]),
        },
        "/api/targets/{target}/letters": {
            "parameters": [TARGET_ID],
            "get": operation(
                "getLettersOfTarget", "Letters of a target, and the next one", of_target, errors=[404]
            ),
            "post": operation(
                "askOwner",
                "Write a letter to the owner",
                letter,
                status=201,
                body=describe_body(ASK),
                errors=[404, 409],
            ),
        },
        "/api/targets/{target}/replies": {
            "parameters": [TARGET_ID],
            "post": operation(
                "recordReply",
                "Record what the owner answered",
                ref("Target"),
                body=describe_body(REPLY),
                errors=[404, 409],
            ),
        },
    }
