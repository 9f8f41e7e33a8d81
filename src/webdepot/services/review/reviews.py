"""Review: a finished harvest is accepted and published, or rejected with a reason.

1. `examine`: every file is identified and the harvest is checked; nothing of it is public yet.
2. `settle`: rules accept it within their limits, or it waits for a person.
3. `accept` puts it and its patches into the depot and the indexes. `reject` leaves it in its working folder,
   not shown to anyone; `reopen` reverses that. `annotate` adds a note at any time.

Each decision is a row of `reviews`, an event with before and after, and a step of
`harvest.harvest_rows.HARVEST`. It is also in the package, because the package contains the events.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import ColumnElement

from webdepot.archive import Archive
from webdepot.errors import InputError, NotPermitted
from webdepot.exchange import webhooks
from webdepot.exchange.webhooks import HookEvent
from webdepot.formats import report
from webdepot.formats.report import FormatShare, HarvestTable
from webdepot.harvest import harvest_rows
from webdepot.harvest.harvest_rows import HARVEST, HarvestFilter, HarvestPage
from webdepot.harvest.tables import harvests
from webdepot.model import Answer, Harvest, HarvestId, HarvestKind, HarvestState, Package, Verdict
from webdepot.provenance import Outcome, append, difference, iter_of
from webdepot.quality import acceptance, finding_rows, reviews, screenshots
from webdepot.quality.acceptance import AcceptanceLimits, HarvestFigures
from webdepot.quality.reviews import Review, ReviewDecision
from webdepot.quality.screenshots import Screenshot
from webdepot.reasons import cut, said
from webdepot.selection import plans, targets
from webdepot.services.access.browse import page_pictures
from webdepot.services.depot import deposit
from webdepot.services.harvest import harvests as harvests_service
from webdepot.services.index import indexer, visible_harvests
from webdepot.services.intake import ingest
from webdepot.services.progress import Watch, unwatched
from webdepot.services.quality import harvest_check, identification
from webdepot.services.quality.harvest_check import HarvestCheck
from webdepot.services.review import patches as patches_service
from webdepot.services.review import replay_pictures

LONGEST_TEXT = 5000
MOST_SCREENSHOTS = 50
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
        *("types-differ", "soft-missing", "page-login", "page-riddle", "browser-failed", "browser-stopped"),
        "digest-differs",
        *(
            "path-repeats",
            "path-long",
            "says-missing",
            "trap-stopped",
            "maze-stopped",
            "left-out",
            "log-damaged",
        ),
    ),
    "difference": ("file-new", "file-gone", "file-changed", "since-before", "sub-domain"),
}
"""Findings by the reviewer's question: is something missing, are links broken, is it unusual, what is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestComparison:
    """A harvest compared with the last one of its target."""

    before: Harvest
    added: int
    gone: int
    changed: int
    same: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDossier:
    """Everything that a reviewer needs about a harvest."""

    harvest: Harvest
    target_name: str
    checked: HarvestCheck
    is_checked: bool
    """Whether the check has been done; it is not while files are still identified."""
    groups: Mapping[str, Sequence[tuple[str, int]]]
    """Codes of the findings with their numbers, by group."""
    compared: HarvestComparison | None
    formats: HarvestTable
    shares: Sequence[FormatShare]
    not_valid: int
    missing: int
    """Addresses that a patch would fetch."""
    patches: Sequence[Harvest]
    reviews: Sequence[Review]
    is_busy: bool
    """A process is working on it: a patch, or the deposit."""
    by_rules: Verdict
    """Whether the rules would accept it."""


def list_harvests(archive: Archive, wanted: HarvestFilter) -> HarvestPage:
    """One page of harvests, filtered, sorted and counted in the database."""
    with archive.database.reading() as connection:
        return harvest_rows.list_page(connection, wanted)


def list_waiting(archive: Archive, wanted: HarvestFilter) -> HarvestPage:
    """One page of harvests that wait for a decision; not those whose check is not done yet."""
    return _list_finished(archive, wanted, finding_rows.is_checked(harvests.c.id))


def list_in_check(archive: Archive, wanted: HarvestFilter) -> HarvestPage:
    """One page of harvests that have ended and whose check is not done yet."""
    return _list_finished(archive, wanted, ~finding_rows.is_checked(harvests.c.id))


