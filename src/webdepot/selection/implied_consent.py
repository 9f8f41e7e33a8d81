"""When the owner's silence counts as consent. Nothing else decides it: the gate, the periodic run and the
pages all call `implied_consent`.
"""

from dataclasses import dataclass
from datetime import date, timedelta

from webdepot.reasons import said
from webdepot.selection.permission_basis import Ground, PermissionBasis
from webdepot.selection.states import LetterState, TargetState

ON_THE_LIST = frozenset({TargetState.SELECTED, TargetState.ASKED, TargetState.CLEARED})
"""States of a target that is on the selection list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What the gate needs to know about a letter to the owner."""

    state: LetterState
    term_ends_on: date | None = None
    """The deadline: the last day on which the owner can refuse. None before the letter is sent."""


def deadline_of(sent_on: date, days: int) -> date:
    """The last day on which the owner can refuse."""
    return sent_on + timedelta(days=days)


def silence_counts_from(deadline: date) -> date:
    """The first day on which silence counts as consent: the day after the deadline."""
    return deadline + timedelta(days=1)


def implied_consent(state: TargetState, notice: Notice, today: date) -> PermissionBasis | None:
    """The ground that the owner's silence gives; None if there is none.

    The letter was sent and not answered, the deadline has passed, and the target is still on the selection
    list. Once this ground is recorded the letter is `silent` and the ground exists on its own, so that it can
    also be withdrawn.
    """
    if state not in ON_THE_LIST or notice.state is not LetterState.SENT or notice.term_ends_on is None:
        return None
    since = silence_counts_from(notice.term_ends_on)
    if today < since:
        return None
    reason = said("silence", "no answer by {day}", day=notice.term_ends_on)
    return PermissionBasis(ground=Ground.IMPLIED_CONSENT, since=since, reason=reason)
