"""How much came from each host, over all runs of a harvest: for limits per host, live numbers and reports.

Counts are facts of the frontier (`host:NAME`), so a crash takes them back together with what they count. In
memory are only the hosts asked lately.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from heapq import nlargest

from webdepot.ports import Frontier

MOST_IN_MEMORY = 20_000


@dataclass(slots=True)
class HostCounts:
    fetched: int = 0
    """Answers kept, without robots.txt."""
    bytes: int = 0
    errors: int = 0
    """Answers of 400 and above, and addresses that could not be fetched."""
    refused: int = 0
    """By robots.txt or a limit."""
    duplicates: int = 0
    not_found: int = 0


_NAMES = tuple(item.name for item in fields(HostCounts))


MOST_SHOWN = 20


def most_of(hosts: Mapping[str, HostCounts]) -> list[str]:
    """Hosts of which most came, those first."""
    return nlargest(MOST_SHOWN, hosts, key=lambda host: hosts[host].fetched)


class HostBook:
    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._counts: dict[str, HostCounts] = {}
        self._changed: set[str] = set()

    def of(self, host: str) -> HostCounts:
        """To be read."""
        counts = self._counts.get(host)
        if counts is None:
            counts = HostCounts(**json.loads(self._frontier.recall(f"host:{host}") or b"{}"))
            self._counts[host] = counts
        return counts

    def to_change(self, host: str) -> HostCounts:
        """To be added to; written with the next `save`."""
        self._changed.add(host)
        return self.of(host)

    def active(self) -> dict[str, HostCounts]:
        """Hosts of which something came lately."""
        return dict(self._counts)

    def save(self) -> None:
        """Before each commit of the frontier."""
        for host in self._changed:
            counts = self._counts[host]  # dataclasses.asdict takes five times as long
            self._frontier.remember(
                f"host:{host}", json.dumps({name: getattr(counts, name) for name in _NAMES}).encode()
            )
        self._changed.clear()
        if len(self._counts) > MOST_IN_MEMORY:
            self._counts.clear()
