"""From a suggestion to a site that may be harvested, over real SMTP and with a clock that is moved."""

import dataclasses
import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from clocks import MovedClock
from letters import LetterBox, mail_to
from webdepot.access.policy import AccessPoint, Reader, allows
from webdepot.accounts.accounts import Person
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.errors import Conflict, InputError, NotFound, NotPermitted
from webdepot.model import HarvestState
from webdepot.selection import letter_rows
from webdepot.selection.contacts import Contact
from webdepot.selection.criteria import AnswerKind, Criterion, Judgement
from webdepot.selection.letter_templates import LetterKind, Template
from webdepot.selection.permission_basis import Ground
from webdepot.selection.states import LetterState, TargetState
from webdepot.selection.target_list import TargetFilter, TargetSort
from webdepot.selection.targets import Origin
from webdepot.services.access import rules
from webdepot.services.harvest import harvests, runner
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.permission import delivery, owner_answers, periodic_run
from webdepot.services.permission import letters as letters_service
from webdepot.services.permission.owner_answers import Conditions, OwnerReply, Showing
from webdepot.services.selection import contacts, targets
from webdepot.services.selection import criteria as criteria_service
from webdepot.url import key

START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
PUBLIC = Reader()
READING_ROOM = Reader(access_point=AccessPoint.READING_ROOM)


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock(START)


@pytest.fixture
def office(home: Path, clock: MovedClock, letter_box: LetterBox) -> Iterator[Archive]:
    """An archive that can send letters."""
    with Archive.open(home, clock=clock, agent="Ada") as archive:
        archive.config = dataclasses.replace(archive.config, mail=mail_to(letter_box))
        yield archive


def nominated(archive: Archive, typed: str = "https://www.museum.example/"):
    return targets.enter(archive, targets.draft([typed]))[0]


def selected(
    archive: Archive, typed: str = "https://www.museum.example/", mail: str = "owner@museum.example"
):
    dossier = nominated(archive, typed)
    yes = [Judgement(criterion=code, value=1.0, reason="it is") for code in ("national", "cultural")]
    criteria_service.answer(archive, dossier.id, yes)
    contacts.add_contact(archive, Contact(target=dossier.id, name="Ms Owner", mail=mail, language="en"))
    return targets.decide(archive, dossier.id, "select")


def asked(archive: Archive, **given: str):
    dossier = selected(archive, **given)
    letters_service.ask(archive, [dossier.id], portal_url="https://archive.example")
    delivery.deliver(archive)
    return targets.get(archive, dossier.id)


def is_shown(archive: Archive, url: str, reader: Reader = PUBLIC) -> bool:
    return bool(allows(key(url), "20260101000000", rules.every(archive), reader, archive.clock().date()))


# --- suggesting and judging ---


@pytest.mark.parametrize(
    "spelling",
    [
        "museum.example",
        "HTTP://WWW.Museum.Example",
        "https://museum.example:443/",
        "http://www.museum.example/index.html",
        "https://www2.museum.example/index.php",
        " museum.example/?",
        "https://museum.example/#top",
    ],
)
def test_a_known_site_is_recognised_in_any_spelling(office: Archive, spelling: str):
    first = nominated(office)
    again, is_new = targets.suggest(office, spelling)
    assert (again.id, is_new) == (first.id, False)


def test_a_part_of_a_known_site_is_told(office: Archive):
    whole = nominated(office)
    known = targets.find_known(office, targets.public_address("museum.example/clocks/1700/list.html"))
    assert known is not None and known.dossier.id == whole.id and not known.is_same
    part = nominated(office, "museum.example/clocks/")
    known = targets.find_known(office, targets.public_address("museum.example/clocks/1700/list.html"))
    assert known is not None and known.dossier.id == part.id
    assert targets.find_known(office, targets.public_address("museum.example.org/")) is None


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "javascript:alert(1)",
        "ftp://museum.example/",
        "museum",
        "http://user:secret@museum.example/",
        "x" * 70_000,
    ],
)
def test_what_is_no_public_site_is_not_suggested(office: Archive, typed: str):
    with pytest.raises(InputError):
        targets.suggest(office, typed)


def test_a_suggestion_is_signed_and_dated(office: Archive):
    dossier, is_new = targets.suggest(
        office, "museum.example", reason="Clocks!", by="A reader", mail="reader@home.example"
    )
    assert (
        is_new
        and dossier.state is TargetState.SUGGESTED
        and dossier.origin is Origin.PUBLIC
        and dossier.since == START
    )
    assert "Clocks!" in dossier.note
    [event] = targets.history(office, dossier.id)
    assert (event.action, event.agent, event.at) == ("suggested", "public form (A reader)", START)


