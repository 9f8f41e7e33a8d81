"""Scheduled harvests: once for each date, within the limit, through the gate, without many at once after a stop."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace

import pytest
from planned_site import PROFILE, START, Site, daily, harvests_of

from clocks import MovedClock
from small_sites import cleared
from webdepot import reasons
from webdepot.archive import Archive
from webdepot.errors import NotPermitted
from webdepot.harvest.report.result import End, reason_of
from webdepot.model import HarvestState
from webdepot.provenance import EventFilter, iter_of
from webdepot.selection import plan_dates, scheduled_harvests
from webdepot.selection.criteria import Judgement
from webdepot.selection.permission_basis import Ground
from webdepot.selection.plans import PlanFilter
from webdepot.selection.scheduled_harvests import TurnState
from webdepot.selection.tables import turns
from webdepot.services.admin import audit_trail
from webdepot.services.depot import deposit
from webdepot.services.harvest import profiles
from webdepot.services.permission import owner_answers
from webdepot.services.schedule import plans, scheduler
from webdepot.services.selection import criteria as criteria_service
from webdepot.services.selection import targets


def test_a_date_comes_true_once_and_the_harvest_waits_for_a_reviewer(
    planned: Archive, site: Site, clock: MovedClock
):
    target = cleared(planned, f"http://localhost:{site.port}/")
    plans.set_plan(planned, target, daily(), profile="quick", by="Ada")
    assert scheduler.run_due(planned) == []
    clock.now = START + timedelta(hours=2)
    (turn,) = scheduler.run_due(planned)
    assert (turn.state, turn.due_at) == (TurnState.DONE, datetime(2026, 3, 2, 14, tzinfo=UTC))
    assert scheduler.run_due(planned) == []
    (harvest,) = harvests_of(planned, target)
    assert (
        harvest.state is HarvestState.FINISHED
        and harvest.id == turn.harvest
        and harvest.settings["profile"] == "quick"
    )
    assert planned.captures.total() == 0, "nothing is public before it is accepted"
    found = plans.of_target(planned, target)
    assert found.plan is not None and found.plan.next_at == datetime(2026, 3, 3, 14, tzinfo=UTC)
    assert found.next_dates[:2] == [
        datetime(2026, 3, 3, 14, tzinfo=UTC),
        datetime(2026, 3, 4, 14, tzinfo=UTC),
    ]
    assert [each.plan.target for each in plans.list_plans(planned, PlanFilter()).rows] == [target]


def test_a_turn_that_was_killed_between_deposit_and_indexing_is_finished(
    planned: Archive, site: Site, clock: MovedClock
):
    target = cleared(planned, f"http://localhost:{site.port}/")
    plans.set_plan(planned, target, daily(), profile="quick", by="Ada")
    clock.now = START + timedelta(hours=2)
    (turn,) = scheduler.run_due(planned)
    deposit.keep(planned, harvests_of(planned, target)[0])
    assert planned.captures.total() == 0
    with planned.database.transaction() as connection:  # as if its process had been killed here
        connection.execute(turns.update().where(turns.c.id == turn.id).values(state=TurnState.RUNNING.value))
    scheduler.run_turn(planned, turn.id)
    assert planned.captures.total() > 0


def test_a_target_without_a_ground_is_refused_with_what_is_missing(
    planned: Archive, site: Site, clock: MovedClock
):
    dossier = targets.enter(planned, targets.draft([f"http://localhost:{site.port}/"]))[0]
    plans.set_plan(planned, dossier.id, daily(), profile="quick")
    assert not plans.of_target(planned, dossier.id).verdict
    clock.now += timedelta(hours=2)
    (turn,) = scheduler.run_due(planned)
    assert turn.state is TurnState.REFUSED and "nominated" in turn.reason and "judge it" in turn.reason
    assert harvests_of(planned, dossier.id) == [] and not site.asked
    with pytest.raises(NotPermitted, match="judge it"):
        plans.run_now(planned, dossier.id)
    criteria_service.answer(
        planned,
        dossier.id,
        [Judgement(criterion=code, value=1.0, reason="it is") for code in ("national", "cultural")],
    )
    targets.decide(planned, dossier.id, "select")
    owner_answers.record_ground(planned, dossier.id, Ground.CONSENT, reason="mail of 1 March")
    plans.retry(planned, turn.id, by="Ada")
    assert [each.state for each in scheduler.run_due(planned)] == [TurnState.DONE]


def test_a_refusal_ends_what_is_planned(planned: Archive, site: Site, clock: MovedClock):
    target = cleared(planned, f"http://localhost:{site.port}/")
    plans.set_plan(planned, target, daily(), profile="quick")
    owner_answers.reply(planned, target, owner_answers.OwnerReply.REFUSAL, words="no")
    clock.now += timedelta(hours=2)
    (turn,) = scheduler.run_due(planned)
    assert turn.state is TurnState.REFUSED and "refus" in turn.reason and not site.asked


def test_after_a_stop_one_turn_is_made_up_for_and_they_are_spread(planned: Archive, clock: MovedClock):
    numbers = [
        targets.enter(planned, targets.draft([f"http://site{number}.example/"]))[0].id for number in range(40)
    ]
    for number in numbers:
        plans.set_plan(planned, number, daily())
    clock.now = START + timedelta(days=10)
    made = scheduler.create_turns(planned)
    assert sorted(turn.target for turn in made) == sorted(numbers)
    assert {turn.due_at for turn in made} == {datetime(2026, 3, 11, 14, tzinfo=UTC)}
    starts = sorted(turn.not_before for turn in made)
    assert starts[0] >= clock.now and starts[-1] <= clock.now + timedelta(hours=1)
    assert starts[-1] - starts[0] > timedelta(minutes=30) and len(set(starts)) == 40
    assert scheduler.create_turns(planned) == []
    events = audit_trail.trail(planned, EventFilter(action="turns missed"), limit=100)
    assert len(events) == 40 and events[0][1].detail["missed"] == 9
    clock.now += timedelta(days=1)
    assert scheduler.create_turns(planned) == [], "what still waits is not queued again"


def test_only_so_many_at_once_over_all_schedulers(planned: Archive, clock: MovedClock):
    planned.config = replace(planned.config, schedule=replace(planned.config.schedule, spread_s=0))
    for number in range(5):
        plans.set_plan(
            planned,
            targets.enter(planned, targets.draft([f"http://site{number}.example/"]))[0].id,
            daily(),
        )
    clock.now += timedelta(days=1)
    scheduler.create_turns(planned)
    lease = timedelta(minutes=1)
    with planned.database.transaction() as connection:
        first = scheduled_harvests.take(connection, clock.now, holder="one", lease=lease, limit=2)
        assert len(first) == 2 and scheduled_harvests.count_running(connection, clock.now) == 2
        second = scheduled_harvests.take(connection, clock.now, holder="two", lease=lease, limit=9)
        assert not {turn.id for turn in first} & {turn.id for turn in second}
        assert (
            scheduled_harvests.renew(connection, [first[0].id], holder="two", until=clock.now + lease) == []
        )
    clock.now += timedelta(minutes=2)
    back = scheduler.give_back_abandoned(planned)
    assert len(back) == 5
    with planned.database.reading() as connection:
        assert scheduled_harvests.get(connection, first[0].id).state is TurnState.WAITING


def test_a_window_holds_it_back(planned: Archive, site: Site, clock: MovedClock):
    target = cleared(planned, f"http://localhost:{site.port}/")
    night = plan_dates.read_window("22:00", "06:00")
    plans.set_plan(planned, target, daily(), window=night, profile="quick")
    clock.now += timedelta(hours=2)
    assert scheduler.run_due(planned) == [] and not site.asked
    clock.now = datetime(2026, 3, 2, 22, 1, tzinfo=UTC)
    assert [turn.state for turn in scheduler.run_due(planned)] == [TurnState.DONE]


def test_what_brings_nothing_is_tried_again_and_then_failed(planned: Archive, clock: MovedClock):
    planned.config = replace(planned.config, schedule=replace(planned.config.schedule, tries=2, retry_s=600))
    profiles.save(planned, "quick", PROFILE)
    target = cleared(planned, "http://localhost:1/")
    plans.run_now(planned, target)
    plans.set_plan(planned, target, daily("2027-01-01"), profile="quick")
    planned.config = replace(
        planned.config, harvest=replace(planned.config.harvest, tries=1, retry_delay_s=0)
    )
    (turn,) = scheduler.run_due(planned)
    assert (
        turn.state is TurnState.WAITING
        and turn.not_before == clock.now + timedelta(minutes=10)
        and "Nothing was harvested" in turn.reason
    )
    clock.now += timedelta(minutes=11)
    (turn,) = scheduler.run_due(planned)
    assert turn.state is TurnState.FAILED and turn.tries == 2


def test_plans_are_paused_changed_and_removed_and_it_is_on_record(planned: Archive, clock: MovedClock):
    target = cleared(planned, "http://site.example/")
    with pytest.raises(Exception, match="no profile"):
        plans.set_plan(planned, target, daily(), profile="nothing")
    plans.set_plan(planned, target, daily(), by="Ada")
    plans.set_plan(
        planned, target, plan_dates.read_dates("weekly", first_on="2026-03-02", at_time="14:00"), by="Bo"
    )
    paused = plans.pause(planned, target, by="Cy")
    assert paused.next_at is None and not paused.is_active
    clock.now += timedelta(days=30)
    assert scheduler.create_turns(planned) == []
    resumed = plans.resume(planned, target, by="Cy")
    assert resumed.next_at is not None and resumed.next_at > clock.now
    plans.remove(planned, target, by="Di")
    with planned.database.reading() as connection:
        events = [event for event in iter_of(connection, "target", str(target)) if "plan" in event.action]
    assert [(event.action, event.agent) for event in events] == [
        ("planned", "Ada"), ("planned", "Bo"), ("plan paused", "Cy"), ("plan resumed", "Cy"), ("unplanned", "Di"),
    ]  # fmt: skip
    assert events[1].detail == {"before": {"frequency": "daily"}, "after": {"frequency": "weekly"}}


def test_the_calendar_counts_what_lies_ahead_and_what_came(planned: Archive, site: Site, clock: MovedClock):
    first = cleared(planned, f"http://localhost:{site.port}/")
    second = cleared(planned, "http://other.example/")
    plans.set_plan(planned, first, daily(), profile="quick")
    plans.set_plan(planned, second, plan_dates.read_dates("weekly", first_on="2026-03-06", at_time="14:00"))
    clock.now += timedelta(hours=2)
    scheduler.run_due(planned)
    days = {day.on: day for day in plans.month(planned, 2026, 3)}
    assert days[date(2026, 3, 1)].planned == 0
    assert days[date(2026, 3, 2)].turns == {TurnState.DONE: 1} and days[date(2026, 3, 2)].planned == 0
    assert (
        days[date(2026, 3, 5)].planned == 1
        and days[date(2026, 3, 6)].planned == 2
        and days[date(2026, 3, 13)].planned == 2
    )
    assert [row.plan.target for row in plans.on_day(planned, date(2026, 3, 13))] == [first, second]
    assert [row.plan.target for row in plans.on_day(planned, date(2026, 3, 12))] == [first]


def test_a_full_disk_is_recognised_by_the_key_of_the_reason_not_by_its_wording():
    settings = SimpleNamespace(least_free_bytes=1 << 30)
    full = reason_of(End.NO_ROOM, settings, waiting=3, shut_out=())
    stopped = reason_of(End.STOPPED, settings, waiting=3, shut_out=())
    for reason in (full, reasons.from_kept(reasons.to_kept(full))):
        assert scheduler._is_disk_full(reason)
    assert not scheduler._is_disk_full(stopped) and not scheduler._is_disk_full("no room on the disk")
