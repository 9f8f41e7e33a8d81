"""Sending queued letters. Each is sent once: portals, schedulers and commands claim a letter before they send
it, and mark it as sent as soon as the mail server has accepted it.

If the server cannot be reached, the letter stays in the queue with the error; if the mailbox does not exist,
the letter is undeliverable and the target returns to the selection list. The deadline of a notice counts from
the day of sending.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from webdepot import mail
from webdepot.archive import Archive
from webdepot.errors import ConfigError, InputError, RemoteError, WebdepotError
from webdepot.mail import Message
from webdepot.model import TargetId
from webdepot.provenance import append, difference
from webdepot.reasons import said, together
from webdepot.selection import implied_consent, letter_rows, targets
from webdepot.selection.letter_rows import TOKEN_HIDDEN, Letter
from webdepot.selection.letter_templates import LetterKind
from webdepot.selection.states import TARGET, LetterState
from webdepot.services.permission import letters as letters_service
from webdepot.services.selection import targets as targets_service

BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryResult:
    sent: int
    returned: int
    failed: int
    error: str = ""
    """The last error of the mail server, if a letter failed."""


def deliver_if_configured(archive: Archive) -> int:
    """Send the queued letters if a mail server is configured; returns how many were sent."""
    return deliver(archive).sent if archive.config.mail.host else 0


def deliver(archive: Archive, *, limit: int = letters_service.MOST_LETTERS) -> DeliveryResult:
    """Send queued letters, oldest first, until none is left or the server fails; ConfigError if no mail
    server is configured.
    """
    _require_server(archive)
    sent = returned = failed = 0
    error = ""
    tried: set[int] = set()
    while sent + returned + failed < limit:
        with archive.database.reading() as connection:
            batch = [
                letter for letter in letter_rows.waiting(connection, limit=BATCH) if letter.id not in tried
            ]
        if not batch:
            break
        for letter in batch[: limit - sent - returned - failed]:
            tried.add(letter.id)
            outcome = _send_claimed(archive, letter)
            sent += outcome.state is LetterState.SENT
            returned += outcome.state is LetterState.UNDELIVERABLE
            if outcome.state is LetterState.FAILED and outcome.tries > letter.tries:
                failed, error = failed + 1, outcome.error
        if failed:
            break  # the server cannot be reached: leave the rest for the next delivery
    return DeliveryResult(sent=sent, returned=returned, failed=failed, error=error)


def deliver_for(archive: Archive, target: TargetId) -> Sequence[Letter]:
    """Send the queued letters of one target now; returns all its letters afterwards, newest first."""
    _require_server(archive)
    for letter in letters_service.letters_of(archive, target):
        if letter.state in (LetterState.QUEUED, LetterState.FAILED):
            _send_claimed(archive, letter)
    return letters_service.letters_of(archive, target)


def _require_server(archive: Archive) -> None:
    if not archive.config.mail.host:
        raise ConfigError(
            "No mail server is configured, so the letters stay in the queue. "
            "Set [mail] host and sender in webdepot.toml."
        )


def _send_claimed(archive: Archive, letter: Letter) -> Letter:
    """Send a letter unless another sender has it; return the letter as it is now."""
    with archive.database.transaction() as connection:
        is_ours = letter_rows.claim(connection, letter, now=archive.clock())
    return _send(archive, letter) if is_ours else letter


def _send(archive: Archive, letter: Letter) -> Letter:
    config, now = archive.config.mail, archive.clock()
    with archive.database.reading() as connection:
        rendered_subject, rendered_body = _texts(connection, archive, letter)
    message = Message(
        to=letter.recipient, subject=rendered_subject, text=rendered_body, language=letter.language
    )
    try:
        message_id = mail.send(config, message, now=now)
    except RemoteError as error:
        return _record(archive, letter, "fail", error=str(error), tries=letter.tries + 1)
    except InputError as error:
        return _record(archive, letter, "return", error=str(error), tries=letter.tries + 1)
    is_notice = letter.kind is LetterKind.NOTICE
    deadline = implied_consent.deadline_of(now.date(), letter.term_days) if is_notice else None
    days = archive.config.selection.reminder_days
    remind_on = now.date() + timedelta(days=days) if deadline and 0 < days < letter.term_days else None
    return _record(
        archive,
        letter,
        "send",
        message_id=message_id,
        subject=rendered_subject,
        body=_without_token(letter, rendered_body),
        sent_at=now,
        error="",
        term_ends_on=deadline.isoformat() if deadline else "",
        remind_on=remind_on.isoformat() if remind_on else "",
    )


def _texts(connection: Connection, archive: Archive, letter: Letter) -> tuple[str, str]:
    if letter.kind in (LetterKind.NOTICE, LetterKind.REMINDER):
        rendered = letters_service.render(connection, archive, letter)
        return rendered.subject, rendered.body
    return letter.subject, letter.body


def _without_token(letter: Letter, body: str) -> str:
    """The text for the history, without the token: only the owner may be able to answer."""
    if not letter.token_hash:
        return body
    token = letter.body.rpartition("/")[2]
    return body.replace(token, TOKEN_HIDDEN)


def _record(archive: Archive, letter: Letter, act: str, **values: object) -> Letter:
    """Record the new state of the letter and its target and the event, in one transaction."""
    action = {"send": "sent a letter", "fail": "could not send a letter", "return": "undeliverable"}[act]
    with archive.database.transaction() as connection:
        moved = letter_rows.move(connection, letter, act, **values)
        message = together(
            [
                said("letter_to", "{kind} to {recipient}", kind=letter.kind, recipient=letter.recipient),
                moved.error,
            ]
        )
        detail = {
            "letter": letter.id,
            **difference({"letter state": letter.state.value}, {"letter state": moved.state.value}),
        }
        kind, subject = ("case", letter.case) if letter.target is None else ("target", letter.target)
        append(
            connection,
            archive.event(action, kind, str(subject), by=letter.agent, message=message, detail=detail),
        )
        if letter.target is None:
            return moved
        dossier = targets.dossier_of(connection, letter.target)
        if act == "send" and letter.kind is LetterKind.NOTICE and TARGET.allows(dossier.state, "ask"):
            reason = said(
                "letter_out", "{letter}, deadline {day}", letter=moved.reference, day=moved.term_ends_on
            )
            targets_service.step(connection, archive, dossier, "ask", by=letter.agent, reason=reason)
    return moved


class LetterSender:
    """Sends letters in a thread of the portal, so that the person who asked for it can continue working."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self.error = ""

    def start(self, archive: Archive) -> None:
        if self.is_running():
            return
        self.error = ""
        self._thread = threading.Thread(target=self._run, args=(archive,), name="letters", daemon=True)
        self._thread.start()

    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self, archive: Archive) -> None:
        try:
            self.error = deliver(archive).error
        except (WebdepotError, OSError) as error:
            self.error = str(error)
