"""Findings and reasons are shown in the reader's language, whatever their placeholders contain."""

import json
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from webdepot import reasons
from webdepot.accounts import accounts, sessions
from webdepot.formats import texts as format_texts
from webdepot.harvest import profile
from webdepot.harvest.order_file import OrderVerb
from webdepot.quality import checks, compare
from webdepot.quality import texts as quality_texts
from webdepot.quality.checks import HarvestTraces
from webdepot.quality.compare import HarvestMeasures
from webdepot.quality.record_facts import Observation, RecordFacts
from webdepot.selection.cases import CaseState
from webdepot.selection.states import TargetState
from webdepot.web.language import event_words, wording
from webdepot.web.language.language import CODES, load

A = "http://www.example.org/"
FACTS = {
    "detail": "503: later (1.2).",
    "pages": "7 pages",
    "count": 3,
    "limit": "3",
    "stated": "sha1:AA",
    "found": "sha1:BB",
}
FACTS |= {"before": "2020", "new": 1, "gone": 2, "changed": 3, "same": 4, "now": 9, "usual": 10}


def test_english_texts_are_those_of_the_rooms():
    for room, table in (("quality", quality_texts.TEXTS), ("formats", format_texts.TEXTS)):
        known = {
            key.removeprefix(f"{room}.words."): text
            for key, text in load("en").texts.items()
            if key.startswith(f"{room}.words.")
        }
        assert known == {code: text.words for code, text in table.items()}


@pytest.mark.parametrize("code", CODES)
def test_every_finding_has_its_text(code):
    found = [
        quality_texts.finding(each, subject="https://a.example/", place="p", **FACTS)
        for each in quality_texts.TEXTS
    ]
    found += [format_texts.finding(each, subject="x", place="byte 7", **FACTS) for each in format_texts.TEXTS]
    for each in found:
        said = wording.of_finding(load(code), each)
        assert (said == each.message) == (code == "en"), each
        if "503" in each.message:
            assert "503" in said and "(1.2)" in said


def test_gaps_are_filled_in_dutch_and_german():
    one = quality_texts.finding("part-error", subject="x", pages="one page", detail="404")
    assert (
        wording.of_finding(load("nl"), one) == "Onderdeel van één pagina, maar de server antwoordde met 404."
    )
    assert wording.of_finding(load("de"), one) == "Teil von einer Seite, aber der Server antwortete mit 404."


def test_findings_of_an_earlier_wording_are_said_by_their_facts():
    facts = {"pages": "1234 pages", "detail": "404"}
    old = replace(
        quality_texts.finding("part-error", subject="x", **facts),
        message="Shown by 1234 pages, but the server answered 404.",
    )
    assert wording.of_finding(load("en"), old) == "Part of 1,234 pages, but the server returned 404."
    assert (
        wording.of_finding(load("nl"), old)
        == "Onderdeel van 1.234 pagina’s, maar de server antwoordde met 404."
    )
    left = replace(quality_texts.finding("queue-left", subject="x", count=1234), message="1,234 waited.")
    assert "1.234 Adressen" in wording.of_finding(load("de"), left)
    unknown = replace(old, facts={})
    assert wording.of_finding(load("nl"), unknown) == unknown.message, "nothing to fill its gaps with"


def as_stored(finding):
    """The finding as it is read again from the database or a package."""
    return replace(finding, facts=reasons.from_plain(json.loads(json.dumps(reasons.to_plain(finding.facts)))))


def measured(documents: int, types: dict[str, int]) -> HarvestMeasures:
    return HarvestMeasures(documents=documents, size_bytes=10, duration_s=1.0, types=types)


