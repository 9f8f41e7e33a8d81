"""Import containers of others: WARC and ARC files from other tools, and those inside WACZ files.

1. Take the next container (`sources`); one that an unchanged file became in an earlier import is known.
2. Copy it to a temporary name and hash it; then read all of it, so that damage is known before it is taken
   in.
3. In one transaction: look for its checksum again, because another process may import the same file now;
   choose a name, rename the copy, write the database row. The original files are never changed.

Files that the archive already has are recognised by their checksum, whatever their name. A gzip file whose
records cannot be opened one by one (all records in one member) is rewritten record by record; the records
stay as they are, and the checksum of the original file is kept with the event.

An import that was interrupted is continued by the next one into the same collection; that of a submission by
the same submission. Files of an import that was interrupted after they had been copied are not known:
`IntakeResult` has their harvests, for the caller to continue them.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection

from webdepot import durable
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.container.conversion import har, rewrite
from webdepot.container.detect import Compression, ContainerForm, detect
from webdepot.container.reader import iter_records
from webdepot.depot.package import LONGEST_COLLECTION
from webdepot.errors import Conflict, CorruptData, InputError, NotFound, NotPermitted, RemoteError
from webdepot.harvest import runs
from webdepot.model import (
    Container,
    ContainerState,
    Finding,
    Harvest,
    HarvestId,
    HarvestKind,
    HarvestState,
    Severity,
    Target,
)
from webdepot.provenance import Outcome, append
from webdepot.services.harvest import harvests
from webdepot.services.intake import sources as import_sources
from webdepot.services.intake.sources import ImportSource, UnreadableSource
from webdepot.services.progress import Phase, Progress, Watch
from webdepot.services.selection import targets
from webdepot.text import file_names
from webdepot.url import Url

NOTHING_NEW = "the files contained nothing new"
MOST_FINDINGS = 1000
"""Findings kept of one file."""
MOST_TOLD = 20
"""Findings written into the event about it."""
_LONGEST_PLACE = 1000


class FileState(StrEnum):
    """What became of a file that an import was given."""

    IMPORTED = "imported"
    KNOWN = "known"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOutcome:
    """What became of one file, or of one container in a WACZ."""

    file: str
    state: FileState
    reason: str = ""
    container: str = ""
    harvest: str = ""
    """The harvest that has the container, which may be an earlier one."""
    size_bytes: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeResult:
    harvest: Harvest | None
    """None if no file was taken in."""
    known: Mapping[HarvestId, str]
    """The other harvests with files that the archive already has, each with one of these files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeLimits:
    """How much is taken into one harvest; at least one file always is. 0 means no limit."""

    files: int = 0
    size_bytes: int = 0

    def are_reached(self, files: int, size_bytes: int) -> bool:
        return bool(
            (self.files and files >= self.files) or (self.size_bytes and size_bytes >= self.size_bytes)
        )


class TakenContainer(NamedTuple):
    """A container that is in the archive now."""

    container: Container
    is_new: bool
    """A known one may belong to another harvest."""
    remark: str = ""
    """What was left out of a file that had to be converted."""


TakeOne = Callable[[Archive, Harvest, ImportSource], TakenContainer]
"""Takes one container into a harvest, completely or not at all."""


