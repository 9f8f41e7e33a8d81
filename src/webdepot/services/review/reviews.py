"""Review: from a finished harvest to one that is kept and public, or rejected with a reason (mission K13).

1. `examine`: every file identified, the harvest checked; nothing of it is public yet.
2. `settle`: rules accept it within their limits, or it waits for a person.
3. `accept` puts it and its patches into the depot and into the indexes. `reject` leaves it in its working
   folder, unseen; `reopen` takes that back. `annotate` says something about it at any time.

Each decision is a row of `reviews`, an event with before and after, and a step of `harvest.runs.HARVEST`.
What was decided stands in the package too, since its events are kept there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from webdepot.archive import Archive
from webdepot.container.reader import read_record
from webdepot.errors import InputError, NotFound, NotPermitted
from webdepot.formats import report
from webdepot.formats.report import FormatShare, HarvestTable
from webdepot.harvest import runs
from webdepot.harvest.runs import HARVEST, HarvestFilter, HarvestPage
from webdepot.model import Answer, Finding, Harvest, HarvestId, HarvestKind, HarvestState, Package, Verdict
from webdepot.provenance import Event, Outcome, append, difference, iter_of
from webdepot.quality import acceptance, records, reviews, screenshots
from webdepot.quality.acceptance import AcceptanceLimits, HarvestFigures
from webdepot.quality.reviews import Review
from webdepot.quality.reviews import ReviewDecision as Decision
from webdepot.quality.screenshots import Screenshot
from webdepot.reasons import cut, said
from webdepot.selection import schedules, targets
from webdepot.services.depot import deposit
from webdepot.services.harvest import harvests as harvests_service
from webdepot.services.index import indexer
from webdepot.services.progress import Watch, unwatched
from webdepot.services.quality import harvest_check, identification
from webdepot.services.quality.harvest_check import HarvestCheck
from webdepot.services.review import patches as patches_service

LONGEST_WORDS = 5000
MOST_PICTURES = 50
LARGEST_PICTURE = 20 << 20
GROUPS: Mapping[str, tuple[str, ...]] = {
    "missing": (
        *(
            "part-never-tried",
            "part-robots",
            "part-out-of-scope",
            "part-over-limit",
            "part-error",
            "part-unreachable",
        ),
        "body-truncated",
    ),
    "links": ("link-broken", "link-server-error", "link-unreachable", "link-robots", "redirect-loop"),
    "anomalies": (
        *(
            "nothing-harvested",
            "seed-failed",
            "seed-never-tried",
            "queue-left",
            "count-differs",
            "size-differs",
            "duration-differs",
        ),
        *("types-differ", "soft-missing", "page-login", "page-riddle", "browser-failed", "digest-differs"),
        *("path-repeats", "path-long", "log-damaged"),
    ),
    "difference": ("file-new", "file-gone", "file-changed", "since-before", "sub-domain"),
}
"""Findings by the question of a reviewer: is something missing, are links broken, is it odd, what is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A harvest beside the last one of its target."""

    before: Harvest
    added: int
    gone: int
    changed: int
    same: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dossier:
    """Everything a reviewer needs on one page."""

    harvest: Harvest
    target_name: str
    checked: HarvestCheck
    groups: Mapping[str, Sequence[tuple[str, int]]]
    """By question: codes that were found, with their numbers."""
    compared: Compared | None
    formats: HarvestTable
    shares: Sequence[FormatShare]
    not_valid: int
    missing: int
    """Addresses that a patch would ask for."""
    patches: Sequence[Harvest]
    reviews: Sequence[Review]
    is_busy: bool
    """A process works on it: a patch, or the way into the depot."""
    by_rules: Verdict
    """What the rules say of it."""


def waiting(archive: Archive, asked: HarvestFilter) -> HarvestPage:
    """A page of harvests: filtered, sorted and counted in the database."""
    with archive.database.reading() as connection:
        return runs.list_page(connection, asked)


def verdicts_of(archive: Archive, harvests: Sequence[Harvest]) -> Mapping[HarvestId, Verdict]:
    """What the checks said about each."""
    with archive.database.reading() as connection:
        return {
            each.id: found
            for each in harvests
            if (found := records.find_verdict(connection, each.id)) is not None
        }


def dossier(archive: Archive, harvest: str) -> Dossier:
    found = harvests_service.get(archive, harvest)
    checked = harvest_check.last_check(archive, found.id)
    with archive.database.reading() as connection:
        told = reviews.of_harvest(connection, found.id)
        table, shares = report.of_harvest(connection, found.id), report.shares(connection, [found.id])
        name = targets.get(connection, found.target).name
        patches = [
            each
            for each in runs.of_target_any(connection, found.target, HarvestKind.PATCH)
            if each.settings.get("patch_of") == found.id
        ]
    codes = {code.removeprefix("quality."): count for code, count in checked.counts.items()}
    groups = {
        group: [(code, codes[code]) for code in known if codes.get(code)] for group, known in GROUPS.items()
    }
    return Dossier(
        harvest=found,
        target_name=name,
        checked=checked,
        groups=groups,
        compared=_compared(archive, found),
        formats=table,
        shares=shares,
        not_valid=sum(share.not_valid for share in shares),
        missing=len(patches_service.missing(archive, found)),
        patches=patches,
        reviews=told,
        is_busy=harvests_service.is_locked(archive, found)
        or any(harvests_service.is_locked(archive, each) for each in patches),
        by_rules=rules_say(archive, found),
    )


def findings(archive: Archive, harvest: str, group: str, *, limit: int, offset: int = 0) -> list[Finding]:
    """Findings of one group, the gravest first."""
    codes = [f"quality.{code}" for code in GROUPS.get(group, ())]
    with archive.database.reading() as connection:
        return records.of_codes(connection, HarvestId(harvest), codes, limit=limit, offset=offset)


def possible(harvest: Harvest) -> list[str]:
    """Decisions that its state allows."""
    return [
        decision
        for decision in (Decision.ACCEPT, Decision.REJECT, Decision.REOPEN)
        if HARVEST.allows(harvest.state, decision.value)
    ]


def pictures(archive: Archive, found: Dossier) -> list[tuple[Screenshot | None, Screenshot]]:
    """Screenshots of this harvest's pages, each beside that of the last harvest."""
    with archive.database.reading() as connection:
        now = screenshots.of_harvest(connection, found.harvest.id, MOST_PICTURES)
        before = (
            screenshots.of_harvest(connection, found.compared.before.id, MOST_PICTURES)
            if found.compared and now
            else []
        )
    known = {shot.url: shot for shot in before}
    return [(known.get(shot.url), shot) for shot in now]


