"""Second phase, before a harvest: follow links, certificates and transparency logs from the root, judge every
host, and determine its sector.

1. Candidates: links on members' pages, links on pages one step outside (for sector 3), names in short
   certificates, certificate transparency by domain and by organisation, and hosts named by a person or a
   server configuration.
2. Each is examined once (`verdict.HostJudge.examine`), several at a time.
3. When the queue is empty, certain members extend the profile and all hosts are judged again; at most three
   rounds.
4. The sectors follow from the link graph (links from the root; "inside" means in a network of the
   organisation):

    sector  place    reached by links
    1       inside   through servers inside only
    2       outside  yes
    3       inside   only through servers outside
    4       inside   no
    5       outside  no
    0       the host does not resolve, so its place is not known
"""

import asyncio
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from webdepot.selection.domains.facts import HostFacts, bare_host, registrable
from webdepot.selection.domains.lookup.site_visit import MOST_REQUESTS
from webdepot.selection.domains.ownership_signs import HostOrigin
from webdepot.selection.domains.profiler import with_ranges
from webdepot.selection.domains.verdict import TEACHES_AT, HostJudge, HostJudgement
from webdepot.url import host_of

ROUNDS = 3
MOST_LINKERS = 5
MOST_SAN_DOMAINS = 12
_INNER = re.compile(
    r"(?i)einricht|institut|fakult|facult|depart|fachbereich|link|sitemap|a-?z|organi|partner|projekt|"
    r"project|forsch|"
    r"research|zentr|cent|verzeichnis|directory|site|unit"
)
_HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9-]{2,63}\Z")


class Reach(IntEnum):
    """How far a candidate is from the page of a member."""

    MEMBER = 0
    OUTSIDE = 1
    FAR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredHost:
    """A judged host with its sector and the hosts that link to it."""

    judgement: HostJudgement
    case: int
    linked_by: tuple[str, ...]