def test_answers_judge_a_target_each_with_its_reason(office: Archive):
    dossier = nominated(office)
    open_ = criteria_service.answer(
        office, dossier.id, [Judgement(criterion="national", value=1.0, reason="in Dutch")]
    )
    assert open_.verdict.answer == "pass" and targets.get(office, dossier.id).state is TargetState.NOMINATED
    with pytest.raises(Conflict, match="Required state: judged"):
        targets.decide(office, dossier.id, "select")
    done = criteria_service.answer(
        office, dossier.id, [Judgement(criterion="cultural", value=1.0, reason="clocks")]
    )
    assert done.verdict and targets.get(office, dossier.id).state is TargetState.JUDGED
    given = criteria_service.criteria_result(office, dossier.id).given["cultural"]
    assert (given.reason, given.agent, given.at, given.question) == (
        "clocks",
        "Ada",
        START,
        "Does it have cultural content?",
    )
    with pytest.raises(InputError, match=r"“Does it have cultural content\?” needs a reason"):
        criteria_service.answer(office, dossier.id, [Judgement(criterion="cultural", value=1.0, reason=" ")])
    with pytest.raises(InputError, match="the step reject needs one"):
        targets.decide(office, dossier.id, "reject")
    rejected = targets.decide(office, dossier.id, "reject", reason="too small", by="Bob")
    assert (rejected.state, rejected.reason) == (TargetState.REJECTED, "too small")
    assert targets.history(office, dossier.id)[0].agent == "Bob"
    put_off = targets.decide(
        office,
        targets.decide(office, dossier.id, "reopen", reason="r").id,
        "put off",
        reason="s",
        look_again_on=date(2027, 1, 1),
    )
    assert put_off.look_again_on == date(2027, 1, 1)


def test_criteria_are_configured_with_weights_kinds_and_who_may_answer(office: Archive):
    reviewers = frozenset({Role.REVIEWER})
    criteria_service.set_criteria(
        office,
        [
            Criterion(code="ours", question="Is it ours?", required=True),
            Criterion(code="depth", question="How deep?", kind=AnswerKind.SCALE, weight=2.0, roles=reviewers),
            Criterion(code="remark", question="What else?", kind=AnswerKind.TEXT),
        ],
    )
    dossier = nominated(office)
    curator = Person(name="Carl", roles=frozenset({Role.CURATOR}))
    with pytest.raises(NotPermitted, match="Only reviewer may answer 'depth'"):
        criteria_service.answer(
            office, dossier.id, [Judgement(criterion="depth", value=1.0, reason="r")], person=curator
        )
    criteria_service.answer(
        office, dossier.id, [Judgement(criterion="ours", value=1.0, reason="r")], person=curator
    )
    reviewer = Person(name="Rita", roles=reviewers)
    low = criteria_service.answer(
        office, dossier.id, [Judgement(criterion="depth", value=0.25, reason="r")], person=reviewer
    )
    assert low.points == 0.5 and low.verdict.answer == "reject"
    high = criteria_service.answer(
        office, dossier.id, [Judgement(criterion="depth", value=0.5, reason="r")], person=reviewer
    )
    assert high.points == 1.0 and high.verdict


def test_the_list_is_filtered_sorted_and_paged_in_the_database(office: Archive, clock: MovedClock):
    for number in range(60):
        nominated(office, f"https://site{number:02d}.example/")
        clock.now += timedelta(minutes=1)
    targets.suggest(office, "https://wish_100%.example/".replace("_100%", "-100"))
    first = targets.list_targets(office, TargetFilter())
    assert (first.total, first.pages, len(first.rows), first.rows[0].name) == (61, 2, 50, "site00.example")
    assert [one.name for one in targets.list_targets(office, TargetFilter(page=2)).rows][
        -1
    ] == "wish-100.example"
    assert targets.list_targets(office, TargetFilter(state=TargetState.SUGGESTED)).total == 1
    assert targets.list_targets(office, TargetFilter(words="TE05 exam")).rows[0].name == "site05.example"
    assert targets.list_targets(office, TargetFilter(words="%")).total == 0
    assert (
        targets.list_targets(office, TargetFilter(sort=TargetSort.CREATED, descending=True)).rows[1].name
        == "site59.example"
    )
    assert targets.counts(office)[TargetState.NOMINATED] == 60


