"""Behaviour that is specific to the process pool."""

import ctypes
import os
import threading
from concurrent.futures import Future
from pathlib import Path

from webdepot.engine import process_pool
from webdepot.engine.process_pool import ProcessEngine


def where(_):
    return os.getpid()


def private_memory_mb():
    return int(Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0]) / 1024


def kept_after_threads(_):
    """Megabytes that a process keeps after four threads have used 25 each, freed them and ended."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free(libc.malloc(30 << 20))  # makes the C library keep up to 60 MB at the end of each heap
    together = threading.Barrier(4)

    def use():
        together.wait()
        blocks = [libc.malloc(1 << 16) for _ in range(400)]
        for block in blocks:
            ctypes.memset(block, 1, 1 << 16)
        together.wait()
        for block in blocks:
            libc.free(block)

    before = private_memory_mb()
    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    libc.malloc_trim(0)
    return private_memory_mb() - before


def test_a_worker_returns_the_memory_of_threads_that_have_ended():
    engine = ProcessEngine(workers=1)
    (done,) = engine.map(kept_after_threads, [0])
    engine.close()
    assert done.result < 5, done


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
