"""`DaskEngine`: run one function over many items, on the workers of a Dask cluster (https://distributed.dask.org).

A scheduler and its workers run elsewhere; this process is a client. Function and item travel as one pickle,
so that Dask does not look into them, and come back as a pickle of the result or as an error message: an error
of an item is never an error of the cluster.

1. At most two items per worker are submitted at a time, so that a long list is never held in memory.
2. When a worker dies, Dask repeats its items elsewhere, and gives up those that were on too many dying
   workers. It is unknown which of them was the cause. When the others are done, those are tried again one by
   one, and only the one that is given up again is reported.
3. When the scheduler is gone, the whole call fails, and its caller repeats it later.

Anyone who can connect to the scheduler can run any code on the workers: keep it in a closed network, or
behind certificates (`tls://`).
"""

import logging
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import distributed
from distributed.client import Future, FutureCancelledError, FuturesCancelledError
from distributed.scheduler import KilledWorker

from webdepot.errors import RemoteError, WebdepotError
from webdepot.ports.engine import Done, Item, Result
from webdepot.version import VERSION

_ITEMS_PER_WORKER = 2
_UNFINISHED = ("pending", "lost")
"""States of a future that is being computed; `lost` means again, because the worker with its result died."""
_PATIENCE_S = 30
"""How long to wait for the scheduler, and for its first worker."""
_ONE_AT_A_TIME = threading.Lock()
"""In a worker: some libraries that read foreign files are not made for threads."""
_DIED = "The process that worked on it died (out of memory, or a crash in a library)."


class DaskEngine:
    """The `Engine` of a cluster; threads may share it. RemoteError if the scheduler does not answer, or has
    no workers. Nothing is connected before the first item.
    """

    def __init__(self, scheduler: str) -> None:
        self._scheduler = scheduler
        self._client: distributed.Client | None = None
        self._lock = threading.Lock()

    @property
    def workers(self) -> int:
        client = self._connected()
        try:
            threads: dict[str, int] = client.nthreads()
        except OSError as error:
            raise self._lost() from error
        return max(1, sum(threads.values()))

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Done[Item, Result]]:
        waiting = iter(items)
        running: dict[Future, Item] = {}
        suspects: list[Item] = []
        try:
            while True:
                for item in islice(waiting, self._wanted(running)):
                    try:
                        running[self._submit(function, item)] = item
                    except _CannotTravel as error:
                        yield Done(item, None, str(error))
                if not running:
                    break
                for future in self._wait(list(running)):
                    if future.status in _UNFINISHED:
                        continue
                    item = running.pop(future)
                    done: Done[Item, Result] | None = self._find_done(item, future)
                    if done is not None:
                        yield done
                    else:
                        suspects.append(item)
            for item in suspects:
                yield self._alone(function, item)
        finally:
            for future in running:
                if future.client.status == "running":  # unless the scheduler is lost
                    future.cancel()

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _wanted(self, running: dict[Future, Any]) -> int:
        """How many more items to submit. The cluster is not asked when enough are running."""
        return max(0, self.workers * _ITEMS_PER_WORKER - len(running))

    def _alone(self, function: Callable[[Item], Result], item: Item) -> Done[Item, Result]:
        future = self._submit(function, item)
        while future.status in _UNFINISHED:
            self._wait([future])
        return self._find_done(item, future) or Done(item, None, _DIED)

    def _submit(self, function: Callable[[Item], Result], item: Item) -> Future:
        try:
            packed = pickle.dumps((function, item), pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise _CannotTravel(f"{type(error).__name__}: {error}") from error
        return self._connected().submit(call, packed, VERSION, pure=False)

    def _wait(self, futures: list[Future]) -> list[Future]:
        """Those of these futures that have ended, at least one of them."""
        try:
            with self._connected().as_current():
                return list(distributed.wait(futures, return_when="FIRST_COMPLETED").done)
        except (FutureCancelledError, FuturesCancelledError) as error:
            raise self._lost() from error

    def _find_done(self, item: Item, future: Future) -> Done[Item, Result] | None:
        """The outcome of an item whose future has ended; None if Dask gave it up."""
        try:
            packed, error = future.result()  # computed again if its worker dies at this moment
        except KilledWorker:
            return None
        except (Exception, FutureCancelledError) as failure:
            raise self._lost() from failure
        # The workers are ours: they run whatever we send them.
        return Done(item, None, error) if error else Done(item, pickle.loads(packed))  # noqa: S301

    def _connected(self) -> "distributed.Client":
        with self._lock:
            if self._client is None:
                _be_quiet()
                client = None
                try:
                    client = distributed.Client(self._scheduler, timeout=_PATIENCE_S, set_as_default=False)
                    client.wait_for_workers(1, timeout=_PATIENCE_S)
                except (OSError, ValueError) as error:
                    if client is not None:
                        client.close()
                        raise RemoteError(
                            f"The Dask scheduler {self._scheduler} has no workers. Start them on each "
                            "machine: webdepot batch",
                            retry=True,
                        ) from error
                    raise RemoteError(
                        f"The Dask scheduler {self._scheduler} does not answer. Start it with `dask "
                        "scheduler`, or correct [engine] scheduler in webdepot.toml.",
                        retry=True,
                    ) from error
                self._client = client
            return self._client

    def _lost(self) -> RemoteError:
        self.close()
        return RemoteError(
            f"The Dask scheduler {self._scheduler} was stopped during the work. Run the same command again: "
            "what is done is not repeated.",
            retry=True,
        )


class _CannotTravel(Exception):
    """An item, or the function, cannot be pickled."""


def call(packed: bytes, version: str) -> tuple[bytes, str]:
    """In a worker: the pickled result of the function for the item, or an error message."""
    if version != VERSION:
        return b"", f"The worker has Webdepot {VERSION}, and {version} is needed. Install it there."
    try:
        function, item = pickle.loads(packed)  # noqa: S301 - the scheduler decides what we run anyway
        with _ONE_AT_A_TIME:
            return pickle.dumps(function(item), pickle.HIGHEST_PROTOCOL), ""
    except (WebdepotError, OSError) as error:
        return b"", str(error) or type(error).__name__
    except Exception as error:
        return b"", f"{type(error).__name__}: {error}"


def _be_quiet() -> None:
    """Switch off Dask's logging: it writes a page for each failed connection. Our errors are one sentence."""
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)
