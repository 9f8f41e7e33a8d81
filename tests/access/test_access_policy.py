"""The access gate, compared with a slow reference that writes out the order of the rules."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdepot.access import rule_rows
from webdepot.access.closed_areas import areas
from webdepot.access.policy import DEFAULT_TEXT, AccessPoint, Reader, Rule, RuleAnswer, allows
from webdepot.database import Database, metadata
from webdepot.errors import InputError
from webdepot.model import Answer

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = ["org,example)/", "org,example)/a", "org,example)/a/b", "org,examples)/", "com,other)/"]
PREFIXES = ["org,example)", "org,example)/a", "org,example)/a/b", "org,", "com,other)/"]
STAMPS = ["20090101000000", "20150601120000", "20200101000000"]
DAYS = [date(2025, 1, 1), date(2026, 5, 1), date(2030, 1, 1)]


def rule(number: int, **given) -> Rule:
    return Rule(
        id=number, **{"prefix": "org,example)", "answer": RuleAnswer.REFUSE, "created_at": CREATED, **given}
    )


made_rules = st.lists(
    st.builds(
        lambda prefix, start, stop, begin, end, point, answer: {
            "prefix": prefix,
            "captured_from": min(start, stop),
            "captured_to": max(start, stop),
            "valid_from": min(begin, end),
            "valid_to": max(begin, end),
            "access_point": point,
            "answer": answer,
        },
        st.sampled_from(PREFIXES),
        st.sampled_from(STAMPS),
        st.sampled_from(STAMPS),
        st.sampled_from(DAYS),
        st.sampled_from(DAYS),
        st.sampled_from([None, *AccessPoint]),
        st.sampled_from(RuleAnswer),
    ),
    max_size=6,
)


def reference(key: str, stamp: str, given: list[Rule], reader: Reader, today: date) -> RuleAnswer:
    """Longest prefix first, then a named access point, then the youngest: looked for step by step. Warnings
    decide nothing.
    """
    for length in range(len(key), -1, -1):
        for is_named in (True, False):
            for candidate in sorted(given, key=lambda one: -one.id):
                if candidate.answer is RuleAnswer.WARN:
                    continue
                if candidate.prefix != key[:length] or (candidate.access_point is not None) is not is_named:
                    continue
                if is_named and candidate.access_point is not reader.access_point:
                    continue
                if (
                    candidate.captured_from <= stamp <= candidate.captured_to
                    and candidate.valid_from <= today <= candidate.valid_to
                ):
                    return candidate.answer
    return RuleAnswer.SHOW


@given(
    made_rules,
    st.sampled_from(KEYS),
    st.sampled_from(STAMPS),
    st.sampled_from(DAYS),
    st.sampled_from(AccessPoint),
)
def test_the_gate_agrees_with_the_reference(given_rules, key, stamp, today, point):
    made = [rule(number, **fields) for number, fields in enumerate(given_rules, start=1)]
    reader = Reader(access_point=point)
    expected = reference(key, stamp, made, reader, today)
    verdict = allows(key, stamp, made, reader, today)
    assert bool(verdict) is (expected in (RuleAnswer.SHOW, RuleAnswer.LEND))
    assert verdict.rule and (expected is not RuleAnswer.HIDE or verdict.reason == "")


def test_a_refusal_says_the_rules_own_words_and_a_hidden_capture_nothing():
    today = date(2026, 5, 1)
    told = allows(
        "org,example)/", STAMPS[0], [rule(1, public_text="Closed at the owner's wish.")], Reader(), today
    )
    assert (told.answer, told.rule, told.reason) == (
        Answer.REJECT,
        "access rule 1",
        "Closed at the owner's wish.",
    )
    assert allows("org,example)/", STAMPS[0], [rule(1)], Reader(), today).reason == DEFAULT_TEXT
    assert (
        allows(
            "org,example)/", STAMPS[0], [rule(1, answer=RuleAnswer.HIDE, public_text="x")], Reader(), today
        ).reason
        == ""
    )


def test_a_warning_opens_nothing_and_is_shown_above_the_page():
    today, page = date(2026, 5, 1), "org,example)/a"
    warning = rule(1, prefix=page, exact=True, answer=RuleAnswer.WARN, public_text="Contains errors.")
    told = allows(page, STAMPS[0], [warning], Reader(), today)
    assert told and told.reason == "Contains errors."
    assert not allows(page, STAMPS[0], [rule(2, public_text="Closed."), warning], Reader(), today)
    shown = rule(3, prefix="org,example)/", answer=RuleAnswer.SHOW, public_text="Old.")
    assert (
        allows(page, STAMPS[0], [rule(2), shown, warning], Reader(), today).reason == "Old. Contains errors."
    )
    assert areas([warning], Reader(), today) == ()


@pytest.fixture
def database(tmp_path: Path):
    made = Database.in_file(tmp_path / "webdepot.db")
    metadata.create_all(made.engine, tables=[metadata.tables["access_rules"]])
    yield made
    made.close()


def test_rules_come_back_as_they_were_kept(database: Database):
    given = rule(
        0,
        prefix="org,example)/a",
        access_point=AccessPoint.READING_ROOM,
        public_text="é",
        valid_to=date(2027, 1, 1),
    )
    with database.transaction() as connection:
        kept = rule_rows.add(connection, given)
        rule_rows.add(connection, rule(0, prefix="com,other)"))
    assert kept.id == 1
    with database.reading() as connection:
        prefixed = rule_rows.by_prefix(connection)
        assert prefixed.covering("org,example)/a/b") == [kept]
        assert prefixed.covering("org,example)/") == []
        assert [one.prefix for one in rule_rows.every(connection)] == ["org,example)/a", "com,other)"]


@pytest.mark.parametrize(
    "bad",
    [
        {"prefix": " "},
        {"captured_from": "2020", "captured_to": "2010"},
        {"valid_from": date(2027, 1, 1), "valid_to": date(2026, 1, 1)},
    ],
)
def test_rules_about_everything_or_nothing_are_refused(database: Database, bad):
    with database.transaction() as connection, pytest.raises(InputError):
        rule_rows.add(connection, rule(0, **bad))
