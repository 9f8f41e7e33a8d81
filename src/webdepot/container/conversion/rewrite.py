"""Rewrite a container so that each record can be read by its location: one gzip member for each record.

For gzip files with all records in one member, or whose members do not follow the records. Headers and blocks
stay the same byte for byte; only line ends between records are made regular.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from webdepot.container import arc, warc_headers
from webdepot.container.detect import detect
from webdepot.container.grammar import ContainerFormat
from webdepot.container.members import IN_MEMORY_BYTES, gzip_member, packed
from webdepot.container.reader import iter_records
from webdepot.container.record import Record
from webdepot.container.streams import iter_pieces
from webdepot.container.writer import no_space
from webdepot.durable import whole_file
from webdepot.model import Finding

_MOST_FINDINGS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    records: int
    size_bytes: int
    sha256: str
    """Hexadecimal, of the new file."""
    findings: tuple[Finding, ...]
    """Damage in the source that is left out of the target; the first thousand findings."""


def record_wise(source: BinaryIO, target: Path, *, name: str = "") -> Rewritten:
    """Write the whole records of `source` to `target`, all or nothing. InputError if the source is not a
    container, NoSpace if the disk is full.
    """
    name = name or target.name
    terminator = (
        warc_headers.GRAMMAR if detect(source, name).kind is ContainerFormat.WARC else arc.GRAMMAR
    ).terminator
    findings: list[Finding] = []

    def note(finding: Finding) -> None:
        if len(findings) < _MOST_FINDINGS:
            findings.append(finding)

    count, size, hasher = 0, 0, hashlib.sha256()
    try:
        with whole_file(target) as stream:
            for record in iter_records(source, name, on_finding=note):
                for piece in _iter_member(record, terminator):
                    stream.write(piece)
                    hasher.update(piece)
                    size += len(piece)
                count += 1
    except OSError as error:
        if explained := no_space(error, target):
            raise explained from error
        raise
    return Rewritten(records=count, size_bytes=size, sha256=hasher.hexdigest(), findings=tuple(findings))


def member_of(record: Record) -> Iterator[bytes]:
    """A WARC record, unchanged, as one gzip member, piece by piece."""
    return _iter_member(record, warc_headers.GRAMMAR.terminator)


def _iter_member(record: Record, terminator: bytes) -> Iterator[bytes]:
    if record.size_bytes <= IN_MEMORY_BYTES:
        yield packed(b"".join((record.header, record.block().read(), terminator)))
    else:
        yield from gzip_member(_chained(record, terminator))


def _chained(record: Record, terminator: bytes) -> Iterator[bytes]:
    yield record.header
    yield from iter_pieces(record.block())
    yield terminator
