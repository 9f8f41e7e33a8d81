"""The selection criteria: the list of questions, a target's answers to them, and the verdict they give."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from sqlalchemy import Connection

from webdepot.accounts.accounts import Person
from webdepot.archive import Archive
from webdepot.errors import InputError, NotPermitted
from webdepot.model import Answer, TargetId, Verdict
from webdepot.provenance import append, difference
from webdepot.reasons import Reason, said
from webdepot.selection import criteria, target_verdicts, targets
from webdepot.selection.criteria import AnswerKind, Criterion, Judgement
from webdepot.selection.states import TARGET, TargetState
from webdepot.selection.targets import LONGEST_NOTE
from webdepot.services.selection import targets as targets_service


@dataclass(frozen=True, slots=True, kw_only=True)
class CriteriaResult:
    """The criteria, a target's answers to them, and the resulting verdict."""

    asked: Sequence[Criterion]
    given: Mapping[str, Judgement]
    """Answers by the code of the criterion."""
    verdict: Verdict
    points: float
    points_needed: float


def criteria_of(archive: Archive) -> Sequence[Criterion]:
    with archive.database.reading() as connection:
        return criteria.every(connection)


def set_criteria(archive: Archive, wanted: Sequence[Criterion], *, by: str = "") -> None:
    """Replace the list of criteria; earlier answers stay readable."""
    with archive.database.transaction() as connection:
        before = criteria.every(connection)
        criteria.replace_all(connection, wanted)
        detail = difference(_criteria_detail(before), _criteria_detail(wanted))
        append(connection, archive.event("changed", "criteria", "criteria", by=by, detail=detail))


def _criteria_detail(several: Sequence[Criterion]) -> dict[str, object]:
    return {
        criterion.code: {
            **asdict(criterion),
            "kind": criterion.kind.value,
            "roles": sorted(criterion.roles),
        }
        for criterion in several
    }


def criteria_result(archive: Archive, target: TargetId) -> CriteriaResult:
    with archive.database.reading() as connection:
        return _criteria_result(connection, archive, target)


def _criteria_result(connection: Connection, archive: Archive, target: TargetId) -> CriteriaResult:
    questions, answers = criteria.every(connection), criteria.given_for(connection, target)
    needed = archive.config.selection.points_needed
    given = {judgement.criterion: judgement for judgement in answers}
    points = sum(
        criterion.weight * given[criterion.code].value
        for criterion in questions
        if not criterion.required and criterion.code in given
    )
    verdict = criteria.judge(answers, questions, points_needed=needed)
    return CriteriaResult(asked=questions, given=given, verdict=verdict, points=points, points_needed=needed)


def answer(
    archive: Archive, target: TargetId, given: Sequence[Judgement], *, person: Person | None = None
) -> CriteriaResult:
    """Store answers to criteria, each with its reason; once the verdict is clear, the target is judged.

    `person` None means the person at the command line. NotPermitted if the person's roles may not answer a
    criterion.
    """
    with archive.database.transaction() as connection:
        return answer_in(connection, archive, target, given, person=person)


def answer_in(
    connection: Connection,
    archive: Archive,
    target: TargetId,
    given: Sequence[Judgement],
    *,
    person: Person | None = None,
) -> CriteriaResult:
    """As `answer`, in the caller's transaction."""
    agent = person.name if person else archive.agent
    dossier = targets.dossier_of(connection, target)
    TARGET.after(dossier.state, "judge", targets.named(dossier))
    before = criteria.given_for(connection, target)
    _store_answers(connection, archive, target, given, person=person, agent=agent)
    result = _criteria_result(connection, archive, target)
    detail = {
        "before": {each.criterion: each.words or each.value for each in before},
        "after": {code: each.words or each.value for code, each in result.given.items()},
    }
    message = result.verdict.reason
    append(
        connection,
        archive.event("answered criteria", "target", str(target), by=agent, message=message, detail=detail),
    )
    if result.verdict.answer is not Answer.PASS:
        now = archive.clock()
        target_verdicts.keep_verdict(
            connection, target, "belongs in the collection", result.verdict, agent=agent, now=now
        )
        if dossier.state is not TargetState.JUDGED:
            targets_service.step(
                connection, archive, dossier, "judge", by=agent, reason=_judgement(result.verdict)
            )
    return result


def _store_answers(
    connection: Connection,
    archive: Archive,
    target: TargetId,
    given: Sequence[Judgement],
    *,
    person: Person | None,
    agent: str,
) -> None:
    by_code = {criterion.code: criterion for criterion in criteria.every(connection)}
    for judgement in given:
        criterion = by_code.get(judgement.criterion)
        if criterion is None:
            raise InputError(
                f"There is no criterion {judgement.criterion[:60]!r}. Known: {', '.join(by_code)}."
            )
        if person is not None and not person.roles & criterion.roles:
            raise NotPermitted(f"Only {', '.join(sorted(criterion.roles))} may answer {criterion.code!r}.")
        checked = _checked(judgement, criterion)
        signed = replace(checked, question=criterion.question, agent=agent, at=archive.clock())
        criteria.keep(connection, target, signed)


def _judgement(verdict: Verdict) -> Reason:
    if verdict:
        return said("judged_accept", "fits the collection: {reason}", reason=verdict.reason)
    return said("judged_reject", "does not fit the collection: {reason}", reason=verdict.reason)


def _question(criterion: Criterion) -> str:
    """The question, so that pages show those of the program in the reader's language."""
    if not criterion.is_default:
        return criterion.question
    return said(f"criteria.default_{criterion.code.replace('-', '_')}", criterion.question)


def _checked(given: Judgement, criterion: Criterion) -> Judgement:
    reason = given.reason.strip()
    if not reason or len(reason) > LONGEST_NOTE:
        raise InputError(
            said(
                "answer_needs_reason",
                "The answer to “{question}” needs a reason. Write one.",
                question=_question(criterion),
            )
        )
    if criterion.kind is AnswerKind.TEXT and not given.words.strip():
        raise InputError(
            said(
                "answered_in_words",
                "The answer to “{question}” must be a text.",
                question=_question(criterion),
            )
        )
    if not 0 <= given.value <= 1:
        raise InputError(f"The answer to {criterion.code!r} must be between 0 (no) and 1 (yes).")
    value = 0.0 if criterion.kind is AnswerKind.TEXT else given.value
    return Judgement(
        criterion=given.criterion, value=value, words=given.words.strip()[:LONGEST_NOTE], reason=reason
    )
