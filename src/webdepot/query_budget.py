"""Limits on the processor time for requests that anyone can send. The work also ends when the client
disconnects.

The interface that answers a request sets the budget for the thread that does the work (`spend`). Everything
in that thread counts. Code that may take long checks the budget from time to time (`check`), wherever in the
program it is called from; queries of SQLite are interrupted (`limited`), those of PostgreSQL have the rest of
the budget as their time limit. Without a budget nothing is limited: commands take the time they need.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from webdepot.errors import TooExpensive
from webdepot.reasons import said

_STEPS = 20_000
"""Instructions of SQLite between two checks of the budget: about a millisecond."""
Result = TypeVar("Result")


class QueryBudget:
    """Processor seconds for one request. Threads may pass it on, one at a time."""

    def __init__(self, cpu_s: float) -> None:
        self._cpu_s = self._left_s = cpu_s
        self._since_s: float | None = None
        """`time.thread_time` when the current thread began to spend the budget; None if no thread does."""
        self._is_cancelled = False

    def renew(self) -> None:
        """Start again, for the next part of a long answer."""
        self._left_s = self._cpu_s

    def cancel(self) -> None:
        """End the work for this request because its client is gone. May be called from any thread."""
        self._is_cancelled = True

    def is_spent(self) -> bool:
        """Whether nothing is left. Call it in the thread that spends the budget."""
        return self.left_s() <= 0

    def left_s(self) -> float:
        """Processor seconds that are left. Call it in the thread that spends the budget."""
        spent_s = 0.0 if self._since_s is None else time.thread_time() - self._since_s
        return 0.0 if self._is_cancelled else max(0.0, self._left_s - spent_s)

    def check(self) -> None:
        """TooExpensive if nothing is left."""
        if self.is_spent():
            raise too_expensive()

    def begin(self) -> None:
        """Start to charge the time of this thread to the budget."""
        self._since_s = time.thread_time()

    def end(self) -> None:
        """Stop charging the time of this thread to the budget."""
        if self._since_s is not None:
            self._left_s -= time.thread_time() - self._since_s
            self._since_s = None


def too_expensive() -> TooExpensive:
    return TooExpensive(
        said(
            "query_expensive",
            "This query takes too long to answer. Ask for less: a narrower address, a shorter time, "
            "fewer or rarer words, or fewer results at once.",
        )
    )


_current: ContextVar[QueryBudget | None] = ContextVar("query budget", default=None)


def check() -> None:
    """TooExpensive if the budget of the request that is being answered is spent."""
    budget = _current.get()
    if budget is not None:
        budget.check()


def left_s() -> float | None:
    """Processor seconds that are left for the request that is being answered; None if nothing limits it."""
    budget = _current.get()
    return None if budget is None else budget.left_s()


@contextmanager
def spending(budget: QueryBudget | None) -> Iterator[None]:
    """Charge the time of this thread in the block to a budget; None means that nothing is limited."""
    token = _current.set(budget)
    if budget is not None:
        budget.begin()
    try:
        yield
    finally:
        if budget is not None:
            budget.end()
        _current.reset(token)


def spend(budget: QueryBudget, work: Callable[[], Result]) -> Result:
    """Do work and charge its time to a budget; returns its result. Call it in the thread that works."""
    with spending(budget):
        return work()


@contextmanager
def limited(connection: sqlite3.Connection) -> Iterator[None]:
    """Interrupt the queries of a connection when the budget of the request is spent: TooExpensive."""
    budget = _current.get()
    if budget is None:
        yield
        return
    budget.check()
    connection.set_progress_handler(budget.is_spent, _STEPS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            budget.check()
        raise
    finally:
        connection.set_progress_handler(None, 0)
