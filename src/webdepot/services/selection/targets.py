"""Which sites, and may we? Nominating, judging, deciding; and the gate that every harvest passes (law: one
gate decides whether a target may be harvested).

Every step is a row of `selection.states.TARGET`; each leaves an event with what was before and after, and who
did it. `by` is the person who acts; empty means the person at the command line or the program itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date

from sqlalchemy import Connection

from webdepot.accounts import Person
from webdepot.archive import Archive
from webdepot.errors import InputError, NotFound, NotPermitted
from webdepot.model import EVERYTHING, Answer, Purpose, Target, TargetId, Verdict
from webdepot.provenance import Event, append, difference, iter_of
from webdepot.reasons import Reason, said
from webdepot.selection import criteria, grounds, letters, permission, targets
from webdepot.selection.criteria import AnswerKind, Criterion, Judgement
from webdepot.selection.permission import Ground, PermissionBasis
from webdepot.selection.states import TARGET, TargetState
from webdepot.selection.targets import (
    LONGEST_NAME,
    LONGEST_NOTE,
    Dossier,
    KnownTarget,
    Nomination,
    Origin,
    Strategy,
    TargetFilter,
    TargetPage,
)
from webdepot.url import Url, from_typed, host_of

MOST_SEEDS = 200
NEEDS_REASON = frozenset({"put off", "reject", "reopen", "end"})
DECISIONS = ("nominate", "select", "put off", "reject", "reopen", "end")
"""Acts that a person takes on the page of a target; the others follow from letters, grounds and answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriteriaResult:
    """A target's criteria with the answers given, and what they come to."""

    asked: Sequence[Criterion]
    given: Mapping[str, Judgement]
    verdict: Verdict
    points: float
    points_needed: float


# --- naming sites ---


def nominate(archive: Archive, seeds: Sequence[Url], *, collection: str, name: str = "") -> Target:
    """The target of these seeds; a new one is registered with an event."""
    nomination = Nomination(seeds=tuple(seeds), name=name or host_of(seeds[0]), collection=collection)
    dossier, _ = enter(archive, nomination)
    return dossier.target


def enter(archive: Archive, nomination: Nomination, *, by: str = "") -> tuple[Dossier, bool]:
    """A nomination as a target, and whether it is new; a known site in any spelling is found again."""
    with archive.database.transaction() as connection:
        return enter_in(connection, archive, nomination, by=by)


def enter_in(
    connection: Connection, archive: Archive, nomination: Nomination, *, by: str = ""
) -> tuple[Dossier, bool]:
    """As `enter`, in the caller's transaction."""
    now = archive.clock()
    dossier, is_new = targets.nominate(connection, nomination, now=now)
    if is_new:
        action = "suggested" if dossier.state is TargetState.SUGGESTED else "nominated"
        detail = difference(
            {},
            {
                "state": dossier.state.value,
                "seeds": list(nomination.seeds),
                "origin": nomination.origin.value,
            },
        )
        append(
            connection,
            event(archive, dossier, action, by=by or nomination.by, message=dossier.name, detail=detail),
        )
    return dossier, is_new


def suggest(
    archive: Archive, typed: str, *, name: str = "", reason: str = "", by: str = "", mail: str = ""
) -> tuple[Dossier, bool]:
    """A site that somebody named in the public form, and whether it is new. InputError when the address is
    none.
    """
    url = public_address(typed)
    known = find_known(archive, url)
    if known is not None and known.is_same:
        return known.dossier, False
    note = "\n".join(filter(None, [reason.strip()[:2000], f"Mail: {mail}" if mail else ""]))
    label = " ".join(name.split())[:LONGEST_NAME]
    who = " ".join(by.split())[:200]
    nomination = Nomination(
        seeds=(url,),
        name=label or host_of(url),
        collection=EVERYTHING,
        origin=Origin.PUBLIC,
        by=who,
        note=note,
    )
    return enter(archive, nomination, by=f"public form{f' ({who})' if who else ''}")


def public_address(typed: str) -> Url:
    """An address as people write it; only sites with a name that can be asked on the web."""
    url = from_typed(typed)
    if not url.startswith(("http://", "https://")) or "@" in url.partition("://")[2].partition("/")[0]:
        raise InputError(
            said(
                "no_site_address",
                "{typed} is not the address of a website. Write it like https://www.example.org/",
                typed=repr(typed[:100]),
            )
        )
    if "." not in host_of(url).partition(":")[0] and not host_of(url).startswith(("localhost", "[")):
        raise InputError(
            said(
                "no_full_host",
                "{typed} does not contain a full host name. Write it like https://www.example.org/",
                typed=repr(typed[:100]),
            )
        )
    return url


