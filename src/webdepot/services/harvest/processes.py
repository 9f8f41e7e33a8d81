"""Several processes for one harvest: started, watched and brought together by the process that runs it.

1. `run` starts the processes. Each opens the archive itself, works in `parts/N`, and hands over links to
   hosts of the others (`harvest/peer_processes`).
2. Each reports what it does. The leading process adds that up: progress, limits of the whole harvest, and
   whether nothing is left to do anywhere.
3. When they have ended, their results are merged, and their logs are joined in the harvest's folder.

A process that dies ends the run: the others stop at their checkpoints, and the harvest can be resumed.
"""

import multiprocessing
import os
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from webdepot import durable
from webdepot.archive import Archive
from webdepot.container.writer import Sealed
from webdepot.errors import NoSpace, RemoteError
from webdepot.harvest import peer_processes
from webdepot.harvest.peer_processes import PeerReport
from webdepot.harvest.report.log import JSON_NAME, LOG_NAME
from webdepot.harvest.report.result import (
    CrawlProgress,
    CrawlResult,
    End,
    LeftOut,
    SeedOutcome,
    Trouble,
    finished_reason,
    left_waiting,
    limit_reached,
    trouble_of,
)
from webdepot.model import Harvest, HarvestId
from webdepot.reasons import together

CrawlPart = Callable[[Path, HarvestId, "HarvestPart"], CrawlResult]
"""Runs one part in its own process: home, harvest, which part."""
_ADDED = (
    "fetched",
    "pages",
    "waiting",
    "in_flight",
    "size_bytes",
    "rate",
    "errors",
    "failed_parts",
    "robots_refused",
    "seen",
    "done",
)
"""Fields of `CrawlProgress` that are sums over all parts."""


