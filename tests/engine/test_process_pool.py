"""Behaviour that is specific to the process pool."""

import os
from concurrent.futures import Future

from webdepot.engine import process_pool
from webdepot.engine.process_pool import ProcessEngine


def where(_):
    return os.getpid()


def test_no_process_is_started_before_the_first_item():
    engine = ProcessEngine(workers=2)
    assert engine._pool is None
    engine.close()


def test_none_means_one_for_each_core(monkeypatch):
    monkeypatch.setattr(process_pool.os, "cpu_count", lambda: 3)
    assert ProcessEngine()._workers == 3


def test_one_worker_is_one_child():
    engine = ProcessEngine(workers=1)
    assert len({one.result for one in engine.map(where, range(6))}) == 1
    engine.close()


def test_an_engine_can_be_used_after_closing():
    engine = ProcessEngine(workers=1)
    engine.close()
    assert next(iter(engine.map(where, [1]))).error == ""
    engine.close()
    engine.close()


def test_what_a_broken_pool_gave_up_is_done_by_the_next(monkeypatch):
    """A pool may break between two submissions: items waiting in it are cancelled without a reason."""
    engine = ProcessEngine(workers=1)
    submit = engine._submit

    def given_up_at_first(function, item):
        if item != 1:
            return submit(function, item)
        future = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future

    monkeypatch.setattr(engine, "_submit", given_up_at_first)
    done = {one.item: (one.error, one.result != os.getpid()) for one in engine.map(where, range(4))}
    engine.close()
    assert done == dict.fromkeys(range(4), ("", True))
