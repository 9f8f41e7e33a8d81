"""Rules that must first find something out about a host (its addresses, its owner), given to the crawl by the service.

A host that is not decided yet is neither inside nor outside: the address waits in the frontier, the service finds out meanwhile, and the
question is put again when the address is taken. So no worker waits for a registry, and a crash loses nothing.
"""

import re
from typing import Protocol

from webdepot.harvest.scope import Rule, embed_depth
from webdepot.model import Answer, Candidate, Verdict
from webdepot.url import host_of

UNDECIDED = "undecided"
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.2, 120.0
_PER_SECOND = 200
"""Waiting hosts asked about again in a second, so that many of them cost little."""
_PASS = Verdict(answer=Answer.PASS, rule="", reason="")


class HostRules(Protocol):
    """Decides about hosts once and remembers it."""

    def find(self, host: str) -> Verdict | None:
        """What is known now; None while it is being found out. Quick: it is asked for every link."""

    def ask(self, host: str, via: str) -> None:
        """Begin to find out; a second time changes nothing."""

    def waiting(self) -> int:
        """Hosts that are being found out."""


def by_host(hosts: HostRules) -> Rule:
    """What is known of a host. A rejection names its rule once for each host; later links there are simply outside."""
    told: set[str] = set()

    def rule(candidate: Candidate) -> Verdict:
        host = _name(candidate.url)
        verdict = hosts.find(host)
        if verdict is None:
            return _PASS
        if verdict.answer is not Answer.REJECT:
            return verdict
        if host in told:
            return Verdict(answer=Answer.REJECT, rule="outside", reason=verdict.reason)
        told.add(host)
        return verdict

    return rule


def undecided(hosts: HostRules) -> Rule:
    """Begin to find out about a host that nobody knows, and wait; parts of pages are taken from anywhere and ask nothing."""

    def rule(candidate: Candidate) -> Verdict:
        host = _name(candidate.url)
        verdict = hosts.find(host)
        if verdict is not None or embed_depth(candidate.path):
            # What belongs is not taken as a link beyond, wherever it was found.
            return verdict or _PASS
        hosts.ask(host, _name(candidate.via) if candidate.via else "")
        return Verdict(answer=Answer.ACCEPT, rule=UNDECIDED, reason=f"it is being found out whose {host} is")

    return rule


def is_inside(hosts: HostRules | None, url: str) -> bool:
    """Whether the host is known to belong."""
    verdict = hosts.find(_name(url)) if hosts is not None else None
    return bool(verdict)


def wait_s(hosts: HostRules) -> float:
    """How long until it is worth asking again."""
    return min(SHORTEST_WAIT_S + hosts.waiting() / _PER_SECOND, LONGEST_WAIT_S)


def _name(url: str) -> str:
    host = host_of(url)
    return host[1 : host.index("]")] if host.startswith("[") else re.sub(r":\d+\Z", "", host)
