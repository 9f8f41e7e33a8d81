"""May a target be harvested? The one gate before every harvest (mission K3).

A ground makes the harvest lawful: an owner's consent, silence after the opt-out term, or a ground that needs
no letter. A refusal closes it, whatever else speaks for it. Grounds are values that name themselves, so that
the verdict can be kept.

`gate` asks, in this order: is it refused? does a ground hold today? is it on the selection list? And if not,
it says what is missing: the judgement, the letter, the answer, or the day on which the term is over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

from webdepot.model import Answer, Verdict
from webdepot.reasons import Reason, said
from webdepot.selection.states import LetterState, TargetState


class Ground(StrEnum):
    CONSENT = "consent"
    IMPLIED_CONSENT = "implied consent"
    GOVERNMENT_WORK = "government work without reservation"
    OPEN_LICENCE = "open licence"
    PUBLIC_DOMAIN = "public-domain statement"
    LAW = "legal deposit law"
    OPERATOR = "decision of the operator"
    """The person at the command line took the responsibility; recorded with their name."""
    REFUSAL = "refusal"


WITHOUT_LETTER = (
    Ground.CONSENT,
    Ground.GOVERNMENT_WORK,
    Ground.OPEN_LICENCE,
    Ground.PUBLIC_DOMAIN,
    Ground.LAW,
)
"""Grounds that a person records without a letter having gone out; consent then is an explicit opt-in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionBasis:
    """One ground with the day from which it counts and the day after which it ends."""

    ground: Ground
    since: date
    until: date | None = None
    reason: str = ""

    def holds_on(self, day: date) -> bool:
        return self.since <= day and (self.until is None or day <= self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What the gate needs to know of a letter."""

    state: LetterState
    term_ends_on: date | None = None

    def is_silence_on(self, day: date) -> bool:
        """Sent, not answered, and the term is over: the day after it counts as consent.

        Once that is recorded the letter is `silent` and its ground stands for itself, so that it can also be
        withdrawn.
        """
        return self.state is LetterState.SENT and self.term_ends_on is not None and day > self.term_ends_on


def may_harvest(bases: Sequence[PermissionBasis], today: date) -> Verdict:
    """The latest refusal wins over everything older; otherwise any ground that holds today is enough."""
    holding = [basis for basis in bases if basis.holds_on(today)]
    refusal = max(
        (basis for basis in holding if basis.ground is Ground.REFUSAL),
        key=lambda basis: basis.since,
        default=None,
    )
    for basis in sorted(holding, key=lambda basis: basis.since, reverse=True):
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
    """May it be harvested today, and if not, what is missing."""
    silences = [
        PermissionBasis(
            ground=Ground.IMPLIED_CONSENT,
            since=notice.term_ends_on + timedelta(days=1),
            reason=said("silence", "no answer by {day}", day=notice.term_ends_on),
        )
        for notice in notices
        if notice.is_silence_on(today) and notice.term_ends_on is not None
    ]
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
    if verdict and not is_operator and state not in _ON_THE_LIST:
        return Verdict(answer=Answer.REJECT, rule="not selected", reason=_selection_missing(state))
    if verdict or verdict.rule == Ground.REFUSAL.value:
        return verdict
    return Verdict(answer=Answer.REJECT, rule=verdict.rule, reason=_missing(state, bases, notices, today))


_ON_THE_LIST = frozenset({TargetState.SELECTED, TargetState.ASKED, TargetState.CLEARED})
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
    if state not in _ON_THE_LIST:
        return said("then_a_ground", "{what}; after that it needs a ground", what=_selection_missing(state))
    running = [
        notice for notice in notices if notice.state is LetterState.SENT and notice.term_ends_on is not None
    ]
    if running:
        ends = max(notice.term_ends_on for notice in running if notice.term_ends_on is not None)
        words = "the owner can refuse until {ends}; without an answer it may be harvested from {then}"
        return said("term_runs", words, ends=ends, then=ends + timedelta(days=1))
    states = {notice.state for notice in notices}
    if states & {LetterState.QUEUED, LetterState.FAILED}:
        return said("letter_waits", "the letter to the owner has been written but not sent yet")
    ended = [basis for basis in bases if basis.until is not None and basis.until < today]
    if ended:
        words = "its ground ({ground}) ended on {day}; ask the owner again or record another ground"
        return said("ground_ended", words, ground=ended[-1].ground, day=ended[-1].until)
    if LetterState.UNDELIVERABLE in states:
        return said(
            "letter_back",
            "the letter to the owner was returned; find another address, or record a ground that needs no letter",
        )
    return said(
        "no_letter", "no letter has been sent to the owner, and no ground that needs no letter is recorded"
    )
