"""Letters to owners: written from templates for one target or a whole list, and reminders.

A letter is written and queued here and sent by `delivery`; `owner_answers` records the owner's answer. While
a letter is queued, its text is only the secret address for the answer: the rest is filled in when it is sent,
because the deadline counts from that day.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.config.sections.portal import ArchiveConfig
from webdepot.errors import InputError, NotFound
from webdepot.model import TargetId
from webdepot.provenance import Event, append, difference
from webdepot.reasons import said
from webdepot.selection import contacts, implied_consent, letter_rows, letter_templates, target_list, targets
from webdepot.selection.contacts import Contact
from webdepot.selection.letter_rows import Letter
from webdepot.selection.letter_templates import LetterKind, Rendered, Template
from webdepot.selection.states import TARGET, LetterState, TargetState
from webdepot.selection.target_list import TargetFilter
from webdepot.selection.targets import Dossier

MOST_LETTERS = 20_000
"""At most this many owners can be asked at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Which targets' owners can be asked now, and which cannot."""

    ready: Sequence[Dossier]
    left_out: Sequence[tuple[Dossier, str]]
    """Targets that cannot be asked, with the reason."""


def letters_of(archive: Archive, target: TargetId) -> list[Letter]:
    with archive.database.reading() as connection:
        return letter_rows.of_target(connection, target)


def get_letter(archive: Archive, number: int) -> Letter:
    with archive.database.reading() as connection:
        return letter_rows.get(connection, number)


def all_letters(
    archive: Archive, state: LetterState | None, page: int
) -> tuple[list[Letter], int, Mapping[LetterState, int]]:
    """One page of all letters, newest first, how many there are, and how many in each state."""
    with archive.database.reading() as connection:
        return *letter_rows.listing(connection, state, page), letter_rows.counts(connection)


def list_past(
    archive: Archive, state: LetterState | None, *, last: int | None = None, limit: int
) -> list[Letter]:
    """The next letters, the newest first, after the one with the number `last`."""
    with archive.database.reading() as connection:
        return letter_rows.past(connection, state, last=last, limit=limit)


def preview(
    archive: Archive, target: TargetId, *, language: str = "", portal_url: str = "", term_days: int = 0
) -> Rendered:
    """The letter as it would be sent today; nothing is sent or stored."""
    with archive.database.reading() as connection:
        dossier = targets.dossier_of(connection, target)
        contact = _mail_contact(connection, target) or Contact(
            target=target, name=dossier.name, language=language or "en"
        )
        template = letter_templates.get(connection, LetterKind.NOTICE, language or contact.language)
        days = term_days or archive.config.selection.term_days
        answer_at = answer_address(portal_address(archive, portal_url), letter_rows.TOKEN_HIDDEN)
        deadline = implied_consent.deadline_of(archive.clock().date(), days)
        return letter_templates.render(
            template, _values(archive, dossier, contact, template.language, days, deadline, "L-…", answer_at)
        )


def consider(archive: Archive, numbers: Sequence[int]) -> Asking:
    """Which of these targets' owners can be asked, and why the others cannot."""
    with archive.database.reading() as connection:
        return _consider(
            connection, targets.dossiers_of(connection, list(dict.fromkeys(numbers))[:MOST_LETTERS])
        )


def consider_list(archive: Archive, wanted: TargetFilter) -> Asking:
    """As `consider`, for all targets that a filter matches; without a state in the filter, those selected."""
    with archive.database.reading() as connection:
        chosen = replace(wanted, state=wanted.state or TargetState.SELECTED)
        return _consider(
            connection, list(islice(target_list.iter_filtered(connection, chosen), MOST_LETTERS))
        )