@dataclass(slots=True)
class HostDiscovery:
    """One survey of an organisation; `run` returns all hosts it has judged."""

    judge: HostJudge
    workers: int = 24
    limit_hosts: int = 20_000
    progress: Callable[[int, int, str], None] = lambda done, waiting, host: None
    links: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    linkers: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    reaches: dict[str, Reach] = field(default_factory=dict)
    left_out: int = 0
    """Candidates beyond the limit."""
    _waiting: "deque[str]" = field(default_factory=deque)
    _done: set[str] = field(default_factory=set)
    _logged: set[str] = field(default_factory=set)

    async def run(
        self, root: str, *, root_facts: HostFacts | None = None, extra: Mapping[str, HostOrigin] | None = None
    ) -> list[DiscoveredHost]:
        """All hosts found from the root, members first."""
        judge = self.judge
        self._start_with(root, root_facts)
        for host, origin in (extra or {}).items():
            self._add(host, origin, Reach.MEMBER)
        for name in judge.measure.names[:5]:
            for host in await judge.sources.logged_for(name):
                self._add(host, HostOrigin.LOGGED_FOR, Reach.MEMBER)
        for _ in range(ROUNDS):
            await self._ask_logs()
            await self._drain()
            before = judge.judgements()
            judge.recount_sharing(before)
            before = judge.judgements()
            await self._learn_ranges(before)
            has_learned = judge.teach(before)
            self._follow_new(judge.judgements())
            if not has_learned and not self._waiting:
                break
        await self._drain()
        judge.recount_sharing(judge.judgements())
        return self._result(root)

    # --- the walk ---

    def _start_with(self, root: str, facts: HostFacts | None) -> None:
        self._add(root, HostOrigin.ROOT, Reach.MEMBER)
        domain = registrable(root)
        self._add(f"www.{domain}" if root == domain else domain, HostOrigin.MEMBER, Reach.MEMBER)
        if facts is not None:
            self.judge.facts[facts.host] = facts

    async def _drain(self) -> None:
        running: set[asyncio.Task[None]] = set()
        while self._waiting or running:
            while self._waiting and len(running) < self.workers:
                running.add(asyncio.create_task(self._examine(self._waiting.popleft())))
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()

    async def _examine(self, host: str) -> None:
        judge, reach = self.judge, self.reaches[host]
        self._done.add(host)
        judged = await judge.examine(
            host, judge.origins[host], wants_page=reach < Reach.FAR, only_dns=reach is Reach.FAR
        )
        facts = judge.facts[host]
        if judged.own:
            facts = await self._inner_pages(facts)
        self._take_links(host, facts, judged)
        self.progress(len(self._done), len(self._waiting), host)

    async def _inner_pages(self, facts: HostFacts) -> HostFacts:
        """Fetch pages of a member that probably link to other sites, within its limit of requests."""
        front = facts.front
        if front is None or front.status != 200:
            return facts
        near = [
            link
            for link in front.links
            if bare_host(host_of(link)) == facts.host and link not in (front.url, front.imprint)
        ]
        near.sort(key=lambda link: not _INNER.search(link.partition("://")[2].partition("/")[2]))
        for link in near[: MOST_REQUESTS - facts.requests]:
            page = await self.judge.sources.page(link)
            if page is not None:
                self._note_links(facts.host, page.links, Reach.MEMBER)
        return facts

    def _take_links(self, host: str, facts: HostFacts, judged: HostJudgement) -> None:
        if not judged.own and self.reaches[host] is Reach.FAR:
            return
        reach = Reach.MEMBER if judged.own else Reach(self.reaches[host] + 1)
        for page in (facts.front, facts.imprint):
            if page is not None:
                self._note_links(host, [*page.links, *([page.redirect] if page.redirect else [])], reach)
        certificate = facts.certificate
        if (
            judged.own
            and certificate is not None
            and len({registrable(name) for name in certificate.names}) <= MOST_SAN_DOMAINS
        ):
            for name in certificate.names:
                self._add(name, HostOrigin.CERTIFICATE, Reach.MEMBER)

    def _note_links(self, host: str, links: Iterable[str], reach: Reach) -> None:
        origin = HostOrigin.MEMBER if reach is Reach.MEMBER else HostOrigin.FOREIGN
        for link in links:
            target = bare_host(host_of(link))
            if target == host or not _HOST.match(target) or target.rpartition(".")[2].isdigit():
                continue
            self.links[host].add(target)
            linkers = self.linkers[target]
            if len(linkers) < MOST_LINKERS and host not in linkers:
                linkers.append(host)
            self._add(target, origin, reach)

    def _add(self, host: str, origin: HostOrigin, reach: Reach) -> None:
        if not _HOST.match(host):
            return
        known = self.reaches.get(host)
        if known is None and len(self.reaches) >= self.limit_hosts:
            self.left_out += 1
            return
        if known is None or reach < known:
            self.reaches[host] = reach
            # A closer link gives a better prior; a host of which only DNS was looked up is examined again.
            self.judge.origins[host] = origin
            if known is None or (known is Reach.FAR and host in self._done):
                self._waiting.append(host)

    # --- learning ---

    async def _ask_logs(self) -> None:
        for domain in sorted(self.judge.measure.domains - self._logged)[:200]:
            self._logged.add(domain)
            for host in await self.judge.sources.logged_below(domain):
                self._add(host, HostOrigin.LOGGED, Reach.MEMBER)

    async def _learn_ranges(self, judgements: Mapping[str, HostJudgement]) -> None:
        """Look for further networks of the organisation at the addresses of certain members."""
        addresses: dict[str, None] = {}
        for judged in judgements.values():
            records = self.judge.facts[judged.host].records
            if judged.own and judged.score >= TEACHES_AT and not judged.is_inside and records is not None:
                addresses.update(dict.fromkeys(records.addresses[:1]))
        self.judge.learn(
            await with_ranges(self.judge.profile, addresses, self.judge.sources, now=self.judge.now)
        )

    def _follow_new(self, judgements: Mapping[str, HostJudgement]) -> None:
        """Follow the links of hosts that have turned out to be members."""
        for host, judged in judgements.items():
            if judged.own:
                self._take_links(host, self.judge.facts[host], judged)

    # --- the result ---

    def _result(self, root: str) -> list[DiscoveredHost]:
        judgements = self.judge.judgements()
        reached_inside = self._reached(root, judgements, internal_only=True)
        reached = self._reached(root, judgements, internal_only=False)
        hosts = [
            DiscoveredHost(
                judgement=judged,
                case=_case(judged, host in reached_inside, host in reached),
                linked_by=tuple(self.linkers.get(host, ())),
            )
            for host, judged in judgements.items()
        ]
        return sorted(
            hosts,
            key=lambda item: (item.judgement.own is not True, -item.judgement.score, item.judgement.host),
        )

    def _reached(
        self, root: str, judgements: Mapping[str, HostJudgement], *, internal_only: bool
    ) -> set[str]:
        """Hosts reached by links from the root, through servers inside only or through any."""
        domain = registrable(root)
        reached = {root, f"www.{domain}", domain}
        waiting = list(reached)
        while waiting:
            host = waiting.pop()
            judged = judgements.get(host)
            if (
                internal_only
                and host not in (root, domain, f"www.{domain}")
                and not (judged is not None and judged.is_inside)
            ):
                continue
            new = self.links.get(host, set()) - reached
            reached |= new
            waiting.extend(new)
        return reached


def _case(judged: HostJudgement, is_reached_inside: bool, is_reached: bool) -> int:
    """The sector of a host, as in the table above."""
    if not judged.is_resolved:
        return 0
    if judged.is_inside:
        return 1 if is_reached_inside else 3 if is_reached else 4
    return 2 if is_reached else 5
