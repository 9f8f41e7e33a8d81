"""What waits for staff: counts with the age of the oldest, and the path of a site with its next step."""

from datetime import timedelta

import pytest

from webdepot.archive import Archive
from webdepot.model import TargetId
from webdepot.selection.contacts import Contact
from webdepot.selection.criteria import Judgement
from webdepot.selection.permission_basis import Ground
from webdepot.selection.states import TargetState
from webdepot.services.admin import target_path, target_view, tasks
from webdepot.services.admin.target_path import NextStep, PathFacts, Station, StationState
from webdepot.services.admin.tasks import TaskKind, UnderWay
from webdepot.services.permission import complaints, owner_answers
from webdepot.services.selection import contacts, criteria, targets
from webdepot.times import utc_now

pytestmark = pytest.mark.both_databases


def counts(archive: Archive) -> dict[TaskKind, int]:
    return {task.kind: task.count for task in tasks.open_work(archive).waiting}


def judge(archive: Archive, target: TargetId) -> None:
    answers = [
        Judgement(criterion=one.code, value=1.0, reason="yes") for one in criteria.criteria_of(archive)
    ]
    criteria.answer(archive, target, answers, person=None)


def test_an_empty_archive_has_nothing_to_do_and_is_new(home):
    with Archive.open(home) as archive:
        work = tasks.open_work(archive)
        assert work.is_new and not work.waiting and len(work.done) == len(TaskKind)


def test_tasks_follow_a_site_and_say_how_long_the_oldest_waits(home):
    now = utc_now()
    with Archive.open(home, clock=lambda: now - timedelta(days=9)) as before:
        targets.suggest(before, "https://first.example/")
    with Archive.open(home, clock=lambda: now) as archive:
        number = targets.suggest(archive, "https://second.example/")[0].id
        work = tasks.open_work(archive)
        assert not work.is_new
        [task] = work.waiting
        assert (task.kind, task.count, task.days(now)) == (TaskKind.SUGGESTED, 2, 9)
        targets.decide(archive, number, "nominate")
        assert counts(archive) == {TaskKind.SUGGESTED: 1, TaskKind.NOMINATED: 1}
        judge(archive, number)
        targets.decide(archive, number, "select")
        assert counts(archive) == {TaskKind.SUGGESTED: 1, TaskKind.SELECTED: 1}
        owner_answers.record_ground(archive, number, Ground.OPEN_LICENCE, reason="CC BY")
        assert counts(archive) == {TaskKind.SUGGESTED: 1, TaskKind.UNPLANNED: 1}
        today = now.date()
        other = targets.suggest(archive, "https://third.example/")[0].id
        targets.decide(archive, other, "put off", reason="later", look_again_on=today + timedelta(days=1))
        assert TaskKind.LOOK_AGAIN not in counts(archive)
    with Archive.open(home, clock=lambda: now + timedelta(days=2)) as later:
        assert counts(later)[TaskKind.LOOK_AGAIN] == 1


def test_a_receipt_for_a_complaint_is_not_an_unanswered_letter(home):
    with Archive.open(home) as archive:
        complaints.complain(archive, url="https://a.example/", words="It is mine.", mail="me@home.example")
        assert counts(archive)[TaskKind.CASES] == 1
        assert tasks.open_work(archive).under_way[UnderWay.LETTERS_OUT] == 0


FACTS = {
    "is_judged": False,
    "has_letter": False,
    "has_contact": False,
    "has_plan": False,
    "to_review": "",
    "is_harvested": False,
    "is_described": False,
}


@pytest.mark.parametrize(
    ("state", "facts", "step", "done"),
    [
        (TargetState.SUGGESTED, {}, NextStep.ACCEPT, 0),
        (TargetState.NOMINATED, {}, NextStep.JUDGE, 1),
        (TargetState.NOMINATED, {"is_judged": True}, NextStep.JUDGE, 1),
        (TargetState.JUDGED, {"is_judged": True}, NextStep.SELECT, 2),
        (TargetState.SELECTED, {}, NextStep.ADD_CONTACT, 3),
        (TargetState.SELECTED, {"has_contact": True}, NextStep.WRITE, 3),
        (TargetState.ASKED, {"has_letter": True}, NextStep.RECORD_REPLY, 4),
        (TargetState.CLEARED, {"has_letter": True}, NextStep.PLAN, 5),
        (TargetState.CLEARED, {}, NextStep.PLAN, 4),
        (TargetState.CLEARED, {"has_plan": True}, NextStep.WAIT_FOR_DATE, 4),
        (TargetState.CLEARED, {"to_review": "H"}, NextStep.REVIEW, 4),
        (TargetState.CLEARED, {"is_harvested": True}, NextStep.DESCRIBE, 5),
        (TargetState.CLEARED, {"is_harvested": True, "is_described": True}, NextStep.SEE, 5),
        (TargetState.REFUSED, {"has_letter": True}, NextStep.NONE, 2),
    ],
)
def test_the_path_of_a_site_has_one_next_step(state, facts, step, done):
    path = target_path.path_of(PathFacts(state=state, **(FACTS | facts)))
    assert path.next_step is step
    assert sum(each is StationState.DONE for _, each in path.stations) == done
    nexts = [station for station, each in path.stations if each is StationState.NEXT]
    assert len(nexts) <= 1 and (step is not NextStep.NONE or not nexts)


def test_the_view_of_a_site_knows_its_path(home):
    with Archive.open(home) as archive:
        number = targets.enter(archive, targets.draft(["https://view.example/"]))[0].id
        judge(archive, number)
        targets.decide(archive, number, "select")
        contacts.add_contact(archive, Contact(target=number, name="Owner", mail="o@view.example"))
        path = target_view.view(archive, number, roles=frozenset()).path
        assert path.next_step is NextStep.WRITE
        assert (Station.ASKED, StationState.NEXT) in path.stations
