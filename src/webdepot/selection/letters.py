"""Letters in the database: written, waiting, sent, answered. Rows are moved along `states.LETTER` and never
removed.

An owner answers through a secret address in the letter. Only a hash of its token is kept, and the kept text
of the letter leaves it out: whoever reads the database, or the history in the portal, cannot answer for the
owner.
"""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Connection, Row, func, insert, select, update

from webdepot.errors import NotFound
from webdepot.model import TargetId
from webdepot.selection.permission import Notice
from webdepot.selection.states import LETTER, LetterState
from webdepot.selection.tables import letters
from webdepot.selection.templates import LetterKind

ROWS = 50
TOKEN_HIDDEN = "…"  # noqa: S105 - stands where the token stood
MOST_TRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    id: int = 0
    kind: LetterKind
    target: TargetId | None = None
    case: int | None = None
    about: int | None = None
    """The letter that this one reminds of."""
    state: LetterState = LetterState.QUEUED
    language: str
    recipient: str
    subject: str
    body: str
    token_hash: str = ""
    term_days: int = 0
    term_ends_on: date | None = None
    remind_on: date | None = None
    """The day of the reminder; None where there is none, or it was written."""
    message_id: str = ""
    error: str = ""
    tries: int = 0
    agent: str
    queued_at: datetime
    sent_at: datetime | None = None

    @property
    def reference(self) -> str:
        return f"L-{self.id}"


def new_token() -> str:
    return secrets.token_urlsafe(24)


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def add(connection: Connection, letter: Letter) -> Letter:
    """Keep a letter that waits to be sent."""
    state = LETTER.after(None, "queue", "A letter")
    values = {
        "kind": letter.kind.value,
        "target": letter.target,
        "case": letter.case,
        "about": letter.about,
        "state": state.value,
        "language": letter.language,
        "recipient": letter.recipient,
        "subject": letter.subject,
        "body": letter.body,
        "token_hash": letter.token_hash,
        "term_days": letter.term_days,
        "term_ends_on": _text(letter.term_ends_on),
        "remind_on": _text(letter.remind_on),
        "message_id": "",
        "error": "",
        "tries": 0,
        "agent": letter.agent[:200],
        "queued_at": letter.queued_at,
    }
    return _letter(connection.execute(insert(letters).values(**values).returning(*letters.c)).one())


def move(connection: Connection, letter: Letter, act: str, **values: object) -> Letter:
    """One step; Conflict when the table has no such row."""
    after = LETTER.after(letter.state, act, f"Letter {letter.id} to {letter.recipient}")
    kept = {
        name: _text(value) if isinstance(value, date) and not isinstance(value, datetime) else value
        for name, value in values.items()
    }
    row = connection.execute(
        update(letters)
        .where(letters.c.id == letter.id)
        .values(state=after.value, **kept)
        .returning(*letters.c)
    ).one()
    return _letter(row)


def set_body(connection: Connection, letter: Letter, subject: str, body: str) -> None:
    connection.execute(update(letters).where(letters.c.id == letter.id).values(subject=subject, body=body))


def reminded(connection: Connection, letter: Letter) -> None:
    """Its reminder is written: exactly one goes out."""
    connection.execute(update(letters).where(letters.c.id == letter.id).values(remind_on=""))


def get(connection: Connection, number: int) -> Letter:
    row = connection.execute(select(letters).where(letters.c.id == number)).one_or_none()
    if row is None:
        raise NotFound(f"There is no letter {number}.")
    return _letter(row)


def find_by_token(connection: Connection, token: str) -> Letter | None:
    row = connection.execute(select(letters).where(letters.c.token_hash == hash_of(token))).one_or_none()
    return _letter(row) if row is not None else None


def of_target(connection: Connection, target: TargetId) -> list[Letter]:
    """Newest first."""
    return [
        _letter(row)
        for row in connection.execute(
            select(letters).where(letters.c.target == target).order_by(letters.c.id.desc())
        )
    ]


def of_case(connection: Connection, case: int) -> list[Letter]:
    return [
        _letter(row)
        for row in connection.execute(
            select(letters).where(letters.c.case == case).order_by(letters.c.id.desc())
        )
    ]


