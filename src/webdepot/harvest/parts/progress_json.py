"""Progress and results of parts as JSON, for rows of the database."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from webdepot.harvest.host_book import HostCounts, most_of
from webdepot.harvest.parts.part_rows import CHECKPOINT_AGE
from webdepot.harvest.report.log import RecentLine
from webdepot.harvest.report.result import (
    CrawlProgress,
    CrawlResult,
    End,
    HostWait,
    SeedOutcome,
    Trouble,
)
from webdepot.model import Failure
from webdepot.reasons import from_kept, to_kept
from webdepot.times import from_iso, to_iso

_RECENT = "recent"


def columns_of(progress: CrawlProgress, recent: Sequence[RecentLine]) -> dict[str, object]:
    """The columns of a part that show its progress, with the last lines of its log."""
    shown = most_of(progress.hosts)
    hosts = {host: asdict(progress.hosts[host]) for host in shown}
    plain = replace(progress, hosts={}, waits=(), refusals={})
    live = {
        **{item.name: getattr(plain, item.name) for item in fields(plain)},
        "refusals": dict(progress.refusals),
        "hosts": hosts,
        "waiting_at": {host: progress.waiting_at.get(host, 0) for host in shown},
        "waits": [{**asdict(wait), "next_at": to_iso(wait.next_at)} for wait in progress.waits],
        _RECENT: [asdict(line) for line in recent],
    }
    counts = {"fetched": progress.fetched, "pages": progress.pages, "size_bytes": progress.size_bytes}
    return {"live": live, **counts}


def progress_of(live: Mapping[str, Any]) -> CrawlProgress | None:
    """The progress of a part; None if it has not shown any yet."""
    if not live:
        return None
    values = {name: value for name, value in live.items() if name not in (_RECENT, CHECKPOINT_AGE)}
    hosts = {host: HostCounts(**counts) for host, counts in values["hosts"].items()}
    waits = [HostWait(**{**wait, "next_at": from_iso(wait["next_at"])}) for wait in values["waits"]]
    return CrawlProgress(**{**values, "hosts": hosts, "waits": waits})


def recent_of(live: Mapping[str, Any]) -> list[RecentLine]:
    """The last lines of the log of a part."""
    return [RecentLine(**line) for line in live.get(_RECENT, ())]


def result_to_json(result: CrawlResult) -> dict[str, object]:
    values = {item.name: getattr(result, item.name) for item in fields(result)}
    return {
        **values,
        "end": result.end.value,
        "reason": to_kept(result.reason),
        "counts": dict(result.counts),
        "seeds": [
            {**asdict(seed), "failure": seed.failure.value if seed.failure else None} for seed in result.seeds
        ],
        "shut_out": list(result.shut_out),
        "trouble": result.trouble.value if result.trouble else None,
    }


def result_from_json(values: Mapping[str, Any]) -> CrawlResult:
    seeds = tuple(
        SeedOutcome(**{**seed, "failure": Failure(seed["failure"]) if seed["failure"] else None})
        for seed in values["seeds"]
    )
    return CrawlResult(
        **{
            **values,
            "end": End(values["end"]),
            "reason": from_kept(values["reason"]),
            "seeds": seeds,
            "shut_out": tuple(values["shut_out"]),
            "trouble": Trouble(values["trouble"]) if values["trouble"] else None,
        }
    )
