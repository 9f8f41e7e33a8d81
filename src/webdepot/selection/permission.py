"""May a target be harvested? The one gate before every harvest.

A ground makes the harvest lawful: the owner's consent, silence after the opt-out deadline, or a ground that
needs no letter. A refusal closes the gate, whatever other grounds exist. Each ground carries its own name, so
that the verdict can be stored.

`gate` asks, in this order: is the target refused? is there a valid ground today? is it on the selection list?
If it may not be harvested, the verdict says what is missing: the judgement, the letter, the answer, or the
day on which the deadline has passed.

`implied_consent.py` decides when silence becomes consent.
"""

from collections.abc import Sequence
from datetime import date

from webdepot.model import Answer, Verdict
from webdepot.reasons import Reason, said
from webdepot.selection.implied_consent import ON_THE_LIST, Notice, implied_consent, silence_counts_from
from webdepot.selection.permission_basis import Ground, PermissionBasis
from webdepot.selection.states import LetterState, TargetState


def may_harvest(bases: Sequence[PermissionBasis], today: date) -> Verdict:
    """Whether these grounds allow a harvest today. The latest refusal overrides everything older; otherwise
    one valid ground is enough.
    """
    valid = [basis for basis in bases if basis.is_valid_on(today)]
    refusal = max(
        (basis for basis in valid if basis.ground is Ground.REFUSAL),
        key=lambda basis: basis.since,
        default=None,
    )
    for basis in sorted(valid, key=lambda basis: basis.since, reverse=True):
        if basis.ground is Ground.REFUSAL:
            continue
        if refusal is None or (basis.ground is Ground.CONSENT and basis.since > refusal.since):
            return Verdict(
                answer=Answer.ACCEPT,
                rule=basis.ground.value,
                reason=basis.reason or said("since", "since {day}", day=basis.since),
            )
    if refusal is not None:
        return Verdict(
            answer=Answer.REJECT,
            rule=Ground.REFUSAL.value,
            reason=refusal.reason or said("refused_on", "refused on {day}", day=refusal.since),
        )
    reason = said("no_ground", "no consent, no opt-out deadline that has passed, and no other ground")
    return Verdict(answer=Answer.REJECT, rule="no ground", reason=reason)


def gate(
    state: TargetState, bases: Sequence[PermissionBasis], notices: Sequence[Notice], today: date
) -> Verdict:
    """Whether a target may be harvested today and, if not, what is missing."""
    silences = [basis for notice in notices if (basis := implied_consent(state, notice, today)) is not None]
    verdict = may_harvest([*bases, *silences], today)
    is_operator = verdict.rule == Ground.OPERATOR.value
    if state is TargetState.REFUSED and verdict.rule != Ground.CONSENT.value:
        return Verdict(
            answer=Answer.REJECT,
            rule=Ground.REFUSAL.value,
            reason=verdict.reason
            if verdict.rule == Ground.REFUSAL.value
            else said("owner_refused", "the owner refused"),
        )
    if verdict and not is_operator and state not in ON_THE_LIST:
        return Verdict(answer=Answer.REJECT, rule="not selected", reason=_selection_missing(state))
    if verdict or verdict.rule == Ground.REFUSAL.value:
        return verdict
    return Verdict(answer=Answer.REJECT, rule=verdict.rule, reason=_missing(state, bases, notices, today))


_SELECTION_MISSING = {
    TargetState.SUGGESTED: "it has only been suggested; nominate it and judge it against the criteria",
    TargetState.NOMINATED: "it has only been nominated; judge it against the criteria and select it",
    TargetState.JUDGED: "it has been judged but not selected; select it",
    TargetState.PUT_OFF: "it has been put off; reopen it, then judge and select it",
    TargetState.REJECTED: "it has been rejected; reopen it, then judge and select it",
    TargetState.ENDED: "it has been ended; reopen it, then judge and select it",
    TargetState.IMPORTED: "it contains only imported containers; there is no site to harvest",
    TargetState.REFUSED: "the owner refused; it can be harvested only after the owner consents",
}


def _selection_missing(state: TargetState) -> Reason:
    return said(f"not_selected_{state.name.lower()}", _SELECTION_MISSING[state])


def _missing(
    state: TargetState, bases: Sequence[PermissionBasis], notices: Sequence[Notice], today: date
) -> Reason:
    if state not in ON_THE_LIST:
        return said("then_a_ground", "{what}; after that it needs a ground", what=_selection_missing(state))
    deadlines = [
        notice.term_ends_on
        for notice in notices
        if notice.state is LetterState.SENT and notice.term_ends_on is not None
    ]
    if deadlines:
        ends = max(deadlines)
        text = "the owner can refuse until {ends}; without an answer it may be harvested from {then}"
        return said("term_runs", text, ends=ends, then=silence_counts_from(ends))
    states = {notice.state for notice in notices}
    if states & {LetterState.QUEUED, LetterState.FAILED}:
        return said("letter_waits", "the letter to the owner has been written but not sent yet")
    ended = [basis for basis in bases if basis.until is not None and basis.until < today]
    if ended:
        text = "its ground ({ground}) ended on {day}; ask the owner again or record another ground"
        return said("ground_ended", text, ground=ended[-1].ground, day=ended[-1].until)
    if LetterState.UNDELIVERABLE in states:
        return said(
            "letter_back",
            "the letter to the owner was returned; find another address, "
            "or record a ground that needs no letter",
        )
    return said(
        "no_letter", "no letter has been sent to the owner, and no ground that needs no letter is recorded"
    )
