"""Jobs: taken once, repeated after a kill without doing anything twice, cancelled, given back by a worker that
stops.
"""

import threading
from collections import Counter
from pathlib import Path

import pytest
from killed_workers import finish, killed_in, run_jobs, until
from planned_site import Site
from test_reviews import begun, harvested

from clocks import MovedClock
from small_sites import small_site
from small_warcs import write_warc
from webdepot.accounts import accounts
from webdepot.accounts.roles import Role
from webdepot.archive import Archive
from webdepot.depot import copies
from webdepot.engine import job_queue
from webdepot.engine.job_queue import MOST_TRIES, JobState
from webdepot.errors import Conflict
from webdepot.model import HarvestState
from webdepot.provenance import iter_all
from webdepot.selection import target_batches
from webdepot.selection.states import TargetState
from webdepot.selection.target_batches import TargetChoice
from webdepot.selection.target_list import TargetFilter
from webdepot.services import pipeline
from webdepot.services.admin.bulk_actions import BulkAct, BulkOrder
from webdepot.services.depot import storage_places
from webdepot.services.harvest import control, crawl_test, harvests
from webdepot.services.intake import uploads
from webdepot.services.jobs import bulk, job_control, kinds, work
from webdepot.services.jobs.worker import Worker
from webdepot.services.progress import Phase, Progress
from webdepot.services.review import reviews
from webdepot.services.selection import targets

PAGES = {
    f"https://a.example/{number}": f"<title>{number}</title>word{number}".encode() for number in range(4)
}


def events_of(archive: Archive, action: str) -> Counter[str]:
    with archive.database.reading() as connection:
        return Counter(event.subject for event in iter_all(connection) if event.action == action)


def keep(archive: Archive, folder: Path, count: int) -> None:
    """Packages in the depot."""
    for number in range(count):
        path = write_warc(folder / f"{number}.warc.gz", {f"https://s{number}.example/": b"<title>x</title>"})
        pipeline.import_files(archive, [path], collection="news")


@pytest.mark.both_databases
def test_an_action_on_many_sites_killed_in_a_batch_is_done_once_on_each(archive: Archive, monkeypatch):
    # 5 batches; the worker dies in the transaction of the third.
    sites = 9
    monkeypatch.setattr(target_batches, "BATCH", 2)
    accounts.add(archive.database, "Ada", "a long password", [Role.CURATOR], archive.clock())
    with archive.database.transaction() as connection:
        for number in range(sites):
            targets.enter_in(connection, archive, targets.draft([f"https://s{number}.example/"]))
    order = BulkOrder(act=BulkAct.PUT_OFF, reason="next year")
    arguments = bulk.to_arguments(
        TargetChoice(wanted=TargetFilter(state=TargetState.NOMINATED)),
        order,
        total=sites,
        portal_url="",
        query="",
    )
    job = job_control.add(archive, kinds.BULK, "one", arguments, by="Ada")
    killed_in(archive.home, "webdepot.engine.job_queue:save", call=3, batch=2)
    stopped = bulk.result_of(job_control.get(archive, job.id))
    assert (stopped.done, targets.counts(archive)[TargetState.PUT_OFF]) == (4, 4)
    done = finish(archive, job)
    result = bulk.result_of(done)
    assert (done.state, result.total, result.done, result.refused) == (JobState.DONE, sites, sites, {})
    assert set(events_of(archive, "put off").values()) == {1}


@pytest.mark.both_databases
def test_an_audit_and_copies_killed_between_two_packages_continue(archive: Archive, tmp_path: Path):
    keep(archive, tmp_path, 3)
    storage_places.add_place(archive, "second", str(tmp_path / "second"))
    fill = job_control.add(archive, kinds.FILL, "second", by="Ada")
    killed_in(archive.home, "webdepot.services.depot.storage_places:copy_package", call=2)
    assert finish(archive, fill).state is JobState.DONE
    assert set(events_of(archive, "copied").values()) == {1}
    audit = job_control.add(archive, kinds.AUDIT, "", {"everything": True}, by="Ada")
    killed_in(archive.home, "webdepot.services.depot.audit:append", call=3)
    with archive.database.reading() as connection:
        left = {
            (copy.package, copy.place) for copy in copies.due(connection, before=audit.created_at, limit=100)
        }
    assert left, "it was killed before the end"
    done = finish(archive, audit)
    assert done.state is JobState.DONE
    assert done.result["counts"] == {"whole": len(left)}, "only what was left is read"


def test_an_import_killed_before_the_deposit_brings_each_file_once(archive: Archive, tmp_path: Path):
    (tmp_path / "sent").mkdir()
    place = uploads.keep_received(archive, [write_warc(tmp_path / "sent" / "a.warc.gz", PAGES)])
    arguments = {"collection": "news", "names": ["a.warc.gz"]}
    job = job_control.add(archive, kinds.IMPORT, place, arguments, by="Ada", needs=place)
    killed_in(archive.home, "webdepot.services.depot.deposit:keep")
    done = finish(archive, job)
    assert done.state is JobState.DONE, done.reason
    assert archive.captures.total() == len(PAGES)
    [harvest] = harvests.latest(archive, 10)
    assert harvest.state is HarvestState.KEPT
    assert not (archive.home / place).exists(), "the upload is removed at the end"


