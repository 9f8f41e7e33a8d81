"""What follows from asking owners (mission K3): the opt-out term, replies, grounds, and what time brings.

    ask ──> queued ──deliver──> sent ──┬── answer: consent, refusal, conditions, undeliverable
                                       ├── reminder, once, while the term runs
                                       └── the day after the term: silence is consent

The term counts from the sending, so it is worked out when the mail server has taken the letter. A refusal
holds at once: running harvests of the target are stopped, and a rule of access closes everything below its
seeds. `tend` does what time asks for and may run as often as one likes: every step is taken once.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum

from sqlalchemy import Connection

from webdepot.access.policy import AccessPoint, RuleAnswer
from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.harvest import runs
from webdepot.harvest.control import OrderVerb
from webdepot.model import HarvestState, TargetId
from webdepot.provenance import append, difference
from webdepot.reasons import Reason, said
from webdepot.selection import grounds, letters, targets
from webdepot.selection.grounds import KeptGround
from webdepot.selection.letters import Letter
from webdepot.selection.permission import WITHOUT_LETTER, Basis, Ground
from webdepot.selection.states import TARGET, LetterState, TargetState
from webdepot.selection.targets import Dossier
from webdepot.selection.templates import LetterKind
from webdepot.services.access import rules
from webdepot.services.harvest import control
from webdepot.services.permission import letters as letters_service
from webdepot.services.selection import targets as targets_service
from webdepot.url import host_of

LONGEST_WORDS = 4000
REFUSED_TEXT = "The owner of this site does not want it to be shown."
LIMITED_TEXT = "The owner of this site lets it be read in the reading room only."
EMBARGO_TEXT = "The owner of this site lets it be read only after some time."
DARK_TEXT = "The owner of this site lets it be kept, but not shown."


class Reply(StrEnum):
    """What an owner answered."""

    CONSENT = "consent"
    CONDITIONS = "conditions"
    REFUSAL = "refusal"
    UNDELIVERABLE = "undeliverable"


class Showing(StrEnum):
    """Where an owner lets a site be read."""

    OPEN = "open"
    READING_ROOM = "reading room"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Under which an owner consents."""

    showing: Showing = Showing.OPEN
    embargo_days: int = 0
    until: date | None = None
    """Last day on which it may be harvested."""
    words: str = ""

    def as_dict(self) -> dict[str, object]:
        return {
            "showing": self.showing.value,
            "embargo_days": self.embargo_days,
            "until": self.until.isoformat() if self.until else "",
            "words": self.words,
        }