def notices(connection: Connection, target: TargetId) -> list[Notice]:
    """What the gate needs to know; the newest first."""
    return [
        Notice(state=letter.state, term_ends_on=letter.term_ends_on)
        for letter in of_target(connection, target)
        if letter.kind is LetterKind.NOTICE
    ]


def waiting(connection: Connection, *, limit: int) -> list[Letter]:
    """Letters to be sent now, the oldest first; what failed too often waits for a person."""
    states = (LetterState.QUEUED.value, LetterState.FAILED.value)
    chosen = (
        select(letters)
        .where(letters.c.state.in_(states), letters.c.tries < MOST_TRIES)
        .order_by(letters.c.tries, letters.c.id)
    )
    return [_letter(row) for row in connection.execute(chosen.limit(limit))]


def to_remind(connection: Connection, today: date) -> list[Letter]:
    """Notices whose reminder is due and whose term still runs."""
    chosen = select(letters).where(
        letters.c.state == LetterState.SENT.value,
        letters.c.kind == LetterKind.NOTICE.value,
        letters.c.remind_on != "",
        letters.c.remind_on <= today.isoformat(),
        letters.c.term_ends_on >= today.isoformat(),
    )
    return [_letter(row) for row in connection.execute(chosen.order_by(letters.c.id))]


def past_term(connection: Connection, today: date, target: TargetId | None = None) -> list[Letter]:
    """Notices whose term is over without an answer."""
    chosen = select(letters).where(
        letters.c.state == LetterState.SENT.value,
        letters.c.kind == LetterKind.NOTICE.value,
        letters.c.term_ends_on != "",
        letters.c.term_ends_on < today.isoformat(),
    )
    if target is not None:
        chosen = chosen.where(letters.c.target == target)
    return [_letter(row) for row in connection.execute(chosen.order_by(letters.c.id))]


def listing(connection: Connection, state: LetterState | None, page: int) -> tuple[list[Letter], int]:
    """A page of all letters, the newest first, and how many there are."""
    where = [letters.c.state == state.value] if state else []
    total = connection.execute(select(func.count()).select_from(letters).where(*where)).scalar_one()
    rows = connection.execute(
        select(letters)
        .where(*where)
        .order_by(letters.c.queued_at.desc(), letters.c.id.desc())
        .limit(ROWS)
        .offset((max(page, 1) - 1) * ROWS)
    )
    return [_letter(row) for row in rows], total


def counts(connection: Connection) -> dict[LetterState, int]:
    rows = {
        row[0]: row[1]
        for row in connection.execute(select(letters.c.state, func.count()).group_by(letters.c.state))
    }
    return {state: rows.get(state.value, 0) for state in LetterState}


def already_asked(connection: Connection, targets: Sequence[TargetId]) -> Iterator[TargetId]:
    """Of these, those with a notice that waits or whose term runs."""
    busy = (LetterState.QUEUED.value, LetterState.FAILED.value, LetterState.SENT.value)
    for start in range(0, len(targets), 500):
        part = targets[start : start + 500]
        chosen = select(letters.c.target).where(
            letters.c.target.in_(part), letters.c.kind == LetterKind.NOTICE.value, letters.c.state.in_(busy)
        )
        yield from (TargetId(number) for number in connection.execute(chosen.distinct()).scalars())


def _text(day: date | None) -> str:
    return day.isoformat() if day else ""


def _letter(row: Row[tuple[object, ...]]) -> Letter:
    got = row._mapping
    names = (
        "id",
        "case",
        "about",
        "language",
        "recipient",
        "subject",
        "body",
        "token_hash",
        "term_days",
        "message_id",
        "error",
        "tries",
        "agent",
    )
    return Letter(
        kind=LetterKind(got["kind"]),
        target=TargetId(got["target"]) if got["target"] is not None else None,
        state=LetterState(got["state"]),
        term_ends_on=date.fromisoformat(got["term_ends_on"]) if got["term_ends_on"] else None,
        remind_on=date.fromisoformat(got["remind_on"]) if got["remind_on"] else None,
        queued_at=got["queued_at"],
        sent_at=got["sent_at"],
        **{name: got[name] for name in names},
    )
