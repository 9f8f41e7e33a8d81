"""The whole pipeline in one call: harvest or import, identify, check, deposit, index. Each step can be
repeated.

    running ─ harvest ─> finished ─ identify ─ check ─ keep ─> kept ─ index ─ unpack, if partners want files

After a crash the harvest is in one of these states, and the same call continues from there.
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
    """None if the files contained nothing new."""
    known: Sequence[str]
    """Files that the archive already has, with nothing left to do."""
    resumed: Sequence[ArchiveReport]
    """Earlier imports of these files that had been interrupted, and are complete now."""
    skipped: Sequence[str]
    """Files that could not be taken in, each with the reason."""


def archive_site(
    archive: Archive,
    seeds: Sequence[str],
    options: "HarvestOptions",
    *,
    deposit: bool = True,
    watch: Watch = unwatched,
) -> ArchiveReport:
    """Harvest, deposit and index the sites of these addresses, as a person typed them.

    An unfinished harvest of the same seeds is continued, also if its process was killed after it had ended.
    """
    harvest = runner.find_interrupted(archive, seeds) or runner.start_or_resume(archive, seeds, options)
    if harvest.state in (HarvestState.RUNNING, HarvestState.STOPPED):
        harvests.mark_direct(archive, harvest)
        harvest = runner.run(archive, harvest, watch=watch)
    done = ingest.take_in(archive, harvest, deposit=deposit, watch=watch)
    if done.harvest.state in (HarvestState.FINISHED, HarvestState.KEPT):
        harvests.end_direct(archive, done.harvest)
    return done


def resume(
    archive: Archive, harvest: str, *, deposit: bool = True, watch: Watch = unwatched
) -> ArchiveReport:
    """Continue a harvest from the state it is in."""
    run = harvests.get(archive, harvest)
    if run.kind is not HarvestKind.IMPORT and run.state in (HarvestState.RUNNING, HarvestState.STOPPED):
        run = runner.run(archive, run, watch=watch)
    elif run.kind is HarvestKind.IMPORT and run.state is HarvestState.RUNNING:
        run = warc_files.finish(archive, run)
    return ingest.take_in(archive, run, deposit=deposit, watch=watch)


def import_files(
    archive: Archive,
    paths: Sequence[str | Path],
    *,
    collection: str,
    deposit: bool = True,
    in_place: bool = False,
    watch: Watch = unwatched,
) -> ImportReport:
    """Import containers of others, given as files or folders. A file that cannot be taken in does not stop
    the others.

    With `in_place` they stay where they are, which may be an http, https or s3 address, and are not
    deposited.
    """
    archive.remove_abandoned()  # if all files are known, nothing else does
    if in_place:
        deposit = False
        addresses = [str(path) for path in paths]
        intake = in_place_service.refer(archive, addresses, collection=collection, watch=watch)
    else:
        intake = warc_files.take(archive, [Path(path) for path in paths], collection=collection, watch=watch)
    taken = ingest.take_in(archive, intake.harvest, deposit=deposit, watch=watch) if intake.harvest else None
    interrupted = {
        harvest.id: harvest
        for harvest in intake.known.values()
        if not ingest.is_complete(archive, harvest, deposit=deposit)
    }
    skipped = list(intake.skipped)
    resumed = []
    for harvest in interrupted.values():
        if harvest.settings:
            skipped.append(
                f"{harvest.id}: this harvest has some of the files and is not complete. "
                f"Complete it: webdepot harvest resume {harvest.id}"
            )
        else:
            resumed.append(resume(archive, harvest.id, deposit=deposit, watch=watch))
    known = [path for path, harvest in intake.known.items() if harvest.id not in interrupted]
    return ImportReport(taken=taken, known=known, resumed=resumed, skipped=skipped)
