"""Review of harvests: patch, accept, reject, acceptance rules, four eyes."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from planned_site import Site, daily

from clocks import MovedClock
from small_sites import cleared
from webdepot.archive import Archive
from webdepot.config.sections.harvest import ReviewConfig
from webdepot.depot import package as depot_package
from webdepot.depot import package_content
from webdepot.errors import Conflict, InputError, NotPermitted
from webdepot.exchange import transfer_zip
from webdepot.harvest import harvest_rows
from webdepot.harvest.harvest_rows import HARVEST, HarvestFilter
from webdepot.harvest.order_file import OrderVerb
from webdepot.model import HarvestId, HarvestState, TargetId
from webdepot.provenance import iter_of
from webdepot.selection import scheduled_harvests, targets
from webdepot.selection.scheduled_harvests import TurnState
from webdepot.services import pipeline
from webdepot.services.admin.doctor import doctor
from webdepot.services.harvest import control, harvests, profiles, runner
from webdepot.services.index import indexer
from webdepot.services.quality import harvest_check
from webdepot.services.review import patches, ratings, review_view, reviews
from webdepot.services.schedule import plans, scheduler
from webdepot.url import key


def harvested(archive: Archive, site: Site, clock: MovedClock) -> tuple[TargetId, str]:
    target = cleared(archive, f"http://localhost:{site.port}/")
    plans.set_plan(archive, target, daily("2030-01-01"), profile="quick", by="Ada")
    plans.run_now(archive, target)
    (turn,) = scheduler.run_due(archive)
    return target, turn.harvest


def assert_hidden(archive: Archive) -> None:
    """No command makes a harvest visible about which nobody has decided."""
    for index in (indexer.update, indexer.rebuild):
        index(archive)
        assert (archive.captures.total(), archive.texts.total()) == (0, 0)
    assert indexer.status(archive).containers == 0
    checks = {each.name: each.state for each in doctor.examine(archive.home, repair=True)}
    assert (checks["capture index"], checks["text index"]) == ("ok", "ok")
    assert (archive.captures.total(), archive.texts.total()) == (0, 0)


def begun(archive: Archive, site: Site) -> str:
    """A planned harvest whose process was killed."""
    target = cleared(archive, f"http://localhost:{site.port}/")
    with archive.database.transaction() as connection:
        seeds = targets.get(connection, target).seeds
        options = profiles.options_of(archive, "quick")
        return runner.begin(connection, archive, target, seeds, options).id


@pytest.mark.parametrize("way", ["command", "archive", "portal"])
def test_a_resumed_harvest_waits_for_its_review(planned: Archive, site: Site, way: str):
    harvest = begun(planned, site)
    if way == "command":
        report = pipeline.resume(planned, harvest)
        assert (report.package, report.captures) == (None, 0)
    elif way == "archive":  # the same addresses; its person did not know that a harvest was planned
        options = profiles.options_of(planned, "quick")
        report = pipeline.archive_site(planned, [f"http://localhost:{site.port}/"], options)
        assert (report.harvest.id, report.package, report.captures) == (harvest, None, 0)
    else:
        plans.continue_harvest(planned, harvest, by="Ada")
        with pytest.raises(Conflict, match="already waiting"):
            plans.continue_harvest(planned, harvest, by="Bo")
        (turn,) = scheduler.run_due(planned)
        assert turn.harvest == harvest
    assert harvests.get(planned, harvest).state is HarvestState.FINISHED
    assert_hidden(planned)
    with pytest.raises(Conflict, match="it is finished"):
        plans.continue_harvest(planned, harvest)
    assert pipeline.resume(planned, harvest).package is None
    with pytest.raises(Conflict, match="waits for its review"):
        pipeline.keep(planned, harvest)
    assert_hidden(planned)
    reviews.accept(planned, harvest, by="Bo", words="whole")
    assert planned.captures.total() > 0


def test_a_harvest_that_was_paused_and_stopped_runs_when_it_is_resumed(planned: Archive, site: Site):
    harvest = harvests.get(planned, begun(planned, site))
    folder = harvests.folder_of(planned, harvest)
    with harvests.locked(folder):
        for verb in (OrderVerb.PAUSE, OrderVerb.STOP):
            control.give(planned, harvest.id, verb, by="Ada")
    assert runner.run(planned, harvest).state is HarvestState.STOPPED
    plans.continue_harvest(planned, harvest.id, by="Ada")
    assert not control.watch(planned, harvest.id).standing.paused
    (turn,) = scheduler.run_due(planned)
    assert turn.state is TurnState.DONE
    assert harvests.get(planned, harvest.id).state is HarvestState.FINISHED
    assert_hidden(planned)


def test_a_harvest_is_resumed_before_the_scheduler_has_ended_the_turn_of_its_stop(
    planned: Archive, site: Site, clock: MovedClock
):
    harvest = harvests.get(planned, begun(planned, site))
    plans.continue_harvest(planned, harvest.id)
    with planned.database.transaction() as connection:
        [turn] = scheduled_harvests.take(
            connection, planned.clock(), holder="scheduler", lease=timedelta(minutes=5), limit=1
        )
    clock.now += timedelta(minutes=1)
    with harvests.locked(harvests.folder_of(planned, harvest)):
        control.give(planned, harvest.id, OrderVerb.STOP, by="Ada")
    assert runner.run(planned, harvest).state is HarvestState.STOPPED

    def end() -> None:
        with planned.database.transaction() as connection:
            scheduled_harvests.move(connection, turn, "finish", planned.clock(), reason="stopped")

    scheduler_thread = threading.Timer(0.5, end)
    assert plans.is_ending(planned, harvests.get(planned, harvest.id))
    scheduler_thread.start()
    again = plans.continue_harvest(planned, harvest.id, by="Ada")
    scheduler_thread.join()
    assert again.id != turn.id and again.state is TurnState.WAITING
    assert not plans.is_ending(planned, harvests.get(planned, harvest.id))


def test_review_patch_accept(planned: Archive, site: Site, clock: MovedClock):
    _, harvest = harvested(planned, site, clock)
    found = reviews.dossier(planned, harvest)
    assert found.groups["missing"] == [("part-error", 1)] and found.missing == 1
    assert [
        each.id for each in reviews.list_harvests(planned, HarvestFilter(state=HarvestState.FINISHED)).rows
    ] == [harvest]
    site.pages["/picture.png"] = "a picture"
    clock.now += timedelta(minutes=1)
    patched = patches.patch(planned, harvest)
    assert patched.asked == 1 and planned.captures.total() == 0
    assert_hidden(planned)
    assert reviews.dossier(planned, harvest).groups["missing"] == []
    reviews.annotate(planned, harvest, by="Bo", words="The picture came later.")
    planned.config = replace(planned.config, exchange=replace(planned.config.exchange, transfer="files"))
    kept = reviews.accept(planned, harvest, by="Bo", words="whole now")
    with planned.database.reading() as connection:
        assert transfer_zip.find_tree(connection, harvest) is not None, "partners who want files get them"
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


def test_pages_are_rated_and_the_ratings_stay_with_the_harvest(
    planned: Archive, site: Site, clock: MovedClock
):
    _, harvest = harvested(planned, site, clock)
    seed = f"http://localhost:{site.port}/"
    ratings.rate(planned, harvest, url=seed, rating="broken", words="no picture", by="Bo")
    ratings.rate(
        planned, harvest, url=f"{seed}#top", rating="needs work", words="a picture is missing", by="Bo"
    )
    ratings.rate(planned, harvest, url=f"{seed}two", rating="good", by="Ada")
    for url, rating in ((seed, "splendid"), ("javascript:alert(1)", "good"), ("", "good")):
        with pytest.raises(InputError):
            ratings.rate(planned, harvest, url=url, rating=rating)
    view = review_view.view(planned, harvest)
    assert dict(view.tally) == {"needs work": 1, "good": 1}, "the last rating of a page counts"
    assert [each.url for each in view.pages] == [seed, f"{seed}two"]
    assert ratings.tallies(planned, [view.dossier.harvest.id, HarvestId("no such harvest")]) == {
        harvest: dict(view.tally)
    }
    package = reviews.accept(planned, harvest, by="Bo", words="whole")
    assert [each.words for each in ratings.of_harvest(planned, harvest)] == ["", "a picture is missing"]
    facts = depot_package.read(planned.store, package.id)
    with depot_package.open_file(planned.store, facts, package_content.EVENTS) as stream:
        assert stream.read().count(b'"rated"') == 3, "they are in the package"


def test_findings_of_one_kind_are_one_line(planned: Archive, site: Site, clock: MovedClock):
    pictures = "".join(f"<img src=/{number}.png>" for number in range(60))
    site.pages["/"] = f"<title>One</title>{pictures}"
    _, harvest = harvested(planned, site, clock)
    ((group, (line,)),) = review_view.view(planned, harvest).groups
    assert (group, line.code, line.count) == ("missing", "quality.part-error", 60)
    assert len(line.findings) == review_view.SHOWN_OF_A_KIND
    ((_, (line,)),) = review_view.view(planned, harvest, code=line.code, limit=50, offset=50).groups
    assert len(line.findings) == 10
    harvest_check.ignore(planned, harvests.get(planned, harvest), line.code, "", reason="", by="Bo")
    harvest_check.check(planned, harvests.get(planned, harvest))
    ((_, (line,)),) = review_view.view(planned, harvest).groups
    assert (line.count, line.ignored) == (0, 60)


def test_reject_needs_a_reason_and_can_be_taken_back(planned: Archive, site: Site, clock: MovedClock):
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
    planned: Archive, site: Site, clock: MovedClock
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


def test_four_eyes(planned: Archive, site: Site, clock: MovedClock):
    planned.config = replace(planned.config, review=ReviewConfig(four_eyes=True))
    _, harvest = harvested(planned, site, clock)
    with pytest.raises(NotPermitted, match="another person must accept"):
        reviews.accept(planned, harvest, by="Ada")
    reviews.accept(planned, harvest, by="Bo")


def test_a_state_without_a_row_is_refused(planned: Archive, site: Site, clock: MovedClock):
    _, harvest = harvested(planned, site, clock)
    with planned.database.transaction() as connection, pytest.raises(Conflict, match="cannot become running"):
        harvest_rows.move(connection, harvests.get(planned, harvest).id, HarvestState.RUNNING)
    rows = {(before, step.after) for step in HARVEST.steps for before in step.before}
    for before in HarvestState:
        for after in HarvestState:
            if (before, after) not in rows:
                with pytest.raises(Conflict):
                    HARVEST.check(before, after, "Harvest x")
