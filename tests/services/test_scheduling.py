"""Scheduled harvests: once for each date, within the limit, through the gate, without a flood after a stop, and
resumed after a kill; then review.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from small_sites import cleared
from webdepot import reasons
from webdepot.archive import Archive
from webdepot.config.settings import ReviewConfig
from webdepot.errors import Conflict, InputError, NotPermitted
from webdepot.harvest import runs
from webdepot.harvest.report.result import End, reason_of
from webdepot.harvest.runs import HARVEST, HarvestFilter
from webdepot.model import HarvestKind, HarvestState, TargetId
from webdepot.provenance import EventFilter, iter_of
from webdepot.selection import plan_dates, turns
from webdepot.selection.criteria import Judgement
from webdepot.selection.permission import Ground
from webdepot.selection.plans import PlanFilter
from webdepot.selection.turns import TurnState
from webdepot.services.admin import audit_trail, setup
from webdepot.services.harvest import harvests, profiles
from webdepot.services.permission import consent
from webdepot.services.review import reviews
from webdepot.services.schedule import plans, scheduler
from webdepot.services.selection import criteria as criteria_service
from webdepot.services.selection import targets
from webdepot.url import key

START = datetime(2026, 3, 2, 12, tzinfo=UTC)
PROFILE = "delay_s = 0\n"


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class Site:
    """A web server with a few pages; requests are counted."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {
            "/": "<title>Home</title><a href=/2>two</a><img src=/picture.png>",
            "/2": "<title>Two</title>two",
        }
        self.asked: Counter[str] = Counter()
        self.pause_s = 0.0
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path
                site.asked[f"{self.headers['Host']}{path}"] += 1
                time.sleep(site.pause_s)
                body = site.pages.get(path.partition("?")[0], "").encode()
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "text/html" if not path.endswith(".png") else "image/png")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def planned(home: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    monkeypatch.setenv("WEBDEPOT_HARVEST_ALLOW_PRIVATE", "true")
    with Archive.open(home, clock=clock, agent="Ada") as archive:
        profiles.save(archive, "quick", PROFILE)
        yield archive


def daily(first_on: str = "2026-03-02", at: str = "14:00"):
    return plan_dates.read_dates("daily", first_on=first_on, at_time=at)


def harvests_of(archive: Archive, target: TargetId) -> list:
    with archive.database.reading() as connection:
        return runs.of_target_any(connection, target, HarvestKind.HARVEST)


# --- plans and turns ---


def test_a_date_comes_true_once_and_the_harvest_waits_for_a_reviewer(
    planned: Archive, site: Site, clock: Clock
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


def test_a_target_without_a_ground_is_refused_with_what_is_missing(
    planned: Archive, site: Site, clock: Clock
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
    consent.record_ground(planned, dossier.id, Ground.CONSENT, reason="mail of 1 March")
    plans.retry(planned, turn.id, by="Ada")
    assert [each.state for each in scheduler.run_due(planned)] == [TurnState.DONE]


def test_a_refusal_ends_what_is_planned(planned: Archive, site: Site, clock: Clock):
    target = cleared(planned, f"http://localhost:{site.port}/")
    plans.set_plan(planned, target, daily(), profile="quick")
    consent.reply(planned, target, consent.OwnerReply.REFUSAL, words="no")
    clock.now += timedelta(hours=2)
    (turn,) = scheduler.run_due(planned)
    assert turn.state is TurnState.REFUSED and "refus" in turn.reason and not site.asked


def test_after_a_stop_one_turn_is_made_up_for_and_they_are_spread(planned: Archive, clock: Clock):
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


def test_only_so_many_at_once_over_all_schedulers(planned: Archive, clock: Clock):
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
        first = turns.take(connection, clock.now, holder="one", lease=lease, limit=2)
        assert len(first) == 2 and turns.count_running(connection, clock.now) == 2
        second = turns.take(connection, clock.now, holder="two", lease=lease, limit=9)
        assert not {turn.id for turn in first} & {turn.id for turn in second}
        assert turns.renew(connection, [first[0].id], holder="two", until=clock.now + lease) == []
    clock.now += timedelta(minutes=2)
    back = scheduler.give_back_abandoned(planned)
    assert len(back) == 5
    with planned.database.reading() as connection:
        assert turns.get(connection, first[0].id).state is TurnState.WAITING


def test_a_window_holds_it_back(planned: Archive, site: Site, clock: Clock):
    target = cleared(planned, f"http://localhost:{site.port}/")
    night = plan_dates.read_window("22:00", "06:00")
    plans.set_plan(planned, target, daily(), window=night, profile="quick")
    clock.now += timedelta(hours=2)
    assert scheduler.run_due(planned) == [] and not site.asked
    clock.now = datetime(2026, 3, 2, 22, 1, tzinfo=UTC)
    assert [turn.state for turn in scheduler.run_due(planned)] == [TurnState.DONE]


def test_what_brings_nothing_is_tried_again_and_then_failed(planned: Archive, clock: Clock):
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


def test_plans_are_paused_changed_and_removed_and_it_is_on_record(planned: Archive, clock: Clock):
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


def test_the_calendar_counts_what_lies_ahead_and_what_came(planned: Archive, site: Site, clock: Clock):
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


# --- review ---


def harvested(archive: Archive, site: Site, clock: Clock) -> tuple[TargetId, str]:
    target = cleared(archive, f"http://localhost:{site.port}/")
    plans.set_plan(archive, target, daily("2030-01-01"), profile="quick", by="Ada")
    plans.run_now(archive, target)
    (turn,) = scheduler.run_due(archive)
    return target, turn.harvest


def test_review_patch_accept(planned: Archive, site: Site, clock: Clock):
    _, harvest = harvested(planned, site, clock)
    found = reviews.dossier(planned, harvest)
    assert found.groups["missing"] == [("part-error", 1)] and found.missing == 1
    assert [
        each.id for each in reviews.list_harvests(planned, HarvestFilter(state=HarvestState.FINISHED)).rows
    ] == [harvest]
    site.pages["/picture.png"] = "a picture"
    clock.now += timedelta(minutes=1)
    patched = reviews.patch(planned, harvest)
    assert patched.asked == 1 and planned.captures.total() == 0
    assert reviews.dossier(planned, harvest).groups["missing"] == []
    reviews.annotate(planned, harvest, by="Bo", words="The picture came later.")
    kept = reviews.accept(planned, harvest, by="Bo", words="whole now")
    assert harvests.get(planned, harvest).state is HarvestState.KEPT and kept.harvest == harvest
    for path, status in (("/", 200), ("/picture.png", 200)):
        found_capture = planned.captures.last(key(f"http://localhost:{site.port}{path}"))
        assert found_capture is not None and found_capture.status == status
    assert [(each.decision, each.by) for each in reviews.dossier(planned, harvest).reviews] == [
        ("accept", "Bo"),
        ("annotate", "Bo"),
    ]
    with pytest.raises(Conflict, match="not possible"):
        reviews.reject(planned, harvest, words="too late")


def test_reject_needs_a_reason_and_can_be_taken_back(planned: Archive, site: Site, clock: Clock):
    _, harvest = harvested(planned, site, clock)
    with pytest.raises(InputError, match="reason"):
        reviews.reject(planned, harvest, by="Bo", words=" ")
    assert reviews.reject(planned, harvest, by="Bo", words="a holding page").state is HarvestState.REJECTED
    for act in ("accept", "reject"):
        with pytest.raises(Conflict, match="Possible now: reopen"):
            getattr(reviews, act)(planned, harvest, words="x")
    assert planned.captures.total() == 0
    assert reviews.reopen(planned, harvest, by="Bo", words="no, it is right").state is HarvestState.FINISHED
    reviews.accept(planned, harvest, by="Bo")
    with planned.database.reading() as connection:
        events = [
            event
            for event in iter_of(connection, "harvest", harvest)
            if event.action in ("rejected", "reopened", "accepted")
        ]
    assert [event.detail for event in events] == [
        {"before": {"state": "finished"}, "after": {"state": "rejected"}},
        {"before": {"state": "rejected"}, "after": {"state": "finished"}},
        {"before": {"state": "finished"}, "after": {"state": "kept"}},
    ]


def test_rules_accept_what_is_like_before_and_leave_the_rest_to_people(
    planned: Archive, site: Site, clock: Clock
):
    planned.config = replace(
        planned.config,
        review=ReviewConfig(accept="rules"),
        quality=replace(planned.config.quality, missing_parts=0.9, broken_links=0.9),
    )
    site.pages |= {f"/p{number}": f"page {number}" for number in range(12)}
    site.pages["/"] = "<title>Home</title>" + "".join(f"<a href=/p{number}>x</a>" for number in range(12))
    target, first = harvested(planned, site, clock)
    assert harvests.get(planned, first).state is HarvestState.FINISHED, "the first of a site is a person's"
    assert reviews.judge_by_rules(planned, harvests.get(planned, first)).rule == "too-new"
    reviews.accept(planned, first, by="Bo")
    clock.now += timedelta(days=1)
    plans.run_now(planned, target)
    (turn,) = scheduler.run_due(planned)
    assert harvests.get(planned, turn.harvest).state is HarvestState.KEPT, reviews.dossier(
        planned, turn.harvest
    ).by_rules
    assert reviews.dossier(planned, turn.harvest).reviews[0].is_automatic
    site.pages["/"] = "<title>Closed</title>gone fishing"
    clock.now += timedelta(days=1)
    plans.run_now(planned, target)
    (turn,) = scheduler.run_due(planned)
    found = reviews.dossier(planned, turn.harvest)
    assert found.harvest.state is HarvestState.FINISHED and found.by_rules.answer == "pass"
    assert dict(found.groups["anomalies"]).get("count-differs") == 1
    assert found.compared is not None and found.compared.gone >= 12 and found.compared.changed == 1


def test_four_eyes(planned: Archive, site: Site, clock: Clock):
    planned.config = replace(planned.config, review=ReviewConfig(four_eyes=True))
    _, harvest = harvested(planned, site, clock)
    with pytest.raises(NotPermitted, match="another person must accept"):
        reviews.accept(planned, harvest, by="Ada")
    reviews.accept(planned, harvest, by="Bo")


def test_a_state_without_a_row_is_refused(planned: Archive, site: Site, clock: Clock):
    _, harvest = harvested(planned, site, clock)
    with planned.database.transaction() as connection, pytest.raises(Conflict, match="cannot become running"):
        runs.move(connection, harvests.get(planned, harvest).id, HarvestState.RUNNING)
    rows = {(before, step.after) for step in HARVEST.steps for before in step.before}
    for before in HarvestState:
        for after in HarvestState:
            if (before, after) not in rows:
                with pytest.raises(Conflict):
                    HARVEST.check(before, after, "Harvest x")


# --- real schedulers ---


def start_scheduler(home: Path, *options: str) -> subprocess.Popen:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from webdepot.cli.main import main; main()",
            "--home",
            str(home),
            "scheduler",
            "--json",
            *options,
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    if "--once" in options:
        return process
    assert json.loads(process.stdout.readline()) == {"state": "running"}
    return process


def wait_for(question, *, seconds: float = 90.0):
    """The first true result."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := question():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


@pytest.fixture
def real_home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    setup.found(
        home,
        settings="[harvest]\nallow_private = true\n"
        "[schedule]\nat_once = 2\nlook_every_s = 0.2\nlease_s = 3\nspread_s = 0\nretry_s = 0\n",
    )
    with Archive.open(home) as archive:
        profiles.save(archive, "quick", PROFILE)
    return home


def test_two_schedulers_harvest_each_date_once(real_home: Path, site: Site):
    with Archive.open(real_home) as archive:
        numbers = [cleared(archive, f"http://localhost:{site.port}/?{number}") for number in range(4)]
        profiles.save(archive, "quick", PROFILE + "limit_pages = 1\n")
        for number in numbers:
            plans.set_plan(archive, number, daily("2030-01-01"), profile="quick")
            plans.run_now(archive, number)
        both = [start_scheduler(real_home), start_scheduler(real_home)]
        try:
            wait_for(lambda: len(plans.queue(archive, TurnState.DONE).rows) == 4)
        finally:
            for process in both:
                process.send_signal(signal.SIGTERM)
            ends = [process.wait(60) for process in both]
            for process in both:
                process.stdout.close()
        assert ends == [0, 0]
        assert [len(harvests_of(archive, number)) for number in numbers] == [1, 1, 1, 1]
        holders = {turn.turn.tries for turn in plans.queue(archive, TurnState.DONE).rows}
        assert holders == {1}


@pytest.mark.parametrize("options", [(), ("--once",)])
def test_a_killed_scheduler_leaves_a_harvest_that_another_ends(
    real_home: Path, site: Site, options: tuple[str, ...]
):
    site.pages = {"/": "".join(f"<a href=/p{number}>x</a>" for number in range(25))} | {
        f"/p{n}": f"page {n}" for n in range(25)
    }
    site.pause_s = 0.15
    with Archive.open(real_home) as archive:
        target = cleared(archive, f"http://localhost:{site.port}/")
        plans.set_plan(archive, target, daily("2030-01-01"), profile="quick")
        plans.run_now(archive, target)
        first = start_scheduler(real_home, *options)
        try:
            wait_for(lambda: sum(site.asked.values()) > 8)
            (harvest,) = harvests_of(archive, target)
        finally:
            os.kill(first.pid, signal.SIGKILL)
            first.wait()
            first.stdout.close()
        wait_for(lambda: not harvests.is_locked(archive, harvest))
        assert harvests.get(archive, harvest.id).state is HarvestState.RUNNING
        site.pause_s = 0.0
        second = start_scheduler(real_home, *options)
        try:
            wait_for(lambda: len(plans.queue(archive, TurnState.DONE).rows) == 1)
        finally:
            if not options:
                second.send_signal(signal.SIGTERM)
            assert second.wait(60) == 0
            second.stdout.close()
        (after,) = harvests_of(archive, target)
        assert (after.id, after.state) == (harvest.id, HarvestState.FINISHED) and after.counts[
            "fetched"
        ] >= 26
        assert len([page for page in site.asked if "/p" in page]) == 25


def test_serve_runs_the_scheduler_and_stops_it_tidily(real_home: Path, site: Site):
    command = [
        sys.executable,
        "-c",
        "from webdepot.cli.main import main; main()",
        "--home",
        str(real_home),
        "serve",
    ]
    process = subprocess.Popen(
        [*command, "--port", "0", "--replay-port", "0", "--json"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert "portal" in json.loads(process.stdout.readline())
        with Archive.open(real_home) as archive:
            target = cleared(archive, f"http://localhost:{site.port}/")
            plans.set_plan(archive, target, daily("2030-01-01"), profile="quick")
            plans.run_now(archive, target)
            wait_for(lambda: plans.queue(archive, TurnState.DONE).rows)
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(60)
        process.stdout.close()
    assert status == 0


def test_a_full_disk_is_recognised_by_the_key_of_the_reason_not_by_its_wording():
    settings = SimpleNamespace(least_free_bytes=1 << 30)
    full = reason_of(End.NO_ROOM, settings, waiting=3, shut_out=())
    stopped = reason_of(End.STOPPED, settings, waiting=3, shut_out=())
    for reason in (full, reasons.from_kept(reasons.to_kept(full))):
        assert scheduler._is_disk_full(reason)
    assert not scheduler._is_disk_full(stopped) and not scheduler._is_disk_full("no room on the disk")