def draft(
    typed: Iterable[str],
    *,
    name: str = "",
    collection: str = EVERYTHING,
    purpose: str = Purpose.HERITAGE,
    strategy: str = Strategy.SELECTIVE,
    origin: Origin = Origin.STAFF,
    by: str = "",
    note: str = "",
) -> Nomination:
    """A nomination from what a person filled in; InputError names the part that is wrong."""
    seeds = tuple(dict.fromkeys(public_address(one) for one in typed if one.strip()))
    if not 1 <= len(seeds) <= MOST_SEEDS:
        raise InputError(
            said("needs_seeds", "A target needs 1 to {most} seeds (start addresses).", most=MOST_SEEDS)
        )
    label = " ".join(name.split())
    if len(label) > LONGEST_NAME or len(note) > LONGEST_NOTE:
        raise InputError(
            said(
                "name_too_long",
                "A name can have at most {name} characters, a note at most {note}.",
                name=LONGEST_NAME,
                note=LONGEST_NOTE,
            )
        )
    if (
        not collection.replace("-", "").replace("_", "").isalnum()
        or not collection.isascii()
        or len(collection) > 60
    ):
        raise InputError(
            said(
                "no_collection_name",
                "{typed} is not a valid name for a collection. Use letters, digits, - and _.",
                typed=repr(collection[:60]),
            )
        )
    try:
        purposes, strategies = Purpose(purpose), Strategy(strategy)
    except ValueError:
        raise InputError(
            f"The purpose is one of {', '.join(Purpose)}; the strategy one of {', '.join(Strategy)}."
        ) from None
    return Nomination(
        seeds=seeds,
        name=label or host_of(seeds[0]),
        collection=collection,
        purpose=purposes,
        strategy=strategies,
        origin=origin,
        by=by[:200],
        note=note.strip(),
    )


def find_known(archive: Archive, url: Url) -> KnownTarget | None:
    """The target that an address belongs to, in whatever spelling."""
    with archive.database.reading() as connection:
        return targets.find_known(connection, url)


# --- looking ---


def listed(archive: Archive, asked: TargetFilter) -> TargetPage:
    with archive.database.reading() as connection:
        return targets.listing(connection, asked)


def counts(archive: Archive) -> Mapping[TargetState, int]:
    with archive.database.reading() as connection:
        return targets.counts(connection)


def get(archive: Archive, target: int) -> Dossier:
    with archive.database.reading() as connection:
        return targets.dossier_of(connection, target)


def find(archive: Archive, text: str) -> Dossier:
    """The target that a person means by a number, a name or an address; NotFound says how to list them."""
    with archive.database.reading() as connection:
        found = targets.find_named(connection, text)
        if found is None:
            raise NotFound(f"There is no target {text[:100]!r}. List them: webdepot target list")
        return targets.dossier_of(connection, found.id)


def history(archive: Archive, target: TargetId) -> Sequence[Event]:
    """Everything that was done about a target, the newest first."""
    with archive.database.reading() as connection:
        return list(iter_of(connection, "target", str(target)))[::-1]


# --- judging and deciding ---


def criteria_of(archive: Archive) -> Sequence[Criterion]:
    with archive.database.reading() as connection:
        return criteria.every(connection)


def set_criteria(archive: Archive, wanted: Sequence[Criterion], *, by: str = "") -> None:
    """Another list of criteria from now on; what was answered before stays readable."""
    with archive.database.transaction() as connection:
        before = criteria.every(connection)
        criteria.replace_all(connection, wanted)
        detail = difference(*({one.code: _told(one) for one in several} for several in (before, wanted)))
        append(
            connection,
            Event(
                at=archive.clock(),
                agent=by or archive.agent,
                action="changed",
                subject_kind="criteria",
                subject="criteria",
                detail=detail,
            ),
        )


def _told(criterion: Criterion) -> dict[str, object]:
    return {**asdict(criterion), "kind": criterion.kind.value, "roles": sorted(criterion.roles)}


