"""Letters in the database: queued, sent, answered. Their state changes as `states.LETTER` allows; rows are
never deleted.

An owner answers through a secret address in the letter. Only a hash of its token is stored, and the stored
text of the letter does not contain it. So a person who reads the database, or the history in the portal,
cannot answer for the owner.
"""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import Connection, Row, func, insert, or_, select, update

from webdepot.errors import NotFound
from webdepot.model import TargetId
from webdepot.reasons import said
from webdepot.selection.implied_consent import Notice
from webdepot.selection.letter_templates import LetterKind
from webdepot.selection.states import LETTER, LetterState
from webdepot.selection.tables import letters

ROWS = 50
TOKEN_HIDDEN = "…"  # noqa: S105 - replaces the token in the stored text
MOST_TRIES = 8
"""A letter that failed this often is not retried until a person acts."""
CLAIM_LASTS = timedelta(minutes=15)
"""Longer than a mail server may take to accept a letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    id: int = 0
    kind: LetterKind
    target: TargetId | None = None
    case: int | None = None
    about: int | None = None
    """The notice that this letter is a reminder of."""
    state: LetterState = LetterState.QUEUED
    language: str
    recipient: str
    subject: str
    body: str
    token_hash: str = ""
    term_days: int = 0
    term_ends_on: date | None = None
    remind_on: date | None = None
    """The day of the reminder; None if there is no reminder, or it has been written."""
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
    """Store a letter in the queue."""
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
    """Take one step; Conflict if `states.LETTER` does not allow it."""
    after = LETTER.after(letter.state, act, f"Letter {letter.id} to {letter.recipient}")
    kept = {
        name: _text(value) if isinstance(value, date) and not isinstance(value, datetime) else value
        for name, value in values.items()
    }
    row = connection.execute(
        update(letters)
        .where(letters.c.id == letter.id)
        .values(state=after.value, claimed_until=None, **kept)
        .returning(*letters.c)
    ).one()
    return _letter(row)


def claim(connection: Connection, letter: Letter, *, now: datetime) -> bool:
    """Reserve a waiting letter for the sender that asks; False if it is sent already or another one has it.
    A claim ends after `CLAIM_LASTS`, in case its sender was killed.
    """
    claimed = connection.execute(
        update(letters)
        .where(
            letters.c.id == letter.id,
            letters.c.state == letter.state.value,
            letters.c.tries == letter.tries,
            or_(letters.c.claimed_until.is_(None), letters.c.claimed_until <= now),
        )
        .values(claimed_until=now + CLAIM_LASTS)
        .returning(letters.c.id)
    )
    return claimed.first() is not None


def clear_reminder(connection: Connection, letter: Letter) -> None:
    """Note that the reminder has been written, so that only one is sent."""
    connection.execute(update(letters).where(letters.c.id == letter.id).values(remind_on=""))


def get(connection: Connection, number: int) -> Letter:
    row = connection.execute(select(letters).where(letters.c.id == number)).one_or_none()
    if row is None:
        raise NotFound(
            said(
                "missing_letter",
                "There is no letter {number}. List them: webdepot permission letters",
                number=str(number),
            )
        )
    return _letter(row)


def find_by_token(connection: Connection, token: str) -> Letter | None:
    row = connection.execute(select(letters).where(letters.c.token_hash == hash_of(token))).one_or_none()
    return _letter(row) if row is not None else None


def of_target(connection: Connection, target: TargetId) -> list[Letter]:
    """Letters about a target, newest first."""
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
    """What the gate needs to know about the notices of a target, newest first."""
    return [
        Notice(state=letter.state, term_ends_on=letter.term_ends_on)
        for letter in of_target(connection, target)
        if letter.kind is LetterKind.NOTICE
    ]


def waiting(connection: Connection, *, limit: int) -> list[Letter]:
    """Letters to send now, oldest first; without those that failed too often."""
    states = (LetterState.QUEUED.value, LetterState.FAILED.value)
    chosen = (
        select(letters)
        .where(letters.c.state.in_(states), letters.c.tries < MOST_TRIES)
        .order_by(letters.c.tries, letters.c.id)
    )
    return [_letter(row) for row in connection.execute(chosen.limit(limit))]


def to_remind(connection: Connection, today: date) -> list[Letter]:
    """Notices whose reminder is due and whose deadline has not passed."""
    chosen = select(letters).where(
        letters.c.state == LetterState.SENT.value,
        letters.c.kind == LetterKind.NOTICE.value,
        letters.c.remind_on != "",
        letters.c.remind_on <= today.isoformat(),
        letters.c.term_ends_on >= today.isoformat(),
    )
    return [_letter(row) for row in connection.execute(chosen.order_by(letters.c.id))]


def past_deadline(connection: Connection, today: date) -> list[Letter]:
    """Unanswered notices whose deadline has passed.

    This only narrows the rows by the index; what silence means is decided by `implied_consent`.
    """
    chosen = select(letters).where(
        letters.c.state == LetterState.SENT.value,
        letters.c.kind == LetterKind.NOTICE.value,
        letters.c.term_ends_on != "",
        letters.c.term_ends_on < today.isoformat(),
    )
    return [_letter(row) for row in connection.execute(chosen.order_by(letters.c.id))]


def listing(connection: Connection, state: LetterState | None, page: int) -> tuple[list[Letter], int]:
    """One page of all letters, newest first, and how many there are in total."""
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


def past(
    connection: Connection, state: LetterState | None, *, last: int | None = None, limit: int
) -> list[Letter]:
    """The next letters, newest first, after the one with the number `last`."""
    where = [letters.c.state == state.value] if state else []
    where += [letters.c.id < last] if last is not None else []
    chosen = select(letters).where(*where).order_by(letters.c.id.desc()).limit(limit)
    return [_letter(row) for row in connection.execute(chosen)]


def counts(connection: Connection) -> dict[LetterState, int]:
    rows = {
        row[0]: row[1]
        for row in connection.execute(select(letters.c.state, func.count()).group_by(letters.c.state))
    }
    return {state: rows.get(state.value, 0) for state in LetterState}


def already_asked(connection: Connection, targets: Sequence[TargetId]) -> Iterator[TargetId]:
    """Those of these targets that have a notice which is queued, or sent and not answered."""
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
    values = row._mapping
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
        kind=LetterKind(values["kind"]),
        target=TargetId(values["target"]) if values["target"] is not None else None,
        state=LetterState(values["state"]),
        term_ends_on=date.fromisoformat(values["term_ends_on"]) if values["term_ends_on"] else None,
        remind_on=date.fromisoformat(values["remind_on"]) if values["remind_on"] else None,
        queued_at=values["queued_at"],
        sent_at=values["sent_at"],
        **{name: values[name] for name in names},
    )
