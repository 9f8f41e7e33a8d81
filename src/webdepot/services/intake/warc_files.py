"""Import containers of others: WARC and ARC files from other tools.

1. Find the files; check the first bytes of each.
2. Copy it to a temporary name and hash it; then read all of it, so that damage is known before it is taken
   in.
3. Rename the copy, then write the database row. The original files are never changed.

Files that the archive already has are recognised by their checksum, whatever their name. A gzip file whose
records cannot be opened one by one (all records in one member) is rewritten record by record; the records
stay as they are, and the checksum of the original file is kept with the event.

An import that was interrupted is continued by the next one into the same collection; that of a submission by
the same submission. Files of an import that was interrupted after they had been copied are not known:
`IntakeResult` has their harvests, for the caller to continue them.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdepot import digest, durable
from webdepot.archive import Archive
from webdepot.container import locations, rewrite
from webdepot.container.detect import Compression, detect
from webdepot.container.reader import iter_records
from webdepot.depot.package import LONGEST_COLLECTION
from webdepot.errors import InputError
from webdepot.harvest import runs
from webdepot.model import (
    Container,
    ContainerState,
    Finding,
    Harvest,
    HarvestKind,
    HarvestState,
    Severity,
    Target,
)
from webdepot.provenance import Outcome, append
from webdepot.services.harvest import harvests
from webdepot.services.progress import Phase, Progress, Watch
from webdepot.services.selection import targets
from webdepot.text import file_names
from webdepot.url import Url

NOTHING_NEW = "the files contained nothing new"
SUFFIXES = (".warc", ".warc.gz", ".arc", ".arc.gz")
"""The file names that a folder is searched for; a file that is named itself may have any name."""
MOST_FINDINGS = 1000
"""Findings kept of one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeResult:
    harvest: Harvest | None
    """None if no file was taken in."""
    known: Mapping[str, Harvest]
    """Files that the archive already has, with the harvest of each."""
    skipped: Sequence[str]
    """Files that could not be taken in, each with the reason."""


def take(
    archive: Archive,
    paths: Sequence[Path],
    *,
    collection: str,
    settings: Mapping[str, object] | None = None,
    watch: Watch,
) -> IntakeResult:
    """Copy every new container among these files and folders into one harvest of kind `import`, with these
    settings.
    """
    files = list(_iter_files(paths))
    if not files:
        names = ", ".join(str(path) for path in paths)
        raise InputError(
            f"There is no WARC or ARC file in {names}. Files must have one of these endings: "
            f"{', '.join(SUFFIXES)}"
        )
    readable, skipped = [], []
    for path in files:
        refusal = _refusal(path)
        if refusal:
            skipped.append(f"{path}: {refusal}")
        else:
            readable.append(path)
    if not readable:
        return IntakeResult(harvest=None, known={}, skipped=skipped)
    harvest = begin(archive, collection, settings or {})
    known: dict[str, Harvest] = {}
    with harvests.locked(harvests.folder_of(archive, harvest)):
        for number, path in enumerate(readable, start=1):
            watch(Progress(phase=Phase.IMPORT, done=number, total=len(readable), note=path.name))
            try:
                container = _take_one(archive, harvest, path)
                if container.harvest != harvest.id:
                    known[str(path)] = harvests.get(archive, container.harvest)
            except (InputError, FileNotFoundError, PermissionError) as error:
                skipped.append(f"{path}: {error.strerror if isinstance(error, OSError) else error}")
        with archive.database.reading() as connection:
            is_empty = not locations.of_harvest(connection, harvest.id)
        if is_empty:
            end(archive, harvest, HarvestState.FAILED, NOTHING_NEW)
    return IntakeResult(harvest=None if is_empty else finish(archive, harvest), known=known, skipped=skipped)


def take_container(archive: Archive, harvest: Harvest, path: Path) -> Container:
    """Take one container into an import that the caller began; the container with its bytes, new or known
    before.
    """
    return _take_one(archive, harvest, path)


def _refusal(path: Path) -> str:
    """Why a file is not a container, by its first bytes; empty if it is one."""
    try:
        with path.open("rb") as stream:
            detect(stream, path.name)
    except InputError as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def finish(archive: Archive, harvest: Harvest) -> Harvest:
    """End an import with the containers taken in so far."""
    with archive.database.reading() as connection:
        count = len(locations.of_harvest(connection, harvest.id))
    end(archive, harvest, HarvestState.FINISHED, f"{count} container{'s' if count != 1 else ''} imported")
    return harvests.get(archive, harvest.id)


def _iter_files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(
                entry
                for entry in path.rglob("*")
                if entry.name.lower().endswith(SUFFIXES) and entry.is_file()
            )
        elif path.exists():
            yield path
        else:
            raise InputError(f"There is no file or folder {path}.")


