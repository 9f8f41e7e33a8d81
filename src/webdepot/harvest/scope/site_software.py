"""What a crawl knows about the software of each site, and the scope rule made of it.

A site is a host. Once one of its pages has shown a sign of a software (`software_rules.recognise`; the markup
only of its first pages, the generator of all), the rules of that software decide about all its addresses,
also those already queued: the judge asks again before an address is fetched. What is known is remembered in
the frontier:

    software:HOST  ->  JSON object: "runs": ids of software, "taken": rule -> digests of its addresses
"""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

from webdepot.harvest.scope.hop_path import embed_depth, is_seed_path
from webdepot.harvest.scope.software_rules import ALL, AddressRule, SoftwareCatalogue, Take
from webdepot.harvest.scope.verdicts import PASS, reject
from webdepot.model import Candidate, Hop, Verdict
from webdepot.ports.harvest import Frontier
from webdepot.url import host_of

RULE = "software"
"""The name of the rule in the chain; its verdicts name the kind of address."""
FIRST_PAGES = 10
MOST_IN_MEMORY = 20_000


@dataclass(slots=True)
class _Site:
    runs: list[str] = field(default_factory=list)
    taken: dict[str, list[str]] = field(default_factory=dict)
    """Rule that accepts a limited number -> digests of the addresses that it accepted."""
    seen: int = 0
    """Pages whose markup was looked at; not remembered."""


class SiteSoftware:
    """The software of the sites of one crawl. Without a frontier, to explain one address, nothing is
    stored.
    """

    def __init__(self, frontier: Frontier | None = None) -> None:
        self._frontier = frontier
        self._sites: dict[str, _Site] = {}
        self._include: Collection[str] = ()
        self._find_rule: Callable[[Iterable[str], str], AddressRule | None] = lambda ids, url: None

    def follow(self, catalogue: SoftwareCatalogue, include: Collection[str]) -> None:
        """Use this catalogue from now on, and do not leave out these kinds."""
        self._find_rule, self._include = catalogue.find_rule, include

    def wants_markup(self, candidate: Candidate) -> bool:
        """Whether the markup of a page is still examined: only that of the first pages of a host is."""
        site = self._site(host_of(candidate.url))
        site.seen += not embed_depth(candidate.path)
        return site.seen <= FIRST_PAGES

    def learn(self, host: str, ids: Collection[str]) -> list[str]:
        """Remember the software that a page of a host shows signs of; return the ids that are new."""
        site = self._site(host)
        new = sorted(id for id in ids if id not in site.runs)
        if new:
            site.runs += new
            self._remember(host)
        return new

    def rule(self, candidate: Candidate) -> Verdict:
        """Reject what the software of its site adds to the content. Seeds and parts of pages pass."""
        rule = self._find(candidate)
        if rule is None:
            return PASS
        if rule.take is Take.LAST:
            taken = self._site(host_of(candidate.url)).taken.get(rule.reason, ())
            if not rule.most or len(taken) < rule.most or _digest(candidate.url) in taken:
                return PASS
            return reject(rule.kind, f"{rule.reason}; {rule.most} of them were taken")
        return reject(rule.kind, rule.reason)

    def is_last(self, candidate: Candidate) -> bool:
        """Whether an accepted candidate is fetched after the content of its site."""
        return self._find(candidate, included=True) is not None

    def note_taken(self, candidate: Candidate) -> None:
        """Count an address that was queued, if its rule takes a limited number."""
        rule = self._find(candidate)
        if rule is None or not rule.most:
            return
        host = host_of(candidate.url)
        taken = self._site(host).taken.setdefault(rule.reason, [])
        digest = _digest(candidate.url)
        if digest not in taken:
            taken.append(digest)
            self._remember(host)

    def _find(self, candidate: Candidate, *, included: bool = False) -> AddressRule | None:
        """The rule that decides about this candidate; None if no rule does."""
        runs = self._site(host_of(candidate.url)).runs
        if not runs or is_seed_path(candidate.path) or candidate.path.endswith(Hop.PREREQUISITE):
            return None
        rule = self._find_rule(runs, candidate.url)
        if rule is None:
            return None
        is_part = embed_depth(candidate.path) > 0 and not candidate.path.endswith(Hop.SPECULATIVE)
        is_included = rule.kind in self._include or ALL in self._include
        return None if (is_part and not rule.parts) or (is_included and not included) else rule

    def _site(self, host: str) -> _Site:
        site = self._sites.get(host)
        if site is None:
            if len(self._sites) >= MOST_IN_MEMORY:
                self._sites.clear()
            stored = self._frontier.recall(f"software:{host}") if self._frontier is not None else None
            site = self._sites[host] = _Site(**json.loads(stored or b"{}"))
        return site

    def _remember(self, host: str) -> None:
        if self._frontier is not None:
            site = self._sites[host]
            value = json.dumps({"runs": site.runs, "taken": site.taken}).encode()
            self._frontier.remember(f"software:{host}", value)


def _digest(url: str) -> str:
    return blake2b(url.encode("utf-8", "replace"), digest_size=6).hexdigest()
