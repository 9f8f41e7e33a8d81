"""The path of a site and of a complaint from the command line, over the same services as the portal."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from letters import LetterBox
from webdepot.cli.main import build_app
from webdepot.errors import WebdepotError


@pytest.fixture
def run(home: Path, letter_box: LetterBox, monkeypatch: pytest.MonkeyPatch):
    for name, value in (
        ("HOST", "127.0.0.1"),
        ("PORT", str(letter_box.port)),
        ("SECURITY", "none"),
        ("SENDER", "archive@library.example"),
    ):
        monkeypatch.setenv(f"WEBDEPOT_MAIL_{name}", value)
    program = build_app()

    def called(*words: str, expect: int = 0) -> list[dict]:
        done = CliRunner().invoke(program, ["--home", str(home), "--json", *words])
        error = done.exception
        status = error.exit_status if isinstance(error, WebdepotError) else done.exit_code
        assert status == expect, (done.output, error)
        called.error = str(error)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    return called


def test_from_a_list_to_a_refusal(run, letter_box: LetterBox, tmp_path: Path):
    listing = tmp_path / "sites.csv"
    listing.write_text(
        "address,name,contact_mail\nhttps://www.museum.example/,Museum,owner@museum.example\nnot a site,Bad,\n"
    )
    told = run("target", "import", str(listing), expect=1)
    assert told[0]["line"] == 3 and told[1] == {"new": 1, "known": 0, "bad": 1, "entered": False}
    listing.write_text(listing.read_text().replace("not a site", "https://other.example/"))
    assert run("target", "import", str(listing))[-1]["entered"] is True
    assert run("target", "add", "HTTP://museum.example/index.html")[0]["new"] is False
    run("target", "decide", "Museum", "select", expect=4)
    assert "Required state: judged" in run.error
    [judged] = run("target", "judge", "Museum", "national=yes:Dutch", "cultural=yes:clocks")
    assert (judged["state"], judged["verdict"]) == ("judged", "accept")
    run("target", "decide", "Museum", "select")
    assert run("permission", "ask", "--all", "--dry-run")[0]["why"] == "dry run" and letter_box.letters == []
    assert run("permission", "ask", "Museum")[-1]["sent"] == 1 and letter_box.to("owner@museum.example")
    [shown] = run("target", "show", "www.museum.example")
    assert (
        shown["state"] == "asked"
        and shown["may_harvest"] is False
        and "the owner can refuse until" in shown["why"]
    )
    assert run("permission", "reply", "Museum", "refusal", "--words", "no")[0]["state"] == "refused"
    assert run("rule", "list")[0]["prefix"] == "example,museum)"
    run("archive", "https://www.museum.example/", expect=3)


def test_a_complaint_is_decided_and_lifted(run, letter_box: LetterBox):
    [case] = run(
        "case",
        "add",
        "https://www.museum.example/a.html",
        "--words",
        "mine",
        "--ground",
        "copyright",
        "--mail",
        "me@home.example",
    )
    assert run("case", "list", "--state", "received")[0]["reference"] == case["reference"]
    [decided] = run(
        "case",
        "decide",
        case["reference"],
        "closed",
        "--area",
        "host",
        "--audience",
        "all but the reading room",
    )
    assert [rule["access_point"] for rule in run("rule", "list")] == ["public", "partner"]
    assert len(letter_box.to("me@home.example")) == 2 and decided["decision"] == "closed"
    run("case", "lift", case["reference"], "--reason", "settled")
    assert run("rule", "list") == []


def test_a_site_is_described_and_its_record_written_out(run):
    run("target", "add", "https://www.museum.example/", "--name", "Museum")
    given = ("genre=museum", "creators=J. Uurwerk", "creators=T. Tik", "languages=nl", "title=Klokken")
    [told] = run("target", "describe", "Museum", *given)
    assert (told["genre"], told["creators"], told["sources"]["title"]) == (
        "museum",
        ["J. Uurwerk", "T. Tik"],
        "person",
    )
    run("target", "describe", "Museum", "nonsense=x", expect=2)
    assert "Fields: title" in run.error
    run("target", "describe", "Museum", "title=One", "title=Two", expect=2)
    assert run("target", "describe", "Museum", "--from-site")[0]["title"] == "Klokken", (
        "what a person wrote stays"
    )


def test_rules_of_pywb_come_in_all_or_none(run, tmp_path: Path):
    file = tmp_path / "rules.aclj"
    file.write_text('org,a)/x - {"access": "block"}\norg,b)/ - {"access": "allow", "user": "desk"}\n')
    problem, counts = run("rule", "import", str(file), expect=1)
    assert problem["line"] == 2 and counts == {"new": 1, "known": 0, "bad": 1, "added": False}
    assert run("rule", "list") == []
    words = ("rule", "import", str(file), "--user", "desk=reading room", "--reason", "owner")
    assert run(*words, "--dry-run")[-1]["added"] is False and run("rule", "list") == []
    assert run(*words)[-1] == {"new": 2, "known": 0, "bad": 0, "added": True}
    assert run(*words)[-1] == {"new": 0, "known": 2, "bad": 0, "added": True}
    listed = [
        (rule["prefix"], rule["answer"], rule["access_point"], rule["reason"]) for rule in run("rule", "list")
    ]
    assert listed == [("org,a)/x", "refuse", None, "owner"), ("org,b)/", "show", "reading room", "owner")]
    run("rule", "import", str(tmp_path / "missing.aclj"), expect=2)
    assert "cannot be read: No such file" in run.error


def test_a_month_that_is_none_is_refused_in_one_sentence(run):
    run("schedule", "calendar", "next", expect=2)
    assert run.error == "'next' is not a month. Write it like 2027-01."
    assert run("schedule", "calendar", "2027-01")[0]["day"] == "2027-01-01"
