"""The service unit of the documentation: rated by systemd, and complete enough to run Webdepot."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "run-as-a-service.md"
MOST_EXPOSURE = 2.0


@pytest.fixture
def unit(tmp_path):
    block = re.search(r"(?m)^    \[Unit\]\n(?:(?:    .*)?\n)+", PAGE.read_text(encoding="utf-8"))[0]
    path = tmp_path / "webdepot.service"
    path.write_text(re.sub(r"(?m)^    ", "", block), encoding="utf-8")
    return path


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_rates_the_unit_below_two(unit):
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    rating = re.search(r"Overall exposure level for webdepot.service: ([0-9.]+)", done.stdout)
    assert rating, done.stderr
    assert float(rating[1]) < MOST_EXPOSURE, done.stdout


def test_the_unit_lets_the_walls_and_the_sandbox_of_chromium_stand(unit):
    """What the guard and Chromium's sandbox call must not be refused."""
    lines = unit.read_text(encoding="utf-8").splitlines()
    calls = {word for line in lines if line.startswith("SystemCallFilter=") for word in line[17:].split()}
    assert {"@system-service", "seccomp", "chroot", "landlock_restrict_self"} <= calls
    assert "RestrictNamespaces=user net pid" in lines
    assert not any(line.startswith("MemoryDenyWriteExecute=") for line in lines)  # V8 compiles
    assert {"UMask=0077", "OOMPolicy=continue", "CapabilityBoundingSet="} <= set(lines)
