"""What the review page of a harvest shows."""

from collections.abc import Sequence
from dataclasses import dataclass

from webdepot.archive import Archive
from webdepot.model import Finding
from webdepot.quality.screenshots import Screenshot
from webdepot.services.review import reviews
from webdepot.services.review.reviews import ReviewDossier


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewView:
    dossier: ReviewDossier
    groups: Sequence[str]
    """Groups in which something was found."""
    group: str
    """The group whose findings are shown; empty when nothing was found."""
    findings: Sequence[Finding]
    pictures: Sequence[tuple[Screenshot | None, Screenshot]]
    """Screenshots, each after the one of the harvest before, where there is one."""
    verbs: Sequence[str]
    """Decisions that are possible now."""


def view(archive: Archive, harvest: str, *, group: str = "", limit: int, offset: int = 0) -> ReviewView:
    """The dossier of a harvest with findings of one group, the first that has any unless one is given;
    NotFound.
    """
    dossier = reviews.dossier(archive, harvest)
    groups = [name for name, codes in dossier.groups.items() if codes]
    shown = group if group in groups else next(iter(groups), "")
    return ReviewView(
        dossier=dossier,
        groups=groups,
        group=shown,
        findings=reviews.findings(archive, dossier.harvest.id, shown, limit=limit, offset=offset),
        pictures=reviews.screenshot_pairs(archive, dossier),
        verbs=reviews.possible_decisions(dossier.harvest),
    )
