"""The whole pipeline in one call: harvest or import, identify, check, deposit, index. Each step can be
repeated.

    running ─ harvest ─> finished ─ identify ─ check ─ keep ─> kept ─ index ─ unpack, if partners want files

Files are identified while the harvest or the import runs, container by container; the step after its end
identifies what is left. After a crash the harvest is in one of these states, and the same call continues from
there.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from webdepot.archive import Archive
from webdepot.errors import Conflict
from webdepot.model import Harvest, HarvestKind, HarvestState
from webdepot.services.depot import deposit as deposit_service
from webdepot.services.harvest import harvests, runner
from webdepot.services.index import visible_harvests
from webdepot.services.intake import imports, ingest
from webdepot.services.intake.imports import ImportReport
from webdepot.services.intake.ingest import ArchiveReport
from webdepot.services.intake.warc_files import FileOutcome
from webdepot.services.progress import Watch, unwatched
from webdepot.services.quality import harvest_run
from webdepot.services.review import reviews

if TYPE_CHECKING:
    from webdepot.services.harvest.options import HarvestOptions


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
    If that is a planned one, it waits for its review as planned.
    """
    planned = runner.find_unfinished(archive, seeds)
    harvest = runner.find_interrupted(archive, seeds) or runner.start_or_resume(archive, seeds, options)
    if planned is not None and planned.id == harvest.id and not harvests.is_direct(archive, harvest):
        return resume(archive, harvest.id, deposit=deposit, watch=watch)
    if harvest.state in (HarvestState.RUNNING, HarvestState.STOPPED):
        harvests.mark_direct(archive, harvest)
        harvest = harvest_run.run(archive, harvest, watch=watch)
    done = ingest.take_in(archive, harvest, deposit=deposit, watch=watch)
    if done.harvest.state in (HarvestState.FINISHED, HarvestState.KEPT):
        harvests.end_direct(archive, done.harvest)
    return done


def resume(
    archive: Archive, harvest: str, *, deposit: bool = True, watch: Watch = unwatched
) -> ArchiveReport:
    """Continue a harvest from the state it is in. A planned one is checked and then waits for its review, as
    if nobody had interrupted it.
    """
    run = harvests.get(archive, harvest)
    if run.kind is not HarvestKind.IMPORT and run.state in (HarvestState.RUNNING, HarvestState.STOPPED):
        run = harvest_run.run(archive, run, watch=watch)
    elif run.kind is HarvestKind.IMPORT:
        with harvests.direct(archive, run):
            return imports.complete(archive, harvests.get(archive, harvest), deposit=deposit, watch=watch)
    if not _needs_review(archive, run):
        return ingest.take_in(archive, run, deposit=deposit, watch=watch)
    checked = ingest.take_in(archive, run, deposit=False, index=False, watch=watch)
    if run.state is HarvestState.FINISHED:
        reviews.settle(archive, run, watch=watch)
    return replace(
        checked,
        harvest=harvests.get(archive, run.id),
        package=deposit_service.find_package(archive, run.id),
    )


def keep(archive: Archive, harvest: str, *, watch: Watch = unwatched) -> ArchiveReport:
    """Deposit a finished harvest and index it; Conflict if it waits for its review."""
    finished = harvests.get(archive, harvest)
    if finished.state is HarvestState.FINISHED and _needs_review(archive, finished):
        raise Conflict(f"Harvest {harvest} waits for its review. Accept it: webdepot review accept {harvest}")
    return ingest.take_in(archive, finished, deposit=True, watch=watch)


def _needs_review(archive: Archive, harvest: Harvest) -> bool:
    """Whether somebody decides before readers see it: neither `webdepot archive` nor an import began it, and
    it is not a patch of a harvest that they see.
    """
    if harvest.kind is HarvestKind.PATCH:
        parent = harvests.get(archive, str(harvest.settings.get("patch_of")))
        return not visible_harvests.is_shown(archive, parent)
    is_planned = harvest.kind is HarvestKind.HARVEST and not harvests.is_direct(archive, harvest)
    return is_planned and not visible_harvests.is_shown(archive, harvest)


def import_files(
    archive: Archive,
    paths: Sequence[str | Path],
    *,
    collection: str,
    deposit: bool = True,
    in_place: bool = False,
    watch: Watch = unwatched,
    on_file: Callable[[FileOutcome], None] = imports.ignore,
    on_package: Callable[[ArchiveReport], None] = imports.ignore,
) -> ImportReport:
    """Import foreign containers, given as files or folders. A file that cannot be taken in does not stop the
    others. `on_file` gets the outcome of each file, `on_package` the report of each harvest.

    With `in_place` they stay where they are, which may be an http, https or s3 address, and are not
    deposited.
    """
    archive.remove_abandoned()  # if all files are known, nothing else does
    listener = imports.ImportListener(watch=watch, on_file=on_file, on_package=on_package)
    return imports.run(
        archive,
        [str(path) for path in paths],
        collection=collection,
        deposit=deposit,
        in_place=in_place,
        listener=listener,
    )
