"""The path of a target on its page: which steps it has taken, and the one step to take next.

    nominated ─ judged ─ selected ─ asked ─ cleared ─ harvested

A pure function of facts about the target. A site can be cleared without a letter, so "asked" may be skipped;
a site that was rejected, put off, refused or ended has no next step on the path.
"""

from dataclasses import dataclass
from enum import StrEnum

from webdepot.selection.states import TargetState

_S = TargetState
_AFTER_JUDGING = frozenset({_S.JUDGED, _S.SELECTED, _S.ASKED, _S.CLEARED})
_CHOSEN = frozenset({_S.SELECTED, _S.ASKED, _S.CLEARED})
_OFF_THE_PATH = frozenset({_S.PUT_OFF, _S.REJECTED, _S.REFUSED, _S.ENDED, _S.IMPORTED})


class Station(StrEnum):
    NOMINATED = "nominated"
    JUDGED = "judged"
    SELECTED = "selected"
    ASKED = "asked"
    CLEARED = "cleared"
    HARVESTED = "harvested"


class StationState(StrEnum):
    DONE = "done"
    SKIPPED = "skipped"
    NEXT = "next"
    AHEAD = "ahead"


class NextStep(StrEnum):
    """What a member of staff does next."""

    ACCEPT = "accept"
    JUDGE = "judge"
    SELECT = "select"
    ADD_CONTACT = "add_contact"
    WRITE = "write"
    RECORD_REPLY = "record_reply"
    PLAN = "plan"
    WAIT_FOR_DATE = "wait_for_date"
    REVIEW = "review"
    DESCRIBE = "describe"
    SEE = "see"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFacts:
    """What decides about the path of a target."""

    state: TargetState
    is_judged: bool
    """Whether a criterion has been answered."""
    has_letter: bool
    has_contact: bool
    """One with an email address."""
    has_plan: bool
    to_review: str
    """The harvest that waits for a reviewer; empty if there is none."""
    is_harvested: bool
    is_described: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPath:
    stations: tuple[tuple[Station, StationState], ...]
    next_step: NextStep
    to_review: str = ""


def path_of(facts: PathFacts) -> TargetPath:
    """The path of a target with these facts."""
    reached = {
        Station.NOMINATED: facts.state is not _S.SUGGESTED,
        # The answers may not decide yet; then the site is still nominated, and judging it is the next step.
        Station.JUDGED: facts.state in _AFTER_JUDGING
        or (facts.is_judged and facts.state is not _S.NOMINATED),
        Station.SELECTED: facts.state in _CHOSEN,
        Station.ASKED: facts.has_letter or facts.state is _S.ASKED,
        Station.CLEARED: facts.state is _S.CLEARED,
        Station.HARVESTED: facts.is_harvested,
    }
    is_on_path = facts.state not in _OFF_THE_PATH
    stations: list[tuple[Station, StationState]] = []
    has_next = False
    for station, is_reached in reached.items():
        if is_reached:
            state = StationState.DONE
        elif station is Station.ASKED and reached[Station.CLEARED]:
            state = StationState.SKIPPED
        elif is_on_path and not has_next:
            state, has_next = StationState.NEXT, True
        else:
            state = StationState.AHEAD
        stations.append((station, state))
    return TargetPath(stations=tuple(stations), next_step=_next(facts), to_review=facts.to_review)


def _next(facts: PathFacts) -> NextStep:
    if facts.to_review:
        return NextStep.REVIEW
    match facts.state:
        case _S.SUGGESTED:
            return NextStep.ACCEPT
        case _S.NOMINATED:
            return NextStep.JUDGE
        case _S.JUDGED:
            return NextStep.SELECT
        case _S.SELECTED:
            return NextStep.WRITE if facts.has_contact else NextStep.ADD_CONTACT
        case _S.ASKED:
            return NextStep.RECORD_REPLY
        case _S.CLEARED if not facts.has_plan and not facts.is_harvested:
            return NextStep.PLAN
        case _S.CLEARED if not facts.is_harvested:
            return NextStep.WAIT_FOR_DATE
        case _S.CLEARED if not facts.is_described:
            return NextStep.DESCRIBE
        case _S.CLEARED:
            return NextStep.SEE
        case _:
            return NextStep.NONE
