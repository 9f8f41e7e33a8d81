"""The diagram of an organisation's domains: the root in the middle, the five sectors around it, certain
domains near the middle.

It consists of values for an SVG template. The hosts of one domain are one dot, whose size grows with their
number. Positions are not random, so the same survey always gives the same diagram.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from webdepot.selection.domains.organisations import KnownHost

WIDTH, HEIGHT = 1000.0, 640.0
MOST_DOTS = 160
MOST_NAMED = 70
_EDGE = 20.0
_SECTORS = {1: (-150.0, -30.0), 2: (-20.0, 75.0), 3: (85.0, 125.0), 4: (135.0, 170.0), 5: (175.0, 205.0)}
"""Degrees, clockwise from the right; a sector is wider the more domains it usually has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainDot:
    name: str
    case: int
    kind: str
    """own or ask."""
    count: int
    score: float
    x: float
    y: float
    radius: float
    anchor: str
    """The SVG text anchor of its name: start or end."""
    is_named: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainLine:
    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSector:
    case: int
    x: float
    y: float
    """Of its number; its description is below."""
    anchor: str
    """The SVG text anchor: start at the left edge, end at the right one."""
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainDiagram:
    width: float
    height: float
    root: str
    dots: tuple[DomainDot, ...]
    lines: tuple[DomainLine, ...]
    sectors: tuple[CaseSector, ...]
    left_out: int


def draw(root: str, hosts: Sequence[KnownHost]) -> DomainDiagram:
    """Members and candidates by domain around the root, which stands for its own hosts."""
    groups: dict[str, list[KnownHost]] = defaultdict(list)
    for host in hosts:
        if (host.own or (host.own is None and host.case)) and host.domain != root and host.case in _SECTORS:
            groups[host.domain].append(host)
    ordered = sorted(groups.items(), key=lambda item: (-max(host.score for host in item[1]), item[0]))
    chosen = dict(ordered[:MOST_DOTS])
    by_case: dict[int, list[str]] = defaultdict(list)
    for domain, members in chosen.items():
        by_case[min(host.case for host in members)].append(domain)
    dots = {
        dot.name: dot
        for case, names in by_case.items()
        for dot in _place(case, names, chosen, is_named=len(chosen) <= MOST_NAMED)
    }
    return DomainDiagram(
        width=WIDTH,
        height=HEIGHT,
        root=root,
        dots=tuple(dots.values()),
        lines=tuple(_lines(root, hosts, dots)),
        sectors=tuple(_sector(case, len(names)) for case, names in sorted(by_case.items())),
        left_out=len(ordered) - len(chosen),
    )


def _place(
    case: int, names: Sequence[str], groups: dict[str, list[KnownHost]], *, is_named: bool
) -> list[DomainDot]:
    first, last = _SECTORS[case]
    dots = []
    for number, name in enumerate(names):
        members = groups[name]
        degrees = first + (last - first) * (number + 0.5) / len(names)
        score = max(host.score for host in members)
        # Neighbours have different distances, so that their names do not overlap.
        distance = 0.5 + 0.17 * (number % 3) + 0.16 * (1 - score)
        x = WIDTH / 2 + math.cos(math.radians(degrees)) * distance * WIDTH * 0.46
        y = HEIGHT / 2 + math.sin(math.radians(degrees)) * distance * HEIGHT * 0.52
        dots.append(
            DomainDot(
                name=name,
                case=case,
                kind="own" if any(host.own for host in members) else "ask",
                count=len(members),
                score=score,
                x=round(x, 1),
                y=round(y, 1),
                radius=round(min(5 + 1.6 * math.sqrt(len(members)), 16), 1),
                anchor="end" if x < WIDTH / 2 else "start",
                is_named=is_named,
            )
        )
    return dots


def _lines(root: str, hosts: Sequence[KnownHost], dots: dict[str, DomainDot]) -> list[DomainLine]:
    """Links between the domains that are drawn."""
    domain_of = {host.host: host.domain for host in hosts}
    links = set()
    for host in hosts:
        if host.domain not in dots:
            continue
        for linker in host.linked_by:
            source = domain_of.get(linker, "")
            if source != host.domain and (source == root or source in dots):
                links.add((source, host.domain))
    middle = (WIDTH / 2, HEIGHT / 2)
    places = {name: (dot.x, dot.y) for name, dot in dots.items()} | {root: middle}
    return [
        DomainLine(x1=places[source][0], y1=places[source][1], x2=places[domain][0], y2=places[domain][1])
        for source, domain in sorted(links)
    ]


def _sector(case: int, count: int) -> CaseSector:
    first, last = _SECTORS[case]
    degrees = math.radians((first + last) / 2)
    x = min(max(WIDTH / 2 + math.cos(degrees) * WIDTH * 0.47, _EDGE), WIDTH - _EDGE)
    y = min(max(HEIGHT / 2 + math.sin(degrees) * HEIGHT * 0.47, 40), HEIGHT - 60)
    anchor = "start" if x < WIDTH / 4 else "end" if x > WIDTH * 3 / 4 else "middle"
    return CaseSector(case=case, x=round(x, 1), y=round(y, 1), anchor=anchor, count=count)
