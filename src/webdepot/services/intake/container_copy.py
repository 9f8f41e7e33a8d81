"""Copy one foreign container into an import.

It is copied to a temporary name and hashed, then read to the end, so that damage is known before it is taken
in. In one transaction its checksum is looked for again, because another process may import the same file
now; then it gets its name and its row. The original files are never changed.

A gzip file whose records cannot be opened one by one (all records in one member) is rewritten record by
record; the records stay as they are, and the checksum of the original file is kept with the event.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection

from webdepot import durable
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.container.conversion import har, rewrite
from webdepot.container.detect import Compression, ContainerForm, detect
from webdepot.container.reader import iter_records
from webdepot.errors import InputError
from webdepot.model import (
    Container,
    ContainerState,
    Finding,
    Harvest,
    Severity,
)
from webdepot.provenance import Outcome, append
from webdepot.services.harvest import harvests
from webdepot.services.intake import sources as import_sources
from webdepot.services.intake.sources import ImportSource
from webdepot.text import file_names

MOST_FINDINGS = 1000
"""Findings kept of one file."""
MOST_TOLD = 20
"""Findings written into the event about it."""


class TakenContainer(NamedTuple):
    """A container that is in the archive now."""

    container: Container
    is_new: bool
    """A known one may belong to another harvest."""
    remark: str = ""
    """What was left out of a file that had to be converted."""


def form_of(source: ImportSource) -> ContainerForm:
    """The format of a file, by its first bytes; InputError if it is not a container."""
    with source.open() as stream, import_sources.explained():
        return detect(stream, source.name)


def take_container(archive: Archive, harvest: Harvest, path: Path) -> Container:
    """Take one container into an import that the caller began; return the container with its bytes, new or
    known before.
    """
    return copy_in(archive, harvest, import_sources.of_file(path))[0]


def copy_in(archive: Archive, harvest: Harvest, source: ImportSource) -> TakenContainer:
    """Copy one container, as `warc_files.TakeOne` says. The copy is visible once its row is written."""
    if not file_names.is_name(source.name):
        raise InputError(f"{source.name[:200]!r} cannot be the name of a container. {file_names.RULE}")
    folder = harvests.containers_folder(archive, harvest)
    durable.make_folders(folder)
    partial = folder / ".partial"
    try:
        form = None if source.is_har else form_of(source)
        original = _copy(source, partial)
        with archive.database.reading() as connection:
            known = locations.find_bytes(connection, original)
        if known is not None:
            return TakenContainer(known, False)
        findings: list[Finding] = []
        if form is None:
            name, sha256, records = _convert(archive, partial, source.name, findings)
        else:
            name, sha256 = source.name, original
            records, readable = read_through(partial, source.name, findings)
            if not records:
                raise InputError(no_records(findings))
            if form.compression is Compression.WHOLE or not readable:
                name, sha256, records = _rewrite(partial, source.name, findings)
        return _record(
            archive,
            harvest,
            partial,
            name,
            sha256=sha256,
            original=original,
            records=records,
            findings=findings,
        )
    finally:
        partial.unlink(missing_ok=True)


def no_records(findings: Sequence[Finding]) -> str:
    """The message about a file without a complete record."""
    return "it contains no complete record. " + (findings[0].message if findings else "")


def _copy(source: ImportSource, partial: Path) -> str:
    """Copy a file durably; return its SHA-256. InputError if it was changed meanwhile."""
    hasher = hashlib.sha256()
    left = source.size_bytes
    with source.open() as reading, partial.open("wb") as writing:
        for chunk in import_sources.iter_chunks(reading):
            hasher.update(chunk)
            writing.write(chunk)
            left -= len(chunk)
        durable.sync_file(writing)
    if left or (source.identity and import_sources.identity_of(source.place) != source.identity):
        raise InputError(import_sources.CHANGED)
    return hasher.hexdigest()


def read_through(path: Path, name: str, findings: list[Finding]) -> tuple[int, bool]:
    """The number of complete records, and whether each can be opened separately. Damage is added to
    `findings`.
    """
    records, readable = 0, True

    def note(finding: Finding) -> None:
        if len(findings) < MOST_FINDINGS:
            findings.append(finding)

    with path.open("rb") as stream:
        for record in iter_records(stream, name, on_finding=note):
            records += 1
            readable = readable and record.location.length > 0
    return records, readable


def _rewrite(partial: Path, name: str, findings: list[Finding]) -> tuple[str, str, int]:
    """Replace the copy by one compressed by records; return its name, checksum and number of records."""
    target = partial.with_name(".rewritten")
    with partial.open("rb") as stream:
        result = rewrite.record_wise(stream, target, name=name)
    target.rename(partial)
    findings.append(
        Finding(
            code="container-rewritten",
            severity=Severity.NOTE,
            subject=name,
            message=f"{name} was compressed {_compression(name)}; it was rewritten record by record, "
            "with unchanged records",
        )
    )
    stem = name.removesuffix(".gz").removesuffix(".zst")
    return f"{stem}.gz", result.sha256, result.records


def _convert(archive: Archive, partial: Path, name: str, findings: list[Finding]) -> tuple[str, str, int]:
    """Replace the copy of a HAR file by a WARC file; return its name, checksum and number of records."""
    target = partial.with_name(".rewritten")

    def note(finding: Finding) -> None:
        if len(findings) < MOST_FINDINGS:
            findings.append(finding)

    with partial.open("rb") as stream:
        result = har.to_warc(stream, target, name=name, now=archive.clock(), note=note)
    target.rename(partial)
    return f"{name[: -len(har.SUFFIX)]}.warc.gz", result.sha256, result.records


def _compression(name: str) -> str:
    return "with zstd" if name.lower().endswith(".zst") else "as one piece"


def free_name(connection: Connection, name: str, sha256: str) -> str:
    """A name that no other container of the archive has: with a part of the checksum if the given one is
    taken.
    """
    if locations.find(connection, name) is None:
        return name
    stem, dot, suffixes = name.partition(".")
    return f"{stem}-{sha256[:8]}{dot}{suffixes}"


def _record(
    archive: Archive,
    harvest: Harvest,
    partial: Path,
    name: str,
    *,
    sha256: str,
    original: str,
    records: int,
    findings: Sequence[Finding],
) -> TakenContainer:
    """Give a copy its name and its row, unless another process has done that for the same bytes meanwhile."""
    damaged = sum(finding.severity is not Severity.NOTE for finding in findings)
    with archive.database.transaction() as connection:
        known = locations.find_bytes(connection, original)
        if known is not None:
            return TakenContainer(known, False)
        path = partial.rename(partial.with_name(free_name(connection, name, original)))
        durable.sync_folder(path.parent)
        container = Container(
            name=path.name,
            harvest=harvest.id,
            state=ContainerState.SEALED,
            size_bytes=path.stat().st_size,
            sha256=sha256,
            records=records,
            place=path.relative_to(archive.home).as_posix(),
        )
        event = archive.event(
            "imported",
            "container",
            container.name,
            outcome=Outcome.WARNING if damaged else Outcome.SUCCESS,
            message=f"{records} records, {damaged} findings",
            detail={
                "sha256": original,
                "harvest": harvest.id,
                **({"findings": [_told(finding) for finding in findings[:MOST_TOLD]]} if damaged else {}),
            },
        )
        locations.add(connection, container, original_sha256=original)
        append(connection, event)
    return TakenContainer(container, True, _left_out(findings))


def _told(finding: Finding) -> str:
    return f"{finding.place}: {finding.message}" if finding.place else finding.message


def _left_out(findings: Sequence[Finding]) -> str:
    """What a conversion left out, for the report of the import."""
    entries = [finding for finding in findings if finding.code == har.ENTRY_LEFT_OUT]
    if not entries:
        return ""
    return f"{len(entries)} of its entries were left out. The first: {_told(entries[0])}"
