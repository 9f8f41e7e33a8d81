"""Durable files: written completely or not at all, and one holder of a lock at a time."""

import fcntl
import signal
import subprocess
import sys
import threading

import pytest

from webdepot import durable
from webdepot.errors import Conflict

HOLD = """
import sys
from pathlib import Path
from webdepot import durable
with durable.locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_whole_write_replaces_the_file_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "settings.toml"
    durable.write_whole(path, b"old")
    durable.write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["settings.toml"]


def test_a_secret_is_never_readable_by_others(tmp_path):
    path = tmp_path / "key"
    with durable.whole_file(path, mode=0o600) as file:
        file.write(b"secret")
        assert (tmp_path / "key.new").stat().st_mode & 0o077 == 0
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_write_that_fails_leaves_the_old_content(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="broken"), durable.whole_file(path) as file:
        file.write(b"half")
        raise ValueError("broken")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["settings.toml"]


def test_a_lock_has_one_holder_and_a_killed_one_releases_it(tmp_path):
    path = tmp_path / "lock"
    assert not durable.is_locked(path)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None and holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        assert durable.is_locked(path)
        with pytest.raises(Conflict, match="in use"):
            durable.acquire(path, busy="in use")
        holder.kill()
        holder.wait()
        assert not durable.is_locked(path)
        with durable.locked(path, busy="in use"):
            assert durable.is_locked(path)
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()


def test_a_signal_ends_the_wait_for_a_lock_whichever_thread_receives_it(tmp_path):
    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    def interrupt() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, stop)  # not SIGINT, which parallel tests ignore
    try:
        with (tmp_path / "lock").open("ab") as holder, pytest.raises(KeyboardInterrupt):
            fcntl.flock(holder, fcntl.LOCK_EX)
            threading.Timer(0.2, interrupt).start()
            durable.acquire(tmp_path / "lock")
    finally:
        signal.signal(signal.SIGUSR1, before)
