"""Behaviour that is specific to the engine on Dask."""

import time

import pytest

pytest.importorskip("distributed", reason="Dask is not installed: make install-test")

from dask_cluster import running_cluster
from webdepot.engine import dask_engine
from webdepot.engine.dask_engine import DaskEngine
from webdepot.errors import RemoteError


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
