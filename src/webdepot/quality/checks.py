"""Is a harvest whole? Findings from its crawl log and from the outlinks that its containers carry (mission K13).

Order: containers and log are laid out on a `Board`, then each question is asked of it:
1. did anything come in, and did every seed answer?
2. was something left waiting?
3. which parts (images, styles, scripts, media) do kept pages show that are absent, and why?
4. which of the site's own links lead to an error?
5. which answers are not whole?

A finding is about one address, however many pages ask for it; `place` names one of them. Nothing grows with the harvest in memory.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from webdepot.container.reader import iter_records
from webdepot.model import Failure, Finding, Hop
from webdepot.quality.board import Asked, Board, Visited
from webdepot.quality.texts import finding, pages

MOST_REDIRECTS = 10
_ROBOTS, _SCOPE, _LIMIT = Failure.ROBOTS.status, Failure.SCOPE.status, Failure.LIMIT.status
_WORDS = {failure.status: failure.value for failure in Failure}


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestTraces:
    """What a harvest left behind."""

    harvest: str
    """Name of the harvest, the subject of findings about it as a whole."""
    seeds: tuple[str, ...]
    containers: Sequence[tuple[str, Path]]
    """Name and file of each."""
    log: Path | None
    """crawl.jsonl; None for imports, whose answers are then taken from the containers."""
    waiting: int = 0
    """Addresses left in the queue when it ended."""


def check(traces: HarvestTraces) -> Iterator[Finding]:
    """All findings about a harvest; streams. Damage of its containers is among them."""
    with closing(Board()) as board:
        damage: list[Finding] = []
        if traces.log is not None and traces.log.exists():
            board.take_log(traces.log)
        for name, path in traces.containers:
            yield from _take_container(board, name, path, damage)
        board.settle()
        if board.damaged_lines:
            yield finding("log-damaged", subject=traces.harvest, count=board.damaged_lines)
        yield from _check_harvest(board, traces)
        yield from _check_parts(board)
        yield from _check_links(board)
        for url, reason, place in board.iter_truncated():
            yield finding("body-truncated", subject=url, place=place, detail=reason)


def _take_container(board: Board, name: str, path: Path, damage: list[Finding]) -> Iterator[Finding]:
    with path.open("rb") as stream:
        for record in iter_records(stream, name, on_finding=damage.append):
            board.take_record(record)
            while damage:
                yield damage.pop(0)
    yield from damage
    damage.clear()


def _check_harvest(board: Board, traces: HarvestTraces) -> Iterator[Finding]:
    if not board.answers():
        yield finding("nothing-harvested", subject=traces.harvest)
    if traces.log is not None:
        for seed in traces.seeds:
            yield from _check_seed(board, seed)
    if traces.waiting:
        yield finding("queue-left", subject=traces.harvest, count=traces.waiting)


def _check_seed(board: Board, seed: str) -> Iterator[Finding]:
    end = _follow(board, seed)
    if end is None:
        yield finding("seed-never-tried", subject=seed)
    elif not 200 <= end.status < 400:
        yield finding("seed-failed", subject=seed, detail=_words(end))


def _check_parts(board: Board) -> Iterator[Finding]:
    for asked in board.iter_asked(Hop.EMBED.value):
        end = _follow(board, asked.url)
        code = _part_code(end)
        if code:
            yield _about(code, asked, end)


def _part_code(end: Visited | None) -> str:
    """Why a part is absent; empty when it is there."""
    if end is None:
        return "part-never-tried"
    known = {_ROBOTS: "part-robots", _SCOPE: "part-out-of-scope", _LIMIT: "part-over-limit"}
    if end.status in known:
        return known[end.status]
    if end.status < 200:
        return "part-unreachable"
    return "part-error" if end.status >= 400 else ""


def _check_links(board: Board) -> Iterator[Finding]:
    """Links to addresses that were never in scope have no visit and are no fault; so only what was tried can be broken."""
    for asked in board.iter_asked(Hop.LINK.value):
        visited = board.visited(asked.url)
        end = (_follow(board, asked.url) or visited) if visited else None
        code = _link_code(end) if end else ""
        if code:
            yield _about(code, asked, end)


def _link_code(end: Visited) -> str:
    if end.status == _ROBOTS:
        return "link-robots"
    if end.status in (_SCOPE, _LIMIT) or 100 <= end.status < 400:
        return ""
    if end.status < 100:
        return "link-unreachable"
    return "link-server-error" if end.status >= 500 else "link-broken"


def _follow(board: Board, url: str) -> Visited | None:
    """What came of an address after its redirects. A target that was never tried is None; loops end where they began."""
    seen: set[str] = set()
    visited = board.visited(url)
    while visited is not None and 300 <= visited.status < 400 and visited.status != 304 and len(seen) < MOST_REDIRECTS:
        seen.add(visited.url)
        targets = board.redirects(visited.url)
        if not targets or targets[0] in seen:
            return visited
        visited = board.visited(targets[0])
    return visited


def _about(code: str, asked: Asked, end: Visited | None) -> Finding:
    detail = _words(end) if end else ""
    return finding(code, subject=asked.url, place=asked.first_page, pages=pages(asked.pages), detail=detail)


def _words(end: Visited) -> str:
    if end.status >= 100:
        return str(end.status)
    return ", ".join(filter(None, (_WORDS.get(end.status, str(end.status)), end.rule, end.reason)))
