"""A server whose limits are smaller than usual, so that tests reach them."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from museum import SERVER, Served


@contextmanager
def serving_with(home: Path, limits: str) -> Iterator[Served]:
    """A server in its own process that runs these Python statements first."""
    command = [sys.executable, "-c", f"{limits}\n{SERVER}", str(home)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        portal, replay = json.loads(process.stdout.readline())
        yield Served(portal, replay, home, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        process.stdout.close()
