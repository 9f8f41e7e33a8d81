"""What pages lead to: judged, and put into the frontier, or handed over to the process that has its host
(`peers`), or turned away.

Most links of a page were on the last one, too. They are remembered for a while and passed over before
anything is made of them; the frontier, which sees every address once, would do the same and take longer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from webdepot.harvest.judge import Judge
from webdepot.harvest.links.extract import Extracted
from webdepot.harvest.peers import Peers
from webdepot.harvest.report.log import CrawlLog, of_refusal
from webdepot.harvest.report.result import CrawlSettings
from webdepot.harvest.scope.hop_path import is_seed_path
from webdepot.harvest.scope.membership import OUTSIDE
from webdepot.harvest.seed_book import SeedBook
from webdepot.model import Candidate, Failure, Hop, Verdict
from webdepot.ports import Frontier
from webdepot.times import Clock
from webdepot.url import Url

MOST_REMEMBERED = 50_000
_LINK = Hop.LINK


class Intake:
    """The way into the frontier. `uncommitted` is the crawl's to reset."""

    def __init__(
        self,
        settings: CrawlSettings,
        *,
        frontier: Frontier,
        judge: Judge,
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
        self.lately_added: set[Url] = set()
        """Addresses that the frontier, or the process that has their host, has already."""
        self.lately_refused: set[Url] = set()
        self.lately_outside: set[Url] = set()
        """Links that belong to no seed, whoever has them."""
        self._build_rules()

    def follow(self, settings: CrawlSettings) -> None:
        """Go by these settings from now on."""
        self.settings = settings
        self.lately_added.clear()
        self.lately_refused.clear()
        self._build_rules()

    def _build_rules(self) -> None:
        """After settings or seeds have changed."""
        self.judge.follow(self.settings, self.seeds.addresses)
        self.lately_outside.clear()

    def add(self, candidates: Iterable[Candidate]) -> None:
        self.uncommitted += self.frontier.add(candidates)

    def hear_peers(self) -> bool:
        """Take in what other processes found on our hosts, but for what is known here as well; whether there
        was anything.
        """
        if self.peers is None:
            return False
        candidates, moves = self.peers.take()
        if not candidates and not moves:
            return False
        self.peers.say_busy()
        for target, seed in moves:
            self.seeds.adopt_move(target, seed)
        if moves:
            self._build_rules()
        new = [outlink for outlink in candidates if outlink.url not in self.lately_added]
        accepted = (
            [outlink for outlink in new if self._is_accepted(outlink)] if self._are_owners_judges else new
        )
        self._remember(outlink.url for outlink in accepted)
        self.add(accepted)
        return True

    def take_in(self, source: Candidate, found: Extracted) -> None:
        """Put what belongs into the frontier."""
        lately_added, lately_outside = self.lately_added, self.lately_outside
        # Most links of a page are known: nothing is made of them.
        unknown = [
            (url, hop)
            for url, hop in found.links
            if url not in lately_added and (hop is not _LINK or url not in lately_outside)
        ]
        if (
            unknown
            and self.peers is not None
            and self._are_owners_judges
            and not _is_known_to_page_alone(source, found)
        ):
            unknown, handed_over = self.peers.keep_unjudged(unknown, source)
            self._remember(handed_over)
        if unknown:
            self._take_in_unknown(source, found, unknown)

    @property
    def _are_owners_judges(self) -> bool:
        """Whether links go unjudged to the processes that have their hosts: where no rule asks for what the
        finder alone has looked up.
        """
        settings = self.settings
        return (
            not settings.scope_limits.hops_outside
            and settings.host_rules is None
            and settings.look_up is None
        )

    def _remember(self, urls: Iterable[Url]) -> None:
        """As added lately."""
        if len(self.lately_added) + len(self.lately_outside) > MOST_REMEMBERED:
            self.lately_added.clear()
            self.lately_outside.clear()
        self.lately_added.update(urls)

    def _take_in_unknown(
        self, source: Candidate, found: Extracted, unknown: Sequence[tuple[Url, Hop]]
    ) -> None:
        accepted = []
        page_says_no = "nofollow" in found.directives
        lately_refused, lately_outside = self.lately_refused, self.lately_outside
        # A host is decided once (`host_rules`), so what is outside stays there.
        stays_outside = not self.settings.scope_limits.hops_outside and source.path != ""
        for url, hop in unknown:
            outlink = self.candidate(source, url, hop)
            verdict = self.judge.of_link(
                outlink, page_says_no=page_says_no, link_says_no=url in found.nofollow
            )
            if not verdict and is_seed_path(outlink.path) and self.seeds.follow(outlink):
                self._build_rules()
                if self.peers is not None and outlink.via is not None:
                    self.peers.announce_move(url, outlink.via)
                verdict = self.judge.of_link(outlink)
            if verdict:
                accepted.append(outlink)
                self.judge.remember(outlink, verdict)
            elif url not in lately_refused:
                self._turn_away(outlink, verdict)
            if stays_outside and hop is _LINK and not verdict and self.judge.is_outside(outlink, verdict):
                lately_outside.add(url)
        self._remember([outlink.url for outlink in accepted])
        self.add(accepted if self.peers is None else self.peers.keep_mine(accepted))

    def _is_accepted(self, outlink: Candidate) -> bool:
        """The verdict on what another process found, remembered or logged."""
        verdict = self.judge.of_link(outlink)
        if verdict:
            self.judge.remember(outlink, verdict)
        elif outlink.url not in self.lately_refused:
            self._turn_away(outlink, verdict)
        return bool(verdict)

    def _turn_away(self, outlink: Candidate, verdict: Verdict) -> None:
        """Count and log, once, what a rule keeps out. Links that merely lead elsewhere are not logged: there
        is no end of them.
        """
        if len(self.lately_refused) > MOST_REMEMBERED:
            self.lately_refused.clear()
        self.lately_refused.add(outlink.url)
        if not self.frontier.refuse(outlink):
            return
        self.judge.refused(verdict)
        if verdict.rule != OUTSIDE or outlink.path[-1] == Hop.EMBED or self.settings.log_outside:
            self.log.write(
                of_refusal(outlink, Failure.SCOPE, rule=verdict.rule, reason=verdict.reason, at=self.clock())
            )

    def candidate(self, source: Candidate, url: Url, hop: Hop) -> Candidate:
        """What a link of a page leads to."""
        outlink = Candidate(url=url, via=source.url, path=source.path + hop)
        if not self.settings.scope_limits.hops_outside or self.judge.inside(outlink):
            return outlink
        # A page that was queued as outside may have turned out to belong (`host_rules`).
        before = 0 if self.settings.host_rules is not None and self.judge.inside(source) else source.outside
        return replace(outlink, outside=before + (hop is Hop.LINK or before == 0))


def _is_known_to_page_alone(source: Candidate, found: Extracted) -> bool:
    """Whether something about its links is known only where the page was read: that they are not to be
    followed, or a seed has moved.
    """
    return bool(found.nofollow) or "nofollow" in found.directives or is_seed_path(source.path)
