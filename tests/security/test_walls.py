"""Walls around the processes that read hostile bytes, tried from inside such a process."""

import ctypes
import os
import platform
import socket
import sys
from pathlib import Path

import pytest

from webdepot.guard import walls
from webdepot.guard.environment import of_command
from webdepot.guard.probe import probe
from webdepot.guard.system_calls import ARCHITECTURES
from webdepot.guard.walls import View

_ASK_LANDLOCK_VERSION = (444, None, 0, 1)
needs_filter = pytest.mark.skipif(
    platform.machine() not in ARCHITECTURES or not Path("/proc/sys/kernel/seccomp/actions_avail").exists(),
    reason="this kernel has no seccomp filters",
)
needs_landlock = pytest.mark.skipif(
    ctypes.CDLL(None).syscall(*_ASK_LANDLOCK_VERSION) <= 0, reason="this kernel has no Landlock"
)


def test_a_child_sees_no_variable_of_ours(monkeypatch):
    monkeypatch.setenv("WEBDEPOT_MAIL_PASSWORD", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    seen = probe().environment
    assert set(seen) <= {"LC_ALL", "PYTHONPATH", "TMPDIR", "LD_LIBRARY_PATH"}


def test_a_child_has_no_new_privileges():
    seen = probe()
    assert seen.no_new_privileges
    assert {walls.PRIVILEGES, walls.RESOURCES} <= set(seen.walls)


@needs_filter
def test_a_child_cannot_reach_a_listener_nor_start_anything():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        seen = probe(connect=listener.getsockname())
        threaded = probe(connect=listener.getsockname(), view=View(threads=True))
    assert (seen.seccomp, seen.connects, seen.starts, seen.forks) == (2, False, False, False)
    assert (threaded.seccomp, threaded.connects, threaded.starts, threaded.forks) == (2, False, False, False)


@needs_landlock
def test_a_child_reads_only_the_program_and_writes_only_into_its_folder(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    secret = home / "logins.toml"
    secret.write_text("password")
    given, folder = tmp_path / "given.sig", tmp_path / "out"
    given.write_text("x")
    folder.mkdir()
    monkeypatch.chdir(home)  # where an operator may have started the program
    outside = [home / "new", secret, Path("/tmp/webdepot-wall"), Path(walls.__file__)]
    seen = probe(
        read=[secret, home, Path("/etc/passwd"), Path("/proc/self/environ"), given, Path(walls.__file__)],
        write=[*outside, folder / "new", given],
        view=View(readable=[given], writable=[folder]),
    )
    assert list(seen.reads) == [str(given), walls.__file__]
    assert list(seen.writes) == [str(folder / "new")]
    assert not (home / "new").exists()


def test_all_walls_stand_in_for_each_other_on_this_machine():
    """What a kernel lacks is left out, not an error; on this one at least one wall refuses the network."""
    holding = set(probe().walls)
    assert holding <= set(walls.ALL)
    assert holding & {walls.NETWORK, walls.CALLS}


def test_a_wall_that_cannot_be_raised_does_not_stop_the_others(monkeypatch):
    """As in a service that forbids namespaces, or on an old kernel; in a process of its own."""
    program = (
        "import sys\nfrom webdepot.guard import walls\n"
        "def fail(*_): raise OSError(38, 'not on this kernel')\n"
        "walls._leave_network = walls._restrict_files = fail\n"
        "print(*walls.raise_walls(walls.View()))\n"
    )
    read, write = os.pipe()
    child = os.posix_spawn(
        sys.executable,
        [sys.executable, "-c", program],
        {"PYTHONPATH": os.pathsep.join(sys.path)},
        file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)],
    )
    os.close(write)
    with os.fdopen(read) as output:
        holding = output.read().split()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert {walls.PRIVILEGES, walls.RESOURCES} <= set(holding)
    assert not {walls.NETWORK, walls.FILES} & set(holding)


def test_commands_of_the_operator_get_no_secrets(monkeypatch):
    for name in ("WEBDEPOT_MAIL_PASSWORD", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "http_proxy"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    environment = of_command()
    assert environment["PATH"] and environment["LC_ALL"] == "C.UTF-8"
    assert "secret" not in environment.values()


def test_a_child_has_few_resources():
    seen = probe(view=View(largest_file_bytes=1000))
    assert dict(seen.limits) == {"core": 0, "file": 1000, "files": walls.MOST_OPEN_FILES, "processes": 0}
