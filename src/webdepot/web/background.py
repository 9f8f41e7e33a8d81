"""Work that a page starts, that nobody waits for, and that may be lost when the server stops. Other
long-running work is a job (`web/jobs`).
"""

import threading
from collections.abc import Callable

from webdepot.errors import WebdepotError


class BackgroundRuns:
    """Work in threads, one run at a time for each name. The error of the last run is kept."""

    def __init__(self) -> None:
        self._running: dict[str, threading.Thread] = {}
        self.errors: dict[str, str] = {}

    def start(self, name: str, work: Callable[[], object]) -> None:
        """Start the work, unless some is already running under this name."""
        if self.is_running(name):
            return
        self.errors.pop(name, None)
        thread = threading.Thread(target=self._run, args=(name, work), name=name, daemon=True)
        self._running[name] = thread
        thread.start()

    def is_running(self, name: str) -> bool:
        return name in self._running and self._running[name].is_alive()

    def running(self) -> list[str]:
        """The names under which work is running."""
        return sorted(name for name in self._running if self.is_running(name))

    def _run(self, name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except (WebdepotError, OSError) as error:
            self.errors[name] = str(error)
