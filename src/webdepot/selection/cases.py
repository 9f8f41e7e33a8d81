"""Cases: complaints about pages that are shown, from the public form to the decision, as a state table and
rows.

A decision is carried out by access rules. A case stores their numbers, so that lifting the decision removes
exactly these.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from webdepot.errors import Conflict, NotFound
from webdepot.reasons import said
from webdepot.selection.tables import cases
from webdepot.states import Machine, Step

ROWS = 50
_LETTERS = "23456789BCDFGHJKLMNPQRSTVWXZ"
"""No vowels and no similar characters: references are read out on the telephone."""


class CaseState(StrEnum):
    RECEIVED = "received"
    IN_HAND = "in hand"
    DECIDED = "decided"
    LIFTED = "lifted"
    DROPPED = "dropped"


class Who(StrEnum):
    """Who complains."""

    RIGHTS_HOLDER = "rights holder"
    PERSON = "person concerned"
    OWNER = "site owner"
    AUTHORITY = "authority"
    OTHER = "other"


class Objection(StrEnum):
    COPYRIGHT = "copyright"
    PRIVACY = "privacy"
    PORTRAIT = "portrait"
    UNLAWFUL = "unlawful content"
    ERROR = "wrong or misleading"
    BROKEN = "looks broken"
    """The archived page does not look as it should: a fault of the archive, not of its content."""
    OTHER = "other"


class Decision(StrEnum):
    NO_ACTION = "no action"
    WARNING = "warning"
    CLOSED = "closed"


_C = CaseState
CASE = Machine(
    noun="case",
    steps=(
        Step(
            act="receive",
            before=(),
            after=_C.RECEIVED,
            meaning="The public form was sent, or staff recorded a letter.",
        ),
        Step(act="take", before=(_C.RECEIVED,), after=_C.IN_HAND, meaning="A person works on it."),
        Step(
            act="decide",
            before=(_C.RECEIVED, _C.IN_HAND),
            after=_C.DECIDED,
            meaning="No action, a warning above the page, or closed; "
            "access rules take effect at once and a letter is sent.",
        ),
        Step(
            act="drop",
            before=(_C.RECEIVED, _C.IN_HAND),
            after=_C.DROPPED,
            meaning="It is not a complaint: advertising, or a mistake.",
        ),
        Step(
            act="lift",
            before=(_C.DECIDED,),
            after=_C.LIFTED,
            meaning="The reason no longer applies: the access rules of the decision are removed.",
        ),
        Step(
            act="reopen",
            before=(_C.DECIDED, _C.LIFTED, _C.DROPPED),
            after=_C.IN_HAND,
            meaning="It is examined again. Closed pages stay closed until the new decision.",
        ),
    ),
    meanings={
        _C.RECEIVED: "not examined yet",
        _C.IN_HAND: "a person is working on it",
        _C.DECIDED: "decided; its access rules are in force",
        _C.LIFTED: "decided, and the decision was lifted",
        _C.DROPPED: "not a complaint",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    id: int = 0
    reference: str = ""
    state: CaseState = CaseState.RECEIVED
    since: datetime
    host: str
    url: str
    captured_at: str = ""
    """Timestamp of the version it is about; empty for all versions."""
    who: Who
    ground: Objection
    words: str
    name: str = ""
    mail: str = ""
    language: str = "en"
    origin: str = "public"
    created_at: datetime
    handled_by: str = ""
    decision: Decision | None = None
    decision_words: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Scope, area, period and audience of the decision."""
    rules: tuple[int, ...] = ()


def add(connection: Connection, case: Case) -> Case:
    """Store a new case under a new reference."""
    CASE.after(None, "receive", "A case")
    values = {
        "reference": f"C-{case.created_at:%Y}-{''.join(secrets.choice(_LETTERS) for _ in range(6))}",
        "state": CaseState.RECEIVED.value,
        "state_since": case.created_at,
        "host": case.host[:255],
        "url": case.url,
        "captured_at": case.captured_at,
        "who": case.who.value,
        "ground": case.ground.value,
        "words": case.words,
        "name": case.name,
        "mail": case.mail,
        "language": case.language,
        "origin": case.origin,
        "created_at": case.created_at,
        "handled_by": "",
        "decision": "",
        "decision_words": "",
        "detail": {},
        "rules": [],
    }
    return _case(connection.execute(insert(cases).values(**values).returning(*cases.c)).mappings().one())


