"""Failures: which are tried again and when, and when an address is given up.

1. A temporary failure (no connection, timeout, 429, 5xx) sends the address back to the frontier with a
   growing delay (`politeness/pauses`), until its tries are used up.
2. A busy server (429, 503) is left alone for as long as it asks, with all its hosts.
3. DNS failures are retried for longer, because usually our own network is the cause.
4. An address is given up after its last try. If that concerned the whole host, the host is left alone; its
   queue is kept for the next run.
"""

import math
import time

from webdepot.container.http import parse_head
from webdepot.harvest.crawl_state import CrawlState
from webdepot.harvest.politeness import pauses
from webdepot.harvest.scope.hop_path import is_guess
from webdepot.model import Candidate, Failure, Visit

_TEMPORARY = frozenset({Failure.DNS, Failure.CONNECT, Failure.TIMEOUT, Failure.DISCONNECT})
NEVER_ASKED = frozenset({Failure.DNS, Failure.CONNECT})
"""Failures before the server was reached: such an address is not given up."""
_OF_HOST = frozenset({Failure.DNS, Failure.CONNECT, Failure.TIMEOUT})
"""Failures that concern the whole host."""


def is_temporary(visit: Visit) -> bool:
    """Whether a visit failed temporarily, so that a retry may succeed."""
    if visit.failure:
        return visit.failure in _TEMPORARY and not visit.permanent
    return visit.status in pauses.TRANSIENT


class Retries:
    """What happens to candidates of a crawl that failed. For one event loop."""

    def __init__(self, state: CrawlState) -> None:
        self._state = state
        self._dns_failing_since_s: dict[str, float] = {}
        """By origin."""

    def retry_if_temporary(self, candidate: Candidate, visit: Visit, origin: str) -> bool:
        """Send a candidate back after a temporary failure and return True; False if the failure is final or
        there is none.
        """
        state, manners = self._state, self._state.settings.manners
        if not is_temporary(visit):
            return False
        if candidate.tries + 1 >= manners.tries:
            return self._retry_dns(candidate, visit, origin)
        delay_s = pauses.after_failure(candidate.tries + 1, manners)
        is_busy = visit.status in pauses.BUSY
        if is_busy:
            asked_s = pauses.retry_after(parse_head(visit.head).get("retry-after"), state.clock(), manners)
            delay_s = delay_s if asked_s is None else asked_s
        not_before_s = time.monotonic() + delay_s
        state.note_wait(visit, delay_s)
        # All hosts of a busy server are paused. A failure concerns this host and port: others at the same
        # address may well answer.
        free_at_s = state.turns.hold(origin, not_before_s) if is_busy else state.turns.free_at_s(origin)
        state.frontier.retry(
            candidate,
            host_free_at_s=max(free_at_s, not_before_s) if visit.failure in _OF_HOST else free_at_s,
            not_before_s=not_before_s,
        )
        state.is_dirty = True
        return True

    def _retry_dns(self, candidate: Candidate, visit: Visit, origin: str) -> bool:
        """Continue to retry DNS failures for some time after the last regular try; retries put no load on the
        site.
        """
        state, manners, now_s = self._state, self._state.settings.manners, time.monotonic()
        if (
            visit.failure is not Failure.DNS
            or now_s - self._dns_failing_since_s.setdefault(origin, now_s) >= manners.dns_patience_s
        ):
            return False
        wait_s = pauses.after_failure(manners.tries, manners)
        state.note_wait(visit, wait_s)
        until_s = now_s + wait_s
        state.frontier.retry(candidate, host_free_at_s=until_s, not_before_s=until_s, counted=False)
        return True

    def give_up(self, visit: Visit, failure: Failure, origin: str) -> None:
        """End a candidate after its last try. A host that failed all tries of one address is left alone; its
        queue is kept for the next run, without addresses that were only guessed.
        """
        frontier, candidate = self._state.frontier, visit.candidate
        is_dead = failure in _OF_HOST and not visit.permanent
        if is_dead and failure in NEVER_ASKED and not is_guess(candidate.path):
            frontier.retry(candidate, host_free_at_s=math.inf, counted=False)
        elif is_dead:
            frontier.finish(candidate, host_free_at_s=math.inf)
        else:
            frontier.finish(candidate, host_free_at_s=self._state.turns.free_at_s(origin))