# --- asking ---


def test_a_letter_goes_out_and_silence_is_consent_the_day_after_the_term(
    office: Archive, clock: MovedClock, letter_box: LetterBox
):
    dossier = selected(office)
    with pytest.raises(NotPermitted, match="no letter has been sent"):
        targets.admit(office, dossier.target)
    letters_service.ask(office, [dossier.id], portal_url="https://archive.example")
    assert "not sent yet" in targets.may_harvest(office, dossier.id).reason
    clock.pass_days(3)
    assert delivery.deliver(office).sent == 1
    [letter] = letter_box.letters
    assert letter.recipients == ["owner@museum.example"]
    assert "Ms Owner" in letter.text and "https://www.museum.example/" in letter.text
    assert "3 December 2026 (28 days from today)" in " ".join(letter.text.split()), (
        "the term counts from the sending"
    )
    assert targets.get(office, dossier.id).state is TargetState.ASKED
    clock.pass_days(28)
    periodic_run.process_deadlines(office)
    with pytest.raises(NotPermitted, match="until 2026-12-03"):
        targets.admit(office, dossier.target)
    clock.pass_days(1)
    assert targets.may_harvest(office, dossier.id).rule == "implied consent", (
        "also before anything was tended"
    )
    assert (
        periodic_run.process_deadlines(office).implied == 1
        and periodic_run.process_deadlines(office).implied == 0
    )
    assert targets.get(office, dossier.id).state is TargetState.CLEARED
    targets.admit(office, dossier.target)
    [ground] = owner_answers.grounds_of(office, dossier.id)
    assert (ground.basis.ground, ground.basis.since) == (Ground.IMPLIED_CONSENT, date(2026, 12, 4))
    told = " > ".join(event.action for event in targets.history(office, dossier.id)[::-1])
    assert told == (
        "nominated > answered criteria > judged > added a contact > selected > wrote a letter > sent a "
        "letter > asked"
        " > wrote a reminder > cleared"
    )


def test_one_reminder_goes_out_while_the_term_runs(office: Archive, clock: MovedClock, letter_box: LetterBox):
    asked(office)
    clock.pass_days(13)
    assert periodic_run.process_deadlines(office).reminders == 0
    clock.pass_days(1)
    assert (
        periodic_run.process_deadlines(office).reminders == 1
        and periodic_run.process_deadlines(office).reminders == 0
    )
    delivery.deliver(office)
    reminder = letter_box.letters[-1]
    words = " ".join(reminder.text.split())
    assert (
        "Reminder" in reminder.message["Subject"]
        and "On 2 November 2026" in words
        and "by 30 November 2026" in words
    )
    clock.pass_days(1)
    assert periodic_run.process_deadlines(office).reminders == 0
    assert len(letter_box.letters) == 2


def test_the_owner_answers_by_the_secret_address_and_nobody_else_can(office: Archive, letter_box: LetterBox):
    dossier = asked(office)
    [token] = re.findall(r"https://archive\.example/answer/(\S+)", letter_box.letters[0].text)
    found = owner_answers.find_by_token(office, token)
    assert found is not None and found[0].id == dossier.id
    assert (
        owner_answers.find_by_token(office, token[:-1]) is None
        and owner_answers.find_by_token(office, "") is None
    )
    [kept] = letters_service.letters_of(office, dossier.id)
    assert token not in kept.body and "/answer/…" in kept.body
    assert token not in json.dumps(
        [dataclasses.asdict(one) for one in targets.history(office, dossier.id)], default=str
    )


def test_a_refusal_closes_access_at_once_and_consent_opens_it_again(office: Archive, clock: MovedClock):
    dossier = asked(office)
    page = "https://museum.example/clocks/1.html"
    assert is_shown(office, page)
    owner_answers.reply(office, dossier.id, OwnerReply.REFUSAL, words="No thank you", by="Ms Owner")
    assert not is_shown(office, page) and not is_shown(office, page, Reader(access_point=AccessPoint.STAFF))
    assert is_shown(office, "https://museum.example.org/")
    with pytest.raises(NotPermitted, match="No thank you"):
        targets.admit(office, dossier.target, [targets.operators_decision(office)])
    clock.pass_days(60)
    periodic_run.process_deadlines(office)
    assert not targets.may_harvest(office, dossier.id)
    with pytest.raises(Conflict, match="only after the owner consents"):
        owner_answers.record_ground(office, dossier.id, Ground.OPEN_LICENCE, reason="CC BY")
    with pytest.raises(Conflict, match="not possible in the state 'refused'"):
        targets.decide(office, dossier.id, "select")
    owner_answers.reply(office, dossier.id, OwnerReply.CONSENT, words="All right after all")
    assert is_shown(office, page) and targets.may_harvest(office, dossier.id).rule == "consent"


