"""Check whether a harvest is complete: findings from its crawl log and from the outlinks in its containers.

Containers and log are read into a `CheckDatabase`, which then answers these questions:
1. Was anything harvested, and did every seed return a document?
2. Is the queue empty?
3. Which parts of kept pages (images, styles, scripts, media) are missing, and why?
4. Which of the site's own links lead to an error, which redirects form a loop?
5. Which responses are incomplete, do not match their record, are not the expected page, or were not loaded by
   the browser?
6. What is new, gone or changed since the harvest before, and is the size usual (`compare`)?
7. Which neighbouring hosts were not harvested, and which addresses look like a crawler trap?
8. What was not harvested or not followed: soft 404, stopped traps, kinds of addresses that are not content?

There is one finding for each address, however many pages link to it; `place` names one of them. Memory use
does not grow with the harvest.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

from webdepot.model import Capture, Failure, Finding, Hop
from webdepot.quality import compare
from webdepot.quality.check_database import CheckDatabase, LinkTarget, Visited
from webdepot.quality.compare import HarvestMeasures
from webdepot.quality.record_facts import RecordFacts
from webdepot.quality.texts import finding, pages
from webdepot.reasons import Reason, logged, said
from webdepot.url import domain_of, host_of

MOST_REDIRECTS = 10
MOST_LISTED = 1000
"""Most findings of a kind whose number is not bounded otherwise."""
UNSEEN = "browserFailed:"
"""Annotation of the crawl log: the browser could not load the page."""
UNCLICKED = "clicksFailed:"
"""Annotation of the crawl log: the browser stopped clicking in the page, or did not begin."""
MISSING = "soft404"
"""Annotation of the crawl log: the page is the one that its host shows for missing addresses."""
LONG_SEGMENTS = 12
LONG_CHARACTERS = 500
_ROBOTS, _SCOPE, _LIMIT = Failure.ROBOTS.status, Failure.SCOPE.status, Failure.LIMIT.status
_FAILURES = {
    Failure.DNS.status: said("quality.details.dns", "its host name could not be resolved"),
    Failure.CONNECT.status: said("quality.details.connect", "its server could not be reached"),
    Failure.DISCONNECT.status: said("quality.details.disconnect", "its server closed the connection"),
    Failure.TIMEOUT.status: said("quality.details.timeout", "its server did not answer in time"),
    Failure.PROTOCOL.status: said("quality.details.protocol", "the response is not valid"),
    Failure.TLS.status: said("quality.details.tls", "no secure connection to its server"),
    Failure.PRIVATE_ADDRESS.status: said("quality.details.private", "its host has a private address"),
    Failure.ROBOTS.status: said("quality.details.robots", "robots.txt forbids it"),
}
_RULES = frozenset({Failure.SCOPE.status, Failure.LIMIT.status})
"""Failures that are described by the recorded reason of the rule or limit."""
_MEASURED = frozenset({"body-truncated", "digest-differs"})
"""Codes whose details are sentences of the program; those of others quote the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestTraces:
    """The files and figures of a harvest that the check reads."""

    harvest: str
    """Name of the harvest, the subject of findings about the whole harvest."""
    seeds: tuple[str, ...]
    records: Iterable[RecordFacts | Finding]
    """The facts of the records of its containers, and findings about their damage; read once."""
    log: Path | None
    """crawl.jsonl; None for imports that came without a log: their responses are read from the containers."""
    patch_logs: Sequence[Path] = ()
    """Logs of its patches, whose records are among `records`: a harvest is checked with its patches."""
    waiting: int = 0
    """Addresses left in the queue when it ended."""
    before: Iterable[Capture] = ()
    """The captures of the harvest before; empty if there is none."""
    before_name: str = ""
    false_before: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Addresses whose page was false in the harvest before: code and detail."""
    measures: HarvestMeasures | None = None
    """The figures of this harvest; None if it is not compared with others."""
    trap_rules: Collection[str] = ()
    """Scope rules against crawler traps: what they stopped is a finding."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Kinds of addresses that are left out because they are not content, with descriptions."""
    maze_kinds: Collection[str] = ()
    """Those of `left_out` that no software adds: the site invents such pages without end."""
    earlier: Sequence[HarvestMeasures] = ()
    """The figures of the last harvests of its target."""


