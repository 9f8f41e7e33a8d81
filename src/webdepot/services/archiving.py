"""The whole way in one call: harvest or import, check, identify, keep, index. Each step can be repeated.

    running ─ harvest ─> finished ─ check ─ identify ─ keep ─> kept ─ index

A killed process leaves a harvest in one of those states; the same call goes on from there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webdepot.archive import Archive
from webdepot.model import Finding, Harvest, HarvestKind, HarvestState, Package, Verdict
from webdepot.services import harvesting, importing, ingesting, keeping, searching
from webdepot.services.harvesting import HarvestOptions
from webdepot.services.progress import Watch, unwatched


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """What a person wants to know when it is over."""

    harvest: Harvest
    verdict: Verdict
    """Is the harvest whole enough? With the reason."""
    findings: Sequence[Finding]
    """The gravest first, at most a hundred; `finding_counts` has them all."""
    finding_counts: Mapping[str, int]
    formats: Mapping[str, int]
    """Files checked, recognised, uncertain, not recognised."""
    package: Package | None
    captures: int
    pages: int
    """Pages whose words can be searched."""
    skipped: Sequence[str] = field(default_factory=tuple)
    """Inputs that were not taken, each with its reason."""


def archive_site(
    archive: Archive, seeds: Sequence[str], options: HarvestOptions, *, deposit: bool = True, watch: Watch = unwatched
) -> ArchiveReport:
    """From addresses as typed to a kept, searchable, replayable site. Goes on with an unfinished harvest of the same seeds."""
    harvest = harvesting.start_or_resume(archive, seeds, options)
    harvest = harvesting.run(archive, harvest, watch=watch)
    return take_in(archive, harvest, deposit=deposit, watch=watch)


def import_files(
    archive: Archive, paths: Sequence[Path], *, collection: str, deposit: bool = True, watch: Watch = unwatched
) -> ArchiveReport | None:
    """Foreign containers, as files or folders of files; None when there was nothing new in them."""
    taken = importing.take(archive, paths, collection=collection, watch=watch)
    if taken.harvest is None:
        return None
    report = take_in(archive, taken.harvest, deposit=deposit, watch=watch)
    return report


def take_in(archive: Archive, harvest: Harvest, *, deposit: bool, watch: Watch = unwatched) -> ArchiveReport:
    """Check, identify, keep and index a finished harvest; what is done already is not done again."""
    checked = ingesting.check(archive, harvest, watch=watch)
    formats = ingesting.identify(archive, harvest, watch=watch)
    package = keeping.keep(archive, harvest, watch=watch) if deposit else None
    indexed = searching.index_harvest(archive, harvest, watch=watch)
    return ArchiveReport(
        harvest=harvesting.get(archive, harvest.id),
        verdict=checked.verdict,
        findings=checked.findings,
        finding_counts=checked.counts,
        formats=formats,
        package=package,
        captures=indexed.captures,
        pages=indexed.pages,
    )
