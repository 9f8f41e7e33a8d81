"""Sending the letters that wait. Each goes out at most once: it is marked as sent as soon as the server has
taken it.

A server that is away leaves the letter waiting, with what it said; a mailbox that does not exist makes it
undeliverable, and the target goes back on the list. The term of a notice begins on the day of the sending.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from webdepot import mail
from webdepot.archive import Archive
from webdepot.errors import ConfigError, InputError, RemoteError, WebdepotError
from webdepot.mail import Message
from webdepot.model import TargetId
from webdepot.provenance import Event, append, difference
from webdepot.reasons import said, together
from webdepot.selection import letters, targets
from webdepot.selection.letters import TOKEN_HIDDEN, Letter
from webdepot.selection.states import TARGET, LetterState
from webdepot.selection.templates import LetterKind
from webdepot.services.permission import letters as letters_service
from webdepot.services.selection import targets as targets_service

AT_ONCE = 500
_sending = threading.Lock()
"""One delivery at a time in a process: two would take the same letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    sent: int
    returned: int
    failed: int
    error: str = ""
    """What the mail server said last, where it failed."""


def deliver_if_configured(archive: Archive) -> int:
    """Send the queued letters if there is a mail server; how many were sent. Without one they stay queued."""
    return deliver(archive).sent if archive.config.mail.host else 0


def deliver(archive: Archive, *, limit: int = letters_service.MOST_LETTERS) -> Delivered:
    """Send what waits, oldest first, until nothing is left or the server fails; ConfigError when none is
    configured.
    """
    if not archive.config.mail.host:
        raise ConfigError(
            "No mail server is configured, so the letters wait. Set [mail] host and sender in webdepot.toml."
        )
    sent = returned = failed = 0
    error = ""
    with _sending:
        tried: set[int] = set()
        while sent + returned + failed < limit:
            with archive.database.reading() as connection:
                batch = [one for one in letters.waiting(connection, limit=AT_ONCE) if one.id not in tried]
            if not batch:
                break
            for letter in batch[: limit - sent - returned - failed]:
                tried.add(letter.id)
                outcome = _send(archive, letter)
                sent += outcome.state is LetterState.SENT
                returned += outcome.state is LetterState.UNDELIVERABLE
                if outcome.state is LetterState.FAILED:
                    failed, error = failed + 1, outcome.error
            if failed:
                break  # the server is away: the rest waits for the next time
    return Delivered(sent=sent, returned=returned, failed=failed, error=error)


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
    kept_body = _without_token(letter, rendered_body)
    ends = (
        letters_service.term_end(now.date(), letter.term_days) if letter.kind is LetterKind.NOTICE else None
    )
    days = archive.config.selection.reminder_days
    remind_on = now.date() + timedelta(days=days) if ends and days and days < letter.term_days else None
    return _record(
        archive,
        letter,
        "send",
        message_id=message_id,
        subject=rendered_subject,
        body=kept_body,
        sent_at=now,
        error="",
        term_ends_on=ends.isoformat() if ends else "",
        remind_on=remind_on.isoformat() if remind_on else "",
    )


def _texts(connection: Connection, archive: Archive, letter: Letter) -> tuple[str, str]:
    if letter.kind in (LetterKind.NOTICE, LetterKind.REMINDER):
        rendered = letters_service.render(connection, archive, letter)
        return rendered.subject, rendered.body
    return letter.subject, letter.body


def _without_token(letter: Letter, body: str) -> str:
    """The text for the history: the secret address in it lets only the owner answer."""
    if not letter.token_hash:
        return body
    token = letter.body.rpartition("/")[2]
    return body.replace(token, TOKEN_HIDDEN)


def _record(archive: Archive, letter: Letter, act: str, **values: object) -> Letter:
    """The letter's step, the target's, and the event, together."""
    words = {"send": "sent a letter", "fail": "could not send a letter", "return": "undeliverable"}[act]
    with archive.database.transaction() as connection:
        moved = letters.move(connection, letter, act, **values)
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
        if letter.target is None:
            append(connection, _case_event(archive, letter, words, message, detail))
            return moved
        dossier = targets.dossier_of(connection, letter.target)
        append(
            connection,
            targets_service.event(archive, dossier, words, by=letter.agent, message=message, detail=detail),
        )
        if act == "send" and letter.kind is LetterKind.NOTICE and TARGET.allows(dossier.state, "ask"):
            reason = said(
                "letter_out", "{letter}, deadline {day}", letter=moved.reference, day=moved.term_ends_on
            )
            targets_service.step(connection, archive, dossier, "ask", by=letter.agent, reason=reason)
    return moved


def _case_event(
    archive: Archive, letter: Letter, action: str, message: str, detail: Mapping[str, object]
) -> Event:
    return Event(
        at=archive.clock(),
        agent=letter.agent,
        action=action,
        subject_kind="case",
        subject=str(letter.case),
        message=message,
        detail=detail,
    )


class Postman:
    """Delivers beside the portal: a list of letters is sent while its sender goes on working."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self.error = ""

    def start(self, archive: Archive) -> None:
        if self.is_running():
            return
        self.error = ""
        self._thread = threading.Thread(target=self._run, args=(archive,), name="postman", daemon=True)
        self._thread.start()

    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self, archive: Archive) -> None:
        try:
            self.error = deliver(archive).error
        except (WebdepotError, OSError) as error:
            self.error = str(error)


def deliver_for(archive: Archive, target: TargetId) -> Sequence[Letter]:
    """Send what waits for one target, now; its letters as they are afterwards, the newest first."""
    if not archive.config.mail.host:
        raise ConfigError(
            "No mail server is configured, so the letter waits. Set [mail] host and sender in webdepot.toml."
        )
    with _sending:
        for letter in letters_service.letters_of(archive, target):
            if letter.state in (LetterState.QUEUED, LetterState.FAILED):
                _send(archive, letter)
    return letters_service.letters_of(archive, target)