def judged(archive: Archive, target: TargetId) -> CriteriaResult:
    with archive.database.reading() as connection:
        return _judged(connection, archive, target)


def _judged(connection: Connection, archive: Archive, target: TargetId) -> CriteriaResult:
    asked, given = criteria.every(connection), criteria.given_for(connection, target)
    needed = archive.config.selection.points_needed
    by_code = {one.criterion: one for one in given}
    points = sum(
        one.weight * by_code[one.code].value for one in asked if not one.required and one.code in by_code
    )
    verdict = criteria.judge(given, asked, points_needed=needed)
    return CriteriaResult(asked=asked, given=by_code, verdict=verdict, points=points, points_needed=needed)


def answer(
    archive: Archive, target: TargetId, given: Sequence[Judgement], *, person: Person | None = None
) -> CriteriaResult:
    """Keep answers to criteria, each with its reason; with all that is needed answered the target is judged.

    `person` None is whoever works on the archive's own machine. NotPermitted when a role may not answer a
    criterion.
    """
    now, agent = archive.clock(), person.name if person else archive.agent
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        TARGET.after(dossier.state, "judge", targets.named(dossier))
        asked = {one.code: one for one in criteria.every(connection)}
        before = criteria.given_for(connection, target)
        for one in given:
            criterion = asked.get(one.criterion)
            if criterion is None:
                raise InputError(f"There is no criterion {one.criterion[:60]!r}. Known: {', '.join(asked)}.")
            if person is not None and not person.roles & criterion.roles:
                raise NotPermitted(
                    f"Only {', '.join(sorted(criterion.roles))} may answer {criterion.code!r}."
                )
            kept = _checked(one, criterion)
            criteria.keep(
                connection,
                target,
                Judgement(
                    criterion=one.criterion,
                    value=kept.value,
                    words=kept.words,
                    reason=kept.reason,
                    question=criterion.question,
                    agent=agent,
                    at=now,
                ),
            )
        result = _judged(connection, archive, target)
        detail = {
            "before": {one.criterion: one.words or one.value for one in before},
            "after": {code: one.words or one.value for code, one in result.given.items()},
        }
        append(
            connection,
            event(
                archive, dossier, "answered criteria", by=agent, message=result.verdict.reason, detail=detail
            ),
        )
        if result.verdict.answer is not Answer.PASS:
            targets.keep_verdict(
                connection, target, "belongs in the collection", result.verdict, agent=agent, now=now
            )
            if dossier.state is not TargetState.JUDGED:
                step(connection, archive, dossier, "judge", by=agent, reason=_judgement(result.verdict))
    return result


def _judgement(verdict: Verdict) -> Reason:
    key = "judged_accept" if verdict else "judged_reject"
    return said(key, f"{verdict.answer.value}: {{reason}}", reason=verdict.reason)


def _checked(given: Judgement, criterion: Criterion) -> Judgement:
    reason = given.reason.strip()
    if not reason or len(reason) > LONGEST_NOTE:
        raise InputError(
            said(
                "answer_needs_reason",
                "The answer to {code} needs a reason. Write one.",
                code=repr(criterion.code),
            )
        )
    if criterion.kind is AnswerKind.TEXT and not given.words.strip():
        raise InputError(
            said("answered_in_words", "The answer to {code} must be a text.", code=repr(criterion.code))
        )
    if not 0 <= given.value <= 1:
        raise InputError(f"The answer to {criterion.code!r} lies between no (0) and yes (1).")
    value = 0.0 if criterion.kind is AnswerKind.TEXT else given.value
    return Judgement(
        criterion=given.criterion, value=value, words=given.words.strip()[:LONGEST_NOTE], reason=reason
    )


def decide(
    archive: Archive,
    target: TargetId,
    act: str,
    *,
    by: str = "",
    reason: str = "",
    look_again_on: date | None = None,
) -> Dossier:
    """Take up, select, put off, reject, reopen or end a target; Conflict says why it is not possible,
    InputError what is missing.
    """
    if act not in DECISIONS:
        raise InputError(f"{act[:40]!r} is no decision about a target. Known: {', '.join(DECISIONS)}.")
    if act in NEEDS_REASON and not reason.strip():
        raise InputError(said("say_why_act", "Give a reason: the step {act} needs one.", act=act))
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        return step(
            connection,
            archive,
            dossier,
            act,
            by=by,
            reason=reason.strip(),
            look_again_on=look_again_on if act == "put off" else None,
        )