def move(connection: Connection, case: Case, act: str, *, now: datetime, **values: object) -> Case:
    """Take one step; Conflict if `CASE` does not allow it, or another person changed the case first."""
    after = CASE.after(case.state, act, f"Case {case.reference}")
    chosen = update(cases).where(cases.c.id == case.id, cases.c.state == case.state.value)
    row = (
        connection.execute(chosen.values(state=after.value, state_since=now, **values).returning(*cases.c))
        .mappings()
        .one_or_none()
    )
    if row is None:
        raise Conflict(f"Case {case.reference} was changed by another person. Reload it and try again.")
    return _case(row)


def get(connection: Connection, which: str) -> Case:
    """The case with this number or reference."""
    where = (
        cases.c.id == int(which)
        if which.isascii() and which.isdigit() and len(which) < 10
        else cases.c.reference == which.upper()
    )
    row = connection.execute(select(cases).where(where)).mappings().one_or_none()
    if row is None:
        raise NotFound(
            said("missing_case", "There is no case {case}. List them: webdepot case list", case=which[:40])
        )
    return _case(row)


def listing(
    connection: Connection, *, state: CaseState | None, host: str = "", page: int = 1
) -> tuple[list[Case], int]:
    """One page of cases and how many there are; open ones longest waiting first, others newest first."""
    where = [cases.c.state == state.value] if state else []
    where += [cases.c.host == host] if host else []
    total = connection.execute(select(func.count()).select_from(cases).where(*where)).scalar_one()
    order = (
        (cases.c.state_since, cases.c.id)
        if state in (CaseState.RECEIVED, CaseState.IN_HAND)
        else (cases.c.state_since.desc(), cases.c.id.desc())
    )
    rows = connection.execute(
        select(cases).where(*where).order_by(*order).limit(ROWS).offset((max(page, 1) - 1) * ROWS)
    )
    return [_case(row) for row in rows.mappings()], total


def past(
    connection: Connection, *, state: CaseState | None, host: str = "", last: int | None = None, limit: int
) -> list[Case]:
    """The next cases, newest first, after the one with the number `last`."""
    where = [cases.c.state == state.value] if state else []
    where += [cases.c.host == host] if host else []
    where += [cases.c.id < last] if last is not None else []
    chosen = select(cases).where(*where).order_by(cases.c.id.desc()).limit(limit)
    return [_case(row) for row in connection.execute(chosen).mappings()]


def counts(connection: Connection) -> Mapping[CaseState, int]:
    """How many cases are in each state."""
    numbers = {
        row[0]: row[1]
        for row in connection.execute(select(cases.c.state, func.count()).group_by(cases.c.state))
    }
    return {state: numbers.get(state.value, 0) for state in CaseState}


def of_same_host(connection: Connection, case: Case, *, limit: int = 20) -> Sequence[Case]:
    """Other cases about the same host, newest first."""
    chosen = (
        select(cases)
        .where(cases.c.host == case.host, cases.c.id != case.id)
        .order_by(cases.c.id.desc())
        .limit(limit)
    )
    return [_case(row) for row in connection.execute(chosen).mappings()]


def _case(row: RowMapping) -> Case:
    names = (
        "id",
        "reference",
        "host",
        "url",
        "captured_at",
        "words",
        "name",
        "mail",
        "language",
        "origin",
        "created_at",
        "handled_by",
    )
    return Case(
        state=CaseState(row["state"]),
        since=row["state_since"],
        who=Who(row["who"]),
        ground=Objection(row["ground"]),
        decision=Decision(row["decision"]) if row["decision"] else None,
        decision_words=row["decision_words"],
        detail=row["detail"],
        rules=tuple(row["rules"]),
        **{name: row[name] for name in names},
    )
