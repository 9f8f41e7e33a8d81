"""Counts of each host over all runs of a harvest: for limits per host, live numbers and reports.

They are stored in the frontier (`host:NAME`), so a crash undoes them together with what they count. Only
hosts with recent requests are in memory.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from heapq import nlargest

from webdepot.ports.harvest import Frontier

MOST_IN_MEMORY = 20_000
MOST_SHOWN = 20


@dataclass(slots=True)
class HostCounts:
    fetched: int = 0
    """Answers kept, without robots.txt."""
    pages: int = 0
    """Of those, HTML pages that are not part of another page."""
    bytes: int = 0
    errors: int = 0
    """Answers of 400 and above, and addresses that could not be fetched."""
    refused: int = 0
    """Refused by robots.txt, a rule or a limit."""
    duplicates: int = 0
    not_found: int = 0


def most_of(hosts: Mapping[str, HostCounts]) -> list[str]:
    """The hosts with the most pages, most first."""
    return nlargest(MOST_SHOWN, hosts, key=lambda host: hosts[host].fetched)


class HostBook:
    """The counts of all hosts of a harvest."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._counts: dict[str, HostCounts] = {}
        self._changed: set[str] = set()

    def of(self, host: str) -> HostCounts:
        """The counts of a host, to read."""
        counts = self._counts.get(host)
        if counts is None:
            counts = HostCounts(**json.loads(self._frontier.recall(f"host:{host}") or b"{}"))
            self._counts[host] = counts
        return counts

    def to_change(self, host: str) -> HostCounts:
        """The counts of a host, to add to; the next `save` writes them."""
        self._changed.add(host)
        return self.of(host)

    def active(self) -> dict[str, HostCounts]:
        """Hosts that are in memory, with their counts."""
        return dict(self._counts)

    def save(self) -> None:
        """Remember the changed counts in the frontier; called before each commit."""
        for host in self._changed:
            self._frontier.remember(f"host:{host}", json.dumps(asdict(self._counts[host])).encode())
        self._changed.clear()
        if len(self._counts) > MOST_IN_MEMORY:
            self._counts.clear()
