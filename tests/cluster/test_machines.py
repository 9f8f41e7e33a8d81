"""The page of machines: which processes are alive, which died, and who took over."""

import itertools
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from databases import configure, needs_file
from webdepot.archive import Archive
from webdepot.config.config import FILE_NAME
from webdepot.engine import job_queue, process_rows
from webdepot.engine.process_rows import WorkerRole, WorkerRow
from webdepot.services.admin.doctor import doctor, resources
from webdepot.services.cluster import heartbeat, machines

pytestmark = needs_file
NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


def row(name: str, *, age_s: float) -> WorkerRow:
    return WorkerRow(
        name=name,
        role=WorkerRole.BATCH,
        machine="one",
        version="1",
        began_at=NOW - timedelta(hours=1),
        seen_at=NOW - timedelta(seconds=age_s),
    )


def test_a_silent_worker_counts_as_dead_and_its_job_is_seen_with_its_successor(home):
    with Archive.open(home, clock=lambda: NOW) as archive:
        with archive.database.transaction() as connection:
            process_rows.show(connection, row("old", age_s=5))
            process_rows.show(connection, row("dead", age_s=31))
            process_rows.show(connection, row("forgotten", age_s=90_000))
            process_rows.show(connection, row("old", age_s=4))
            job, _ = job_queue.add(connection, "audit", "x", {}, by="anna", now=NOW)
            lease = timedelta(seconds=30)
            every = {"limit": 9, "can_run": lambda job: True, "lease": lease}
            job_queue.take(connection, NOW - timedelta(minutes=1), holder="dead", **every)
            job_queue.give_back_abandoned(connection, NOW)
        view = machines.look(archive)
        assert {each.row.name: (each.is_alive, each.seen_s) for each in view.workers} == {
            "old": (True, 4.0),
            "dead": (False, 31.0),
            "forgotten": (False, 90_000.0),
        }
        (lost,) = view.takeovers
        assert (lost.kind, lost.subject, lost.lost_by, lost.taken_by) == ("job", str(job.id), "dead", "")
        assert [each.id for each in view.waiting] == [job.id] and not view.is_shared
        with archive.database.transaction() as connection:
            job_queue.take(connection, NOW, holder="old", **every)
            process_rows.show(connection, replace(row("new", age_s=0), role=WorkerRole.PORTAL))
        view = machines.look(archive)
        assert view.takeovers == [replace(lost, taken_by="old")]
        held = {each.row.name: [one.id for one in each.jobs] for each in view.workers}
        assert held == {"old": [job.id], "dead": [], "new": []}  # one not seen for a day is forgotten
        with archive.database.reading() as connection:
            assert [each.name for each in machines.alive(connection, NOW)] == ["old", "new"]


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_process_shows_itself_if_the_database_is_on_a_server(is_shared, request, empty_home):
    home = request.getfixturevalue("empty_postgresql_home") if is_shared else empty_home
    with Archive.open(home) as archive:
        with heartbeat.shown(archive, WorkerRole.PORTAL):
            seen = machines.look(archive).workers
            for _ in range(1000):
                if seen or not is_shared:
                    break
                seen = machines.look(archive).workers
            assert [(each.row.role, each.is_alive) for each in seen] == [
                (WorkerRole.PORTAL, True)
            ] * is_shared
        assert machines.look(archive).workers == []


@pytest.mark.parametrize(
    ("settings", "state", "said"),
    [
        ("", "ok", "one machine"),
        (
            '[engine]\nkind = "dask"\nscheduler = "tcp://127.0.0.1:9"\n',
            "warning",
            "[database] url and [work] place and [depot] place",
        ),
        (
            '[engine]\nkind = "dask"\nscheduler = "tcp://127.0.0.1:9"\n[work]\nplace = "s3://w"\n[depot]\nplace = "/mnt/d"\n',
            "warning",
            "only this one has [database] url",
        ),
    ],
)
def test_doctor_names_what_several_machines_do_not_share(home, settings, state, said):
    configure(home, settings)
    with Archive.open(home) as archive:
        check = resources.check_machines(archive)
    assert check.state == state and said in check.message


def test_doctor_sees_two_machines_that_share_nothing(home):
    with Archive.open(home, clock=lambda: NOW) as archive:
        with archive.database.transaction() as connection:
            for name in ("one", "two"):
                process_rows.show(connection, replace(row(name, age_s=1), machine=name))
        assert resources.check_machines(archive).state == "error"


@pytest.mark.parametrize(
    ("settings", "name", "sentence"),
    [
        (
            '[database]\nurl = "postgresql://u@127.0.0.1:9/x"\n',
            "home",
            r"The database \S+ does not answer: .*refused\. What was saved is safe\.",
        ),
        (
            '[database]\nurl = "postgresql://u@127.0.0.1:9/x"\n[cluster]\nharvesters = true\n',
            "home",
            r"\[cluster\] harvesters = true needs a database and a place .* Set \[database\] url and \[work\] place",
        ),
        (
            '[depot]\nplace = "s3://b?endpoint=http://127.0.0.1:9"\n',
            "depot",
            "The place s3://b does not respond",
        ),
        (
            '[work]\nplace = "s3://b?endpoint=http://127.0.0.1:9"\n',
            "working place",
            "The place s3://b does not respond",
        ),
    ],
)
def test_doctor_names_a_server_that_is_away_or_missing_in_one_sentence(
    home, monkeypatch, settings, name, sentence
):
    for place, kind in itertools.product(("MAIN", "WORK"), ("ACCESS", "SECRET")):
        monkeypatch.setenv(f"WEBDEPOT_PLACE_{place}_{kind}_KEY", "x")
    (home / FILE_NAME).write_text(settings)
    checks = doctor.examine(home)
    assert [check.name for check in checks if check.state == "error"] == [name]
    (message,) = [check.message for check in checks if check.name == name]
    assert re.search(sentence, message) and "\n" not in message
