"""The judge of a crawl: every question about an address or an answer is put here, and every verdict names its
rule.

    links found       `of_link`        is it queued?     scope chain, then what the page says about following, then traps
    before asking     `before_asking`  is it asked now?  the chain as it is now: rules may have changed since it was queued
    robots.txt known  `of_robots`      may it be asked?  the policy of the harvest or of the host
    answer came       `of_answer`      is it kept?       rules about types

Verdicts that reject are counted by rule (`refusals`), for the report; the crawl logs them. Traps that need
memory are in `traps`.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from webdepot.harvest.host_book import HostBook
from webdepot.harvest.politeness import robots
from webdepot.harvest.politeness.robots import RobotsRules
from webdepot.harvest.report.result import CrawlSettings
from webdepot.harvest.scope import host_rules, rules, scope
from webdepot.harvest.scope.hop_path import embed_depth
from webdepot.harvest.scope.membership import OUTSIDE, belongs
from webdepot.harvest.scope.scope import ScopeStep
from webdepot.harvest.scope.traps import TrapWatch
from webdepot.model import Answer, Candidate, Hop, Verdict
from webdepot.url import Url, host_of

_KEPT = Verdict(answer=Answer.ACCEPT, rule="kept", reason="no rule is against its type")
_NOFOLLOW_PAGE = Verdict(
    answer=Answer.REJECT, rule="nofollow", reason="its page asks not to follow its links"
)
_NOFOLLOW_LINK = Verdict(answer=Answer.REJECT, rule="nofollow", reason="its link asks not to be followed")
_LINK, _GUESS, _REDIRECT = Hop.LINK.value, Hop.SPECULATIVE.value, Hop.REDIRECT.value
_NO_GUESSES_BELOW = 0.2
"""A host where fewer guesses than this are right gets no more of them."""
_FIRST_GUESSES = 20
MOST_REMEMBERED = 20_000


class Judge:
    """Rules built from settings and seeds. Rebuilt (`follow`) when one of them changes."""

    def __init__(
        self,
        settings: CrawlSettings,
        hosts: HostBook | None,
        totals: Callable[[], tuple[int, int]],
        kept: bytes | None = None,
    ) -> None:
        """`totals` gives documents and bytes of the harvest; `kept` is what `to_json` wrote in an earlier
        run. Without `hosts` (to explain, not to crawl) nothing came from any host yet.
        """
        self._hosts = hosts
        self._totals = totals
        self.traps = TrapWatch()
        stored = json.loads(kept or b"{}")
        self.refusals: Counter[str] = Counter(stored.get("refusals", {}))
        """Distinct addresses by the rule that rejected them."""
        self._guesses: dict[str, tuple[int, int]] = {
            host: (tried, right) for host, (tried, right) in stored.get("guesses", {}).items()
        }
        self._lately: dict[Url, tuple[tuple[str, int], Verdict]] = {}
        """Verdicts on links that were queued lately, with what they were given for beside the address."""
        self._is_steady = False
        self.settings = settings

    def follow(self, settings: CrawlSettings, seeds: Sequence[Url]) -> None:
        """Judge by these settings and seeds from now on."""
        self.settings = settings
        self._lately.clear()
        self._is_steady = not settings.rules and settings.host_rules is None
        facts = replace(settings.facts, pages_of=self._pages_of, bytes_of=self._bytes_of)
        more = [
            (str(spec), rule) for spec in settings.rules if (rule := rules.rule_of(spec, facts)) is not None
        ]
        self._answer_rules = rules.of_answers(settings.rules, facts)
        self._belongs = belongs(settings.scope, seeds)
        self.named = scope.named_chain(
            settings.scope,
            seeds,
            limits=settings.scope_limits,
            rejects=settings.rejects,
            hosts=host_rules.rules_of(settings.host_rules) if settings.host_rules is not None else (),
            more=more,
            year=facts.now.year if facts.now else 0,
        )
        self.rules = tuple(rule for _, rule in self.named)

    def inside(self, candidate: Candidate) -> bool:
        """Does it belong by itself, not as a part or a few links beyond?"""
        return bool(self._belongs(candidate)) or host_rules.is_inside(self.settings.host_rules, candidate.url)

    def is_outside(self, candidate: Candidate, verdict: Verdict) -> bool:
        """Of what was rejected: does it lead elsewhere, whatever else may be against it?"""
        return verdict.rule == OUTSIDE or host_rules.is_outside(self.settings.host_rules, candidate.url)

    def of_link(
        self, candidate: Candidate, *, page_says_no: bool = False, link_says_no: bool = False
    ) -> Verdict:
        """Is an address that was found queued? A page or link may ask not to be followed; parts of a page are
        taken all the same.
        """
        verdict = scope.decide(candidate, self.rules)
        if not verdict:
            return verdict
        hop = candidate.path[-1:]
        if (page_says_no or link_says_no) and hop in (_LINK, _GUESS):
            if page_says_no and self.settings.nofollow != "none":
                return _NOFOLLOW_PAGE
            if link_says_no and self.settings.nofollow == "all":
                return _NOFOLLOW_LINK
        if hop == _GUESS:
            tried, right = self._guesses.get(host_of(candidate.url), (0, 0))
            if tried >= _FIRST_GUESSES and right < tried * _NO_GUESSES_BELOW:
                return Verdict(
                    answer=Answer.REJECT,
                    rule="guesses",
                    reason=f"{tried - right} of {tried} guesses at its host were wrong",
                )
        # A verdict that rejects is false, so it cannot be chosen by `or`.
        trap = self._trap_of(candidate)
        return verdict if trap is None else trap

    def explain(self, candidate: Candidate) -> list[ScopeStep]:
        """What each rule of the chain says of an address, for a person."""
        return scope.explain(candidate, self.named)

    def before_asking(self, candidate: Candidate) -> Verdict:
        """Is it still wanted, by the rules of now?"""
        judged = self._lately.pop(candidate.url, None)
        if judged is not None and judged[0] == (candidate.path, candidate.outside):
            verdict = judged[1]
        else:
            verdict = scope.decide(candidate, self.rules)
        trap = self._trap_of(candidate) if verdict else None
        return verdict if trap is None else trap

    def remember(self, candidate: Candidate, verdict: Verdict) -> None:
        """An accepted link is asked soon, and where no rule counts or looks anything up its verdict is the
        same then.
        """
        if self._is_steady:
            if len(self._lately) >= MOST_REMEMBERED:
                self._lately.clear()
            self._lately[candidate.url] = ((candidate.path, candidate.outside), verdict)

    def _trap_of(self, candidate: Candidate) -> Verdict | None:
        return (
            self.traps.find_rejection(candidate.url)
            if self.traps.trapped and candidate.path.strip(_REDIRECT)
            else None
        )

    def of_robots(self, known: RobotsRules, candidate: Candidate) -> Verdict:
        verdict = known.decide(candidate.url)
        if verdict:  # as for nearly all
            return verdict
        host = self.settings.of_host(host_of(candidate.url))
        policy = host.robots or self.settings.robots
        return robots.judge(known, candidate.url, policy, is_part=embed_depth(candidate.path) > 0)

    def of_answer(self, candidate: Candidate, mime: str) -> Verdict:
        """Is it kept? Seeds always are. Rules about types stand in one row with those about addresses, and
        the last answer wins.
        """
        if self._answer_rules and candidate.path.strip(_REDIRECT):
            for rule in reversed(self._answer_rules):
                verdict = rule(candidate, mime)
                if verdict.answer is not Answer.PASS:
                    return verdict
        return _KEPT

    def learn(self, candidate: Candidate, status: int, body: Callable[[], bytes]) -> None:
        """What an answer teaches about guesses at its host and about traps."""
        if candidate.path.endswith(_GUESS):
            host = host_of(candidate.url)
            tried, right = self._guesses.get(host, (0, 0))
            self._guesses[host] = (tried + 1, right + (status < 400))
        if 200 <= status < 300:
            self.traps.note(candidate.url, body)

    def refused(self, verdict: Verdict) -> None:
        self.refusals[verdict.rule] += 1

    def to_json(self) -> bytes:
        """What the next run should know; of guesses at many hosts only those that decide something."""
        decided = {host: counts for host, counts in self._guesses.items() if counts[0] >= _FIRST_GUESSES}
        values: Mapping[str, object] = {
            "refusals": dict(self.refusals),
            "guesses": dict(list(decided.items())[:10_000]),
        }
        return json.dumps(values).encode()

    def _pages_of(self, host: str) -> int:
        if host:
            return self._hosts.of(host).fetched if self._hosts is not None else 0
        return self._totals()[0]

    def _bytes_of(self, host: str) -> int:
        if host:
            return self._hosts.of(host).bytes if self._hosts is not None else 0
        return self._totals()[1]
