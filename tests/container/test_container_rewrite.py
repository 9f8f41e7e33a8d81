"""Containers that cannot be read by location are rewritten so that they can, with the same records."""

import gzip
import io
from pathlib import Path

import pytest
from container_samples import (
    HTTP_OK,
    Sample,
    arc_sample,
    packed,
    read_all,
    records_of,
    warc_record,
    warc_sample,
)

from webdepot.container.conversion.rewrite import record_wise
from webdepot.container.detect import Compression, detect
from webdepot.container.reader import iter_records, read_record
from webdepot.errors import InputError
from webdepot.model import Finding

LARGE = b"".join(b"%d;" % (number * 7919) for number in range(500_000))


@pytest.mark.parametrize("sample", [warc_sample(), arc_sample(1), arc_sample(2)])
@pytest.mark.parametrize("form", [Sample.whole, Sample.cut_into_members, Sample.plain, Sample.record_wise])
def test_records_stay_as_they_are(tmp_path: Path, sample: Sample, form):
    target = tmp_path / "given.warc.gz"
    result = record_wise(io.BytesIO(form(sample)), target)
    assert (result.records, result.findings, result.size_bytes) == (
        len(sample.records),
        (),
        target.stat().st_size,
    )
    data = target.read_bytes()
    assert detect(io.BytesIO(data)).compression is Compression.RECORD
    assert read_all(data) == sample.expected
    assert [path.name for path in tmp_path.iterdir()] == ["given.warc.gz"]
    for record, raw in zip(records_of(data), sample.records):
        assert raw.startswith(record.header + record.block().read())
        assert read_record(io.BytesIO(data), record.location).header == record.header


def test_large_records_and_damage(tmp_path: Path):
    sample = warc_sample(3)
    sample.records.insert(2, warc_record("http://www.example.org/large", HTTP_OK + LARGE))
    sample.records[3] = warc_record("http://www.example.org/wrong", HTTP_OK, length=7)
    findings: list[Finding] = []
    result = record_wise(io.BytesIO(sample.whole()), tmp_path / "x.warc.gz", name="mine")
    assert result.records == 4
    assert [finding.subject for finding in result.findings] == ["mine"]
    with (tmp_path / "x.warc.gz").open("rb") as stream:
        payloads = [
            record.payload().read() for record in iter_records(stream, "x", on_finding=findings.append)
        ]
    assert payloads[2] == LARGE
    assert findings == []


def test_a_large_record_that_is_cut_is_reported_and_left_out(tmp_path: Path):
    sample = warc_sample(2)
    sample.records.append(warc_record("http://www.example.org/large", HTTP_OK + LARGE))
    data = sample.plain()
    for cut in (gzip.compress(data[: -len(LARGE) // 2], 1), gzip.compress(data, 1)[:-200_000]):
        result = record_wise(io.BytesIO(cut), tmp_path / "x.warc.gz", name="mine")
        assert result.records == len(sample.records) - 1
        assert "the file ends inside it" in result.findings[0].message
        with (tmp_path / "x.warc.gz").open("rb") as stream:
            assert read_all(stream.read()) == sample.expected


def test_records_that_share_members_get_their_own(tmp_path: Path):
    sample = warc_sample(5)
    mixed = (
        packed(sample.records[0])
        + packed(b"".join(sample.records[1:4]))
        + packed(sample.records[4])
        + packed(sample.records[5])
    )
    record_wise(io.BytesIO(mixed), tmp_path / "x.warc.gz")
    data = (tmp_path / "x.warc.gz").read_bytes()
    assert read_all(data) == sample.expected
    assert all(record.location.length > 0 for record in records_of(data))


def test_a_file_that_is_not_a_container_leaves_nothing(tmp_path: Path):
    with pytest.raises(InputError):
        record_wise(io.BytesIO(b"no container"), tmp_path / "x.warc.gz")
    assert list(tmp_path.iterdir()) == []
