"""Letters over real SMTP: a server on loopback receives them."""

from datetime import UTC, datetime

import pytest

from letters import LetterBox
from webdepot import mail
from webdepot.config.sections.selection import MailConfig
from webdepot.errors import ConfigError, InputError, RemoteError

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def config(box: LetterBox, **changes: object) -> MailConfig:
    values = {
        "host": "127.0.0.1",
        "port": box.port,
        "security": "none",
        "sender": "Web archive <archive@library.example>",
        "timeout_s": 5.0,
    }
    return MailConfig(**(values | changes))


def test_a_letter_arrives_whole(letter_box: LetterBox):
    text = "Dear owner,\n\nGrüße aus dem Archiv: € 5.\n.\nA line with a dot alone stood above.\n"
    made = mail.send(
        config(letter_box, reply_to="answers@library.example"),
        mail.Message(
            to="owner@museum.example", subject="Ihre Seite wird archiviert: Größe", text=text, language="de"
        ),
        now=NOW,
    )
    [received] = letter_box.letters
    assert received.recipients == ["owner@museum.example"]
    assert received.sender == "archive@library.example"
    assert received.message["Subject"] == "Ihre Seite wird archiviert: Größe"
    assert received.message["Message-ID"] == made and "@library.example" in made
    assert received.message["Reply-To"] == "answers@library.example"
    assert received.message["Date"] == "Sun, 15 Nov 2026 12:00:00 +0000"
    assert received.text == text


@pytest.mark.parametrize(
    "address",
    [
        "owner@museum.example\r\nBcc: many@spam.example",
        "owner@museum.example\nBcc: many@spam.example",
        "owner@museum.example, many@spam.example",
        "owner@museum.example;many@spam.example",
        "Owner <owner@museum.example>",
        "owner",
        "@museum.example",
        "owner@",
        "owner@museum",
        "ow ner@museum.example",
        "o\x00wner@museum.example",
        "",
        "a" * 250 + "@museum.example",
    ],
)
def test_anything_but_a_single_plain_address_is_refused(address: str, letter_box: LetterBox):
    with pytest.raises(InputError):
        mail.send(config(letter_box), mail.Message(to=address, subject="s", text="t"), now=NOW)
    assert letter_box.letters == []


def test_a_line_break_in_a_subject_adds_no_header(letter_box: LetterBox):
    subject = "Your site\r\nBcc: many@spam.example\r\n\r\nbody"
    mail.send(config(letter_box), mail.Message(to="owner@museum.example", subject=subject, text="t"), now=NOW)
    [received] = letter_box.letters
    assert received.message["Bcc"] is None
    assert received.recipients == ["owner@museum.example"]
    assert received.message["Subject"] == "Your site Bcc: many@spam.example body"
    assert received.text == "t\n"


def test_a_refused_recipient_is_undeliverable(letter_box: LetterBox):
    letter_box.refused.add("nobody@museum.example")
    with pytest.raises(mail.Undeliverable, match="550"):
        mail.send(
            config(letter_box), mail.Message(to="nobody@museum.example", subject="s", text="t"), now=NOW
        )


def test_a_busy_or_missing_server_can_be_retried(letter_box: LetterBox):
    letter_box.busy = True
    with pytest.raises(RemoteError) as caught:
        mail.send(config(letter_box), mail.Message(to="owner@museum.example", subject="s", text="t"), now=NOW)
    assert caught.value.retry
    with pytest.raises(RemoteError, match="cannot be reached"):
        mail.send(
            config(letter_box, port=1),
            mail.Message(to="owner@museum.example", subject="s", text="t"),
            now=NOW,
        )


def test_without_a_server_the_error_says_what_to_set():
    with pytest.raises(ConfigError, match=r"\[mail\] host"):
        mail.send(MailConfig(), mail.Message(to="owner@museum.example", subject="s", text="t"), now=NOW)
