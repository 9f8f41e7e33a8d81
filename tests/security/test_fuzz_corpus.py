"""The inputs of the fuzzers are tried again: none crashes, hangs or fills the memory. Planted faults show that the
harness would notice."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz import guard

ROOT = Path(guard.__file__).parent.parent
PLANTED = Path(__file__).with_name("planted_faults.py")
LARGEST_CORPUS_BYTES = 64 << 10
"""Of one fuzzer: the corpus must stay small."""
REQUIRED = {
    "warc", "arc", "http_head", "cdx_lines", "cdx_query", "robots", "css", "link_header", "html_links", "sitemap",
    "mets", "oai_answer", "oai_request", "zip_submission", "tar_submission", "package_json", "query", "pdf_links",
}  # fmt: skip


def replay(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fuzz.replay", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_no_input_of_the_corpus_crashes():
    done = replay()
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]}\n{done.stderr[-5000:]}"
    tried = {line.split()[0] for line in done.stdout.splitlines()}
    assert tried == set(guard.names())


def test_the_parsers_that_matter_have_a_fuzzer():
    assert set(guard.names()) >= REQUIRED


@pytest.mark.parametrize("name", guard.names())
def test_every_fuzzer_has_a_small_corpus(name):
    sizes = [path.stat().st_size for path in (guard.CORPUS / name).iterdir()]
    assert sizes
    assert sum(sizes) <= LARGEST_CORPUS_BYTES


def test_no_corpus_is_left_from_a_fuzzer_that_is_gone():
    assert {path.name for path in guard.CORPUS.iterdir()} == set(guard.names())


@pytest.mark.parametrize("name", guard.names())
def test_a_fuzzer_calls_the_program(name):
    tree = ast.parse((guard.FOLDER / "targets" / f"{name}.py").read_text())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert any(module.startswith(("webdepot", "fuzz.")) for module in imported)


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("documented", 0),
        ("nothing", 0),
        ("crash", 1),
        ("memory", 1),
        ("hang", -signal.SIGPROF),
        ("native", -signal.SIGABRT),
    ],
)
def test_replay_notices_a_planted(tmp_path, fault, status):
    (tmp_path / fault).write_text(fault)
    done = replay(PLANTED, tmp_path / fault)
    assert done.returncode == status
    assert done.stdout.split()[-1] == str(tmp_path / fault)  # the culprit is named
    expected = {"crash": "KeyError: 'planted'", "memory": "MemoryError", "hang": "planted_faults.py"}
    assert expected.get(fault, "") in done.stderr


@pytest.mark.slow
def test_the_fuzzer_keeps_each_planted_fault_and_continues(tmp_path):
    pytest.importorskip("atheris", reason="installed by `make fuzz`")
    found = tmp_path / PLANTED.stem
    (found / "corpus").mkdir(parents=True)
    for fault in ("crash", "hang", "memory", "native", "documented"):
        (found / "corpus" / fault).write_text(fault)
    command = [sys.executable, "-m", "fuzz", "--seconds", "20", "--folder", str(tmp_path), str(PLANTED)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 1, done.stderr
    kept = {path.read_text(): path.name.partition("-")[0] for path in (found / "crashes").glob("*[!t]")}
    assert kept.keys() >= {"crash", "hang"}
    assert (kept["crash"], kept["hang"]) == ("KeyError", "cpu")
    assert all("Repeat with:" in path.read_text() for path in (found / "crashes").glob("*.txt"))
