"""Asking owners, and what follows from their answers (mission K3): contacts, letters, the opt-out term, replies, grounds.

    ask ──> queued ──deliver──> sent ──┬── answer: consent, refusal, conditions, undeliverable
                                       ├── reminder, once, while the term runs
                                       └── the day after the term: silence is consent

The term counts from the sending, so it is worked out when the mail server has taken the letter. A refusal holds at once: running
harvests of the target are stopped, and a rule of access closes everything below its seeds. `tend` does what time asks for and may
run as often as one likes: every step is taken once.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum

from sqlalchemy import Connection

from webdepot.access.policy import AccessPoint, RuleAnswer
from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.harvest import runs
from webdepot.harvest.control import Verb
from webdepot.model import HarvestState, TargetId
from webdepot.provenance import Event, append
from webdepot.selection import contacts, grounds, letters, targets, templates
from webdepot.selection.contacts import Contact
from webdepot.selection.grounds import KeptGround
from webdepot.selection.letters import Letter
from webdepot.selection.permission import WITHOUT_LETTER, Basis, Ground
from webdepot.selection.states import TARGET, LetterState, TargetState
from webdepot.selection.targets import Dossier
from webdepot.selection.templates import LetterKind, Rendered, Template
from webdepot.services import harvesting, ruling, selecting, steering
from webdepot.url import host_of

MOST_LETTERS = 20_000
"""So many targets can be asked in one go."""
LONGEST_WORDS = 4000
REFUSED_TEXT = "The owner of this site does not want it to be shown."
LIMITED_TEXT = "The owner of this site lets it be read in the reading room only."
EMBARGO_TEXT = "The owner of this site lets it be read only after some time."
DARK_TEXT = "The owner of this site lets it be kept, but not shown."


class Reply(StrEnum):
    """What an owner answered."""

    CONSENT = "consent"
    CONDITIONS = "conditions"
    REFUSAL = "refusal"
    UNDELIVERABLE = "undeliverable"


class Showing(StrEnum):
    """Where an owner lets a site be read."""

    OPEN = "open"
    READING_ROOM = "reading room"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Under which an owner consents."""

    showing: Showing = Showing.OPEN
    embargo_days: int = 0
    until: date | None = None
    """Last day on which it may be harvested."""
    words: str = ""

    def as_dict(self) -> dict[str, object]:
        return {
            "showing": self.showing.value,
            "embargo_days": self.embargo_days,
            "until": self.until.isoformat() if self.until else "",
            "words": self.words,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What would happen to each target if its owner were asked now."""

    ready: Sequence[Dossier]
    left_out: Sequence[tuple[Dossier, str]]
    """Targets that cannot be asked, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tended:
    """What time brought."""

    implied: int = 0
    ended: int = 0
    reminders: int = 0


# --- contacts ---------------------------------------------------------------------------------------------------------


def contacts_of(archive: Archive, target: TargetId) -> list[Contact]:
    with archive.database.reading() as connection:
        return contacts.of_target(connection, target)


def add_contact(archive: Archive, contact: Contact, *, by: str = "") -> Contact:
    """Whom to write to from now on; InputError when an address is none."""
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, contact.target)
        kept = contacts.add(connection, contact, now=archive.clock())
        detail = {"after": {"name": kept.name, "organisation": kept.organisation, "mail": kept.mail, "language": kept.language}}
        append(connection, selecting.event(archive, dossier, "added a contact", by=by, message=kept.salutation, detail=detail))
    return kept


def end_contact(archive: Archive, target: TargetId, number: int, *, by: str = "") -> None:
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        ended = contacts.end(connection, target, number, now=archive.clock())
        detail = {"before": {"name": ended.name, "mail": ended.mail}}
        append(connection, selecting.event(archive, dossier, "ended a contact", by=by, message=ended.salutation, detail=detail))


# --- letters ----------------------------------------------------------------------------------------------------------


def letters_of(archive: Archive, target: TargetId) -> list[Letter]:
    with archive.database.reading() as connection:
        return letters.of_target(connection, target)


