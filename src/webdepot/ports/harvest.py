"""The ports of a harvest: the frontier and its checkpoints, turns at servers, fetching.

The parts of one harvest may run on several machines: `Ledger`, `Handover` and `Servers` have one
implementation for a single machine and one for several.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from webdepot.model import Candidate, Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierCounts:
    seen: int
    """Distinct keys ever added."""
    waiting: int
    in_flight: int
    done: int


class Ledger(Protocol):
    """Makes checkpoints of a crawl valid. On one machine that is its frontier."""

    def commit(self, marks: Mapping[str, int]) -> None:
        """Make everything since the last call durable, all or nothing: the frontier, and the files up to the
        sizes in `marks`.
        """


class Handover(Protocol):
    """Brings links to the parts of a harvest that own their hosts. Every link arrives at least once, and only
    if the page that contains it is in a checkpoint.
    """

    def hand_over(self, owner: int, line: str) -> None:
        """Hand a line of JSON over to another part, with the next checkpoint."""

    def take(self) -> list[list[Any]]:
        """The lines handed over to us since the last call; the next checkpoint acknowledges them."""

    def sync(self) -> None:
        """Make everything handed over durable; called before each checkpoint."""

    def report_idle(self) -> None:
        """Report that nothing waits here, and that everything is in a checkpoint."""

    def report_busy(self) -> None:
        """Report that this part is busy again, before anything that was taken is processed."""

    def is_over(self) -> bool:
        """Whether no part has anything to do, or none that this one must wait for."""

    def close(self) -> None: ...


class Servers(Protocol):
    """Turns at servers, shared by all crawls, so that together they are as polite as one. Times are
    `time.monotonic()`.
    """

    def begin(self, server: str) -> float:
        """0 if the server may be asked now, until `end`; otherwise the time to try again."""

    def end(self, server: str, free_at_s: float) -> None:
        """End a turn; the server may be asked again at that time."""

    def hold(self, server: str, until_s: float) -> None:
        """Leave a server alone at least until then."""

    def let_go(self) -> None:
        """Give other crawls their turn at servers that are not in use at the moment."""

    def close(self) -> None: ...


class Frontier(Protocol):
    """The queue of a harvest: each address is added once, queued by host, handed out politely, then finished
    or retried.

    A crash undoes everything since the last `commit`; on opening, addresses that were handed out but not
    finished are queued again. Times are seconds of a monotonic clock that the caller passes in. One process,
    one thread.
    """

    def add(self, candidates: Iterable[Candidate], *, last: bool = False) -> int:
        """Queue candidates never seen before (by exact address, without session ids); returns how many. With
        `last` they come after the links and parts of their host.
        """

    def refuse(self, candidate: Candidate) -> bool:
        """Note a candidate that will not be fetched; True the first time, so that it is logged once. It may
        still be added later.
        """

    def take(self, now_s: float) -> Candidate | None:
        """A candidate of a host that may be asked now and has no request in flight. The host is then held
        until `finish` or `retry`.
        """

    def next_due_s(self) -> float | None:
        """When `take` can next return a candidate; None if none is queued (some may still be in flight)."""

    def finish(self, candidate: Candidate, *, host_free_at_s: float) -> None:
        """The candidate is done; its host may be asked again from that time on."""

    def retry(
        self, candidate: Candidate, *, host_free_at_s: float, not_before_s: float = 0.0, counted: bool = True
    ) -> None:
        """Put the candidate back at the front of its host's queue. The try is counted unless the failure was
        not this address's fault (`counted` False). Until `not_before_s`, others of the host go first.
        """

    def remove(self, gives_up: Callable[[str], bool]) -> int:
        """Remove queued candidates (not those in flight) for whose address the callable returns True; returns
        how many. They still count as seen.
        """

    def remember(self, key: str, value: bytes) -> None:
        """Store a small value for the caller (robots.txt of a host, totals); durable with the next commit."""

    def recall(self, key: str) -> bytes | None:
        """The value last stored under that key, committed or not."""

    def commit(self, marks: Mapping[str, int]) -> None:
        """Make everything durable, together with the caller's marks (file name -> size known to be safe)."""

    def marks(self) -> Mapping[str, int]:
        """The marks of the last commit."""

    def counts(self) -> FrontierCounts: ...

    def waiting_at(self, origin: str) -> int:
        """How many candidates of an origin (scheme, host and port) are queued or in flight."""

    def iter_waiting(self) -> Iterator[Candidate]:
        """Candidates that have not been fetched, by host; for reports."""

    def close(self) -> None: ...


class Fetcher(Protocol):
    """Requests one address and returns the exact bytes. Failures of servers and networks are not raised, but
    returned as a `Visit`.
    """

    async def fetch(
        self, candidate: Candidate, headers: Sequence[tuple[str, str]] = (), body: bytes = b""
    ) -> Visit:
        """Fetch a candidate. `headers` come from a page's script and replace ours of the same name; a `body`
        is sent by POST.
        """

    def known_server(self, origin: str) -> str:
        """The address of the server of an origin, if it is known without a lookup; empty otherwise."""

    async def find_server(self, origin: str) -> str:
        """The address of the server of an origin, looked up if necessary; empty if there is none."""

    async def close(self) -> None: ...
