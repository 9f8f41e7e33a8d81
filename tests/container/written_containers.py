"""Containers that our writer makes from visits, and their blocks as three readers see them."""

import io
from datetime import UTC, datetime
from pathlib import Path

import fastwarc
import pytest
import warcio

from webdepot.container.new_records import NewRecord, about_visit, from_visit, payload_digest
from webdepot.container.reader import iter_records
from webdepot.container.writer import ContainerWriter, Sealed
from webdepot.model import Candidate, Visit
from webdepot.url import Url

NOW = datetime(2026, 11, 15, 9, 2, 51, tzinfo=UTC)
INFO = {"software": "webdepot", "operator": "Sample Library"}


def visit_of(
    url: str, body: bytes, *, headers: bytes = b"Content-Type: text/html\r\n", **facts: object
) -> Visit:
    settings = {
        "candidate": Candidate(url=Url(url), via=Url("http://www.example.org/"), path="LE"),
        "at": NOW,
        "duration_s": 0.25,
        "request": b"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n",
        "head": b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n",
        "body": io.BytesIO(body),
        "body_bytes": len(body),
        "status": 200,
        "server_address": "192.0.2.1",
    }
    return Visit(**settings | facts)  # type: ignore[arg-type]


def group_of(visit: Visit) -> list[NewRecord]:
    records = from_visit(visit, payload_digest=payload_digest(visit))
    return [*records, about_visit(visit, [("http://b.example/", "L")], concurrent_to=records[-1].id)]


def writer_in(
    folder: Path, sealed: list[Sealed] | None = None, *, size_bytes: int = 1 << 30
) -> ContainerWriter:
    announced = sealed if sealed is not None else []
    return ContainerWriter(
        folder, prefix="H", size_bytes=size_bytes, info=INFO, clock=lambda: NOW, on_sealed=announced.append
    )


def read_blocks(path: Path) -> list[tuple[str, bytes]]:
    with path.open("rb") as stream:
        return [
            (record.kind.value, record.block().read())
            for record in iter_records(stream, path.name, on_finding=pytest.fail)
        ]


def warcio_blocks(path: Path) -> list[tuple[str, bytes]]:
    """Read and compare digests; a failure is an error."""
    with path.open("rb") as stream:
        found = [
            (record.rec_type, record.raw_stream.read())
            for record in warcio.ArchiveIterator(stream, no_record_parse=True)
        ]
    with path.open("rb") as stream:
        for record in warcio.ArchiveIterator(stream, check_digests=True):
            record.raw_stream.read()
            assert record.digest_checker.passed is not False, record.digest_checker.problems
    return found


def fastwarc_blocks(path: Path) -> list[tuple[str, bytes]]:
    with path.open("rb") as stream:
        return [
            (str(record.record_type), record.reader.read())
            for record in fastwarc.ArchiveIterator(stream, parse_http=False)
        ]
