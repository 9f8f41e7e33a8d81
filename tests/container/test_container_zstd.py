"""WARC files compressed with Zstandard, with and without a dictionary, whole and damaged."""

import gzip
import struct
import sys
from io import BytesIO
from pathlib import Path

import pytest

from small_warcs import write_warc
from webdepot.access.policy import ANYONE
from webdepot.archive import Archive
from webdepot.container.reader import iter_records
from webdepot.errors import InputError
from webdepot.model import Finding
from webdepot.services import pipeline
from webdepot.services.access.replay import replay
from webdepot.services.intake.warc_files import FileState

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PAGES = {
    f"https://x.example/{number}": f"<title>{number}</title>page {number}".encode() * 40
    for number in range(30)
}


def records(tmp_path: Path) -> list[bytes]:
    data = gzip.decompress(write_warc(tmp_path / "plain.warc.gz", PAGES).read_bytes())
    return [b"WARC/1.1\r\n" + part for part in data.split(b"WARC/1.1\r\n")[1:]]


def framed(parts: list[bytes], kind: str) -> bytes:
    if kind == "plain":
        return b"".join(zstd.compress(part) for part in parts)
    dictionary = zstd.train_dict(parts, 4096)
    content = dictionary.dict_content
    if kind == "packed dictionary":
        content = zstd.compress(content)
    head = b"\x5d\x2a\x4d\x18" + struct.pack("<I", len(content)) + content
    skipped = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"12345"
    return head + skipped.join(zstd.compress(part, zstd_dict=dictionary) for part in parts)


@pytest.mark.parametrize("kind", ["plain", "dictionary", "packed dictionary"])
def test_every_record_is_read(tmp_path: Path, kind: str):
    findings: list[Finding] = []
    data = framed(records(tmp_path), kind)
    read = [record.url for record in iter_records(BytesIO(data), "x.warc.zst", on_finding=findings.append)]
    assert read == list(PAGES) and findings == []


def test_records_before_damage_are_read_and_the_damage_is_reported(tmp_path: Path):
    findings: list[Finding] = []
    data = framed(records(tmp_path), "dictionary")[:-10]
    read = [record.url for record in iter_records(BytesIO(data), "x.warc.zst", on_finding=findings.append)]
    assert read == list(PAGES)[:-1]
    assert findings


@pytest.mark.parametrize(
    "data",
    [b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd\x00\xff\xff\xff\xff\xff", b"\x5d\x2a\x4d\x18\xff\xff\xff\xff"],
)
def test_other_bytes_are_refused_with_a_message(data: bytes):
    with pytest.raises(InputError, match=r"x\.warc\.zst"):
        list(iter_records(BytesIO(data), "x.warc.zst", on_finding=lambda _: None))


def test_an_imported_file_is_rewritten_with_gzip_and_replayed(archive: Archive, tmp_path: Path):
    path = tmp_path / "in" / "team.warc.zst"
    path.parent.mkdir()
    path.write_bytes(framed(records(tmp_path), "packed dictionary"))
    outcomes = []
    for _ in range(2):
        pipeline.import_files(archive, [path.parent], collection="x", on_file=outcomes.append)
    assert [outcome.state for outcome in outcomes] == [FileState.IMPORTED, FileState.KNOWN]
    assert outcomes[0].container == "team.warc.gz"
    url, body = next(iter(PAGES.items()))
    opened = replay.open_capture(archive, url, "20240517123001", collection="x", reader=ANYONE)
    assert opened.payload.read() == body
    opened.close()
