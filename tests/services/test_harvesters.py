"""Harvests on several machines: harvesters, a real PostgreSQL, a working place; machines that die."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench import machines
from bench.machines import Machine, ManyHosts

from databases import Databases
from webdepot.archive import Archive
from webdepot.harvest import harvest_rows
from webdepot.harvest.order_file import OrderVerb
from webdepot.harvest.parts import part_rows
from webdepot.model import Harvest, HarvestState
from webdepot.quality.finding_rows import find_verdict
from webdepot.services.admin import setup
from webdepot.services.admin.doctor import doctor
from webdepot.services.harvest import control, harvests, runner
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.intake import ingest
from webdepot.services.jobs import job_control, kinds
from webdepot.services.jobs.worker import Worker

HOSTS = tuple(f"127.0.0.{number}" for number in range(11, 15))


class Cluster:
    """A portal without a harvester, and machines with one."""

    def __init__(self, folder: Path, settings: str, opened: ExitStack) -> None:
        self._folder, self._settings, self._opened = folder, settings, opened
        setup.create(folder / "portal", settings=settings)
        self.archive = opened.enter_context(Archive.open(folder / "portal"))
        self.ended: list[Harvest | Exception] = []

    def machine(self, number: int, *, parts: int = 2) -> Machine:
        machine = Machine(self._folder, number, self._settings, parts=parts)
        machine.start()
        self._opened.callback(machine.stop)
        return machine

    def another_portal(self) -> Archive:
        setup.create(self._folder / "another", settings=self._settings)
        return self._opened.enter_context(Archive.open(self._folder / "another"))

    def start(self, site: ManyHosts) -> tuple[Harvest, threading.Thread]:
        """A harvest of the site, watched by a thread."""
        options = HarvestOptions.from_config(self.archive.config)
        harvest = runner.start_or_resume(self.archive, site.seeds, options)
        return harvest, self.watch(harvest)

    def watch(self, harvest: Harvest) -> threading.Thread:
        def run() -> None:
            try:
                self.ended.append(runner.run(self.archive, harvest))
            except Exception as error:
                self.ended.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def state(self) -> HarvestState:
        ended = self.ended[-1]
        assert isinstance(ended, Harvest), ended
        return ended.state

    def captured(self, harvest: Harvest) -> dict[str, int]:
        return dict(machines.captured(harvests.containers_folder(self.archive, harvest)))


@pytest.fixture
def make_cluster(tmp_path: Path, databases: Databases) -> Iterator[Callable[..., Cluster]]:
    with ExitStack() as opened:

        def make(**settings: float) -> Cluster:
            text = machines.settings_of(databases.create(), tmp_path / "work", parts=3, **settings)  # type: ignore[arg-type]
            return Cluster(tmp_path, text, opened)

        yield make


def until(is_true: Callable[[], object], *, within_s: float = 150.0) -> None:
    end_s = time.monotonic() + within_s
    while not is_true():
        assert time.monotonic() < end_s, "it did not happen"
        time.sleep(0.05)


def test_pages_are_stored_once_although_machines_and_their_disks_are_lost(
    make_cluster: Callable[..., Cluster],
) -> None:
    delay_s = 0.04
    cluster = make_cluster(delay_s=delay_s, lease_s=3.0, safe_s=0.5)
    with machines.many_hosts(HOSTS, 40, answer_s=0.002) as site:
        first, second = cluster.machine(1), cluster.machine(2)
        harvest, thread = cluster.start(site)
        until(lambda: len(site.log) > 40)
        first.kill(with_disk=True)
        until(lambda: len(site.log) > 70)
        second.kill(with_disk=False)
        cluster.machine(3, parts=3)
        thread.join(90)
    assert cluster.state() is HarvestState.FINISHED
    captured = cluster.captured(harvest)
    assert {url: captured.get(url, 0) for url in site.expected()} == dict.fromkeys(site.expected(), 1)
    log = (harvests.folder_of(cluster.archive, harvest) / "crawl.jsonl").read_text()
    assert all(log.count(f'"url": "{url}"') == 1 for url in site.expected())
    assert machines.shortest_gap_s(site.log) >= delay_s

    # The machine that watched the harvest is lost as well: another one checks and deposits it.
    elsewhere = cluster.another_portal()
    done = ingest.take_in(elsewhere, harvests.get(elsewhere, harvest.id), deposit=True)
    assert done.harvest.state is HarvestState.KEPT and done.captures >= len(site.expected())
    assert not list(elsewhere.work.keys("harvests/")) and not harvests.parts_of(elsewhere, harvest)


def test_what_a_machine_had_stored_is_kept_although_it_dies_and_the_harvest_is_stopped(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(delay_s=0.1, lease_s=5.0, safe_s=0.5)
    with machines.many_hosts(HOSTS[:3], 100) as site:
        machine = cluster.machine(1, parts=3)
        harvest, thread = cluster.start(site)
        until(lambda: len(site.log) > 15)
        before = [part.checkpoint for part in harvests.parts_of(cluster.archive, harvest)]
        until(
            lambda: all(
                part.checkpoint and part.checkpoint != earlier
                for part, earlier in zip(harvests.parts_of(cluster.archive, harvest), before, strict=True)
            )
        )
        machine.kill(with_disk=True)
        until(lambda: not any(part.is_live for part in harvests.parts_of(cluster.archive, harvest)))
        control.give(cluster.archive, harvest.id, OrderVerb.STOP, by="Ada", reason="enough")
        thread.join(60)
    assert cluster.state() is HarvestState.STOPPED
    captured = {url for url in cluster.captured(harvest) if url in site.expected()}
    log = (harvests.folder_of(cluster.archive, harvest) / "crawl.jsonl").read_text()
    assert len(captured) >= 6 and all(log.count(f'"url": "{url}"') == 1 for url in captured)


def harvests_check(archive: Archive) -> str:
    return next(check.message for check in doctor.examine(archive.home) if check.name == "harvests")


def test_orders_and_numbers_reach_every_machine(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(delay_s=0.2, lease_s=5.0)
    with machines.many_hosts(HOSTS[:3], 80) as site:
        harvest, thread = cluster.start(site)
        until(lambda: harvests.parts_of(cluster.archive, harvest))
        elsewhere = cluster.another_portal()
        assert control.watch(elsewhere, harvest.id).course.name == "waiting"
        assert "no harvester" in harvests_check(elsewhere)
        cluster.machine(1, parts=3)
        until(lambda: (numbers := control.watch(elsewhere, harvest.id).live) and numbers.fetched > 6)
        until(lambda: control.recent(elsewhere, harvest))
        assert "no harvester" not in harvests_check(elsewhere)
        control.give(elsewhere, harvest.id, OrderVerb.PAUSE, by="Ada")
        until(lambda: (numbers := control.watch(elsewhere, harvest.id).live) and numbers.paused)
        time.sleep(0.6)  # requests that were out
        asked = len(site.log)
        control.reject(elsewhere, harvest.id, ["/p/7[0-9]"], by="Ada")
        control.add(elsewhere, harvest.id, [f"{site.seeds[0]}p/99.html"], by="Ada")
        time.sleep(1.0)
        assert len(site.log) == asked
        control.give(elsewhere, harvest.id, OrderVerb.RESUME, by="Ada")
        until(lambda: len(site.log) > asked + 5)
        control.give(elsewhere, harvest.id, OrderVerb.STOP, by="Ada", reason="enough")
        thread.join(30)
        assert cluster.state() is HarvestState.STOPPED
        asked = len(site.log)
        assert not harvests.is_locked(elsewhere, harvest) and len(cluster.captured(harvest)) < 240

        # Resumed by a process that is killed at once: a job checks it in the end.
        with elsewhere.database.transaction() as connection:
            harvest_rows.move(connection, harvest.id, HarvestState.RUNNING)
            part_rows.offer(connection, harvest.id, 3, needs_browser=False)
        until(lambda: job_control.find(elsewhere, kinds.END_HARVEST, harvest.id))
        Worker(cluster.archive).run(threading.Event(), until_idle=True)
    ended = harvests.get(elsewhere, harvest.id)
    assert ended.state is HarvestState.FINISHED and len(site.log) > asked
    with elsewhere.database.reading() as connection:
        assert find_verdict(connection, harvest.id) is not None
    captured = cluster.captured(harvest)
    rejected = {url for url in site.expected() if re.search("/p/7[0-9]", url)}
    assert captured[f"{site.seeds[0]}p/99.html"] == 1
    assert all(captured.get(url, 0) == 1 for url in site.expected() - rejected)
    assert not rejected & captured.keys()
    assert [order.verb for order in control.watch(elsewhere, harvest.id).orders] == [
        OrderVerb.PAUSE,
        OrderVerb.CHANGE,
        OrderVerb.ADD,
        OrderVerb.RESUME,
        OrderVerb.STOP,
    ]
