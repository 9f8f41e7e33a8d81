"""Which addresses the scope of a crawl accepts and rejects, counted from its log (`log.JSON_NAME`) with
examples. For a test crawl: its log is short, and has the links that lead outside.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webdepot.harvest.report.log import PROBE, SOFTWARE
from webdepot.harvest.report.reports import REFUSED
from webdepot.model import Hop
from webdepot.url import host_of

MOST_EXAMPLES = 5
MOST_ROWS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRow:
    """Addresses with the same result."""

    name: str
    """The rule that accepted or rejected them, or what went wrong."""
    count: int
    reason: str = ""
    """The reason of the first one."""
    examples: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSample:
    taken: Sequence[SampleRow] = ()
    """By the rule that accepted them, most first."""
    left_out: Sequence[SampleRow] = ()
    """By the rule that rejected them, most first."""
    errors: Sequence[SampleRow] = ()
    """In scope, but not received: by status, or by the name of the failure."""
    robots: Sequence[SampleRow] = ()
    """Hosts, with the status of their robots.txt (0 if there was no answer) as the count."""
    software: Sequence[SampleRow] = ()
    """Software that pages show signs of; the examples are hosts."""


@dataclass(slots=True)
class _Group:
    count: int = 0
    reason: str = ""
    examples: list[str] = field(default_factory=list)

    def add(self, example: str, reason: str = "") -> None:
        self.count += 1
        self.reason = self.reason or reason
        if len(self.examples) < MOST_EXAMPLES and example not in self.examples:
            self.examples.append(example)


def read(lines: Iterable[bytes]) -> CrawlSample:
    """Count the lines of crawl.jsonl."""
    taken: dict[str, _Group] = {}
    left_out: dict[str, _Group] = {}
    errors: dict[str, _Group] = {}
    robots: dict[str, SampleRow] = {}
    software: dict[str, _Group] = {}
    for text in lines:
        line: dict[str, Any] = json.loads(text)
        url, status, rule, reason = line["url"], int(line["status"]), line["rule"] or "?", line["reason"]
        if line["note"] == PROBE:
            continue
        if line["path"].strip(Hop.REDIRECT).endswith(Hop.PREREQUISITE):
            host = host_of(url)
            robots[host] = SampleRow(name=host, count=max(status, 0), reason="" if status > 0 else reason)
        elif status in REFUSED:
            _of(left_out, rule).add(url, reason)
        elif not 0 < status < 400:
            _of(errors, str(status) if status > 0 else reason or str(status)).add(url)
        else:
            _of(taken, rule).add(url, reason)
        for note in line["note"].split(","):
            if note.startswith(SOFTWARE):
                _of(software, note.removeprefix(SOFTWARE)).add(host_of(url))
    return CrawlSample(
        taken=_rows(taken),
        left_out=_rows(left_out),
        errors=_rows(errors),
        robots=tuple(robots.values())[:MOST_ROWS],
        software=_rows(software),
    )


def from_values(values: Mapping[str, Any]) -> CrawlSample:
    """Read what `dataclasses.asdict` wrote, from JSON."""
    return CrawlSample(
        **{
            name: tuple(SampleRow(**row | {"examples": tuple(row["examples"])}) for row in rows)
            for name, rows in values.items()
        }
    )


def _of(groups: dict[str, _Group], name: str) -> _Group:
    return groups.setdefault(name, _Group())


def _rows(groups: Mapping[str, _Group]) -> tuple[SampleRow, ...]:
    rows = [
        SampleRow(name=name, count=group.count, reason=group.reason, examples=tuple(group.examples))
        for name, group in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.count)[:MOST_ROWS])
