"""Rules about whole hosts that need a lookup first (addresses, owner); the service gives them to the crawl.

While a host is undecided, the address stays in the frontier, the service looks the host up, and the rule is
asked again when the address is taken. So no worker waits for a registry, and a crash loses nothing.
"""

import re
from typing import Protocol

from webdepot.harvest.scope.hop_path import embed_depth
from webdepot.harvest.scope.membership import OUTSIDE
from webdepot.harvest.scope.verdicts import PASS, Rule, accept, reject
from webdepot.model import Answer, Candidate, Verdict
from webdepot.url import host_of

UNDECIDED = "undecided"
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.2, 120.0
_PER_SECOND = 1000
"""How many undecided hosts are asked about again each second, so that many of them cost little."""


class HostRules(Protocol):
    """Decides about each host once and remembers the verdict."""

    def find(self, host: str) -> Verdict | None:
        """The verdict; None while it is being looked up. Must be quick: it is called for every link."""

    def ask(self, host: str, via: str) -> None:
        """Start to look a host up; a second call changes nothing."""

    def waiting(self) -> int:
        """The number of hosts being looked up."""


def rules_of(hosts: HostRules) -> tuple[Rule, Rule]:
    """Two rules of the scope chain: `by_host` comes before links outside, `undecided` after them.

    `by_host` gives the verdict about a host. A rejection names its rule once for each host; later links there
    are simply outside. `undecided` starts the lookup of an unknown host and lets the address wait; parts of
    pages are accepted from anywhere and start no lookup. An address of a host that belongs is accepted by
    that rule, never as a link outside.
    """
    rejected: set[str] = set()

    def by_host(candidate: Candidate) -> Verdict:
        host = _name(candidate.url)
        verdict = hosts.find(host)
        if verdict is None:
            return PASS
        if verdict.answer is not Answer.REJECT:
            return verdict
        if host in rejected:
            return reject(OUTSIDE, verdict.reason)
        rejected.add(host)
        return verdict

    def undecided(candidate: Candidate) -> Verdict:
        host = _name(candidate.url)
        verdict = hosts.find(host)
        if verdict is not None:
            return verdict if verdict.answer is Answer.ACCEPT else PASS
        if embed_depth(candidate.path):
            return PASS
        hosts.ask(host, _name(candidate.via) if candidate.via else "")
        return accept(UNDECIDED, f"the owner of {host} is being looked up")

    return by_host, undecided


def is_inside(hosts: HostRules | None, url: str) -> bool:
    """Whether the host is known to belong to the harvest."""
    verdict = hosts.find(_name(url)) if hosts is not None else None
    return bool(verdict)


def is_outside(hosts: HostRules | None, url: str) -> bool:
    """Whether the host is known not to belong to the harvest."""
    verdict = hosts.find(_name(url)) if hosts is not None else None
    return verdict is not None and verdict.answer is Answer.REJECT


def wait_s(hosts: HostRules) -> float:
    """How long to wait before asking again."""
    return min(SHORTEST_WAIT_S + hosts.waiting() / _PER_SECOND, LONGEST_WAIT_S)


def _name(url: str) -> str:
    """The host without its port and without brackets."""
    host = host_of(url)
    return host[1 : host.index("]")] if host.startswith("[") else re.sub(r":\d+\Z", "", host)