def check(traces: HarvestTraces) -> Iterator[Finding]:
    """All findings about a harvest, including damage of its containers; streams."""
    with closing(CheckDatabase()) as database:
        if traces.log is not None and traces.log.exists():
            database.add_log(traces.log)
        for log in traces.patch_logs:
            database.add_log(log)
        for each in traces.records:
            if isinstance(each, Finding):
                yield each
            else:
                database.add(each)
        database.add_before(traces.before)
        database.finish(traces.false_before)
        if database.damaged_lines:
            yield finding("log-damaged", subject=traces.harvest, count=database.damaged_lines)
        yield from _check_harvest(database, traces)
        yield from _check_parts(database, traces)
        yield from _check_links(database, traces)
        yield from _check_loops(database)
        for url, code, place, detail in database.iter_observed():
            yield finding(
                code, subject=url, place=place, detail=logged(detail) if code in _MEASURED else detail
            )
        for url, why in database.iter_noted(UNSEEN):
            yield finding("browser-failed", subject=url, detail=why)
        for url, why in islice(database.iter_noted(UNCLICKED), MOST_LISTED):
            yield finding("browser-stopped", subject=url, detail=why)
        for url in islice((url for url, more in database.iter_noted(MISSING) if not more), MOST_LISTED):
            yield finding("says-missing", subject=url)
        yield from _check_rejected(database, traces)
        yield from _check_changes(database, traces)
        if traces.measures is not None:
            yield from compare.against(traces.measures, traces.earlier, subject=traces.harvest)
        yield from _check_paths(database)


def _check_harvest(database: CheckDatabase, traces: HarvestTraces) -> Iterator[Finding]:
    if not database.count_documents():
        yield finding("nothing-harvested", subject=traces.harvest)
    if traces.log is not None:
        for seed in traces.seeds:
            yield from _check_seed(database, seed)
    if traces.waiting:
        yield finding("queue-left", subject=traces.harvest, count=traces.waiting)


def _check_seed(database: CheckDatabase, seed: str) -> Iterator[Finding]:
    end = _follow(database, seed)
    if end is None:
        yield finding("seed-never-tried", subject=seed)
    elif not 200 <= end.status < 400:
        yield finding("seed-failed", subject=seed, detail=_outcome(end))


def _check_rejected(database: CheckDatabase, traces: HarvestTraces) -> Iterator[Finding]:
    """Findings about addresses that were left out as traps or because they are not content: one for each
    rule.
    """
    for rule, count, example, reason in database.iter_rejected(_SCOPE):
        if rule in traces.maze_kinds:
            yield finding("maze-stopped", subject=example, count=count, detail=_by_rule(rule, reason))
        elif rule in traces.left_out:
            detail = said(
                "quality.details.left_out",
                "{kind} ({description}), {reason}",
                kind=rule,
                description=logged(traces.left_out[rule]),
                reason=logged(reason),
            )
            yield finding("left-out", subject=example, count=count, detail=detail)
        elif rule in traces.trap_rules:
            yield finding("trap-stopped", subject=example, count=count, detail=_by_rule(rule, reason))


def _check_parts(database: CheckDatabase, traces: HarvestTraces) -> Iterator[Finding]:
    for address in database.iter_linked(Hop.EMBED.value):
        end = _follow(database, address.url)
        code = _part_code(end)
        if code and not (end is not None and end.status == _SCOPE and end.rule in traces.left_out):
            yield _about(code, address, end)


def _part_code(end: Visited | None) -> str:
    """The code of the finding about a missing part; empty if it was harvested."""
    if end is None:
        return "part-never-tried"
    known = {_ROBOTS: "part-robots", _SCOPE: "part-out-of-scope", _LIMIT: "part-over-limit"}
    if end.status in known:
        return known[end.status]
    if end.status < 200:
        return "part-unreachable"
    return "part-error" if end.status >= 400 else ""


def _check_links(database: CheckDatabase, traces: HarvestTraces) -> Iterator[Finding]:
    """Findings about broken links. Addresses that were never in scope have no visit and count as correct."""
    hosts: dict[str, str] = {}
    for address in database.iter_linked(Hop.LINK.value):
        if len(hosts) < MOST_LISTED:
            hosts.setdefault(host_of(address.url), address.first_page)
        visited = database.find_visit(address.url)
        end = (_follow(database, address.url) or visited) if visited else None
        code = _link_code(end) if end else ""
        if code:
            yield _about(code, address, end)
    yield from _check_neighbours(hosts, database, traces)


def _check_loops(database: CheckDatabase) -> Iterator[Finding]:
    """Findings about redirects that lead back to an earlier address; one for each loop."""
    reported: set[str] = set()
    for start in database.iter_redirecting():
        chain = [start]
        while (targets := database.redirects(chain[-1])) and len(chain) <= MOST_REDIRECTS:
            visited = database.find_visit(targets[0])
            here = visited.url if visited and visited.status >= 300 else targets[0]
            if here in chain:
                loop = chain[chain.index(here) :]
                if min(loop) not in reported and len(reported) < MOST_LISTED:
                    reported.add(min(loop))
                    detail = " → ".join([*loop[:4], here])
                    yield finding("redirect-loop", subject=min(loop), place=start, detail=detail)
                break
            if visited is None or not 300 <= visited.status < 400:
                break
            chain.append(here)


