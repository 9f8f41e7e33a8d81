"""A record of 2 GB is written, read, recovered and rewritten without memory growing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SIZE_BYTES = 2 << 30
MOST_MEGABYTES = 120

WRITE = """
from webdepot.container.new_records import from_visit, payload_digest
from webdepot.container.writer import ContainerWriter
from webdepot.model import Candidate, Visit
from webdepot.times import utc_now
with open(folder / "body", "w+b") as body:
    body.truncate(size)
    visit = Visit(
        candidate=Candidate(url="http://www.example.org/film"), at=utc_now(), duration_s=1.0, request=b"GET /film HTTP/1.1\\r\\n\\r\\n",
        head=b"HTTP/1.1 200 OK\\r\\nContent-Type: video/mp4\\r\\n\\r\\n", body=body, body_bytes=size, status=200,
    )
    writer = ContainerWriter(folder, prefix="L", size_bytes=1 << 20, info={}, clock=utc_now, on_sealed=lambda sealed: None)
    writer.write(from_visit(visit, payload_digest=payload_digest(visit)))
"""
RECOVER = """
from webdepot.container.recovery import recover
(recovered,) = recover(folder, None)
assert (recovered.records, recovered.cut_bytes) == (3, 0), recovered
"""
READ = """
from webdepot.container.reader import iter_records, read_record
def size_of(stream):
    return sum(len(piece) for piece in iter(lambda: stream.read(1 << 20), b""))
with open(folder / name, "rb") as stream:
    places = []
    for record in iter_records(stream, name, on_finding=print):
        if record.size_bytes >= size:
            assert record.head.status == 200 and record.payload_bytes == size
            assert size_of(record.payload()) == size
            places.append(record.location)
    assert size_of(read_record(stream, places[0]).payload()) == size
"""
REWRITE = """
from webdepot.container.conversion.rewrite import record_wise
with open(folder / name, "rb") as stream:
    assert record_wise(stream, folder / "rewritten.warc.gz").records == 1
"""


def megabytes_of(script: str, folder: Path, name: str = "") -> float:
    """The most memory that a process needed for a script. (getrusage would count what the parent had before
    it began.)
    """
    begin = f"from pathlib import Path\nfolder, name, size = Path({str(folder)!r}), {name!r}, {SIZE_BYTES}\n"
    end = "\nprint(int(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]) / 1024)"
    done = subprocess.run(
        [sys.executable, "-c", begin + script + end], capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.slow
def test_two_gigabytes_in_one_record(tmp_path: Path):
    assert megabytes_of(WRITE, tmp_path) < MOST_MEGABYTES
    assert megabytes_of(RECOVER, tmp_path) < MOST_MEGABYTES
    assert megabytes_of(READ, tmp_path, "L-00000.warc.gz") < MOST_MEGABYTES


@pytest.mark.slow
def test_two_gigabytes_in_a_plain_file(tmp_path: Path):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n"
    header = (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:0>\r\nWARC-Date: 2019-01-01T00:00:00Z\r\n"
        b"WARC-Target-URI: http://www.example.org/film\r\nContent-Type: application/http; msgtype=response\r\n"
        b"Content-Length: %d\r\n\r\n" % (len(head) + SIZE_BYTES)
    )
    with (tmp_path / "plain.warc").open("wb") as stream:  # sparse: it takes no room on the disk
        stream.write(header + head)
        stream.seek(SIZE_BYTES, os.SEEK_CUR)
        stream.write(b"\r\n\r\n")
    assert megabytes_of(READ, tmp_path, "plain.warc") < MOST_MEGABYTES
    assert megabytes_of(REWRITE, tmp_path, "plain.warc") < MOST_MEGABYTES
    assert megabytes_of(READ, tmp_path, "rewritten.warc.gz") < MOST_MEGABYTES
