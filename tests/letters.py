"""A real SMTP server on loopback that keeps the letters it gets (aiosmtpd)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from webdepot.config.sections.selection import MailConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    sender: str
    recipients: list[str]
    message: EmailMessage

    @property
    def text(self) -> str:
        return str(self.message.get_content()).replace("\r\n", "\n")


class LetterBox:
    """Keeps letters; refuses recipients in `refused` permanently, and everybody temporarily while `busy`."""

    def __init__(self) -> None:
        self.letters: list[Received] = []
        self.refused: set[str] = set()
        self.busy = False
        self.port = 0

    def to(self, recipient: str) -> list[Received]:
        return [letter for letter in self.letters if recipient in letter.recipients]

    async def handle_RCPT(  # noqa: N802 - the name aiosmtpd looks for
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if self.busy:
            return "451 try again later"
        if address in self.refused:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.letters.append(
            Received(sender=envelope.mail_from, recipients=list(envelope.rcpt_tos), message=message)
        )
        return "250 OK"


def mail_to(box: LetterBox) -> MailConfig:
    """The configuration of an archive whose mail server is this box."""
    return MailConfig(
        host="127.0.0.1",
        port=box.port,
        security="none",
        sender="archive@library.example",
        timeout_s=5.0,
    )


class _AnyPort(Controller):
    """On a port that the system chose; aiosmtpd would connect to port 0."""

    def _trigger_server(self) -> None:
        assert self.server is not None
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


@contextmanager
def box_running() -> Iterator[LetterBox]:
    box = LetterBox()
    controller = _AnyPort(box, hostname="127.0.0.1", port=0)
    controller.start()
    try:
        box.port = controller.port
        yield box
    finally:
        controller.stop()


@pytest.fixture
def letter_box() -> Iterator[LetterBox]:
    with box_running() as box:
        yield box
