"""How much a query may cost that anybody can ask: processor time in the index, until the client leaves.

The interface that answers a request sets the budget (`spending`); the index charges it (`charge`), wherever
in the program the query comes from. Without a budget nothing is limited: commands take the time they need.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from webdepot.errors import TooExpensive


class QueryBudget:
    """Processor seconds for all queries of one request. Threads may pass it on, one at a time."""

    def __init__(self, cpu_s: float) -> None:
        self._cpu_s = self._left_s = cpu_s
        self._is_cancelled = False

    def renew(self) -> None:
        """Start again, for the next part of a long answer."""
        self._left_s = self._cpu_s

    def cancel(self) -> None:
        """End the queries of this request: nobody waits for them. May be called from any thread."""
        self._is_cancelled = True

    def is_spent(self, since_s: float) -> bool:
        """Whether the query that began at this moment of `time.thread_time` has to end."""
        return self._is_cancelled or time.thread_time() - since_s > self._left_s

    def charge(self, since_s: float) -> None:
        self._left_s -= time.thread_time() - since_s

    def check(self) -> None:
        """TooExpensive if nothing is left."""
        if self._is_cancelled or self._left_s <= 0:
            raise TooExpensive(
                "This query takes too long to answer. Ask for less: a narrower address, a shorter time, or "
                "fewer results at once."
            )


_current: ContextVar[QueryBudget | None] = ContextVar("query budget", default=None)


def current() -> QueryBudget | None:
    """The budget of the request that is being answered; None if there is none."""
    return _current.get()


@contextmanager
def spending(budget: QueryBudget) -> Iterator[None]:
    """Charge everything in the block, and in threads that it waits for, to a budget."""
    token = _current.set(budget)
    try:
        yield
    finally:
        _current.reset(token)
