"""Complaints: from the form to a decision that takes effect everywhere at once; lifting and reopening."""

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from letters import LetterBox, mail_to
from webdepot.access.policy import AccessPoint, Reader, allows
from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotFound
from webdepot.model import Verdict
from webdepot.selection.cases import CASE, CaseState, Decision
from webdepot.services.access import rules
from webdepot.services.permission import complaints, delivery
from webdepot.services.permission.complaints import Area, Audience, Ruling
from webdepot.url import key

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
PAGE = "https://www.museum.example/clocks/1.html"
PUBLIC, ROOM, STAFF = (
    Reader(),
    Reader(access_point=AccessPoint.READING_ROOM),
    Reader(access_point=AccessPoint.STAFF),
)


@pytest.fixture
def office(home: Path, letter_box: LetterBox) -> Iterator[Archive]:
    with Archive.open(home, clock=lambda: NOW, agent="Rita") as archive:
        archive.config = dataclasses.replace(archive.config, mail=mail_to(letter_box))
        yield archive


def complaint(archive: Archive, **given: str):
    values = {
        "url": PAGE,
        "words": "My photograph is on it.",
        "who": "person concerned",
        "ground": "portrait",
        "mail": "me@home.example",
    }
    return complaints.complain(archive, **(values | given))


def verdict(
    archive: Archive, url: str = PAGE, reader: Reader = PUBLIC, at: str = "20200101000000"
) -> Verdict:
    return allows(key(url), at, rules.every(archive), reader, NOW.date())


def test_a_complaint_is_confirmed_by_letter_and_kept_with_its_words(office: Archive, letter_box: LetterBox):
    case = complaint(office, language="nl", captured_at="20190911080000", name="Jan\r\nBcc: x@spam.example")
    assert (
        case.state is CaseState.RECEIVED
        and case.reference.startswith("C-2026-")
        and case.name == "Jan Bcc: x@spam.example"
    )
    delivery.deliver(office)
    [letter] = letter_box.letters
    assert letter.recipients == ["me@home.example"] and letter.message["Bcc"] is None
    assert (
        case.reference in letter.message["Subject"]
        and "My photograph" not in letter.text  # anybody can type any address
        and "Geachte" in letter.text
    )
    assert [event.action for event in complaints.history(office, case)] == ["sent a letter", "received"]


@pytest.mark.parametrize(
    "given",
    [
        {"url": ""},
        {"url": "javascript:alert(1)"},
        {"words": " "},
        {"words": "x" * 6000},
        {"mail": "a@b.example\nBcc: c@d.example"},
        {"who": "me"},
        {"captured_at": "x"},
    ],
)
def test_what_is_no_complaint_is_refused(office: Archive, given: dict[str, str]):
    with pytest.raises(InputError):
        complaint(office, **given)


def test_a_closed_page_is_closed_for_everyone_and_lifting_opens_it(office: Archive, letter_box: LetterBox):
    case = complaint(office)
    complaints.take(office, case.reference, by="Rita")
    decided = complaints.decide(
        office,
        case.reference,
        Ruling(
            decision=Decision.CLOSED, public_text="Closed after an objection.", words="We agree with you."
        ),
        by="Rita",
    )
    assert [bool(verdict(office, reader=reader)) for reader in (PUBLIC, ROOM, STAFF)] == [False, False, False]
    assert verdict(office).reason == "Closed after an objection."
    assert verdict(office, "https://museum.example/clocks/2.html"), "the page alone"
    delivery.deliver(office)
    assert "We agree with you." in letter_box.letters[-1].text and "now closed" in letter_box.letters[-1].text
    lifted = complaints.lift(office, case.reference, by="Rita", reason="settled")
    assert lifted.state is CaseState.LIFTED and lifted.rules == () and verdict(office)
    told = [event.action for event in complaints.history(office, decided)]
    assert told == ["lifted", "sent a letter", "sent a letter", "decided", "in hand", "received"]
    with pytest.raises(NotFound):
        rules.remove(office, decided.rules[0])


