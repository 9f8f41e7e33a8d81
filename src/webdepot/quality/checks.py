"""Is a harvest whole? Findings from its crawl log and from the outlinks that its containers carry (mission
K13).

Order: containers and log are laid out on a `Board`, then each question is asked of it:
1. did anything come in, and did every seed answer?
2. was something left waiting?
3. which parts (images, styles, scripts, media) do kept pages show that are absent, and why?
4. which of the site's own links lead to an error, which redirects in a circle?
5. which answers are not whole, not what their record says, not the page that was asked for, or not seen in
   the browser?
6. what is new, gone or changed since the harvest before, and is it as large as the ones before (`compare`)?
7. which neighbouring hosts were left out, and which addresses look like a trap?

A finding is about one address, however many pages ask for it; `place` names one of them. Nothing grows with
the harvest in memory.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from webdepot.container.reader import iter_records
from webdepot.model import Capture, Failure, Finding, Hop
from webdepot.quality import compare
from webdepot.quality.board import Asked, Board, Extract, Visited
from webdepot.quality.compare import Profile
from webdepot.quality.texts import finding, pages
from webdepot.url import domain_of, host_of

MOST_REDIRECTS = 10
MOST_LISTED = 1000
"""So many addresses are named of one kind that can be without number; the counts have them all."""
UNSEEN = "browserFailed:"
"""Annotation of the crawl log: the page could not be seen in the browser."""
LONG_SEGMENTS = 12
LONG_LETTERS = 500
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
    patch_logs: Sequence[Path] = ()
    """Those of its patches, whose containers are among `containers`: parent and patches are checked as one.
    """
    waiting: int = 0
    """Addresses left in the queue when it ended."""
    extract: Extract | None = None
    """Reads links out of pages, where containers do not tell them."""
    before: Iterable[Capture] = ()
    """What the harvest before had; empty without one."""
    before_name: str = ""
    false_before: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Addresses that brought no right page then: code and detail."""
    profile: Profile | None = None
    """This harvest in figures, and the last ones of its target."""
    earlier: Sequence[Profile] = ()


def check(traces: HarvestTraces) -> Iterator[Finding]:
    """All findings about a harvest; streams. Damage of its containers is among them."""
    with closing(Board(traces.extract)) as board:
        damage: list[Finding] = []
        if traces.log is not None and traces.log.exists():
            board.take_log(traces.log)
        for log in traces.patch_logs:
            board.take_log(log)
        for name, path in traces.containers:
            yield from _take_container(board, name, path, damage)
        board.take_before(traces.before)
        board.settle(traces.false_before)
        if board.damaged_lines:
            yield finding("log-damaged", subject=traces.harvest, count=board.damaged_lines)
        yield from _check_harvest(board, traces)
        yield from _check_parts(board)
        yield from _check_links(board, traces)
        yield from _check_loops(board)
        for url, code, place, detail in board.iter_observed():
            yield finding(code, subject=url, place=place, detail=detail)
        for url, why in board.iter_noted(UNSEEN):
            yield finding("browser-failed", subject=url, detail=why)
        yield from _check_changes(board, traces)
        if traces.profile is not None:
            yield from compare.against(traces.profile, traces.earlier, subject=traces.harvest)
        yield from _check_paths(board)


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


def _check_links(board: Board, traces: HarvestTraces) -> Iterator[Finding]:
    """Links to addresses that were never in scope have no visit and are no fault; so only what was tried can
    be broken.
    """
    hosts: dict[str, str] = {}
    for asked in board.iter_asked(Hop.LINK.value):
        if len(hosts) < MOST_LISTED:
            hosts.setdefault(host_of(asked.url), asked.first_page)
        visited = board.visited(asked.url)
        end = (_follow(board, asked.url) or visited) if visited else None
        code = _link_code(end) if end else ""
        if code:
            yield _about(code, asked, end)
    yield from _check_neighbours(hosts, board, traces)


def _check_loops(board: Board) -> Iterator[Finding]:
    """Rows of redirects that come back to where they were, each circle once; and those that go on for ever."""
    told: set[str] = set()
    for start in board.iter_redirecting():
        row = [start]
        while (targets := board.redirects(row[-1])) and len(row) <= MOST_REDIRECTS:
            visited = board.visited(targets[0])
            here = visited.url if visited and visited.status >= 300 else targets[0]
            if here in row:
                circle = row[row.index(here) :]
                if min(circle) not in told and len(told) < MOST_LISTED:
                    told.add(min(circle))
                    yield finding(
                        "redirect-loop",
                        subject=min(circle),
                        place=start,
                        detail=" → ".join([*circle[:4], here]),
                    )
                break
            if visited is None or not 300 <= visited.status < 400:
                break
            row.append(here)


def _check_changes(board: Board, traces: HarvestTraces) -> Iterator[Finding]:
    if not board.has_before():
        return
    yield finding(
        "since-before", subject=traces.harvest, place="", before=traces.before_name, **board.changes()
    )
    for name in ("gone", "changed", "new"):
        for url in board.iter_changes(name, MOST_LISTED):
            yield finding(f"file-{name}", subject=url, place=traces.before_name)


def _check_paths(board: Board) -> Iterator[Finding]:
    """Addresses that look like a trap: a program that makes new ones for ever."""
    told = 0
    for url in board.iter_kept():
        if told >= MOST_LISTED:
            return
        segments = [segment for segment in urlsplit(url).path.split("/") if segment]
        if found := _repeats(segments):
            told += 1
            yield finding("path-repeats", subject=url, detail=found)
        elif len(segments) > LONG_SEGMENTS or len(url) > LONG_LETTERS:
            told += 1
            yield finding("path-long", subject=url, detail=f"{len(segments)} parts, {len(url)} letters")


def _repeats(segments: list[str]) -> str:
    """A part or a row of parts that comes three times running, or one part that comes three times at all."""
    for length in range(1, len(segments) // 3 + 1):
        for at in range(len(segments) - 3 * length + 1):
            part = segments[at : at + length]
            if part == segments[at + length : at + 2 * length] == segments[at + 2 * length : at + 3 * length]:
                return "/".join(part)
    return next((segment for segment, count in Counter(segments).items() if count >= 3), "")


def _check_neighbours(hosts: Mapping[str, str], board: Board, traces: HarvestTraces) -> Iterator[Finding]:
    """Hosts of the site's own domains that pages lead to and that were not harvested; `hosts` names one page
    for each.
    """
    own = {host_of(url) for url in traces.seeds}
    domains = {domain_of(url) for url in traces.seeds}
    for host in sorted(hosts):
        address = f"http://{host}/"
        bare = host.removeprefix("www.")
        if (
            host in own
            or bare in {each.removeprefix("www.") for each in own}
            or domain_of(address) not in domains
        ):
            continue
        if not board.has_host(host):
            yield finding("sub-domain", subject=host, place=hosts[host])


def _link_code(end: Visited) -> str:
    if end.status == _ROBOTS:
        return "link-robots"
    if end.status in (_SCOPE, _LIMIT) or 100 <= end.status < 400:
        return ""
    if end.status < 100:
        return "link-unreachable"
    return "link-server-error" if end.status >= 500 else "link-broken"


def _follow(board: Board, url: str) -> Visited | None:
    """What came of an address after its redirects. A target that was never tried is None; loops end where
    they began.
    """
    seen: set[str] = set()
    visited = board.visited(url)
    while (
        visited is not None
        and 300 <= visited.status < 400
        and visited.status != 304
        and len(seen) < MOST_REDIRECTS
    ):
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
