"""Taking in foreign containers: WARC and ARC files from other tools.

1. Find the files; look at each one's first bytes.
2. Copy it beside, hashing it; then read it through, so that what is damaged is known before it is taken.
3. Rename, then write the database row. Your own files are never changed.

Bytes that the archive holds already are recognised by their checksum, whatever the file is called. A gzip
file that cannot be read at a record (all records in one member) is rewritten record by record; the records
stay as they are, and the checksum of what was given is kept with the event. A killed import is taken up by
the next one.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdepot import digest
from webdepot.archive import Archive
from webdepot.container import rewrite, shelf
from webdepot.container.detect import Compression, detect
from webdepot.container.reader import iter_records
from webdepot.errors import InputError
from webdepot.harvest import runs
from webdepot.model import Container, ContainerState, Finding, Harvest, HarvestKind, HarvestState, Severity
from webdepot.provenance import Event, Outcome, append
from webdepot.services.harvest import harvests
from webdepot.services.progress import Phase, Progress, Watch
from webdepot.services.selection import targets
from webdepot.url import Url

SUFFIXES = (".warc", ".warc.gz", ".arc", ".arc.gz")
"""What a folder is searched for; a file named by hand is looked at whatever it is called."""
MOST_FINDINGS = 1000
"""Of one file; beyond that they are only counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    harvest: Harvest | None
    """None when no file was taken."""
    known: Sequence[str]
    skipped: Sequence[str]


def take(archive: Archive, paths: Sequence[Path], *, collection: str, watch: Watch) -> Intake:
    """Copy every new container among these files and folders into one harvest of kind `import`."""
    files = list(_iter_files(paths))
    if not files:
        names = ", ".join(str(path) for path in paths)
        raise InputError(
            f"There is no WARC or ARC file in {names}. Files are known by these endings: {', '.join(SUFFIXES)}"
        )
    readable, skipped = [], []
    for path in files:
        refusal = _refusal(path)
        if refusal:
            skipped.append(f"{path}: {refusal}")
        else:
            readable.append(path)
    if not readable:
        return Intake(harvest=None, known=(), skipped=skipped)
    harvest = begin(archive, collection)
    known = []
    with harvests.locked(harvests.folder_of(archive, harvest)):
        for number, path in enumerate(readable, start=1):
            watch(Progress(phase=Phase.IMPORT, done=number, total=len(readable), note=path.name))
            try:
                if not _take_one(archive, harvest, path):
                    known.append(str(path))
            except (InputError, FileNotFoundError, PermissionError) as error:
                skipped.append(f"{path}: {error.strerror if isinstance(error, OSError) else error}")
        with archive.database.reading() as connection:
            is_empty = not shelf.of_harvest(connection, harvest.id)
        if is_empty:
            end(archive, harvest, HarvestState.FAILED, "nothing new was in the files")
    return Intake(harvest=None if is_empty else finish(archive, harvest), known=known, skipped=skipped)


def take_container(archive: Archive, harvest: Harvest, path: Path) -> Container:
    """One container into an import that somebody else began; the row that holds its bytes, also when they
    were here before.
    """
    _take_one(archive, harvest, path)
    given = digest.of_file(path).value.hex()
    with archive.database.reading() as connection:
        found = shelf.find_bytes(connection, given)
    if found is None:
        raise InputError(f"{path.name} could not be taken in.")
    return found


def _refusal(path: Path) -> str:
    """Why a file is no container, by its first bytes; empty when it is one."""
    try:
        with path.open("rb") as stream:
            detect(stream, path.name)
    except InputError as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def finish(archive: Archive, harvest: Harvest) -> Harvest:
    """What has been taken so far is the whole import."""
    with archive.database.reading() as connection:
        count = len(shelf.of_harvest(connection, harvest.id))
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


