"""Owners' answers and other grounds: consent, refusal, conditions, and grounds that need no letter.

    ask ──> queued ──deliver──> sent ──┬── answer: consent, refusal, conditions, undeliverable
                                       ├── reminder, once, before the deadline
                                       └── the day after the deadline: silence is consent

Letters are written by `letters`, sent by `delivery`; deadlines and reminders are processed by `periodic_run`.
A refusal takes effect at once: running harvests of the target are stopped, and an access rule closes
everything below its seeds.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from sqlalchemy import Connection

from webdepot.access.policy import AccessPoint, RuleAnswer
from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.harvest import harvest_rows
from webdepot.harvest.order_file import OrderVerb
from webdepot.model import HarvestState, TargetId
from webdepot.provenance import append, difference
from webdepot.reasons import Reason, said
from webdepot.selection import grounds, letter_rows, targets
from webdepot.selection.grounds import KeptGround
from webdepot.selection.letter_rows import Letter
from webdepot.selection.letter_templates import LetterKind
from webdepot.selection.permission_basis import WITHOUT_LETTER, Ground, PermissionBasis
from webdepot.selection.states import TARGET, LetterState, TargetState
from webdepot.selection.targets import Dossier
from webdepot.services.access import rules
from webdepot.services.harvest import control
from webdepot.services.selection import targets as targets_service
from webdepot.url import host_of

LONGEST_TEXT = 4000
REFUSED_TEXT = "The owner of this site does not want it to be shown."
LIMITED_TEXT = "The owner of this site allows access in the reading room only."
EMBARGO_TEXT = "The owner of this site allows access only after some time."
DARK_TEXT = "The owner of this site allows it to be kept, but not shown."


class OwnerReply(StrEnum):
    """What an owner answered."""

    CONSENT = "consent"
    CONDITIONS = "conditions"
    REFUSAL = "refusal"
    UNDELIVERABLE = "undeliverable"


class Showing(StrEnum):
    """Where an owner allows a site to be viewed."""

    OPEN = "open"
    READING_ROOM = "reading room"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Conditions under which an owner consents."""

    showing: Showing = Showing.OPEN
    embargo_days: int = 0
    until: date | None = None
    """Last day on which it may be harvested."""
    words: str = ""
    """Anything else that the owner wrote."""

    def as_dict(self) -> dict[str, object]:
        return {
            "showing": self.showing.value,
            "embargo_days": self.embargo_days,
            "until": self.until.isoformat() if self.until else "",
            "words": self.words,
        }


_RETURNED = said("letter_came_back", "the letter was returned")


# --- answers ---


def reply(
    archive: Archive,
    target: TargetId,
    answer: OwnerReply,
    *,
    by: str = "",
    words: str = "",
    conditions: Conditions | None = None,
    letter: Letter | None = None,
) -> Dossier:
    """Record an owner's answer, to a letter or not. A refusal stops harvests and closes access at once."""
    text = words.strip()[:LONGEST_TEXT]
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        notices = [
            notice for notice in letter_rows.of_target(connection, target) if notice.kind is LetterKind.NOTICE
        ]
        answered = letter or next((notice for notice in notices if _can_be_answered(notice)), None)
        match answer:
            case OwnerReply.UNDELIVERABLE:
                moved = _record_return(connection, archive, dossier, answered, by=by, text=text)
            case OwnerReply.REFUSAL:
                moved = _record_refusal(connection, archive, dossier, answered, by=by, text=text)
            case OwnerReply.CONSENT | OwnerReply.CONDITIONS:
                moved = _record_consent(
                    connection,
                    archive,
                    dossier,
                    answered,
                    conditions or Conditions(words=text),
                    by=by,
                    text=text,
                )
        _withdraw_queued(connection, notices)
    if answer is OwnerReply.REFUSAL:
        stop_harvests(archive, target, by=by)
    return moved


def find_by_token(archive: Archive, token: str) -> tuple[Dossier, Letter] | None:
    """The target and letter that the secret address in a letter belongs to."""
    with archive.database.reading() as connection:
        letter = letter_rows.find_by_token(connection, token) if 0 < len(token) <= 100 else None
        if letter is None or letter.target is None or letter.sent_at is None:
            return None
        return targets.dossier_of(connection, letter.target), letter


def stop_harvests(archive: Archive, target: TargetId, *, by: str = "") -> list[str]:
    """Stop the running harvests of a target; returns the numbers of those that were ordered to stop."""
    with archive.database.reading() as connection:
        running = [
            harvest
            for harvest in harvest_rows.in_states(connection, [HarvestState.RUNNING])
            if harvest.target == target
        ]
    stopped: list[str] = []
    for harvest in running:
        # Conflict: no process works on it. It cannot continue on its own, and the gate refuses to resume it.
        with suppress(Conflict):
            reason = said("owner_refused", "the owner refused")
            control.give(archive, harvest.id, OrderVerb.STOP, by=by or archive.agent, reason=reason)
            stopped.append(harvest.id)
    return stopped


