"""Links on their way into the frontier: judged, then queued, handed over to the process that owns their host
(`peer_processes`), or refused.

Most links of a page were also on the last one. They are remembered for some time and skipped before a
candidate is made of them. The frontier, which queues every address once, would do the same, but slower.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from webdepot.harvest.judge import CrawlJudge
from webdepot.harvest.links.extract import Extracted
from webdepot.harvest.peer_processes import Peers
from webdepot.harvest.report.log import CrawlLog, of_refusal
from webdepot.harvest.report.result import CrawlSettings
from webdepot.harvest.scope.hop_path import count_redirects, is_seed_path
from webdepot.harvest.scope.membership import OUTSIDE
from webdepot.harvest.seed_book import SeedBook
from webdepot.model import Candidate, Failure, Hop, Verdict
from webdepot.ports.harvest import Frontier
from webdepot.times import Clock
from webdepot.url import Url

MOST_REMEMBERED = 50_000


class LinkIntake:
    """Judges links and adds them to the frontier. `crawl` resets `uncommitted`."""

    def __init__(
        self,
        settings: CrawlSettings,
        *,
        frontier: Frontier,
        judge: CrawlJudge,
        seeds: SeedBook,
        log: CrawlLog,
        clock: Clock,
        peers: Peers | None,
    ) -> None:
        self.settings = settings
        self.frontier = frontier
        self.judge = judge
        self.seeds = seeds
        self.log = log
        self.clock = clock
        self.peers = peers
        self.uncommitted = 0
        """Addresses added since the last checkpoint."""
        self.recently_added: set[Url] = set()
        """Addresses that the frontier, or the process that owns their host, has already."""
        self.recently_refused: set[Url] = set()
        self._guessed: set[Url] = set()
        """Addresses that were queued as guesses from scripts."""
        self._named: dict[Url, Candidate] = {}
        """Guessed addresses that a page was later found to name, as a link or a part."""
        self.recently_outside: set[Url] = set()
        """Links that belong to no seed, whatever page they are on."""
        self._build_rules()

    def follow(self, settings: CrawlSettings) -> None:
        """Use these settings from now on."""
        self.settings = settings
        self.recently_added.clear()
        self.recently_refused.clear()
        self._build_rules()

    def _build_rules(self) -> None:
        """Build the rules from the settings and seeds as they are now."""
        self.judge.follow(self.settings, self.seeds.addresses)
        self.recently_outside.clear()

    def add(self, candidates: Iterable[Candidate]) -> None:
        """Add candidates to the frontier without judging them."""
        self.uncommitted += self.frontier.add(candidates)

    def hear_peers(self) -> bool:
        """Queue the links to our hosts that other processes found, unless they are known; return whether
        there were any.
        """
        if self.peers is None:
            return False
        candidates, moves = self.peers.take()
        if not candidates and not moves:
            return False
        self.peers.report_busy()
        for target, seed in moves:
            self.seeds.adopt_move(target, seed)
        if moves:
            self._build_rules()
        new = [outlink for outlink in candidates if outlink.url not in self.recently_added]
        accepted = (
            [outlink for outlink in new if self._is_accepted(outlink)] if self._do_owners_judge else new
        )
        self._remember(outlink.url for outlink in accepted)
        self._queue(accepted)
        return True

    def take_in(self, source: Candidate, extracted: Extracted) -> None:
        """Judge the links of a page and queue those that are accepted."""
        unknown = [
            (url, hop)
            for url, hop in extracted.links
            if (url not in self.recently_added or (url in self._guessed and hop is not Hop.SPECULATIVE))
            and (hop is not Hop.LINK or url not in self.recently_outside)
        ]
        if (
            unknown
            and self.peers is not None
            and self._do_owners_judge
            and not _must_be_judged_here(source, extracted)
        ):
            unknown, handed_over = self.peers.keep_unjudged(unknown, source)
            self._remember(handed_over)
        if unknown:
            self._take_in_unknown(source, extracted, unknown)

    @property
    def _do_owners_judge(self) -> bool:
        """Whether links are handed over unjudged to the processes that own their hosts. That is so unless a
        rule needs facts that only this process has looked up.
        """
        settings = self.settings
        return (
            not settings.scope_limits.hops_outside
            and settings.host_rules is None
            and settings.look_up is None
        )

    def _remember(self, urls: Iterable[Url]) -> None:
        """Remember addresses as added recently."""
        if len(self.recently_added) + len(self.recently_outside) > MOST_REMEMBERED:
            self.recently_added.clear()
            self.recently_outside.clear()
        self.recently_added.update(urls)

    def _take_in_unknown(
        self, source: Candidate, extracted: Extracted, unknown: Sequence[tuple[Url, Hop]]
    ) -> None:
        accepted = []
        page_says_no = "nofollow" in extracted.directives
        # A host is decided once (`host_rules`), so an address outside stays outside.
        stays_outside = not self.settings.scope_limits.hops_outside and source.path != ""
        for url, hop in unknown:
            outlink = self.candidate(source, url, hop)
            verdict = self.judge.of_link(
                outlink, page_says_no=page_says_no, link_says_no=url in extracted.nofollow
            )
            if not verdict and self._may_be_seed(outlink) and self.seeds.follow(outlink):
                self._build_rules()
                if self.peers is not None and outlink.via is not None:
                    self.peers.announce_move(url, outlink.via)
                verdict = self.judge.of_link(outlink)
            if verdict:
                accepted.append(outlink)
                self.judge.remember(outlink, verdict)
                self._note_guess(outlink)
            elif url not in self.recently_refused:
                self._refuse(outlink, verdict)
            if stays_outside and hop is Hop.LINK and not verdict and self.judge.is_outside(outlink, verdict):
                self.recently_outside.add(url)
        self._remember([outlink.url for outlink in accepted])
        self._queue(accepted if self.peers is None else self.peers.keep_mine(accepted))

    def _note_guess(self, outlink: Candidate) -> None:
        """Remember guessed addresses, and which of them a page names: those are no longer guesses."""
        if len(self._guessed) + len(self._named) > MOST_REMEMBERED:
            self._guessed.clear()
            self._named.clear()
        if outlink.path.endswith(Hop.SPECULATIVE):
            if outlink.url not in self.recently_added:
                self._guessed.add(outlink.url)
        elif outlink.url in self._guessed:
            self._guessed.discard(outlink.url)
            self._named[outlink.url] = outlink

    def as_named(self, candidate: Candidate) -> Candidate:
        """The candidate itself, or, if it was queued as a guess that a page names, the candidate of that
        page.
        """
        return self._named.get(candidate.url, candidate)

    def _may_be_seed(self, outlink: Candidate) -> bool:
        """Whether only redirects lead from a seed to it, and not more than are allowed."""
        redirects = self.settings.scope_limits.redirects
        return is_seed_path(outlink.path) and count_redirects(outlink.path) <= redirects

    def _queue(self, candidates: Iterable[Candidate]) -> None:
        """Add judged candidates to the frontier, less important kinds after the others."""
        first: list[Candidate] = []
        last: list[Candidate] = []
        for candidate in candidates:
            (last if self.judge.software.is_last(candidate) else first).append(candidate)
        self.add(first)
        if last:
            self.uncommitted += self.frontier.add(last, last=True)

    def _is_accepted(self, outlink: Candidate) -> bool:
        """Judge a link that another process found."""
        verdict = self.judge.of_link(outlink)
        if verdict:
            self.judge.remember(outlink, verdict)
        elif outlink.url not in self.recently_refused:
            self._refuse(outlink, verdict)
        return bool(verdict)

    def _refuse(self, outlink: Candidate, verdict: Verdict) -> None:
        """Count and log, once, a link that a rule rejects. Links outside the scope are only counted: there
        are too many of them.
        """
        if len(self.recently_refused) > MOST_REMEMBERED:
            self.recently_refused.clear()
        self.recently_refused.add(outlink.url)
        if not self.frontier.refuse(outlink):
            return
        self.judge.count_refusal(verdict)
        if verdict.rule != OUTSIDE or outlink.path[-1] == Hop.EMBED or self.settings.log_outside:
            self.log.write(
                of_refusal(outlink, Failure.SCOPE, rule=verdict.rule, reason=verdict.reason, at=self.clock())
            )

    def candidate(self, source: Candidate, url: Url, hop: Hop) -> Candidate:
        """The candidate that a link of a page leads to."""
        outlink = Candidate(url=url, via=source.url, path=source.path + hop)
        if not self.settings.scope_limits.hops_outside or self.judge.is_inside(outlink):
            return outlink
        # A page that was queued as outside may have turned out to belong (`host_rules`).
        is_inside = self.settings.host_rules is not None and self.judge.is_inside(source)
        before = 0 if is_inside else source.outside
        return replace(outlink, outside=before + (hop is Hop.LINK or before == 0))


def _must_be_judged_here(source: Candidate, extracted: Extracted) -> bool:
    """Whether the links must be judged where the page was read: because of nofollow, or because a seed has
    moved.
    """
    return bool(extracted.nofollow) or "nofollow" in extracted.directives or is_seed_path(source.path)
