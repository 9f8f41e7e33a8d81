"""kill -9 at any moment of every command that writes: the same command finishes the work, and nothing is lost or
doubled.

`make kills` runs thirty kills and thirty power cuts for each command (WEBDEPOT_KILLS); the ordinary test run can
afford only a few.
"""

import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import losing_disk
import pytest
import writers
from writers import HOME, WRITERS, Writer

from webdepot.archive import Archive

KILLS = int(os.environ.get("WEBDEPOT_KILLS", "1"))
MOST_DISTURBED = 3
"""How often the same work is disturbed before it may end."""


NAMES = [*(writer.name for writer in WRITERS), *writers.LIVE, *writers.S3]


@pytest.fixture(scope="module", params=[name for name in NAMES if KILLS > 1 or name not in writers.LONG])
def writer(request: pytest.FixtureRequest) -> Iterator[Writer]:
    if request.param in writers.LIVE:
        with writers.LIVE[request.param]() as live:
            yield live
        return
    if request.param not in writers.S3:
        yield next(each for each in WRITERS if each.name == request.param)
        return
    server = request.getfixturevalue("seaweed")
    with pytest.MonkeyPatch.context() as patch:
        for place in ("MAIN", writers.S3_PLACE.upper()):
            patch.setenv(f"WEBDEPOT_PLACE_{place}_ACCESS_KEY", server.access_key)
            patch.setenv(f"WEBDEPOT_PLACE_{place}_SECRET_KEY", server.secret_key)
        yield next(each for each in writers.s3_writers(server) if each.name == request.param)


@pytest.fixture(scope="module")
def prepared(writer: Writer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    writer.prepare(folder)
    return folder


@pytest.fixture(scope="module")
def undisturbed(
    writer: Writer, prepared: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[writers.View, float]:
    """The archive after a command that nothing disturbed, and how long that took."""
    folder = shutil.copytree(prepared, tmp_path_factory.mktemp("undisturbed") / "disk")
    begun_s = time.monotonic()
    writers.run(writer.command(folder))
    duration_s = time.monotonic() - begun_s
    return writers.view(folder / HOME, same_names=writer.same_names), duration_s


def check(writer: Writer, folder: Path, expected: writers.View, when: str) -> None:
    """The archive must be as if nothing had happened."""
    seen = writers.view(folder / HOME, same_names=writer.same_names)
    different = writers.differences(seen, expected)
    assert not different, f"{writer.name}, {when}: {different}"


def is_done(writer: Writer, folder: Path, expected: writers.View) -> bool:
    """Whether a command that begins a new work when nothing is left to do must not be repeated: it was killed
    after its last step, or had ended.
    """
    if not writer.begins_anew or not (folder / HOME / "webdepot.db").exists():
        return False
    with Archive.open(folder / HOME) as archive:
        archive.remove_abandoned()  # as the next command would
    return not writers.differences(writers.view(folder / HOME, same_names=writer.same_names), expected)


def finish(writer: Writer, folder: Path, command: list[str], expected: writers.View) -> None:
    """Repeat the command."""
    if not is_done(writer, folder, expected):
        writers.run(command)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command with all processes it started."""
    os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_killed_at_any_moment_the_same_command_finishes_the_work(writer, prepared, undisturbed, tmp_path):
    expected, duration_s = undisturbed
    chance = random.Random(f"{writer.name} kills")
    for number in range(KILLS):
        folder = shutil.copytree(prepared, tmp_path / str(number))
        command = writer.command(folder)
        for _ in range(chance.randint(1, MOST_DISTURBED)):
            if is_done(writer, folder, expected):
                break
            process = writers.start(command)
            time.sleep(chance.uniform(0.3, 1.05) * duration_s)  # the kill must come at an arbitrary moment
            kill(process)
            process.communicate()
        finish(writer, folder, command, expected)
        check(writer, folder, expected, f"kill {number}")
        shutil.rmtree(folder)


def test_a_version_without_its_checksum_is_finished_by_the_same_command(tmp_path):
    """A power cut between the last two files of a migration."""
    migrating = next(each for each in WRITERS if each.name == "migration")
    migrating.prepare(tmp_path)
    command = migrating.command(tmp_path)
    writers.run(command)
    (first,) = (tmp_path / HOME / "depot").rglob("v1/inventory.json.sha256")
    shutil.copyfile(first, first.parent.parent / first.name)
    writers.run(command)
    assert writers.view(tmp_path / HOME, same_names=False).faults == []


def losing_disks_work(folder: Path) -> str:
    """Why a disk that loses data cannot be mounted here; empty if it can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    if not Path("/dev/fuse").exists():
        return "there is no /dev/fuse"
    descriptor = os.open("/dev/fuse", os.O_RDWR)
    try:
        losing_disk.mount(descriptor, folder)
        losing_disk.unmount(folder)
    except OSError as error:
        return f"mounting failed: {error}"
    finally:
        os.close(descriptor)
    return ""


def run_on_losing_disk(folder: Path, command: list[str], *, seed: int, cut_at: int) -> int:
    """Run a command on a disk whose power is cut after `cut_at` changes, or when it has ended; the number of
    changes until then. The folder then contains what the disk kept.
    """
    disk = subprocess.Popen(
        [sys.executable, losing_disk.__file__, str(folder), str(seed), str(cut_at)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert disk.stdin is not None
    assert disk.stdout is not None
    try:
        assert disk.stdout.readline() == "ready\n"
        process = writers.start(command)
        while process.poll() is None and disk.poll() is None:
            if is_cut(disk):
                break
            time.sleep(0.02)
        if process.poll() is None:
            kill(process)
        else:
            output = process.stdout.read() if process.stdout else b""
            assert process.returncode == 0, output.decode(errors="replace")
            disk.stdin.write("cut\n")
            disk.stdin.flush()
        changes = int(disk.stdout.readline().removeprefix("cut "))
        disk.stdin.close()
        process.communicate()
        return changes
    finally:
        disk.stdin.close()
        disk.wait()
        disk.stdout.close()
        losing_disk.unmount(folder)


def is_cut(disk: subprocess.Popen[str]) -> bool:
    return bool(select.select([disk.stdout], [], [], 0)[0])


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_after_a_power_cut_the_same_command_finishes_the_work(writer, prepared, undisturbed, tmp_path):
    (tmp_path / "try").mkdir()
    if reason := losing_disks_work(tmp_path / "try"):
        pytest.skip(reason)
    expected, _ = undisturbed
    folder = shutil.copytree(prepared, tmp_path / "count")
    changes = run_on_losing_disk(folder, writer.command(folder), seed=0, cut_at=0)
    # Everything was acknowledged before the power was cut.
    finish(writer, folder, writer.command(folder), expected)
    check(writer, folder, expected, "cut after the end")
    chance = random.Random(f"{writer.name} cuts")
    for number in range(KILLS):
        folder = shutil.copytree(prepared, tmp_path / str(number))
        command = writer.command(folder)
        for _ in range(chance.randint(1, MOST_DISTURBED)):
            if is_done(writer, folder, expected):
                break
            run_on_losing_disk(
                folder, command, seed=chance.randrange(1 << 30), cut_at=chance.randint(1, changes)
            )
        finish(writer, folder, command, expected)
        check(writer, folder, expected, f"cut {number}")
        shutil.rmtree(folder)