def _consider(connection: Connection, dossiers: Sequence[Dossier]) -> Asking:
    busy = set(letter_rows.already_asked(connection, [dossier.id for dossier in dossiers]))
    ready: list[Dossier] = []
    left_out: list[tuple[Dossier, str]] = []
    for dossier in dossiers:
        if not TARGET.allows(dossier.state, "ask"):
            left_out.append((dossier, said("it_is", "its state is: {state}", state=dossier.state)))
        elif dossier.id in busy:
            left_out.append((dossier, said("asked_already", "a letter has already been written")))
        elif _mail_contact(connection, dossier.id) is None:
            left_out.append((dossier, said("no_contact", "it has no contact with an email address")))
        else:
            ready.append(dossier)
    return Asking(ready=ready, left_out=left_out)


def _ignore(_connection: Connection, _asking: Asking) -> None:
    """For callers who have nothing to add to the transaction."""


def ask(
    archive: Archive,
    numbers: Sequence[int],
    *,
    by: str = "",
    portal_url: str = "",
    term_days: int = 0,
    on_asked: Callable[[Connection, Asking], None] = _ignore,
) -> Asking:
    """Write and queue a letter to the owner of each of these targets; `delivery.deliver` sends them. Targets
    whose owner cannot be asked are left out. `on_asked` is called in the same transaction.
    """
    now = archive.clock()
    days = term_days or archive.config.selection.term_days
    if not 1 <= days <= 3650:
        raise InputError("The owner must have 1 to 3650 days to answer.")
    base = portal_address(archive, portal_url)
    with archive.database.transaction() as connection:
        outcome = _consider(
            connection, targets.dossiers_of(connection, list(dict.fromkeys(numbers))[:MOST_LETTERS])
        )
        for dossier in outcome.ready:
            contact = _mail_contact(connection, dossier.id)
            assert contact is not None  # noqa: S101 - checked by _consider
            template = letter_templates.get(connection, LetterKind.NOTICE, contact.language)
            token = letter_rows.new_token()
            draft = Letter(
                kind=LetterKind.NOTICE,
                target=dossier.id,
                language=template.language,
                recipient=contact.mail,
                subject=template.subject,
                body=answer_address(base, token),
                token_hash=letter_rows.hash_of(token),
                term_days=days,
                agent=by or archive.agent,
                queued_at=now,
            )
            kept = letter_rows.add(connection, draft)
            append(connection, _written_event(archive, "wrote a letter", kept, by=by))
        on_asked(connection, outcome)
    return outcome


def _mail_contact(connection: Connection, target: TargetId) -> Contact | None:
    return next((contact for contact in contacts.of_target(connection, target) if contact.mail), None)


def _written_event(archive: Archive, action: str, letter: Letter, *, by: str = "") -> Event:
    detail = {
        "letter": letter.id,
        **difference({}, {"letter state": letter.state.value, "recipient": letter.recipient}),
    }
    return archive.event(action, "target", str(letter.target), by=by, message=letter.recipient, detail=detail)


def template_of(archive: Archive, kind: LetterKind, language: str) -> Template:
    with archive.database.reading() as connection:
        return letter_templates.get(connection, kind, language)


def save_template(archive: Archive, template: Template, *, by: str = "") -> None:
    """Save a new text for a kind of letter; older versions are kept. InputError names an unknown field."""
    with archive.database.transaction() as connection:
        before = letter_templates.get(connection, template.kind, template.language)
        letter_templates.save(connection, template, agent=by or archive.agent, now=archive.clock())
        subject = f"{template.kind.value} {template.language}"
        detail = {
            "before": {"subject": before.subject, "body": before.body},
            "after": {"subject": template.subject, "body": template.body},
        }
        append(connection, archive.event("changed", "letter template", subject, by=by, detail=detail))