def _list_finished(archive: Archive, wanted: HarvestFilter, condition: ColumnElement[bool]) -> HarvestPage:
    with archive.database.reading() as connection:
        return harvest_rows.list_page(connection, replace(wanted, state=HarvestState.FINISHED), condition)


def verdicts_of(archive: Archive, harvests: Sequence[Harvest]) -> Mapping[HarvestId, Verdict]:
    """The verdict of the checks on each harvest that has one."""
    with archive.database.reading() as connection:
        return {
            each.id: verdict
            for each in harvests
            if (verdict := finding_rows.find_verdict(connection, each.id)) is not None
        }


def dossier(archive: Archive, number: str) -> ReviewDossier:
    """Everything that a reviewer needs about a harvest."""
    harvest = harvests_service.get(archive, number)
    checked = harvest_check.last_check(archive, harvest.id)
    with archive.database.reading() as connection:
        decided = reviews.of_harvest(connection, harvest.id)
        table, shares = report.of_harvest(connection, harvest.id), report.shares(connection, [harvest.id])
        name = targets.get(connection, harvest.target).name
        patches = [
            each
            for each in harvest_rows.of_target_any(connection, harvest.target, HarvestKind.PATCH)
            if harvest_rows.is_patch_of(each, harvest)
        ]
    codes = {code.removeprefix("quality."): count for code, count in checked.counts.items()}
    groups = {
        group: [(code, codes[code]) for code in known if codes.get(code)] for group, known in GROUPS.items()
    }
    return ReviewDossier(
        harvest=harvest,
        target_name=name,
        checked=checked,
        is_checked=checked.verdict is not harvest_check.NOT_CHECKED,
        groups=groups,
        compared=_compared(archive, harvest),
        formats=table,
        shares=shares,
        not_valid=sum(share.not_valid for share in shares),
        missing=len(patches_service.missing(archive, harvest)),
        patches=patches,
        reviews=decided,
        is_busy=any(harvests_service.is_locked(archive, each) for each in (harvest, *patches)),
        by_rules=judge_by_rules(archive, harvest),
    )


def possible_decisions(harvest: Harvest) -> list[str]:
    """Decisions that the state of a harvest allows."""
    return [
        decision
        for decision in (ReviewDecision.ACCEPT, ReviewDecision.REJECT, ReviewDecision.REOPEN)
        if HARVEST.allows(harvest.state, decision.value)
    ]


def busy(archive: Archive, harvests: Sequence[Harvest]) -> frozenset[HarvestId]:
    """Those of the harvests on which a process is working: a check, a patch or the deposit."""
    return frozenset(each.id for each in harvests if harvests_service.is_locked(archive, each))


def screenshot_pairs(archive: Archive, shown: ReviewDossier) -> list[tuple[Screenshot | None, Screenshot]]:
    """Screenshots of the pages of a harvest, each with that of the last harvest if there is one."""
    with archive.database.reading() as connection:
        now = screenshots.of_harvest(connection, shown.harvest.id, MOST_SCREENSHOTS)
        before = (
            screenshots.of_harvest(connection, shown.compared.before.id, MOST_SCREENSHOTS)
            if shown.compared and now
            else []
        )
    known = {shot.url: shot for shot in before}
    return [(known.get(shot.url), shot) for shot in now]


def read_screenshot(archive: Archive, number: int) -> tuple[str, bytes]:
    """Media type and bytes of a screenshot; NotFound if there is none or it is too large."""
    with archive.database.reading() as connection:
        shot = screenshots.get(connection, number)
    return shot.mime, page_pictures.read(archive, shot)


