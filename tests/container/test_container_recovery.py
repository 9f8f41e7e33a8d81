"""Containers after a full disk, kill -9 and cut files: none ends in half a record, nothing acknowledged is lost."""

import gzip
import hashlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from container_samples import by_warcio
from written_containers import (
    group_of,
    read_blocks,
    visit_of,
    warcio_blocks,
    writer_in,
)

from webdepot import digest
from webdepot.container.reader import iter_records
from webdepot.container.recovery import recover, whole_records
from webdepot.model import RecordKind

# --- a full disk ---

FILL_THE_DISK = """
import io, random, resource, signal, sys
from pathlib import Path
from webdepot.container.new_records import resource as resource_record
from written_containers import NOW, group_of, visit_of, writer_in
from webdepot.errors import NoSpace
folder, limit = Path(sys.argv[1]), int(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sealed = []
writer = writer_in(folder, sealed)
written = 0
try:
    for number in range(100):
        writer.write(group_of(visit_of(f"http://e.org/{number}", random.Random(number).randbytes(1000))))
        written += 1
except NoSpace as error:
    print(written, error)
try:
    writer.write(group_of(visit_of("http://e.org/large", random.Random(1).randbytes(1 << 20) * 5)))
except NoSpace as error:
    print("large", error)
if written:
    writer.write([resource_record("urn:x:small", NOW, "text/plain", io.BytesIO(b"small"), 5)])
writer.close()
print(*[f"{container.name} {container.records} {container.sha256}" for container in sealed])
"""


def in_child(script: str, *arguments: object) -> list[str]:
    """Output lines of a script in a separate process, which can import the files of this folder."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=child_environment(),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def child_environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
        "PYTHONWARNINGS": "ignore",
    }


def test_a_full_disk_cuts_back_to_whole_records(tmp_path: Path):
    """No file may grow beyond 20,000 bytes: the kernel refuses as on a full disk. Smaller records
    still fit.
    """
    first, large, sealed = in_child(FILL_THE_DISK, tmp_path, 20_000)
    assert "H-00000.warc.gz.open" in first and "Make room" in first
    assert large.startswith("large Cannot write")
    written = int(first.split()[0])
    assert 5 < written < 20
    name, records, sha256 = sealed.split()
    path = tmp_path / name
    assert sha256 == digest.of_file(path).value.hex()
    blocks = read_blocks(path)
    assert blocks == warcio_blocks(path)
    assert len(blocks) == int(records) == 1 + written * 3 + 1


def test_a_disk_full_from_the_start_leaves_no_file(tmp_path: Path):
    first, large, sealed = in_child(FILL_THE_DISK, tmp_path, 10)
    assert first.startswith("0 Cannot write") and large.startswith("large Cannot write")
    assert sealed == ""
    assert list(tmp_path.iterdir()) == []


# --- recovery ---


def open_container(folder: Path, count: int) -> tuple[Path, list[int]]:
    """An `.open` file as a killed process leaves it, and where its groups end."""
    writer = writer_in(folder)
    ends = []
    for number in range(count):
        last = writer.write(group_of(visit_of(f"http://e.org/{number}", b"page %d " % number * 50)))[-1]
        ends.append(last.offset + last.length)
    return folder / "H-00000.warc.gz.open", ends


def test_cut_at_every_byte_all_records_before_are_recovered(tmp_path: Path):
    path, _ = open_container(tmp_path, 2)
    data = path.read_bytes()
    with path.open("rb") as stream:
        ends = [
            record.location.offset + record.location.length
            for record in iter_records(stream, "H", on_finding=pytest.fail)
        ]
    path.unlink()
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        whole = sum(end <= size for end in ends)
        assert whole_records(path, size) == (max((end for end in ends if end <= size), default=0), whole)
        if size % 97 and size not in ends:  # the rest is the same for every byte, and each rename is synced
            continue
        (recovered,) = recover(tmp_path, None)
        if whole <= 1:
            assert (recovered.kept_bytes, recovered.sealed) == (0, None)
            assert list(tmp_path.iterdir()) == []
            continue
        kept = max(end for end in ends if end <= size)
        assert (recovered.kept_bytes, recovered.cut_bytes, recovered.records) == (kept, size - kept, whole)
        assert recovered.sealed is not None
        assert recovered.sealed.path.read_bytes() == data[:kept]
        assert recovered.sealed.sha256 == hashlib.sha256(data[:kept]).hexdigest()
        recovered.sealed.path.unlink()


def test_marks_decide_what_is_kept(tmp_path: Path):
    path, ends = open_container(tmp_path, 5)
    size = path.stat().st_size
    (tmp_path / "H-00001.warc.gz.open").write_bytes(path.read_bytes())
    kept, removed = recover(tmp_path, {"H-00000.warc.gz.open": ends[2], "crawl.log": 77})
    assert (kept.name, kept.kept_bytes, kept.cut_bytes, kept.records) == (
        "H-00000.warc.gz",
        ends[2],
        size - ends[2],
        10,
    )
    assert (removed.name, removed.kept_bytes, removed.cut_bytes, removed.sealed) == (
        "H-00001.warc.gz",
        0,
        size,
        None,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["H-00000.warc.gz"]
    assert recover(tmp_path, {"H-00000.warc.gz.open": ends[2]}) == []
    assert len(warcio_blocks(tmp_path / "H-00000.warc.gz")) == 10


def test_a_disk_that_lost_acknowledged_bytes_is_reported(tmp_path: Path):
    path, ends = open_container(tmp_path, 5)
    with path.open("r+b") as stream:
        stream.truncate(ends[3] + 5)
    (recovered,) = recover(tmp_path, {path.name: ends[4]})
    assert recovered.kept_bytes == ends[3]
    assert "lost" in recovered.message


def test_a_large_record_is_recovered(tmp_path: Path):
    writer = writer_in(tmp_path)
    writer.write(group_of(visit_of("http://e.org/large", random.Random(1).randbytes(1 << 20) * 6)))
    writer.write(group_of(visit_of("http://e.org/small", b"small")))
    path = tmp_path / "H-00000.warc.gz.open"
    data = path.read_bytes()
    (recovered,) = recover(tmp_path, None)
    assert (recovered.records, recovered.cut_bytes) == (7, 0)
    (tmp_path / "H-00000.warc.gz").unlink()
    path.write_bytes(data[: len(data) // 2])
    (recovered,) = recover(tmp_path, None)
    assert recovered.records == 2


WRITE_FOR_EVER = """
import io, random, sys
from pathlib import Path
from written_containers import group_of, visit_of, writer_in
folder = Path(sys.argv[1])
writer = writer_in(folder, size_bytes=60_000)
number = 0
while True:
    for _ in range(5):
        writer.write(group_of(visit_of(f"http://e.org/{number}", random.Random(number).randbytes(3000))))
        number += 1
    marks = writer.sync()
    print(number, *[f"{name}={size}" for name, size in marks.items()], flush=True)
