"""Writing to owners (mission K3): contacts, letters from templates, one target or a whole list, reminders.

A letter is written and queued here and sent by `delivery`; what the owner answers is `consent`'s. While a
letter waits its text is only the secret address for the answer: the rest is filled in when it goes out,
because its days count from then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import islice

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.errors import InputError, NotFound
from webdepot.model import TargetId
from webdepot.provenance import Event, append, difference
from webdepot.reasons import said
from webdepot.selection import contacts, letters, targets, templates
from webdepot.selection.contacts import Contact
from webdepot.selection.letters import Letter
from webdepot.selection.states import TARGET, LetterState, TargetState
from webdepot.selection.targets import Dossier, TargetFilter
from webdepot.selection.templates import LetterKind, Rendered, Template
from webdepot.services.selection import targets as targets_service
from webdepot.settings import ArchiveConfig

MOST_LETTERS = 20_000
"""So many targets can be asked in one go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What would happen to each target if its owner were asked now."""

    ready: Sequence[Dossier]
    left_out: Sequence[tuple[Dossier, str]]
    """Targets that cannot be asked, with the reason."""


def letters_of(archive: Archive, target: TargetId) -> list[Letter]:
    with archive.database.reading() as connection:
        return letters.of_target(connection, target)


def letter(archive: Archive, number: int) -> Letter:
    with archive.database.reading() as connection:
        return letters.get(connection, number)


def all_letters(
    archive: Archive, state: LetterState | None, page: int
) -> tuple[list[Letter], int, Mapping[LetterState, int]]:
    """A page of all letters, the newest first, how many there are, and how many of each state."""
    with archive.database.reading() as connection:
        return *letters.listing(connection, state, page), letters.counts(connection)


def preview(
    archive: Archive, target: TargetId, *, language: str = "", portal_url: str = "", term_days: int = 0
) -> Rendered:
    """The letter as it would go out today; nothing is sent or kept."""
    with archive.database.reading() as connection:
        dossier = targets.dossier_of(connection, target)
        contact = next((one for one in contacts.of_target(connection, target) if one.mail), None)
        contact = contact or Contact(target=target, name=dossier.name, language=language or "en")
        template = templates.get(connection, LetterKind.NOTICE, language or contact.language)
        days = term_days or archive.config.selection.term_days
        where = answer_address(portal_address(archive, portal_url), letters.TOKEN_HIDDEN)
        ends = term_end(archive.clock().date(), days)
        return templates.render(
            template, _values(archive, dossier, contact, template.language, days, ends, "L-…", where)
        )


def consider(archive: Archive, numbers: Sequence[int]) -> Asking:
    """Which of these targets can be asked, and why not the others."""
    with archive.database.reading() as connection:
        return _consider(
            connection, targets.dossiers_of(connection, list(dict.fromkeys(numbers))[:MOST_LETTERS])
        )


def consider_list(archive: Archive, asked: TargetFilter) -> Asking:
    """As `consider`, for everything that a list shows; those that are not on the selection list are passed
    over.
    """
    with archive.database.reading() as connection:
        chosen = replace(asked, state=asked.state or TargetState.SELECTED)
        return _consider(connection, list(islice(targets.iter_filtered(connection, chosen), MOST_LETTERS)))


def _consider(connection: Connection, dossiers: Sequence[Dossier]) -> Asking:
    busy = set(letters.already_asked(connection, [one.id for one in dossiers]))
    ready: list[Dossier] = []
    left_out: list[tuple[Dossier, str]] = []
    for one in dossiers:
        if not TARGET.allows(one.state, "ask"):
            left_out.append((one, said("it_is", "its state is: {state}", state=one.state)))
        elif one.id in busy:
            left_out.append((one, said("asked_already", "a letter has already been written")))
        elif not any(contact.mail for contact in contacts.of_target(connection, one.id)):
            left_out.append((one, said("no_contact", "it has no contact with an email address")))
        else:
            ready.append(one)
    return Asking(ready=ready, left_out=left_out)


def ask(
    archive: Archive, numbers: Sequence[int], *, by: str = "", portal_url: str = "", term_days: int = 0
) -> Asking:
    """Write the letters of these targets and queue them; `delivery.deliver` sends them. Targets that cannot be
    asked are left out.
    """
    now = archive.clock()
    days = term_days or archive.config.selection.term_days
    if not 1 <= days <= 3650:
        raise InputError("A term has 1 to 3650 days.")
    base = portal_address(archive, portal_url)
    with archive.database.transaction() as connection:
        outcome = _consider(
            connection, targets.dossiers_of(connection, list(dict.fromkeys(numbers))[:MOST_LETTERS])
        )
        for dossier in outcome.ready:
            contact = next(one for one in contacts.of_target(connection, dossier.id) if one.mail)
            template = templates.get(connection, LetterKind.NOTICE, contact.language)
            token = letters.new_token()
            draft = Letter(
                kind=LetterKind.NOTICE,
                target=dossier.id,
                language=template.language,
                recipient=contact.mail,
                subject=template.subject,
                body=answer_address(base, token),
                token_hash=letters.hash_of(token),
                term_days=days,
                agent=by or archive.agent,
                queued_at=now,
            )
            kept = letters.add(connection, draft)
            append(
                connection,
                targets_service.event(
                    archive, dossier, "wrote a letter", by=by, message=contact.mail, detail=_written(kept)
                ),
            )
    return outcome


def _written(letter: Letter) -> dict[str, object]:
    return {
        "letter": letter.id,
        **difference({}, {"letter state": letter.state.value, "recipient": letter.recipient}),
    }


def template_of(archive: Archive, kind: LetterKind, language: str) -> Template:
    with archive.database.reading() as connection:
        return templates.get(connection, kind, language)


def save_template(archive: Archive, template: Template, *, by: str = "") -> None:
    """A new text for a kind of letter; the old ones stay. InputError names a field that it cannot have."""
    now = archive.clock()
    with archive.database.transaction() as connection:
        before = templates.get(connection, template.kind, template.language)
        templates.save(connection, template, agent=by or archive.agent, now=now)
        append(
            connection,
            Event(
                at=now,
                agent=by or archive.agent,
                action="changed",
                subject_kind="letter template",
                subject=f"{template.kind.value} {template.language}",
                detail={
                    "before": {"subject": before.subject, "body": before.body},
                    "after": {"subject": template.subject, "body": template.body},
                },
            ),
        )


def render(connection: Connection, archive: Archive, letter: Letter) -> Rendered:
    """A notice or reminder as it goes out now; while it waits its text is the secret address for the answer."""
    if letter.target is None:
        raise NotFound(f"Letter {letter.id} belongs to no target.")
    dossier = targets.dossier_of(connection, letter.target)
    contact = next(
        (one for one in contacts.of_target(connection, dossier.id) if one.mail == letter.recipient), None
    )
    contact = contact or Contact(target=dossier.id, mail=letter.recipient, language=letter.language)
    template = templates.get(connection, letter.kind, letter.language)
    first = letters.get(connection, letter.about) if letter.about else letter
    ends = first.term_ends_on or term_end(archive.clock().date(), letter.term_days)
    values = _values(
        archive, dossier, contact, template.language, letter.term_days, ends, first.reference, letter.body
    )
    sent_on = day_words((first.sent_at or archive.clock()).date(), template.language)
    return templates.render(template, {**values, "sent_on": sent_on})


def answer_address(base: str, token: str) -> str:
    return f"{base}/answer/{token}"


def _values(
    archive: Archive,
    dossier: Dossier,
    contact: Contact,
    language: str,
    days: int,
    ends: date,
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
        "term_ends": day_words(ends, language),
        "first_harvest": day_words(ends + timedelta(days=1), language),
        "answer_address": answer_at,
        "user_agent": archive.user_agent,
    }


def common_values(archive: Archive, language: str) -> Mapping[str, str]:
    """Fields that every letter has."""
    config = archive.config
    return {
        "archive": config.archive.name,
        "purpose": own_purpose(language)
        if config.archive.purpose == ArchiveConfig().purpose
        else config.archive.purpose,
        "contact": config.archive.contact or config.mail.reply_to or config.mail.sender,
        "date": day_words(archive.clock().date(), language),
        "portal": portal_address(archive, ""),
    }


def own_purpose(language: str) -> str:
    """The sentence on why an archive exists that has not said so itself."""
    return _PURPOSES.get(language, ArchiveConfig().purpose)


_PURPOSES = {
    "nl": "Dit archief bewaart websites als deel van het culturele en openbare geheugen.",
    "de": "Dieses Archiv bewahrt Websites als Teil des kulturellen und öffentlichen Gedächtnisses.",
}


def portal_address(archive: Archive, given: str) -> str:
    """Where readers find the portal: as configured, as the request came, or on this machine."""
    web = archive.config.web
    return (web.portal_url or given or f"http://{web.host}:{web.port}").rstrip("/")


def term_end(sent_on: date, days: int) -> date:
    """The last day on which the owner can refuse."""
    return sent_on + timedelta(days=days)


def day_words(day: date, language: str) -> str:
    """15 November 2026 in the language of a letter; faces have their own tables, letters must not depend on
    them.
    """
    month = _MONTHS[language if language in _MONTHS else "en"][day.month - 1]
    return f"{day.day}. {month} {day.year}" if language == "de" else f"{day.day} {month} {day.year}"


_MONTHS = {
    "en": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    "nl": [
        "januari",
        "februari",
        "maart",
        "april",
        "mei",
        "juni",
        "juli",
        "augustus",
        "september",
        "oktober",
        "november",
        "december",
    ],
    "de": [
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ],
}


def write_reminders(archive: Archive, *, portal_url: str = "") -> int:
    now = archive.clock()
    with archive.database.transaction() as connection:
        due = letters.to_remind(connection, now.date())
        for letter in due:
            letters.reminded(connection, letter)
            token = letters.new_token()
            reminder = Letter(
                kind=LetterKind.REMINDER,
                target=letter.target,
                about=letter.id,
                language=letter.language,
                recipient=letter.recipient,
                subject=letter.subject,
                body=answer_address(portal_address(archive, portal_url), token),
                token_hash=letters.hash_of(token),
                term_days=letter.term_days,
                agent=archive.agent,
                queued_at=now,
            )
            kept, dossier = (
                letters.add(connection, reminder),
                targets.dossier_of(connection, letter.target) if letter.target else None,
            )
            if dossier is not None:
                append(
                    connection,
                    targets_service.event(
                        archive, dossier, "wrote a reminder", message=kept.recipient, detail=_written(kept)
                    ),
                )
    return len(due)
