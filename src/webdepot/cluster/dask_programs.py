"""A Dask scheduler and its workers on this machine."""

import sys
from collections.abc import Mapping

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


def address_of(port: int) -> str:
    """The address for `[engine] scheduler`."""
    return f"tcp://127.0.0.1:{port}"
