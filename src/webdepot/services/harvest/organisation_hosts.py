"""Decides during a harvest which hosts belong to an organisation.

The crawl asks `HostGate.find` for every link and gets an answer at once. Hosts that are not known are
examined by a separate process (`host_examiner`), and the crawl continues meanwhile. Verdicts of earlier
harvests are used until they are `reopen_months` old; those of a curator are always used.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import cast

from webdepot.archive import Archive
from webdepot.model import Answer, Verdict
from webdepot.selection.domains import organisations
from webdepot.selection.domains.lookup.resolver import Resolver
from webdepot.selection.domains.organisations import Organisation, Remembered
from webdepot.selection.domains.ownership_rules import HostRuleKind, RuleName, parse
from webdepot.selection.domains.verdict import RULE
from webdepot.services.harvest.options import OrganisationHosts
from webdepot.services.selection import lookup_network
from webdepot.services.selection import organisations as organisations_service
from webdepot.url import Url, from_typed

_DAYS_OF_MONTH = 30
MOST_LINKERS = 5
MOST_STARTS = 3
SHUTDOWN_WAIT_S = 30.0


@asynccontextmanager
async def open_gate(
    archive: Archive, root: str, rules: Sequence[str], *, allow_private: bool
) -> AsyncIterator[OrganisationHosts]:
    """Start to decide about hosts for the organisation with this root domain.

    NotFound if the organisation is not known.
    """
    config = archive.config.discovery
    organisation = organisations_service.get(archive, root)
    remembered = remembered_of(archive, organisation, names_of(rules))
    command = (
        "-m",
        "webdepot.services.harvest.host_examiner",
        str(archive.home),
        root,
        "yes" if allow_private else "no",
        *rules,
    )
    with lookup_network.authorities(config.extra_ca_file) as ca_file:
        look_up = (
            lookup_network.look_up_of(Resolver(config.resolver, timeout_s=config.timeout_s))
            if config.resolver
            else None
        )
        gate = HostGate(command, remembered)
        try:
            yield OrganisationHosts(
                rules=gate, seeds=_front_pages(archive, organisation), look_up=look_up, ca_file=ca_file
            )
        finally:
            await gate.close()


def names_of(rules: Sequence[str]) -> tuple[RuleName, ...]:
    """The rules as parsed; `BelongsTo` if there are none."""
    return tuple(parse(text) for text in rules) or (RuleName(kind=HostRuleKind.BELONGS_TO),)


def remembered_of(
    archive: Archive, organisation: Organisation, names: Sequence[RuleName]
) -> dict[str, Remembered]:
    """The verdicts of earlier harvests by host.

    Only `BelongsTo` uses all of them; the other rules examine hosts again and use only those of a curator.
    """
    uses_evidence = any(name.kind is HostRuleKind.BELONGS_TO for name in names)
    since = archive.clock() - timedelta(days=_DAYS_OF_MONTH * archive.config.discovery.reopen_months)
    with archive.database.reading() as connection:
        return {
            host.host: host
            for host in organisations.remembered(
                connection, organisation.id, since=since if uses_evidence else None
            )
        }


def verdict_of(host: Remembered) -> Verdict:
    """A remembered decision as a verdict of the scope rules."""
    return Verdict(answer=Answer.ACCEPT if host.own else Answer.REJECT, rule=RULE, reason=host.reason)


def _front_pages(archive: Archive, organisation: Organisation) -> tuple[Url, ...]:
    port = archive.config.discovery.http_port
    hosts = organisations_service.hosts_of(archive, organisation, own="own")
    return tuple(from_typed(f"http://{host.host}{f':{port}' if port != 80 else ''}/") for host in hosts)


class HostGate:
    """The crawl's `HostRules` for one organisation. Created and closed inside the crawl's event loop.

    A process that dies is started again with the hosts that wait. After `MOST_STARTS` starts they stay
    outside, and the log says why.
    """

    def __init__(self, command: Sequence[str], remembered: Mapping[str, Remembered]) -> None:
        self._command = tuple(command)
        self._remembered = dict(remembered)
        self._verdicts: dict[str, Verdict] = {}
        self._waiting: dict[str, list[str]] = {}
        """Hosts that are being examined, with the hosts that link to them."""
        self._starts = 0
        self._is_closing = False
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    def find(self, host: str) -> Verdict | None:
        verdict = self._verdicts.get(host)
        if verdict is None and host in self._remembered:
            verdict = self._verdicts[host] = verdict_of(self._remembered.pop(host))
        return verdict

    def ask(self, host: str, via: str) -> None:
        linkers = self._waiting.setdefault(host, [])
        if via not in linkers and len(linkers) < MOST_LINKERS:
            linkers.append(via)
            self._send(host, via)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._listen())

    def waiting(self) -> int:
        return len(self._waiting)

    async def close(self) -> None:
        self._is_closing = True
        if self._task is None:
            return
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._task, SHUTDOWN_WAIT_S)
        except TimeoutError:
            if self._process is not None and self._process.returncode is None:
                self._process.kill()
                await self._process.wait()

    async def _listen(self) -> None:
        """Receive verdicts for the length of the crawl, and start the process again if it dies."""
        while not self._is_closing and self._starts < MOST_STARTS:
            self._starts += 1
            pipe = asyncio.subprocess.PIPE
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, *self._command, stdin=pipe, stdout=pipe, limit=1 << 20
            )
            for host, linkers in self._waiting.items():
                for via in linkers:
                    self._send(host, via)
            if self._is_closing and self._process.stdin is not None:
                self._process.stdin.close()
            await self._receive(self._process)
        for host in self._waiting if not self._is_closing else ():
            reason = (
                f"the owner of {host} is not known: "
                f"the process that examines hosts ended {self._starts} times"
            )
            self._verdicts[host] = Verdict(answer=Answer.REJECT, rule=RULE, reason=reason)
        self._waiting.clear()
        self._task = None

    async def _receive(self, process: asyncio.subprocess.Process) -> None:
        async for line in cast(asyncio.StreamReader, process.stdout):
            message = json.loads(line)
            self._verdicts[message["host"]] = Verdict(
                answer=Answer(message["answer"]), rule=message["rule"], reason=message["reason"]
            )
            self._waiting.pop(message["host"], None)
        await process.wait()

    def _send(self, host: str, via: str) -> None:
        if self._process is None or self._process.stdin is None or self._process.stdin.is_closing():
            return
        with suppress(ConnectionError):
            self._process.stdin.write(json.dumps({"host": host, "via": via}).encode() + b"\n")
