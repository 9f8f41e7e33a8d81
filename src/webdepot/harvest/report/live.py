"""The numbers of a running harvest, for everybody who may read its folder: a command, the portal, another
process.

    harvests/ID/live.json    one JSON object, put in its place whole about once a second; not made durable: it is about now

The crawl tells its progress to a `Publisher`; `read` gives the last it wrote. A file left by a crash is as
old as it says.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from webdepot.harvest.host_book import most_of
from webdepot.harvest.report.estimate import Estimate, EstimateBasis, Sampler
from webdepot.harvest.report.result import CrawlProgress
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
class Live:
    at: datetime
    fetched: int
    waiting: int
    in_flight: int
    size_bytes: int
    rate: float
    """Documents a second over the last few seconds."""
    errors: int
    robots_refused: int
    host: str
    """The host of the newest answer."""
    elapsed_s: float
    paused: bool
    estimate: Estimate
    refusals: Mapping[str, int] = field(default_factory=dict)
    """Distinct addresses by the rule that rejected them."""
    hosts: tuple[HostNumbers, ...] = ()
    """Those of which most came."""


class Publisher:
    """Writes `live.json` as progress comes, not more often than once a second."""

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
        """The last numbers, whenever they came."""
        if self._last is not None:
            self.write(self._last)

    def write(self, progress: CrawlProgress) -> None:
        """Now, whatever the time. A full disk is no reason to stop a harvest here: its checkpoint will say
        so.
        """
        hosts = [(host, progress.hosts[host]) for host in most_of(progress.hosts)]
        live = Live(
            at=self._clock(),
            fetched=progress.fetched,
            waiting=progress.waiting,
            in_flight=progress.in_flight,
            size_bytes=progress.size_bytes,
            rate=progress.rate,
            errors=progress.errors,
            robots_refused=progress.robots_refused,
            host=progress.host,
            elapsed_s=progress.elapsed_s,
            paused=progress.paused,
            estimate=self._sampler.estimate(progress.done, progress.waiting + progress.in_flight),
            refusals=dict(progress.refusals),
            hosts=tuple(
                HostNumbers(
                    host=host,
                    fetched=made.fetched,
                    size_bytes=made.bytes,
                    errors=made.errors,
                    refused=made.refused,
                    waiting=progress.waiting_at.get(host, 0),
                )
                for host, made in hosts
            ),
        )
        new = self._path.with_suffix(".new")
        try:
            new.write_text(
                json.dumps(asdict(live) | {"at": to_iso(live.at)}, ensure_ascii=False), encoding="utf-8"
            )
            new.replace(self._path)
        except OSError:
            new.unlink(missing_ok=True)


def read(folder: Path) -> Live | None:
    """The last numbers; None where there are none, or none that can be read."""
    try:
        values: dict[str, Any] = json.loads((folder / FILE_NAME).read_text(encoding="utf-8"))
        estimate = Estimate(**values["estimate"] | {"basis": EstimateBasis(values["estimate"]["basis"])})
        hosts = tuple(HostNumbers(**host) for host in values["hosts"])
        return Live(**values | {"at": from_iso(values["at"]), "estimate": estimate, "hosts": hosts})
    except (OSError, ValueError, KeyError, TypeError):
        return None
