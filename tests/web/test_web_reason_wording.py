"""Reasons, refusals and errors are shown in the reader's language."""

import ast
import copy
import pickle
import re
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from webdepot import reasons
from webdepot.access import search_query
from webdepot.errors import Conflict, InputError
from webdepot.harvest.report.result import End, LeftOut, Trouble, finished_reason, reason_of
from webdepot.harvest.scope.software_rules import of_archive
from webdepot.quality import acceptance, verdict
from webdepot.quality.acceptance import AcceptanceLimits, HarvestFigures
from webdepot.selection import permission
from webdepot.selection.implied_consent import Notice
from webdepot.selection.permission_basis import Ground, PermissionBasis
from webdepot.selection.states import TARGET, LetterState, TargetState
from webdepot.services.selection import targets
from webdepot.web.language import wording
from webdepot.web.language.language import CODES, load


def test_every_reason_of_a_rule_has_its_text():
    """Logs have these sentences in English only."""
    folder = Path(reasons.__file__).parent / "harvest"
    calls = [
        node
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("accept", "reject")
    ]
    sentences = [sentence for call in calls if len(call.args) > 1 and (sentence := example_of(call.args[1]))]
    assert len(sentences) > 20
    sentences += of_archive(folder).kinds.values()
    for code in ("nl", "de"):
        said = {each: wording.of_said(load(code), "scope", each) for each in sentences}
        same = {each for each, words in said.items() if each == words}
        assert same <= {"feeds"}


