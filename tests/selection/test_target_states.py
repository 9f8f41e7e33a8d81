"""Every change of state is a row of the table; the gate is compared with a slow, explicit reference."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.errors import Conflict
from webdepot.selection.implied_consent import Notice
from webdepot.selection.permission import gate
from webdepot.selection.permission_basis import Ground, PermissionBasis
from webdepot.selection.states import LETTER, TARGET, LetterState, TargetState

TODAY = date(2026, 11, 15)
DAYS = [TODAY + timedelta(days=shift) for shift in (-60, -30, -1, 0, 1, 30)]


@pytest.mark.parametrize("machine", [TARGET, LETTER], ids=lambda machine: machine.noun)
def test_every_state_is_reached_and_explained_and_the_rest_is_refused(machine):
    states = type(machine.steps[0].after)
    assert {step.after for step in machine.steps} == set(states) == set(machine.meanings)
    for state in states:
        for act in {step.act for step in machine.steps}:
            rows = [step for step in machine.steps if step.act == act and state in step.before]
            assert len(rows) <= 1, (state, act)
            if rows:
                assert machine.after(state, act, "X") is rows[0].after
            else:
                with pytest.raises(Conflict):
                    machine.after(state, act, "X")


def test_a_site_cannot_be_selected_before_it_is_judged_nor_asked_before_it_is_selected():
    with pytest.raises(Conflict, match=r"in the state 'nominated'\. Required state: judged\."):
        TARGET.after(TargetState.NOMINATED, "select", "Target 1")
    with pytest.raises(Conflict, match=r"Required state: selected or cleared\."):
        TARGET.after(TargetState.REFUSED, "ask", "Target 1")


bases = st.lists(
    st.builds(
        lambda ground, since, length: PermissionBasis(
            ground=ground, since=since, until=since + timedelta(days=length) if length else None
        ),
        st.sampled_from(Ground),
        st.sampled_from(DAYS),
        st.sampled_from([0, 0, 10, 45]),
    ),
    max_size=3,
)
notices = st.lists(
    st.builds(
        lambda state, ends: Notice(state=state, term_ends_on=ends),
        st.sampled_from(LetterState),
        st.sampled_from([None, *DAYS]),
    ),
    max_size=2,
)


def reference(state: TargetState, given_bases: list[PermissionBasis], given_notices: list[Notice]) -> bool:
    """The same rules in another order than the gate: first what forbids, then what allows."""
    holding = [one for one in given_bases if one.since <= TODAY and (one.until is None or one.until >= TODAY)]
    refusals = [one.since for one in holding if one.ground is Ground.REFUSAL]
    consents = [one.since for one in holding if one.ground is Ground.CONSENT]
    if refusals and not any(day > max(refusals) for day in consents):
        return False
    if state is TargetState.REFUSED:
        newest = max((one.since for one in holding if one.ground is not Ground.REFUSAL), default=None)
        others = [one for one in holding if one.ground not in (Ground.REFUSAL, Ground.CONSENT)]
        return bool(consents) and (
            bool(refusals) or not any(one.since == newest for one in others) or max(consents) == newest
        )
    grounds = {one.ground for one in holding} - {Ground.REFUSAL}
    silent = any(
        one.state is LetterState.SENT and one.term_ends_on is not None and one.term_ends_on < TODAY
        for one in given_notices
    )
    if state in (TargetState.SELECTED, TargetState.ASKED, TargetState.CLEARED):
        return bool(grounds) or silent
    return Ground.OPERATOR in grounds


@given(st.sampled_from([state for state in TargetState if state is not TargetState.REFUSED]), bases, notices)
def test_the_gate_lets_nothing_through_that_the_reference_forbids(state, given_bases, given_notices):
    verdict = gate(state, given_bases, given_notices, TODAY)
    if verdict:
        assert reference(state, given_bases, given_notices), verdict
    assert verdict.reason and verdict.rule


@given(bases.filter(lambda made: not any(one.ground is Ground.OPERATOR for one in made)), notices)
def test_on_the_list_the_gate_and_the_reference_agree(given_bases, given_notices):
    for state in (
        TargetState.SELECTED,
        TargetState.ASKED,
        TargetState.CLEARED,
        TargetState.NOMINATED,
        TargetState.REJECTED,
    ):
        assert bool(gate(state, given_bases, given_notices, TODAY)) is reference(
            state, given_bases, given_notices
        )


@given(bases.filter(lambda made: not any(one.ground is Ground.CONSENT for one in made)), notices)
def test_after_a_refusal_nothing_but_consent_opens_the_gate(given_bases, given_notices):
    assert not gate(TargetState.REFUSED, given_bases, given_notices, TODAY)


def test_the_term_lasts_through_its_last_day():
    letter = [Notice(state=LetterState.SENT, term_ends_on=TODAY)]
    closed = gate(TargetState.ASKED, [], letter, TODAY)
    assert not closed and "until 2026-11-15" in closed.reason and "from 2026-11-16" in closed.reason
    assert gate(TargetState.ASKED, [], letter, TODAY + timedelta(days=1)).rule == "implied consent"


@pytest.mark.parametrize(
    ("state", "letters", "words"),
    [
        (TargetState.SUGGESTED, [], "only been suggested"),
        (TargetState.NOMINATED, [], "judge it"),
        (TargetState.SELECTED, [], "no letter has been sent"),
        (TargetState.SELECTED, [Notice(state=LetterState.QUEUED)], "not sent yet"),
        (TargetState.SELECTED, [Notice(state=LetterState.UNDELIVERABLE)], "was returned"),
        (TargetState.REFUSED, [], "the owner refused"),
    ],
)
def test_the_refusal_says_what_is_missing(state, letters, words):
    assert words in gate(state, [], letters, TODAY).reason