def examine(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> HarvestCheck:
    """Identify the files and check the harvest; steps that were done before are not repeated."""
    identification.identify(archive, harvest, watch=watch)
    harvest_check.note_screenshots(archive, harvest)
    checked = harvest_check.check(archive, harvest, watch=watch)
    replay_pictures.take_after_check(archive, harvest)
    return checked


def settle(archive: Archive, harvest: Harvest, *, watch: Watch = unwatched) -> Verdict:
    """Accept a finished, checked harvest by rules, or leave it for a reviewer; the verdict says why."""
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
        verdict = judge_by_rules(archive, harvest)
    if verdict:
        accept(archive, harvest.id, words=verdict.reason, is_automatic=True, watch=watch)
        return verdict
    data = {**webhooks.data_of(harvest), "verdict": verdict.answer.value, "why": str(verdict.reason)}
    with archive.database.transaction() as connection:
        webhooks.queue(connection, HookEvent.REVIEW_WAITING, harvest.id, data, now=archive.clock())
    return verdict


def judge_by_rules(archive: Archive, harvest: Harvest) -> Verdict:
    """Whether the rules accept a harvest, and why."""
    config = archive.config.review
    with archive.database.reading() as connection:
        verdict = finding_rows.find_verdict(connection, harvest.id)
        earlier = [
            each
            for each in harvest_rows.of_target(connection, harvest.target, HarvestKind.HARVEST)
            if each.state is HarvestState.KEPT
            and each.started_at < harvest.started_at
            and not harvest_rows.is_received(each)  # accepted by others, not by us
            and not harvest_rows.is_page(each)
        ]
        not_valid = sum(share.not_valid for share in report.shares(connection, [harvest.id]))
    return acceptance.by_rules(
        harvest_check.NOT_CHECKED if verdict is None else verdict,
        _figures(harvest, not_valid),
        _figures(earlier[0], 0) if earlier else None,
        len(earlier),
        AcceptanceLimits(
            after_accepted=config.after_accepted,
            documents_differ=config.documents_differ,
            bytes_differ=config.bytes_differ,
            not_valid=config.not_valid,
        ),
    )


def accept(
    archive: Archive,
    number: str,
    *,
    by: str = "",
    words: str = "",
    is_automatic: bool = False,
    watch: Watch = unwatched,
    since: datetime | None = None,
) -> Package:
    """Deposit and index a harvest with its patches. Conflict if its state does not allow it; NotPermitted by
    the four-eyes rule. If this person has accepted it `since` then, that was interrupted and is completed.
    """
    harvest = harvests_service.get(archive, number)
    if since is None or not _was_accepted(archive, harvest, by or archive.agent, since):
        check_acceptance(archive, number, by=by, is_automatic=is_automatic)
        _record(
            archive,
            harvest,
            ReviewDecision.ACCEPT,
            words,
            by=by,
            state=HarvestState.KEPT,
            is_automatic=is_automatic,
        )
    package = deposit.keep(archive, harvest, watch=watch)
    ingest.publish(archive, harvest.id, watch=watch)
    for patch in harvests_service.patches_of(archive, harvest):
        if patch.state is HarvestState.FINISHED:
            deposit.keep(archive, patch, watch=watch)
        ingest.publish(archive, patch.id, watch=watch)
    return package


def check_acceptance(archive: Archive, number: str, *, by: str = "", is_automatic: bool = False) -> None:
    """Conflict if the state of a harvest does not allow to accept it; NotPermitted by the four-eyes rule."""
    harvest = harvests_service.get(archive, number)
    HARVEST.after(harvest.state, "accept", f"Harvest {harvest.id}")
    if archive.config.review.four_eyes and not is_automatic:
        _require_other_person(archive, harvest, by or archive.agent)


def _was_accepted(archive: Archive, harvest: Harvest, by: str, since: datetime) -> bool:
    with archive.database.reading() as connection:
        return any(
            review.decision is ReviewDecision.ACCEPT and review.by == by and review.at >= since
            for review in reviews.of_harvest(connection, harvest.id)
        )


def reject(archive: Archive, number: str, *, by: str = "", words: str) -> Harvest:
    """Reject a harvest: it is not deposited and never shown. InputError without a reason."""
    return _decide(archive, number, ReviewDecision.REJECT, words, by=by)


def reopen(archive: Archive, number: str, *, by: str = "", words: str) -> Harvest:
    """Reverse a rejection: the harvest waits for review again."""
    return _decide(archive, number, ReviewDecision.REOPEN, words, by=by)


def annotate(archive: Archive, number: str, *, by: str = "", words: str) -> Harvest:
    """Add a note to a harvest, in any state."""
    harvest = harvests_service.get(archive, number)
    if not words.strip():
        raise InputError(said("note_needs_words", "The note is empty. Write a text."))
    _record(archive, harvest, ReviewDecision.ANNOTATE, words, by=by, state=harvest.state)
    return harvest


def _decide(archive: Archive, number: str, decision: ReviewDecision, words: str, *, by: str) -> Harvest:
    harvest = harvests_service.get(archive, number)
    state = HARVEST.after(harvest.state, decision.value, f"Harvest {harvest.id}")
    if not words.strip():
        raise InputError(
            said("reason_missing", "The reason is missing. Give one; it is kept with the harvest.")
        )
    with harvests_service.locked(harvests_service.folder_of(archive, harvest)):
        _record(archive, harvest, decision, words, by=by, state=state)
        moved = [harvest]
        reason = said("with_harvest", "together with {harvest}", harvest=harvest.id)
        with archive.database.transaction() as connection:
            harvest_rows.move(connection, harvest.id, state, reason=cut(words, LONGEST_TEXT))
            for patch in harvest_rows.of_target_any(connection, harvest.target, HarvestKind.PATCH):
                if harvest_rows.is_patch_of(patch, harvest) and patch.state is harvest.state:
                    harvest_rows.move(connection, patch.id, state, reason=reason)
                    moved.append(patch)
        if state is HarvestState.REJECTED:
            for each in moved:
                visible_harvests.hide(archive, each)
                indexer.forget_harvest(archive, each)
    return harvests_service.get(archive, harvest.id)


def _record(
    archive: Archive,
    harvest: Harvest,
    decision: ReviewDecision,
    words: str,
    *,
    by: str,
    state: HarvestState,
    is_automatic: bool = False,
) -> None:
    """Store a decision: the review and its event, in one transaction."""
    text = cut(words, LONGEST_TEXT)
    action = {
        ReviewDecision.ACCEPT: "accepted",
        ReviewDecision.REJECT: "rejected",
        ReviewDecision.REOPEN: "reopened",
        ReviewDecision.ANNOTATE: "annotated",
    }[decision]
    event = archive.event(
        action,
        "harvest",
        harvest.id,
        by="rules of acceptance" if is_automatic else by,
        outcome=Outcome.SUCCESS if decision is not ReviewDecision.REJECT else Outcome.WARNING,
        message=text,
        detail=difference({}, {"note": text})
        if decision is ReviewDecision.ANNOTATE
        else difference({"state": harvest.state.value}, {"state": state.value}),
    )
    review = Review(
        harvest=harvest.id,
        decision=decision,
        words=text,
        by=event.agent,
        at=event.at,
        is_automatic=is_automatic,
    )
    with archive.database.transaction() as connection:
        reviews.add(connection, review)
        append(connection, event)


def _require_other_person(archive: Archive, harvest: Harvest, by: str) -> None:
    with archive.database.reading() as connection:
        starters = {
            event.agent for event in iter_of(connection, "harvest", harvest.id) if event.action == "started"
        }
        plan = plans.find(connection, harvest.target)
    if by in starters or (plan is not None and plan.changed_by == by):
        raise NotPermitted(
            f"{by} planned or started {harvest.id}; another person must accept it ([review] four_eyes)."
        )


def _compared(archive: Archive, harvest: Harvest) -> HarvestComparison | None:
    """The comparison from the finding of the check, which names the harvest it compared with; that one may
    have been decided differently since.
    """
    with archive.database.reading() as connection:
        noted = finding_rows.by_code(connection, harvest.id, code="quality.since-before", limit=1)
        facts = noted[0][1].facts if noted else {}
        if not harvest_rows.exists(connection, HarvestId(facts.get("before", ""))):
            return None
        before = harvest_rows.get(connection, HarvestId(facts["before"]))
    added, gone, changed, same = (int(facts.get(name, 0)) for name in ("new", "gone", "changed", "same"))
    return HarvestComparison(before=before, added=added, gone=gone, changed=changed, same=same)


def _figures(harvest: Harvest, not_valid: int) -> HarvestFigures:
    return HarvestFigures(
        documents=harvest.counts.get("fetched", 0),
        size_bytes=harvest.counts.get("bytes", 0),
        not_valid=not_valid,
    )
