"""The whole way in one call: harvest or import, check, identify, keep, index. Each step can be repeated.

    running ─ harvest ─> finished ─ identify ─ check ─ keep ─> kept ─ index ─ unpack, where partners take files

A killed process leaves a harvest in one of those states; the same call goes on from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from webdepot.archive import Archive
from webdepot.formats.report import HarvestTable
from webdepot.model import Finding, Harvest, HarvestKind, HarvestState, Package, Verdict
from webdepot.services import harvesting, importing, indexing, ingesting, keeping, unpacking
from webdepot.services.progress import Watch, unwatched

if TYPE_CHECKING:
    from webdepot.services.harvest_options import HarvestOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """What a person wants to know when it is over."""

    harvest: Harvest
    verdict: Verdict
    """Is the harvest whole enough? With the reason."""
    findings: Sequence[Finding]
    """The gravest first, not all of them; `finding_counts` has all."""
    finding_counts: Mapping[str, int]
    formats: HarvestTable
    package: Package | None
    captures: int
    pages: int
    """Pages whose words can be searched."""


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
    harvest = harvesting.start_or_resume(archive, seeds, options)
    return take_in(archive, harvesting.run(archive, harvest, watch=watch), deposit=deposit, watch=watch)


def resume(
    archive: Archive, harvest: str, *, deposit: bool = True, watch: Watch = unwatched
) -> ArchiveReport:
    """Go on with one harvest, wherever it stands."""
    found = harvesting.get(archive, harvest)
    if found.kind is not HarvestKind.IMPORT and found.state in (HarvestState.RUNNING, HarvestState.STOPPED):
        found = harvesting.run(archive, found, watch=watch)
    elif found.kind is HarvestKind.IMPORT and found.state is HarvestState.RUNNING:
        found = importing.finish(archive, found)
    return take_in(archive, found, deposit=deposit, watch=watch)


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
        from webdepot.services import borrowing

        intake, deposit = (
            borrowing.refer(archive, [str(path) for path in paths], collection=collection, watch=watch),
            False,
        )
    else:
        intake = importing.take(archive, [Path(path) for path in paths], collection=collection, watch=watch)
    taken = take_in(archive, intake.harvest, deposit=deposit, watch=watch) if intake.harvest else None
    return ImportReport(taken=taken, known=intake.known, skipped=intake.skipped)


def take_in(
    archive: Archive, harvest: Harvest, *, deposit: bool, index: bool = True, watch: Watch = unwatched
) -> ArchiveReport:
    """Check, identify, keep and index a finished harvest; a stopped one is indexed so far, and kept when it
    is finished.

    Without `index` it stays unseen: it waits for a reviewer.
    """
    formats = ingesting.identify(archive, harvest, watch=watch)
    if harvest.counts.get("screenshots"):
        ingesting.note_screenshots(archive, harvest)
    checked = ingesting.check(archive, harvest, watch=watch)
    package = keeping.find_package(archive, harvest.id)
    if package is None and deposit and harvest.state is HarvestState.FINISHED:
        package = keeping.keep(archive, harvest, watch=watch)
    indexed = indexing.index_harvest(archive, harvest.id, watch=watch) if index else None
    if package is not None and unpacking.is_wanted(archive):
        unpacking.prepare_harvest(archive, harvest.id)
    return ArchiveReport(
        harvest=harvesting.get(archive, harvest.id),
        verdict=checked.verdict,
        findings=checked.findings,
        finding_counts=checked.counts,
        formats=formats,
        package=package,
        captures=indexed.captures if indexed else 0,
        pages=indexed.pages if indexed else 0,
    )