def test_details_of_findings_are_said_in_the_readers_language(tmp_path):
    found = list(
        compare.against(measured(1600, {"": 1600}), [measured(4000, {"text/css": 4000})] * 3, subject="H-1")
    )
    log = tmp_path / "crawl.jsonl"
    parts = {
        "dns": (-1, "no such name", ""),
        "scope": (-5000, "embedded 1234 deep", "hops"),
        "limit": (-4000, "", ""),
    }
    lines = [{"url": A, "status": 200, "path": ""}]
    lines += [
        {"url": f"{A}{name}", "status": status, "reason": reason, "rule": rule, "path": "E"}
        for name, (status, reason, rule) in parts.items()
    ]
    lines += [
        {"url": f"{A}{kind}", "status": -5000, "reason": reason, "rule": kind, "path": "L"}
        for kind, reason in (
            ("edits", "Wiki (edits): edit; 1234 of them were taken"),
            ("length", "9 characters"),
            (
                "mazes",
                "its server invents pages below http://a.example/: also for addresses that cannot exist",
            ),
        )
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    links = tuple((f"{A}{name}", "E") for name in parts)
    cut = Observation("body-truncated", "x.warc.gz byte 0", "7 of 1234 bytes received")
    kept = RecordFacts(url=A, is_response=True, status=200, observed=(cut,))
    traces = HarvestTraces(
        harvest="H-1",
        seeds=(A,),
        records=[kept, RecordFacts(url=A, links=links)],
        log=log,
        trap_rules=("length",),
        left_out={"edits": "editing forms", "mazes": "invented pages"},
        maze_kinds=("mazes",),
    )
    found += checks.check(traces)
    german = {
        each.code.removeprefix("quality."): wording.of_finding(load("de"), as_stored(each)) for each in found
    }
    assert german["count-differs"].endswith(
        "1.600 Dokumente geerntet, gewöhnlich 4.000: das 0,4-Fache des Üblichen; verglichene Ernten: 3."
    )
    assert "unbekannt 0 % → 100 %, text/css 100 % → 0 %" in german["types-differ"]
    assert german["part-unreachable"].endswith("der Name des Hosts ist nicht bekannt (no such name).")
    assert german["part-out-of-scope"].endswith("1.234 Ebenen tief eingebettet (Regel: hops).")
    assert german["part-over-limit"].endswith("es ist kein Grund vermerkt.")
    assert german["left-out"].endswith(
        "edits (Bearbeitungsformulare), Wiki (edits): edit; 1.234 davon wurden abgerufen."
    )
    assert german["maze-stopped"].startswith("1 Adressen wie diese")
    assert "weil die Website endlos Seiten erfindet" in german["maze-stopped"]
    assert "cannot exist" not in german["maze-stopped"], german["maze-stopped"]
    assert "9 Zeichen (Regel: length)." in german["trap-stopped"]
    assert "7 von 1.234 Bytes empfangen" in german["body-truncated"]
    assert [wording.of_finding(load("en"), as_stored(each)) for each in found] == [
        each.message for each in found
    ]


def test_facts_of_another_program_do_not_break_a_page():
    strange = {
        "detail": {"key": "quality.details.times", "values": {"count": 3}, "text": "a few"},
        "pages": "x",
    }
    told = replace(
        quality_texts.finding("part-error", subject="x", **FACTS), facts=reasons.from_plain(strange)
    )
    assert "a few" in wording.of_finding(load("de"), told)


@pytest.mark.parametrize("code", CODES)
def test_every_key_of_a_profile_has_its_text(code):
    texts = load(code).texts
    assert [
        key for key in {**profile.KEYS, **profile.HOST_KEYS} if f"profile_form.help_{key}" not in texts
    ] == []


@pytest.mark.parametrize("code", CODES)
def test_every_action_has_its_text(code):
    """Every action that the program writes into an event, as far as its source names it."""
    source = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (Path(reasons.__file__).parent / "services").rglob("*.py")
    )
    source += Path(accounts.__file__).read_text(encoding="utf-8")
    source += Path(sessions.__file__).read_text(encoding="utf-8")
    actions = set(re.findall(r'action="([a-z ]+)"', source))
    actions |= set(re.findall(r'\barchive\.event\(\s*"([a-z ]+)"', source))
    actions |= set(re.findall(r'(?<!archive\.)\b\w*(?:event|note)\((?:\w+, )*"([a-z ]+)"', source))
    actions |= (
        set(re.findall(r'note\(connection, [\w.\[\]"]+, "([a-z ]+)"', source))
        | set(TargetState)
        | set(CaseState)
    )
    actions |= {f"ordered {verb}" for verb in OrderVerb} | {"turn: retry", "turn: finish"}
    actions.discard("command")  # a way to send an alarm, not an action
    missing = [
        action
        for action in actions
        if wording.of_action(load(code), action) == action
        and f"actions.{re.sub('[^a-z]+', '_', action)}" not in load(code).texts
    ]
    assert missing == [] and len(actions) > 60


@pytest.mark.parametrize("code", ["nl", "de"])
def test_every_sentence_of_the_registry_of_formats_is_said_in_the_readers_language(code):
    language = load(code)
    registry = json.loads((files("webdepot.formats") / "registry.json").read_text(encoding="utf-8"))
    sentences = {
        each[name]
        for part, names in (("software", ("note",)), ("formats", ("reason", "note")))
        for each in registry[part]
        for name in names
        if each.get(name)
    }
    assert len(sentences) > 20
    kept = [words for words in sentences if wording.of_said(language, "registry", words) == words]
    assert kept == []
    assert (
        event_words.value_of(language, "archive", "risk", "at risk") == language.texts["formats.risk_at_risk"]
    )
    assert language.texts["formats.risk_at_risk"] != "at risk"
