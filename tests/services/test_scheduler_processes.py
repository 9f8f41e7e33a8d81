"""Schedulers as processes: two of them, a killed one, and that of the server."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from planned_site import PROFILE, Site, daily, harvests_of

from small_sites import cleared
from webdepot.archive import Archive
from webdepot.model import HarvestState
from webdepot.selection.scheduled_harvests import TurnState
from webdepot.services.admin import setup
from webdepot.services.harvest import harvests, profiles
from webdepot.services.schedule import plans


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
    setup.create(
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
