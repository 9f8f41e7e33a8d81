"""Sending email: the one place that passes a message to an SMTP server (RFC 5321), built with the standard
library's `email` (RFC 5322).

A line break from outside in a header would let a public form add recipients (header injection). Addresses and
subjects are checked here, and `email.policy.SMTP` refuses the rest. A recipient that the server refuses
permanently is *undeliverable*; other failures may be retried.
"""

import smtplib
import ssl
import textwrap
from dataclasses import dataclass
from datetime import datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid

from webdepot.config.sections.selection import MailConfig
from webdepot.errors import ConfigError, InputError, RemoteError
from webdepot.reasons import said

LONGEST_ADDRESS = 254
LONGEST_SUBJECT = 300
LINE = 78
_PERMANENT = 500
_REFUSED_ADDRESS = frozenset({550, 551, 553, 556, 501, 510, 511, 512, 521})


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An email to one recipient, as plain text."""

    to: str
    subject: str
    text: str
    reply_to: str = ""
    language: str = ""


class Undeliverable(InputError):
    """The server refuses this recipient permanently."""

    code = "undeliverable"


def checked_address(text: str) -> str:
    """An email address `name@example.org`; InputError for anything else, and for text that could break out of
    a header.
    """
    address = text.strip()
    if not _is_address(address):
        raise InputError(
            said(
                "no_mail_address",
                "{typed} is not an email address. Write it like name@example.org.",
                typed=repr(address[:60]),
            )
        )
    return address


def _is_address(text: str) -> bool:
    if not text or len(text) > LONGEST_ADDRESS or not text.isprintable():
        return False
    try:
        parsed = Address(addr_spec=text)
    except (MessageError, ValueError, IndexError):
        return False
    return (
        bool(parsed.username)
        and ("." in parsed.domain.strip(".") or parsed.domain == "localhost")
        and parsed.addr_spec == text
        and not any(char in text for char in " ,;<>()\"'\\")
    )


def send(config: MailConfig, message: Message, *, now: datetime) -> str:
    """Send a message through the configured server; returns its Message-ID. Undeliverable or RemoteError if
    the server refuses it.
    """
    if not config.host:
        raise ConfigError("No mail server is configured. Set [mail] host and sender in webdepot.toml.")
    built = build(config, message, now=now)
    try:
        with _connected(config) as server:
            server.send_message(built, from_addr=_bare(config.sender), to_addrs=[message.to])
    except smtplib.SMTPRecipientsRefused as error:
        code, reply = next(iter(error.recipients.values()))
        raise _refused(code, _printable(reply), message.to) from error
    except smtplib.SMTPResponseException as error:
        raise RemoteError(
            f"The mail server {config.host} answered {error.smtp_code}: {_printable(error.smtp_error)}",
            retry=error.smtp_code < _PERMANENT,
        ) from error
    except (smtplib.SMTPException, ssl.SSLError) as error:
        raise RemoteError(f"The mail server {config.host} failed: {error}", retry=True) from error
    except OSError as error:
        raise RemoteError(
            f"The mail server {config.host}:{config.port} cannot be reached: {error.strerror or error}",
            retry=True,
        ) from error
    return str(built["Message-ID"])


def build(config: MailConfig, message: Message, *, now: datetime) -> EmailMessage:
    """The message as it is sent; InputError if an address or the subject cannot be put into a header."""
    subject = " ".join(message.subject.split())
    if not subject or len(subject) > LONGEST_SUBJECT or not subject.isprintable():
        raise InputError(f"A subject must have 1 to {LONGEST_SUBJECT} printable characters in one line.")
    built = EmailMessage(policy=SMTP)
    sender = config.sender.strip()
    if not sender.isprintable() or "@" not in sender:
        raise ConfigError(
            "[mail] sender must be an address, such as webarchive@example.org "
            "or Web archive <webarchive@example.org>."
        )
    built["From"] = sender
    built["To"] = checked_address(message.to)
    if message.reply_to or config.reply_to:
        built["Reply-To"] = checked_address(message.reply_to or config.reply_to)
    built["Subject"] = subject
    built["Date"] = format_datetime(now)
    built["Message-ID"] = make_msgid(domain=_bare(sender).rpartition("@")[2])
    # RFC 3834: automatic responders must not answer this message.
    built["Auto-Submitted"] = "auto-generated"
    if message.language:
        built["Content-Language"] = message.language
    built.set_content(_wrapped(message.text))
    return built


def _wrapped(text: str) -> str:
    """Text wrapped at 78 characters (RFC 5322, 2.1.1); web addresses are not broken."""
    lines = [
        textwrap.wrap(line, LINE, break_long_words=False, break_on_hyphens=False) or [""]
        for line in text.split("\n")
    ]
    return "\n".join(line for several in lines for line in several)


def _connected(config: MailConfig) -> smtplib.SMTP:
    if config.security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            config.host, config.port, timeout=config.timeout_s, context=ssl.create_default_context()
        )
    else:
        server = smtplib.SMTP(config.host, config.port, timeout=config.timeout_s)
    try:
        if config.security == "starttls":
            server.starttls(context=ssl.create_default_context())
        if config.user:
            server.login(config.user, config.password)
    except BaseException:
        server.close()
        raise
    return server


def _refused(code: int, reply: str, address: str) -> InputError | RemoteError:
    if code in _REFUSED_ADDRESS or code >= _PERMANENT:
        return Undeliverable(f"{address} is undeliverable: the mail server answered {code} {reply}")
    return RemoteError(
        f"The mail server does not accept email to {address} at the moment: {code} {reply}", retry=True
    )


def _bare(sender: str) -> str:
    """`Web archive <a@example.org>` -> `a@example.org`."""
    return sender.rpartition("<")[2].rstrip("> ").strip() if "<" in sender else sender.strip()


def _printable(raw: bytes | str) -> str:
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    return "".join(char if char.isprintable() else " " for char in text)[:300]
