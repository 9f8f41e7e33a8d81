"""Silence becomes consent the day after the deadline: pages, gate and periodic run give the same answer."""

import dataclasses
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clocks import MovedClock
from letters import LetterBox, mail_to
from portal_client import Portal
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.selection.contacts import Contact
from webdepot.selection.criteria import Judgement
from webdepot.selection.permission_basis import Ground
from webdepot.selection.states import LetterState, TargetState
from webdepot.services.permission import delivery, owner_answers, periodic_run
from webdepot.services.permission import letters as letters_service
from webdepot.services.permission.owner_answers import Conditions, OwnerReply
from webdepot.services.schedule import plans
from webdepot.services.selection import contacts, targets
from webdepot.services.selection import criteria as criteria_service
from webdepot.web.app import build_portal
from webdepot.web.language.language import load

START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
TERM = timedelta(days=28)
"""The default of the configuration: the last day is 30 November."""


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock(START)


@pytest.fixture
def office(home: Path, clock: MovedClock, letter_box: LetterBox) -> Iterator[Archive]:
    with Archive.open(home, clock=clock, agent="Ada") as archive:
        archive.config = dataclasses.replace(archive.config, mail=mail_to(letter_box))
        accounts.add(archive.database, "anna", "a long password", [Role.CURATOR], clock())
        yield archive


def asked(archive: Archive):
    """A target whose owner has just received a letter."""
    dossier = targets.enter(archive, targets.draft(["https://www.museum.example/"]))[0]
    yes = [Judgement(criterion=code, value=1.0, reason="it is") for code in ("national", "cultural")]
    criteria_service.answer(archive, dossier.id, yes)
    contacts.add_contact(archive, Contact(target=dossier.id, mail="owner@museum.example"))
    targets.decide(archive, dossier.id, "select")
    letters_service.ask(archive, [dossier.id], portal_url="https://archive.example")
    delivery.deliver(archive)
    return targets.get(archive, dossier.id)


def answers(archive: Archive, target: int, token: str) -> set[bool]:
    """May it be harvested? According to the gate, the plan, the target's page and the owner's page."""
    app = build_portal(archive, portal_url="http://testserver", replay_url="http://replay.test")
    browser = Portal(app)
    owner_page = browser.get(f"/answer/{token}").text
    browser.post("/sign-in", {"name": "anna", "password": "a long password", "to": "/"})
    page = browser.get(f"/targets/{target}").text
    texts = load("en").texts
    assert (texts["targets.may"] in page) is not (texts["targets.may_not"] in page)
    return {
        bool(targets.may_harvest(archive, target)),
        bool(plans.of_target(archive, target).verdict),
        texts["targets.may"] in page,
        texts["answer.state_cleared"] in owner_page,
    }


def before_and_after_the_run(archive: Archive, target: int, letter_box: LetterBox) -> set[bool]:
    [token] = re.findall(r"/answer/(\S+)", letter_box.letters[0].text)
    before = answers(archive, target, token)
    periodic_run.process_deadlines(archive)
    return before | answers(archive, target, token)


def test_on_the_last_day_nobody_takes_silence_for_consent(
    office: Archive, clock: MovedClock, letter_box: LetterBox
):
    dossier = asked(office)
    clock.now = START + TERM
    assert before_and_after_the_run(office, dossier.id, letter_box) == {False}
    assert targets.get(office, dossier.id).state is TargetState.ASKED
    assert owner_answers.grounds_of(office, dossier.id) == []


def test_the_day_after_everybody_does(office: Archive, clock: MovedClock, letter_box: LetterBox):
    dossier = asked(office)
    clock.now = START + TERM + timedelta(days=1)
    assert before_and_after_the_run(office, dossier.id, letter_box) == {True}
    [kept] = owner_answers.grounds_of(office, dossier.id)
    assert (kept.basis.ground, kept.basis.since) == (Ground.IMPLIED_CONSENT, clock.now.date())
    assert targets.may_harvest(office, dossier.id).rule == Ground.IMPLIED_CONSENT.value


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (OwnerReply.REFUSAL, False),
        (OwnerReply.UNDELIVERABLE, False),
        (OwnerReply.CONSENT, True),
        (OwnerReply.CONDITIONS, True),
    ],
)
@pytest.mark.parametrize("reply_after", [TERM - timedelta(days=1), TERM + timedelta(days=1)])
def test_a_reply_counts_instead_of_silence(
    office: Archive, clock: MovedClock, letter_box: LetterBox, reply, expected, reply_after
):
    dossier = asked(office)
    clock.now = START + reply_after
    owner_answers.reply(office, dossier.id, reply, words="by telephone")
    clock.now = START + TERM + timedelta(days=2)
    assert before_and_after_the_run(office, dossier.id, letter_box) == {expected}
    grounds = {kept.basis.ground for kept in owner_answers.grounds_of(office, dossier.id)}
    assert Ground.IMPLIED_CONSENT not in grounds


def test_silence_counts_though_another_ground_was_recorded_and_withdrawn(
    office: Archive, clock: MovedClock, letter_box: LetterBox
):
    dossier = asked(office)
    owner_answers.record_ground(office, dossier.id, Ground.OPEN_LICENCE, reason="CC BY in the footer")
    [kept] = owner_answers.grounds_of(office, dossier.id)
    owner_answers.withdraw_ground(office, dossier.id, kept.id, reason="it is about the pictures only")
    assert targets.get(office, dossier.id).state is TargetState.SELECTED
    clock.now = START + TERM + timedelta(days=1)
    assert bool(targets.may_harvest(office, dossier.id))
    assert periodic_run.process_deadlines(office).implied == 1
    assert targets.may_harvest(office, dossier.id).rule == Ground.IMPLIED_CONSENT.value


def test_consent_that_a_curator_records_answers_the_letter(office: Archive, clock: MovedClock):
    """The owner agreed until a certain day: silence must not extend that."""
    dossier = asked(office)
    until = (START + timedelta(days=10)).date()
    owner_answers.record_ground(office, dossier.id, Ground.CONSENT, reason="on the telephone", until=until)
    assert [letter.state for letter in letters_service.letters_of(office, dossier.id)] == [
        LetterState.ANSWERED
    ]
    clock.now = START + TERM + timedelta(days=1)
    assert not targets.may_harvest(office, dossier.id)
    assert periodic_run.process_deadlines(office).implied == 0
    assert not targets.may_harvest(office, dossier.id)


def test_a_target_that_was_ended_gets_no_ground_from_silence(office: Archive, clock: MovedClock):
    dossier = asked(office)
    targets.decide(office, dossier.id, "end", reason="the site has moved")
    clock.now = START + TERM + timedelta(days=1)
    assert not targets.may_harvest(office, dossier.id)
    assert periodic_run.process_deadlines(office).implied == 0
    assert owner_answers.grounds_of(office, dossier.id) == []
    assert not targets.may_harvest(office, dossier.id)


def test_conditions_with_a_last_day_end_the_permission(office: Archive, clock: MovedClock):
    dossier = asked(office)
    until = (START + timedelta(days=10)).date()
    owner_answers.reply(office, dossier.id, OwnerReply.CONDITIONS, conditions=Conditions(until=until))
    assert targets.may_harvest(office, dossier.id)
    clock.now = START + TERM + timedelta(days=1)
    assert not targets.may_harvest(office, dossier.id)
    assert periodic_run.process_deadlines(office).ended == 1
    assert not targets.may_harvest(office, dossier.id)
