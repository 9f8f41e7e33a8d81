"""The contract of `Engine`, run on every implementation."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from webdepot.engine.process_pool import ProcessEngine
from webdepot.errors import InputError

PROCESSES = {"processes": 2, "one process": 1}


@pytest.fixture(params=[*PROCESSES, "dask"], scope="module")
def engine(request):
    if request.param in PROCESSES:
        made = ProcessEngine(workers=PROCESSES[request.param])
    else:
        scheduler = request.getfixturevalue("dask_scheduler")
        from webdepot.engine.dask_engine import DaskEngine  # where it is installed

        made = DaskEngine(scheduler)
    yield made
    made.close()


def double(number):
    return number * 2


def fragile(number):
    if number == 3:
        os._exit(1)
    if number == 5:
        raise InputError("five is not wanted")
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 8:
        raise ValueError("eight")
    return number * 2


def where(_):
    return os.getpid()


def test_every_item_comes_back_once(engine):
    done = list(engine.map(double, range(50)))
    assert sorted((one.item, one.result, one.error) for one in done) == [
        (number, number * 2, "") for number in range(50)
    ]


def test_no_items_no_results(engine):
    assert list(engine.map(double, [])) == []


def test_a_failing_or_dying_item_costs_itself_alone(engine):
    done = {one.item: one for one in engine.map(fragile, range(12))}
    assert sorted(done) == list(range(12))
    assert {item: one.result for item, one in done.items() if not one.error} == {
        number: number * 2 for number in (0, 1, 2, 4, 6, 9, 10, 11)
    }
    assert done[5].error == "five is not wanted"
    assert done[8].error == "ValueError: eight"
    for item in (3, 7):
        assert "died" in done[item].error
    assert next(iter(engine.map(double, [1]))).result == 2


def test_a_result_that_cannot_travel_is_a_failure(engine):
    (one,) = engine.map(unsendable, [1])
    assert one.result is None
    assert one.error


def unsendable(_):
    return threading.Lock()


def test_an_item_that_cannot_travel_is_a_failure(engine):
    done = {
        one.item if isinstance(one.item, int) else "lock": one
        for one in engine.map(str, [1, threading.Lock(), 2])
    }
    assert (done[1].result, done[2].result, done["lock"].result) == ("1", "2", None)
    assert "pickle" in done["lock"].error


def test_a_worker_that_is_killed_during_its_work_costs_no_item(engine, tmp_path):
    done = list(engine.map(first_time_killed, [(number, tmp_path) for number in range(8)]))
    assert sorted(one.result for one in done) == list(range(8))
    assert [path.name for path in tmp_path.iterdir()] == ["2"]


def test_results_that_are_lost_with_their_workers_are_computed_again(engine):
    workers = {one.result for one in engine.map(where, range(12))}
    outcomes = engine.map(where, range(12))
    done = [next(outcomes)]
    time.sleep(0.5)  # others have ended, too
    done.append(next(outcomes))
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.5)  # the engine has noticed
    done += outcomes
    assert sorted((one.item, one.error) for one in done) == [(number, "") for number in range(12)]


def first_time_killed(item):
    """As if the machine ran out of memory at some moment: not again for the same item."""
    number, folder = item
    if number == 2 and not (folder / "2").exists():
        (folder / "2").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_work_is_not_done_in_the_callers_process(engine):
    assert os.getpid() not in {one.result for one in engine.map(where, range(4))}


def test_items_are_taken_as_they_are_needed(engine):
    taken = []

    def endless():
        number = 0
        while True:
            taken.append(number)
            yield number
            number += 1

    found = engine.map(double, endless())
    assert next(found).error == ""
    found.close()
    assert len(taken) < 20


def test_workers_end_when_their_parent_is_killed(tmp_path):
    program = (
        "import os, signal, sys\n"
        "from webdepot.engine.process_pool import ProcessEngine\n"
        "engine = ProcessEngine(workers=1)\n"
        "print(*[done.result for done in engine.map(abs, [-1])], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # The workers hold the pipe as long as they live: `run` returns only when they are gone.
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (-9, "1\n")