_CAME_BACK = said("letter_came_back", "the letter was returned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tended:
    """What time brought."""

    implied: int = 0
    ended: int = 0
    reminders: int = 0


# --- answers and grounds ---


def grounds_of(archive: Archive, target: TargetId) -> list[KeptGround]:
    with archive.database.reading() as connection:
        return grounds.every(connection, target)


def reply(
    archive: Archive,
    target: TargetId,
    answer: Reply,
    *,
    by: str = "",
    words: str = "",
    conditions: Conditions | None = None,
    letter: Letter | None = None,
) -> Dossier:
    """Record what an owner answered, to a letter or unasked. A refusal stops harvests and closes access at
    once.
    """
    told = words.strip()[:LONGEST_WORDS]
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        open_letters = [one for one in letters.of_target(connection, target) if one.kind is LetterKind.NOTICE]
        answered = letter or next(
            (one for one in open_letters if one.state in (LetterState.SENT, LetterState.SILENT)), None
        )
        match answer:
            case Reply.UNDELIVERABLE:
                moved = _returned(connection, archive, dossier, answered, by=by, words=told)
            case Reply.REFUSAL:
                moved = _refused(connection, archive, dossier, answered, by=by, words=told)
            case Reply.CONSENT | Reply.CONDITIONS:
                moved = _consented(
                    connection,
                    archive,
                    dossier,
                    answered,
                    conditions or Conditions(words=told),
                    by=by,
                    words=told,
                )
        _withdraw_waiting(connection, open_letters)
    if answer is Reply.REFUSAL:
        stop_harvests(archive, target, by=by)
    return moved


def _returned(
    connection: Connection, archive: Archive, dossier: Dossier, letter: Letter | None, *, by: str, words: str
) -> Dossier:
    if letter is None:
        raise Conflict(f"Target {dossier.id} ({dossier.name}): no letter is out that could have come back.")
    letters.move(connection, letter, "return", error=words or "came back")
    for kept in grounds.holding(connection, dossier.id):
        if kept.letter == letter.id and kept.basis.ground is Ground.IMPLIED_CONSENT:
            grounds.end(
                connection, kept.id, agent=by or archive.agent, reason=_CAME_BACK, now=archive.clock()
            )
    detail = {
        "letter": letter.id,
        **difference({"letter state": letter.state.value}, {"letter state": LetterState.UNDELIVERABLE.value}),
    }
    message = f"{letter.recipient} {words}".strip()
    append(
        connection,
        targets_service.event(archive, dossier, "undeliverable", by=by, message=message, detail=detail),
    )
    if dossier.state is TargetState.ASKED or (
        dossier.state is TargetState.CLEARED and not grounds.holding(connection, dossier.id)
    ):
        return targets_service.step(connection, archive, dossier, "lose ground", by=by, reason=_CAME_BACK)
    return dossier


def _refused(
    connection: Connection, archive: Archive, dossier: Dossier, letter: Letter | None, *, by: str, words: str
) -> Dossier:
    now = archive.clock()
    _answer_letter(connection, letter)
    _end_grounds(connection, archive, dossier, by=by, reason=said("refused", "refused"))
    made = _close(connection, archive, dossier, RuleAnswer.REFUSE, None, REFUSED_TEXT, by=by)
    basis = Basis(
        ground=Ground.REFUSAL,
        since=now.date(),
        reason=words or said("owner_refused_on", "the owner refused on {day}", day=now.date()),
    )
    letter_id = letter.id if letter else None
    grounds.add(
        connection, dossier.id, basis, agent=by or archive.agent, now=now, letter=letter_id, rules=made
    )
    return targets_service.step(connection, archive, dossier, "refuse", by=by, reason=basis.reason)


def _consented(
    connection: Connection,
    archive: Archive,
    dossier: Dossier,
    letter: Letter | None,
    conditions: Conditions,
    *,
    by: str,
    words: str,
    ground: Ground = Ground.CONSENT,
) -> Dossier:
    now = archive.clock()
    TARGET.after(dossier.state, "clear", targets.named(dossier))
    _answer_letter(connection, letter)
    _end_grounds(
        connection, archive, dossier, by=by, reason=said("followed_by", "replaced by {ground}", ground=ground)
    )
    made = _limit(connection, archive, dossier, conditions, by=by)
    basis = Basis(ground=ground, since=now.date(), until=conditions.until, reason=words or conditions.words)
    grounds.add(
        connection,
        dossier.id,
        basis,
        agent=by or archive.agent,
        now=now,
        letter=letter.id if letter else None,
        conditions=conditions.as_dict(),
        rules=made,
    )
    return targets_service.step(connection, archive, dossier, "clear", by=by, reason=_because(basis))


def _because(basis: Basis) -> Reason:
    if basis.reason:
        return said("ground_because", "{ground}: {reason}", ground=basis.ground, reason=basis.reason)
    return said("ground_alone", "{ground}", ground=basis.ground)


def record_ground(
    archive: Archive,
    target: TargetId,
    ground: Ground,
    *,
    by: str = "",
    reason: str,
    until: date | None = None,
) -> Dossier:
    """A ground that needs no letter; InputError without a reason. After a refusal only the owner's consent
    counts.
    """
    if ground not in WITHOUT_LETTER:
        raise InputError(f"{ground.value!r} is not recorded by hand. Known: {', '.join(WITHOUT_LETTER)}.")
    if not reason.strip():
        raise InputError(
            said(
                "say_where_ground",
                "State the source of the ground: the address of the licence, the letter or the law.",
            )
        )
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        if dossier.state is TargetState.REFUSED and ground is not Ground.CONSENT:
            raise Conflict(
                f"Target {dossier.id} ({dossier.name}): the owner refused; it can be harvested only after the owner consents."
            )
        conditions = Conditions(until=until)
        return _consented(
            connection,
            archive,
            dossier,
            None,
            conditions,
            by=by,
            words=reason.strip()[:LONGEST_WORDS],
            ground=ground,
        )


def withdraw_ground(archive: Archive, target: TargetId, number: int, *, by: str = "", reason: str) -> Dossier:
    """A ground that does not hold after all; without another one the target may not be harvested any more."""
    if not reason.strip():
        raise InputError(said("say_why_ground_fails", "Say why the ground is not valid."))
    with archive.database.transaction() as connection:
        dossier = targets.dossier_of(connection, target)
        kept = next((one for one in grounds.holding(connection, target) if one.id == number), None)
        if kept is None or kept.basis.ground is Ground.REFUSAL:
            raise NotFound(f"Target {target} has no ground {number} that could be withdrawn.")
        _end_ground(connection, archive, kept, by=by, reason=reason.strip()[:LONGEST_WORDS])
        message = f"{kept.basis.ground.value}: {reason}"
        append(
            connection,
            targets_service.event(
                archive, dossier, "withdrew a ground", by=by, message=message, detail=_ended(kept)
            ),
        )
        if dossier.state is TargetState.CLEARED and not grounds.holding(connection, target):
            return targets_service.step(connection, archive, dossier, "lose ground", by=by, reason=reason)
    return dossier


def _ended(kept: KeptGround) -> dict[str, dict[str, object]]:
    """The detail of a ground that holds no longer."""
    return difference(
        {
            "ground": kept.basis.ground.value,
            "since": kept.basis.since.isoformat(),
            "reason": kept.basis.reason,
        },
        {},
    )


def find_by_token(archive: Archive, token: str) -> tuple[Dossier, Letter] | None:
    """The target and letter behind the secret address in a letter."""
    with archive.database.reading() as connection:
        letter = letters.find_by_token(connection, token) if 0 < len(token) <= 100 else None
        if letter is None or letter.target is None or letter.sent_at is None:
            return None
        return targets.dossier_of(connection, letter.target), letter


def stop_harvests(archive: Archive, target: TargetId, *, by: str = "") -> list[str]:
    """Stop what runs for a target; numbers of the harvests that were told to."""
    with archive.database.reading() as connection:
        running = [one for one in runs.in_states(connection, [HarvestState.RUNNING]) if one.target == target]
    stopped: list[str] = []
    for harvest in running:
        with suppress(
            Conflict
        ):  # nobody works on it: it cannot go on by itself, and the gate refuses to resume it
            control.give(
                archive,
                harvest.id,
                OrderVerb.STOP,
                by=by or archive.agent,
                reason=said("owner_refused", "the owner refused"),
            )
            stopped.append(harvest.id)
    return stopped


def _answer_letter(connection: Connection, letter: Letter | None) -> None:
    if letter is not None and letter.state in (LetterState.SENT, LetterState.SILENT):
        letters.move(connection, letter, "answer")


def _withdraw_waiting(connection: Connection, open_letters: Sequence[Letter]) -> None:
    for one in open_letters:
        if one.state in (LetterState.QUEUED, LetterState.FAILED):
            letters.move(connection, one, "withdraw")


def _end_grounds(connection: Connection, archive: Archive, dossier: Dossier, *, by: str, reason: str) -> None:
    for kept in grounds.holding(connection, dossier.id):
        _end_ground(connection, archive, kept, by=by, reason=reason)


def _end_ground(connection: Connection, archive: Archive, kept: KeptGround, *, by: str, reason: str) -> None:
    """End it, and take back the rules of access that came with it."""
    grounds.end(connection, kept.id, agent=by or archive.agent, reason=reason, now=archive.clock())
    for number in kept.rules:
        with suppress(NotFound):  # somebody took it back by hand
            rules.remove(archive, number, by=by, connection=connection)


def _limit(
    connection: Connection, archive: Archive, dossier: Dossier, conditions: Conditions, *, by: str
) -> list[int]:
    """The rules of access that an owner's conditions ask for."""
    made: list[int] = []
    if conditions.showing is Showing.NOBODY:
        made += _close(connection, archive, dossier, RuleAnswer.REFUSE, None, DARK_TEXT, by=by)
    elif conditions.showing is Showing.READING_ROOM:
        for point in (AccessPoint.PUBLIC, AccessPoint.PARTNER):
            made += _close(connection, archive, dossier, RuleAnswer.REFUSE, point, LIMITED_TEXT, by=by)
    if conditions.embargo_days:
        days = conditions.embargo_days
        made += _close(
            connection, archive, dossier, RuleAnswer.REFUSE, None, EMBARGO_TEXT, by=by, embargo_days=days
        )
    return made


def _close(
    connection: Connection,
    archive: Archive,
    dossier: Dossier,
    answer: RuleAnswer,
    point: AccessPoint | None,
    text: str,
    *,
    by: str,
    embargo_days: int = 0,
) -> list[int]:
    made: list[int] = []
    for pattern in patterns_of(dossier):
        found = rules.add(
            archive,
            pattern,
            answer=answer,
            access_point=point,
            embargo_days=embargo_days,
            public_text=text,
            private_note=f"target {dossier.id}",
            reason="owner",
            by=by,
            connection=connection,
        )
        made += [rule.id for rule in found]
    return made


def patterns_of(dossier: Dossier) -> list[str]:
    """What belongs to a target, as patterns of `rules`: the host of a seed at its root, otherwise what
    begins like the seed.
    """
    made: list[str] = []
    for seed in dossier.target.seeds:
        host = host_of(seed)
        path = seed.partition("://")[2].removeprefix(host)
        if host:
            made.append(
                host
                if path in ("", "/")
                else f"{host}{path.rpartition('/')[0]}/*"
                if "?" not in path
                else f"{host}{path}"
            )
    return list(dict.fromkeys(made))


# --- what time asks for ---


def tend(archive: Archive, *, portal_url: str = "") -> Tended:
    """Terms that are over become implied consent, grounds past their last day end, reminders are written. As
    often as one likes.
    """
    return replace(settle(archive), reminders=letters_service.write_reminders(archive, portal_url=portal_url))


def settle(archive: Archive) -> Tended:
    """Terms and grounds that time has decided."""
    today = archive.clock().date()
    implied = ended = 0
    with archive.database.transaction() as connection:
        for letter in letters.past_term(connection, today):
            implied += _pass_in_silence(connection, archive, letter)
        for kept in grounds.past_their_day(connection, today):
            _end_ground(
                connection,
                archive,
                kept,
                by="",
                reason=said("last_day", "it was valid until {day}", day=kept.basis.until),
            )
            dossier = targets.dossier_of(connection, kept.target)
            append(
                connection,
                targets_service.event(
                    archive, dossier, "ended a ground", message=kept.basis.ground.value, detail=_ended(kept)
                ),
            )
            if dossier.state is TargetState.CLEARED and not grounds.holding(connection, kept.target):
                reason = said(
                    "ground_over", "{ground} ended on {day}", ground=kept.basis.ground, day=kept.basis.until
                )
                targets_service.step(connection, archive, dossier, "lose ground", reason=reason)
            ended += 1
    return Tended(implied=implied, ended=ended)


def _pass_in_silence(connection: Connection, archive: Archive, letter: Letter) -> int:
    letters.move(connection, letter, "pass in silence")
    if letter.target is None or letter.term_ends_on is None:
        return 0
    dossier = targets.dossier_of(connection, letter.target)
    if dossier.state is not TargetState.ASKED:
        return 0
    since = letter.term_ends_on + timedelta(days=1)
    reason = said(
        "no_answer", "no answer to {letter} by {day}", letter=letter.reference, day=letter.term_ends_on
    )
    basis = Basis(ground=Ground.IMPLIED_CONSENT, since=since, reason=reason)
    grounds.add(connection, dossier.id, basis, agent=archive.agent, now=archive.clock(), letter=letter.id)
    targets_service.step(connection, archive, dossier, "clear", reason=_because(basis))
    return 1
