"""Several processes for one harvest: started, watched over and brought together again by the one that was
asked to run it.

1. `run` starts the processes. Each opens the archive itself, works in `parts/N` and hands over what is not
   its own (`harvest.peers`).
2. Each tells what it does; here it is added up: progress, limits of the whole harvest, and whether nothing is
   left to do anywhere.
3. When they have ended, their results become one, and their logs are put together in the harvest's folder.

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
from dataclasses import dataclass, fields, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from webdepot.archive import Archive
from webdepot.container.writer import Sealed
from webdepot.errors import NoSpace, RemoteError
from webdepot.harvest import peers
from webdepot.harvest.peers import Word
from webdepot.harvest.report.log import JSON_NAME, LOG_NAME
from webdepot.harvest.report.result import (
    CrawlProgress,
    CrawlResult,
    End,
    SeedOutcome,
    Trouble,
    left_waiting,
    limit_reached,
    trouble_of,
)
from webdepot.model import Harvest, HarvestId
from webdepot.reasons import together

Work = Callable[[Path, HarvestId, "Part"], CrawlResult]
"""Runs one part in a process of its own: home, harvest, which part."""


class PipeLine:
    """A process's wire to the one that watches (`peers.Line`)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last: Word | None = None
        self.told = ""

    def say(self, word: Word) -> None:
        if word != self._last:
            self._last = word
            self.send("word", word)

    def is_over(self) -> bool:
        self.listen()
        return self.told == "over"

    def must_stop(self) -> bool:
        self.listen()
        return self.told == "stop"

    def listen(self) -> None:
        try:
            while self._connection.poll():
                self.told = self._connection.recv()
        except (EOFError, OSError):  # whoever watched is dead
            self.told = "stop"

    def send(self, kind: str, value: object) -> None:
        with suppress(OSError):
            self._connection.send((kind, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    number: int
    count: int
    line: PipeLine


def folder_of(harvest_folder: Path, number: int) -> Path:
    return harvest_folder / "parts" / str(number)


def existing(harvest_folder: Path) -> list[Path]:
    """Folders of the parts of a harvest that was shared; how many there are cannot change any more."""
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
    work: Work,
    *,
    tell: Callable[[CrawlProgress], None],
    on_sealed: Callable[[Sealed], None],
    limits: tuple[int, int],
) -> CrawlResult:
    """Run all parts to their end. `limits` are pages and bytes of the whole harvest, 0 for none; overshot by
    what is in flight.
    """
    if not existing(harvest_folder):
        (harvest_folder / "parts").mkdir(parents=True, exist_ok=True)
        peers.deal_out(harvest_folder / "parts", harvest.seeds, count)
    for number in range(count):
        folder_of(harvest_folder, number).mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    watched = _Watched(count, tell, on_sealed, limits)
    pairs = [context.Pipe() for _ in range(count)]
    processes = [
        context.Process(
            target=_work, args=(work, archive.home, harvest.id, number, count, theirs), daemon=True
        )
        for number, (_, theirs) in enumerate(pairs)
    ]
    for process, (_, theirs) in zip(processes, pairs):
        process.start()
        theirs.close()
    try:
        with _signals_stop(watched):
            watched.watch({ours: number for number, (ours, _) in enumerate(pairs)})
    finally:
        for process, (ours, _) in zip(processes, pairs):
            ours.close()
            process.join()
        _join_logs(harvest_folder)
    return watched.result()


class _Watched:
    """What is known of all parts."""

    def __init__(
        self,
        count: int,
        tell: Callable[[CrawlProgress], None],
        on_sealed: Callable[[Sealed], None],
        limits: tuple[int, int],
    ) -> None:
        self._tell = tell
        self._on_sealed = on_sealed
        self._limits = limits
        self._words: list[Word | None] = [None] * count
        self._progress: dict[int, CrawlProgress] = {}
        self._results: dict[int, CrawlResult] = {}
        self._errors: list[str] = []
        self._no_space = ""
        self.stopping = False
        self._limit: End | None = None

    def watch(self, lines: dict[Connection, int]) -> None:
        told_to_stop = False
        while lines:
            for line in wait(list(lines), timeout=0.2):
                self._hear(line, lines)  # type: ignore[arg-type]
            if (self.stopping or self._errors or self._no_space or self._limit) and not told_to_stop:
                told_to_stop = True
                _tell_all(lines, "stop")
            elif not told_to_stop and peers.is_over(self._words):
                _tell_all(lines, "over")

    def _hear(self, line: Connection, lines: dict[Connection, int]) -> None:
        number = lines[line]
        try:
            kind, value = line.recv()
        except (EOFError, OSError):
            del lines[line]
            if number not in self._results and not self._errors and not self._no_space:
                self._errors.append(f"process {number + 1} of the harvest died")
            return
        match kind:
            case "word":
                self._words[number] = value
            case "progress":
                self._progress[number] = value
                together = added(list(self._progress.values()))
                self._limit = self._limit or _limit_of(together, self._limits)
                self._tell(together)
            case "sealed":
                self._on_sealed(value)
            case "result":
                self._results[number] = value
            case "no space":
                self._no_space = value
            case "error":
                self._errors.append(value)

    def result(self) -> CrawlResult:
        if self._no_space:
            raise NoSpace(self._no_space)
        if self._errors:
            raise RemoteError(
                f"The harvest was stopped because {self._errors[0]}. Nothing acknowledged is lost: resume it.",
                retry=True,
            )
        return merged(list(self._results.values()), self._limit)


def _limit_of(progress: CrawlProgress, limits: tuple[int, int]) -> End | None:
    pages, size_bytes = limits
    if pages and progress.fetched >= pages:
        return End.LIMIT_PAGES
    return End.LIMIT_BYTES if size_bytes and progress.size_bytes >= size_bytes else None


def added(parts: Sequence[CrawlProgress]) -> CrawlProgress:
    """The progress of all together."""
    sums: dict[str, Any] = {
        item.name: sum(getattr(part, item.name) for part in parts)
        for item in fields(CrawlProgress)
        if item.name
        in (
            "fetched",
            "waiting",
            "in_flight",
            "size_bytes",
            "rate",
            "errors",
            "robots_refused",
            "seen",
            "done",
        )
    }
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
    )


