"""The way of one candidate, from the frontier's hand to its last log line, and all that decides about it.

1. robots.txt of its host is known, or asked now (kept and logged like a page); the candidate goes back until
   the pause is over.
2. robots.txt forbids it: logged, done.
3. It is fetched. A passing failure (no connection, time-out, 429, 5xx) sends it back with a growing distance,
   at most so many times. A page that is to be opened in the browser is opened (`page_opener`).
4. The answer is kept (`keeper.keep`), then read for links; each link passes the scope rules and goes to the
   frontier (`intake`).
5. What was found is noted (`keeper.annotate`), the line is logged, the host rests.

Steps 4 and 5 are done for all answers that have arrived meanwhile (`settle`), one step after the other: the
processor runs the same code over many pages, which takes two thirds of the time that page after page would.
There is no `await` in them, so a checkpoint (`crawl`) always sees them done or not begun.
"""

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from webdepot.container.http import HttpHead, parse_head
from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.browser.page_opener import PageOpener
from webdepot.harvest.frontier import origin_of
from webdepot.harvest.host_book import HostBook
from webdepot.harvest.intake import Intake
from webdepot.harvest.judge import Judge
from webdepot.harvest.kept import Arrived, Keeper, Kept, Totals
from webdepot.harvest.links import extract as links
from webdepot.harvest.links.extract import Extracted
from webdepot.harvest.peers import Peers
from webdepot.harvest.politeness import pauses, robots
from webdepot.harvest.politeness.robots import RobotsPolicy
from webdepot.harvest.politeness.robots_cache import RobotsAnswer, RobotsCache
from webdepot.harvest.politeness.servers import SharedServers
from webdepot.harvest.politeness.turns import ServerTurns
from webdepot.harvest.report.log import CrawlLog, of_refusal, of_unkept, of_visit
from webdepot.harvest.report.result import CrawlSettings, HostSettings
from webdepot.harvest.scope import host_rules
from webdepot.harvest.scope.missing_pages import MissingPages
from webdepot.harvest.seed_book import SeedBook
from webdepot.model import Candidate, Failure, Hop, Visit
from webdepot.ports import Fetcher, Frontier
from webdepot.times import Clock
from webdepot.url import Url, find_canonical, host_of

MISSING = "soft404"
"""The annotation in the log."""

_PASSING = frozenset({Failure.DNS, Failure.CONNECT, Failure.TIMEOUT, Failure.DISCONNECT})
_NEVER_ASKED = frozenset({Failure.DNS, Failure.CONNECT})
"""Failures of which the server knows nothing: such an address is not given up."""
_NOT_THERE = frozenset({404, 410})
_IGNORE = RobotsPolicy.IGNORE
_OF_HOST = frozenset({Failure.DNS, Failure.CONNECT, Failure.TIMEOUT})
"""Failures that speak for the whole host."""


