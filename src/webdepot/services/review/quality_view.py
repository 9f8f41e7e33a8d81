"""What the quality page of a harvest shows: verdict, findings, formats, and what a patch could fetch."""

from collections.abc import Sequence
from dataclasses import dataclass

from webdepot.archive import Archive
from webdepot.formats.report import FormatShare, HarvestTable
from webdepot.model import Finding, Harvest
from webdepot.services.harvest import harvests
from webdepot.services.quality import format_watch, harvest_check
from webdepot.services.quality.harvest_check import HarvestCheck
from webdepot.services.review import patches


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityView:
    harvest: Harvest
    checked: HarvestCheck
    findings: Sequence[tuple[int, Finding]]
    """Each with its number."""
    missing: int
    """How many addresses a patch would fetch."""
    patches: Sequence[Harvest]
    table: HarvestTable
    shares: Sequence[FormatShare]


def view(archive: Archive, harvest: str, *, code: str = "", limit: int, offset: int = 0) -> QualityView:
    """The quality of a harvest, with some of its findings, those with one code if it is given; NotFound."""
    found = harvests.get(archive, harvest)
    table, shares = format_watch.of_harvest(archive, found.id)
    return QualityView(
        harvest=found,
        checked=harvest_check.last_check(archive, found.id),
        findings=harvest_check.findings_page(archive, found, code=code, limit=limit, offset=offset),
        missing=len(patches.missing(archive, found)),
        patches=harvest_check.patches_of(archive, found),
        table=table,
        shares=shares,
    )