def preview(archive: Archive, target: TargetId, *, language: str = "", portal_url: str = "", term_days: int = 0) -> Rendered:
    """The letter as it would go out today; nothing is sent or kept."""
    with archive.database.reading() as connection:
        dossier = targets.dossier_of(connection, target)
        contact = next((one for one in contacts.of_target(connection, target) if one.mail), None)
        contact = contact or Contact(target=target, name=dossier.name, language=language or "en")
        template = templates.get(connection, LetterKind.NOTICE, language or contact.language)
        days = term_days or archive.config.selection.term_days
        where = answer_address(portal_address(archive, portal_url), letters.TOKEN_HIDDEN)
        ends = term_end(archive.clock().date(), days)
        return templates.render(template, _values(archive, dossier, contact, template.language, days, ends, "L-…", where))


def consider(archive: Archive, numbers: Sequence[int]) -> Asking:
    """Which of these targets can be asked, and why not the others."""
    with archive.database.reading() as connection:
        return _consider(connection, targets.dossiers_of(connection, list(dict.fromkeys(numbers))[:MOST_LETTERS]))


def _consider(connection: Connection, dossiers: Sequence[Dossier]) -> Asking:
    busy = set(letters.already_asked(connection, [one.id for one in dossiers]))
    ready: list[Dossier] = []
    left_out: list[tuple[Dossier, str]] = []
    for one in dossiers:
        if not TARGET.allows(one.state, "ask"):
            left_out.append((one, f"it is {one.state.value}"))
        elif one.id in busy:
            left_out.append((one, "a letter is out already"))
        elif not any(contact.mail for contact in contacts.of_target(connection, one.id)):
            left_out.append((one, "it has no contact with a mail address"))
        else:
            ready.append(one)
    return Asking(ready=ready, left_out=left_out)


def ask(archive: Archive, numbers: Sequence[int], *, by: str = "", portal_url: str = "", term_days: int = 0) -> Asking:
    """Write the letters of these targets and queue them; `mailing.deliver` sends them. Targets that cannot be asked are left out."""
    now = archive.clock()
    days = term_days or archive.config.selection.term_days
    if not 1 <= days <= 3650:
        raise InputError("A term has 1 to 3650 days.")
    base = portal_address(archive, portal_url)
    with archive.database.transaction() as connection:
        asking = _consider(connection, targets.dossiers_of(connection, list(dict.fromkeys(numbers))[:MOST_LETTERS]))
        for dossier in asking.ready:
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
            append(connection, selecting.event(archive, dossier, "wrote a letter", by=by, message=contact.mail, detail={"letter": kept.id}))
    return asking


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
    contact = next((one for one in contacts.of_target(connection, dossier.id) if one.mail == letter.recipient), None)
    contact = contact or Contact(target=dossier.id, mail=letter.recipient, language=letter.language)
    template = templates.get(connection, letter.kind, letter.language)
    first = letters.get(connection, letter.about) if letter.about else letter
    ends = first.term_ends_on or term_end(archive.clock().date(), letter.term_days)
    values = _values(archive, dossier, contact, template.language, letter.term_days, ends, first.reference, letter.body)
    sent_on = day_words((first.sent_at or archive.clock()).date(), template.language)
    return templates.render(template, {**values, "sent_on": sent_on})


def answer_address(base: str, token: str) -> str:
    return f"{base}/answer/{token}"


def _values(
    archive: Archive, dossier: Dossier, contact: Contact, language: str, days: int, ends: date, reference: str, answer_at: str
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
        "user_agent": harvesting.user_agent(archive),
    }


def common_values(archive: Archive, language: str) -> Mapping[str, str]:
    """Fields that every letter has."""
    config = archive.config
    return {
        "archive": config.archive.name,
        "purpose": config.archive.purpose,
        "contact": config.archive.contact or config.mail.reply_to or config.mail.sender,
        "date": day_words(archive.clock().date(), language),
        "portal": portal_address(archive, ""),
    }


def portal_address(archive: Archive, given: str) -> str:
    """Where readers find the portal: as configured, as the request came, or on this machine."""
    web = archive.config.web
    return (web.portal_url or given or f"http://{web.host}:{web.port}").rstrip("/")


def term_end(sent_on: date, days: int) -> date:
    """The last day on which the owner can refuse."""
    return sent_on + timedelta(days=days)