def picture(archive: Archive, number: int) -> tuple[str, bytes]:
    """Media type and bytes of a screenshot; NotFound when there is none, or it is too large to be one."""
    with archive.database.reading() as connection:
        shot = screenshots.get(connection, number)
    with archive.open_container(shot.location.container) as stream:
        record = read_record(stream, shot.location)
        with record.block() as block:
            data = block.read(LARGEST_PICTURE + 1)
    if len(data) > LARGEST_PICTURE:
        raise NotFound(f"The screenshot {number} is larger than {LARGEST_PICTURE} bytes.")
    return shot.mime, data


def examine(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> HarvestCheck:
    """Identify and check; what was done before is not done again."""
    identification.identify(archive, harvest, watch=watch)
    harvest_check.note_screenshots(archive, harvest)
    return harvest_check.check(archive, harvest, watch=watch)


def settle(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> Verdict:
    """What becomes of a finished, checked harvest without a person: accepted by rules, or left to wait with
    the reason.
    """
    mode = archive.config.review.accept
    if mode == "always":
        verdict = Verdict(
            answer=Answer.ACCEPT,
            rule="always",
            reason=said("always", "All harvests are accepted: [review] accept = always."),
        )
    elif mode == "person":
        verdict = Verdict(
            answer=Answer.PASS, rule="person", reason=said("for_a_person", "It is waiting for a reviewer.")
        )
    else:
        verdict = rules_say(archive, harvest)
    if verdict:
        accept(archive, harvest.id, words=verdict.reason, is_automatic=True, watch=watch)
    return verdict


def rules_say(archive: Archive, harvest: Harvest) -> Verdict:
    """Would rules accept it?"""
    given = archive.config.review
    with archive.database.reading() as connection:
        verdict = records.find_verdict(connection, harvest.id)
        earlier = [
            each
            for each in runs.of_target(connection, harvest.target, HarvestKind.HARVEST)
            if each.state is HarvestState.KEPT and each.started_at < harvest.started_at
        ]
        not_valid = sum(share.not_valid for share in report.shares(connection, [harvest.id]))
    return acceptance.by_rules(
        harvest_check.NOT_CHECKED if verdict is None else verdict,
        _figures(harvest, not_valid),
        _figures(earlier[0], 0) if earlier else None,
        len(earlier),
        AcceptanceLimits(
            after_accepted=given.after_accepted,
            documents_differ=given.documents_differ,
            bytes_differ=given.bytes_differ,
            not_valid=given.not_valid,
        ),
    )


def accept(
    archive: Archive,
    harvest: str,
    *,
    by: str = "",
    words: str = "",
    is_automatic: bool = False,
    watch: Watch = unwatched,
) -> Package:
    """Into the depot and into the indexes, with its patches. Conflict when it cannot be; NotPermitted by the
    rule of four eyes.
    """
    found = harvests_service.get(archive, harvest)
    HARVEST.after(found.state, "accept", f"Harvest {found.id}")
    if archive.config.review.four_eyes and not is_automatic:
        _ask_for_other_eyes(archive, found, by or archive.agent)
    _record(archive, found, Decision.ACCEPT, words, by=by, state=HarvestState.KEPT, is_automatic=is_automatic)
    kept = deposit.keep(archive, found, watch=watch)
    indexer.index_harvest(archive, found.id, watch=watch)
    for patch in harvest_check.patches_of(archive, found):
        if patch.state is HarvestState.FINISHED:
            deposit.keep(archive, patch, watch=watch)
        indexer.index_harvest(archive, patch.id, watch=watch)
    return kept


def reject(archive: Archive, harvest: str, *, by: str = "", words: str) -> Harvest:
    """Not into the depot, and never shown. InputError without a reason."""
    return _decide(archive, harvest, Decision.REJECT, words, by=by)


def reopen(archive: Archive, harvest: str, *, by: str = "", words: str) -> Harvest:
    """Take a rejection back: it waits for review again."""
    return _decide(archive, harvest, Decision.REOPEN, words, by=by)


def annotate(archive: Archive, harvest: str, *, by: str = "", words: str) -> Harvest:
    """Say something about it; whatever its state."""
    found = harvests_service.get(archive, harvest)
    if not words.strip():
        raise InputError(said("note_needs_words", "The note is empty. Write a text."))
    _record(archive, found, Decision.ANNOTATE, words, by=by, state=found.state)
    return found


def patch(archive: Archive, harvest: str, *, watch: Watch = unwatched) -> patches_service.Patched:
    """Harvest what is missing. The patch of a harvest that is not kept yet waits with it for the decision."""
    found = harvests_service.get(archive, harvest)
    is_kept = found.state is HarvestState.KEPT
    return patches_service.patch(archive, harvest, deposit=is_kept, index=is_kept, watch=watch)


def _decide(archive: Archive, harvest: str, decision: Decision, words: str, *, by: str) -> Harvest:
    found = harvests_service.get(archive, harvest)
    state = HARVEST.after(found.state, decision.value, f"Harvest {found.id}")
    if not words.strip():
        raise InputError(
            said("reason_missing", "The reason is missing. Give one; it is kept with the harvest.")
        )
    with harvests_service.locked(harvests_service.folder_of(archive, found)):
        _record(archive, found, decision, words, by=by, state=state)
        with archive.database.transaction() as connection:
            runs.move(connection, found.id, state, reason=cut(words, LONGEST_WORDS))
            for patch in runs.of_target_any(connection, found.target, HarvestKind.PATCH):
                if patch.settings.get("patch_of") == found.id and patch.state is found.state:
                    runs.move(
                        connection,
                        patch.id,
                        state,
                        reason=said("with_harvest", "together with {harvest}", harvest=found.id),
                    )
    return harvests_service.get(archive, found.id)


def _record(
    archive: Archive,
    harvest: Harvest,
    decision: Decision,
    words: str,
    *,
    by: str,
    state: HarvestState,
    is_automatic: bool = False,
) -> None:
    now, agent = archive.clock(), by or archive.agent
    told = cut(words, LONGEST_WORDS)
    verb = {
        Decision.ACCEPT: "accepted",
        Decision.REJECT: "rejected",
        Decision.REOPEN: "reopened",
        Decision.ANNOTATE: "annotated",
    }[decision]
    is_note = decision is Decision.ANNOTATE
    detail = (
        difference({}, {"note": told})
        if is_note
        else difference({"state": harvest.state.value}, {"state": state.value})
    )
    event = Event(
        at=now,
        agent="rules of acceptance" if is_automatic else agent,
        action=verb,
        subject_kind="harvest",
        subject=harvest.id,
        outcome=Outcome.SUCCESS if decision is not Decision.REJECT else Outcome.WARNING,
        message=told,
        detail=detail,
    )
    with archive.database.transaction() as connection:
        review = Review(
            harvest=harvest.id,
            decision=decision,
            words=told,
            by=event.agent,
            at=now,
            is_automatic=is_automatic,
        )
        reviews.add(connection, review)
        append(connection, event)


def _ask_for_other_eyes(archive: Archive, harvest: Harvest, by: str) -> None:
    with archive.database.reading() as connection:
        starters = {
            event.agent for event in iter_of(connection, "harvest", harvest.id) if event.action == "started"
        }
        plan = schedules.find(connection, harvest.target)
    if by in starters or (plan is not None and plan.changed_by == by):
        raise NotPermitted(
            f"{by} planned or started {harvest.id}; somebody else has to accept it ([review] four_eyes)."
        )


def _compared(archive: Archive, harvest: Harvest) -> Compared | None:
    """By what the check told: it knows the harvest it compared with, whatever was decided about that one
    since.
    """
    with archive.database.reading() as connection:
        found = records.by_code(connection, harvest.id, code="quality.since-before", limit=1)
        facts = found[0][1].facts if found else {}
        if not runs.exists(connection, HarvestId(facts.get("before", ""))):
            return None
        before = runs.get(connection, HarvestId(facts["before"]))
    added, gone, changed, same = (int(facts.get(name, 0)) for name in ("new", "gone", "changed", "same"))
    return Compared(before=before, added=added, gone=gone, changed=changed, same=same)


def _figures(harvest: Harvest, not_valid: int) -> HarvestFigures:
    return HarvestFigures(
        documents=harvest.counts.get("fetched", 0),
        size_bytes=harvest.counts.get("bytes", 0),
        not_valid=not_valid,
    )


def oldest_waiting(archive: Archive) -> datetime | None:
    """Since when the longest waiting harvest waits for a reviewer."""
    with archive.database.reading() as connection:
        return runs.oldest_in(connection, HarvestState.FINISHED)
