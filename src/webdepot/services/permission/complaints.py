"""Complaints: the public form, the case, its decision and the letter; reopening a case and lifting a
decision.

A decision adds access rules in the same transaction, so it takes effect everywhere with the next request, or
not at all:

    warning       a text above the page
    closed        for the page alone, all addresses that begin with it, its host, or the host and its
                  subdomains; for captures of a period or all; for everyone, or for all but the reading room

Closing for all but the reading room refuses access at the public and the partner access points. It never
*opens* anything: a page that is closed by an owner's refusal stays closed, whatever is decided about a case.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection

from webdepot.access.policy import AccessPoint, RuleAnswer
from webdepot.archive import Archive
from webdepot.errors import InputError, NotFound
from webdepot.mail import checked_address
from webdepot.provenance import Event, append, difference, iter_of
from webdepot.reasons import said
from webdepot.selection import cases, letter_rows, letter_templates
from webdepot.selection.cases import CASE, Case, CaseState, Decision, Objection, Who
from webdepot.selection.letter_rows import Letter
from webdepot.selection.letter_templates import LetterKind
from webdepot.services.access import rules
from webdepot.services.permission import letters as letters_service
from webdepot.url import from_typed, host_of

LONGEST_TEXT = 5000
CLOSED_TEXT = "Access to this page was closed after a complaint."


class Area(StrEnum):
    """Which addresses a decision covers."""

    PAGE = "page"
    PREFIX = "prefix"
    HOST = "host"
    DOMAIN = "domain"


class Audience(StrEnum):
    """Who loses access."""

    EVERYONE = "everyone"
    PUBLIC = "all but the reading room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """A decision about a case."""

    decision: Decision
    words: str = ""
    """The reason, for the letter; never shown to readers."""
    area: Area = Area.PAGE
    address: str = ""
    """The address that the area is derived from; empty means the address of the case."""
    audience: Audience = Audience.EVERYONE
    captured_from: str = ""
    captured_to: str = ""
    public_text: str = ""
    """The warning, or the text that readers see instead of the page."""

    def as_dict(self) -> dict[str, str]:
        return {
            "area": self.area.value,
            "address": self.address,
            "audience": self.audience.value,
            "captured_from": self.captured_from,
            "captured_to": self.captured_to,
            "public_text": self.public_text,
        }


def complain(
    archive: Archive,
    *,
    url: str,
    words: str,
    who: str = Who.OTHER,
    ground: str = Objection.OTHER,
    name: str = "",
    mail: str = "",
    captured_at: str = "",
    language: str = "en",
    origin: str = "public",
    by: str = "",
) -> Case:
    """Open a case; if an email address is given, a letter confirms it, without repeating what was typed:
    anybody can type any address. InputError names the field that is wrong.
    """
    address = from_typed(url)
    text = _checked_complaint(words)
    _check_timestamp(captured_at)
    if mail.strip():
        checked_address(mail)
    complainant, objection = _checked_choices(who, ground)
    now = archive.clock()
    draft = Case(
        since=now,
        host=host_of(address).removeprefix("www."),
        url=address[:4000],
        captured_at=captured_at,
        who=complainant,
        ground=objection,
        words=text,
        name=" ".join(name.split())[:200],
        mail=mail.strip(),
        language=language if language in letter_templates.LANGUAGES else "en",
        origin=origin,
        created_at=now,
    )
    with archive.database.transaction() as connection:
        case = cases.add(connection, draft)
        detail = difference(
            {},
            {"state": case.state.value, "url": case.url, "ground": case.ground.value, "who": case.who.value},
        )
        append(
            connection,
            archive.event(
                "received", "case", str(case.id), by=by or "public form", message=case.url, detail=detail
            ),
        )
        if case.mail:
            nothing = dict.fromkeys(("recipient", "address", "words"), "")  # for texts of earlier versions
            _write_letter(connection, archive, case, LetterKind.RECEIVED, nothing, by=by)
    return case


def _checked_complaint(words: str) -> str:
    text = words.replace("\r\n", "\n").strip()
    if not text or len(text) > LONGEST_TEXT:
        raise InputError(
            said(
                "say_what_is_wrong",
                "Describe what is wrong with the page, in at most {most} characters.",
                most=LONGEST_TEXT,
            )
        )
    return text


def _check_timestamp(captured_at: str) -> None:
    if captured_at and not (captured_at.isascii() and captured_at.isdigit() and len(captured_at) <= 14):
        raise InputError(f"{captured_at[:20]!r} is not a timestamp. Write up to 14 digits, like 20260131.")


def _checked_choices(who: str, ground: str) -> tuple[Who, Objection]:
    try:
        return Who(who), Objection(ground)
    except ValueError:
        raise InputError(
            said("choose_objection", "Choose from the lists who you are and what the complaint is about.")
        ) from None


def take(archive: Archive, which: str, *, by: str = "") -> Case:
    """Start to work on a case."""
    return _move(archive, which, "take", by=by, message="", handled_by=(by or archive.agent)[:200])


def drop(archive: Archive, which: str, *, by: str = "", reason: str) -> Case:
    """Drop a case that is not a complaint; no letter is sent."""
    return _move(archive, which, "drop", by=by, message=_checked_reason(reason))


def note(archive: Archive, which: str, words: str, *, by: str = "") -> None:
    """Add a note to a case, such as a phone call."""
    text = _checked_reason(words)
    detail = difference({}, {"note": text})
    with archive.database.transaction() as connection:
        case = cases.get(connection, which)
        append(
            connection,
            archive.event("noted", "case", str(case.id), by=by, message=text, detail=detail),
        )


def decide(archive: Archive, which: str, ruling: Ruling, *, by: str = "") -> Case:
    """Decide a case: its access rules take effect at once, those of an earlier decision are removed, and a
    letter is written.
    """
    now = archive.clock()
    if ruling.decision is Decision.WARNING and not ruling.public_text.strip():
        raise InputError(
            said("warning_needs_text", "A warning needs a text that readers see above the page.")
        )
    with archive.database.transaction() as connection:
        case = cases.get(connection, which)
        CASE.after(case.state, "decide", f"Case {case.reference}")
        _remove_rules(connection, archive, case, by=by)
        rule_numbers = _add_rules(connection, archive, case, ruling, by=by)
        decided = cases.move(
            connection,
            case,
            "decide",
            now=now,
            handled_by=(by or archive.agent)[:200],
            decision=ruling.decision.value,
            decision_words=ruling.words.strip()[:LONGEST_TEXT],
            detail=ruling.as_dict(),
            rules=rule_numbers,
        )
        detail = {
            "before": {"state": case.state.value, "decision": case.decision, "rules": list(case.rules)},
            "after": {
                "state": decided.state.value,
                "decision": decided.decision,
                "rules": rule_numbers,
                **ruling.as_dict(),
            },
        }
        message = said("decision", "{decision}", decision=ruling.decision)
        append(
            connection,
            archive.event("decided", "case", str(decided.id), by=by, message=message, detail=detail),
        )
        if decided.mail:
            values = {"decision": _decision_text(decided, ruling), "decision_words": decided.decision_words}
            _write_letter(connection, archive, decided, LetterKind.DECIDED, values, by=by)
    return decided


def lift(archive: Archive, which: str, *, by: str = "", reason: str) -> Case:
    """Lift a decision whose reason no longer applies: its access rules are removed at once."""
    with archive.database.transaction() as connection:
        case = cases.get(connection, which)
        moved = cases.move(connection, case, "lift", now=archive.clock(), rules=[])
        _remove_rules(connection, archive, case, by=by)
        detail = {
            "before": {"state": case.state.value, "rules": list(case.rules)},
            "after": {"state": moved.state.value, "rules": []},
        }
        append(
            connection,
            archive.event(
                "lifted", "case", str(moved.id), by=by, message=_checked_reason(reason), detail=detail
            ),
        )
    return moved


def reopen(archive: Archive, which: str, *, by: str = "", reason: str) -> Case:
    """Work on a case again. Its access rules stay in force until the new decision."""
    return _move(archive, which, "reopen", by=by, message=_checked_reason(reason))


def get(archive: Archive, which: str) -> Case:
    with archive.database.reading() as connection:
        return cases.get(connection, which)


def list_cases(
    archive: Archive, *, state: CaseState | None = None, host: str = "", page: int = 1
) -> tuple[list[Case], int]:
    with archive.database.reading() as connection:
        return cases.listing(connection, state=state, host=host, page=page)


def list_past(
    archive: Archive, *, state: CaseState | None = None, host: str = "", last: int | None = None, limit: int
) -> list[Case]:
    """The next cases, the newest first, after the one with the number `last`."""
    with archive.database.reading() as connection:
        return cases.past(connection, state=state, host=host, last=last, limit=limit)


def counts(archive: Archive) -> Mapping[CaseState, int]:
    with archive.database.reading() as connection:
        return cases.counts(connection)


def same_host(archive: Archive, case: Case) -> Sequence[Case]:
    with archive.database.reading() as connection:
        return cases.of_same_host(connection, case)


def history(archive: Archive, case: Case) -> Sequence[Event]:
    """All events about a case, newest first."""
    with archive.database.reading() as connection:
        return list(iter_of(connection, "case", str(case.id)))[::-1]


def letters_of(archive: Archive, case: Case) -> Sequence[Letter]:
    with archive.database.reading() as connection:
        return letter_rows.of_case(connection, case.id)


def pattern_of(case: Case, ruling: Ruling) -> str:
    """The addresses that a decision covers, as a pattern of an access rule."""
    address = from_typed(ruling.address or case.url)
    host = host_of(address)
    path = address.partition("://")[2].removeprefix(host) or "/"
    match ruling.area:
        case Area.PAGE:
            return f"{host}{path}"
        case Area.PREFIX:
            return f"{host}{path.rstrip('*')}*"
        case Area.HOST:
            return host
        case Area.DOMAIN:
            return f"*.{host.removeprefix('www.')}"


def _add_rules(connection: Connection, archive: Archive, case: Case, ruling: Ruling, *, by: str) -> list[int]:
    if ruling.decision is Decision.NO_ACTION:
        return []
    closes = ruling.decision is Decision.CLOSED
    points = (
        (AccessPoint.PUBLIC, AccessPoint.PARTNER)
        if closes and ruling.audience is Audience.PUBLIC
        else (None,)
    )
    numbers: list[int] = []
    for point in points:
        added = rules.add(
            archive,
            pattern_of(case, ruling),
            answer=RuleAnswer.REFUSE if closes else RuleAnswer.WARN,
            captured_from=ruling.captured_from,
            captured_to=ruling.captured_to,
            access_point=point,
            public_text=" ".join(ruling.public_text.split())[:1000] or CLOSED_TEXT,
            private_note=f"case {case.reference}",
            reason=case.ground.value,
            by=by,
            connection=connection,
        )
        numbers += [rule.id for rule in added]
    return numbers


def _remove_rules(connection: Connection, archive: Archive, case: Case, *, by: str) -> None:
    for number in case.rules:
        with suppress(NotFound):  # somebody removed it by hand
            rules.remove(archive, number, by=by, connection=connection)


def _move(archive: Archive, which: str, act: str, *, by: str, message: str, **values: object) -> Case:
    with archive.database.transaction() as connection:
        case = cases.get(connection, which)
        moved = cases.move(connection, case, act, now=archive.clock(), **values)
        detail = {"before": {"state": case.state.value}, "after": {"state": moved.state.value}, "act": act}
        append(
            connection,
            archive.event(moved.state.value, "case", str(moved.id), by=by, message=message, detail=detail),
        )
    return moved


def _write_letter(
    connection: Connection,
    archive: Archive,
    case: Case,
    kind: LetterKind,
    values: Mapping[str, str],
    *,
    by: str,
) -> None:
    template = letter_templates.get(connection, kind, case.language)
    rendered = letter_templates.render(
        template,
        {
            **letters_service.common_values(archive, template.language),
            "recipient": case.name or case.mail,
            "reference": case.reference,
            "address": case.url,
            **values,
        },
    )
    letter = Letter(
        kind=kind,
        case=case.id,
        language=template.language,
        recipient=case.mail,
        subject=rendered.subject[:300],
        body=rendered.body,
        agent=by or archive.agent,
        queued_at=archive.clock(),
    )
    letter_rows.add(connection, letter)


_DECISION_TEXTS = {
    "en": {
        Decision.NO_ACTION: "the page stays as it is.",
        Decision.WARNING: "a warning is now shown above the page.",
        Audience.EVERYONE: "access to the page is now closed.",
        Audience.PUBLIC: "the page can now be viewed in the reading room only.",
    },
    "nl": {
        Decision.NO_ACTION: "de pagina blijft zoals die is.",
        Decision.WARNING: "boven de pagina staat nu een waarschuwing.",
        Audience.EVERYONE: "de toegang tot de pagina is nu gesloten.",
        Audience.PUBLIC: "de pagina is nu alleen nog in de leeszaal te raadplegen.",
    },
    "de": {
        Decision.NO_ACTION: "Die Seite bleibt, wie sie ist.",
        Decision.WARNING: "Über der Seite steht jetzt ein Warnhinweis.",
        Audience.EVERYONE: "Der Zugang zu der Seite ist jetzt geschlossen.",
        Audience.PUBLIC: "Die Seite ist jetzt nur noch im Lesesaal einsehbar.",
    },
}


def _decision_text(case: Case, ruling: Ruling) -> str:
    """The decision in the language of the letter."""
    return _DECISION_TEXTS[case.language][
        ruling.audience if ruling.decision is Decision.CLOSED else ruling.decision
    ]


def _checked_reason(text: str) -> str:
    if not text.strip():
        raise InputError(said("say_why", "Give a reason."))
    return text.strip()[:LONGEST_TEXT]
