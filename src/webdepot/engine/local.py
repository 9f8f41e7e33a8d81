"""`ProcessEngine`: one function over many items, on the cores of this machine.

Each item runs in a process of a pool; a process that dies (killed for memory, a crash in a C library) costs
the item it worked on, not the job: the pool is made anew and the others go on.

1. At most two items per process are handed out at a time, so that a long list is never held in memory.
2. When the pool breaks, nobody can say which of the items in flight did it. They are tried again one by one,
   each in a pool of its own, and only the one that dies there is reported.

Processes start with `forkserver`: threads and open databases of the parent are not copied. None is started
before the first item. The fork server preloads nothing: a library with a runtime of its own (Siegfried's Go)
that is imported before a fork hangs after it.
"""

import multiprocessing
import multiprocessing.connection
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

from webdepot.errors import WebdepotError
from webdepot.ports import Done, Item, Result

_IN_HAND = 2


class ProcessEngine:
    """The `Engine` of one machine. `workers` 0 means one per core. One job at a time."""

    def __init__(self, workers: int = 0) -> None:
        self._workers = workers or os.cpu_count() or 1
        self._pool: ProcessPoolExecutor | None = None

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Done[Item, Result]]:
        waiting = iter(items)
        running: dict[Future[Result], Item] = {}
        try:
            while True:
                for item in islice(waiting, self._workers * _IN_HAND - len(running)):
                    running[self._submit(function, item)] = item
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    if _is_lost(future):
                        broken, running = running, {}
                        yield from self._one_by_one(function, broken)
                        break
                    yield _done(running.pop(future), future)
        finally:
            for future in running:
                future.cancel()

    def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self, function: Callable[[Item], Result], item: Item) -> Future[Result]:
        if self._pool is None:
            self._pool = _pool(self._workers)
        try:
            return self._pool.submit(function, item)
        except BrokenProcessPool:
            # A process died while it had nothing to do, or between two hand-outs.
            self.close()
            self._pool = _pool(self._workers)
            return self._pool.submit(function, item)

    def _one_by_one(
        self, function: Callable[[Item], Result], broken: dict[Future[Result], Item]
    ) -> Iterator[Done[Item, Result]]:
        """What was in flight when the pool broke: finished results count, the rest is tried again, each by
        itself.
        """
        self.close()
        for future, item in broken.items():
            if future.done() and not _is_lost(future):
                yield _done(item, future)
                continue
            with _pool(1) as alone:
                again = alone.submit(function, item)
                wait([again])
                yield _done(item, again)


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("forkserver"), initializer=die_with_the_parent
    )


def die_with_the_parent() -> None:
    """In a worker: a killed parent cannot tell it to end, and it would go on, or wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_exit, args=(parent.sentinel,), daemon=True).start()


def _wait_and_exit(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)


def _is_lost(future: "Future[Result]") -> bool:
    """Whether the pool broke before the item was done: told so, or given up when the broken pool was closed."""
    return future.cancelled() or isinstance(future.exception(), BrokenProcessPool)


def _done(item: Item, future: "Future[Result]") -> Done[Item, Result]:
    error = future.exception()
    if error is None:
        return Done(item, future.result())
    if isinstance(error, BrokenProcessPool):
        return Done(
            item, None, "The process that worked on it died (out of memory, or a crash in a library)."
        )
    words = str(error) if isinstance(error, (WebdepotError, OSError)) else f"{type(error).__name__}: {error}"
    return Done(item, None, words)
