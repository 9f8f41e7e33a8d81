"""What the pages about targets show, each page as one value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from webdepot.accounts.accounts import Role
from webdepot.archive import Archive
from webdepot.exchange.catalogue import CatalogueRecord
from webdepot.model import TargetId, Verdict
from webdepot.provenance import Event
from webdepot.selection.contacts import Contact
from webdepot.selection.grounds import KeptGround
from webdepot.selection.letters import Letter
from webdepot.selection.states import TARGET, TargetState
from webdepot.selection.targets import Dossier, TargetFilter, TargetPage
from webdepot.services.catalogue import records
from webdepot.services.harvest import target_harvests
from webdepot.services.harvest.target_harvests import TargetHarvests
from webdepot.services.permission import consent, letters
from webdepot.services.selection import contacts, criteria, targets
from webdepot.services.selection.criteria import CriteriaResult

MOST_EVENTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetView:
    """A target with everything that has been done about it."""

    dossier: Dossier
    verdict: Verdict
    """Whether it may be harvested today."""
    judged: CriteriaResult
    answerable: frozenset[str]
    """Codes of the criteria that this person may answer now."""
    acts: Sequence[str]
    """Decisions that are possible in its state."""
    can_ask: bool
    can_clear: bool
    contacts: Sequence[Contact]
    letters: Sequence[Letter]
    grounds: Sequence[KeptGround]
    harvests: TargetHarvests | None
    record: CatalogueRecord | None
    """Its record in the catalogue."""
    history: Sequence[Event]
    """The newest events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetListView:
    """A page of the list of targets."""

    listing: TargetPage
    counts: Mapping[TargetState, int]
    harvests: Mapping[int, TargetHarvests]
    """Of the targets on the page that have been harvested."""


def view(archive: Archive, target: TargetId, *, roles: frozenset[Role]) -> TargetView:
    """The page of a target for a person with these roles; NotFound when there is none."""
    dossier = targets.get(archive, target)
    judged = criteria.criteria_result(archive, dossier.id)
    may_judge = TARGET.allows(dossier.state, "judge")
    return TargetView(
        dossier=dossier,
        verdict=targets.may_harvest(archive, dossier.id),
        judged=judged,
        answerable=frozenset(
            criterion.code for criterion in judged.asked if may_judge and roles & criterion.roles
        ),
        acts=[act for act in TARGET.acts(dossier.state) if act in targets.DECISIONS],
        can_ask=TARGET.allows(dossier.state, "ask"),
        can_clear=TARGET.allows(dossier.state, "clear"),
        contacts=contacts.contacts_of(archive, dossier.id),
        letters=letters.letters_of(archive, dossier.id),
        grounds=consent.grounds_of(archive, dossier.id),
        harvests=target_harvests.harvests_of_targets(archive, [dossier.id]).get(dossier.id),
        record=records.find_of_target(archive, dossier.id),
        history=targets.history(archive, dossier.id)[:MOST_EVENTS],
    )


def view_list(archive: Archive, wanted: TargetFilter) -> TargetListView:
    """A page of targets, filtered and sorted, with how often each was harvested."""
    listing = targets.list_targets(archive, wanted)
    return TargetListView(
        listing=listing,
        counts=targets.counts(archive),
        harvests=target_harvests.harvests_of_targets(archive, [row.id for row in listing.rows]),
    )
