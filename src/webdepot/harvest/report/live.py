"""The numbers of a running harvest, for every process that may read its folder: a command, the portal.

    harvests/ID/live.json    one JSON object, replaced as a whole about once a second; not made durable

The crawl gives its progress to a `Publisher`; `read` returns the last numbers written. After a crash the file
stays, with the time of its last write.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from webdepot.harvest.host_book import most_of
from webdepot.harvest.report.estimate import Estimate, EstimateBasis, Sampler
from webdepot.harvest.report.pace import HarvestPace, with_pages
from webdepot.harvest.report.result import CrawlNumbers, CrawlProgress, HostWait
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
    waits: tuple[HostWait, ...] = ()
    """Hosts that are tried again later, the next one first."""
    pace: HarvestPace = field(default_factory=HarvestPace)
    """Pages over the time of the harvest."""


class Publisher:
    """Writes `live.json` when progress comes, at most once in `every_s`."""

    def __init__(self, folder: Path, clock: Callable[[], datetime], *, every_s: float = EVERY_S) -> None:
        self._path = folder / FILE_NAME
        self._clock = clock
        self._every_s = every_s
        self._due_s = 0.0
        self._sampler = Sampler()
        before = read(folder)
        self._pace = before.pace if before is not None else HarvestPace()
        self._last: CrawlProgress | None = None

    def __call__(self, progress: CrawlProgress) -> None:
        self._last = progress
        self._sampler.add(progress.done, progress.seen)
        self._pace = with_pages(self._pace, progress.elapsed_s, progress.pages)
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
        estimate = self._sampler.estimate(progress.done, progress.waiting + progress.in_flight)
        live = numbers_of(progress, at=self._clock(), estimate=estimate, pace=self._pace)
        new = self._path.with_suffix(".new")
        try:
            new.write_text(json.dumps(asdict(live), ensure_ascii=False, default=to_iso), encoding="utf-8")
            new.replace(self._path)
        except OSError:
            new.unlink(missing_ok=True)


def numbers_of(
    progress: CrawlProgress,
    *,
    at: datetime,
    estimate: Estimate | None = None,
    pace: HarvestPace | None = None,
) -> LiveNumbers:
    """The numbers to show for the progress of a crawl."""
    numbers: dict[str, Any] = {item.name: getattr(progress, item.name) for item in fields(CrawlNumbers)}
    return LiveNumbers(
        **numbers | {"refusals": dict(progress.refusals)},  # `asdict` cannot copy a Counter
        at=at,
        estimate=estimate or Sampler().estimate(progress.done, progress.waiting + progress.in_flight),
        hosts=tuple(_host_numbers(host, progress) for host in most_of(progress.hosts)),
        waits=tuple(progress.waits),
        pace=pace or HarvestPace(),
    )


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
        waits = tuple(
            HostWait(**wait | {"next_at": from_iso(wait["next_at"])}) for wait in values.get("waits", ())
        )
        pace = values.get("pace", {})
        parts = {
            "at": from_iso(values["at"]),
            "estimate": estimate,
            "hosts": hosts,
            "waits": waits,
            "pace": HarvestPace(**pace | {"pages": tuple(pace.get("pages", ()))}),
        }
        return LiveNumbers(**values | parts)
    except (OSError, ValueError, KeyError, TypeError):
        return None
