"""Reads everything from each record that the program reads, for the fuzzers of WARC and ARC."""

from io import BytesIO
from itertools import islice

from webdepot.container.conversion.rewrite import member_of
from webdepot.container.detect import Compression, detect
from webdepot.container.reader import iter_records, read_record
from webdepot.container.record import Record
from webdepot.index import capture_from_record
from webdepot.model import Finding, RecordKind
from webdepot.quality import record_facts
from webdepot.quality.check_database import CheckDatabase

_LIMIT = 1 << 16
_MOST_RECORDS = 200


def read_all(data: bytes) -> None:
    """Read a container; each record must be the same when it is read alone by its location."""
    findings: list[Finding] = []
    quality = CheckDatabase()
    # Locations in such a container are not those of the file.
    is_whole = detect(BytesIO(data)).compression is Compression.WHOLE
    seen: list[tuple[bytes, bytes]] = []
    for number, record in enumerate(iter_records(BytesIO(data), "fuzz", on_finding=findings.append)):
        if number == _MOST_RECORDS:
            break
        block = record.block().read()
        if len(block) != record.size_bytes:
            # A large record at the end of one gzip member is found to be cut only when it has been read.
            assert is_whole and not record.is_held, f"{len(block)} of {record.size_bytes} bytes"
            break
        _compare_heads(record)
        if capture_from_record.is_indexed(record, findings.append):
            capture_from_record.of_record(record)
            if (facts := record_facts.of_record(record)) is not None:
                quality.add(facts)
        assert len(record.content(_LIMIT).read()) <= _LIMIT
        seen.append((record.header, block))
        if record.location.length > 0 and not is_whole:
            again = read_record(BytesIO(data), record.location)
            assert (again.header, again.url, again.date) == (record.header, record.url, record.date)
            assert again.block().read() == block, "a record read by its location differs"
    quality.close()
    if data.startswith(b"WARC/"):
        _rewrite(data, seen)


def _rewrite(data: bytes, seen: list[tuple[bytes, bytes]]) -> None:
    """Check that records that are written one by one can be read again unchanged."""
    records = islice(iter_records(BytesIO(data), "fuzz", on_finding=lambda _: None), len(seen))
    written = b"".join(piece for record in records for piece in member_of(record))
    again = iter_records(BytesIO(written), "again", on_finding=lambda _: None) if written else iter(())
    assert [(record.header, record.block().read()) for record in again] == seen, "records written change"


def _compare_heads(record: Record) -> None:
    """Check that the quick reader of heads agrees with the full one."""
    quick = record.find_status_and_type() if record.kind is RecordKind.RESPONSE else None
    if quick is not None:
        head = record.head
        assert head is not None
        assert quick == (head.status, head.get("Content-Type") or ""), f"{quick} is not {head}"