"""


@pytest.mark.parametrize("seed", range(6))
def test_after_kill_9_exactly_what_was_acknowledged_is_there(tmp_path: Path, seed: int):
    folder = tmp_path / "warc"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
        "PYTHONWARNINGS": "ignore",
    }
    with subprocess.Popen(
        [sys.executable, "-c", WRITE_FOR_EVER, str(folder)],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(1 + seed * 3)]
        time.sleep(random.Random(seed).random() * 0.02)  # the moment of the kill, not a wait for anything
        process.kill()
        lines += process.stdout.readlines()
    acknowledged, *marks = next(line for line in reversed(lines) if line.endswith("\n")).split()
    recover(folder, {name: int(size) for name, size in (mark.split("=") for mark in marks)})
    urls = []
    for path in sorted(folder.iterdir()):
        assert path.name.endswith(".warc.gz")
        assert [kind for kind, _ in warcio_blocks(path)] == [kind for kind, _ in read_blocks(path)]
        with path.open("rb") as stream:
            urls += [
                record.url
                for record in iter_records(stream, path.name, on_finding=pytest.fail)
                if record.kind is RecordKind.RESPONSE
            ]
    assert urls == [f"http://e.org/{number}" for number in range(int(acknowledged))]


@pytest.mark.parametrize("make", [by_warcio, lambda: gzip.compress(by_warcio(compress=False))])
def test_foreign_open_files_are_recovered_too(tmp_path: Path, make: Callable[[], bytes]):
    (tmp_path / "x.warc.gz.open").write_bytes(make()[:-5])
    (recovered,) = recover(tmp_path, None)
    assert recovered.records in (0, 20)