def day_words(day: date, language: str) -> str:
    """15 November 2026 in the language of a letter; faces have their own tables, letters must not depend on them."""
    month = _MONTHS[language if language in _MONTHS else "en"][day.month - 1]
    return f"{day.day}. {month} {day.year}" if language == "de" else f"{day.day} {month} {day.year}"


_MONTHS = {
    "en": ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"],
    "nl": ["januari", "februari", "maart", "april", "mei", "juni", "juli", "augustus", "september", "oktober", "november", "december"],
    "de": ["Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember"],
}


# --- answers and grounds ----------------------------------------------------------------------------------------------


def grounds_of(archive: Archive, target: TargetId) -> list[KeptGround]:
    with archive.database.reading() as connection:
        return grounds.every(connection, target)


def reply(
    archive: Archive,
    target: TargetId,
    answer: Reply,
    *,
    by: str = "",
    words: str = "",
    conditions: Conditions | None = None,
    letter: Letter | None = None,
) -> Dossier:
    """Record what an owner answered, to a letter or unasked. A refusal stops harvests and closes access at once."""
    said = words.strip()[:LONGEST_WORDS]
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        open_letters = [one for one in letters.of_target(connection, target) if one.kind is LetterKind.NOTICE]
        answered = letter or next((one for one in open_letters if one.state in (LetterState.SENT, LetterState.SILENT)), None)
        match answer:
            case Reply.UNDELIVERABLE:
                moved = _returned(connection, archive, dossier, answered, by=by, words=said)
            case Reply.REFUSAL:
                moved = _refused(connection, archive, dossier, answered, by=by, words=said)
            case Reply.CONSENT | Reply.CONDITIONS:
                moved = _consented(connection, archive, dossier, answered, conditions or Conditions(words=said), by=by, words=said)
        _withdraw_waiting(connection, open_letters)
    if answer is Reply.REFUSAL:
        stop_harvests(archive, target, by=by)
    return moved


def _returned(connection: Connection, archive: Archive, dossier: Dossier, letter: Letter | None, *, by: str, words: str) -> Dossier:
    if letter is None:
        raise Conflict(f"Target {dossier.id} ({dossier.name}): no letter is out that could have come back.")
    letters.move(connection, letter, "return", error=words or "came back")
    for kept in grounds.holding(connection, dossier.id):
        if kept.letter == letter.id and kept.basis.ground is Ground.IMPLIED_CONSENT:
            grounds.end(connection, kept.id, agent=by or archive.agent, reason="the letter came back", now=archive.clock())
    append(connection, selecting.event(archive, dossier, "undeliverable", by=by, message=f"{letter.recipient} {words}".strip()))
    if dossier.state is TargetState.ASKED or (dossier.state is TargetState.CLEARED and not grounds.holding(connection, dossier.id)):
        return selecting.step(connection, archive, dossier, "lose ground", by=by, reason="the letter came back")
    return dossier


def _refused(connection: Connection, archive: Archive, dossier: Dossier, letter: Letter | None, *, by: str, words: str) -> Dossier:
    now = archive.clock()
    _answer_letter(connection, letter)
    _end_grounds(connection, archive, dossier, by=by, reason="refused")
    made = _close(connection, archive, dossier, RuleAnswer.REFUSE, None, REFUSED_TEXT, by=by)
    basis = Basis(ground=Ground.REFUSAL, since=now.date(), reason=words or f"the owner refused on {now.date()}")
    letter_id = letter.id if letter else None
    grounds.add(connection, dossier.id, basis, agent=by or archive.agent, now=now, letter=letter_id, rules=made)
    return selecting.step(connection, archive, dossier, "refuse", by=by, reason=basis.reason)


def _consented(
    connection: Connection,
    archive: Archive,
    dossier: Dossier,
    letter: Letter | None,
    conditions: Conditions,
    *,
    by: str,
    words: str,
    ground: Ground = Ground.CONSENT,
) -> Dossier:
    now = archive.clock()
    TARGET.after(dossier.state, "clear", f"Target {dossier.id} ({dossier.name})")
    _answer_letter(connection, letter)
    _end_grounds(connection, archive, dossier, by=by, reason=f"followed by {ground.value}")
    made = _limit(connection, archive, dossier, conditions, by=by)
    basis = Basis(ground=ground, since=now.date(), until=conditions.until, reason=words or conditions.words)
    grounds.add(
        connection,
        dossier.id,
        basis,
        agent=by or archive.agent,
        now=now,
        letter=letter.id if letter else None,
        conditions=conditions.as_dict(),
        rules=made,
    )
    return selecting.step(connection, archive, dossier, "clear", by=by, reason=f"{ground.value}: {basis.reason}".rstrip(": "))


