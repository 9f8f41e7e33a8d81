"""Grounds, implied consent and criteria: what permits a harvest, and what is missing."""

from datetime import date

import pytest

from webdepot.model import Answer
from webdepot.selection.criteria import DEFAULT, Criterion, Judgement, judge
from webdepot.selection.permission import may_harvest
from webdepot.selection.permission_basis import Ground, PermissionBasis

TODAY = date(2026, 11, 15)


def basis(ground, since=date(2026, 1, 1), until=None, reason=""):
    return PermissionBasis(ground=ground, since=since, until=until, reason=reason)


@pytest.mark.parametrize("ground", [ground for ground in Ground if ground is not Ground.REFUSAL])
def test_any_ground_that_holds_is_enough_and_is_named(ground):
    verdict = may_harvest([basis(ground)], TODAY)
    assert verdict
    assert verdict.rule == ground.value


def test_without_a_ground_the_verdict_says_what_is_missing():
    verdict = may_harvest([], TODAY)
    assert not verdict
    assert "consent" in verdict.reason


def test_implied_consent_counts_from_its_day_on():
    silence = basis(Ground.IMPLIED_CONSENT, since=date(2026, 11, 16))
    assert not may_harvest([silence], TODAY)
    assert may_harvest([silence], date(2026, 11, 16))


def test_a_ground_ends():
    assert not may_harvest([basis(Ground.CONSENT, until=date(2026, 11, 14))], TODAY)


def test_a_refusal_wins_over_every_other_ground_but_a_later_consent():
    refusal = basis(Ground.REFUSAL, since=date(2026, 6, 1), reason="letter of 1 June")
    assert (
        may_harvest(
            [basis(Ground.CONSENT), basis(Ground.OPERATOR, since=date(2026, 7, 1)), refusal], TODAY
        ).reason
        == "letter of 1 June"
    )
    assert may_harvest([refusal, basis(Ground.CONSENT, since=date(2026, 8, 1))], TODAY)


@pytest.mark.parametrize(
    ("given", "answer", "rule"),
    [
        ([], Answer.PASS, "national"),
        ([("national", False)], Answer.REJECT, "national"),
        ([("national", True)], Answer.PASS, "scholarly"),
        ([("national", True), ("cultural", True)], Answer.ACCEPT, "cultural"),
        (
            [("national", True)]
            + [(code, False) for code in ("scholarly", "cultural", "innovative", "public-act")],
            Answer.REJECT,
            "none",
        ),
    ],
)
def test_criteria_decide_and_name_the_one_that_did(given, answer, rule):
    verdict = judge([Judgement(criterion=code, value=float(yes), reason="because") for code, yes in given])
    assert (verdict.answer, verdict.rule) == (answer, rule)


def test_default_questions_are_recognised_in_their_earlier_wording_too():
    assert all(one.is_default for one in DEFAULT)
    assert Criterion(code="cultural", question="Has it cultural content?").is_default
    assert not Criterion(code="cultural", question="Is it culture?").is_default
