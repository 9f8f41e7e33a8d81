"""A real Dask cluster for tests, started once for those of a module: its processes are never idle."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.server_programs import dask_worker, free_port
from bench.server_programs import running as running_programs

from webdepot.cluster import dask_programs

_TESTS = Path(__file__).parent
# An item that kills its worker is given up at once: to let it kill three more takes seconds each.
_SETTINGS = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}


@contextmanager
def running_cluster(*options: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """The address of a scheduler with workers, and a function that kills the scheduler."""
    pytest.importorskip("distributed", reason="Dask is not installed: make install-test")
    keys = {
        f"WEBDEPOT_PLACE_{place}_{kind}_KEY": value
        for place in ("MAIN", "WORK")
        for kind, value in (("ACCESS", "keeper"), ("SECRET", "keeper-secret"))
    }
    # Functions of tests are found by name.
    environment = {"PYTHONPATH": str(_TESTS / "contracts"), **keys, **_SETTINGS}
    with tempfile.TemporaryDirectory(prefix="webdepot-dask-") as name:
        folder, port = Path(name), free_port()
        scheduler = dask_programs.scheduler(port, environment=_SETTINGS)
        worker = dask_worker(1, port, folder, options=options, environment=environment)
        with running_programs(folder, scheduler, worker) as running:
            yield dask_programs.address_of(port), lambda: running.kill(scheduler.name)


@pytest.fixture(scope="module")
def dask_scheduler() -> Iterator[str]:
    """The address of the scheduler of two workers with their nannies."""
    with running_cluster("--nworkers", "2") as (address, _):
        yield address