def record_ground(archive: Archive, target: TargetId, ground: Ground, *, by: str = "", reason: str, until: date | None = None) -> Dossier:
    """A ground that needs no letter; InputError without a reason. After a refusal only the owner's consent counts."""
    if ground not in WITHOUT_LETTER:
        raise InputError(f"{ground.value!r} is not recorded by hand. Known: {', '.join(WITHOUT_LETTER)}.")
    if not reason.strip():
        raise InputError("Say where the ground is found: the address of the licence, the letter, the law.")
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        if dossier.state is TargetState.REFUSED and ground is not Ground.CONSENT:
            raise Conflict(f"Target {dossier.id} ({dossier.name}): the owner refused; only the owner's consent opens it again.")
        conditions = Conditions(until=until)
        return _consented(connection, archive, dossier, None, conditions, by=by, words=reason.strip()[:LONGEST_WORDS], ground=ground)


def withdraw_ground(archive: Archive, target: TargetId, number: int, *, by: str = "", reason: str) -> Dossier:
    """A ground that does not hold after all; without another one the target may not be harvested any more."""
    if not reason.strip():
        raise InputError("Say why the ground does not hold.")
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        kept = next((one for one in grounds.holding(connection, target) if one.id == number), None)
        if kept is None or kept.basis.ground is Ground.REFUSAL:
            raise NotFound(f"Target {target} has no ground {number} that could be withdrawn.")
        _end_ground(connection, archive, kept, by=by, reason=reason.strip()[:LONGEST_WORDS])
        append(connection, selecting.event(archive, dossier, "withdrew a ground", by=by, message=f"{kept.basis.ground.value}: {reason}"))
        if dossier.state is TargetState.CLEARED and not grounds.holding(connection, target):
            return selecting.step(connection, archive, dossier, "lose ground", by=by, reason=reason)
    return dossier


def find_by_token(archive: Archive, token: str) -> tuple[Dossier, Letter] | None:
    """The target and letter behind the secret address in a letter."""
    with archive.database.reading() as connection:
        letter = letters.find_by_token(connection, token) if 0 < len(token) <= 100 else None
        if letter is None or letter.target is None or letter.sent_at is None:
            return None
        return targets.dossier_of(connection, letter.target), letter


def stop_harvests(archive: Archive, target: TargetId, *, by: str = "") -> list[str]:
    """Stop what runs for a target; numbers of the harvests that were told to."""
    with archive.database.reading() as connection:
        running = [one for one in runs.in_states(connection, [HarvestState.RUNNING]) if one.target == target]
    stopped: list[str] = []
    for harvest in running:
        with suppress(Conflict):  # nobody works on it: it cannot go on by itself, and the gate refuses to resume it
            steering.give(archive, harvest.id, Verb.STOP, by=by or archive.agent, reason="the owner refused")
            stopped.append(harvest.id)
    return stopped


def _answer_letter(connection: Connection, letter: Letter | None) -> None:
    if letter is not None and letter.state in (LetterState.SENT, LetterState.SILENT):
        letters.move(connection, letter, "answer")


def _withdraw_waiting(connection: Connection, open_letters: Sequence[Letter]) -> None:
    for one in open_letters:
        if one.state in (LetterState.QUEUED, LetterState.FAILED):
            letters.move(connection, one, "withdraw")


def _end_grounds(connection: Connection, archive: Archive, dossier: Dossier, *, by: str, reason: str) -> None:
    for kept in grounds.holding(connection, dossier.id):
        _end_ground(connection, archive, kept, by=by, reason=reason)


def _end_ground(connection: Connection, archive: Archive, kept: KeptGround, *, by: str, reason: str) -> None:
    """End it, and take back the rules of access that came with it."""
    grounds.end(connection, kept.id, agent=by or archive.agent, reason=reason, now=archive.clock())
    for number in kept.rules:
        with suppress(NotFound):  # somebody took it back by hand
            ruling.remove_in(connection, archive, number, by=by)


