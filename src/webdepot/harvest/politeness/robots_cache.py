"""The robots.txt of each host of a crawl: fetched once, with its redirects, and stored with the frontier.

Recently used rules are in memory; all are stored in the frontier, so that a resumed harvest does not fetch
them again within a day. A host that did not answer is asked again in the next run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from webdepot.container.http import content_decoded, parse_head, transfer_decoded
from webdepot.harvest.politeness import robots
from webdepot.harvest.politeness.robots import RobotsBasis, RobotsRules
from webdepot.harvest.politeness.server_turns import ServerTurns
from webdepot.model import Candidate, Hop, Visit
from webdepot.ports.harvest import Frontier
from webdepot.times import Clock
from webdepot.url import Url, find_canonical, origin_of

MOST_IN_MEMORY = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsAnswer:
    """The result of fetching robots.txt: each response on the way, and what the last one means."""

    visits: Sequence[Visit]
    """In order; the caller closes them."""
    meaning: RobotsRules | None
    """Set if a redirect led to the robots.txt of a host that is already known."""


class RobotsCache:
    def __init__(self, turns: ServerTurns, frontier: Frontier, clock: Clock, agent: str) -> None:
        self._turns = turns
        self._frontier = frontier
        self._clock = clock
        self._agent = agent
        self._known: dict[str, RobotsRules] = {}

    def find(self, origin: str) -> RobotsRules | None:
        """The rules of a host; None if they are unknown or too old."""
        known = self._known.get(origin)
        if known is None:
            stored = self._frontier.recall(f"robots:{origin}")
            if stored is None:
                return None
            known = robots.from_json(stored)
            self._put_in_memory(origin, known)
        return known if known.is_fresh(self._clock()) else None

    async def ask(self, candidate: Candidate) -> RobotsAnswer:
        """Fetch the robots.txt of a candidate's host, following redirects."""
        visits: list[Visit] = []
        url, path, via = (
            Url(f"{origin_of(candidate.url)}/robots.txt"),
            candidate.path + Hop.PREREQUISITE,
            candidate.url,
        )
        while True:
            visits.append(await self._turns.ask(Candidate(url=url, via=via, path=path), crawl_delay_s=None))
            target = _redirect_target(visits[-1])
            if (
                target is None
                or len(visits) > robots.MOST_REDIRECTS
                or any(target == visit.candidate.url for visit in visits)
            ):
                return RobotsAnswer(visits=visits, meaning=None)
            other = origin_of(target)
            known = self.find(other) if _is_robots(target) else None
            if known is not None:
                return RobotsAnswer(visits=visits, meaning=known)
            url, path, via = target, path + Hop.REDIRECT, url

    def settle(self, origin: str, answer: RobotsAnswer) -> RobotsRules:
        """Store what a response means for its host, and for the host that finally served it."""
        last = answer.visits[-1]
        meaning = answer.meaning or self._read(last)
        # http://a.example/robots.txt usually redirects to https://a.example/robots.txt: one response for
        # both.
        owners = {origin, origin_of(last.candidate.url) if _is_robots(last.candidate.url) else origin}
        for owner in owners:
            self._put_in_memory(owner, meaning)
            if meaning.basis is not RobotsBasis.UNREACHABLE:
                self._frontier.remember(f"robots:{owner}", meaning.to_json())
        return meaning

    def _read(self, visit: Visit) -> RobotsRules:
        if visit.failure is not None:
            return robots.of_failure(
                visit.failure,
                visit.failure_detail,
                at=self._clock(),
                agent=self._agent,
                permanent=visit.permanent,
            )
        head = parse_head(visit.head)
        visit.body.seek(0)
        body = content_decoded(
            transfer_decoded(visit.body, head), head, limit_bytes=robots.LONGEST_BYTES
        ).read()
        return robots.of_answer(status=visit.status, body=body, at=self._clock(), agent=self._agent)

    def _put_in_memory(self, origin: str, known: RobotsRules) -> None:
        if len(self._known) >= MOST_IN_MEMORY:
            self._known = {
                owner: kept for owner, kept in self._known.items() if kept.basis is RobotsBasis.UNREACHABLE
            }
        self._known[origin] = known


def _is_robots(url: str) -> bool:
    return url == f"{origin_of(url)}/robots.txt"


def _redirect_target(visit: Visit) -> Url | None:
    if not 300 <= visit.status < 400:
        return None
    location = parse_head(visit.head).get("location")
    return find_canonical(location, base=visit.candidate.url) if location else None
