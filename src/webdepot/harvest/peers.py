"""A harvest shared by several processes: each has its own hosts, and hands over what it finds of the others'.

    harvests/ID/parts/0, 1, …         frontier and logs of each process
    harvests/ID/parts/A-to-B.jsonl    what A found for B: one JSON array a line, only added to
    harvests/ID/parts/owners.json     JSON object: name of a host without `www.` -> its process; written once, before the first begins

A host belongs to one process for ever, so a server's pauses, robots.txt and queue have one owner: the hosts
of the seeds are dealt out in turn, so that each process has as much to do as may be known beforehand; any
other host goes by the hash of its name.

A link to a seed's host is handed over as it was found: its owner mostly has the address already, and
otherwise judges it, knowing best what came from that host. Any other link is judged where it was found, so
that nothing is handed over that merely leads elsewhere. Exactly once, whatever dies when:

1. A writes what it hands over durably before it commits the frontier in which the page that led there is
   done. If A dies in between, it finds and writes it again: B, which sees every address once, passes over it.
   So A need not remember for ever.
2. B keeps, in its frontier and so in the same commit as the addresses themselves, how far it has read.
3. A process with nothing to do says so, with how much it has written and read. When all say so, and all that
   was written was read, the harvest is over; an old word cannot deceive, because whoever reads anew has a
   higher number.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from json.encoder import encode_basestring as _quoted
from pathlib import Path
from typing import Any, Protocol

from webdepot.durable import sync_folder
from webdepot.model import Candidate, Hop
from webdepot.ports import Frontier
from webdepot.url import Url, host_of

MOST_REMEMBERED = 100_000
"""Hosts whose owners are known without asking."""
_OWNERS = "owners.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What a process says of itself."""

    idle: bool
    written_bytes: int
    """By it, for all others, durably."""
    read_bytes: int
    """By it, of all others."""


class Line(Protocol):
    """The wire to whoever watches over all processes."""

    def say(self, word: Word) -> None: ...

    def is_over(self) -> bool:
        """Whether all have nothing to do."""


class Owners:
    """Which process has which host."""

    def __init__(self, count: int, dealt: Mapping[str, int] | None = None) -> None:
        """`dealt` are hosts that somebody has shared out."""
        self._count = count
        self._dealt = dict(dealt or {})
        self._lately: dict[str, int] = {}

    def of(self, url: str) -> int:
        """The process that has the host of an address."""
        host = host_of(url)
        owner = self._lately.get(host)
        if owner is None:
            if len(self._lately) >= MOST_REMEMBERED:
                self._lately.clear()
            name = _name(host)
            by_hash = int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "big") % self._count
            owner = self._lately[host] = self._dealt.get(name, by_hash)
        return owner

    def is_dealt(self, url: str) -> bool:
        """Whether it is of a host that somebody has shared out."""
        return _name(host_of(url)) in self._dealt


def deal_out(folder: Path, seeds: Iterable[str], count: int) -> None:
    """Share out the hosts of the seeds among so many processes, durably, before the first of them begins."""
    names = dict.fromkeys(_name(host_of(seed)) for seed in seeds)
    new = folder / f".{_OWNERS}.new"
    with new.open("w", encoding="utf-8") as file:
        json.dump({name: number % count for number, name in enumerate(names)}, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / _OWNERS)
    sync_folder(folder)


def owners(folder: Path, count: int) -> Owners:
    """As they were dealt out; a harvest begun before that was done goes by hashes alone."""
    try:
        return Owners(count, json.loads((folder / _OWNERS).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Owners(count)


def _name(host: str) -> str:
    return host.partition(":")[0].removeprefix("www.")


def is_over(words: Iterable[Word | None]) -> bool:
    """Whether nothing is left to do, by the last word of each."""
    said = list(words)
    if any(word is None or not word.idle for word in said):
        return False
    return sum(word.written_bytes for word in said if word) == sum(word.read_bytes for word in said if word)


class Peers:
    """The others, as one process sees them."""

    def __init__(self, folder: Path, number: int, count: int, frontier: Frontier, line: Line) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._number = number
        self._owners = owners(folder, count)
        self._frontier = frontier
        self._line = line
        self._others = [other for other in range(count) if other != number]
        self._to = {other: (folder / f"{number}-to-{other}.jsonl").open("ab") for other in self._others}
        self._from = {other: folder / f"{other}-to-{number}.jsonl" for other in self._others}
        self._read = {int(other): at for other, at in json.loads(frontier.recall("peers") or b"{}").items()}
        self._is_said_idle = False
        for other in self._others:
            _mend(folder / f"{number}-to-{other}.jsonl")

    def is_mine(self, url: str) -> bool:
        return self._owners.of(url) == self._number

    def keep_mine(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Those of our hosts; the others are handed over."""
        for candidate in candidates:
            owner = self._owners.of(candidate.url)
            if owner == self._number:
                yield candidate
            else:
                self._hand_over(owner, candidate.url, candidate.via or "", candidate.path, candidate.outside)

    def keep_unjudged(
        self, links: Iterable[tuple[Url, Hop]], source: Candidate
    ) -> tuple[list[tuple[Url, Hop]], list[Url]]:
        """Of the links of a page those that are to be judged here, and the others: they are handed over."""
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
        # By hand, since json.dumps takes five times as long, for every second page.
        self._to[owner].write(f"[{_quoted(url)}, {_quoted(via)}, {_quoted(path)}, {outside}]\n".encode())

    def announce_move(self, target: str, seed: str) -> None:
        """A seed has moved, and the scope with it: everybody must know."""
        for other in self._others:
            self._to[other].write(json.dumps([target, seed]).encode() + b"\n")

    def take(self) -> tuple[list[Candidate], list[tuple[Url, Url]]]:
        """What was handed over to us since: addresses, and moves of seeds."""
        candidates: list[Candidate] = []
        moves: list[tuple[Url, Url]] = []
        for other, path in self._from.items():
            for values in self._iter_new(other, path):
                if len(values) == 2:
                    moves.append((Url(values[0]), Url(values[1])))
                else:
                    url, via, hops, outside = values
                    candidates.append(
                        Candidate(url=Url(url), via=Url(via) if via else None, path=hops, outside=outside)
                    )
        if candidates or moves:
            self._frontier.remember("peers", json.dumps(self._read).encode())
        return candidates, moves

    def sync(self) -> None:
        """Before each commit of the frontier."""
        for file in self._to.values():
            file.flush()
            os.fsync(file.fileno())

    def say_idle(self) -> None:
        written = sum(os.fstat(file.fileno()).st_size for file in self._to.values())
        self._line.say(Word(idle=True, written_bytes=written, read_bytes=sum(self._read.values())))
        self._is_said_idle = True

    def say_busy(self) -> None:
        """Before anything comes of what was read: the word before does not hold any more."""
        if self._is_said_idle:
            self._line.say(Word(idle=False, written_bytes=0, read_bytes=0))
            self._is_said_idle = False

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


def _mend(path: Path) -> None:
    """Half a line at the end: whoever wrote it died. It was not handed over, and will be written again."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                file.seek(0)
                whole = file.read().rfind(b"\n") + 1
                # Nobody has read beyond the last whole line, so it may go.
                file.truncate(whole)
                file.flush()
                os.fsync(file.fileno())
