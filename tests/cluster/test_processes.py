"""Background programs: they are found again, ended together with all processes that they started, and never confused with others."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from webdepot.cluster.processes import ProcessFolder, Program
from webdepot.errors import RemoteError


def sleeper(name: str = "one", *, script: str = "exec sleep 100") -> Program:
    return Program(name=name, command=["/bin/sh", "-c", script])


@pytest.fixture
def processes(tmp_path):
    folder = ProcessFolder(tmp_path)
    yield folder
    for name in folder.names():
        folder.kill(name)


def test_a_program_is_started_once_found_again_and_stopped(processes, tmp_path):
    assert processes.start(sleeper())
    assert not processes.start(sleeper())
    again = ProcessFolder(tmp_path)  # as another command sees it
    process = again.find("one")
    assert process is not None and process.is_alive and again.names() == ["one"]
    assert 0 <= process.age_s < 100
    assert again.stop({"one": signal.SIGTERM}) == 1
    assert not process.is_alive and again.names() == []
    assert again.stop({"one": signal.SIGTERM}) == 0


def test_the_process_of_somebody_else_with_the_same_number_is_not_touched(processes, tmp_path):
    processes.start(sleeper())
    file = tmp_path / "run" / "one.json"
    known = json.loads(file.read_text())
    processes.kill("one")
    other = subprocess.Popen(["sleep", "100"], start_new_session=True)
    try:
        for changed in ({"pid": other.pid}, {"pid": other.pid, "boot": "another boot"}):
            file.write_text(json.dumps(known | changed))
            assert not processes.is_alive("one")
            assert not processes.kill("one")
            assert processes.stop({"one": signal.SIGTERM}) == 0
            assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_kill_ends_what_the_program_started_even_if_it_is_dead_itself(processes, tmp_path):
    pids = tmp_path / "pids"
    script = f"sleep 100 & echo $! > {pids}; exec sleep 100"

    def child() -> int:
        until_s = time.monotonic() + 20
        while not (pids.exists() and pids.read_text().strip()):
            assert time.monotonic() < until_s
            time.sleep(0.01)
        return int(pids.read_text())

    processes.start(sleeper(script=script))
    pid = child()
    assert processes.kill("one")
    assert _is_gone(pid)
    pids.unlink()
    processes.start(sleeper(script=script))
    pid, leader = child(), processes.find("one")
    os.kill(leader.pid, signal.SIGKILL)
    while leader.is_alive:
        time.sleep(0.01)
    assert not processes.kill("one")  # it was not running, but its child was
    assert _is_gone(pid)


def _is_gone(pid: int) -> bool:
    """It is dead; nobody may have collected it yet."""
    until_s = time.monotonic() + 20
    while time.monotonic() < until_s:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_a_program_that_ends_is_reported_with_the_end_of_its_log(processes):
    program = Program(
        name="one", command=["/bin/sh", "-c", "echo the port is taken >&2; exit 3"], is_ready=lambda: False
    )
    processes.start(program)
    with pytest.raises(RemoteError, match=r"one ended.*the port is taken"):
        processes.wait(program, at_most_s=30)


def test_a_file_that_was_not_written_is_no_process(processes, tmp_path):
    (tmp_path / "run").mkdir()
    for text in ("", "[]", "{}", "nonsense"):
        (tmp_path / "run" / "one.json").write_text(text)
        assert processes.find("one") is None
        assert not processes.kill("one")
    assert processes.start(sleeper())
