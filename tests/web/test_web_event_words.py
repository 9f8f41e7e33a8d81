"""Events, rule names and conditions in Dutch and German: no text of the program stays English."""

import re
from datetime import UTC, datetime

import pytest

from webdepot.depot import package_content
from webdepot.harvest.scope import scope
from webdepot.harvest.scope.conditions import CONDITIONS
from webdepot.harvest.scope.limits import ScopeLimits
from webdepot.harvest.scope.membership import ScopeKind
from webdepot.provenance import Event
from webdepot.selection.states import TARGET, TargetState
from webdepot.web.language import event_words, wording
from webdepot.web.language.language import CODES, load


def event(kind: str, message: str = "", action: str = "changed", **detail: object) -> Event:
    return Event(
        at=datetime(2026, 3, 4, tzinfo=UTC),
        agent="Ada",
        action=action,
        subject_kind=kind,
        subject="7",
        message=message,
        detail=detail,
    )


@pytest.mark.parametrize(
    ("kind", "before", "after", "said"),
    [
        ("target", {"state": "put off"}, {"state": "asked"}, ("Status", "zurückgestellt", "Inhaber gefragt")),
        ("harvest", {}, {"verdict": "pass"}, ("Urteil", None, "Begutachtung nötig")),
        ("harvest", {}, {"rule": "within-limits"}, ("Regel", None, "innerhalb der Grenzen")),
        ("harvest", {}, {"quality.link-broken": 1200}, ("Toter Link", None, "1.200")),
        ("case", {}, {"who": "person concerned"}, ("wer", None, "gezeigte oder genannte Person")),
        ("person", {}, {"roles": ["curator", "reviewer"]}, ("Rollen", None, "Kurator, Prüfer")),
        ("place", {}, {"write_once": False}, ("nur einmal beschreibbar", None, "nein")),
        ("target", {}, {"due_at": "2026-11-15T01:30:37.380112+00:00"}, ("fällig am", None, "15. November 2026, 01:30 UTC")),
        ("target", {}, {"first_on": "2026-12-05"}, ("erster Termin", None, "5. Dezember 2026")),
        ("access rule", {}, {"prefix": "org,example)/news/"}, ("Adressen", None, "example.org/news/")),
        ("access rule", {}, {"prefix": "org,example,"}, ("Adressen", None, "*.example.org")),
        ("title", {}, {"languages": ["nl"]}, ("Sprachen", None, "Niederländisch")),
        ("package", {}, {"findings": ["depot.content-damaged"]}, ("Befunde", None, "Datei beschädigt")),
        ("target", {}, {"name": "asked"}, ("Name", None, "asked")),
        ("target", {"note": "x"}, {"note": ""}, ("Notiz", "x", "–")),
    ],
)  # fmt: skip
def test_values_of_events_are_said_in_the_readers_language(kind, before, after, said):
    (change,) = event_words.changes_of(load("de"), event(kind, before=before, after=after))
    assert change == said


def test_what_stands_beside_before_and_after_is_shown_too():
    told = event("target", action="judged", act="put off", before={}, after={"state": "judged"})
    assert event_words.changes_of(load("nl"), told) == [
        ("status", None, "beoordeeld"),
        ("stap", None, "uitstellen"),
    ]


@pytest.mark.parametrize(
    ("kind", "action", "message", "said"),
    [
        ("package", "audited", "intact in cellar", "intakt in cellar"),
        ("package", "audited", "whole in cellar", "intakt in cellar"),
        ("package", "repaired", "repaired in cellar: 1 file was restored.", "repariert in cellar: 1 Datei wiederhergestellt."),
        ("package", "kept", "harvest H-1 in 2 containers", "Ernte H-1 in 2 Containern"),
        ("access rule", "closed", "refuse example.org", "verweigern: example.org"),
        ("target", "changed", "name, note", "Name, Notiz"),
        ("target", "rejected", "refuse example.org", "refuse example.org"),
    ],
)  # fmt: skip
def test_messages_of_events_are_said_in_the_readers_language(kind, action, message, said):
    assert event_words.message_of(load("de"), event(kind, message, action)) == said
    assert event_words.message_of(load("en"), event("case", message, "noted")) == message, "typed by a person"


@pytest.mark.parametrize("code", CODES)
def test_every_choice_rule_condition_and_step_has_its_text(code):
    texts = load(code).texts
    wanted = {
        prefix + member.name.lower()
        for members, prefix in event_words._CHOICES.values()
        for member in members
    }
    acts = {act for state in TargetState for act in TARGET.acts(state)}
    wanted |= {f"event_values.act_{act.replace(' ', '_')}" for act in acts}
    chain = scope.named_chain(ScopeKind.DOMAIN, ["http://a.org/"], limits=ScopeLimits(), year=2026)
    wanted |= {f"scope_rules.{name.replace(' ', '_')}" for name, _ in chain}
    wanted |= {f"scope_rules.{kind}" for kind in ScopeKind}
    assert wanted - set(texts) == set()
    for known in CONDITIONS.values():
        assert (wording.of_said(load(code), "condition", known.doc) == known.doc) == (code == "en"), known.doc


def test_kinds_of_files_in_packages_have_texts():
    labels = {
        package_content.format_of(path)
        for path in ("log/crawl.log", "a.json", "index/x.cdxj.gz", "odd", "b.jsonl")
    }
    words = {label for label in labels if not re.fullmatch(r"[A-Z]+(, gzip)?", label)}
    known = {f"file_kinds.{word.lower().replace(',', '').replace(' ', '_')}" for word in words}
    assert known <= set(load("de").texts) and "file_kinds.plain_text" in known
