"""The confirmation of a complaint goes to an address that anybody typed, so it says nothing that anybody typed."""

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import insert

from letters import LetterBox, mail_to
from webdepot.archive import Archive
from webdepot.selection.letter_templates import FIELDS, LetterKind
from webdepot.selection.tables import letter_templates
from webdepot.services.admin import setup
from webdepot.services.permission import complaints, delivery

NOW = datetime(2026, 11, 16, tzinfo=UTC)
TYPED = {
    "url": "http://buy-now.example/?cheap=pills",
    "words": "Buy pills at http://pills.example/ today",
    "name": "You won a prize at http://prize.example/",
}


@pytest.fixture
def office(tmp_path: Path, letter_box: LetterBox) -> Iterator[Archive]:
    setup.create(tmp_path / "home")
    with Archive.open(tmp_path / "home", clock=lambda: NOW, agent="Rita") as archive:
        archive.config = dataclasses.replace(archive.config, mail=mail_to(letter_box))
        yield archive


@pytest.mark.parametrize("language", ["en", "nl", "de"])
@pytest.mark.parametrize("is_old_template", [False, True])
def test_a_complaint_form_sends_nobodys_words(
    office: Archive, letter_box: LetterBox, language: str, is_old_template: bool
) -> None:
    if is_old_template:  # a text that staff wrote when more fields were allowed
        body = "Dear {recipient}, about {address}: {words}. {reference}"
        row = {"kind": LetterKind.RECEIVED.value, "language": language, "subject": "Thank you", "body": body}
        with office.database.transaction() as connection:
            connection.execute(insert(letter_templates).values(**row, agent="Rita", at=NOW))
    case = complaints.complain(office, **TYPED, mail="victim@elsewhere.example", language=language)
    delivery.deliver(office)
    [letter] = letter_box.letters
    assert letter.recipients == ["victim@elsewhere.example"]
    assert case.reference in letter.text
    said = f"{letter.message['Subject']} {letter.text}"
    for words in ("pills", "prize", "buy-now", "cheap", "{words}", "{address}"):
        assert words not in said
    assert (case.words, case.name) == (TYPED["words"], TYPED["name"]), "the archive itself has them"


def test_staff_cannot_put_the_words_into_the_confirmation_again() -> None:
    assert not FIELDS[LetterKind.RECEIVED] & {"words", "address", "recipient"}