def _limit(connection: Connection, archive: Archive, dossier: Dossier, conditions: Conditions, *, by: str) -> list[int]:
    """The rules of access that an owner's conditions ask for."""
    made: list[int] = []
    if conditions.showing is Showing.NOBODY:
        made += _close(connection, archive, dossier, RuleAnswer.REFUSE, None, DARK_TEXT, by=by)
    elif conditions.showing is Showing.READING_ROOM:
        for point in (AccessPoint.PUBLIC, AccessPoint.PARTNER):
            made += _close(connection, archive, dossier, RuleAnswer.REFUSE, point, LIMITED_TEXT, by=by)
    if conditions.embargo_days:
        days = conditions.embargo_days
        made += _close(connection, archive, dossier, RuleAnswer.REFUSE, None, EMBARGO_TEXT, by=by, embargo_days=days)
    return made


def _close(
    connection: Connection,
    archive: Archive,
    dossier: Dossier,
    answer: RuleAnswer,
    point: AccessPoint | None,
    text: str,
    *,
    by: str,
    embargo_days: int = 0,
) -> list[int]:
    made: list[int] = []
    for pattern in patterns_of(dossier):
        found = ruling.add_in(
            connection,
            archive,
            pattern,
            answer=answer,
            access_point=point,
            embargo_days=embargo_days,
            public_text=text,
            private_note=f"target {dossier.id}",
            reason="owner",
            by=by,
        )
        made += [rule.id for rule in found]
    return made


def patterns_of(dossier: Dossier) -> list[str]:
    """What belongs to a target, as patterns of `ruling`: the host of a seed at its root, otherwise what begins like the seed."""
    made: list[str] = []
    for seed in dossier.target.seeds:
        host = host_of(seed)
        path = seed.partition("://")[2].removeprefix(host)
        if host:
            made.append(host if path in ("", "/") else f"{host}{path.rpartition('/')[0]}/*" if "?" not in path else f"{host}{path}")
    return list(dict.fromkeys(made))


# --- what time asks for -----------------------------------------------------------------------------------------------


def tend(archive: Archive, *, portal_url: str = "") -> Tended:
    """Terms that are over become implied consent, grounds past their last day end, reminders are written. As often as one likes."""
    return replace(settle(archive), reminders=_write_reminders(archive, portal_url))


def settle(archive: Archive) -> Tended:
    """Terms and grounds that time has decided."""
    today = archive.clock().date()
    implied = ended = 0
    with archive.database.transaction() as connection:
        for letter in letters.past_term(connection, today):
            implied += _pass_in_silence(connection, archive, letter)
        for kept in grounds.past_their_day(connection, today):
            _end_ground(connection, archive, kept, by="", reason=f"its last day was {kept.basis.until}")
            dossier = targets.dossier_of(connection, kept.target)
            append(connection, selecting.event(archive, dossier, "ended a ground", message=kept.basis.ground.value))
            if dossier.state is TargetState.CLEARED and not grounds.holding(connection, kept.target):
                selecting.step(connection, archive, dossier, "lose ground", reason=f"{kept.basis.ground.value} ended on {kept.basis.until}")
            ended += 1
    return Tended(implied=implied, ended=ended)


def _pass_in_silence(connection: Connection, archive: Archive, letter: Letter) -> int:
    letters.move(connection, letter, "pass in silence")
    if letter.target is None or letter.term_ends_on is None:
        return 0
    dossier = targets.dossier_of(connection, letter.target)
    if dossier.state is not TargetState.ASKED:
        return 0
    since = letter.term_ends_on + timedelta(days=1)
    basis = Basis(ground=Ground.IMPLIED_CONSENT, since=since, reason=f"no answer to {letter.reference} by {letter.term_ends_on}")
    grounds.add(connection, dossier.id, basis, agent=archive.agent, now=archive.clock(), letter=letter.id)
    selecting.step(connection, archive, dossier, "clear", reason=f"{basis.ground.value}: {basis.reason}")
    return 1


def _write_reminders(archive: Archive, portal_url: str) -> int:
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
            letters.add(connection, reminder)
    return len(due)
