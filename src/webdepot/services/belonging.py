"""The decide rules about an organisation's hosts during a harvest: each new host decided once, remembered, explained.

The crawl asks `HostGate.find` for every link, at once; what is not known is examined beside the crawl (`judging.Judge`), several at a
time, and kept in the database, where the curator sees it. Verdicts of earlier runs count until they are `reopen_months` old; a curator's
for ever.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from webdepot.archive import Archive
from webdepot.harvest.addresses import LookUp
from webdepot.model import Answer, Verdict
from webdepot.selection.domains import organisations
from webdepot.selection.domains.evidence import Origin
from webdepot.selection.domains.judging import RULE, TEACHES_AT, Judge, Judgement
from webdepot.selection.domains.organisations import Organisation, Remembered
from webdepot.selection.domains.profile import Measure
from webdepot.selection.domains.resolver import Resolver
from webdepot.selection.domains.rules import HostRule, Kind, RuleName, parse, rule_of
from webdepot.services import discovering
from webdepot.url import Url, from_typed

_SAVED_TOGETHER = 200
_DAYS_OF_MONTH = 30
MOST_LINKERS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenGate:
    """What a crawl needs of an organisation: its rules, and, in a closed network, its names and authorities."""

    rules: "HostGate | None" = None
    seeds: tuple[Url, ...] = ()
    """Front pages of the hosts that are known to belong: some of them nobody links to."""
    look_up: LookUp | None = None
    ca_file: Path | None = None


@asynccontextmanager
async def gate_of(archive: Archive, root: str, rules: Sequence[str], *, allow_private: bool) -> AsyncIterator[OpenGate]:
    """The gate of the organisation with this root domain; an empty one without. NotFound when nobody has looked for it yet."""
    if not root:
        yield OpenGate()
        return
    given = archive.config.discovery
    organisation = discovering.get(archive, root)
    with discovering.authorities(given.extra_ca_file) as ca_file:
        async with discovering.network(archive, allow_private=allow_private) as sources:
            gate = HostGate(archive, organisation, discovering.judge_of(archive, organisation, sources), [parse(text) for text in rules])
            look_up = discovering.look_up_of(Resolver(given.resolver, timeout_s=given.timeout_s)) if given.resolver else None
            try:
                yield OpenGate(rules=gate, seeds=_front_pages(archive, organisation), look_up=look_up, ca_file=ca_file)
            finally:
                await gate.close()


def _front_pages(archive: Archive, organisation: Organisation) -> tuple[Url, ...]:
    port = archive.config.discovery.http_port
    hosts = discovering.hosts_of(archive, organisation, own="own")
    return tuple(from_typed(f"http://{host.host}{f':{port}' if port != 80 else ''}/") for host in hosts)


class HostGate:
    """The crawl's `HostRules` for one organisation. Made inside the crawl's event loop; `close` writes what is left."""

    def __init__(self, archive: Archive, organisation: Organisation, judge: Judge, names: Sequence[RuleName]) -> None:
        self._archive, self._organisation, self._judge = archive, organisation, judge
        self._names = tuple(names) or (RuleName(kind=Kind.BELONGS_TO),)
        self._rules: list[HostRule] = [rule_of(name, judge) for name in self._names]
        self._asks_first = archive.config.discovery.new_domains == "ask"
        self._places = archive.config.discovery.workers
        self._remembered = self._known()
        self._verdicts: dict[str, Verdict] = {}
        self._waiting: dict[str, str] = {}
        """Hosts not examined yet, in their order, with who led there."""
        self._running: dict[str, asyncio.Task[None]] = {}
        self._linkers: dict[str, list[str]] = {}
        self._unsaved: dict[str, Judgement] = {}

    def find(self, host: str) -> Verdict | None:
        verdict = self._verdicts.get(host)
        if verdict is None and host in self._remembered:
            verdict = self._verdicts[host] = _verdict_of(self._remembered.pop(host))
        return verdict

    def ask(self, host: str, via: str) -> None:
        linkers = self._linkers.setdefault(host, [])
        if via and via not in linkers and len(linkers) < MOST_LINKERS:
            linkers.append(via)
        if host not in self._waiting and host not in self._running and self.find(host) is None:
            self._waiting[host] = via
            self._fill()

    def waiting(self) -> int:
        return len(self._waiting) + len(self._running)

    def words_of(self, host: str) -> str:
        """Why a host belongs; empty where it does not or is not known."""
        verdict = self.find(host)
        return verdict.reason if verdict else ""

    async def close(self) -> None:
        self._waiting.clear()
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        self._save()

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._places:
            host = next(iter(self._waiting))
            via = self._waiting.pop(host)
            self._running[host] = asyncio.get_running_loop().create_task(self._decide(host, via))

    async def _decide(self, host: str, via: str) -> None:
        try:
            self._judge.origins.setdefault(host, Origin.MEMBER if not via or self.words_of(via) else Origin.FOREIGN)
            self._verdicts[host] = await self._verdict(host)
        finally:
            self._running.pop(host, None)
            # What was found out stands in the verdict; a wide harvest could not keep the pages of every host.
            self._judge.facts.pop(host, None)
            self._judge.origins.pop(host, None)
        self._fill()
        if len(self._unsaved) >= _SAVED_TOGETHER:
            self._save()

    async def _verdict(self, host: str) -> Verdict:
        reasons = []
        for name, rule in zip(self._names, self._rules, strict=True):
            verdict = await rule(host)
            if name.kind is Kind.BELONGS_TO:
                judged = self._judge.judge(self._judge.facts[host])
                is_new = bool(judged.own) and self._asks_first and not self._measure.owner_of(host) and not judged.by_person
                self._unsaved[host] = replace(judged, own=None) if is_new else judged
                if judged.own and not is_new and judged.score >= TEACHES_AT:
                    self._judge.teach({host: judged})
            if verdict:
                return self._first_asked(host, verdict)
            reasons.append(f"{verdict.rule}: {verdict.reason}")
        return Verdict(answer=Answer.REJECT, rule=self._names[-1].kind.value, reason="; ".join(reasons))

    def _first_asked(self, host: str, verdict: Verdict) -> Verdict:
        """By setting, a domain that nobody has accepted yet waits for the curator, with its evidence."""
        if not self._asks_first or self._measure.owner_of(host):
            return verdict
        return Verdict(answer=Answer.REJECT, rule=verdict.rule, reason=f"a curator is asked first: {verdict.reason}")

    @property
    def _measure(self) -> Measure:
        return Measure(self._organisation.profile)

    def _known(self) -> dict[str, Remembered]:
        """What earlier runs decided, if BelongsTo is asked; the plain rules look again, and only a curator stands above them."""
        uses_evidence = any(name.kind is Kind.BELONGS_TO for name in self._names)
        since = self._archive.clock() - timedelta(days=_DAYS_OF_MONTH * self._archive.config.discovery.reopen_months)
        with self._archive.database.reading() as connection:
            hosts = organisations.remembered(connection, self._organisation.id, since=since if uses_evidence else None)
            return {host.host: host for host in hosts}

    def _save(self) -> None:
        if not self._unsaved:
            return
        rows = [(judged, self._case(judged), self._linkers.get(host, ())) for host, judged in self._unsaved.items()]
        with self._archive.database.transaction() as connection:
            organisations.save_hosts(connection, self._organisation.id, rows, now=self._archive.clock())
        for host in self._unsaved:
            self._linkers.pop(host, None)
        self._unsaved.clear()

    def _case(self, judged: Judgement) -> int:
        """The way to it is known by who linked it: over members only, or through others."""
        if not judged.is_resolved:
            return 0
        if not judged.is_inside:
            return 2
        return 1 if any(self.words_of(via) for via in self._linkers.get(judged.host, ())) else 3


def _verdict_of(host: Remembered) -> Verdict:
    return Verdict(answer=Answer.ACCEPT if host.own else Answer.REJECT, rule=RULE, reason=host.words)