@pytest.mark.parametrize(
    ("area", "closed", "still_open"),
    [
        (
            Area.PAGE,
            [PAGE, "http://museum.example/clocks/1.html"],
            ["https://museum.example/clocks/1.html?x=1", "https://museum.example/"],
        ),
        (
            Area.PREFIX,
            [PAGE, "https://museum.example/clocks/1.html/more"],
            ["https://museum.example/clocks/2.html"],
        ),
        (
            Area.HOST,
            [PAGE, "https://museum.example/", "https://museum.example/x"],
            ["https://blog.museum.example/", "https://museum.example.org/"],
        ),
        (Area.DOMAIN, [PAGE, "https://blog.museum.example/a"], ["https://othermuseum.example/"]),
    ],
)
def test_areas(office: Archive, area: Area, closed: list[str], still_open: list[str]):
    complaints.decide(office, complaint(office).reference, Ruling(decision=Decision.CLOSED, area=area))
    assert [url for url in closed if verdict(office, url)] == []
    assert [url for url in still_open if not verdict(office, url)] == []


def test_a_period_and_the_reading_room(office: Archive):
    ruled = Ruling(
        decision=Decision.CLOSED, audience=Audience.PUBLIC, captured_from="2019", captured_to="2020-06"
    )
    complaints.decide(office, complaint(office).reference, ruled)
    assert not verdict(office, at="20190101000000") and not verdict(office, at="20200630235959")
    assert verdict(office, at="20181231235959") and verdict(office, at="20200701000000")
    assert (
        verdict(office, reader=ROOM)
        and verdict(office, reader=STAFF)
        and not verdict(office, reader=Reader(access_point=AccessPoint.PARTNER))
    )


def test_no_decision_about_a_part_opens_what_another_closed(office: Archive):
    complaints.decide(office, complaint(office).reference, Ruling(decision=Decision.CLOSED, area=Area.HOST))
    for ruled in (
        Ruling(decision=Decision.NO_ACTION),
        Ruling(decision=Decision.WARNING, public_text="Contains errors."),
        Ruling(decision=Decision.CLOSED, audience=Audience.PUBLIC),
    ):
        complaints.decide(office, complaint(office).reference, ruled)
        assert not verdict(office, reader=ROOM) and not verdict(office, reader=STAFF)


def test_a_warning_stands_above_the_page(office: Archive):
    case = complaint(office)
    with pytest.raises(InputError, match="needs a text"):
        complaints.decide(office, case.reference, Ruling(decision=Decision.WARNING))
    complaints.decide(
        office, case.reference, Ruling(decision=Decision.WARNING, public_text="This page\r\ncontains errors.")
    )
    told = verdict(office)
    assert told and told.reason == "This page contains errors."


def test_reopening_keeps_what_is_closed_until_the_new_decision(office: Archive):
    case = complaint(office)
    complaints.decide(office, case.reference, Ruling(decision=Decision.CLOSED))
    complaints.reopen(office, case.reference, reason="a new letter")
    assert not verdict(office)
    complaints.decide(office, case.reference, Ruling(decision=Decision.NO_ACTION))
    assert verdict(office)


def test_impossible_steps_are_refused_with_the_reason(office: Archive):
    case = complaint(office)
    with pytest.raises(Conflict, match=r"in the state 'received'\. Required state: decided\."):
        complaints.lift(office, case.reference, reason="r")
    complaints.drop(office, case.reference, reason="advertising")
    with pytest.raises(Conflict, match="in the state 'dropped'"):
        complaints.decide(office, case.reference, Ruling(decision=Decision.CLOSED))
    with pytest.raises(InputError, match="Give a reason"):
        complaints.reopen(office, case.reference, reason=" ")
    assert verdict(office)
    for state in CaseState:
        for act in {step.act for step in CASE.steps}:
            assert CASE.allows(state, act) is any(
                step.act == act and state in step.before for step in CASE.steps
            )


def test_cases_are_grouped_by_host(office: Archive):
    first, second = complaint(office), complaint(office, url="http://museum.example/other")
    complaint(office, url="http://elsewhere.example/")
    assert [one.id for one in complaints.same_host(office, first)] == [second.id]
    assert complaints.list_cases(office, host="museum.example")[1] == 2
    assert complaints.counts(office)[CaseState.RECEIVED] == 3
