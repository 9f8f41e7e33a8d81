"""The alarm of the depot: damage that cannot be repaired, and places that cannot be reached, are reported by
email, by a command and to web hooks. The pages show them too.

If an email or the command fails, an event records it, and the audit continues.
"""

import secrets
import subprocess
from collections.abc import Sequence

from webdepot import mail
from webdepot.archive import Archive
from webdepot.errors import WebdepotError
from webdepot.exchange import webhooks
from webdepot.exchange.webhooks import HookEvent
from webdepot.guard import environment
from webdepot.mail import Message
from webdepot.provenance import Outcome, append

MOST_ALARMS = 200
"""Alarms listed in one message; the others are only counted."""
_COMMAND_S = 60


def send(archive: Archive, alarms: Sequence[str]) -> None:
    """Send the alarms to every configured address and to the command; each attempt is an event."""
    more = [f"… and {len(alarms) - MOST_ALARMS} more."] if len(alarms) > MOST_ALARMS else []
    name = archive.config.archive.name
    text = "\n".join(
        [
            f"{name}: the depot needs attention.",
            *alarms[:MOST_ALARMS],
            *more,
            "See: webdepot depot copy status",
            "",
        ]
    )
    data = {"alarms": [*alarms[:MOST_ALARMS], *more], "count": len(alarms), "path": "/api/depot"}
    with archive.database.transaction() as connection:
        webhooks.queue(connection, HookEvent.DEPOT_ALARM, secrets.token_hex(8), data, now=archive.clock())
    for address in archive.config.depot.alarm_mail:
        error = _send_mail(archive, address, f"{name}: depot alarm ({len(alarms)})", text)
        _record(archive, f"email to {address}", error, len(alarms))
    if archive.config.depot.alarm_command:
        _record(archive, "command", _run(archive.config.depot.alarm_command, text), len(alarms))


def _send_mail(archive: Archive, address: str, subject: str, text: str) -> str:
    """The error message; empty if the email was handed to the mail server."""
    try:
        mail.send(archive.config.mail, Message(to=address, subject=subject, text=text), now=archive.clock())
    except (WebdepotError, OSError) as error:
        return str(error)
    return ""


def _run(command: str, text: str) -> str:
    """The error message; empty if the command succeeded."""
    shell = ["/bin/sh", "-c", command]  # written by the operator, in the configuration
    try:
        done = subprocess.run(  # noqa: S603
            shell,
            input=text.encode(),
            capture_output=True,
            timeout=_COMMAND_S,
            check=False,
            env=environment.of_command(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (
        ""
        if done.returncode == 0
        else f"exit {done.returncode}: {done.stderr[:300].decode(errors='replace')}"
    )


def _record(archive: Archive, means: str, error: str, count: int) -> None:
    event = archive.event(
        "alarmed",
        "archive",
        "depot",
        outcome=Outcome.FAILURE if error else Outcome.SUCCESS,
        message=f"{means}: {error}" if error else f"{means}: {count} alarms",
    )
    with archive.database.transaction() as connection:
        append(connection, event)
