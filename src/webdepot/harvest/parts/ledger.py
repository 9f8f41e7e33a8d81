"""Checkpoints of a part that any machine can continue (`ports.Ledger`).

1. The frontier is staged: its journal is complete.
2. Containers sealed since the last checkpoint, journal, log and new bytes of open containers are put into the
   working place, under names with the generation of this taking (`objects`).
3. One transaction makes the checkpoint valid, if the part is still held: number, orders obeyed, links handed
   over, links queued.
4. The frontier is committed.

A death before 3 undoes everything since the last checkpoint, and the next harvester does it again. A death
between 3 and 4 only makes the local frontier useless; the next one is built from the working place.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotDone
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy.exc import TimeoutError as PoolTimeout

from webdepot.container.writer import OPEN_SUFFIX, Sealed
from webdepot.errors import Conflict, RemoteError, WebdepotError
from webdepot.harvest.frontier import LmdbFrontier
from webdepot.harvest.parts import part_statements
from webdepot.harvest.parts.database_link import DatabaseLink
from webdepot.harvest.parts.journal import Journal
from webdepot.harvest.parts.objects import PartObjects

CHECKPOINT = "checkpoint"
"""Key of the number of a checkpoint among the marks of the frontier."""
_AGAIN_S = 0.5


class RowHandover:
    """Links for other parts and from them, through rows (`ports.Handover`)."""

    def __init__(self, link: DatabaseLink) -> None:
        self._link = link
        self._outgoing: dict[int, list[str]] = {}
        self.consumed: list[int] = []
        """Rows whose links were put into the frontier since the last checkpoint."""

    def hand_over(self, owner: int, line: str) -> None:
        self._outgoing.setdefault(owner, []).append(line)

    def take(self) -> list[list[Any]]:
        taken = self._link.take_handed()
        self.consumed += [number for number, _ in taken]
        return [values for _, lines in taken for values in lines]

    def take_outgoing(self) -> dict[int, list[str]]:
        outgoing, self._outgoing = self._outgoing, {}
        return outgoing

    def sync(self) -> None:
        """Do nothing: the checkpoint stores them."""

    def report_idle(self) -> None:
        self._link.report_idle()

    def report_busy(self) -> None:
        self._link.report_busy()

    def is_over(self) -> bool:
        return self._link.is_over()

    def close(self) -> None:
        """Do nothing: nothing is open."""


class PartLedger:
    """Makes the checkpoints of one part. One thread, which waits for each of them."""

    def __init__(
        self,
        objects: PartObjects,
        folder: Path,
        frontier: LmdbFrontier,
        journal: Journal,
        link: DatabaseLink,
        handover: RowHandover,
    ) -> None:
        self._objects = objects
        self._folder = folder
        self._frontier = frontier
        self._journal = journal
        self._link = link
        self._handover = handover
        self._checkpoint = link.lease.checkpoint
        self._marks: Mapping[str, int] = {
            name: size for name, size in frontier.marks().items() if name != CHECKPOINT
        }
        self._sealed: list[Path] = []
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")

    def add_sealed(self, sealed: Sealed) -> None:
        """Have a sealed container stored with the next checkpoint."""
        self._sealed.append(sealed.path)

    def commit(self, marks: Mapping[str, int]) -> None:
        self._link.check()
        number = self._checkpoint + 1
        self._frontier.stage({**marks, CHECKPOINT: number})
        journal, outgoing = self._journal.take(), self._handover.take_outgoing()
        consumed, obeyed = list(self._handover.consumed), int(self._frontier.recall("orders") or b"0")
        lease = self._link.lease

        def store() -> None:
            for path in self._sealed:
                self._objects.put_container(path)
            self._objects.put_checkpoint(number, lease.generation, journal, self._folder, self._marks, marks)
            part_statements.save_checkpoint(
                self._link.statements,
                lease,
                checkpoint=number,
                obeyed=obeyed,
                handed=outgoing,
                consumed=consumed,
            )

        self._insist(store)
        self._frontier.commit_staged()
        self._link.note_checkpoint()
        self._link.forget_handed(consumed)
        self._handover.consumed = []
        ended = [name for name in self._marks if name.endswith(OPEN_SUFFIX) and name not in marks]
        self._checkpoint, self._marks, self._sealed = number, dict(marks), []
        if ended:
            self._executor.submit(self._tidy, ended)

    def finish(self, containers: Iterable[Path]) -> None:
        """Store containers that were sealed after the last checkpoint, and the whole logs."""

        def store() -> None:
            for path in containers:
                self._objects.put_container(path)
            if self._checkpoint:
                self._objects.put_logs(self._folder, self._checkpoint, generation)

        lease = self._link.lease
        is_own = self._checkpoint > lease.checkpoint or not lease.spans
        generation = lease.generation if is_own else lease.spans[-1][0]
        self._insist(store)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _tidy(self, names: Iterable[str]) -> None:
        with suppress(WebdepotError, OSError):  # they are removed with the harvest
            self._objects.delete_segments(names)

    def _insist(self, store: Callable[[], None]) -> None:
        """Call `store`, and repeat it while a server does not answer and the part is ours. Repeating it is
        safe at any point. `PartLost` as soon as the part is no longer certainly ours.
        """

        def try_until_done() -> None:
            while True:
                try:
                    store()
                    return
                except (RemoteError, Conflict, PoolTimeout, OSError) as error:
                    if isinstance(error, RemoteError) and not error.retry:
                        raise
                    self._link.check()
                    time.sleep(_AGAIN_S)

        done: Future[None] = self._executor.submit(try_until_done)
        while True:
            try:
                return done.result(0.2)
            except NotDone:
                if done.done():
                    raise
                self._link.check()
