"""The process beside a crawl that finds out whose hosts are: each new host decided once, remembered,
explained.

A crawl must not wait for name servers, registries and front pages, nor share its processor with reading their
answers. So it starts

    python -m webdepot.services.harvest.host_examiner HOME ROOT PRIVATE RULE...

and writes a line for each new host (JSON: `host`, `via`); verdicts come back as lines (`host`, `answer`,
`rule`, `reason`) when they are found. Several hosts are examined at once. What is found out is kept in the
database, where the curator sees it. The process ends when its input ends, and keeps what is left.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from webdepot.archive import Archive
from webdepot.model import Answer, Verdict
from webdepot.selection.domains import organisations
from webdepot.selection.domains.evidence import HostOrigin
from webdepot.selection.domains.organisations import Organisation
from webdepot.selection.domains.profile import ProfileMatcher
from webdepot.selection.domains.rules import HostRule, HostRuleKind, RuleName, rule_of
from webdepot.selection.domains.verdict import TEACHES_AT, HostJudge, HostJudgement
from webdepot.services.harvest.host_gate import MOST_LINKERS, names_of, remembered_of, verdict_of
from webdepot.services.selection import lookup_network
from webdepot.services.selection import organisations as organisations_service

_SAVED_TOGETHER = 200
_BEHIND = 5
"""How much less of the processor it wants than the crawl (nice)."""
Tell = Callable[[str, Verdict], None]


def main(home: str, root: str, is_private: str, *rules: str) -> None:
    # Ctrl-C goes to the crawl, which ends our input when it has stopped.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_BEHIND)
    with Archive.open(Path(home)) as archive:
        asyncio.run(_serve(archive, root, is_private == "yes", names_of(rules)))


async def _serve(archive: Archive, root: str, allow_private: bool, names: Sequence[RuleName]) -> None:
    organisation = organisations_service.get(archive, root)
    async with lookup_network.open_sources(archive, allow_private=allow_private) as sources:
        examiner = Examiner(
            archive, organisation, lookup_network.judge_of(archive, organisation, sources), names, _tell
        )
        questions = asyncio.StreamReader(limit=1 << 20)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(questions), sys.stdin
        )
        try:
            async for line in questions:
                asked = json.loads(line)
                examiner.ask(asked["host"], asked["via"])
        finally:
            await examiner.close()


def _tell(host: str, verdict: Verdict) -> None:
    told = {"host": host, "answer": verdict.answer.value, "rule": verdict.rule, "reason": verdict.reason}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


class Examiner:
    """Decides about the hosts of one organisation's harvest. Made inside an event loop; `close` writes what
    is left.
    """

    def __init__(
        self,
        archive: Archive,
        organisation: Organisation,
        judge: HostJudge,
        names: Sequence[RuleName],
        tell: Tell,
    ) -> None:
        self._archive, self._organisation, self._judge = archive, organisation, judge
        self._names, self._tell = tuple(names), tell
        self._rules: list[HostRule] = [rule_of(name, judge) for name in self._names]
        self._asks_first = archive.config.discovery.new_domains == "ask"
        self._places = archive.config.discovery.workers
        self._remembered = remembered_of(archive, organisation, self._names)
        self._verdicts: dict[str, Verdict] = {}
        self._waiting: dict[str, str] = {}
        """Hosts not examined yet, in their order, with who led there."""
        self._running: dict[str, asyncio.Task[None]] = {}
        self._linkers: dict[str, list[str]] = {}
        self._unsaved: dict[str, HostJudgement] = {}

    def find(self, host: str) -> Verdict | None:
        verdict = self._verdicts.get(host)
        if verdict is None and host in self._remembered:
            verdict = self._verdicts[host] = verdict_of(self._remembered.pop(host))
        return verdict

    def ask(self, host: str, via: str) -> None:
        linkers = self._linkers.setdefault(host, [])
        if via and via not in linkers and len(linkers) < MOST_LINKERS:
            linkers.append(via)
        known = self.find(host)
        if known is not None:
            self._tell(host, known)
        elif host not in self._waiting and host not in self._running:
            self._waiting[host] = via
            self._fill()

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
            self._judge.origins.setdefault(
                host, HostOrigin.MEMBER if not via or self.words_of(via) else HostOrigin.FOREIGN
            )
            verdict = self._verdicts[host] = await self._verdict(host)
            self._tell(host, verdict)
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
            if name.kind is HostRuleKind.BELONGS_TO:
                judged = self._judge.judge(self._judge.facts[host])
                is_new = (
                    bool(judged.own)
                    and self._asks_first
                    and not self._measure.owner_of(host)
                    and not judged.by_person
                )
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
        return Verdict(
            answer=Answer.REJECT, rule=verdict.rule, reason=f"a curator is asked first: {verdict.reason}"
        )

    @property
    def _measure(self) -> ProfileMatcher:
        return ProfileMatcher(self._organisation.profile)

    def _save(self) -> None:
        if not self._unsaved:
            return
        rows = [
            (judged, self._case(judged), self._linkers.get(host, ()))
            for host, judged in self._unsaved.items()
        ]
        with self._archive.database.transaction() as connection:
            organisations.save_hosts(connection, self._organisation.id, rows, now=self._archive.clock())
        for host in self._unsaved:
            self._linkers.pop(host, None)
        self._unsaved.clear()

    def _case(self, judged: HostJudgement) -> int:
        """The way to it is known by who linked it: over members only, or through others."""
        if not judged.is_resolved:
            return 0
        if not judged.is_inside:
            return 2
        return 1 if any(self.words_of(via) for via in self._linkers.get(judged.host, ())) else 3


if __name__ == "__main__":
    main(*sys.argv[1:])
