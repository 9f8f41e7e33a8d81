"""The alarm of the depot: what cannot be repaired or reached is told by letter and by a command; the pages
show it anyway.

Whoever is to be told may be away too: that a letter or the command fails is an event, and stops nothing.
"""

import subprocess
from collections.abc import Sequence

from webdepot import mail
from webdepot.archive import Archive
from webdepot.errors import WebdepotError
from webdepot.mail import Message
from webdepot.provenance import Event, Outcome, append

MOST_TOLD = 200
_COMMAND_S = 60


def sound(archive: Archive, alarms: Sequence[str]) -> None:
    """Tell everybody who is to be told, once each."""
    more = [f"… and {len(alarms) - MOST_TOLD} more."] if len(alarms) > MOST_TOLD else []
    name = archive.config.archive.name
    words = "\n".join(
        [
            f"{name}: the depot needs a person.",
            *alarms[:MOST_TOLD],
            *more,
            "See: webdepot depot copy status",
            "",
        ]
    )
    for address in archive.config.depot.alarm_mail:
        trouble = _written(archive, address, f"{name}: alarm of the depot ({len(alarms)})", words)
        _note(archive, f"letter to {address}", trouble, len(alarms))
    if archive.config.depot.alarm_command:
        _note(archive, "command", _run(archive.config.depot.alarm_command, words), len(alarms))


def _written(archive: Archive, address: str, subject: str, words: str) -> str:
    """What went wrong; empty when the letter is on its way."""
    try:
        mail.send(archive.config.mail, Message(to=address, subject=subject, text=words), now=archive.clock())
    except (WebdepotError, OSError) as error:
        return str(error)
    return ""


def _run(command: str, words: str) -> str:
    shell = ["/bin/sh", "-c", command]  # the operator's own words, out of the configuration
    try:
        done = subprocess.run(  # noqa: S603
            shell, input=words.encode(), capture_output=True, timeout=_COMMAND_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (
        ""
        if done.returncode == 0
        else f"exit {done.returncode}: {done.stderr[:300].decode(errors='replace')}"
    )


def _note(archive: Archive, means: str, trouble: str, count: int) -> None:
    event = Event(
        at=archive.clock(),
        agent=archive.agent,
        action="alarmed",
        subject_kind="archive",
        subject="depot",
        outcome=Outcome.FAILURE if trouble else Outcome.SUCCESS,
        message=f"{means}: {trouble}" if trouble else f"{means}: {count} alarms",
    )
    with archive.database.transaction() as connection:
        append(connection, event)