def example_of(node: ast.expr) -> str:
    """A sentence of the source with 12 in its gaps; nothing if it is not written there."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "12" for part in parts)


def test_reasons_of_an_earlier_wording_are_said_in_the_readers_language():
    old = (
        "2 answers are not what their records state. It differs much from the last harvests. "
        "90 answers are not whole, more than 1% of 100 documents."
    )
    new = wording.of_reason(load("en"), old)
    assert new == (
        "2 responses do not match the checksums in their records. "
        "The harvest differs considerably from the last ones. "
        "90 responses are incomplete, more than 1% of 100 documents."
    )
    assert wording.of_reason(load("de"), old) == wording.of_reason(load("de"), new)


@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"quality.part-error": 1},
        {
            "quality.part-error": 90,
            "quality.link-broken": 90,
            "quality.page-login": 90,
            "quality.body-truncated": 90,
        },
        {
            "quality.digest-differs": 2,
            "quality.queue-left": 1,
            "quality.seed-failed": 1,
            "quality.count-differs": 1,
        },
        {"quality.nothing-harvested": 1},
    ],
)
def test_every_reason_has_its_text(counts):
    reason = verdict.of(counts, {"fetched": 100}).reason
    assert wording.of_reason(load("en"), reason) == reason
    for code in ("nl", "de"):
        assert wording.of_reason(load(code), reason) != reason
    assert wording.of_reason(load("nl"), "Something else.") == "Something else."


def test_what_the_owner_excludes_is_said_first_in_the_readers_language():
    left_out = LeftOut(nofollow=37, robots=1200)
    reason = finished_reason(waiting=0, shut_out=(), left_out=left_out)
    assert str(reason).startswith("37 addresses of the site were left out") and "--nofollow none" in reason
    assert "1,200 addresses were left out" in wording.of_reason(load("en"), kept(reason))
    for code in ("nl", "de"):
        said = wording.of_reason(load(code), kept(reason))
        assert said.startswith("37 ") and "1.200" in said and "--robots ignore" in said


def gates():
    """Every answer of the gate and of asking that a curator can see."""
    day = date(2026, 5, 29)
    letter = Notice(state=LetterState.SENT, term_ends_on=day)
    for state in TargetState:
        yield permission.gate(state, [], [], day)
        yield permission.gate(state, [PermissionBasis(ground=Ground.OPEN_LICENCE, since=day)], [], day)
    selected = TargetState.SELECTED
    yield permission.gate(selected, [], [letter], day)
    yield permission.gate(selected, [], [letter], day + timedelta(days=1))
    yield permission.gate(selected, [], [Notice(state=LetterState.QUEUED)], day)
    yield permission.gate(selected, [], [Notice(state=LetterState.UNDELIVERABLE)], day)
    yield permission.gate(
        selected, [PermissionBasis(ground=Ground.CONSENT, since=day, until=day)], [], day + timedelta(days=1)
    )
    yield permission.gate(selected, [PermissionBasis(ground=Ground.REFUSAL, since=day)], [], day)


@pytest.mark.parametrize("code", CODES)
def test_every_answer_of_the_gate_is_said_in_the_readers_language(code):
    language = load(code)
    for verdict_ in gates():
        said = wording.of_reason(language, verdict_.reason)
        assert "{" not in said and "2026-05" not in said, "days are written the language's way"
        assert (said == str(verdict_.reason)) == (code == "en" and "2026" not in verdict_.reason), said
        assert wording.of_rule(language, verdict_.rule)
        page = wording.of_reason(language, targets.refusal("<Museum>", verdict_))
        assert said in page and "<Museum>" in page


@pytest.mark.parametrize("code", CODES)
def test_the_verdict_of_rules_is_shown_in_the_readers_language(code):
    good = verdict.of({}, {"fetched": 100})
    limits, now = AcceptanceLimits(), HarvestFigures(documents=5000, size_bytes=9_000_000)
    for found in (
        acceptance.by_rules(good, now, None, 0, limits),
        acceptance.by_rules(good, HarvestFigures(documents=10, size_bytes=1, not_valid=5), now, 1, limits),
        acceptance.by_rules(good, now, HarvestFigures(documents=10, size_bytes=1), 1, limits),
        acceptance.by_rules(good, now, HarvestFigures(documents=5000, size_bytes=1), 1, limits),
        acceptance.by_rules(good, now, now, 1, limits),
    ):
        said = wording.of_reason(load(code), found.reason)
        assert (said == found.reason) == (code == "en"), said
        assert ("5,000" in found.reason) == (load(code).number(5000) in said)


def said_in_the_code() -> set[str]:
    """The keys of all reasons that the program gives, from its source."""
    source = "\n".join(
        path.read_text(encoding="utf-8") for path in Path(reasons.__file__).parent.rglob("*.py")
    )
    return {key for key in re.findall(r'\bsaid\(\s*"([\w.]+)"', source) if key != "KEY"}


@pytest.mark.parametrize("code", CODES)
def test_every_reason_of_the_program_has_its_text(code):
    texts, keys = load(code).texts, said_in_the_code()
    assert len(keys) > 60
    assert [key for key in keys if f"reasons.{key}" not in texts and key not in texts] == []
    endings = {f"advice_{trouble.name.lower()}" for trouble in Trouble if trouble is not Trouble.SEVERAL}
    endings |= {f"shared_{end.name.lower()}" for end in End if end.name.startswith("LIMIT")}
    endings |= {f"not_selected_{state.name.lower()}" for state in permission._SELECTION_MISSING}
    assert [key for key in endings if f"reasons.{key}" not in texts] == []


def kept(reason: str) -> str:
    """The reason as it is read again after it was stored."""
    return reasons.from_kept(reasons.to_kept(reason))


@pytest.mark.parametrize("end", End)
def test_kept_reasons_of_a_harvest_are_said_in_the_readers_language(end):
    settings = SimpleNamespace(
        least_free_bytes=5_000_000,
        limit_pages=2000,
        limit_documents=3000,
        limit_bytes=7000,
        limit_time_s=1.5,
    )
    for waiting, shut_out in ((0, ()), (1234, ("a.example",))):
        reason = reason_of(end, settings, waiting=waiting, shut_out=shut_out)
        assert wording.of_reason(load("en"), kept(reason)).replace(",", "") == reason.replace(",", "")
        for code in ("nl", "de"):
            said = wording.of_reason(load(code), kept(reason))
            assert said != reason and "{" not in said and (not waiting or "1.234" in said)
            if (
                end not in (End.NO_ROOM, End.LIMIT_DOCUMENTS) and not shut_out
            ):  # stored by an older version, as a sentence
                assert wording.of_reason(load(code), str(reason)) not in (reason, "")


def test_failures_of_the_network_are_said_in_the_readers_language():
    reason = reasons.said(
        "seed_unreachable",
        "{seed} could not be reached: {detail}.",
        seed="http://a.example/",
        detail="robots.txt could not be fetched: Failed to connect to a.example:80 via 127.0.0.1:9 after 0 ms: "
        "Could not connect to server",
    )
    assert wording.of_reason(load("nl"), reason) == (
        "http://a.example/ was niet bereikbaar: robots.txt kon niet worden opgehaald: "
        "geen verbinding met a.example:80 via 127.0.0.1:9 na 0 ms."
    )
    assert wording.of_reason(load("en"), reason) == str(reason)
    rare = reasons.said(
        "seed_unreachable", "{seed} … {detail}", seed="http://a.example/", detail="Strange words"
    )
    assert wording.of_reason(load("de"), rare).endswith(": Strange words.")


def test_kept_reasons_know_states_grounds_and_days_again():
    since = date(2026, 5, 29)
    silence = reasons.said("no_answer", "no answer to {letter} by {day}", letter="L-1", day=since)
    reason = reasons.said(
        "ground_because", "{ground}: {reason}", ground=Ground.IMPLIED_CONSENT, reason=silence
    )
    assert kept(reason) == reason == "implied consent: no answer to L-1 by 2026-05-29"
    said = wording.of_reason(load("de"), kept(reason))
    assert (
        said
        == f"{load('de').texts['targets.ground_implied_consent']}: keine Antwort auf L-1 bis 29. Mai 2026"
    )
    state = reasons.said("it_is", "its state is: {state}", state=TargetState.PUT_OFF)
    assert load("nl").texts["targets.state_put_off"] in wording.of_reason(load("nl"), kept(state))


@pytest.mark.parametrize(
    "typed",
    [
        "no answer to L-1 by 2026-05-29",
        'x\x1f{"key": "always", "values": {}}',
        'x\x1f{"key": "since", "values": {"day": {"day": "2026-01-01"}}}',
        "{day} {0} {reason!r}",
        "consent: I like it",
        "stopped by Jan: no reason",
    ],
)
def test_what_a_person_typed_stays_as_typed(typed):
    for code in CODES:
        assert wording.of_reason(load(code), kept(typed)) == typed.replace("\x1f", " ")


@pytest.mark.parametrize(
    "text",
    [
        "x\x1f",
        "x\x1f{",
        "x\x1f[]",
        'x\x1f{"key": "since"}',
        'x\x1f{"key": "since", "values": []}',
        'x\x1f{"key": "nie", "values": {}}',
    ],
)
def test_a_kept_reason_that_cannot_be_read_is_its_sentence(text):
    assert wording.of_reason(load("de"), reasons.from_kept(text)) == "x"


def test_reasons_are_texts_that_can_be_copied_and_sent():
    reason = reasons.said("it_is", "its state is: {state}", state=TargetState.PUT_OFF)
    for again in (
        copy.deepcopy(reason),
        pickle.loads(pickle.dumps(reason)),
        pickle.loads(pickle.dumps(kept(reason))),
    ):
        assert again == reason and again.key == reason.key and str(again.values["state"]) == "put off"


def test_a_step_that_is_not_possible_is_refused_in_the_readers_language():
    subject = reasons.said("target_named", "Target {number} ({name})", number="7", name="<b>")
    with pytest.raises(Conflict) as refused:
        TARGET.after(TargetState.NOMINATED, "select", subject)
    reason = refused.value.args[0]
    assert reason == (
        "Target 7 (<b>): the step 'select' is not possible in the state 'nominated'. Required state: judged. "
        "Possible now: judge, put off, reject, refuse."
    )
    said = wording.of_reason(load("de"), kept(reason))
    assert said.startswith(
        "Website 7 (<b>): Der Schritt „auswählen“ ist im Status „nominiert“ nicht möglich."
    )
    assert "beurteilt" in said and "{" not in said
    assert said.endswith("Jetzt möglich: beurteilen, zurückstellen, verwerfen, ablehnen.")


@pytest.mark.parametrize("code", ["nl", "de"])
@pytest.mark.parametrize(
    "typed",
    [
        *("", "-a", "site:", "sites:a.org", "OR a", "a OR", "-a OR b", "x site:[", "type:foo", "lang:dutch"),
        *("before:x", "after:2010 before:2009", "-site:a.org", " ".join(["a"] * 65), "a" * 10_001),
    ],
)
def test_errors_of_a_query_are_said_in_the_readers_language(code, typed):
    with pytest.raises(InputError) as refused:
        search_query.parse(typed)
    reason = refused.value.args[0]
    said = wording.of_reason(load(code), reason)
    assert said != reason and said.partition("\n")[2] == reason.partition("\n")[2], (
        "the place is still marked"
    )
    assert wording.of_reason(load("en"), reason) == reason.replace("10000", "10,000")


@pytest.mark.parametrize("code", ["nl", "de"])
def test_errors_of_forms_are_said_in_the_readers_language(code):
    language = load(code)
    said = {
        "A password needs 12 to 1000 characters.": "12",
        "There is already a person named <b>. Choose another name.": "<b>",
        "'4-13-2019' is not a date. Write it like 2019, 2019-03 or 2019-03-04.": "'4-13-2019'",
        "The last day 2026-05-02 is before the first day 2026-06-01.": "2026-05-02",
        "No criterion was answered.": "criteri",
    }
    for english, kept in said.items():
        words = wording.of_said(language, "error", english)
        assert words != english and kept in words.replace("Kriteri", "criteri"), words
    assert wording.of_said(load("en"), "error", "No criterion was answered.") == "No criterion was answered."


@pytest.mark.parametrize("code", CODES)
def test_one_thing_is_said_as_one(code):
    found = ("part-error", "link-broken", "page-login", "body-truncated", "digest-differs")
    reason = verdict.of({f"quality.{each}": 1 for each in found}, {"fetched": 5}).reason
    settings = SimpleNamespace(limit_pages=20)
    left_out = LeftOut(nofollow=1, robots=1, empty_pages=2, unopened=1, noindex_pages=1)
    ends = [
        reason_of(end, settings, waiting=1, shut_out=(), left_out=left_out)
        for end in (End.FINISHED, End.STOPPED)
    ]
    said = [wording.of_reason(load(code), kept(each)) for each in (reason, *ends)]
    assert not re.search(r"(?<![\d.,])1 ", " ".join(said)), said
    assert all(
        (mine == english) == (code == "en") for mine, english in zip(said, (reason, *ends), strict=True)
    )
