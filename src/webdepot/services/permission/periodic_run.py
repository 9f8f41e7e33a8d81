"""The periodic run: deadlines that have passed, grounds that have expired, and reminders.

It may run as often as needed: every step is taken once. What a passed deadline means is decided by
`selection.implied_consent.implied_consent`, which the gate calls too; the run only records it.
"""

from dataclasses import dataclass, replace

from sqlalchemy import Connection

from webdepot.archive import Archive
from webdepot.provenance import append
from webdepot.reasons import said
from webdepot.selection import grounds, implied_consent, letter_rows, targets
from webdepot.selection.grounds import KeptGround
from webdepot.selection.implied_consent import Notice
from webdepot.selection.letter_rows import Letter
from webdepot.selection.states import TargetState
from webdepot.services.permission import letters as letters_service
from webdepot.services.permission import owner_answers
from webdepot.services.selection import targets as targets_service


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineResult:
    """How many of each the periodic run processed."""

    implied: int = 0
    """Letters whose silence became consent."""
    ended: int = 0
    """Grounds that expired."""
    reminders: int = 0
    """Reminders written."""


def process_deadlines(archive: Archive, *, portal_url: str = "") -> DeadlineResult:
    """Record implied consent, end expired grounds and write reminders. May be repeated."""
    today = archive.clock().date()
    with archive.database.transaction() as connection:
        implied = sum(
            _pass_in_silence(connection, archive, letter)
            for letter in letter_rows.past_deadline(connection, today)
        )
        expired = grounds.expired(connection, today)
        for kept in expired:
            _end_expired(connection, archive, kept)
    reminders = letters_service.write_reminders(archive, portal_url=portal_url)
    return DeadlineResult(implied=implied, ended=len(expired), reminders=reminders)


def _pass_in_silence(connection: Connection, archive: Archive, letter: Letter) -> bool:
    """Close an unanswered letter and record the ground it gives; return whether it gave one."""
    if letter.target is None:
        letter_rows.move(connection, letter, "pass in silence")
        return False
    dossier = targets.dossier_of(connection, letter.target)
    notice = Notice(state=letter.state, term_ends_on=letter.term_ends_on)
    now = archive.clock()
    silence = implied_consent.implied_consent(dossier.state, notice, now.date())
    letter_rows.move(connection, letter, "pass in silence")
    if silence is None:
        return False
    reason = said(
        "no_answer", "no answer to {letter} by {day}", letter=letter.reference, day=letter.term_ends_on
    )
    basis = replace(silence, reason=reason)
    grounds.add(connection, dossier.id, basis, agent=archive.agent, now=now, letter=letter.id)
    targets_service.step(connection, archive, dossier, "clear", reason=owner_answers.ground_reason(basis))
    return True


def _end_expired(connection: Connection, archive: Archive, kept: KeptGround) -> None:
    ground, last_day = kept.basis.ground, kept.basis.until
    reason = said("last_day", "it was valid until {day}", day=last_day)
    owner_answers.end_ground(connection, archive, kept, by="", reason=reason)
    dossier = targets.dossier_of(connection, kept.target)
    append(
        connection,
        archive.event(
            "ended a ground",
            "target",
            str(dossier.id),
            message=ground.value,
            detail=owner_answers.ended_detail(kept),
        ),
    )
    if dossier.state is TargetState.CLEARED and not grounds.not_ended(connection, kept.target):
        reason = said("ground_over", "{ground} ended on {day}", ground=ground, day=last_day)
        targets_service.step(connection, archive, dossier, "lose ground", reason=reason)
