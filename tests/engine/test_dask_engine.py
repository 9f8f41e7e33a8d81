"""Behaviour that is specific to the engine on Dask."""

import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("distributed", reason="Dask is not installed: make install-test")

from bench.server_programs import free_port
from bench.server_programs import running as running_programs

from dask_cluster import running_cluster
from webdepot.cluster import dask_programs
from webdepot.engine import dask_engine
from webdepot.engine.dask_engine import DaskEngine
from webdepot.errors import RemoteError
from webdepot.services.admin import setup


def test_nothing_is_connected_before_the_first_item_and_an_engine_can_be_used_after_closing(dask_scheduler):
    engine = DaskEngine(dask_scheduler)
    assert engine._client is None
    for _ in range(2):
        assert [done.result for done in engine.map(abs, [-1])] == [1]
        engine.close()
        assert engine._client is None


def test_a_worker_of_another_version_is_named():
    assert dask_engine.call(b"", "0.0.0") == (
        b"",
        f"The worker has Webdepot {dask_engine.VERSION}, and 0.0.0 is needed. Install it there.",
    )


def test_a_scheduler_that_stops_ends_the_call_with_a_sentence():
    with running_cluster("--no-nanny") as (address, kill_scheduler):
        engine = DaskEngine(address)
        outcomes = engine.map(time.sleep, [0, 60, 60, 60])
        assert next(outcomes).error == ""
        kill_scheduler()
        with pytest.raises(RemoteError, match="was stopped during the work"):
            next(outcomes)
        engine.close()


def results(engine: DaskEngine) -> list[int | None]:
    """Of one item, as soon as a worker has come."""
    for _ in range(5):
        try:
            return [done.result for done in engine.map(abs, [-1])]
        except RemoteError as error:
            assert "has no workers" in str(error)
    raise AssertionError("no worker has come")


def test_batch_reads_containers_as_a_dask_worker_also_after_the_scheduler_was_away(tmp_path):
    port = free_port()
    settings = f'[engine]\nkind = "dask"\nscheduler = "{dask_programs.address_of(port)}"\n'
    setup.create(tmp_path / "home", settings=f'{settings}[work]\nplace = "{tmp_path / "work"}"\n')
    program = "from webdepot.cli.main import main; main()"
    command = [sys.executable, "-c", program, "--home", str(tmp_path / "home"), "batch", "--processes", "1"]
    batch = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    engine = DaskEngine(dask_programs.address_of(port))
    try:
        for number in range(2):
            with running_programs(tmp_path / f"scheduler-{number}", dask_programs.scheduler(port)) as running:
                assert results(engine) == [1]
                running.kill("dask-scheduler")
            engine.close()
    finally:
        batch.send_signal(signal.SIGTERM)
        assert batch.wait(60) == 0