class Steps:
    """What all candidates of a crawl go through. One event loop; `is_dirty` is the crawl's to reset."""

    def __init__(
        self,
        settings: CrawlSettings,
        *,
        frontier: Frontier,
        fetcher: Fetcher,
        keeper: Keeper,
        log: CrawlLog,
        clock: Clock,
        shared: SharedServers | None,
        peers: Peers | None,
        browser: Browser | None = None,
    ) -> None:
        self.settings = settings
        self.frontier = frontier
        self.keeper = keeper
        self.log = log
        self.clock = clock
        self.peers = peers
        self.totals = Totals(**json.loads(frontier.recall("totals") or b"{}"))
        self.seeds = SeedBook(settings.seeds, frontier.recall("seeds"))
        self.hosts = HostBook(frontier)
        self.judge = Judge(
            settings, self.hosts, lambda: (self.totals.fetched, self.totals.bytes), frontier.recall("judge")
        )
        self.intake = Intake(
            settings, frontier=frontier, judge=self.judge, seeds=self.seeds, log=log, clock=clock, peers=peers
        )
        self.turns = ServerTurns(fetcher, settings.manners, shared=shared, bytes_per_s=settings.bytes_per_s)
        self.robots = RobotsCache(self.turns, frontier, clock, robots.product_token(settings.user_agent))
        self.missing = MissingPages(self.turns, frontier)
        self.nameless_since_s: dict[str, float] = {}
        self.is_dirty = True
        """Something was decided since the last checkpoint."""
        self.host = ""
        """Of the newest answer."""
        self.arrived: list[Arrived] = []
        self.is_paused = False
        """Nothing is to be asked now; the crawl itself hands out nothing."""
        self.opener = PageOpener(self, browser) if browser is not None else None

    def follow(self, settings: CrawlSettings) -> None:
        """Go by these settings from now on."""
        self.settings = settings
        self.turns.manners, self.turns.bytes_per_s = settings.manners, settings.bytes_per_s
        self.intake.follow(settings)

    def hear_peers(self) -> None:
        """Take in what other processes found on our hosts."""
        if self.intake.hear_peers():
            self.is_dirty = True

    def save(self, elapsed_s: float) -> Mapping[str, int]:
        """Put everything known with the frontier and make containers and log durable: what a checkpoint then
        commits.
        """
        remember = self.frontier.remember
        remember("totals", json.dumps(asdict(self.totals) | {"elapsed_s": elapsed_s}).encode())
        self.hosts.save()
        remember("judge", self.judge.to_json())
        if self.seeds.changed:
            remember("seeds", self.seeds.to_json())
        if self.peers is not None:
            self.peers.sync()
        return {**self.keeper.checkpoint(), **self.log.sync()}

    # --- one candidate ---

    async def visit(self, candidate: Candidate) -> None:
        origin, host = origin_of(candidate.url), self.settings.of_host(host_of(candidate.url))
        if (self.opener is not None and self.opener.has(candidate.url)) or self._is_over_limit(
            candidate, host
        ):
            self.frontier.finish(candidate, host_free_at_s=self.turns.free_at_s(origin))
            return
        asked_by = self.judge.before_asking(candidate)
        if asked_by.rule == host_rules.UNDECIDED and self.settings.host_rules is not None:
            # Nobody knows yet whose host it is; no worker waits for that.
            due_s = time.monotonic() + host_rules.wait_s(self.settings.host_rules)
            self.frontier.retry(candidate, host_free_at_s=due_s, counted=False)
            return
        if not asked_by:
            self._refuse(candidate, Failure.SCOPE, asked_by.reason, rule=asked_by.rule)
            self.frontier.finish(candidate, host_free_at_s=self.turns.free_at_s(origin))
            return
        come_again_s = await self.turns.wait_until_s(origin)
        if come_again_s is not None:  # another host of the same server has its turn
            self.frontier.retry(candidate, host_free_at_s=come_again_s, counted=False)
            return
        obeys = (host.robots or self.settings.robots) is not _IGNORE
        known = self.robots.find(origin)
        if known is None:
            await self._ask_robots(candidate, origin, obeys=obeys)
            return
        if candidate.url == f"{origin}/robots.txt":
            self.frontier.finish(candidate, host_free_at_s=self.turns.free_at_s(origin))
            return
        allowed = self.judge.of_robots(known, candidate)
        if not allowed:
            self._refuse(candidate, known.failure or Failure.ROBOTS, allowed.reason)
            if known.failure in _NEVER_ASKED and not known.permanent:
                self.frontier.retry(candidate, host_free_at_s=math.inf, counted=False)
            else:
                self.frontier.finish(candidate, host_free_at_s=self.turns.free_at_s(origin))
            return
        if self.missing.must_ask(candidate, origin):
            await self._ask_for_missing(candidate, origin, known, obeys=obeys)
            return
        if allowed.rule != "robots":  # not obeyed: the log says so, and which line it was
            asked_by = replace(
                asked_by, rule=allowed.rule, reason=f"{allowed.reason} ({asked_by.rule}: {asked_by.reason})"
            )
        visit = await self.turns.ask(
            candidate, crawl_delay_s=known.crawl_delay_s if obeys else None, manners=host.manners
        )
        try:
            if self._tried_again(candidate, visit, origin):
                visit.body.close()
            else:
                found = await self.looked_up(visit) if self.settings.look_up is not None else None
                answer = Arrived(visit=visit, origin=origin, asked_by=asked_by, found=found)
                opened = await self.opener.open(visit, answer.found) if self.opener is not None else None
                if opened is not None:
                    answer.found, answer.attached, answer.note = opened.found, opened.attached, opened.note
                self.arrived.append(answer)
        except BaseException:
            visit.body.close()
            raise

    def _is_over_limit(self, candidate: Candidate, host: HostSettings) -> bool:
        """Refuse what goes beyond the limits of its host."""
        if not host.limit_pages and not host.limit_bytes:  # as for nearly all
            return False
        reached = self.limit_reached(candidate, host)
        if reached:
            self._refuse(
                candidate, Failure.LIMIT, f"the limit of {reached} of its host is reached", rule="host limit"
            )
        return bool(reached)

    def limit_reached(self, candidate: Candidate, host: HostSettings) -> str:
        """The limit of its host that is reached, in words; empty for none."""
        counts = self.hosts.of(host_of(candidate.url))
        if host.limit_pages and counts.fetched >= host.limit_pages:
            return f"{host.limit_pages} pages"
        return f"{host.limit_bytes} bytes" if host.limit_bytes and counts.bytes >= host.limit_bytes else ""

    def _tried_again(self, candidate: Candidate, visit: Visit, origin: str) -> bool:
        """Send a passing failure back to the frontier; False when this was the last try, or no such failure."""
        manners = self.settings.manners
        if not _is_passing(visit):
            return False
        if candidate.tries + 1 >= manners.tries:
            return self._is_waited_for(candidate, visit, origin)
        distance_s = pauses.after_failure(candidate.tries + 1, manners)
        of_host = visit.failure in _OF_HOST
        if visit.status in pauses.BUSY:
            asked_s = pauses.retry_after(parse_head(visit.head).get("retry-after"), self.clock(), manners)
            distance_s, of_host = (distance_s if asked_s is None else asked_s), True
        not_before_s = time.monotonic() + distance_s
        free_at_s = self.turns.hold(origin, not_before_s) if of_host else self.turns.free_at_s(origin)
        self.frontier.retry(candidate, host_free_at_s=free_at_s, not_before_s=not_before_s)
        self.is_dirty = True
        return True

    def _is_waited_for(self, candidate: Candidate, visit: Visit, origin: str) -> bool:
        """Names that cannot be looked up are mostly our own trouble: no server was asked, and they are tried
        on for some time.
        """
        now_s, manners = time.monotonic(), self.settings.manners
        if (
            visit.failure is not Failure.DNS
            or now_s - self.nameless_since_s.setdefault(origin, now_s) >= manners.dns_patience_s
        ):
            return False
        until_s = self.turns.hold(origin, now_s + pauses.after_failure(manners.tries, manners))
        self.frontier.retry(candidate, host_free_at_s=until_s, not_before_s=until_s, counted=False)
        return True

    async def looked_up(self, visit: Visit) -> Extracted | None:
        """The links of an answer, when a rule must first learn about their hosts (`CrawlSettings.look_up`)."""
        if self.settings.look_up is None or visit.failure is not None:
            return None
        found = links.extract(visit.candidate.url, parse_head(visit.head), visit.body, self.settings.links)
        await self.settings.look_up({host_of(url) for url, _ in found.links})
        return found

    def settle(self, most: int | None = None) -> None:
        """The lives of candidates whose answers have arrived end here: kept and read, or logged as failed."""
        arrived, self.arrived = self.arrived[:most], self.arrived[most:] if most is not None else []
        if not arrived:
            return
        self.is_dirty = True
        try:
            wanted = [answer for answer in arrived if self._is_wanted(answer)]
            for answer in wanted:
                answer.kept = self.keeper.keep(answer.visit)
            found = [answer.found or self._links_of(answer) for answer in wanted]
            found = [
                _of_missing(links) if self.missing.is_missing_page(answer.visit) else links
                for answer, links in zip(wanted, found)
            ]
            for answer, extracted in zip(wanted, found):
                self.intake.take_in(answer.visit.candidate, extracted)
            for answer, extracted in zip(wanted, found):
                if answer.attached:
                    self.keeper.attach(answer.visit, answer.attached)
                self.keeper.annotate(answer.visit, extracted.links)
            for answer, extracted in zip(wanted, found):
                self._note(answer, extracted)
        finally:
            for answer in arrived:
                answer.visit.body.close()

    def _links_of(self, answer: Arrived) -> Extracted:
        return links.extract(answer.visit.candidate.url, answer.head, answer.visit.body, self.settings.links)

    def discard(self) -> None:
        """Let go of what has arrived; the frontier has it waiting again when it is opened next."""
        for answer in self.arrived:
            answer.visit.body.close()
        self.arrived = []

    def _is_wanted(self, answer: Arrived) -> bool:
        """Whether there is an answer, and one that is kept; anything else is logged and done with here."""
        visit, candidate = answer.visit, answer.visit.candidate
        self.seeds.note(visit)
        free_at_s = self.turns.free_at_s(answer.origin)
        if visit.failure is not None:
            self.host = host_of(candidate.url)
            self.log.write(of_visit(visit, verdict=answer.asked_by))
            self.totals.errors += 1
            self.hosts.to_change(self.host).errors += 1
            # A host that let all tries of one address fail is left alone; what waits, waits for the next run.
            is_dead = visit.failure in _OF_HOST and not visit.permanent
            if is_dead and visit.failure in _NEVER_ASKED:
                self.frontier.retry(candidate, host_free_at_s=math.inf, counted=False)
            else:
                self.frontier.finish(candidate, host_free_at_s=math.inf if is_dead else free_at_s)
            return False
        answer.head = parse_head(visit.head)
        answer.mime = _mime(answer.head)
        wanted = self.judge.of_answer(candidate, answer.mime)
        if not wanted:
            self.judge.refused(wanted)
            self.log.write(of_unkept(visit, wanted, mime=answer.mime))
            if not answer.is_part:
                self.frontier.finish(candidate, host_free_at_s=free_at_s)
        return bool(wanted)

    def _note(self, answer: Arrived, found: Extracted) -> None:
        """Count and log what was kept, and let its host go on."""
        visit, candidate, kept = answer.visit, answer.visit.candidate, answer.kept
        self._count(visit, kept)
        if kept.repeated and visit.status < 300:
            self.missing.note_same(candidate.url)
        self.judge.learn(
            candidate, 404 if found.note.endswith(MISSING) else visit.status, lambda: _body_of(visit)
        )
        note = ",".join(filter(None, (found.note, answer.note))) if answer.note else found.note
        if found.directives:
            note = ",".join(
                filter(None, (note, *(f"says:{word}" for word in sorted(found.directives & _TOLD))))
            )
        self.log.write(
            of_visit(
                visit,
                verdict=answer.asked_by,
                mime=answer.mime,
                digest=kept.digest,
                duplicate=kept.duplicate,
                note=note,
            )
        )
        if answer.attached:
            self.totals.screenshots += sum(each.mime.startswith("image/") for each in answer.attached)
        if not answer.is_part:
            self.frontier.finish(candidate, host_free_at_s=self.turns.free_at_s(answer.origin))

    def _count(self, visit: Visit, kept: Kept) -> None:
        totals = self.totals
        totals.fetched += 1
        totals.bytes += len(visit.head) + visit.body_bytes
        totals.duplicates += kept.duplicate
        totals.errors += visit.status >= 400
        totals.good += 200 <= visit.status < 300 and visit.body_bytes > 0
        self.host = host_of(visit.candidate.url)
        counts = self.hosts.to_change(self.host)
        counts.fetched += 1
        counts.bytes += len(visit.head) + visit.body_bytes
        counts.duplicates += kept.duplicate
        counts.errors += visit.status >= 400
        counts.not_found += visit.status in _NOT_THERE

    def _refuse(self, candidate: Candidate, failure: Failure, reason: str, *, rule: str = "robots") -> None:
        """robots.txt forbids it, the host gave no robots.txt at all, or a limit is reached."""
        self.is_dirty = True
        self.seeds.note_refusal(candidate, failure, reason)
        self.totals.robots_refused += failure is Failure.ROBOTS
        self.totals.errors += failure not in (Failure.ROBOTS, Failure.LIMIT, Failure.SCOPE)
        self.judge.refusals[rule] += 1
        self.hosts.to_change(host_of(candidate.url)).refused += 1
        self.log.write(of_refusal(candidate, failure, rule=rule, reason=reason, at=self.clock()))

    # --- robots.txt ---

    async def _ask_robots(self, candidate: Candidate, origin: str, *, obeys: bool) -> None:
        """Fetch robots.txt, keep what came, and put the candidate back until the host is free again."""
        answer = await self.robots.ask(candidate)
        try:
            if answer.meaning is None and obeys and self._tried_again(candidate, answer.visits[-1], origin):
                return
            self._settle_robots(candidate, origin, answer, obeys=obeys)
            self.frontier.retry(candidate, host_free_at_s=self.turns.free_at_s(origin), counted=False)
        finally:
            for visit in answer.visits:
                visit.body.close()

    async def learn_robots(
        self, candidate: Candidate, origin: str, *, obeys: bool
    ) -> robots.RobotsRules | None:
        """The same for what the frontier did not hand out; None when no robots.txt came, which may be another
        next time.
        """
        answer = await self.robots.ask(candidate)
        try:
            if answer.meaning is None and obeys and _is_passing(answer.visits[-1]):
                return None
            return self._settle_robots(candidate, origin, answer, obeys=obeys)
        finally:
            for visit in answer.visits:
                visit.body.close()

    def _settle_robots(
        self, candidate: Candidate, origin: str, answer: RobotsAnswer, *, obeys: bool
    ) -> robots.RobotsRules:
        self.is_dirty = True
        for visit in answer.visits:
            self._keep_robots(visit)
        meaning = self.robots.settle(origin, answer)
        if meaning.shuts_out(origin) and obeys:
            self.seeds.note_shut_out(host_of(origin))
        self._add_sitemaps(candidate, origin, meaning.sitemaps)
        return meaning

    async def _ask_for_missing(
        self, candidate: Candidate, origin: str, known: robots.RobotsRules, *, obeys: bool
    ) -> None:
        """Learn what the host says of pages that are not there (`missing_pages`), and put the candidate back
        until it is free again.
        """
        there_is_none = Candidate(
            url=self.missing.address(origin), via=candidate.url, path=candidate.path + Hop.SPECULATIVE
        )
        if self.judge.of_robots(known, there_is_none):
            visit = await self.missing.ask(
                there_is_none, origin, crawl_delay_s=known.crawl_delay_s if obeys else None
            )
            with visit.body:
                self.log.write(of_visit(visit, mime=_mime(parse_head(visit.head)), note=f"{MISSING}Probe"))
        else:
            self.missing.spare(origin)
        self.is_dirty = True
        self.frontier.retry(candidate, host_free_at_s=self.turns.free_at_s(origin), counted=False)

    def _keep_robots(self, visit: Visit) -> None:
        if visit.failure is not None:
            self.log.write(of_visit(visit))
            return
        kept = self.keeper.keep(visit)
        self.keeper.annotate(visit, ())
        self.log.write(
            of_visit(visit, mime=_mime(parse_head(visit.head)), digest=kept.digest, duplicate=kept.duplicate)
        )

    def _add_sitemaps(self, candidate: Candidate, origin: str, lines: Sequence[str]) -> None:
        """Sitemap lines of hosts that belong to the harvest."""
        home = Candidate(url=Url(f"{origin}/robots.txt"), via=candidate.via, path=candidate.path)
        if not self.judge.inside(home):
            return
        if self.settings.find_sitemaps and not lines:
            lines = [f"{origin}/sitemap.xml"]
        urls = (find_canonical(line, base=home.url) for line in lines[: self.settings.links.links])
        found = [self.intake.candidate(home, url, Hop.MANIFEST) for url in urls if url is not None]
        self.intake.add(outlink for outlink in found if self.judge.of_link(outlink))


def _of_missing(found: Extracted) -> Extracted:
    """What the page leads to that a host shows for all that is not there: nowhere."""
    return replace(found, links=[], note=",".join(filter(None, (found.note, MISSING))))


_TOLD = frozenset({"nofollow", "noarchive", "noindex"})
"""Words of a page about itself that the log repeats."""


def _is_passing(visit: Visit) -> bool:
    """A failure that may be none next time."""
    return (
        visit.failure in _PASSING and not visit.permanent
        if visit.failure
        else visit.status in pauses.TRANSIENT
    )


def _body_of(visit: Visit) -> bytes:
    visit.body.seek(0)
    return visit.body.read(1 << 20)


def _mime(head: HttpHead) -> str:
    return (head.get("content-type") or "").partition(";")[0].strip().lower() or "no-type"
