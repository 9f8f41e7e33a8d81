"""Ingest a finished harvest: identify its files, check it, put it into the depot, index it.

    finished ─ identify ─ check ─ keep ─> kept ─ index ─ unpack, if partners want files

Each step can be repeated; after a crash the same call continues from the state the harvest is in.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.formats.report import HarvestTable
from webdepot.harvest.report.reports import left_out_of
from webdepot.harvest.scope.mazes import MAZES
from webdepot.model import Finding, Harvest, HarvestId, HarvestKind, HarvestState, Package, Verdict
from webdepot.quality import finding_rows
from webdepot.services.depot import deposit as deposit_service
from webdepot.services.depot import unpacked
from webdepot.services.harvest import harvests
from webdepot.services.index import indexer, visible_harvests
from webdepot.services.index.indexer import Indexed
from webdepot.services.intake import wacz_files
from webdepot.services.progress import Watch, unwatched
from webdepot.services.quality import harvest_check, identification


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReport:
    """The result of an ingest, for the person who started it."""

    harvest: Harvest
    verdict: Verdict
    """Whether the harvest is complete enough, with the reason."""
    findings: Sequence[Finding]
    """The most severe ones; `finding_counts` counts all."""
    finding_counts: Mapping[str, int]
    formats: HarvestTable
    package: Package | None
    captures: int
    pages: int
    """Pages added to the full-text index."""
    words_away: str
    """Why no words were indexed, if the search server does not answer; a worker adds them when it does."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """Kinds of addresses that were left out, most first."""
        return left_out_of(self.harvest.counts)

    @property
    def not_content(self) -> Mapping[str, int]:
        """Those of `left_out` that the software of the site adds to its content."""
        return {kind: count for kind, count in self.left_out.items() if kind != MAZES}

    @property
    def invented(self) -> int:
        """How many addresses were left out because the site invents pages without end."""
        return self.left_out.get(MAZES, 0)


def is_complete(
    archive: Archive, harvest: Harvest, *, deposit: bool = True, ignoring_folder: bool = False
) -> bool:
    """Whether nothing is left to do for an import: checked, indexed, deposited if required, and without a
    working folder unless that is ignored.

    For a harvest of another kind, people decide about the next step.
    """
    if harvest.kind is not HarvestKind.IMPORT or harvest.state is HarvestState.REJECTED:
        return True
    with archive.database.reading() as connection:
        names = {container.name for container in locations.of_harvest(connection, harvest.id)}
        is_checked = finding_rows.find_verdict(connection, harvest.id) is not None
    is_kept = harvest.state is HarvestState.KEPT
    is_indexed = indexer.are_indexed(archive, names)
    has_folder = is_kept and not ignoring_folder and harvests.folder_of(archive, harvest).exists()
    return is_checked and is_indexed and (is_kept or not deposit) and not has_folder


def take_in(
    archive: Archive, harvest: Harvest, *, deposit: bool, index: bool = True, watch: Watch = unwatched
) -> ArchiveReport:
    """Identify, check, deposit and index a finished harvest; a stopped one is checked and indexed, but not
    deposited.

    Without `index` readers do not see it until a reviewer has accepted it.
    """
    harvest = wacz_files.note_seeds(archive, harvest)
    formats = identification.identify(archive, harvest, watch=watch)
    if harvest.counts.get("screenshots"):
        harvest_check.note_screenshots(archive, harvest)
    checked = harvest_check.check(archive, harvest, watch=watch)
    package = deposit_service.find_package(archive, harvest.id)
    if deposit and (package is not None or harvest.state is HarvestState.FINISHED):
        package = deposit_service.keep(archive, harvest, watch=watch)
    if index:
        visible_harvests.show(archive, harvests.get(archive, harvest.id))
    indexed = publish(archive, harvest.id, watch=watch) if index else None
    return ArchiveReport(
        harvest=harvests.get(archive, harvest.id),
        verdict=checked.verdict,
        findings=checked.findings,
        finding_counts=checked.counts,
        formats=formats,
        package=package,
        captures=indexed.captures if indexed else 0,
        pages=indexed.pages if indexed else 0,
        words_away=indexed.away if indexed else "",
    )


def publish(archive: Archive, harvest: str, *, watch: Watch = unwatched) -> Indexed:
    """Index a harvest that readers may see, and prepare its files for partners if it is in the depot and they
    want files. Can be repeated.
    """
    indexed = indexer.index_harvest(archive, harvest, watch=watch)
    if unpacked.is_wanted(archive) and deposit_service.find_package(archive, HarvestId(harvest)) is not None:
        unpacked.prepare_harvest(archive, harvest)
    return indexed
