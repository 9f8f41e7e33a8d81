"""The path of one candidate, from the moment the frontier hands it out to its last log line.

1. If the robots.txt of its host is not known, that is fetched first (kept and logged like a page), and the
   candidate goes back to the frontier until the pause is over.
2. If robots.txt forbids it, that is logged and the candidate is finished.
3. It is fetched. After a temporary failure it goes back, until its tries are used up (`retries`). A page that
   must be opened in the browser is opened (`page_opener`).
4. The answer is kept (`Keeper.keep`) and its links are extracted; those that the scope rules accept are added
   to the frontier (`link_intake`).
5. The answer is written with its links (`Keeper.write`), the line is logged, and the pause of the host
   begins.

Steps 4 and 5 are done for all answers that have arrived meanwhile (`settle`), one step after the other:
running the same code over many pages takes two thirds of the time of settling each page alone. There is no
`await` in them, so at a checkpoint (`crawl`) an answer is either settled or not begun.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from webdepot.container.http import parse_head
from webdepot.harvest import program_errors
from webdepot.harvest.browser.browser import Browser
from webdepot.harvest.browser.page_opener import PageOpener
from webdepot.harvest.crawl_state import CrawlState
from webdepot.harvest.links.extract import Extracted
from webdepot.harvest.pending_answer import NO_HEAD, PendingAnswer, mime_of
from webdepot.harvest.politeness.robots import RobotsPolicy, RobotsRules
from webdepot.harvest.prerequisites import Prerequisites
from webdepot.harvest.report.log import MISSING, PROBE, SOFTWARE, of_unkept, of_visit
from webdepot.harvest.retries import NEVER_ASKED, Retries
from webdepot.harvest.scope import host_rules
from webdepot.harvest.scope.hop_path import embed_depth, is_guess, is_part, is_unreferenced
from webdepot.harvest.scope.trap_watch import PageContent, page_content, page_lines
from webdepot.model import Candidate, Failure, Hop, Verdict, Visit
from webdepot.url import Url, host_of, origin_of

_NOT_FOUND = frozenset({404, 410})
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_PAGE_WAIT_S = 0.05
"""How long to wait before retrying a candidate that might exceed the limit of pages together with pending
requests.
"""
_LOGGED_DIRECTIVES = frozenset({"nofollow", "noarchive", "noindex"})
"""Robots directives of a page that are repeated in the log."""


class CandidateProcessor:
    """Fetches, keeps and logs the candidates of a crawl. For one event loop."""

    def __init__(self, state: CrawlState, browser: Browser | None) -> None:
        self._state = state
        self._prerequisites = Prerequisites(state)
        self._opener = PageOpener(state, self._prerequisites, browser) if browser is not None else None
        self._retries = Retries(state)

    # --- one candidate ---

    async def visit(self, candidate: Candidate) -> None:
        """Fetch a candidate that the frontier handed out, or send it back, or finish it."""
        try:
            await self._visit_in_turn(candidate)
        except Exception as error:
            reason = self._count_program_error(error)
            self._state.refuse(candidate, Failure.PROTOCOL, reason, rule="program error")
            self._finish(candidate, origin_of(candidate.url))

    async def _visit_in_turn(self, candidate: Candidate) -> None:
        """Visit it, unless the limit of pages leaves no room for another page."""
        state = self._state
        if is_part(candidate.path):
            await self._visit(candidate)
        elif state.may_ask_for_page():
            state.pages_out += 1
            try:
                await self._visit(candidate)
            finally:
                state.pages_out -= 1
        else:
            # Parts come first in the queue of a host. If the next one is not a part, no parts are waiting,
            # and the host is left alone for the rest of this run.
            wait_s = math.inf if state.has_enough_pages else _PAGE_WAIT_S
            self._put_back(candidate, time.monotonic() + wait_s)

    async def _visit(self, candidate: Candidate) -> None:
        state, origin = self._state, origin_of(candidate.url)
        host = state.settings.of_host(host_of(candidate.url))
        if (self._opener is not None and self._opener.has(candidate)) or self._is_over_limit(candidate):
            self._finish(candidate, origin)
            return
        asked_by = state.judge.before_asking(candidate)
        if asked_by.rule == host_rules.UNDECIDED and state.settings.host_rules is not None:
            # The owner of the host is being looked up; no worker waits for that.
            due_s = time.monotonic() + host_rules.wait_s(state.settings.host_rules)
            self._put_back(candidate, due_s)
            return
        if not asked_by:
            state.refuse(candidate, Failure.SCOPE, asked_by.reason, rule=asked_by.rule)
            self._finish(candidate, origin)
            return
        busy_until_s = await state.turns.wait_until_s(origin)
        if busy_until_s is not None:  # another host at the same server address has its turn
            self._put_back(candidate, busy_until_s)
            return
        obeys = (host.robots or state.settings.robots) is not RobotsPolicy.IGNORE
        robots = await self._find_robots(candidate, origin, obeys=obeys)
        if robots is None:
            return
        allowed = state.judge.of_robots(robots, candidate)
        if not allowed:
            self._refuse_by_robots(candidate, origin, robots, allowed.reason)
            return
        if state.missing.must_ask(candidate, state.hosts.of(host_of(candidate.url)).fetched):
            await self._prerequisites.probe_missing(candidate, robots, obeys=obeys)
            self._put_back(candidate, state.turns.free_at_s(origin))
            return
        if probe := state.judge.mazes.find_probe(candidate):
            await self._probe_maze(candidate, probe, robots, obeys=obeys)
            self._put_back(candidate, state.turns.free_at_s(origin))
            return
        if allowed.rule != "robots":  # not obeyed: the log says so, and which line it was
            asked_by = replace(
                asked_by, rule=allowed.rule, reason=f"{allowed.reason} ({asked_by.rule}: {asked_by.reason})"
            )
        state.latest_asked = candidate.url
        visit = await state.turns.ask(
            candidate, crawl_delay_s=robots.crawl_delay_s if obeys else None, manners=host.manners
        )
        try:
            if self._retries.retry_if_temporary(candidate, visit, origin):
                visit.body.close()
            else:
                state.arrived.append(await self._receive(visit, origin, asked_by))
        except BaseException:
            visit.body.close()
            raise

    async def _find_robots(self, candidate: Candidate, origin: str, *, obeys: bool) -> RobotsRules | None:
        """The robots.txt of the candidate's host. None if it is not known: then it is fetched now, and the
        candidate goes back until the host is free again. None, too, if the candidate is the robots.txt
        itself.
        """
        known = self._state.robots.find(origin)
        if known is None:
            learned = await self._prerequisites.learn_robots(
                candidate,
                origin,
                obeys=obeys,
                is_put_off=lambda visit: self._retries.retry_if_temporary(candidate, visit, origin),
            )
            if learned is not None:
                self._put_back(candidate, self._state.turns.free_at_s(origin))
            return None
        if candidate.url == f"{origin}/robots.txt":
            self._finish(candidate, origin)
            return None
        return known

    async def _probe_maze(
        self, candidate: Candidate, address: Url, robots: RobotsRules, *, obeys: bool
    ) -> None:
        """Learn whether the server invents a page for an address that cannot exist (`mazes`). It is opened in
        the browser as the pages of the site are, logged, and not kept. Parts that it requests there are kept
        as those of any page are, because pages of the site may have them, too.
        """
        state = self._state
        probe = Candidate(url=address, via=candidate.url, path=candidate.path + Hop.SPECULATIVE)
        links: Sequence[tuple[Url, Hop]] = ()
        lines: PageContent | None = None
        state.is_dirty = True
        if state.judge.of_robots(robots, probe):
            visit = await state.turns.ask(
                probe,
                crawl_delay_s=robots.crawl_delay_s if obeys else None,
                manners=state.settings.of_host(host_of(address)).manners,
            )
            with visit.body:
                head = parse_head(visit.head) if visit.failure is None else NO_HEAD
                if visit.failure is None and 200 <= visit.status < 300:
                    is_opened = self._opener is not None and not embed_depth(candidate.path)  # frames are not
                    opened = await self._opener.open(visit, None) if self._opener and is_opened else None
                    links = (opened.extracted if opened else state.extract(visit, head)).links
                    lines = page_lines(visit, opened.text if opened else "")
                state.log.write(of_visit(visit, mime=mime_of(head), note=PROBE))
        state.judge.mazes.note_probe(candidate, address, links, state.intake.recently_added, lines)

    def _refuse_by_robots(self, candidate: Candidate, origin: str, robots: RobotsRules, reason: str) -> None:
        self._state.refuse(candidate, robots.failure or Failure.ROBOTS, reason)
        if robots.failure in NEVER_ASKED and not robots.permanent and not is_guess(candidate.path):
            self._put_back(candidate, math.inf)
        else:
            self._finish(candidate, origin)

    async def _receive(self, visit: Visit, origin: str, asked_by: Verdict) -> PendingAnswer:
        """The answer, after its page was opened in the browser if necessary."""
        head = parse_head(visit.head) if visit.failure is None else NO_HEAD
        extracted = await self._state.find_links_early(visit, head)
        answer = PendingAnswer(visit=visit, origin=origin, asked_by=asked_by, extracted=extracted, head=head)
        if self._opener is None:
            return answer
        try:
            opened = await self._opener.open(visit, answer.extracted)
        except Exception as error:  # the page is kept as it was fetched
            self._note_program_error(answer, error)
            self._state.totals.unopened += 1
            return answer
        if opened is not None:
            answer.extracted, answer.attached, answer.note = opened.extracted, opened.attached, opened.note
            answer.shown = opened.text
        return answer

    def _note_program_error(self, answer: PendingAnswer, error: Exception) -> None:
        """Note a program error about an answer that is kept anyway, for its log line."""
        reason = self._count_program_error(error).replace(",", ";")
        answer.note = ",".join(filter(None, (answer.note, reason)))

    def _count_program_error(self, error: Exception) -> str:
        """Count a program error and return its description; raise it if it must end the crawl."""
        if program_errors.is_of_archive(error):
            raise error
        self._state.totals.program_errors += 1
        return program_errors.describe(error)

    def _finish(self, candidate: Candidate, origin: str) -> None:
        self._state.frontier.finish(candidate, host_free_at_s=self._state.turns.free_at_s(origin))

    def _put_back(self, candidate: Candidate, host_free_at_s: float) -> None:
        """Send a candidate back to the frontier without counting a try."""
        self._state.frontier.retry(candidate, host_free_at_s=host_free_at_s, counted=False)

    def _is_over_limit(self, candidate: Candidate) -> bool:
        """Refuse a candidate whose host has reached a limit."""
        reached = self._state.find_host_limit(candidate)
        if reached:
            self._state.refuse(
                candidate, Failure.LIMIT, f"its host has reached the limit of {reached}", rule="host limit"
            )
        return bool(reached)

    # --- answers ---

    def settle(self, most: int | None = None) -> None:
        """Keep the answers that have arrived, at most `most` of them, queue their links and log them; log
        final failures.
        """
        state = self._state
        arrived = state.arrived[:most]
        del state.arrived[:most]
        if not arrived:
            return
        state.is_dirty = True
        try:
            wanted = [answer for answer in arrived if self._is_wanted(answer)]
            for answer, kept in zip(wanted, state.keeper.keep([answer.visit for answer in wanted])):
                answer.kept = kept
            extracted = [self._links_of(answer) for answer in wanted]
            for answer, links in zip(wanted, extracted):
                self._take_in(answer, links)
            for answer, links in zip(wanted, extracted):
                state.keeper.write(answer.visit, answer.kept, outlinks=links.links, attached=answer.attached)
            for answer, links in zip(wanted, extracted):
                self._note(answer, links)
        finally:
            for answer in arrived:
                answer.visit.body.close()

    def discard(self) -> None:
        """Drop the answers that have arrived; the frontier queues them again when it is next opened."""
        for answer in self._state.arrived:
            answer.visit.body.close()
        self._state.arrived.clear()

    def _links_of(self, answer: PendingAnswer) -> Extracted:
        visit = answer.visit
        try:
            extracted = answer.extracted or self._state.extract(visit, answer.head)
            is_missing = self._state.missing.is_missing_page(visit, answer.shown)
        except Exception as error:
            self._note_program_error(answer, error)
            return answer.extracted or Extracted(links=[])
        return _without_links(extracted) if is_missing else extracted

    def _take_in(self, answer: PendingAnswer, links: Extracted) -> None:
        try:
            self._learn_software(answer, links)
            self._learn_maze(answer, links)
            self._state.intake.take_in(answer.visit.candidate, links)
        except Exception as error:
            self._note_program_error(answer, error)

    def _learn_software(self, answer: PendingAnswer, links: Extracted) -> None:
        """Learn which software the site runs, before the links of its page are judged; the log names it."""
        visit = answer.visit
        if links.software and 200 <= visit.status < 300:
            new = self._state.judge.learn_software(host_of(visit.candidate.url), links.software)
            answer.note = ",".join(filter(None, (answer.note, *(f"{SOFTWARE}{id}" for id in new))))

    def _learn_maze(self, answer: PendingAnswer, links: Extracted) -> None:
        """Learn whether the site invents pages, before the links of this one are queued."""
        state, visit = self._state, answer.visit
        if 200 <= visit.status < 300:
            state.judge.mazes.note(
                visit.candidate,
                links.links,
                state.intake.recently_added,
                lambda: page_lines(visit, answer.shown),
            )

    def _is_wanted(self, answer: PendingAnswer) -> bool:
        """Whether there is an answer that must be kept. If not, it is logged and finished here."""
        state, visit, candidate = self._state, answer.visit, answer.visit.candidate
        state.seeds.note(visit)
        if visit.failure is not None:
            self._note_failure(answer, visit.failure)
            return False
        answer.mime = mime_of(answer.head)
        wanted = state.judge.of_answer(candidate, answer.mime)
        if not wanted:
            state.judge.count_refusal(wanted)
            state.log.write(of_unkept(visit, wanted, mime=answer.mime))
            if not answer.is_part:
                self._finish(candidate, answer.origin)
        return bool(wanted)

    def _note_failure(self, answer: PendingAnswer, failure: Failure) -> None:
        """Count and log a final failure."""
        state, visit = self._state, answer.visit
        state.latest_host = host_of(visit.candidate.url)
        state.log.write(of_visit(visit, verdict=answer.asked_by))
        state.totals.count_failure(visit.candidate)
        state.hosts.to_change(state.latest_host).errors += not is_unreferenced(visit.candidate)
        self._retries.give_up(visit, failure, answer.origin)

    def _note(self, answer: PendingAnswer, extracted: Extracted) -> None:
        """Count and log an answer that was kept, and free its host."""
        state, visit, candidate, kept = self._state, answer.visit, answer.visit.candidate, answer.kept
        self._count(answer, extracted)
        try:
            state.judge.learn(
                candidate,
                404 if extracted.note.endswith(MISSING) else visit.status,
                lambda: self._page_content(answer, extracted),
            )
        except Exception as error:
            self._note_program_error(answer, error)
        directives = (f"says:{name}" for name in sorted(extracted.directives & _LOGGED_DIRECTIVES))
        state.log.write(
            of_visit(
                visit,
                verdict=answer.asked_by,
                mime=answer.mime,
                digest=kept.digest,
                duplicate=kept.duplicate,
                note=",".join(filter(None, (extracted.note, answer.note, *directives))),
            )
        )
        for each in answer.attached:
            if each.mime.startswith("image/"):
                state.totals.screenshots += 1
                if state.pictures is not None:
                    state.pictures.add(candidate.url, each.data)
        if not answer.is_part:
            self._finish(candidate, answer.origin)

    def _page_content(self, answer: PendingAnswer, extracted: Extracted) -> PageContent | None:
        """The content of an answer for comparison with others; None for a page that is empty until scripts
        fill it.
        """
        if extracted.is_empty and not answer.shown:
            return None
        return page_content(answer.visit, extracted.links, answer.shown, self._state.judge.traps.is_trapped)

    def _count(self, answer: PendingAnswer, extracted: Extracted) -> None:
        state, visit, kept, path = self._state, answer.visit, answer.kept, answer.visit.candidate.path
        size_bytes = len(visit.head) + visit.body_bytes
        is_good = 200 <= visit.status < 300
        is_page = is_good and answer.mime in _PAGES and not is_part(path)
        is_error = visit.status >= 400 and not is_unreferenced(visit.candidate)
        state.totals.fetched += 1
        state.totals.pages += is_page
        state.totals.empty_pages += is_page and extracted.is_empty
        state.totals.noindex_pages += is_page and "noindex" in extracted.directives
        state.totals.bytes += size_bytes
        state.totals.duplicates += kept.duplicate
        if is_error:
            state.totals.count_failure(visit.candidate)
        state.totals.good += is_good and visit.body_bytes > 0
        state.latest_host = host_of(visit.candidate.url)
        state.end_wait(state.latest_host)
        counts = state.hosts.to_change(state.latest_host)
        counts.fetched += 1
        counts.pages += is_page
        counts.bytes += size_bytes
        counts.duplicates += kept.duplicate
        counts.errors += is_error
        counts.not_found += visit.status in _NOT_FOUND


def _without_links(extracted: Extracted) -> Extracted:
    """The same without links that would be followed: for the page that a host shows for missing pages."""
    return replace(extracted, links=[], note=",".join(filter(None, (extracted.note, MISSING))))
