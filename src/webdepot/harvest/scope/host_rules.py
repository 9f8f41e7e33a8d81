"""Rules that must first find something out about a host (its addresses, its owner), given to the crawl by the
service.

A host that is not decided yet is neither inside nor outside: the address waits in the frontier, the service
finds out meanwhile, and the question is put again when the address is taken. So no worker waits for a
registry, and a crash loses nothing.
"""

import re
from typing import Protocol

from webdepot.harvest.scope.scope import OUTSIDE, Rule, embed_depth
from webdepot.model import Answer, Candidate, Verdict
from webdepot.url import host_of

UNDECIDED = "undecided"
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.2, 120.0
_PER_SECOND = 1000
"""Waiting hosts asked about again in a second, so that many of them cost little."""
_PLAIN = re.compile(r"[a-z0-9._-]+")
_PASS = Verdict(answer=Answer.PASS, rule="", reason="")


class HostRules(Protocol):
    """Decides about hosts once and remembers it."""

    def find(self, host: str) -> Verdict | None:
        """What is known now; None while it is being found out. Quick: it is asked for every link."""

    def ask(self, host: str, via: str) -> None:
        """Begin to find out; a second time changes nothing."""

    def waiting(self) -> int:
        """Hosts that are being found out."""


def rules_of(hosts: HostRules) -> tuple[Rule, Rule]:
    """Two rules of the scope chain: `by_host` stands before links outside, `undecided` after them.

    `by_host` says what is known of a host. A rejection names its rule once for each host; later links there
    are simply outside. `undecided` begins to find out about a host that nobody knows, and lets the address
    wait; parts of pages are taken from anywhere and ask nothing. What belongs is never taken as a mere link
    beyond.
    """
    told: set[str] = set()
    lately: tuple[str, str, Verdict | None] = ("", "", None)

    def known(url: str) -> tuple[str, Verdict | None]:
        # Both rules are asked about the same address, one after the other.
        nonlocal lately
        if lately[0] is not url or lately[2] is None:
            host = _name(url)
            lately = (url, host, hosts.find(host))
        return lately[1], lately[2]

    def by_host(candidate: Candidate) -> Verdict:
        host, verdict = known(candidate.url)
        if verdict is None:
            return _PASS
        if verdict.answer is not Answer.REJECT:
            return verdict
        if host in told:
            return Verdict(answer=Answer.REJECT, rule=OUTSIDE, reason=verdict.reason)
        told.add(host)
        return verdict

    def undecided(candidate: Candidate) -> Verdict:
        host, verdict = known(candidate.url)
        if verdict is not None:
            return verdict if verdict.answer is Answer.ACCEPT else _PASS
        if embed_depth(candidate.path):
            return _PASS
        hosts.ask(host, _name(candidate.via) if candidate.via else "")
        return Verdict(answer=Answer.ACCEPT, rule=UNDECIDED, reason=f"it is being found out whose {host} is")

    return by_host, undecided


def is_inside(hosts: HostRules | None, url: str) -> bool:
    """Whether the host is known to belong."""
    verdict = hosts.find(_name(url)) if hosts is not None else None
    return bool(verdict)


def is_outside(hosts: HostRules | None, url: str) -> bool:
    """Whether the host is known not to belong."""
    verdict = hosts.find(_name(url)) if hosts is not None else None
    return verdict is not None and verdict.answer is Answer.REJECT


def wait_s(hosts: HostRules) -> float:
    """How long until it is worth asking again."""
    return min(SHORTEST_WAIT_S + hosts.waiting() / _PER_SECOND, LONGEST_WAIT_S)


def _name(url: str) -> str:
    start = url.find("//") + 2
    slash = url.find("/", start)
    host = url[start:slash] if slash > 0 else url[start:]
    if _PLAIN.fullmatch(host):
        return host
    host = host_of(url)
    return host[1 : host.index("]")] if host.startswith("[") else re.sub(r":\d+\Z", "", host)
