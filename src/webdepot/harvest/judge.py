"""The judge of a crawl: decides every question about an address or an answer, and names the rule in its
verdict.

    link found        `of_link`        is it queued?     scope rules, then nofollow, then traps
    before asking     `before_asking`  is it asked now?  the rules may have changed since it was queued
    robots.txt known  `of_robots`      may it be asked?  the policy of the harvest or of the host
    answer came       `of_answer`      is it kept?       rules about media types

Rejections are counted by rule (`refusals`), for the report; the crawl logs them. Traps that need memory are
in `trap_watch` and `mazes`.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from webdepot.harvest.host_book import HostBook
from webdepot.harvest.politeness import robots
from webdepot.harvest.politeness.robots import RobotsRules
from webdepot.harvest.report.result import CrawlSettings
from webdepot.harvest.scope import host_rules, profile_rules, scope
from webdepot.harvest.scope.hop_path import embed_depth, is_guess
from webdepot.harvest.scope.mazes import MAZES, MazeWatch
from webdepot.harvest.scope.membership import OUTSIDE, belongs
from webdepot.harvest.scope.scope import ScopeStep
from webdepot.harvest.scope.site_software import RULE as SOFTWARE
from webdepot.harvest.scope.site_software import SiteSoftware
from webdepot.harvest.scope.software_rules import ALL
from webdepot.harvest.scope.trap_watch import PageContent, TrapWatch
from webdepot.model import Answer, Candidate, Hop, Verdict
from webdepot.ports.harvest import Frontier
from webdepot.url import Url, host_of

NOFOLLOW = "nofollow"
"""The rule by which links are left out that their page asks not to follow."""
_KEPT = Verdict(answer=Answer.ACCEPT, rule="kept", reason="no rule rejects its type")
_NOFOLLOW_PAGE = Verdict(answer=Answer.REJECT, rule=NOFOLLOW, reason="its page asks not to follow its links")
_NOFOLLOW_LINK = Verdict(answer=Answer.REJECT, rule=NOFOLLOW, reason="its link asks not to be followed")
_LEAST_RIGHT_GUESSES = 0.2
"""Guessing stops at a host where a smaller share of the guesses was right."""
_FIRST_GUESSES = 20
MOST_REMEMBERED = 20_000


class CrawlJudge:
    """Rules built from settings and seeds, and rebuilt (`follow`) when one of them changes."""

    def __init__(
        self,
        settings: CrawlSettings,
        hosts: HostBook | None,
        totals: Callable[[], tuple[int, int]],
        kept: bytes | None = None,
        frontier: Frontier | None = None,
    ) -> None:
        """`totals` returns documents and bytes of the harvest; `kept` is what `to_json` wrote in an earlier
        run; the frontier remembers the software of each site. Without `hosts` and frontier (to explain, not
        to crawl) the counts of all hosts are 0.
        """
        self._hosts = hosts
        self._totals = totals
        self.traps = TrapWatch()
        self.mazes = MazeWatch()
        stored = json.loads(kept or b"{}")
        self.refusals: Counter[str] = Counter(stored.get("refusals", {}))
        """Distinct addresses by the rule that rejected them."""
        self._guesses: dict[str, tuple[int, int]] = {
            guesser: (tried, right) for guesser, (tried, right) in stored.get("guesses", {}).items()
        }
        self._recent: dict[Url, tuple[tuple[str, int], Verdict]] = {}
        """URL -> verdict on a link that was queued recently, with the path and `outside` it was given for."""
        self._is_steady = False
        """Whether a verdict stays the same: no rule counts or looks anything up."""
        self.software = SiteSoftware(frontier)
        self.settings = settings

    def follow(self, settings: CrawlSettings, seeds: Sequence[Url]) -> None:
        """Use these settings and seeds from now on."""
        self.settings = settings
        self._recent.clear()
        self._is_steady = not settings.rules and settings.host_rules is None
        facts = replace(settings.facts, pages_of=self._pages_of, bytes_of=self._bytes_of)
        more = [
            (str(spec), rule)
            for spec in settings.rules
            if (rule := profile_rules.rule_of(spec, facts)) is not None
        ]
        self.software.follow(settings.software, settings.include)
        self.mazes.is_off = not {MAZES, ALL}.isdisjoint(settings.include)
        self._answer_rules = profile_rules.of_answers(settings.rules, facts)
        self._belongs = belongs(settings.scope, seeds)
        self.named = scope.named_chain(
            settings.scope,
            seeds,
            limits=settings.scope_limits,
            rejects=settings.rejects,
            hosts=host_rules.rules_of(settings.host_rules) if settings.host_rules is not None else (),
            software=[(SOFTWARE, self.software.rule)],
            more=more,
            year=facts.now.year if facts.now else 0,
        )
        self.rules = tuple(rule for _, rule in self.named)

    def is_inside(self, candidate: Candidate) -> bool:
        """Whether it belongs to a seed, and not only as a part of a page or a few links beyond."""
        return bool(self._belongs(candidate)) or host_rules.is_inside(self.settings.host_rules, candidate.url)

    def is_outside(self, candidate: Candidate, verdict: Verdict) -> bool:
        """Whether a rejected candidate is outside the scope, whichever rule rejected it."""
        return verdict.rule == OUTSIDE or host_rules.is_outside(self.settings.host_rules, candidate.url)

    def of_link(
        self, candidate: Candidate, *, page_says_no: bool = False, link_says_no: bool = False
    ) -> Verdict:
        """Whether an address that was found is queued. A page or link may ask not to be followed; parts of a
        page are queued anyway.
        """
        verdict = scope.decide(candidate, self.rules)
        if not verdict:
            return verdict
        hop = candidate.path[-1:]
        if (page_says_no or link_says_no) and hop in (Hop.LINK, Hop.SPECULATIVE):
            if page_says_no and self.settings.nofollow != "none":
                return _NOFOLLOW_PAGE
            if link_says_no and self.settings.nofollow == "all":
                return _NOFOLLOW_LINK
        # A rejecting verdict is false, so it cannot be chosen by `or`.
        trap = self._trap_of(candidate)
        return verdict if trap is None else trap

    def explain(self, candidate: Candidate) -> list[ScopeStep]:
        """The answer of each rule of the chain to an address, for a person."""
        return scope.explain(candidate, self.named)

    def before_asking(self, candidate: Candidate) -> Verdict:
        """Whether the rules still accept it; they may have changed since it was queued."""
        judged = self._recent.pop(candidate.url, None)
        if judged is not None and judged[0] == (candidate.path, candidate.outside):
            verdict = judged[1]
        else:
            verdict = scope.decide(candidate, self.rules)
        trap = self._trap_of(candidate) if verdict else None
        return verdict if trap is None else trap

    def remember(self, candidate: Candidate, verdict: Verdict) -> None:
        """Remember an accepted link: its verdict for `before_asking` if it cannot change until then, and that
        it counts for a rule with a limited number.
        """
        self.software.note_taken(candidate)
        if self._is_steady:
            if len(self._recent) >= MOST_REMEMBERED:
                self._recent.clear()
            self._recent[candidate.url] = ((candidate.path, candidate.outside), verdict)

    def _trap_of(self, candidate: Candidate) -> Verdict | None:
        """The rejection that follows from earlier answers of its host; None if there is none."""
        if candidate.path.endswith(Hop.SPECULATIVE):
            tried, right = self._guesses.get(_guesser(candidate), (0, 0))
            if tried >= _FIRST_GUESSES and right < tried * _LEAST_RIGHT_GUESSES:
                return Verdict(
                    answer=Answer.REJECT,
                    rule="guesses",
                    reason=f"{tried - right} of {tried} guesses at its host were wrong",
                )
        is_exempt = not candidate.path.strip(Hop.REDIRECT) or embed_depth(candidate.path)
        trap = self.traps.find_rejection(candidate.url) if self.traps.trapped and not is_exempt else None
        return self.mazes.find_rejection(candidate) if trap is None else trap

    def of_robots(self, known: RobotsRules, candidate: Candidate) -> Verdict:
        """Whether robots.txt allows an address, under the policy of the harvest or of the host."""
        verdict = known.decide(candidate.url)
        if verdict:
            return verdict
        host = self.settings.of_host(host_of(candidate.url))
        policy = host.robots or self.settings.robots
        return robots.judge(known, candidate.url, policy, is_part=embed_depth(candidate.path) > 0)

    def of_answer(self, candidate: Candidate, mime: str) -> Verdict:
        """Whether an answer is kept; seeds always are. As with rules about addresses, the last rule about
        types that answers wins.
        """
        if self._answer_rules and candidate.path.strip(Hop.REDIRECT):
            for rule in reversed(self._answer_rules):
                verdict = rule(candidate, mime)
                if verdict.answer is not Answer.PASS:
                    return verdict
        return _KEPT

    def learn(
        self, candidate: Candidate, status: int, read_content: Callable[[], PageContent | None]
    ) -> None:
        """Learn from an answer about guesses at its host and about traps. `read_content` returns its content,
        if that can be compared with others.
        """
        if is_guess(candidate.path):
            guesser = _guesser(candidate)
            tried, right = self._guesses.get(guesser, (0, 0))
            # A guess that redirects is right only if there is something where it leads to.
            is_first = candidate.path.endswith(Hop.SPECULATIVE)
            self._guesses[guesser] = (tried + is_first, right + (200 <= status < 300))
        if 200 <= status < 300 and not embed_depth(candidate.path):
            self.traps.note(candidate.url, read_content)

    def learn_software(self, host: str, ids: frozenset[str]) -> list[str]:
        """Learn which software a host runs, from signs in one of its pages; return the ids that are new."""
        new = self.software.learn(host, ids)
        if new:
            self._recent.clear()
        return new

    def left_out(self) -> dict[str, int]:
        """How many addresses of which kind were left out: because of the software of their site, or because
        the site invents them.
        """
        return {kind: self.refusals[kind] for kind in self.settings.software.kinds if self.refusals[kind]}

    def count_refusal(self, verdict: Verdict) -> None:
        self.refusals[verdict.rule] += 1

    def to_json(self) -> bytes:
        """The state for the next run as JSON; guesses only of hosts that have enough of them to decide."""
        decided = {key: counts for key, counts in self._guesses.items() if counts[0] >= _FIRST_GUESSES}
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


def _guesser(candidate: Candidate) -> str:
    """The name under which a guess is counted. Guesses from pages and from script files are counted
    separately: script files are mostly libraries, whose many wrong guesses say nothing about a page's own
    script.
    """
    host = host_of(candidate.url)
    is_in_page = not candidate.path.rstrip(Hop.REDIRECT).endswith(Hop.EMBED + Hop.SPECULATIVE)
    return f"page:{host}" if is_in_page else host
