"""A Dask scheduler and its workers on this machine."""

import sys
from collections.abc import Mapping
from pathlib import Path

from webdepot.cluster import readiness
from webdepot.cluster.processes import Program

_HERE = ("--host", "127.0.0.1", "--no-dashboard")


def scheduler(port: int, *, environment: Mapping[str, str] | None = None) -> Program:
    return Program(
        name="dask-scheduler",
        command=[sys.executable, "-m", "dask", "scheduler", "--port", str(port), *_HERE],
        environment=environment or {},
        address=address_of(port),
        is_ready=lambda: readiness.accepts(port),
    )


def worker(
    number: int,
    scheduler_port: int,
    folder: Path,
    *,
    options: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> Program:
    """A process that runs workers, and restarts those that die."""
    places = ("--local-directory", str(folder), "--nthreads", "1")
    return Program(
        name=f"dask-worker-{number}",
        command=[
            *(sys.executable, "-m", "dask", "worker", address_of(scheduler_port)),
            *(*places, *_HERE, *options),
        ],
        environment=environment or {},
    )


def address_of(port: int) -> str:
    """The address for `[engine] scheduler`."""
    return f"tcp://127.0.0.1:{port}"