def _check_changes(database: CheckDatabase, traces: HarvestTraces) -> Iterator[Finding]:
    if not database.has_before():
        return
    yield finding(
        "since-before", subject=traces.harvest, place="", before=traces.before_name, **database.changes()
    )
    for name in ("gone", "changed", "new"):
        for url in database.iter_changes(name, MOST_LISTED):
            yield finding(f"file-{name}", subject=url, place=traces.before_name)


def _check_paths(database: CheckDatabase) -> Iterator[Finding]:
    """Findings about addresses that look like a crawler trap: a site that generates endless addresses."""
    count = 0
    for url in database.iter_kept():
        if count >= MOST_LISTED:
            return
        segments = [segment for segment in urlsplit(url).path.split("/") if segment]
        if repeated := _repeated(segments):
            count += 1
            yield finding("path-repeats", subject=url, detail=repeated)
        elif len(segments) > LONG_SEGMENTS or len(url) > LONG_CHARACTERS:
            count += 1
            detail = said(
                "quality.details.long",
                "{parts} parts, {count} characters",
                parts=len(segments),
                count=len(url),
            )
            yield finding("path-long", subject=url, detail=detail)


def _repeated(segments: list[str]) -> str:
    """Segments repeated three times in succession, or one that occurs three times; empty if none."""
    for length in range(1, len(segments) // 3 + 1):
        for at in range(len(segments) - 3 * length + 1):
            part = segments[at : at + length]
            if part == segments[at + length : at + 2 * length] == segments[at + 2 * length : at + 3 * length]:
                return "/".join(part)
    return next((segment for segment, count in Counter(segments).items() if count >= 3), "")


def _check_neighbours(
    hosts: Mapping[str, str], database: CheckDatabase, traces: HarvestTraces
) -> Iterator[Finding]:
    """Findings about hosts of the site's own domains that pages link to but that were not harvested.

    `hosts` has one linking page for each host.
    """
    own = {host_of(url) for url in traces.seeds}
    domains = {domain_of(url) for url in traces.seeds}
    for host in sorted(hosts):
        url = f"http://{host}/"
        bare = host.removeprefix("www.")
        if (
            host in own
            or bare in {each.removeprefix("www.") for each in own}
            or domain_of(url) not in domains
        ):
            continue
        if not database.has_host(host):
            yield finding("sub-domain", subject=host, place=hosts[host])


def _link_code(end: Visited) -> str:
    if end.status == _ROBOTS:
        return "link-robots"
    if end.status in (_SCOPE, _LIMIT) or 100 <= end.status < 400:
        return ""
    if end.status < 100:
        return "link-unreachable"
    return "link-server-error" if end.status >= 500 else "link-broken"


def _follow(database: CheckDatabase, url: str) -> Visited | None:
    """The visit at the end of an address's redirects; None if it was never tried. Stops at a loop."""
    seen: set[str] = set()
    visited = database.find_visit(url)
    while (
        visited is not None
        and 300 <= visited.status < 400
        and visited.status != 304
        and len(seen) < MOST_REDIRECTS
    ):
        seen.add(visited.url)
        targets = database.redirects(visited.url)
        if not targets or targets[0] in seen:
            return visited
        visited = database.find_visit(targets[0])
    return visited


def _about(code: str, address: LinkTarget, end: Visited | None) -> Finding:
    return finding(
        code,
        subject=address.url,
        place=address.first_page,
        pages=pages(address.pages),
        detail=_outcome(end) if end else "",
    )


def _outcome(end: Visited) -> str:
    """The HTTP status or the failure, in words."""
    if end.status >= 100:
        phrase = HTTPStatus(end.status).phrase if end.status in set(HTTPStatus) else ""
        return f"{end.status} {phrase}".rstrip()
    if end.status in _RULES:
        return _by_rule(end.rule, end.reason)
    failure = _FAILURES.get(end.status) or said(
        "quality.details.status", "status {status}", status=str(end.status)
    )
    if not end.reason:
        return failure
    return said("quality.details.because", "{words} ({reason})", words=failure, reason=end.reason)


def _by_rule(rule: str, reason: str) -> Reason:
    """What a rule of the scope or a limit said."""
    detail = logged(reason) if reason else said("quality.details.no_reason", "no reason is recorded")
    return (
        said("quality.details.by_rule", "{reason} (rule: {rule})", reason=detail, rule=rule)
        if rule
        else detail
    )