@pytest.mark.parametrize(
    "moment",
    ["review.reviews:_record", "depot.deposit:keep", "intake.ingest:publish"],
)
def test_an_acceptance_killed_at_any_step_is_recorded_once(
    planned: Archive, site: Site, clock: MovedClock, moment: str
):
    _, harvest = harvested(planned, site, clock)
    job = job_control.add(
        planned, kinds.ACCEPT, harvest, {"words": "good"}, by="Bo", needs=f"harvests/{harvest}"
    )
    killed_in(planned.home, f"webdepot.services.{moment}")
    done = finish(planned, job)
    assert done.state is JobState.DONE, done.reason
    assert [(each.decision, each.by) for each in reviews.dossier(planned, harvest).reviews] == [
        ("accept", "Bo")
    ]
    assert harvests.get(planned, harvest).state is HarvestState.KEPT
    assert planned.captures.total() >= 2
    assert events_of(planned, "accepted") == {harvest: 1}


def test_a_patch_killed_before_the_check_is_not_harvested_again(
    planned: Archive, site: Site, clock: MovedClock
):
    _, harvest = harvested(planned, site, clock)
    site.pages["/picture.png"] = "a picture"
    job = job_control.add(planned, kinds.PATCH, harvest, by="Bo", needs=f"harvests/{harvest}")
    killed_in(planned.home, "webdepot.services.depot.examination:check_again")
    asked = site.asked.copy()
    done = finish(planned, job)
    assert done.state is JobState.DONE, done.reason
    assert site.asked == asked
    assert len(harvests.patches_of(planned, harvests.get(planned, harvest))) == 1
    assert reviews.dossier(planned, harvest).groups["missing"] == []


def test_an_aborted_harvest_killed_while_it_is_checked_is_checked_by_the_next(planned: Archive, site: Site):
    harvest = begun(planned, site)
    control.give_up(planned, harvest, by="Ada", reason="enough")
    job = job_control.add(planned, kinds.END_HARVEST, harvest, by="Ada", needs=f"harvests/{harvest}")
    killed_in(planned.home, "webdepot.services.quality.harvest_run:run")
    done = finish(planned, job)
    assert done.state is JobState.DONE, done.reason
    assert harvests.get(planned, harvest).state is not HarvestState.RUNNING


def test_a_test_crawl_killed_at_its_end_runs_again_and_is_shown_as_running_meanwhile(
    archive: Archive, monkeypatch
):
    monkeypatch.setenv("WEBDEPOT_HARVEST_ALLOW_PRIVATE", "true")
    monkeypatch.setenv("WEBDEPOT_HARVEST_DELAY_S", "0")
    page = {"/": "<title>Home</title><p>Some text.</p>"}
    with small_site(lambda path: page.get(path, "")) as address, Archive.open(archive.home) as own:
        test = crawl_test.begin(own, [f"{address}/"])
        job = job_control.add(own, kinds.CRAWL_TEST, test.id, by="Ada", needs=crawl_test.place_of(test))
        killed_in(own.home, "webdepot.harvest.report.crawl_sample:read")
        assert crawl_test.get(own, test.id, is_waiting=True).state == "running"
        assert finish(own, job).state is JobState.DONE
        assert crawl_test.get(own, test.id).state == "done"


@pytest.mark.both_databases
def test_a_job_is_taken_by_one_worker_and_there_is_one_for_each_subject(archive: Archive, monkeypatch):
    began, may_end = threading.Event(), threading.Event()
    runs: list[str] = []

    def run(_archive, task):
        runs.append(task.job.subject)
        began.set()
        assert may_end.wait(60)
        return {"said": "ok"}

    monkeypatch.setitem(work.RUNS, kinds.SURVEY, run)
    first = job_control.add(archive, kinds.SURVEY, "a.example", by="Ada")
    assert job_control.add(archive, kinds.SURVEY, "a.example", by="Bo").id == first.id
    with Archive.open(archive.home) as elsewhere:
        workers = [Worker(archive), Worker(elsewhere)]
        for worker in workers:
            worker.run_once()
        assert began.wait(60)
        assert sum(worker.running for worker in workers) == 1
        with pytest.raises(Conflict, match="cancel"):
            job_control.cancel(archive, first.id, by="Ada")
        may_end.set()
        assert job_control.wait(archive, first, at_most_s=60).result == {"said": "ok"}
        for worker in workers:
            worker.close()
    assert runs == ["a.example"]
    assert job_control.add(archive, kinds.SURVEY, "a.example", by="Bo").id != first.id


