"""A separate process that decides which hosts belong to the organisation of a harvest: each new host once,
with a reason, and stored.

A crawl must not wait for name servers, registries and front pages, nor share its processor with the work of
reading their answers. So it starts

    python -m webdepot.services.harvest.host_examiner HOME ROOT PRIVATE RULE...

and writes a line for each new host (JSON: `host`, `via`). Verdicts come back as lines (`host`, `answer`,
`rule`, `reason`) as they are found. Several hosts are examined at once. The evidence is stored in the
database, where the curator sees it. The process ends when its input ends, after it has stored what is left.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from webdepot import event_loop
from webdepot.archive import Archive
from webdepot.model import Answer, Verdict
from webdepot.selection.domains import organisations
from webdepot.selection.domains.organisations import Organisation
from webdepot.selection.domains.ownership_evidence import HostOrigin
from webdepot.selection.domains.ownership_rules import HostRule, HostRuleKind, RuleName, rule_of
from webdepot.selection.domains.profile import ProfileMatcher
from webdepot.selection.domains.verdict import TEACHES_AT, HostJudge, HostJudgement
from webdepot.services.harvest.organisation_hosts import MOST_LINKERS, names_of, remembered_of, verdict_of
from webdepot.services.selection import lookup_network
from webdepot.services.selection import organisations as organisations_service

_SAVED_TOGETHER = 200
_NICENESS = 5
"""Its priority is lower than that of the crawl."""
Report = Callable[[str, Verdict], None]


def main(home: str, root: str, is_private: str, *rules: str) -> None:
    """Examine hosts from standard input until it ends."""
    # The crawl handles Ctrl-C and closes our input when it has stopped.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_NICENESS)
    with Archive.open(Path(home)) as archive:
        event_loop.run(_serve(archive, root, is_private == "yes", names_of(rules)))


async def _serve(archive: Archive, root: str, allow_private: bool, names: Sequence[RuleName]) -> None:
    organisation = organisations_service.get(archive, root)
    async with lookup_network.open_sources(archive, allow_private=allow_private) as sources:
        examiner = HostExaminer(
            archive, organisation, lookup_network.judge_of(archive, organisation, sources), names, _report
        )
        questions = asyncio.StreamReader(limit=1 << 20)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(questions), sys.stdin
        )
        try:
            async for line in questions:
                question = json.loads(line)
                examiner.ask(question["host"], question["via"])
        finally:
            await examiner.close()


def _report(host: str, verdict: Verdict) -> None:
    message = {"host": host, "answer": verdict.answer.value, "rule": verdict.rule, "reason": verdict.reason}
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class HostExaminer:
    """Decides about the hosts of one organisation's harvest. Created inside an event loop; `close` stores
    what is left.
    """

    def __init__(
        self,
        archive: Archive,
        organisation: Organisation,
        judge: HostJudge,
        names: Sequence[RuleName],
        report: Report,
    ) -> None:
        self._archive, self._organisation, self._judge = archive, organisation, judge
        self._names, self._report = tuple(names), report
        self._rules: list[HostRule] = [rule_of(name, judge) for name in self._names]
        self._asks_first = archive.config.discovery.new_domains == "ask"
        self._places = archive.config.discovery.workers
        self._remembered = remembered_of(archive, organisation, self._names)
        self._verdicts: dict[str, Verdict] = {}
        self._waiting: dict[str, str] = {}
        """Hosts not examined yet, in order, with the host that links to them."""
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
            self._report(host, known)
        elif host not in self._waiting and host not in self._running:
            self._waiting[host] = via
            self._fill()

    def is_own(self, host: str) -> bool:
        """Whether a host is known to belong."""
        return bool(self.find(host))

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
                host, HostOrigin.MEMBER if not via or self.is_own(via) else HostOrigin.FOREIGN
            )
            verdict = self._verdicts[host] = await self._verdict(host)
            self._report(host, verdict)
        finally:
            self._running.pop(host, None)
            # The verdict has the result; the pages of all hosts of a large harvest would not fit in memory.
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
                self._note(host, self._judge.judge(self._judge.facts[host]))
            if verdict:
                return self._unless_asked_first(host, verdict)
            reasons.append(f"{verdict.rule}: {verdict.reason}")
        return Verdict(answer=Answer.REJECT, rule=self._names[-1].kind.value, reason="; ".join(reasons))

    def _note(self, host: str, judgement: HostJudgement) -> None:
        """Note a judgement for the database, and learn from it if it is certain."""
        must_ask = (
            bool(judgement.own)
            and self._asks_first
            and not self._measure.owner_of(host)
            and not judgement.by_person
        )
        self._unsaved[host] = replace(judgement, own=None) if must_ask else judgement
        if judgement.own and not must_ask and judgement.score >= TEACHES_AT:
            self._judge.teach({host: judgement})

    def _unless_asked_first(self, host: str, verdict: Verdict) -> Verdict:
        """The verdict; a rejection if the curator must first accept the domain (`new_domains = "ask"`)."""
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
            (judgement, self._case(judgement), self._linkers.get(host, ()))
            for host, judgement in self._unsaved.items()
        ]
        with self._archive.database.transaction() as connection:
            organisations.save_hosts(connection, self._organisation.id, rows, now=self._archive.clock())
        for host in self._unsaved:
            self._linkers.pop(host, None)
        self._unsaved.clear()

    def _case(self, judgement: HostJudgement) -> int:
        """The case of a host, as in `host_discovery`: 1 inside the address ranges and linked by a member, 3
        inside and linked only by others, 2 outside the ranges, 0 if its name does not resolve.
        """
        if not judgement.is_resolved:
            return 0
        if not judgement.is_inside:
            return 2
        return 1 if any(self.is_own(via) for via in self._linkers.get(judgement.host, ())) else 3


if __name__ == "__main__":
    main(*sys.argv[1:])
