"""The numbers of a running harvest, for every process that may read its folder: a command, the portal.

    harvests/ID/live.json    one JSON object, replaced as a whole about once a second; not made durable

The crawl gives its progress to a `Publisher`; `read` returns the last numbers written. After a crash the file
stays, with the time of its last write.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from webdepot.harvest.host_book import most_of
from webdepot.harvest.report.estimate import Estimate, EstimateBasis, Sampler
from webdepot.harvest.report.result import CrawlNumbers, CrawlProgress
from webdepot.times import from_iso, to_iso

FILE_NAME = "live.json"
EVERY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostNumbers:
    host: str
    fetched: int
    size_bytes: int
    errors: int
    refused: int
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveNumbers(CrawlNumbers):
    at: datetime
    estimate: Estimate
    hosts: tuple[HostNumbers, ...] = ()
    """The hosts with the most documents."""


class Publisher:
    """Writes `live.json` when progress comes, at most once in `every_s`."""

    def __init__(self, folder: Path, clock: Callable[[], datetime], *, every_s: float = EVERY_S) -> None:
        self._path = folder / FILE_NAME
        self._clock = clock
        self._every_s = every_s
        self._due_s = 0.0
        self._sampler = Sampler()
        self._last: CrawlProgress | None = None

    def __call__(self, progress: CrawlProgress) -> None:
        self._last = progress
        self._sampler.add(progress.done, progress.seen)
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._due_s = now_s + self._every_s
            self.write(progress)

    def close(self) -> None:
        """Write the last numbers, even if the interval is not over."""
        if self._last is not None:
            self.write(self._last)

    def write(self, progress: CrawlProgress) -> None:
        """Write now. A full disk does not stop the harvest here: its next checkpoint will report that."""
        numbers: dict[str, Any] = {item.name: getattr(progress, item.name) for item in fields(CrawlNumbers)}
        live = LiveNumbers(
            **numbers | {"refusals": dict(progress.refusals)},  # `asdict` cannot copy a Counter
            at=self._clock(),
            estimate=self._sampler.estimate(progress.done, progress.waiting + progress.in_flight),
            hosts=tuple(_host_numbers(host, progress) for host in most_of(progress.hosts)),
        )
        new = self._path.with_suffix(".new")
        try:
            new.write_text(
                json.dumps(asdict(live) | {"at": to_iso(live.at)}, ensure_ascii=False), encoding="utf-8"
            )
            new.replace(self._path)
        except OSError:
            new.unlink(missing_ok=True)


def _host_numbers(host: str, progress: CrawlProgress) -> HostNumbers:
    counts = progress.hosts[host]
    return HostNumbers(
        host=host,
        fetched=counts.fetched,
        size_bytes=counts.bytes,
        errors=counts.errors,
        refused=counts.refused,
        waiting=progress.waiting_at.get(host, 0),
    )


def counts_of(numbers: CrawlNumbers) -> dict[str, int]:
    """The numbers as the counts of a harvest."""
    return {
        "fetched": numbers.fetched,
        "bytes": numbers.size_bytes,
        "errors": numbers.errors,
        "robots_refused": numbers.robots_refused,
        "waiting": numbers.waiting + numbers.in_flight,
    }


def read(folder: Path) -> LiveNumbers | None:
    """The last numbers; None if there are none, or the file cannot be read."""
    try:
        values: dict[str, Any] = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
        estimate = Estimate(**values["estimate"] | {"basis": EstimateBasis(values["estimate"]["basis"])})
        hosts = tuple(HostNumbers(**host) for host in values["hosts"])
        return LiveNumbers(**values | {"at": from_iso(values["at"]), "estimate": estimate, "hosts": hosts})
    except (OSError, ValueError, KeyError, TypeError):
        return None