@pytest.mark.both_databases
def test_a_worker_that_stops_gives_its_job_back_and_one_that_lost_it_changes_nothing(
    archive: Archive, monkeypatch
):
    began = threading.Event()

    def run(_archive, task):
        while True:
            task.watch(Progress(phase=Phase.DISCOVER, done=7))
            began.set()
            threading.Event().wait(0.01)

    monkeypatch.setitem(work.RUNS, kinds.SURVEY, run)
    job = job_control.add(archive, kinds.SURVEY, "a.example", by="Ada")
    worker = Worker(archive)
    worker.run_once()
    assert began.wait(60)
    worker.close()
    given_back = job_control.get(archive, job.id)
    assert (given_back.state, given_back.holder, given_back.tries) == (JobState.WAITING, "", 0)
    worker.run_once()
    held = job_control.get(archive, job.id)
    with archive.database.transaction() as connection:  # as if its lease had ended
        assert held.lease_ends_at is not None
        job_queue.give_back_abandoned(connection, held.lease_ends_at)
        [other] = job_queue.take(
            connection,
            held.lease_ends_at,
            holder="other",
            lease=held.lease_ends_at - held.created_at,
            limit=1,
            can_run=lambda _: True,
        )
        with pytest.raises(job_queue.JobLost):
            job_queue.save(connection, held, {"done": 1})
        with pytest.raises(job_queue.JobLost):
            job_queue.finish(connection, held, {}, archive.clock())
    worker.close()
    assert job_control.get(archive, job.id) == other, (
        "the first worker gave up a job that is not its own any more"
    )


def test_a_job_that_kills_its_workers_fails_and_errors_are_kept(archive: Archive, monkeypatch):
    def fail(_archive, task):
        raise Conflict("No such organisation.")

    monkeypatch.setitem(work.RUNS, kinds.SURVEY, fail)
    wrong = job_control.add(archive, kinds.SURVEY, "wrong.example", by="Ada")
    run_jobs(archive)
    failed = job_control.get(archive, wrong.id)
    assert (failed.state, failed.reason) == (JobState.FAILED, "No such organisation.")
    assert job_control.last_errors([failed]) == {"wrong.example": "No such organisation."}
    job = job_control.add(archive, kinds.SURVEY, "deadly.example", by="Ada")
    now = archive.clock()
    with archive.database.transaction() as connection:
        for _ in range(MOST_TRIES):
            job_queue.take(connection, now, holder="x", lease=now - now, limit=1, can_run=lambda _: True)
            job_queue.give_back_abandoned(connection, now)
    ended = job_control.get(archive, job.id)
    assert ended.state is JobState.FAILED and f"{MOST_TRIES} times" in ended.reason


def test_a_job_waits_for_a_worker_that_has_its_files_and_can_be_cancelled(archive: Archive, tmp_path: Path):
    (tmp_path / "sent").mkdir()
    place = uploads.keep_received(archive, [write_warc(tmp_path / "sent" / "a.warc.gz", PAGES)])
    away = archive.home / "away"
    (archive.home / place).rename(away)
    job = job_control.add(
        archive, kinds.IMPORT, place, {"collection": "x", "names": []}, by="Ada", needs=place
    )
    run_jobs(archive)
    assert job_control.get(archive, job.id).state is JobState.WAITING
    away.rename(archive.home / place)
    cancelled = job_control.cancel(archive, job.id, by="Ada")
    kinds.clean_up(archive, cancelled)
    run_jobs(archive)
    assert job_control.get(archive, job.id).state is JobState.CANCELLED
    assert not (archive.home / place).exists() and archive.captures.total() == 0
    assert events_of(archive, "cancelled") == {str(job.id): 1}


def test_a_running_job_shows_its_progress_and_keeps_its_lease(home: Path, monkeypatch):
    monkeypatch.setenv("WEBDEPOT_JOBS_LEASE_S", "1")
    may_end = threading.Event()

    def run(_archive, task):
        task.watch(Progress(phase=Phase.DISCOVER, done=7))
        assert may_end.wait(60)
        return {}

    monkeypatch.setitem(work.RUNS, kinds.SURVEY, run)
    with Archive.open(home) as archive:
        job = job_control.add(archive, kinds.SURVEY, "a.example", by="Ada")
        stop, worker = threading.Event(), Worker(archive)
        thread = threading.Thread(target=worker.run, args=(stop,))
        thread.start()
        until(lambda: job_control.get(archive, job.id).lease_ends_at)
        first = job_control.get(archive, job.id).lease_ends_at
        until(lambda: job_control.get(archive, job.id).lease_ends_at > first)
        until(lambda: "watched" in job_control.get(archive, job.id).progress)
        assert job_control.get(archive, job.id).progress["watched"]["done"] == 7
        may_end.set()
        assert job_control.wait(archive, job, at_most_s=60).state is JobState.DONE
        stop.set()
        worker.wake()
        thread.join()
