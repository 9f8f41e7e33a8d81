"""A smoke test of the benchmarks with little data, so that they work when they are needed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.parametrize("name", ["containers", "frontier"])
def test_a_benchmark_runs_and_writes_its_figures(tmp_path, name):
    command = [sys.executable, "-m", "bench", name, "--quick", "--results", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