def take(
    archive: Archive,
    sources: Iterable[ImportSource | UnreadableSource],
    take_one: TakeOne,
    *,
    collection: str,
    settings: Mapping[str, object] | None = None,
    limits: IntakeLimits = IntakeLimits(),  # noqa: B008 - frozen
    note: Callable[[FileOutcome], None],
    work: ExitStack | None = None,
    watch: Watch,
) -> IntakeResult:
    """Take new containers into one harvest of kind `import`, with these settings, until there are no more or
    a limit is reached; `note` gets the outcome of each.

    A file that cannot be read does not stop the others. No harvest is begun before the first file that may be
    new. `work` gets the lock that keeps other processes from continuing this harvest.
    """
    known: dict[HarvestId, str] = {}
    harvest, done, held_files, held_bytes = None, 0, 0, 0
    with ExitStack() as held:
        for source in sources:
            done += 1
            watch(Progress(phase=Phase.IMPORT, done=done, note=Path(source.place).name))
            try:
                container, is_new, remark = find_known(archive, source), False, ""
                if container is None:
                    checked = _checked(source, with_first_bytes=harvest is None)
                    if harvest is None:
                        harvest = begin(archive, collection, settings or {}, held, work)
                        held_files, held_bytes = _held(archive, harvest)
                    container, is_new, remark = take_one(archive, harvest, checked)
                    _remember(archive, checked, container)
            except (InputError, NotFound, NotPermitted, RemoteError, CorruptData) as error:
                note(FileOutcome(file=source.place, state=FileState.SKIPPED, reason=str(error)))
                continue
            if not is_new:
                note(_outcome(source, container, FileState.KNOWN))
                known.setdefault(container.harvest, source.place)
                continue
            note(replace(_outcome(source, container, FileState.IMPORTED), reason=remark))
            held_files, held_bytes = held_files + 1, held_bytes + container.size_bytes
            if limits.are_reached(held_files, held_bytes):
                break
        if harvest is not None:
            known.pop(harvest.id, None)
            harvest = _end_intake(archive, harvest)
    return IntakeResult(harvest=harvest, known=known)


def take_files(
    archive: Archive,
    paths: Sequence[Path],
    *,
    collection: str,
    settings: Mapping[str, object] | None = None,
    note: Callable[[FileOutcome], None] = lambda _: None,
    watch: Watch,
) -> IntakeResult:
    """Copy the new containers among these files into one harvest, as `take` says."""
    found = [import_sources.of_file(path) for path in paths]
    return take(archive, found, copy_in, collection=collection, settings=settings, note=note, watch=watch)


def find_known(archive: Archive, source: ImportSource | UnreadableSource) -> Container | None:
    """The container that a file became in an earlier import, if the file has not changed since."""
    if isinstance(source, UnreadableSource) or not source.identity:
        return None
    with archive.database.reading() as connection:
        known = locations.find_imported(connection, source.place, source.identity)
    is_moved = known is not None and known.state is ContainerState.ELSEWHERE and known.place != source.place
    return None if is_moved else known


def _remember(archive: Archive, source: ImportSource, container: Container) -> None:
    if source.identity and len(source.place) <= _LONGEST_PLACE:
        with archive.database.transaction() as connection:
            locations.note_imported(connection, source.place, source.identity, container)


def _checked(source: ImportSource | UnreadableSource, *, with_first_bytes: bool) -> ImportSource:
    """The source; InputError if it cannot be read, or is not a container by its first bytes."""
    if isinstance(source, UnreadableSource):
        raise InputError(source.reason)
    if with_first_bytes and not source.is_har:
        _form_of(source)
    return source


def _form_of(source: ImportSource) -> ContainerForm:
    """The format of a file, by its first bytes; InputError if it is not a container."""
    with source.open() as stream, import_sources.explained():
        return detect(stream, source.name)


def _outcome(source: ImportSource | UnreadableSource, container: Container, state: FileState) -> FileOutcome:
    is_away = state is FileState.KNOWN and container.state is ContainerState.ELSEWHERE
    return FileOutcome(
        file=source.place,
        state=state,
        reason=f"it is read in place from {container.place}" if is_away else "",
        container=container.name,
        harvest=container.harvest,
        size_bytes=container.size_bytes,
        sha256=container.sha256,
    )


def _held(archive: Archive, harvest: Harvest) -> tuple[int, int]:
    """The number of containers that a harvest has, and their bytes."""
    with archive.database.reading() as connection:
        containers = locations.of_harvest(connection, harvest.id)
    return len(containers), sum(container.size_bytes for container in containers)


def _end_intake(archive: Archive, harvest: Harvest) -> Harvest | None:
    """End an import while it is still locked; None if it contains nothing."""
    if _held(archive, harvest)[0]:
        return finish(archive, harvest)
    end(archive, harvest, HarvestState.FAILED, NOTHING_NEW)
    harvests.end_direct(archive, harvests.get(archive, harvest.id))
    return None