def test_conditions_become_rules_of_access(office: Archive, clock: MovedClock):
    dossier = asked(office)
    page = "https://www.museum.example/"
    conditions = Conditions(
        showing=Showing.READING_ROOM, until=date(2026, 12, 31), words="only on your premises"
    )
    owner_answers.reply(office, dossier.id, OwnerReply.CONDITIONS, conditions=conditions)
    assert not is_shown(office, page) and is_shown(office, page, READING_ROOM)
    assert targets.may_harvest(office, dossier.id)
    clock.now = datetime(2027, 1, 1, tzinfo=UTC)
    assert "ended on 2026-12-31" in targets.may_harvest(office, dossier.id).reason
    assert periodic_run.process_deadlines(office).ended == 1
    assert targets.get(office, dossier.id).state is TargetState.SELECTED


def test_a_letter_that_comes_back_never_starts_a_term(
    office: Archive, clock: MovedClock, letter_box: LetterBox
):
    letter_box.refused.add("owner@museum.example")
    dossier = selected(office)
    letters_service.ask(office, [dossier.id])
    assert delivery.deliver(office).returned == 1
    assert targets.get(office, dossier.id).state is TargetState.SELECTED
    clock.pass_days(100)
    periodic_run.process_deadlines(office)
    assert "was returned" in targets.may_harvest(office, dossier.id).reason
    other = asked(office, typed="https://later.example/", mail="later@later.example")
    owner_answers.reply(office, other.id, OwnerReply.UNDELIVERABLE, words="bounced")
    clock.pass_days(100)
    periodic_run.process_deadlines(office)
    assert not targets.may_harvest(office, other.id)
    with pytest.raises(Conflict, match="has no sent letter"):
        owner_answers.reply(office, other.id, OwnerReply.UNDELIVERABLE)


def test_a_server_that_is_away_leaves_letters_waiting_and_none_goes_out_twice(
    office: Archive, letter_box: LetterBox
):
    dossier = selected(office)
    letter_box.busy = True
    letters_service.ask(office, [dossier.id])
    assert letters_service.ask(office, [dossier.id]).left_out[0][1] == "a letter has already been written"
    failed = delivery.deliver(office)
    assert failed.failed == 1 and "451" in failed.error
    letter_box.busy = False
    assert delivery.deliver(office).sent == 1 and delivery.deliver(office).sent == 0
    assert len(letter_box.letters) == 1


def test_a_letter_that_another_process_is_sending_is_left_to_it_until_its_claim_ends(
    office: Archive, clock: MovedClock, letter_box: LetterBox
):
    letters_service.ask(office, [selected(office).id])
    with office.database.transaction() as connection:
        [letter] = letter_rows.waiting(connection, limit=10)
        assert letter_rows.claim(connection, letter, now=office.clock())
        assert not letter_rows.claim(connection, letter, now=office.clock())
    assert delivery.deliver(office) == delivery.DeliveryResult(sent=0, returned=0, failed=0)
    assert letter_box.letters == []
    clock.pass_days(1)  # it was killed
    assert delivery.deliver(office).sent == 1
    with office.database.transaction() as connection:
        assert not letter_rows.claim(connection, letter, now=office.clock())  # it is sent


def test_a_whole_list_is_asked_and_those_that_cannot_be_are_named(office: Archive, letter_box: LetterBox):
    ready = [
        selected(office, f"https://site{number}.example/", f"owner@site{number}.example").id
        for number in range(5)
    ]
    alone = nominated(office, "https://alone.example/").id
    outcome = letters_service.ask(office, [*ready, alone, 9999])
    assert [one.id for one in outcome.ready] == ready and [
        (one.id, why) for one, why in outcome.left_out
    ] == [(alone, "its state is: nominated")]
    assert delivery.deliver(office).sent == 5
    assert {letter.recipients[0] for letter in letter_box.letters} == {
        f"owner@site{number}.example" for number in range(5)
    }


