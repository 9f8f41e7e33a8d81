"""The whole way in one call: harvest or import, check, identify, keep, index. Each step can be repeated.

    running ─ harvest ─> finished ─ identify ─ check ─ keep ─> kept ─ index ─ unpack, where partners take files

A killed process leaves a harvest in one of those states; the same call goes on from there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from webdepot.archive import Archive
from webdepot.model import HarvestKind, HarvestState
from webdepot.services.harvest import harvests, runner
from webdepot.services.intake import in_place as in_place_service
from webdepot.services.intake import ingest, warc_files
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.services.progress import Watch, unwatched

if TYPE_CHECKING:
    from webdepot.services.harvest.options import HarvestOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    taken: ArchiveReport | None
    """None when nothing new was in the files."""
    known: Sequence[str]
    """Files whose bytes are in the archive already."""
    skipped: Sequence[str]
    """Files that were not taken, each with its reason in words."""


def archive_site(
    archive: Archive,
    seeds: Sequence[str],
    options: "HarvestOptions",
    *,
    deposit: bool = True,
    watch: Watch = unwatched,
) -> ArchiveReport:
    """From addresses as typed to a kept, searchable, replayable site. Goes on with an unfinished harvest of
    the same seeds.
    """
    harvest = runner.start_or_resume(archive, seeds, options)
    return ingest.take_in(archive, runner.run(archive, harvest, watch=watch), deposit=deposit, watch=watch)


def resume(
    archive: Archive, harvest: str, *, deposit: bool = True, watch: Watch = unwatched
) -> ArchiveReport:
    """Go on with one harvest, wherever it stands."""
    found = harvests.get(archive, harvest)
    if found.kind is not HarvestKind.IMPORT and found.state in (HarvestState.RUNNING, HarvestState.STOPPED):
        found = runner.run(archive, found, watch=watch)
    elif found.kind is HarvestKind.IMPORT and found.state is HarvestState.RUNNING:
        found = warc_files.finish(archive, found)
    return ingest.take_in(archive, found, deposit=deposit, watch=watch)


def import_files(
    archive: Archive,
    paths: Sequence[str | Path],
    *,
    collection: str,
    deposit: bool = True,
    in_place: bool = False,
    watch: Watch = unwatched,
) -> ImportReport:
    """Foreign containers, as files or folders of files. A file that cannot be taken is told and stops no
    other.

    With `in_place` they stay where they are, which may be an http, https or s3 address, and are not put into
    the depot.
    """
    if in_place:
        intake, deposit = (
            in_place_service.refer(
                archive, [str(path) for path in paths], collection=collection, watch=watch
            ),
            False,
        )
    else:
        intake = warc_files.take(archive, [Path(path) for path in paths], collection=collection, watch=watch)
    taken = ingest.take_in(archive, intake.harvest, deposit=deposit, watch=watch) if intake.harvest else None
    return ImportReport(taken=taken, known=intake.known, skipped=intake.skipped)