def render(connection: Connection, archive: Archive, letter: Letter) -> Rendered:
    """A notice or reminder as it is sent now. While it is queued, its text is the secret address for the
    answer.
    """
    if letter.target is None:
        raise NotFound(f"Letter {letter.id} does not belong to a target.")
    dossier = targets.dossier_of(connection, letter.target)
    contact = next(
        (each for each in contacts.of_target(connection, dossier.id) if each.mail == letter.recipient), None
    )
    contact = contact or Contact(target=dossier.id, mail=letter.recipient, language=letter.language)
    template = letter_templates.get(connection, letter.kind, letter.language)
    first = letter_rows.get(connection, letter.about) if letter.about else letter
    deadline = first.term_ends_on or implied_consent.deadline_of(archive.clock().date(), letter.term_days)
    values = _values(
        archive, dossier, contact, template.language, letter.term_days, deadline, first.reference, letter.body
    )
    sent_on = format_day((first.sent_at or archive.clock()).date(), template.language)
    return letter_templates.render(template, {**values, "sent_on": sent_on})


def answer_address(base: str, token: str) -> str:
    return f"{base}/answer/{token}"


def _values(
    archive: Archive,
    dossier: Dossier,
    contact: Contact,
    language: str,
    days: int,
    deadline: date,
    reference: str,
    answer_at: str,
) -> Mapping[str, str]:
    return {
        **common_values(archive, language),
        "recipient": contact.salutation,
        "site": dossier.name,
        "address": dossier.target.seeds[0],
        "reference": reference,
        "term_days": str(days),
        "term_ends": format_day(deadline, language),
        "first_harvest": format_day(implied_consent.silence_counts_from(deadline), language),
        "answer_address": answer_at,
        "user_agent": archive.user_agent,
    }


def common_values(archive: Archive, language: str) -> Mapping[str, str]:
    """Values of the fields that every letter can have."""
    config = archive.config
    return {
        "archive": config.archive.name,
        "purpose": config.archive.purposes.get(language)
        or (
            default_purpose(language)
            if config.archive.purpose == ArchiveConfig().purpose
            else config.archive.purpose
        ),
        "contact": config.archive.contact or config.mail.reply_to or config.mail.sender,
        "date": format_day(archive.clock().date(), language),
        "portal": portal_address(archive, ""),
    }


def default_purpose(language: str) -> str:
    """Why the archive exists, in the language of the letter, where the configuration does not say so."""
    return _PURPOSES.get(language, ArchiveConfig().purpose)


_PURPOSES = {
    "nl": "Dit archief bewaart websites als deel van het culturele en openbare geheugen.",
    "de": "Dieses Archiv bewahrt Websites als Teil des kulturellen und öffentlichen Gedächtnisses.",
}


def portal_address(archive: Archive, given: str) -> str:
    """The address of the portal: as configured, as given by the request, or on this computer."""
    web = archive.config.web
    return (web.portal_url or given or f"http://{web.host}:{web.port}").rstrip("/")


def format_day(day: date, language: str) -> str:
    """15 November 2026 in the language of a letter. The web interface has its own tables; services must not
    depend on them.
    """
    month = _MONTHS[language if language in _MONTHS else "en"][day.month - 1]
    return f"{day.day}. {month} {day.year}" if language == "de" else f"{day.day} {month} {day.year}"


_MONTHS = {
    language: names.split()
    for language, names in {
        "en": "January February March April May June July August September October November December",
        "nl": "januari februari maart april mei juni juli augustus september oktober november december",
        "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    }.items()
}


def write_reminders(archive: Archive, *, portal_url: str = "") -> int:
    """Write and queue the reminders that are due, one for each notice; returns how many."""
    now = archive.clock()
    with archive.database.transaction() as connection:
        due = letter_rows.to_remind(connection, now.date())
        for letter in due:
            letter_rows.clear_reminder(connection, letter)
            token = letter_rows.new_token()
            reminder = Letter(
                kind=LetterKind.REMINDER,
                target=letter.target,
                about=letter.id,
                language=letter.language,
                recipient=letter.recipient,
                subject=letter.subject,
                body=answer_address(portal_address(archive, portal_url), token),
                token_hash=letter_rows.hash_of(token),
                term_days=letter.term_days,
                agent=archive.agent,
                queued_at=now,
            )
            kept = letter_rows.add(connection, reminder)
            if kept.target is not None:
                append(connection, _written_event(archive, "wrote a reminder", kept))
    return len(due)
