"""The decide rules about an organisation's hosts during a harvest, as the crawl sees them.

The crawl asks `HostGate.find` for every link, at once; what is not known is examined by a process of its own
(`host_examiner`), whose verdicts arrive meanwhile. Verdicts of earlier runs count until they are
`reopen_months` old; a curator's for ever.
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
from webdepot.selection.domains.rules import HostRuleKind, RuleName, parse
from webdepot.selection.domains.verdict import RULE
from webdepot.services.harvest.open_gate import OpenGate
from webdepot.services.selection import lookup_network
from webdepot.services.selection import organisations as organisations_service
from webdepot.url import Url, from_typed

_DAYS_OF_MONTH = 30
MOST_LINKERS = 5
MOST_STARTS = 3
ENDS_WITHIN_S = 30.0


@asynccontextmanager
async def gate_of(
    archive: Archive, root: str, rules: Sequence[str], *, allow_private: bool
) -> AsyncIterator[OpenGate]:
    """The gate of the organisation with this root domain; an empty one without. NotFound when nobody has
    looked for it yet.
    """
    if not root:
        yield OpenGate()
        return
    given = archive.config.discovery
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
    with lookup_network.authorities(given.extra_ca_file) as ca_file:
        look_up = (
            lookup_network.look_up_of(Resolver(given.resolver, timeout_s=given.timeout_s))
            if given.resolver
            else None
        )
        gate = HostGate(command, remembered)
        try:
            yield OpenGate(
                rules=gate, seeds=_front_pages(archive, organisation), look_up=look_up, ca_file=ca_file
            )
        finally:
            await gate.close()


def names_of(rules: Sequence[str]) -> tuple[RuleName, ...]:
    return tuple(parse(text) for text in rules) or (RuleName(kind=HostRuleKind.BELONGS_TO),)


def remembered_of(
    archive: Archive, organisation: Organisation, names: Sequence[RuleName]
) -> dict[str, Remembered]:
    """What earlier runs decided, if BelongsTo is asked; the plain rules look again, and only a curator stands
    above them.
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
    return Verdict(answer=Answer.ACCEPT if host.own else Answer.REJECT, rule=RULE, reason=host.reason)


def _front_pages(archive: Archive, organisation: Organisation) -> tuple[Url, ...]:
    port = archive.config.discovery.http_port
    hosts = organisations_service.hosts_of(archive, organisation, own="own")
    return tuple(from_typed(f"http://{host.host}{f':{port}' if port != 80 else ''}/") for host in hosts)


class HostGate:
    """The crawl's `HostRules` for one organisation. Made and closed inside the crawl's event loop.

    A process that dies is started again with what was waiting; when that does not help, those hosts stay
    outside, and the log says why.
    """

    def __init__(self, command: Sequence[str], remembered: Mapping[str, Remembered]) -> None:
        self._command = tuple(command)
        self._remembered = dict(remembered)
        self._verdicts: dict[str, Verdict] = {}
        self._waiting: dict[str, list[str]] = {}
        """Hosts that are being found out, with who led there."""
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

    def words_of(self, host: str) -> str:
        """Why a host belongs; empty where it does not or is not known."""
        verdict = self.find(host)
        return verdict.reason if verdict else ""

    async def close(self) -> None:
        self._is_closing = True
        if self._task is None:
            return
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._task, ENDS_WITHIN_S)
        except TimeoutError:
            if self._process is not None and self._process.returncode is None:
                self._process.kill()
                await self._process.wait()

    async def _listen(self) -> None:
        """As long as the crawl lasts: hear verdicts, start the process again when it has died."""
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
            await self._hear(self._process)
        for host in self._waiting if not self._is_closing else ():
            reason = f"it could not be found out whose {host} is: the process that examines hosts ended {self._starts} times"
            self._verdicts[host] = Verdict(answer=Answer.REJECT, rule=RULE, reason=reason)
        self._waiting.clear()
        self._task = None

    async def _hear(self, process: asyncio.subprocess.Process) -> None:
        async for line in cast(asyncio.StreamReader, process.stdout):
            told = json.loads(line)
            self._verdicts[told["host"]] = Verdict(
                answer=Answer(told["answer"]), rule=told["rule"], reason=told["reason"]
            )
            self._waiting.pop(told["host"], None)
        await process.wait()

    def _send(self, host: str, via: str) -> None:
        if self._process is None or self._process.stdin is None or self._process.stdin.is_closing():
            return
        with suppress(ConnectionError):
            self._process.stdin.write(json.dumps({"host": host, "via": via}).encode() + b"\n")
