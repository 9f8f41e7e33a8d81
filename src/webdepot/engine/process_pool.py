"""`ProcessEngine`: run one function over many items, on the cores of this machine.

Each item runs in a process of a pool. If a process dies (out of memory, a crash in a C library), only its
item fails, not the job: the pool is replaced, and the other items continue.

1. At most two items per process are submitted at a time, so that a long list is never held in memory.
2. When the pool breaks, it is unknown which of the items in flight caused it. They are tried again one by
   one, each in a new pool, and only the one that fails again is reported.

Processes start with `forkserver`: threads and open databases of the parent are not copied. No process is
started before the first item. The fork server preloads nothing: a library with its own runtime (Siegfried's
Go) that is imported before a fork hangs after it.
"""

import ctypes
import multiprocessing
import multiprocessing.connection
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import islice

from webdepot.errors import WebdepotError
from webdepot.ports.engine import Done, Item, Result

_ITEMS_PER_PROCESS = 2
_M_ARENA_MAX = -8
"""A parameter of glibc's mallopt."""


class ProcessEngine:
    """The `Engine` of one machine; threads may share it. `workers` 0 means one per core."""

    def __init__(self, workers: int = 0) -> None:
        self._workers = workers or os.cpu_count() or 1
        self._pool: ProcessPoolExecutor | None = None
        self._lock = threading.RLock()

    @property
    def workers(self) -> int:
        return self._workers

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Done[Item, Result]]:
        waiting = iter(items)
        running: dict[Future[Result], Item] = {}
        try:
            while True:
                for item in islice(waiting, self._workers * _ITEMS_PER_PROCESS - len(running)):
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
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self, function: Callable[[Item], Result], item: Item) -> Future[Result]:
        with self._lock:
            if self._pool is None:
                self._pool = _pool(self._workers)
            try:
                return self._pool.submit(function, item)
            except BrokenProcessPool:
                # A process died while it was idle.
                self.close()
                self._pool = _pool(self._workers)
                return self._pool.submit(function, item)

    def _one_by_one(
        self, function: Callable[[Item], Result], broken: dict[Future[Result], Item]
    ) -> Iterator[Done[Item, Result]]:
        """The items in flight when the pool broke: finished results count, the others are tried again."""
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
        workers, mp_context=multiprocessing.get_context("forkserver"), initializer=_prepare_worker
    )


def _prepare_worker() -> None:
    share_one_heap()  # before the first thread, which would get its own
    die_with_the_parent()


def die_with_the_parent() -> None:
    """In a worker: end with the parent, which cannot stop it when it is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_exit, args=(parent.sentinel,), daemon=True).start()


def share_one_heap() -> None:
    """In a worker: let all threads allocate from one heap. The C library gives each thread its own, and keeps
    the free end of such a heap after the thread has ended, even if it is asked to return free memory: a
    worker that uses threads for each item would grow with the number of items.
    """
    with suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def _wait_and_exit(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)


def _is_lost(future: "Future[Result]") -> bool:
    """Whether the item was not done because the pool broke, or was cancelled when it was closed."""
    return future.cancelled() or isinstance(future.exception(), BrokenProcessPool)


def _done(item: Item, future: "Future[Result]") -> Done[Item, Result]:
    error = future.exception()
    if error is None:
        return Done(item, future.result())
    if isinstance(error, BrokenProcessPool):
        return Done(
            item, None, "The process that worked on it died (out of memory, or a crash in a library)."
        )
    is_plain = isinstance(error, (WebdepotError, OSError))
    return Done(item, None, str(error) if is_plain else f"{type(error).__name__}: {error}")