def step(
    connection: Connection,
    archive: Archive,
    dossier: Dossier,
    act: str,
    *,
    by: str = "",
    reason: str = "",
    look_again_on: date | None = None,
) -> Dossier:
    """One step on the path with its event, in the caller's transaction."""
    moved = targets.move(
        connection, dossier, act, reason=reason, now=archive.clock(), look_again_on=look_again_on
    )
    detail = {"before": {"state": dossier.state.value}, "after": {"state": moved.state.value}, "act": act}
    append(connection, event(archive, moved, moved.state.value, by=by, message=reason, detail=detail))
    return moved


def describe(
    archive: Archive,
    target: TargetId,
    *,
    name: str,
    collection: str,
    purpose: str,
    strategy: str,
    note: str,
    by: str = "",
) -> Dossier:
    """Other words about a target; its addresses stay, for they are what it is."""
    with archive.database.transaction() as connection:
        before = targets.dossier_of(connection, target)
        new = draft(
            before.target.seeds,
            name=name,
            collection=collection,
            purpose=purpose,
            strategy=strategy,
            note=note,
        )
        values = {
            "name": new.name,
            "collection": new.collection,
            "purpose": new.purpose.value,
            "strategy": new.strategy.value,
            "note": new.note,
        }
        after = targets.change(connection, target, values)
        old = {
            "name": before.name,
            "collection": before.target.collection,
            "purpose": before.target.purpose.value,
            "strategy": before.strategy.value,
            "note": before.note,
        }
        changed = [field for field in values if values[field] != old[field]]
        if changed:
            detail = {
                "before": {field: old[field] for field in changed},
                "after": {field: values[field] for field in changed},
            }
            append(
                connection, event(archive, after, "changed", by=by, message=", ".join(changed), detail=detail)
            )
    return after


# --- the gate ---


def may_harvest(archive: Archive, target: TargetId, extra: Sequence[PermissionBasis] = ()) -> Verdict:
    """May this target be harvested now, and if not, what is missing. `extra` grounds count for this question
    alone.
    """
    with archive.database.reading() as connection:
        return _gate(connection, target, extra, archive.clock().date())


def _gate(connection: Connection, target: TargetId, extra: Sequence[PermissionBasis], today: date) -> Verdict:
    dossier = targets.dossier_of(connection, target)
    bases = [kept.basis for kept in grounds.holding(connection, target)]
    return permission.gate(dossier.state, [*bases, *extra], letters.notices(connection, target), today)


def admit(archive: Archive, target: Target, bases: Sequence[PermissionBasis] = ()) -> None:
    """Ask the gate and keep its verdict; NotPermitted says what is missing."""
    now = archive.clock()
    with archive.database.transaction() as connection:
        verdict = _gate(connection, target.id, bases, now.date())
        targets.keep_verdict(connection, target.id, "may harvest", verdict, agent=archive.agent, now=now)
    if not verdict:
        raise NotPermitted(refusal(target.name, verdict))


def refuse_if_refused(archive: Archive, target: TargetId) -> None:
    """NotPermitted when the owner refused since a harvest was begun: what was stopped is not resumed."""
    verdict = may_harvest(archive, target, [operators_decision(archive)])
    if verdict.rule == Ground.REFUSAL.value:
        raise NotPermitted(refusal(f"Target {target}", verdict))


def refusal(name: str, verdict: Verdict) -> Reason:
    """The words of the gate when it says no."""
    words = "{name} may not be harvested: {reason} ({rule})."
    return said("may_not_be_harvested", words, name=name, reason=verdict.reason, rule=verdict.rule)


def operators_decision(archive: Archive) -> PermissionBasis:
    """The ground of `webdepot archive`: whoever typed the command answers for it, and the record says so."""
    return PermissionBasis(
        ground=Ground.OPERATOR,
        since=archive.clock().date(),
        reason=said("operator", "requested on the command line by {agent}", agent=archive.agent),
    )


def event(
    archive: Archive,
    dossier: Dossier,
    action: str,
    *,
    by: str = "",
    message: str = "",
    detail: Mapping[str, object] | None = None,
) -> Event:
    return Event(
        at=archive.clock(),
        agent=(by or archive.agent)[:200],
        action=action[:60],
        subject_kind="target",
        subject=str(dossier.id),
        message=message,
        detail=detail or {},
    )
