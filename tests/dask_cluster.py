"""A real Dask cluster for tests, started once for all of them."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent


@contextmanager
def _running(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of Dask, ended with all its processes."""
    # An item that kills its worker is given up at once: to let it kill three more takes seconds each.
    settings = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0", **environment}
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments, "--host", "127.0.0.1", "--no-dashboard"],
        env=os.environ | settings,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def running_cluster(*options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of a scheduler with workers, and its process."""
    pytest.importorskip("distributed", reason="Dask is not installed: make install-test")
    with tempfile.TemporaryDirectory(prefix="webdepot-dask-") as folder, ExitStack() as stack:
        file = Path(folder) / "scheduler.json"
        scheduler = stack.enter_context(_running("scheduler", "--port", "0", "--scheduler-file", str(file)))
        until_s = time.monotonic() + 60
        while not file.exists() or not (text := file.read_text()):
            assert time.monotonic() < until_s, "the scheduler did not start"
            time.sleep(0.05)
        address: str = json.loads(text)["address"]
        keys = {
            f"WEBDEPOT_PLACE_{place}_{kind}_KEY": value
            for place in ("MAIN", "WORK")
            for kind, value in (("ACCESS", "keeper"), ("SECRET", "keeper-secret"))
        }
        # Functions of tests are found by name.
        environment = {"PYTHONPATH": str(_TESTS / "contracts"), **keys}
        places = ("--local-directory", folder, "--nthreads", "1")
        stack.enter_context(_running("worker", address, *places, *options, **environment))
        yield address, scheduler


@pytest.fixture(scope="session")
def dask_scheduler() -> Iterator[str]:
    """The address of the scheduler of two workers with their nannies, for all tests."""
    with running_cluster("--nworkers", "2") as (address, _):
        yield address