def begin(archive: Archive, collection: str) -> Harvest:
    """The import to work in: one that was killed and waits, or a new one."""
    target = targets.nominate(
        archive, [Url(f"import:{collection}")], collection=collection, name=f"Imported into {collection}"
    )
    targets.admit(archive, target, [targets.operators_decision(archive)])
    now = archive.clock()
    with archive.database.transaction() as connection:
        found = runs.unfinished(connection, target.id, HarvestKind.IMPORT)
        if found is not None and not harvests.is_locked(archive, found):
            return found
        harvest = Harvest(
            id=runs.new_id(now, "import"),
            target=target.id,
            kind=HarvestKind.IMPORT,
            state=HarvestState.RUNNING,
            seeds=(),
            collection=collection,
            settings={},
            started_at=now,
        )
        runs.begin(connection, harvest)
    return harvest


def _take_one(archive: Archive, harvest: Harvest, path: Path) -> bool:
    """Whether the file is new. All or nothing: until the row is written, nobody sees the copy."""
    with path.open("rb") as stream:
        form = detect(stream, path.name)
    folder = harvests.containers_folder(archive, harvest)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / ".partial"
    given = _copied(path, partial)
    with archive.database.reading() as connection:
        if shelf.find_bytes(connection, given):
            partial.unlink()
            return False
    findings: list[Finding] = []
    records, readable = read_through(partial, path.name, findings)
    if not records:
        partial.unlink()
        raise InputError("no whole record is in it. " + (findings[0].message if findings else ""))
    name, sha256 = path.name, given
    if form.compression is Compression.WHOLE or not readable:
        name, sha256, records = _rewritten(partial, path.name, findings)
    name = free_name(archive, name, given)
    partial.rename(folder / name)
    _fsync_folder(folder)
    _record(
        archive, harvest, folder / name, sha256=sha256, original=given, records=records, findings=findings
    )
    return True


def _copied(source: Path, partial: Path) -> str:
    """Copy in one pass with hashing; durable on return."""
    hasher = hashlib.sha256()
    with source.open("rb") as reading, partial.open("wb") as writing:
        while chunk := reading.read(digest.CHUNK_BYTES):
            hasher.update(chunk)
            writing.write(chunk)
        writing.flush()
        os.fsync(writing.fileno())
    return hasher.hexdigest()


def read_through(path: Path, name: str, findings: list[Finding]) -> tuple[int, bool]:
    """How many whole records, and whether each can be read by itself. Damage is noted."""
    records, readable = 0, True

    def note(finding: Finding) -> None:
        if len(findings) < MOST_FINDINGS:
            findings.append(finding)

    with path.open("rb") as stream:
        for record in iter_records(stream, name, on_finding=note):
            records += 1
            readable = readable and record.location.length > 0
    return records, readable


def _rewritten(partial: Path, name: str, findings: list[Finding]) -> tuple[str, str, int]:
    """Record by record instead of in one piece, in place of the copy; the new name, checksum and number of
    records.
    """
    target = partial.with_name(".rewritten")
    with partial.open("rb") as stream:
        result = rewrite.record_wise(stream, target, name=name)
    target.rename(partial)
    findings.append(
        Finding(
            code="container-rewritten",
            severity=Severity.NOTE,
            subject=name,
            message=f"{name} was compressed in one piece; it was rewritten record by record, the records themselves unchanged",
        )
    )
    stem = name.removesuffix(".gz")
    return f"{stem}.gz", result.sha256, result.records


def free_name(archive: Archive, name: str, sha256: str) -> str:
    """Container names are unique in an archive; another file of the same name gets a piece of its checksum."""
    with archive.database.reading() as connection:
        if shelf.find(connection, name) is None:
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
) -> None:
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
    event = Event(
        at=archive.clock(),
        agent=archive.agent,
        action="imported",
        subject_kind="container",
        subject=container.name,
        outcome=Outcome.WARNING if damaged else Outcome.SUCCESS,
        message=f"{records} records, {damaged} findings",
        detail={"sha256": original, "harvest": harvest.id},
    )
    with archive.database.transaction() as connection:
        shelf.add(connection, container, original_sha256=original)
        append(connection, event)


def end(archive: Archive, harvest: Harvest, state: HarvestState, reason: str) -> None:
    with archive.database.transaction() as connection:
        held = shelf.of_harvest(connection, harvest.id)
        counts = {
            "fetched": sum(container.records for container in held),
            "bytes": sum(container.size_bytes for container in held),
        }
        runs.move(connection, harvest.id, state, reason=reason, counts=counts, ended_at=archive.clock())


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
