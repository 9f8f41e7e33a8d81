"""Answering complaints (mission K4): the public form, the case, its decision, the letter; reopening and
lifting.

A decision becomes rules of access in the same transaction, so it holds on every surface with the next request
or not at all:

    warning       a text above the page
    closed        for the page alone, what begins like it, its host, or the host and all below it; for captures of a period or all;
                  for everyone, or for all but the reading room

Closing for all but the reading room refuses at the public and the partner access points. It never *opens*
anything: a page that an owner's refusal closes stays closed, whatever a case says.
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
from webdepot.selection import cases, letters, templates
from webdepot.selection.cases import CASE, Case, CaseState, Decision, Objection, Who
from webdepot.selection.letters import Letter
from webdepot.selection.templates import LetterKind
from webdepot.services.access import rules
from webdepot.services.permission import letters as letters_service
from webdepot.url import from_typed, host_of

LONGEST_WORDS = 5000
CLOSED_TEXT = "Access to this page is closed after an objection."


class Area(StrEnum):
    """What a decision is about."""

    PAGE = "page"
    PREFIX = "prefix"
    HOST = "host"
    DOMAIN = "domain"


class Audience(StrEnum):
    """For whom it is closed."""

    EVERYONE = "everyone"
    PUBLIC = "all but the reading room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What is decided about a case."""

    decision: Decision
    words: str = ""
    """The reason, for the letter; never shown above the page."""
    area: Area = Area.PAGE
    address: str = ""
    """What the area begins at; empty means the address of the case."""
    audience: Audience = Audience.EVERYONE
    captured_from: str = ""
    captured_to: str = ""
    public_text: str = ""
    """The warning, or what readers see instead of the page."""

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
    """A new case, with a letter that confirms it where a mail address is given. InputError names the field
    that is wrong.
    """
    address = from_typed(url)
    text = words.replace("\r\n", "\n").strip()
    if not text or len(text) > LONGEST_WORDS:
        raise InputError(
            said(
                "say_what_is_wrong",
                "Describe what is wrong with the page, in at most {most} characters.",
                most=LONGEST_WORDS,
            )
        )
    if captured_at and not (captured_at.isascii() and captured_at.isdigit() and len(captured_at) <= 14):
        raise InputError(f"{captured_at[:20]!r} is no timestamp.")
    if mail.strip():
        checked_address(mail)
    try:
        asker, objection = Who(who), Objection(ground)
    except ValueError:
        raise InputError(
            said("choose_objection", "Choose from the lists who you are and what the complaint is about.")
        ) from None
    now = archive.clock()
    draft = Case(
        since=now,
        host=host_of(address).removeprefix("www."),
        url=address[:4000],
        captured_at=captured_at,
        who=asker,
        ground=objection,
        words=text,
        name=" ".join(name.split())[:200],
        mail=mail.strip(),
        language=language if language in templates.LANGUAGES else "en",
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
            _event(archive, case, "received", by=by or "public form", message=case.url, detail=detail),
        )
        if case.mail:
            _write(connection, archive, case, LetterKind.RECEIVED, {"words": case.words}, by=by)
    return case


def take(archive: Archive, which: str, *, by: str = "") -> Case:
    """Somebody looks into it from now on."""
    return _moved(archive, which, "take", by=by, message="", handled_by=(by or archive.agent)[:200])


def drop(archive: Archive, which: str, *, by: str = "", reason: str) -> Case:
    """No objection at all; no letter goes out."""
    return _moved(archive, which, "drop", by=by, message=_reason(reason))


def note(archive: Archive, which: str, words: str, *, by: str = "") -> None:
    """What was found out, or said on the telephone."""
    with archive.database.transaction() as connection:
        told = _reason(words)
        append(
            connection,
            _event(
                archive,
                cases.get(connection, which),
                "noted",
                by=by,
                message=told,
                detail=difference({}, {"note": told}),
            ),
        )


def decide(archive: Archive, which: str, ruling_: Ruling, *, by: str = "") -> Case:
    """Decide a case: its rules of access hold at once, those of an earlier decision are taken back, and a
    letter is written.
    """
    now = archive.clock()
    if ruling_.decision is Decision.WARNING and not ruling_.public_text.strip():
        raise InputError(
            said("warning_needs_text", "A warning needs a text that readers see above the page.")
        )
    with archive.database.transaction() as connection:
        case = cases.get(connection, which)
        CASE.after(case.state, "decide", f"Case {case.reference}")
        _take_back(connection, archive, case, by=by)
        made = _rules(connection, archive, case, ruling_, by=by)
        decided = cases.move(
            connection,
            case,
            "decide",
            now=now,
            handled_by=(by or archive.agent)[:200],
            decision=ruling_.decision.value,
            decision_words=ruling_.words.strip()[:LONGEST_WORDS],
            detail=ruling_.as_dict(),
            rules=made,
        )
        detail = {
            "before": {"state": case.state.value, "decision": case.decision, "rules": list(case.rules)},
            "after": {
                "state": decided.state.value,
                "decision": decided.decision,
                "rules": made,
                **ruling_.as_dict(),
            },
        }
        append(
            connection,
            _event(
                archive,
                decided,
                "decided",
                by=by,
                message=said("decision", "{decision}", decision=ruling_.decision),
                detail=detail,
            ),
        )
        if decided.mail:
            values = {"decision": _in_words(decided, ruling_), "decision_words": decided.decision_words}
            _write(connection, archive, decided, LetterKind.DECIDED, values, by=by)
    return decided


