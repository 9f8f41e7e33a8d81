"""The commands as a person types them: exit codes, JSON, messages."""

import json
import sys

import pytest
from depot_samples import write_warc

from webdepot.cli.main import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the program in this process: starting Python thirty times would take a minute."""

    def call(*arguments: object, status: int = 0, home: str = "home") -> list[dict]:
        monkeypatch.setattr(
            sys, "argv", [str(word) for word in ("webdepot", "--home", tmp_path / home, *arguments, "--json")]
        )
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert (ended.value.code or 0) == status, (
            f"{arguments}: exit {ended.value.code}\n{said.out}\n{said.err}"
        )
        return [json.loads(line) for line in said.out.splitlines()]

    return call


def test_a_package_from_the_cradle_to_the_grave(run, tmp_path):
    run("init")
    write_warc(
        tmp_path / "x.warc.gz", {"https://x.example/": b"<!doctype html><title>X</title><p>The windmill."}
    )
    (taken,) = run("package", "import", tmp_path / "x.warc.gz")
    assert (taken["state"], taken["kind"]) == ("taken", "container")
    identifier = taken["package"]
    assert run("package", "import", tmp_path / "x.warc.gz")[0]["state"] == "known"
    (tmp_path / "no.zip").write_bytes(b"nothing")
    (refused,) = run("package", "import", tmp_path / "no.zip", status=1)
    assert refused["state"] == "refused"
    assert run("depot", "copy", "add", "second", tmp_path / "second")[0]["copied"] == 1
    assert [place["place"] for place in run("depot", "copy", "status")] == ["main", "second"]

    spoiled = next((tmp_path / "second").rglob("x.warc.gz"))
    spoiled.write_bytes(b"spoiled")
    assert run("depot", "verify", tmp_path / "second", status=6)[-1]["damaged"] == 1
    assert run("depot", "audit", "--package", identifier, "--no-repair", status=1)[-1]["counts"] == {
        "whole": 1,
        "damaged": 1,
    }
    run("depot", "copy", "status", status=1)
    assert run("depot", "audit", "--older-than", "0")[-1]["counts"]["repaired"] == 1
    assert run("depot", "verify", tmp_path / "second")[-1]["findings"] == 0
    for root in (tmp_path / "home" / "depot", tmp_path / "second"):
        next(root.rglob("x.warc.gz")).write_bytes(b"spoiled")
    assert run("depot", "audit", "--package", identifier, status=6)[-1]["counts"] == {"lost": 2}
    for root in (tmp_path / "home" / "depot", tmp_path / "second"):
        next(root.rglob("x.warc.gz")).write_bytes((tmp_path / "x.warc.gz").read_bytes())
    assert run("depot", "audit", "--package", identifier)[-1]["counts"] == {"whole": 2}

    (done,) = run("package", "export", identifier, "--form", "wacz", "--output", tmp_path / "x.wacz")
    assert done["size_bytes"] > 0
    run("package", "export", identifier, "--output", tmp_path / "x.wacz", status=4)
    assert run("package", "show", identifier)[0]["copies"][0]["state"] == "whole"
    (rebuilt,) = run("depot", "rebuild", "--from", tmp_path / "second", home="new")
    assert (rebuilt["packages"], rebuilt["captures"]) == (1, 1)
    assert [each["id"] for each in run("package", "list", home="new")] == [identifier]

    (hold,) = run("package", "hold", identifier, "--reason", "Case 12")
    run("package", "withdraw", identifier, "--reason", "x", "--approved-by", "Piet", "--yes", status=3)
    run("package", "hold", "--release", hold["number"])
    assert (
        run("package", "withdraw", identifier, "--reason", "x", "--approved-by", "Piet", "--yes")[0][
            "waiting"
        ]
        == []
    )
    assert run("package", "list") == []
    run("package", "show", identifier, status=1)
    run("depot", "report", "--output", tmp_path / "fixity.json")
    assert run("depot", "report", "--check", tmp_path / "fixity.json")[0]["valid"]
    run("depot", "copy", "add", "Wrong Name", tmp_path / "x", status=2)
    run("depot", "copy", "remove", "none", status=1)