def _record_return(
    connection: Connection, archive: Archive, dossier: Dossier, letter: Letter | None, *, by: str, text: str
) -> Dossier:
    if letter is None:
        raise Conflict(
            f"Target {dossier.id} ({dossier.name}) has no sent letter that could have been returned."
        )
    letter_rows.move(connection, letter, "return", error=text or "came back")
    for kept in grounds.not_ended(connection, dossier.id):
        if kept.letter == letter.id and kept.basis.ground is Ground.IMPLIED_CONSENT:
            grounds.end(connection, kept.id, agent=by or archive.agent, reason=_RETURNED, now=archive.clock())
    detail = {
        "letter": letter.id,
        **difference({"letter state": letter.state.value}, {"letter state": LetterState.UNDELIVERABLE.value}),
    }
    message = f"{letter.recipient} {text}".strip()
    append(
        connection,
        archive.event("undeliverable", "target", str(dossier.id), by=by, message=message, detail=detail),
    )
    if dossier.state is TargetState.ASKED or (
        dossier.state is TargetState.CLEARED and not grounds.not_ended(connection, dossier.id)
    ):
        return targets_service.step(connection, archive, dossier, "lose ground", by=by, reason=_RETURNED)
    return dossier


def _record_refusal(
    connection: Connection, archive: Archive, dossier: Dossier, letter: Letter | None, *, by: str, text: str
) -> Dossier:
    now = archive.clock()
    _answer_letter(connection, letter)
    _end_grounds(connection, archive, dossier, by=by, reason=said("refused", "refused"))
    rule_numbers = _close(connection, archive, dossier, None, REFUSED_TEXT, by=by)
    basis = PermissionBasis(
        ground=Ground.REFUSAL,
        since=now.date(),
        reason=text or said("owner_refused_on", "the owner refused on {day}", day=now.date()),
    )
    letter_id = letter.id if letter else None
    grounds.add(
        connection,
        dossier.id,
        basis,
        agent=by or archive.agent,
        now=now,
        letter=letter_id,
        rules=rule_numbers,
    )
    return targets_service.step(connection, archive, dossier, "refuse", by=by, reason=basis.reason)


def _record_consent(
    connection: Connection,
    archive: Archive,
    dossier: Dossier,
    letter: Letter | None,
    conditions: Conditions,
    *,
    by: str,
    text: str,
    ground: Ground = Ground.CONSENT,
) -> Dossier:
    now = archive.clock()
    TARGET.after(dossier.state, "clear", targets.named(dossier))
    _answer_letter(connection, letter)
    _end_grounds(
        connection, archive, dossier, by=by, reason=said("followed_by", "replaced by {ground}", ground=ground)
    )
    rule_numbers = _limit_access(connection, archive, dossier, conditions, by=by)
    basis = PermissionBasis(
        ground=ground, since=now.date(), until=conditions.until, reason=text or conditions.words
    )
    grounds.add(
        connection,
        dossier.id,
        basis,
        agent=by or archive.agent,
        now=now,
        letter=letter.id if letter else None,
        conditions=conditions.as_dict(),
        rules=rule_numbers,
    )
    return targets_service.step(connection, archive, dossier, "clear", by=by, reason=ground_reason(basis))


def _can_be_answered(letter: Letter) -> bool:
    return letter.state in (LetterState.SENT, LetterState.SILENT)


def _answer_letter(connection: Connection, letter: Letter | None) -> None:
    if letter is not None and _can_be_answered(letter):
        letter_rows.move(connection, letter, "answer")


def _withdraw_queued(connection: Connection, notices: Sequence[Letter]) -> None:
    for notice in notices:
        if notice.state in (LetterState.QUEUED, LetterState.FAILED):
            letter_rows.move(connection, notice, "withdraw")


# --- grounds ---


def grounds_of(archive: Archive, target: TargetId) -> list[KeptGround]:
    with archive.database.reading() as connection:
        return grounds.every(connection, target)


def record_ground(
    archive: Archive,
    target: TargetId,
    ground: Ground,
    *,
    by: str = "",
    reason: str,
    until: date | None = None,
) -> Dossier:
    """Record a ground that needs no letter; InputError without a reason. After a refusal only the owner's
    consent counts; it is the answer to a letter, if one was sent.
    """
    if ground not in WITHOUT_LETTER:
        raise InputError(f"{ground.value!r} cannot be recorded by hand. Known: {', '.join(WITHOUT_LETTER)}.")
    if not reason.strip():
        raise InputError(
            said(
                "say_where_ground",
                "State the source of the ground: the address of the licence, the letter or the law.",
            )
        )
    conditions = Conditions(until=until)
    if ground is Ground.CONSENT:
        return reply(archive, target, OwnerReply.CONSENT, by=by, words=reason, conditions=conditions)
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        if dossier.state is TargetState.REFUSED:
            raise Conflict(
                f"Target {dossier.id} ({dossier.name}): the owner refused; "
                "it can be harvested only after the owner consents."
            )
        text = reason.strip()[:LONGEST_TEXT]
        return _record_consent(
            connection, archive, dossier, None, conditions, by=by, text=text, ground=ground
        )