def begin(archive: Archive, collection: str, settings: Mapping[str, object]) -> Harvest:
    """The import to continue if one with these settings was interrupted, otherwise a new one."""
    target = target_of(archive, collection)
    targets.admit(archive, target, [targets.operators_decision(archive)])
    now = archive.clock()
    with archive.database.transaction() as connection:
        for unfinished in runs.all_unfinished(connection, target.id, HarvestKind.IMPORT):
            if unfinished.settings == settings and not harvests.is_locked(archive, unfinished):
                return unfinished
        harvest = Harvest(
            id=runs.new_id(now, "import"),
            target=target.id,
            kind=HarvestKind.IMPORT,
            state=HarvestState.RUNNING,
            seeds=(),
            collection=collection,
            settings=settings,
            started_at=now,
        )
        runs.begin(connection, harvest)
    return harvest


def target_of(archive: Archive, collection: str) -> Target:
    """The target that the imports into a collection belong to."""
    if not file_names.is_name(collection) or len(collection) > LONGEST_COLLECTION:
        raise InputError(
            f"{collection[:100]!r} cannot be the name of a collection. Use letters, digits, - and _."
        )
    return targets.nominate(
        archive, [Url(f"import:{collection}")], collection=collection, name=f"Imported into {collection}"
    )


def _take_one(archive: Archive, harvest: Harvest, path: Path) -> Container:
    """Take in one file, completely or not at all; its container, which belongs to another harvest if it was
    known. The copy is visible once its row is written.
    """
    if not file_names.is_name(path.name):
        raise InputError(f"{path.name[:200]!r} cannot be the name of a container. {file_names.RULE}")
    with path.open("rb") as stream:
        form = detect(stream, path.name)
    folder = harvests.containers_folder(archive, harvest)
    durable.make_folders(folder)
    partial = folder / ".partial"
    original = _copy(path, partial)
    with archive.database.reading() as connection:
        known = locations.find_bytes(connection, original)
    if known is not None:
        partial.unlink()
        return known
    findings: list[Finding] = []
    records, readable = read_through(partial, path.name, findings)
    if not records:
        partial.unlink()
        raise InputError(no_records(findings))
    name, sha256 = path.name, original
    if form.compression is Compression.WHOLE or not readable:
        name, sha256, records = _rewrite(partial, path.name, findings)
    name = free_name(archive, name, original)
    partial.rename(folder / name)
    durable.sync_folder(folder)
    return _record(
        archive, harvest, folder / name, sha256=sha256, original=original, records=records, findings=findings
    )


def no_records(findings: Sequence[Finding]) -> str:
    """The message about a file without a complete record."""
    return "it contains no complete record. " + (findings[0].message if findings else "")


def _copy(source: Path, partial: Path) -> str:
    """Copy a file, durable on return; its SHA-256."""
    hasher = hashlib.sha256()
    with source.open("rb") as reading, partial.open("wb") as writing:
        while chunk := reading.read(digest.CHUNK_BYTES):
            hasher.update(chunk)
            writing.write(chunk)
        durable.sync_file(writing)
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
    """Replace the copy by one compressed record by record; its name, checksum and number of records."""
    target = partial.with_name(".rewritten")
    with partial.open("rb") as stream:
        result = rewrite.record_wise(stream, target, name=name)
    target.rename(partial)
    findings.append(
        Finding(
            code="container-rewritten",
            severity=Severity.NOTE,
            subject=name,
            message=f"{name} was compressed as one piece; it was rewritten record by record, "
            "with unchanged records",
        )
    )
    stem = name.removesuffix(".gz")
    return f"{stem}.gz", result.sha256, result.records


def free_name(archive: Archive, name: str, sha256: str) -> str:
    """A name that no other container of the archive has: with a part of the checksum if the given one is
    taken.
    """
    with archive.database.reading() as connection:
        if locations.find(connection, name) is None:
            return name
    stem, dot, suffixes = name.partition(".")
    return f"{stem}-{sha256[:8]}{dot}{suffixes}"


def _record(
    archive: Archive,
    harvest: Harvest,
    path: Path,
    *,
    sha256: str,
    original: str,
    records: int,
    findings: Sequence[Finding],
) -> Container:
    size_bytes = path.stat().st_size
    container = Container(
        name=path.name,
        harvest=harvest.id,
        state=ContainerState.SEALED,
        size_bytes=size_bytes,
        sha256=sha256,
        records=records,
        place=path.relative_to(archive.home).as_posix(),
    )
    damaged = sum(finding.severity is not Severity.NOTE for finding in findings)
    event = archive.event(
        "imported",
        "container",
        container.name,
        outcome=Outcome.WARNING if damaged else Outcome.SUCCESS,
        message=f"{records} records, {damaged} findings",
        detail={"sha256": original, "harvest": harvest.id},
    )
    with archive.database.transaction() as connection:
        locations.add(connection, container, original_sha256=original)
        append(connection, event)
    return container


def end(archive: Archive, harvest: Harvest, state: HarvestState, reason: str) -> None:
    with archive.database.transaction() as connection:
        held = locations.of_harvest(connection, harvest.id)
        counts = {
            "fetched": sum(container.records for container in held),
            "bytes": sum(container.size_bytes for container in held),
        }
        runs.move(connection, harvest.id, state, reason=reason, counts=counts, ended_at=archive.clock())