def lift(archive: Archive, which: str, *, by: str = "", reason: str) -> Case:
    """The reason is gone: the rules of the decision are taken back at once."""
    with archive.database.transaction() as connection:
        case = cases.get(connection, which)
        moved = cases.move(connection, case, "lift", now=archive.clock(), rules=[])
        _take_back(connection, archive, case, by=by)
        detail = {
            "before": {"state": case.state.value, "rules": list(case.rules)},
            "after": {"state": moved.state.value, "rules": []},
        }
        append(connection, _event(archive, moved, "lifted", by=by, message=_reason(reason), detail=detail))
    return moved


def reopen(archive: Archive, which: str, *, by: str = "", reason: str) -> Case:
    """Look at it again. What was closed stays closed until the new decision."""
    return _moved(archive, which, "reopen", by=by, message=_reason(reason))


def get(archive: Archive, which: str) -> Case:
    with archive.database.reading() as connection:
        return cases.get(connection, which)


def listed(
    archive: Archive, *, state: CaseState | None = None, host: str = "", page: int = 1
) -> tuple[list[Case], int]:
    with archive.database.reading() as connection:
        return cases.listing(connection, state=state, host=host, page=page)


def counts(archive: Archive) -> Mapping[CaseState, int]:
    with archive.database.reading() as connection:
        return cases.counts(connection)


def same_host(archive: Archive, case: Case) -> Sequence[Case]:
    with archive.database.reading() as connection:
        return cases.of_same_host(connection, case)


def history(archive: Archive, case: Case) -> Sequence[Event]:
    """The newest first."""
    with archive.database.reading() as connection:
        return list(iter_of(connection, "case", str(case.id)))[::-1]


def letters_of(archive: Archive, case: Case) -> Sequence[Letter]:
    with archive.database.reading() as connection:
        return letters.of_case(connection, case.id)


def pattern_of(case: Case, ruling_: Ruling) -> str:
    """What the decision covers, as a pattern of `rules`."""
    address = from_typed(ruling_.address or case.url)
    host = host_of(address)
    path = address.partition("://")[2].removeprefix(host) or "/"
    match ruling_.area:
        case Area.PAGE:
            return f"{host}{path}"
        case Area.PREFIX:
            return f"{host}{path.rstrip('*')}*"
        case Area.HOST:
            return host
        case Area.DOMAIN:
            return f"*.{host.removeprefix('www.')}"


def _rules(connection: Connection, archive: Archive, case: Case, ruling_: Ruling, *, by: str) -> list[int]:
    if ruling_.decision is Decision.NO_ACTION:
        return []
    closes = ruling_.decision is Decision.CLOSED
    points = (
        (AccessPoint.PUBLIC, AccessPoint.PARTNER)
        if closes and ruling_.audience is Audience.PUBLIC
        else (None,)
    )
    made: list[int] = []
    for point in points:
        found = rules.add(
            archive,
            pattern_of(case, ruling_),
            answer=RuleAnswer.REFUSE if closes else RuleAnswer.WARN,
            captured_from=ruling_.captured_from,
            captured_to=ruling_.captured_to,
            access_point=point,
            public_text=" ".join(ruling_.public_text.split())[:1000] or CLOSED_TEXT,
            private_note=f"case {case.reference}",
            reason=case.ground.value,
            by=by,
            connection=connection,
        )
        made += [rule.id for rule in found]
    return made


def _take_back(connection: Connection, archive: Archive, case: Case, *, by: str) -> None:
    for number in case.rules:
        with suppress(NotFound):  # somebody took it back by hand
            rules.remove(archive, number, by=by, connection=connection)


def _moved(archive: Archive, which: str, act: str, *, by: str, message: str, **values: object) -> Case:
    with archive.database.transaction() as connection:
        case = cases.get(connection, which)
        moved = cases.move(connection, case, act, now=archive.clock(), **values)
        detail = {"before": {"state": case.state.value}, "after": {"state": moved.state.value}, "act": act}
        append(connection, _event(archive, moved, moved.state.value, by=by, message=message, detail=detail))
    return moved


def _write(
    connection: Connection,
    archive: Archive,
    case: Case,
    kind: LetterKind,
    values: Mapping[str, str],
    *,
    by: str,
) -> None:
    template = templates.get(connection, kind, case.language)
    rendered = templates.render(
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
    letters.add(connection, letter)


_WORDS = {
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


def _in_words(case: Case, ruling_: Ruling) -> str:
    """The decision in the language of the letter."""
    return _WORDS[case.language][
        ruling_.audience if ruling_.decision is Decision.CLOSED else ruling_.decision
    ]


def _reason(text: str) -> str:
    if not text.strip():
        raise InputError(said("say_why", "Give a reason."))
    return text.strip()[:LONGEST_WORDS]


def _event(
    archive: Archive,
    case: Case,
    action: str,
    *,
    by: str = "",
    message: str = "",
    detail: Mapping[str, object] | None = None,
) -> Event:
    return Event(
        at=archive.clock(),
        agent=(by or archive.agent)[:200],
        action=action,
        subject_kind="case",
        subject=str(case.id),
        message=message,
        detail=detail or {},
    )
