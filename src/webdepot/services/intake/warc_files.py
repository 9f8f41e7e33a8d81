"""Import foreign containers: WARC and ARC files from other tools, and those inside WACZ files.

1. Take the next container (`sources`); one that an unchanged file became in an earlier import is known.
2. Begin a harvest for the first that may be new, or continue the interrupted one (`import_harvests`).
3. Copy the container into it (`container_copy`), or do what the caller gives instead (`in_place`).

Files that the archive already has are recognised by their checksum, whatever their name. Files of an import
that was interrupted after they had been copied are not known: `IntakeResult` has their harvests, for the
caller to continue them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.errors import CorruptData, InputError, NotFound, NotPermitted, RemoteError
from webdepot.model import (
    Container,
    ContainerState,
    Harvest,
    HarvestId,
)
from webdepot.services.intake import sources as import_sources
from webdepot.services.intake.container_copy import TakenContainer, copy_in, form_of
from webdepot.services.intake.import_harvests import begin, count_held, end_intake
from webdepot.services.intake.sources import ImportSource, UnreadableSource
from webdepot.services.progress import Phase, Progress, Watch

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
                        held_files, held_bytes = count_held(archive, harvest)
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
            harvest = end_intake(archive, harvest)
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
    sources = [import_sources.of_file(path) for path in paths]
    return take(archive, sources, copy_in, collection=collection, settings=settings, note=note, watch=watch)


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
        form_of(source)
    return source


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