def withdraw_ground(archive: Archive, target: TargetId, number: int, *, by: str = "", reason: str) -> Dossier:
    """End a ground that turned out not to be valid; without another one the target may no longer be
    harvested.
    """
    if not reason.strip():
        raise InputError(said("say_why_ground_fails", "Say why the ground is not valid."))
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        kept = next((each for each in grounds.not_ended(connection, target) if each.id == number), None)
        if kept is None or kept.basis.ground is Ground.REFUSAL:
            raise NotFound(f"Target {target} has no ground {number} that could be withdrawn.")
        end_ground(connection, archive, kept, by=by, reason=reason.strip()[:LONGEST_TEXT])
        message = f"{kept.basis.ground.value}: {reason}"
        detail = ended_detail(kept)
        append(
            connection,
            archive.event(
                "withdrew a ground", "target", str(dossier.id), by=by, message=message, detail=detail
            ),
        )
        if dossier.state is TargetState.CLEARED and not grounds.not_ended(connection, target):
            return targets_service.step(connection, archive, dossier, "lose ground", by=by, reason=reason)
    return dossier


def end_ground(connection: Connection, archive: Archive, kept: KeptGround, *, by: str, reason: str) -> None:
    """End a ground and remove the access rules that came with it."""
    grounds.end(connection, kept.id, agent=by or archive.agent, reason=reason, now=archive.clock())
    for number in kept.rules:
        with suppress(NotFound):  # somebody removed it by hand
            rules.remove(archive, number, by=by, connection=connection)


def ended_detail(kept: KeptGround) -> dict[str, dict[str, object]]:
    """The detail of the event for a ground that has ended."""
    return difference(
        {
            "ground": kept.basis.ground.value,
            "since": kept.basis.since.isoformat(),
            "reason": kept.basis.reason,
        },
        {},
    )


def ground_reason(basis: PermissionBasis) -> Reason:
    """Why a target is cleared: the ground, with its reason if it has one."""
    if basis.reason:
        return said("ground_because", "{ground}: {reason}", ground=basis.ground, reason=basis.reason)
    return said("ground_alone", "{ground}", ground=basis.ground)


def _end_grounds(connection: Connection, archive: Archive, dossier: Dossier, *, by: str, reason: str) -> None:
    for kept in grounds.not_ended(connection, dossier.id):
        end_ground(connection, archive, kept, by=by, reason=reason)


# --- access rules ---


def _limit_access(
    connection: Connection, archive: Archive, dossier: Dossier, conditions: Conditions, *, by: str
) -> list[int]:
    """Add the access rules that an owner's conditions ask for; returns their numbers."""
    numbers: list[int] = []
    if conditions.showing is Showing.NOBODY:
        numbers += _close(connection, archive, dossier, None, DARK_TEXT, by=by)
    elif conditions.showing is Showing.READING_ROOM:
        for point in (AccessPoint.PUBLIC, AccessPoint.PARTNER):
            numbers += _close(connection, archive, dossier, point, LIMITED_TEXT, by=by)
    if conditions.embargo_days:
        days = conditions.embargo_days
        numbers += _close(connection, archive, dossier, None, EMBARGO_TEXT, by=by, embargo_days=days)
    return numbers


def _close(
    connection: Connection,
    archive: Archive,
    dossier: Dossier,
    point: AccessPoint | None,
    text: str,
    *,
    by: str,
    embargo_days: int = 0,
) -> list[int]:
    numbers: list[int] = []
    for pattern in patterns_of(dossier):
        added = rules.add(
            archive,
            pattern,
            answer=RuleAnswer.REFUSE,
            access_point=point,
            embargo_days=embargo_days,
            public_text=text,
            private_note=f"target {dossier.id}",
            reason="owner",
            by=by,
            connection=connection,
        )
        numbers += [rule.id for rule in added]
    return numbers


def patterns_of(dossier: Dossier) -> list[str]:
    """The addresses of a target as patterns of access rules: the whole host for a seed at its root, otherwise
    everything in the folder of the seed; a seed with a query only itself.
    """
    patterns: list[str] = []
    for seed in dossier.target.seeds:
        host = host_of(seed)
        path = seed.partition("://")[2].removeprefix(host)
        if not host:
            continue
        if path in ("", "/"):
            patterns.append(host)
        elif "?" in path:
            patterns.append(f"{host}{path}")
        else:
            patterns.append(f"{host}{path.rpartition('/')[0]}/*")
    return list(dict.fromkeys(patterns))
