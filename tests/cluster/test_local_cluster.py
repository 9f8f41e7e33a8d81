"""A whole cluster on this machine: `make test-cluster`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from webdepot.cluster import plan, readiness

pytestmark = pytest.mark.skipif(
    os.environ.get("WEBDEPOT_TEST_CLUSTER") != "1", reason="takes a minute: make test-cluster"
)
WEBDEPOT = str(Path(sys.executable).parent / "webdepot")


def run(
    *arguments: str, status: int = 0, environment: dict[str, str] | None = None
) -> list[dict[str, object]]:
    done = subprocess.run(
        [WEBDEPOT, "--json", *arguments],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == status, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def states(home: Path, status: int = 0) -> dict[str, str]:
    return {row["name"]: row["state"] for row in run("cluster", "status", str(home), status=status)}


def test_a_cluster_starts_loses_a_process_starts_it_again_and_stops(tmp_path):
    home = tmp_path / "home"
    run("cluster", "status", str(home), status=1)
    try:
        (result,) = run("cluster", "up", str(home))
        assert len(result["portals"]) == 2 and not result["is_elsewhere"]
        assert set(states(home).values()) == {"running"}
        known = plan.load(home)
        (doctor, *_) = [
            row
            for row in run("--home", str(home), "doctor", environment=known.environment)
            if "PostgreSQL" in str(row)
        ]
        assert "answers" in str(doctor)
        run("cluster", "kill", "portal-2", str(home))
        run("cluster", "kill", "portal-2", str(home), status=2)
        run("cluster", "kill", "nobody", str(home), status=1)
        assert [name for name, state in states(home, status=1).items() if state != "running"] == ["portal-2"]
        assert readiness.answers(known.ports["portal-1-port"], "/ready")
        assert run("cluster", "up", str(home))[0]["started"] == ["portal-2"]
        assert set(states(home).values()) == {"running"}
    finally:
        run("cluster", "down", str(home))
    assert set(states(home, status=1).values()) == {"not running"}
    assert run("cluster", "down", str(home)) == [{"stopped": 0}]
    assert not readiness.accepts(known.ports["postgresql"])
