"""The harvester: takes parts of harvests and works on them, each in a process of its own.

Any number of harvesters run on any number of machines. They need the database, the working place, and a home
for files that can be lost. A harvester that is stopped gives its parts back at a checkpoint; the parts of one
that was killed are taken by others when their leases have ended.
"""

import logging
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from webdepot import leases
from webdepot.archive import Archive
from webdepot.engine.process_pool import die_with_the_parent
from webdepot.errors import ConfigError, WebdepotError
from webdepot.harvest.browser import launch
from webdepot.harvest.parts import harvester_rows, part_rows, server_rows
from webdepot.harvest.parts.part_rows import PartLease, PartLost, PartState
from webdepot.services.harvest import part_run
from webdepot.version import VERSION

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

log = logging.getLogger(__name__)
_LOOK_EVERY_S = 0.5
_TIDY_EVERY_S = 10.0
_SHUTDOWN_WAIT_S = 30.0
_AFTER_FAILURE_S = 5.0
"""How long nothing is taken after a part failed, so that another machine can try it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunningPart:
    process: "BaseProcess"
    lease: PartLease
    news: Connection
    """A message through it has the part ask for new orders at once."""


class Harvester:
    """One for each process. `run` works until it is stopped."""

    def __init__(
        self,
        archive: Archive,
        *,
        places: int,
        browser: bool,
        on_over: Callable[[str], None] = lambda harvest: None,
    ) -> None:
        """`on_over` gets the ids of harvests that have ended while no process watches them."""
        if not archive.config.cluster.harvesters:
            raise ConfigError(
                "Harvests are run where they are started. Set [cluster] harvesters = true in webdepot.toml "
                "to offer them to harvesters."
            )
        if browser:
            config = archive.config.harvest
            launch.get_program(config.browser, sandbox=config.browser_sandbox)
        self._archive = archive
        self._places = places
        self._browser = browser
        self._on_over = on_over
        self._name = leases.name_holder()
        self._machine = archive.config.cluster.machine_name
        self._line = archive.database.line()
        self._running: list[_RunningPart] = []
        self._orders = 0
        """Orders that were given to the harvests of our parts, when we last looked."""
        self._tidy_at_s = self._take_at_s = 0.0
        # Children are copies of a process that has loaded the crawler: they begin at once.
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(["webdepot.services.harvest.part_run"])

    def run(self, stop: threading.Event) -> None:
        """Take parts while places are free, until stopped. What fails is logged, and tried again."""
        while not stop.is_set():
            try:
                self.run_once()
            except (WebdepotError, SQLAlchemyError) as error:
                log.warning("the harvester could not look for parts", extra={"error": str(error)})
            except Exception:
                log.exception("the harvester failed; it continues")
            stop.wait(_LOOK_EVERY_S)
        self.close()

    def run_once(self) -> None:
        """Look once: ended processes, parts that can be taken, harvests that are over."""
        for part in [each for each in self._running if not each.process.is_alive()]:
            part.process.join()
            if part.process.exitcode:
                self._take_at_s = time.monotonic() + _AFTER_FAILURE_S
                self._give_back(part.lease, f"Its process ended with {part.process.exitcode}.")
            self._running.remove(part)
            part.process.close()
            part.news.close()
        if time.monotonic() >= self._tidy_at_s:
            self._tidy_at_s = time.monotonic() + min(_TIDY_EVERY_S, self._archive.config.cluster.lease_s / 3)
            self._tidy()
        while self._look() and len(self._running) < self._places and self._has_room():
            taken = self._take()
            if taken is None:
                return
            self._start(taken)

    def _look(self) -> bool:
        """Whether there may be a part to take. New orders are passed on to our parts."""
        seen = part_rows.look(self._line, {part.lease.harvest for part in self._running})
        if seen.orders != self._orders:
            self._orders = seen.orders
            for part in self._running:
                with suppress(OSError):  # it has ended
                    part.news.send_bytes(b"order")
        return seen.can_take

    def close(self) -> None:
        """Give all parts back."""
        for part in self._running:
            if part.process.is_alive() and part.process.pid is not None:
                os.kill(part.process.pid, signal.SIGTERM)
        for part in self._running:
            part.process.join(_SHUTDOWN_WAIT_S)
            if part.process.is_alive():
                part.process.kill()
                part.process.join()
            part.news.close()
        self._running.clear()
        self._line.close()
        try:
            with self._archive.database.leasing() as connection:
                harvester_rows.remove(connection, self._name)
        except (WebdepotError, SQLAlchemyError) as error:
            log.warning("the harvester could not sign off", extra={"error": str(error)})

    @property
    def running(self) -> int:
        return len(self._running)

    def _has_room(self) -> bool:
        least_bytes = self._archive.config.harvest.least_free_bytes
        is_due = time.monotonic() >= self._take_at_s
        return is_due and shutil.disk_usage(self._archive.home).free >= least_bytes

    def _take(self) -> PartLease | None:
        with self._archive.database.leasing() as connection:
            return part_rows.take(
                connection,
                holder=leases.name_holder(),
                machine=self._machine,
                lease_s=self._archive.config.cluster.lease_s,
                has_browser=self._browser,
            )

    def _give_back(self, lease: PartLease, reason: str) -> None:
        """Give back the part of a process that has died, unless it did so itself."""
        log.warning("the process of a part has died", extra={"part": lease.part, "error": reason})
        with suppress(PartLost), self._archive.database.leasing() as connection:
            part_rows.release(connection, lease, PartState.WAITING, reason=reason)

    def _start(self, lease: PartLease) -> None:
        received, news = self._processes.Pipe(duplex=False)
        process = self._processes.Process(
            target=_work,
            args=(self._archive.home, lease, received),
            name=f"part-{lease.harvest}-{lease.part}",
        )
        process.start()
        received.close()  # only its process reads it
        self._running.append(_RunningPart(process=process, lease=lease, news=news))

    def _tidy(self) -> None:
        """Record that this harvester is alive, end harvests that nobody watches, remove leftovers."""
        with self._archive.database.leasing() as connection:
            harvester_rows.show(
                connection,
                self._name,
                machine=self._machine,
                version=VERSION,
                places=self._places,
                browser=self._browser,
                free_bytes=shutil.disk_usage(self._archive.home).free,
            )
            server_rows.forget_old(connection)
            over = part_rows.find_unwatched(connection)
            open_harvests = part_rows.harvests_of(connection)
        for harvest in over:
            self._on_over(harvest)
        folder = self._archive.home / "parts"
        for path in folder.iterdir() if folder.exists() else ():
            if path.name not in open_harvests:
                shutil.rmtree(path, ignore_errors=True)


def _work(home: Path, lease: PartLease, news: Connection) -> None:
    """Work on a part in a process of its own, which ends with its harvester."""
    die_with_the_parent()
    with Archive.open(home, agent="harvester") as archive:
        try:
            part_run.run(archive, lease, news)
        except PartLost as error:
            log.warning("a part was taken away", extra={"error": str(error)})
        except (WebdepotError, OSError) as error:
            log.warning("a part failed", extra={"part": lease.part, "error": str(error)})
            os._exit(1)
    os._exit(0)  # a request to a server that is away may still hold a thread
