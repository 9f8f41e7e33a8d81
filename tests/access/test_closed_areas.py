"""Areas of closed captures agree with the gate for every rule, reader, day, key and time."""

from datetime import UTC, date, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from webdepot.access.closed_areas import areas
from webdepot.access.policy import AccessPoint, Reader, Rule, RuleAnswer, allows

KEYS = ["org,a)/", "org,a)/x", "org,a)/x/y", "org,a)/xz", "org,a,sub)/", "org,b)/"]
PREFIXES = ["org,", "org,a)", "org,a)/x", "org,a)/x/", "org,a", "org,b)/"]
TIMES = ["20100101000000", "20150101000000", "20150101000001", "20200101000000"]
DAYS = [date(2024, 1, 1), date(2026, 1, 1)]


@st.composite
def rule_lists(draw):
    made = []
    for number in range(draw(st.integers(0, 6))):
        captured = sorted(
            draw(st.tuples(st.sampled_from(["0" * 14, *TIMES]), st.sampled_from([*TIMES, "9" * 14])))
        )
        valid = sorted(
            draw(st.tuples(st.sampled_from([date.min, *DAYS]), st.sampled_from([*DAYS, date.max])))
        )
        made.append(
            Rule(
                id=number,
                prefix=draw(st.sampled_from(PREFIXES)),
                exact=draw(st.booleans()),
                captured_from=captured[0],
                captured_to=captured[1],
                valid_from=valid[0],
                valid_to=valid[1],
                access_point=draw(st.sampled_from([None, *AccessPoint])),
                answer=draw(st.sampled_from(list(RuleAnswer))),
                created_at=datetime(2020, 1, 1, tzinfo=UTC),
            )
        )
    return made


@settings(max_examples=400)
@given(rules=rule_lists(), point=st.sampled_from(list(AccessPoint)), today=st.sampled_from(DAYS))
def test_areas_and_gate_agree(rules, point, today):
    reader = Reader(access_point=point)
    found = areas(rules, reader, today)
    for key in KEYS:
        for timestamp in ["19000101000000", *TIMES, "20991231235959"]:
            is_closed = any((key, timestamp) in area for area in found)
            assert is_closed == (not allows(key, timestamp, rules, reader, today)), (key, timestamp, found)


def test_without_rules_nothing_is_closed():
    assert areas([], Reader(), date(2026, 1, 1)) == ()


def test_a_thousand_rules_for_single_pages_are_a_thousand_areas():
    rules = [
        Rule(
            id=number,
            prefix=f"org,a)/page{number}",
            exact=True,
            answer=RuleAnswer.REFUSE,
            created_at=datetime(2020, 1, 1, tzinfo=UTC),
        )
        for number in range(1_000)
    ]
    closed = areas(rules, Reader(), date(2026, 1, 1))
    assert [area.prefix for area in closed] == sorted(rule.prefix for rule in rules)
    assert all(area.exact and not area.but for area in closed)
    assert [area.prefix for area in closed if ("org,a)/page10", "20200101000000") in area] == [
        "org,a)/page10"
    ]
