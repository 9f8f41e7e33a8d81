"""A harvest shared by several processes: each owns some hosts, and hands over links to hosts of the others.

    harvests/ID/parts/0, 1, …         frontier and logs of each process
    harvests/ID/parts/A-to-B.jsonl    what A found for B: one JSON array per line, append-only
    harvests/ID/parts/owners.json     JSON object: host name without `www.` -> its process;
                                      written once, before the first process begins

A host belongs to the same process for the whole harvest, so the pauses, the robots.txt and the queue of a
server have one owner. The hosts of the seeds are assigned to the processes in turn, to give each about the
same amount of work; all other hosts are assigned by the hash of their name.

A link to a seed's host is handed over as it was found: its owner usually has the address already, and
otherwise judges it with the counts of that host. Any other link is judged where it was found, so that links
outside the scope are not handed over. Every link arrives exactly once, even if a process dies:

1. A writes what it hands over durably before it commits the frontier in which the page with the link is
   finished. If A dies in between, it finds and writes the link again; B, which queues every address once,
   ignores it. So A need not remember what it handed over.
2. B remembers in its frontier how far it has read, in the same commit as the addresses themselves.
3. A process with nothing to do reports so, with how much it has written and read. When all have reported that
   and everything written was read, the harvest is over. Stale reports are harmless: a process that reads more
   has a higher number.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from webdepot import durable
from webdepot.model import Candidate, Hop
from webdepot.ports.harvest import Frontier, Handover
from webdepot.url import Url, host_of

MOST_REMEMBERED = 100_000
"""Hosts whose owners are held in memory."""
_OWNERS = "owners.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerReport:
    """What a process reports about itself."""

    idle: bool
    written_bytes: int
    """How much it has written for all others, durably."""
    read_bytes: int
    """How much it has read from all others."""


class PeerLine(Protocol):
    """The connection to the process that coordinates the others."""

    def report(self, report: PeerReport) -> None: ...

    def is_over(self) -> bool:
        """Whether no process has anything to do."""


class Owners:
    """Which process owns which host."""

    def __init__(self, count: int, dealt: Mapping[str, int] | None = None) -> None:
        """`dealt` assigns the hosts of the seeds to processes."""
        self.count = count
        self._dealt = dict(dealt or {})
        self._recent: dict[str, int] = {}

    def of(self, url: str) -> int:
        """The process that owns the host of an address."""
        host = host_of(url)
        owner = self._recent.get(host)
        if owner is None:
            if len(self._recent) >= MOST_REMEMBERED:
                self._recent.clear()
            name = _name(host)
            by_hash = int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "big") % self.count
            owner = self._recent[host] = self._dealt.get(name, by_hash)
        return owner

    def is_dealt(self, url: str) -> bool:
        """Whether its host is the host of a seed."""
        return _name(host_of(url)) in self._dealt


def deal_out(folder: Path, seeds: Iterable[str], count: int) -> None:
    """Assign the hosts of the seeds to the processes, durably, before the first of them begins."""
    durable.write_whole(folder / _OWNERS, json.dumps(dealt_out(seeds, count)).encode())


def dealt_out(seeds: Iterable[str], count: int) -> dict[str, int]:
    """The hosts of the seeds, without `www.`, each with its process."""
    names = dict.fromkeys(_name(host_of(seed)) for seed in seeds)
    return {name: number % count for number, name in enumerate(names)}


def owners(folder: Path, count: int) -> Owners:
    """The owners as `deal_out` stored them; without the file, only by hash."""
    try:
        return Owners(count, json.loads((folder / _OWNERS).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Owners(count)


def _name(host: str) -> str:
    return host.partition(":")[0].removeprefix("www.")


def is_over(reports: Iterable[PeerReport | None]) -> bool:
    """Whether nothing is left to do, by the last report of each process."""
    written_bytes = read_bytes = 0
    for report in reports:
        if report is None or not report.idle:
            return False
        written_bytes += report.written_bytes
        read_bytes += report.read_bytes
    return written_bytes == read_bytes


class Peers:
    """The other processes, as one process sees them."""

    def __init__(self, number: int, owners: Owners, handover: Handover) -> None:
        self._number = number
        self._owners = owners
        self._handover = handover
        self._others = [other for other in range(owners.count) if other != number]
        self.sync = handover.sync
        self.report_idle = handover.report_idle
        self.report_busy = handover.report_busy
        self.is_over = handover.is_over
        self.close = handover.close

    def is_mine(self, url: str) -> bool:
        return self._owners.of(url) == self._number

    def keep_mine(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """The candidates of our hosts; the others are handed over."""
        for candidate in candidates:
            owner = self._owners.of(candidate.url)
            if owner == self._number:
                yield candidate
            else:
                self._hand_over(owner, candidate.url, candidate.via or "", candidate.path, candidate.outside)

    def keep_unjudged(
        self, links: Iterable[tuple[Url, Hop]], source: Candidate
    ) -> tuple[list[tuple[Url, Hop]], list[Url]]:
        """The links of a page that must be judged here, and the addresses that were handed over instead."""
        kept, others = [], []
        for url, hop in links:
            owner = self._owners.of(url)
            if owner == self._number or not self._owners.is_dealt(url):
                kept.append((url, hop))
            else:
                self._hand_over(owner, url, source.url, source.path + hop, 0)
                others.append(url)
        return kept, others

    def _hand_over(self, owner: int, url: str, via: str, path: str, outside: int) -> None:
        self._handover.hand_over(owner, json.dumps([url, via, path, outside]))

    def announce_move(self, target: str, seed: str) -> None:
        """Inform all processes that a seed, and the scope with it, has moved."""
        for other in self._others:
            self._handover.hand_over(other, json.dumps([target, seed]))

    def take(self) -> tuple[list[Candidate], list[tuple[Url, Url]]]:
        """What was handed over to us since the last call: candidates, and moves of seeds."""
        candidates: list[Candidate] = []
        moves: list[tuple[Url, Url]] = []
        for values in self._handover.take():
            if len(values) == 2:
                moves.append((Url(values[0]), Url(values[1])))
            else:
                url, via, hops, outside = values
                candidates.append(
                    Candidate(url=Url(url), via=Url(via) if via else None, path=hops, outside=outside)
                )
        return candidates, moves


class FileHandover:
    """`Handover` between processes of one machine, through files in a folder."""

    def __init__(self, folder: Path, number: int, count: int, frontier: Frontier, line: PeerLine) -> None:
        durable.make_folders(folder)
        self._frontier = frontier
        self._line = line
        others = [other for other in range(count) if other != number]
        self._to = {other: (folder / f"{number}-to-{other}.jsonl").open("ab") for other in others}
        durable.sync_folder(folder)
        self._from = {other: folder / f"{other}-to-{number}.jsonl" for other in others}
        self._read = {int(other): at for other, at in json.loads(frontier.recall("peers") or b"{}").items()}
        self._is_reported_idle = False
        for other in others:
            _cut_half_line(folder / f"{number}-to-{other}.jsonl")

    def hand_over(self, owner: int, line: str) -> None:
        self._to[owner].write(line.encode() + b"\n")

    def take(self) -> list[list[Any]]:
        taken = [values for other, path in self._from.items() for values in self._iter_new(other, path)]
        if taken:
            self._frontier.remember("peers", json.dumps(self._read).encode())
        return taken

    def sync(self) -> None:
        for file in self._to.values():
            durable.sync_file(file)

    def report_idle(self) -> None:
        written = sum(os.fstat(file.fileno()).st_size for file in self._to.values())
        self._line.report(PeerReport(idle=True, written_bytes=written, read_bytes=sum(self._read.values())))
        self._is_reported_idle = True

    def report_busy(self) -> None:
        if self._is_reported_idle:
            self._line.report(PeerReport(idle=False, written_bytes=0, read_bytes=0))
            self._is_reported_idle = False

    def is_over(self) -> bool:
        return self._line.is_over()

    def close(self) -> None:
        for file in self._to.values():
            file.close()

    def _iter_new(self, other: int, path: Path) -> Iterator[list[Any]]:
        at = self._read.get(other, 0)
        try:
            if path.stat().st_size <= at:
                return
        except FileNotFoundError:
            return
        with path.open("rb") as file:
            file.seek(at)
            new = file.read(4 << 20)
        new = new[: new.rfind(b"\n") + 1]
        self._read[other] = at + len(new)
        yield from json.loads(b"[%s]" % b",".join(new.splitlines()))


def _cut_half_line(path: Path) -> None:
    """Remove half a line at the end: its writer died. It was not handed over and will be written again."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                file.seek(0)
                whole = file.read().rfind(b"\n") + 1
                # No process has read beyond the last whole line.
                file.truncate(whole)
                durable.sync_file(file)