def test_grounds_that_need_no_letter(office: Archive):
    dossier = selected(office)
    with pytest.raises(InputError, match="State the source"):
        owner_answers.record_ground(office, dossier.id, Ground.OPEN_LICENCE, reason="")
    with pytest.raises(InputError, match="cannot be recorded by hand"):
        owner_answers.record_ground(office, dossier.id, Ground.IMPLIED_CONSENT, reason="x")
    owner_answers.record_ground(office, dossier.id, Ground.OPEN_LICENCE, reason="CC BY 4.0 in the footer")
    assert targets.may_harvest(office, dossier.id).rule == "open licence"
    [ground] = owner_answers.grounds_of(office, dossier.id)
    owner_answers.withdraw_ground(office, dossier.id, ground.id, reason="the footer is about pictures only")
    assert targets.get(office, dossier.id).state is TargetState.SELECTED
    assert not targets.may_harvest(office, dossier.id)
    with pytest.raises(NotFound):
        owner_answers.withdraw_ground(office, dossier.id, ground.id, reason="again")


def test_letters_have_templates_per_language_with_known_fields_only(office: Archive, letter_box: LetterBox):
    dossier = nominated(office)
    for language, word in (("en", "Dear"), ("nl", "Geachte"), ("de", "Guten Tag")):
        rendered = letters_service.preview(office, dossier.id, language=language)
        assert rendered.body.strip().startswith(word) and "{" not in rendered.body + rendered.subject
    wrong = Template(
        kind=LetterKind.NOTICE, language="en", subject="s", body="until {term_ends} {config.mail.password}"
    )
    with pytest.raises(InputError, match=r"no field \{config.mail.password\}"):
        letters_service.save_template(office, wrong)
    with pytest.raises(InputError, match="last day on which"):
        letters_service.save_template(
            office, Template(kind=LetterKind.NOTICE, language="en", subject="s", body="b")
        )
    letters_service.save_template(
        office,
        Template(kind=LetterKind.NOTICE, language="en", subject="About {site}", body="Until {term_ends}."),
    )
    targets.describe(
        office,
        dossier.id,
        name="A {purpose} \r\nBcc: x@spam.example",
        collection="all",
        purpose="heritage",
        strategy="selective",
        note="",
    )
    rendered = letters_service.preview(office, dossier.id)
    assert (
        rendered.subject == "About A {purpose} Bcc: x@spam.example"
        and rendered.body == "Until 30 November 2026.\n"
    )


def test_names_from_outside_add_no_header_to_a_letter(office: Archive, letter_box: LetterBox):
    dossier, _ = targets.suggest(
        office, "evil.example", name="Nice site\r\nBcc: many@spam.example\r\n\r\nHello"
    )
    yes = [Judgement(criterion=code, value=1.0, reason="r") for code in ("national", "cultural")]
    criteria_service.answer(office, dossier.id, yes)
    targets.decide(office, dossier.id, "select")
    with pytest.raises(InputError):
        contacts.add_contact(
            office, Contact(target=dossier.id, mail="a@evil.example\r\nBcc: many@spam.example")
        )
    with pytest.raises(InputError):
        contacts.add_contact(
            office, Contact(target=dossier.id, name="A\r\nBcc: b@c.example", mail="a@evil.example")
        )
    contacts.add_contact(office, Contact(target=dossier.id, mail="a@evil.example"))
    letters_service.ask(office, [dossier.id])
    delivery.deliver(office)
    [letter] = letter_box.letters
    assert (
        letter.recipients == ["a@evil.example"]
        and letter.message["Bcc"] is None
        and "Bcc" in letter.message["Subject"]
    )


def test_a_harvest_that_was_stopped_is_not_resumed_after_a_refusal(office: Archive):
    harvest = runner.start_or_resume(
        office, ["http://127.0.0.1:1/"], HarvestOptions.from_config(office.config)
    )
    dossier = targets.get(office, harvest.target)
    owner_answers.reply(office, dossier.id, OwnerReply.REFUSAL, words="please stop")
    with pytest.raises(NotPermitted, match="please stop"):
        runner.run(office, harvest)
    with pytest.raises(NotPermitted, match="please stop"):
        runner.start_or_resume(office, ["http://127.0.0.1:1/"], HarvestOptions.from_config(office.config))
    assert harvests.get(office, harvest.id).state is HarvestState.RUNNING


def test_letters_are_listed_and_counted(office: Archive):
    asked(office)
    counts = dict.fromkeys(LetterState, 0) | {LetterState.SENT: 1}
    with office.database.reading() as connection:
        assert letter_rows.counts(connection) == counts
        assert letter_rows.listing(connection, LetterState.SENT, 1)[1] == 1
