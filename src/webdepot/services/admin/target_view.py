"""What the pages about targets show, each page as one value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from webdepot.access.policy import Reader
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.exchange.catalogue import CatalogueRecord, Source
from webdepot.harvest.harvest_rows import HarvestFilter
from webdepot.model import Harvest, HarvestId, HarvestKind, HarvestState, TargetId, Verdict
from webdepot.provenance import Event
from webdepot.quality.page_ratings import Rating
from webdepot.selection.contacts import Contact
from webdepot.selection.grounds import KeptGround
from webdepot.selection.letter_rows import Letter
from webdepot.selection.states import TARGET, TargetState
from webdepot.selection.target_list import TargetFilter, TargetPage, TargetSort
from webdepot.selection.targets import Dossier, Origin
from webdepot.services.access import gate
from webdepot.services.admin import target_path
from webdepot.services.admin.target_path import PathFacts, TargetPath
from webdepot.services.catalogue import records
from webdepot.services.harvest import target_harvests
from webdepot.services.harvest.target_harvests import TargetHarvests
from webdepot.services.permission import letters, owner_answers
from webdepot.services.review import ratings, reviews
from webdepot.services.schedule import plans
from webdepot.services.schedule.plans import TargetPlan
from webdepot.services.selection import contacts, criteria, targets
from webdepot.services.selection.criteria import CriteriaResult
from webdepot.url import key

MOST_EVENTS = 100
MOST_HARVESTS = 20


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
    path: TargetPath
    plan: TargetPlan
    latest: Sequence[Harvest]
    """Its newest harvests."""
    ratings: Mapping[HarvestId, Mapping[Rating, int]]
    """Of those with rated pages: how many pages have each rating."""


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
    people, sent = contacts.contacts_of(archive, dossier.id), letters.letters_of(archive, dossier.id)
    plan = plans.of_target(archive, dossier.id, dates=1)
    waiting = reviews.list_waiting(archive, HarvestFilter(target=dossier.id, kind=HarvestKind.HARVEST))
    latest = reviews.list_harvests(archive, HarvestFilter(target=dossier.id)).rows[:MOST_HARVESTS]
    record = records.find_of_target(archive, dossier.id)
    facts = PathFacts(
        state=dossier.state,
        is_judged=bool(judged.given),
        has_letter=any(letter.sent_at for letter in sent),
        has_contact=any(contact.mail for contact in people),
        has_plan=plan.plan is not None and plan.plan.is_active,
        to_review=next((each.id for each in waiting.rows), ""),
        is_harvested=any(each.state is HarvestState.KEPT for each in latest),
        is_described=record is not None and Source.PERSON in record.sources.values(),
    )
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
        contacts=people,
        letters=sent,
        grounds=owner_answers.grounds_of(archive, dossier.id),
        harvests=target_harvests.harvests_of_targets(archive, [dossier.id]).get(dossier.id),
        record=record,
        history=targets.history(archive, dossier.id)[:MOST_EVENTS],
        path=target_path.path_of(facts),
        plan=plan,
        latest=latest,
        ratings=ratings.tallies(archive, [each.id for each in latest]),
    )


def view_list(archive: Archive, wanted: TargetFilter) -> TargetListView:
    """A page of targets, filtered and sorted, with how often each was harvested."""
    listing = targets.list_targets(archive, wanted)
    return TargetListView(
        listing=listing,
        counts=targets.counts(archive),
        harvests=target_harvests.harvests_of_targets(archive, [row.id for row in listing.rows]),
    )


class NominationOutcome(StrEnum):
    """What became of a nomination, as its nominator may know it."""

    WAITING = "waiting"
    LATER = "later"
    NOT_CHOSEN = "not_chosen"
    CHOSEN = "chosen"
    ARCHIVED = "archived"
    REFUSED = "refused"
    ENDED = "ended"


_OUTCOMES = {
    TargetState.PUT_OFF: NominationOutcome.LATER,
    TargetState.REJECTED: NominationOutcome.NOT_CHOSEN,
    TargetState.SELECTED: NominationOutcome.CHOSEN,
    TargetState.ASKED: NominationOutcome.CHOSEN,
    TargetState.CLEARED: NominationOutcome.CHOSEN,
    TargetState.REFUSED: NominationOutcome.REFUSED,
    TargetState.ENDED: NominationOutcome.ENDED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NominationList:
    """A page of what one partner nominated, the newest first."""

    rows: Sequence[tuple[Dossier, NominationOutcome]]
    listing: TargetPage


def nominations_of(archive: Archive, partner: str, reader: Reader, *, page: int = 1) -> NominationList:
    """What a partner nominated and what became of it. Internal reasons, notes and contacts stay internal. A
    harvest counts only once it was accepted and if this reader may see its start page.
    """
    wanted = TargetFilter(
        origin=Origin.PARTNER, nominated_by=partner, sort=TargetSort.CREATED, descending=True, page=page
    )
    listing = targets.list_targets(archive, wanted)
    kept = target_harvests.kept_targets(archive, [row.id for row in listing.rows])
    rows = [
        (row, _outcome(row, is_shown=row.id in kept and _is_open(archive, row, reader)))
        for row in listing.rows
    ]
    return NominationList(rows=rows, listing=listing)


def _is_open(archive: Archive, dossier: Dossier, reader: Reader) -> bool:
    return bool(gate.of_key(archive, key(dossier.target.seeds[0]), reader).spans)


def _outcome(dossier: Dossier, *, is_shown: bool) -> NominationOutcome:
    outcome = _OUTCOMES.get(dossier.state, NominationOutcome.WAITING)
    return NominationOutcome.ARCHIVED if outcome is NominationOutcome.CHOSEN and is_shown else outcome
