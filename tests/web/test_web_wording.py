"""Findings and reasons are said in the reader's language, whatever stands in their gaps."""

from datetime import date, timedelta

import pytest

from webdepot.formats import texts as format_texts
from webdepot.quality import acceptance, verdict
from webdepot.quality import texts as quality_texts
from webdepot.quality.acceptance import AcceptanceLimits, Figures
from webdepot.selection import permission
from webdepot.selection.permission import Basis, Ground, Notice
from webdepot.selection.states import LetterState, TargetState
from webdepot.services import selecting
from webdepot.web import wording
from webdepot.web.language import CODES, load

FACTS = {"detail": "503: later (1.2).", "pages": "7 pages", "count": 3, "limit": "3", "stated": "sha1:AA", "found": "sha1:BB"}
FACTS |= {"before": "2020", "new": 1, "gone": 2, "changed": 3, "same": 4, "now": 9, "usual": 10}


def test_english_texts_are_those_of_the_rooms():
    for room, table in (("quality", quality_texts.TEXTS), ("formats", format_texts.TEXTS)):
        known = {key.removeprefix(f"{room}.words."): text for key, text in load("en").texts.items() if key.startswith(f"{room}.words.")}
        assert known == {code: text.words for code, text in table.items()}


@pytest.mark.parametrize("code", CODES)
def test_every_finding_has_its_words(code):
    found = [quality_texts.finding(each, subject="https://a.example/", place="p", **FACTS) for each in quality_texts.TEXTS]
    found += [format_texts.finding(each, subject="x", place="byte 7", **FACTS) for each in format_texts.TEXTS]
    for each in found:
        said = wording.of_finding(load(code), each)
        assert (said == each.message) == (code == "en"), each
        if "503" in each.message:
            assert "503" in said and "(1.2)" in said


def test_gaps_are_filled_in_dutch_and_german():
    one = quality_texts.finding("part-error", subject="x", pages="one page", detail="404")
    assert wording.of_finding(load("nl"), one) == "Getoond door één pagina, maar de server antwoordde 404."
    assert wording.of_finding(load("de"), one) == "Gezeigt von einer Seite, aber der Server antwortete 404."


@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"quality.part-error": 1},
        {"quality.part-error": 90, "quality.link-broken": 90, "quality.page-login": 90, "quality.body-truncated": 90},
        {"quality.digest-differs": 2, "quality.queue-left": 1, "quality.seed-failed": 1, "quality.count-differs": 1},
        {"quality.nothing-harvested": 1},
    ],
)
def test_every_reason_has_its_words(counts):
    reason = verdict.of(counts, {"fetched": 100}).reason
    assert wording.of_reason(load("en"), reason) == reason
    for code in ("nl", "de"):
        assert wording.of_reason(load(code), reason) != reason
    assert wording.of_reason(load("nl"), "Something else.") == "Something else."


def gates():
    """Every answer of the gate and of asking that a curator can see."""
    day = date(2026, 5, 29)
    letter = Notice(state=LetterState.SENT, term_ends_on=day)
    for state in TargetState:
        yield permission.gate(state, [], [], day)
        yield permission.gate(state, [Basis(ground=Ground.OPEN_LICENCE, since=day)], [], day)
    selected = TargetState.SELECTED
    yield permission.gate(selected, [], [letter], day)
    yield permission.gate(selected, [], [letter], day + timedelta(days=1))
    yield permission.gate(selected, [], [Notice(state=LetterState.QUEUED)], day)
    yield permission.gate(selected, [], [Notice(state=LetterState.UNDELIVERABLE)], day)
    yield permission.gate(selected, [Basis(ground=Ground.CONSENT, since=day, until=day)], [], day + timedelta(days=1))
    yield permission.gate(selected, [Basis(ground=Ground.REFUSAL, since=day)], [], day)


@pytest.mark.parametrize("code", CODES)
def test_every_answer_of_the_gate_is_said_in_the_readers_language(code):
    language = load(code)
    for verdict_ in gates():
        said = wording.of_reason(language, verdict_.reason)
        assert "{" not in said and "2026-05" not in said, "days are written the language's way"
        assert (said == str(verdict_.reason)) == (code == "en" and "2026" not in verdict_.reason), said
        assert wording.of_rule(language, verdict_.rule)
        page = wording.of_reason(language, selecting.refusal("<Museum>", verdict_))
        assert said in page and "<Museum>" in page


@pytest.mark.parametrize("code", CODES)
def test_what_rules_say_of_a_harvest_is_said_in_the_readers_language(code):
    good = verdict.of({}, {"fetched": 100})
    limits, now = AcceptanceLimits(), Figures(documents=5000, size_bytes=9_000_000)
    for found in (
        acceptance.by_rules(good, now, None, 0, limits),
        acceptance.by_rules(good, Figures(documents=10, size_bytes=1, not_valid=5), now, 1, limits),
        acceptance.by_rules(good, now, Figures(documents=10, size_bytes=1), 1, limits),
        acceptance.by_rules(good, now, Figures(documents=5000, size_bytes=1), 1, limits),
        acceptance.by_rules(good, now, now, 1, limits),
    ):
        said = wording.of_reason(load(code), found.reason)
        assert (said == found.reason) == (code == "en"), said
        assert ("5,000" in found.reason) == (load(code).number(5000) in said)
