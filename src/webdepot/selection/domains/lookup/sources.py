"""Where facts come from: the interface of all sources, and the live one with DNS, TLS, HTTP, RDAP, whois and
certificate transparency.

The survey and the host rules see only `Sources`, so that a generated world can replace the internet
(bench/discovery.py). `LiveSources` caches every answer for its time to live and counts the queries it sent.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar, cast

from webdepot.container.http import parse_head
from webdepot.model import Candidate
from webdepot.ports.harvest import Fetcher
from webdepot.selection.domains import page_facts
from webdepot.selection.domains.facts import (
    Certificate,
    HostRecords,
    LookupStatus,
    Network,
    PageFacts,
    Registration,
    ZoneRecords,
    from_json,
    to_json,
)
from webdepot.selection.domains.lookup import certificate as lookup_certificate
from webdepot.selection.domains.lookup.answer_cache import KeptAnswers
from webdepot.selection.domains.lookup.pace import Pace, is_this_machine
from webdepot.selection.domains.lookup.rdap import Rdap
from webdepot.selection.domains.lookup.resolver import Resolver
from webdepot.selection.domains.lookup.transparency import Transparency
from webdepot.selection.domains.lookup.whois import Whois
from webdepot.times import Clock
from webdepot.url import find_canonical, host_of

_Value = TypeVar("_Value")

DAY_S = 86_400.0
REGISTRATION_S = 30 * DAY_S
FAILED_S = 900.0


class Sources(Protocol):
    """Look-ups. None of them raises for errors of networks or servers."""

    asked: Counter[str]
    """Queries that were sent: `dns`, `tls`, `page`, `registry`, `transparency`."""

    async def host(self, host: str) -> HostRecords: ...

    async def zone(self, domain: str) -> ZoneRecords: ...

    async def certificate(self, host: str, addresses: tuple[str, ...]) -> Certificate | None: ...

    async def page(self, url: str, *, as_imprint: bool = False) -> PageFacts | None:
        """One request, without following redirects; None if there is no response."""

    async def registration(self, domain: str) -> Registration: ...

    async def network(self, address: str) -> Network: ...

    async def logged_below(self, domain: str) -> tuple[str, ...]: ...

    async def logged_for(self, organisation: str) -> tuple[str, ...]: ...


class LiveSources:
    """The internet, or the closed network that the configuration names. To be created and used in one event
    loop.
    """

    def __init__(
        self,
        *,
        resolver: Resolver,
        fetcher: Fetcher,
        rdap: Rdap,
        whois: Whois,
        transparency: Transparency,
        kept: KeptAnswers,
        pace: Pace,
        clock: Clock,
        extra_ca_file: str = "",
        allows: Callable[[str], bool],
        https_port: int = 443,
        timeout_s: float = 5.0,
    ) -> None:
        self.asked: Counter[str] = Counter()
        self._resolver, self._fetcher, self._rdap, self._whois = resolver, fetcher, rdap, whois
        self._transparency, self._kept, self._pace, self._clock = transparency, kept, pace, clock
        self._allows = allows
        self._contexts = lookup_certificate.contexts(extra_ca_file)
        self._https_port, self._timeout_s = https_port, timeout_s
        self._networks: list[Network] = []
        self._running: dict[tuple[str, str], asyncio.Task[object]] = {}

    async def host(self, host: str) -> HostRecords:
        async def ask() -> tuple[HostRecords, float]:
            return await self._resolver.host(host)

        return await self._once("host", host, HostRecords, ask)

    async def zone(self, domain: str) -> ZoneRecords:
        async def ask() -> tuple[ZoneRecords, float]:
            return await self._resolver.zone(domain)

        return await self._once("zone", domain, ZoneRecords, ask)

    async def registration(self, domain: str) -> Registration:
        async def ask() -> tuple[Registration, float]:
            at = self._clock()
            answer = await self._rdap.registration(domain, at=at)
            if answer is None:
                answer = await self._whois.registration(domain, at=at)
            return answer, FAILED_S if answer.status is LookupStatus.FAILED else REGISTRATION_S

        return await self._once("domain", domain, Registration, ask)

    async def network(self, address: str) -> Network:
        known = next((network for network in self._networks if network.contains(address)), None)
        if known is not None:
            return known

        async def ask() -> tuple[Network, float]:
            at = self._clock()
            answer = await self._rdap.network(address, at=at)
            if answer is None:
                answer = await self._whois.network(address, at=at)
            return answer, FAILED_S if answer.status is LookupStatus.FAILED else REGISTRATION_S

        network = await self._once("network", address, Network, ask)
        if network.status is LookupStatus.FOUND and network not in self._networks:
            self._networks.append(network)
        return network

    async def certificate(self, host: str, addresses: tuple[str, ...]) -> Certificate | None:
        kept = self._kept.find("certificate", host)
        if kept is not None:
            return from_json(Certificate, kept) if kept else None
        address = next((address for address in addresses if self._allows(address)), None)
        if address is None:
            return None
        self.asked["tls"] += 1
        trusting, blind = self._contexts
        certificate = await lookup_certificate.ask(
            address, host, port=self._https_port, timeout_s=self._timeout_s, trusting=trusting, blind=blind
        )
        seconds = DAY_S if certificate else FAILED_S
        self._kept.keep("certificate", host, to_json(certificate) if certificate else {}, seconds)
        return certificate

    async def page(self, url: str, *, as_imprint: bool = False) -> PageFacts | None:
        canonical = find_canonical(url)
        if canonical is None:
            return None
        kind = "imprint" if as_imprint else "page"
        kept = self._kept.find(kind, canonical)
        if kept is not None:
            return from_json(PageFacts, kept) if kept else None
        # Requests to one host name wait for each other. One address may serve thousands of names; it gets no
        # more requests at once than it has names.
        host = host_of(canonical).partition(":")[0]
        records = self._kept.find("host", host) or {}
        is_near = bool(records.get("addresses")) and all(map(is_this_machine, records["addresses"]))
        async with self._pace.turn(f"page {host}", pause_s=0.0 if is_near else None):
            self.asked["page"] += 1
            visit = await self._fetcher.fetch(Candidate(url=canonical))
        with visit.body:
            page = (
                None
                if visit.failure is not None
                else page_facts.read(canonical, parse_head(visit.head), visit.body, as_imprint=as_imprint)
            )
        self._kept.keep(kind, canonical, to_json(page) if page else {}, DAY_S if page else FAILED_S)
        return page

    async def logged_below(self, domain: str) -> tuple[str, ...]:
        return await self._logged(f"% {domain}", lambda: self._transparency.below(domain))

    async def logged_for(self, organisation: str) -> tuple[str, ...]:
        return await self._logged(
            f"O {organisation}", lambda: self._transparency.of_organisation(organisation)
        )

    async def _logged(self, key: str, ask: Callable[[], Awaitable[tuple[str, ...]]]) -> tuple[str, ...]:
        if not self._transparency.is_on:
            return ()
        kept = self._kept.find("transparency", key)
        if kept is not None:
            return tuple(kept)
        names = await ask()
        self._kept.keep("transparency", key, list(names), DAY_S if names else FAILED_S)
        self._count()
        return names

    async def _once(
        self, kind: str, key: str, type_: type[_Value], ask: Callable[[], Awaitable[tuple[_Value, float]]]
    ) -> _Value:
        """The cached answer, the one of a running query, or that of a new query."""
        kept = self._kept.find(kind, key)
        if kept is not None:
            return from_json(type_, kept)
        running = self._running.get((kind, key))
        if running is None:
            running = asyncio.create_task(self._asked(kind, key, ask))
            self._running[kind, key] = running
            running.add_done_callback(lambda _: self._running.pop((kind, key), None))
        return cast(_Value, await asyncio.shield(running))

    async def _asked(self, kind: str, key: str, ask: Callable[[], Awaitable[tuple[object, float]]]) -> object:
        answer, seconds = await ask()
        self._kept.keep(kind, key, to_json(answer), seconds)
        self._count()
        return answer

    def _count(self) -> None:
        self.asked["dns"] = self._resolver.queries
        self.asked["registry"] = self._rdap.queries + self._whois.queries
        self.asked["transparency"] = self._transparency.queries