def merged(parts: Sequence[CrawlResult], limit: End | None) -> CrawlResult:
    """One result of all: what came of a seed is what came of it where it was asked last."""
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
    told = next((part for part in parts if part.end is end), parts[0])
    good, trouble = sum(part.good_pages for part in parts), None
    if end is End.FINISHED:
        trouble = trouble_of(tuple(seeds.values()), good_pages=good)
    reason = (
        told.reason if limit is None else together([limit_reached(limit), left_waiting(counts["waiting"])])
    )
    shut_out = tuple(dict.fromkeys(host for part in parts for host in part.shut_out))
    return replace(
        told,
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
    if 200 <= outcome.status < 300 and outcome.trouble in (None, Trouble.EMPTY):
        return 3
    return 2 if outcome.failure or outcome.moved_to or outcome.status >= 400 else int(outcome.status > 0)


def _tell_all(lines: Mapping[Connection, int], word: str) -> None:
    for line in lines:
        with suppress(OSError):
            line.send(word)


def _work(
    work: Work, home: Path, harvest: HarvestId, number: int, count: int, connection: Connection
) -> None:
    """The whole life of one process."""
    line = PipeLine(connection)
    try:
        line.send("result", work(home, harvest, Part(number=number, count=count, line=line)))
    except NoSpace as error:
        line.send("no space", str(error))
    except Exception as error:
        line.send("error", f"process {number + 1} failed: {error}")
    finally:
        connection.close()
    # All is closed and told. To take the interpreter apart would only keep the harvest waiting, for a tenth
    # of a second.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _join_logs(harvest_folder: Path) -> None:
    """The logs of all parts behind each other, put in their place whole. They can be made again at any time."""
    for name in (LOG_NAME, JSON_NAME):
        new = harvest_folder / f".{name}.new"
        with new.open("wb") as file:
            for part in existing(harvest_folder):
                if (part / name).exists():
                    with (part / name).open("rb") as source:
                        shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(harvest_folder / name)


@contextmanager
def _signals_stop(watched: _Watched) -> Iterator[None]:
    """Ctrl-C and TERM stop all parts tidily; only the main thread can hear them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: setattr(watched, "stopping", True)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)
