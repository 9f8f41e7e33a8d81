"""Runs batch work on several cores or machines."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Done(Generic[Item, Result]):
    """The outcome of one item: a result, or an error message."""

    item: Item
    result: Result | None
    error: str = ""


class Engine(Protocol):
    """Runs one function over many items, on several cores or machines. The function must be importable, its
    arguments and results must be picklable. When a worker dies, it may be run again for the same item: what
    it writes can be written twice. Threads may share an engine.
    """

    @property
    def workers(self) -> int:
        """How many items are worked on at the same time."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Done[Item, Result]]:
        """Outcomes in the order they are ready. The failure of an item is reported in its `Done`; the others
        continue. RemoteError if the cluster cannot be reached.
        """

    def close(self) -> None: ...