class PipeLine:
    """A part's connection to the leading process (`peer_processes.PeerLine`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last: PeerReport | None = None
        self._command = ""
        """The last command received: `stop`, `over`, or none yet."""

    def report(self, report: PeerReport) -> None:
        if report != self._last:
            self._last = report
            self.send("report", report)

    def is_over(self) -> bool:
        self._listen()
        return self._command == "over"

    def must_stop(self) -> bool:
        self._listen()
        return self._command == "stop"

    def send(self, kind: str, value: object) -> None:
        with suppress(OSError):
            self._connection.send((kind, value))

    def _listen(self) -> None:
        try:
            while self._connection.poll():
                self._command = self._connection.recv()
        except (EOFError, OSError):  # the leading process is dead
            self._command = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestPart:
    """One of the processes of a harvest."""

    number: int
    count: int
    line: PipeLine


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLimits:
    """Limits of the whole harvest, over all its processes; 0 means no limit."""

    pages: int
    documents: int
    size_bytes: int


def folder_of(harvest_folder: Path, number: int) -> Path:
    """The working folder of one part."""
    return harvest_folder / "parts" / str(number)


def existing(harvest_folder: Path) -> list[Path]:
    """The folders of the parts of a harvest; their number never changes once it has begun."""
    parts = harvest_folder / "parts"
    return (
        sorted((path for path in parts.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
        if parts.exists()
        else []
    )


def run(
    archive: Archive,
    harvest: Harvest,
    harvest_folder: Path,
    count: int,
    crawl_part: CrawlPart,
    *,
    report: Callable[[CrawlProgress], None],
    on_sealed: Callable[[Sealed], None],
    limits: SharedLimits,
) -> CrawlResult:
    """Run all parts to their end. Requests in flight may exceed the limits."""
    if not existing(harvest_folder):
        durable.make_folders(harvest_folder / "parts")
        peer_processes.deal_out(harvest_folder / "parts", harvest.seeds, count)
    for number in range(count):
        durable.make_folders(folder_of(harvest_folder, number))
    context = multiprocessing.get_context("spawn")
    leader = _Leader(count, report, on_sealed, limits)
    pairs = [context.Pipe() for _ in range(count)]
    processes = [
        context.Process(
            target=_run_part, args=(crawl_part, archive.home, harvest.id, number, count, theirs), daemon=True
        )
        for number, (_, theirs) in enumerate(pairs)
    ]
    for process, (_, theirs) in zip(processes, pairs):
        process.start()
        theirs.close()
    try:
        with _stopped_by_signals(leader):
            leader.watch({ours: number for number, (ours, _) in enumerate(pairs)})
    finally:
        for process, (ours, _) in zip(processes, pairs):
            ours.close()
            process.join()
        _join_logs(harvest_folder)
    return leader.result()


class _Leader:
    """Watches all parts and knows what they have reported."""

    def __init__(
        self,
        count: int,
        report: Callable[[CrawlProgress], None],
        on_sealed: Callable[[Sealed], None],
        limits: SharedLimits,
    ) -> None:
        self._report = report
        self._on_sealed = on_sealed
        self._limits = limits
        self._reports: list[PeerReport | None] = [None] * count
        self._progress: dict[int, CrawlProgress] = {}
        self._results: dict[int, CrawlResult] = {}
        self._errors: list[str] = []
        self._no_space = ""
        self.is_stopping = False
        self._limit: End | None = None

    def watch(self, lines: dict[Connection, int]) -> None:
        """Receive what the parts send until all have closed their lines; stop them if need be."""
        is_stop_sent = False
        while lines:
            for line in wait(list(lines), timeout=0.2):
                self._receive(line, lines)  # type: ignore[arg-type]
            if (self.is_stopping or self._errors or self._no_space or self._limit) and not is_stop_sent:
                is_stop_sent = True
                _send_all(lines, "stop")
            elif not is_stop_sent and peer_processes.is_over(self._reports):
                _send_all(lines, "over")

    def _receive(self, line: Connection, lines: dict[Connection, int]) -> None:
        number = lines[line]
        try:
            kind, value = line.recv()
        except (EOFError, OSError):
            del lines[line]
            if number not in self._results and not self._errors and not self._no_space:
                self._errors.append(f"process {number + 1} of the harvest died")
            return
        match kind:
            case "report":
                self._reports[number] = value
            case "progress":
                self._progress[number] = value
                total = add_up(list(self._progress.values()))
                self._limit = self._limit or reached_limit(
                    self._limits, pages=total.pages, documents=total.fetched, size_bytes=total.size_bytes
                )
                self._report(total)
            case "sealed":
                self._on_sealed(value)
            case "result":
                self._results[number] = value
            case "no space":
                self._no_space = value
            case "error":
                self._errors.append(value)

    def result(self) -> CrawlResult:
        """The merged result; NoSpace or RemoteError if a part failed."""
        if self._no_space:
            raise NoSpace(self._no_space)
        if self._errors:
            raise RemoteError(
                f"The harvest was stopped because {self._errors[0]}. "
                "What was saved is not lost: resume the harvest.",
                retry=True,
            )
        return merge(list(self._results.values()), self._limit)


def reached_limit(limits: SharedLimits, *, pages: int, documents: int, size_bytes: int) -> End | None:
    """The limit that a harvest with these counts has reached."""
    if limits.pages and pages >= limits.pages:
        return End.LIMIT_PAGES
    if limits.documents and documents >= limits.documents:
        return End.LIMIT_DOCUMENTS
    return End.LIMIT_BYTES if limits.size_bytes and size_bytes >= limits.size_bytes else None


def add_up(parts: Sequence[CrawlProgress]) -> CrawlProgress:
    """The progress of all parts together."""
    sums: dict[str, Any] = {name: sum(getattr(part, name) for part in parts) for name in _ADDED}
    refusals: Counter[str] = Counter()
    for part in parts:
        refusals.update(part.refusals)
    return replace(
        parts[-1],
        **sums,
        elapsed_s=max(part.elapsed_s for part in parts),
        refusals=dict(refusals),
        hosts={host: counts for part in parts for host, counts in part.hosts.items()},
        waiting_at={host: count for part in parts for host, count in part.waiting_at.items()},
        waits=sorted((wait for part in parts for wait in part.waits), key=lambda wait: wait.next_at)[:5],
    )


def merge(parts: Sequence[CrawlResult], limit: End | None) -> CrawlResult:
    """One result of all parts. If a seed has several outcomes, the most informative is used."""
    counts: Counter[str] = Counter()
    seeds: dict[str, SeedOutcome] = {}
    for part in parts:
        counts.update(part.counts)
        for outcome in part.seeds:
            known = seeds.get(outcome.seed)
            if known is None or _weight(outcome) > _weight(known):
                seeds[outcome.seed] = outcome
    ends = [part.end for part in parts]
    end = limit or next((end for end in ends if end is not End.FINISHED), End.FINISHED)
    first = next((part for part in parts if part.end is end), parts[0])
    good, trouble = sum(part.good_pages for part in parts), None
    if end is End.FINISHED:
        trouble = trouble_of(tuple(seeds.values()), good_pages=good)
    shut_out = tuple(dict.fromkeys(host for part in parts for host in part.shut_out))
    left_out = LeftOut(
        nofollow=counts["nofollow"],
        robots=counts["robots_refused"],
        empty_pages=counts["empty_pages"],
        unopened=counts.get("unopened", 0),
        noindex_pages=counts["noindex_pages"],
    )
    if limit is not None:
        reason = together([*left_out.sentences(), limit_reached(limit), left_waiting(counts["waiting"])])
    elif end is End.FINISHED:
        reason = finished_reason(waiting=counts["waiting"], shut_out=shut_out, left_out=left_out)
    else:
        reason = first.reason
    return replace(
        first,
        end=end,
        reason=reason,
        counts=dict(counts),
        seeds=tuple(seeds.values()),
        shut_out=shut_out,
        trouble=trouble,
        elapsed_s=max(part.elapsed_s for part in parts),
        good_pages=good,
    )


def _weight(outcome: SeedOutcome) -> int:
    """How much an outcome says about a seed: a page, then a failure, then any other answer, then nothing."""
    if 200 <= outcome.status < 300 and outcome.trouble in (None, Trouble.EMPTY):
        return 3
    return 2 if outcome.failure or outcome.moved_to or outcome.status >= 400 else int(outcome.status > 0)


def _send_all(lines: Mapping[Connection, int], command: str) -> None:
    for line in lines:
        with suppress(OSError):
            line.send(command)


def _run_part(
    crawl_part: CrawlPart, home: Path, harvest: HarvestId, number: int, count: int, connection: Connection
) -> None:
    """The main function of one process."""
    line = PipeLine(connection)
    try:
        line.send("result", crawl_part(home, harvest, HarvestPart(number=number, count=count, line=line)))
    except NoSpace as error:
        line.send("no space", str(error))
    except Exception as error:
        line.send("error", f"process {number + 1} failed: {error}")
    finally:
        connection.close()
    # Everything is closed and sent. The shutdown of the interpreter would only delay the harvest, by a tenth
    # of a second.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _join_logs(harvest_folder: Path) -> None:
    """Write the logs of all parts one after the other into the harvest's folder. This can be repeated."""
    for name in (LOG_NAME, JSON_NAME):
        with durable.whole_file(harvest_folder / name) as file:
            for part in existing(harvest_folder):
                if (part / name).exists():
                    with (part / name).open("rb") as source:
                        shutil.copyfileobj(source, file)


@contextmanager
def _stopped_by_signals(leader: _Leader) -> Iterator[None]:
    """Let Ctrl-C and TERM stop all parts at a checkpoint; only the main thread receives signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: setattr(leader, "is_stopping", True)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)
