"""Does a site belong in the collection? Each criterion is a question with an answer and a reason.

Criteria are data, not code: an institution's own list replaces `DEFAULT`. Each has a kind of answer, a
weight, and the roles that may answer it. The verdict:

1. reject if a required criterion is answered with no,
2. open (pass) while a required criterion is not answered,
3. points are weight x answer (no 0, yes 1, a scale 0 to 1), summed over the others; accept if they are
   enough,
4. reject if all are answered and the points are too few; otherwise open.

Answers are stored with the question as it was asked, so that an old judgement can still be read after the
list has changed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, delete, func, insert, select

from webdepot.accounts.roles import Role
from webdepot.errors import InputError
from webdepot.model import Answer, TargetId, Verdict
from webdepot.reasons import Reason, said
from webdepot.selection.tables import criteria, criterion_answers

SCALE = 4
"""A scale goes from 0 to this."""
MOST_CRITERIA = 40
_CODE = re.compile(r"[a-z0-9][a-z0-9-]{0,59}\Z")
_JUDGES = frozenset(Role) - {Role.READER}


class AnswerKind(StrEnum):
    """The form of an answer."""

    YES_NO = "yes-no"
    SCALE = "scale"
    TEXT = "text"
    """Text only; it gives no points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    code: str
    question: str
    kind: AnswerKind = AnswerKind.YES_NO
    weight: float = 1.0
    required: bool = False
    roles: frozenset[Role] = _JUDGES
    """Who may answer it."""

    @property
    def is_default(self) -> bool:
        """Whether it is an unchanged default question; the web interface has translations of these."""
        question = (self.code, self.question)
        return question in _EARLIER or any((each.code, each.question) == question for each in DEFAULT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A person's answer to one criterion."""

    criterion: str
    value: float = 0.0
    """0 for no to 1 for yes."""
    words: str = ""
    """The answer itself if it is a text."""
    reason: str
    question: str = ""
    agent: str = ""
    at: datetime | None = None

    @property
    def is_yes(self) -> bool:
        return self.value >= 0.5


DEFAULT = (
    Criterion(
        code="national",
        question="Does it belong to the national domain in the broad sense "
        "(country, language, subject or creator)?",
        required=True,
    ),
    Criterion(code="scholarly", question="Does it have scholarly content?"),
    Criterion(code="cultural", question="Does it have cultural content?"),
    Criterion(code="innovative", question="Is it innovative in form or use?"),
    Criterion(code="public-act", question="Is it a record of public acts?"),
)
_EARLIER = frozenset(
    {
        (
            "national",
            "Does it belong to the national domain in the wide sense (country, language, subject or maker)?",
        ),
        ("scholarly", "Has it scholarly content?"),
        ("cultural", "Has it cultural content?"),
    }
)
"""Earlier wordings of default questions, which an institution may have saved in its list."""


def judge(
    judgements: Sequence[Judgement], asked: Sequence[Criterion] = DEFAULT, *, points_needed: float = 1.0
) -> Verdict:
    """The verdict on all answers; it names the criterion that decided."""
    given: Mapping[str, Judgement] = {judgement.criterion: judgement for judgement in judgements}
    required = [criterion for criterion in asked if criterion.required]
    for criterion in required:
        answer = given.get(criterion.code)
        if answer is not None and criterion.kind is not AnswerKind.TEXT and not answer.is_yes:
            return Verdict(answer=Answer.REJECT, rule=criterion.code, reason=answer.reason)
    missing = [criterion.code for criterion in required if criterion.code not in given]
    if missing:
        return Verdict(answer=Answer.PASS, rule=missing[0], reason=_open(missing))
    others = [
        criterion for criterion in asked if not criterion.required and criterion.kind is not AnswerKind.TEXT
    ]
    points = {
        criterion.code: criterion.weight * given[criterion.code].value
        for criterion in others
        if criterion.code in given
    }
    # Fractions of a scale are not exact in binary; allow for the rounding error.
    if sum(points.values()) >= points_needed - 1e-9 and (points or not others):
        best = max(points, key=lambda code: points[code], default="required")
        return Verdict(
            answer=Answer.ACCEPT,
            rule=best,
            reason=given[best].reason
            if best in given
            else said("required_met", "all required criteria are met"),
        )
    still_open = [criterion.code for criterion in others if criterion.code not in given]
    if still_open:
        return Verdict(answer=Answer.PASS, rule=still_open[0], reason=_open(still_open))
    return Verdict(answer=Answer.REJECT, rule="none", reason=said("too_few", "too few criteria are met"))


def _open(codes: Sequence[str]) -> Reason:
    return said("not_answered", "not answered yet: {codes}", codes=", ".join(codes))


def checked(criterion: Criterion) -> Criterion:
    """The criterion unchanged; InputError if it cannot be used."""
    if not _CODE.match(criterion.code):
        raise InputError(f"{criterion.code[:60]!r} is not a code for a criterion. Use a-z, 0-9 and hyphens.")
    if not criterion.question.strip() or len(criterion.question) > 500:
        raise InputError(f"The criterion {criterion.code} needs a question of up to 500 characters.")
    if not 0 <= criterion.weight <= 100:
        raise InputError(f"The weight of {criterion.code} must be between 0 and 100.")
    if not criterion.roles:
        raise InputError(f"Nobody may answer {criterion.code}. Name at least one role.")
    return criterion


def every(connection: Connection) -> tuple[Criterion, ...]:
    """The institution's list, or the default list."""
    rows = connection.execute(select(criteria).order_by(criteria.c.position, criteria.c.id)).all()
    listed = tuple(
        Criterion(
            code=row.code,
            question=row.question,
            kind=AnswerKind(row.kind),
            weight=row.weight,
            required=bool(row.required),
            roles=frozenset(map(Role, row.roles)),
        )
        for row in rows
    )
    return listed or DEFAULT


def replace_all(connection: Connection, wanted: Sequence[Criterion]) -> None:
    """Replace the list. Answers to the old list are kept."""
    if not 1 <= len(wanted) <= MOST_CRITERIA:
        raise InputError(f"A list must have 1 to {MOST_CRITERIA} criteria.")
    if len({criterion.code for criterion in wanted}) < len(wanted):
        raise InputError("Two criteria have the same code. Give each its own.")
    connection.execute(delete(criteria))
    for position, criterion in enumerate(map(checked, wanted)):
        connection.execute(
            insert(criteria).values(
                code=criterion.code,
                question=criterion.question.strip(),
                kind=criterion.kind.value,
                weight=criterion.weight,
                required=criterion.required,
                roles=sorted(criterion.roles),
                position=position,
            )
        )


def keep(connection: Connection, target: TargetId, judgement: Judgement) -> None:
    """Store an answer with its author and date. Earlier answers to the same criterion are kept."""
    connection.execute(
        insert(criterion_answers).values(
            target=target,
            criterion=judgement.criterion,
            question=judgement.question,
            value=judgement.value,
            words=judgement.words,
            reason=judgement.reason,
            agent=judgement.agent,
            at=judgement.at,
        )
    )


def given_for(connection: Connection, target: TargetId) -> list[Judgement]:
    """The latest answer of a target to each criterion."""
    newest = (
        select(func.max(criterion_answers.c.id))
        .where(criterion_answers.c.target == target)
        .group_by(criterion_answers.c.criterion)
    )
    rows = connection.execute(
        select(criterion_answers)
        .where(criterion_answers.c.id.in_(newest.scalar_subquery()))
        .order_by(criterion_answers.c.id)
    )
    return [
        Judgement(
            criterion=row.criterion,
            value=row.value,
            words=row.words,
            reason=row.reason,
            question=row.question,
            agent=row.agent,
            at=row.at,
        )
        for row in rows
    ]
