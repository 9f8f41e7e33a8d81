"""The access gate is the only place that reads the rules of access to decide, and a new rule holds at once."""

import ast
import time
from pathlib import Path

import pytest
from test_access_matrix import captures

from databases import SEEN_AFTER_S
from webdepot.access.policy import ANYONE, Reader, RuleAnswer
from webdepot.archive import Archive
from webdepot.services.access import gate, rules
from webdepot.services.access.gate import TooManyCaptures
from webdepot.services.admin import archive_status, setup

SOURCE = Path(__file__).resolve().parents[2] / "src" / "webdepot"
DECIDING = {
    "webdepot.access.policy": {"allows", "decisive"},
    "webdepot.access.rule_rows": {"by_prefix", "RulesByPrefix"},
    "webdepot.access.closed_areas": {"areas", "open_spans", "open_segments"},
}
"""What only the gate may use outside the component `access`."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    setup.create(folder)
    with Archive.open(folder) as archive:
        archive.captures.add("a.warc.gz", captures(), collection="c")
    return folder


def deciding_names(source: str) -> set[str]:
    """Names of `DECIDING` that a module uses, by import of the name or of its module."""
    tree = ast.parse(source)
    modules: dict[str, str] = {}
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in DECIDING.get(node.module or "", ()):
                    used.add(f"{node.module}.{alias.name}")
                elif f"{node.module}.{alias.name}" in DECIDING:
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            if module is not None and node.attr in DECIDING[module]:
                used.add(f"{module}.{node.attr}")
    return used


def test_nothing_but_the_gate_reads_the_rules_to_decide() -> None:
    users = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "access"
        and (deciding_names(path.read_text(encoding="utf-8")) or '"access rules"' in path.read_text("utf-8"))
    }
    assert users == {"services/access/gate.py"}


def test_a_rule_made_by_another_process_holds_with_the_next_request(home: Path) -> None:
    page = captures()[0]
    with Archive.open(home) as archive, Archive.open(home, agent="test") as other:
        assert not gate.has_rules(archive)
        assert gate.is_open(archive, page, ANYONE)
        assert page.url in [site.url for site in archive_status.home(archive, reader=ANYONE).sites]
        (rule,) = rules.add(other, page.url, answer=RuleAnswer.HIDE)
        time.sleep(SEEN_AFTER_S)
        assert not gate.is_open(archive, page, ANYONE)
        assert gate.of_key(archive, page.key, ANYONE).spans == ()
        assert page.url not in [site.url for site in archive_status.home(archive, reader=ANYONE).sites]
        assert page.key in {one.key for one in gate.iter_closed(archive, ANYONE)}
        rules.remove(other, rule.id)
        time.sleep(SEEN_AFTER_S)
        assert gate.is_open(archive, page, ANYONE)


def test_only_a_rule_that_closes_something_is_examined(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MOST_EXAMINED", 3)
    with Archive.open(home, agent="test") as archive:
        rules.add(archive, "a.org", answer=RuleAnswer.WARN, public_text="Contains errors.")
        assert list(gate.iter_closed(archive, Reader())) == []
        rules.add(archive, "a.org", answer=RuleAnswer.REFUSE)
        assert list(gate.iter_closed(archive, Reader(), hidden_only=True)) == []
        with pytest.raises(TooManyCaptures):
            list(gate.iter_closed(archive, Reader()))
