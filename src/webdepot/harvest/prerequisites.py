"""What must be known about a host before its pages are requested: its robots.txt, and what it answers for
pages that do not exist.
"""

from collections.abc import Callable, Sequence

from webdepot.container.http import parse_head
from webdepot.harvest.crawl_state import CrawlState
from webdepot.harvest.pending_answer import mime_of
from webdepot.harvest.politeness.robots import RobotsRules
from webdepot.harvest.politeness.robots_cache import RobotsAnswer
from webdepot.harvest.report.log import PROBE, of_visit
from webdepot.model import Candidate, Hop, Visit
from webdepot.url import Url, find_canonical, host_of


class Prerequisites:
    """Fetches, keeps and logs what must be known about a host; used by `candidate_processor` and
    `browser/page_opener`.
    """

    def __init__(self, state: CrawlState) -> None:
        self._state = state

    async def learn_robots(
        self, candidate: Candidate, origin: str, *, obeys: bool, is_put_off: Callable[[Visit], bool]
    ) -> RobotsRules | None:
        """Fetch the robots.txt of a candidate's host, keep it, and queue its sitemaps.

        None if no robots.txt came and `is_put_off` says that the host will be asked again later.
        """
        state = self._state
        answer = await state.robots.ask(candidate)
        try:
            if answer.meaning is None and obeys and is_put_off(answer.visits[-1]):
                return None
            return self._settle_robots(candidate, origin, answer, obeys=obeys)
        finally:
            for visit in answer.visits:
                visit.body.close()

    async def probe_missing(self, candidate: Candidate, known: RobotsRules, *, obeys: bool) -> None:
        """Learn what the host answers for pages that do not exist (`missing_pages`)."""
        state = self._state
        probe = Candidate(
            url=state.missing.address(candidate.url), via=candidate.url, path=candidate.path + Hop.SPECULATIVE
        )
        if state.judge.of_robots(known, probe):
            visit = await state.missing.ask(
                probe,
                crawl_delay_s=known.crawl_delay_s if obeys else None,
                manners=state.settings.of_host(host_of(probe.url)).manners,
            )
            with visit.body:
                state.log.write(of_visit(visit, mime=mime_of(parse_head(visit.head)), note=PROBE))
        else:
            state.missing.spare(candidate.url)
        state.is_dirty = True

    def _settle_robots(
        self, candidate: Candidate, origin: str, answer: RobotsAnswer, *, obeys: bool
    ) -> RobotsRules:
        state = self._state
        state.is_dirty = True
        for visit in answer.visits:
            self._keep_robots(visit)
        meaning = state.robots.settle(origin, answer)
        if meaning.shuts_out(origin) and obeys:
            state.seeds.note_shut_out(host_of(origin))
        self._add_sitemaps(candidate, origin, meaning.sitemaps)
        return meaning

    def _keep_robots(self, visit: Visit) -> None:
        state = self._state
        if visit.failure is not None:
            state.log.write(of_visit(visit))
            return
        (kept,) = state.keeper.keep([visit])
        state.keeper.write(visit, kept)
        mime = mime_of(parse_head(visit.head))
        state.log.write(of_visit(visit, mime=mime, digest=kept.digest, duplicate=kept.duplicate))

    def _add_sitemaps(self, candidate: Candidate, origin: str, lines: Sequence[str]) -> None:
        """Queue the sitemaps of a host that belongs to the harvest."""
        state = self._state
        home = Candidate(url=Url(f"{origin}/robots.txt"), via=candidate.via, path=candidate.path)
        if not state.judge.is_inside(home):
            return
        if state.settings.find_sitemaps and not lines:
            lines = [f"{origin}/sitemap.xml"]
        urls = (find_canonical(line, base=home.url) for line in lines[: state.settings.links.links])
        sitemaps = [state.intake.candidate(home, url, Hop.MANIFEST) for url in urls if url is not None]
        state.intake.add(sitemap for sitemap in sitemaps if state.judge.of_link(sitemap))