def finish(archive: Archive, harvest: Harvest) -> Harvest:
    """End an import with the containers taken in so far."""
    count = _held(archive, harvest)[0]
    end(archive, harvest, HarvestState.FINISHED, f"{count} container{'s' if count != 1 else ''} imported")
    return harvests.get(archive, harvest.id)


def begin(
    archive: Archive,
    collection: str,
    settings: Mapping[str, object],
    held: ExitStack,
    work: ExitStack | None = None,
) -> Harvest:
    """The import to continue if one with these settings was interrupted, otherwise a new one; locked in
    `held`, and with `work` also as in `harvests.direct`.
    """
    target = target_of(archive, collection)
    targets.admit(archive, target, [targets.operators_decision(archive)])
    while True:
        with archive.database.reading() as connection:
            unfinished = runs.all_unfinished(connection, target.id, HarvestKind.IMPORT)
        for harvest in unfinished:
            if harvest.settings == settings and _lock(archive, harvest, held, work):
                return harvest
        harvest = _new_import(archive, target, collection, settings)
        if _lock(archive, harvest, held, work):  # otherwise another process took it for interrupted
            return harvest


def _lock(archive: Archive, harvest: Harvest, held: ExitStack, work: ExitStack | None) -> bool:
    """Lock an import that is not ended; False if another process has it, or has just ended it."""
    was_direct = harvests.is_direct(archive, harvest)
    with ExitStack() as for_intake, ExitStack() as for_all:
        try:
            if work is not None:
                for_all.enter_context(harvests.direct(archive, harvest))
            for_intake.enter_context(harvests.locked(harvests.folder_of(archive, harvest)))
        except (Conflict, FileNotFoundError):  # another process may remove the folder
            return False
        current = harvests.get(archive, harvest.id)
        if current.state not in (HarvestState.RUNNING, HarvestState.STOPPED):
            if not was_direct:
                harvests.end_direct(archive, current)
            return False
        held.push(for_intake.pop_all())
        if work is not None:
            work.push(for_all.pop_all())
    return True


def _new_import(archive: Archive, target: Target, collection: str, settings: Mapping[str, object]) -> Harvest:
    now = archive.clock()
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
    with archive.database.transaction() as connection:
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


def take_container(archive: Archive, harvest: Harvest, path: Path) -> Container:
    """Take one container into an import that the caller began; the container with its bytes, new or known
    before.
    """
    return copy_in(archive, harvest, import_sources.of_file(path))[0]


def copy_in(archive: Archive, harvest: Harvest, source: ImportSource) -> TakenContainer:
    """Copy one container, as `TakeOne` says. The copy is visible once its row is written."""
    if not file_names.is_name(source.name):
        raise InputError(f"{source.name[:200]!r} cannot be the name of a container. {file_names.RULE}")
    folder = harvests.containers_folder(archive, harvest)
    durable.make_folders(folder)
    partial = folder / ".partial"
    try:
        form = None if source.is_har else _form_of(source)
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
    """Copy a file, durable on return; its SHA-256. InputError if it was changed meanwhile."""
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
            message=f"{name} was compressed {_compression(name)}; it was rewritten record by record, "
            "with unchanged records",
        )
    )
    stem = name.removesuffix(".gz").removesuffix(".zst")
    return f"{stem}.gz", result.sha256, result.records


def _convert(archive: Archive, partial: Path, name: str, findings: list[Finding]) -> tuple[str, str, int]:
    """Replace the copy of a HAR file by a WARC file; its name, checksum and number of records."""
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


def end(archive: Archive, harvest: Harvest, state: HarvestState, reason: str) -> None:
    with archive.database.transaction() as connection:
        held = locations.of_harvest(connection, harvest.id)
        counts = {
            "fetched": sum(container.records for container in held),
            "bytes": sum(container.size_bytes for container in held),
        }
        runs.move(connection, harvest.id, state, reason=reason, counts=counts, ended_at=archive.clock())
