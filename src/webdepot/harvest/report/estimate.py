"""How complete a running harvest is: an estimate, and what it is based on.

A page brings new addresses, each of which may bring more. If recent pages brought `r` new addresses each, the
queue will grow to `queued / (1 - r)` before it is done (the sum of queued·rⁿ). If r is 1 or more, no end is
in sight; then only the share of the known addresses can be given, as an upper bound. The first pages of a
site bring many addresses and later ones few, so the estimate improves with time.
"""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

FEWEST_PAGES = 50
"""Fewer pages are no basis for an estimate."""
WINDOW_PAGES = 2_000


class EstimateBasis(StrEnum):
    FINISHED = "finished"
    """The queue is empty."""
    TOO_EARLY = "too early"
    GROWING = "growing"
    """Each page brings one or more new addresses: the share is an upper bound."""
    SHRINKING = "shrinking"
    """Each page brings less than one: the queue and what it will bring have a finite sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    share: float
    """Done, as a share of the whole from 0 to 1."""
    basis: EstimateBasis
    to_come: int
    """Addresses in the queue, with those they will bring if that can be estimated."""
    new_per_page: float
    """New addresses that each recent page brought."""

    def __str__(self) -> str:
        match self.basis:
            case EstimateBasis.FINISHED:
                return "complete: the queue is empty"
            case EstimateBasis.TOO_EARLY:
                return f"too early to say: {self.to_come:,} addresses in the queue"
            case EstimateBasis.GROWING:
                return (
                    f"at most {self.share:.0%}: {self.to_come:,} addresses in the queue, "
                    f"and each page brings {self.new_per_page:.1f} new ones"
                )
            case _:
                return (
                    f"about {self.share:.0%}: about {self.to_come:,} addresses to come, "
                    f"as each page brings {self.new_per_page:.2f} new ones"
                )


class Sampler:
    """Remembers how the numbers of done and seen addresses grew over the last `WINDOW_PAGES` pages."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, int]] = deque()

    def add(self, done: int, seen: int) -> None:
        if self._samples and self._samples[-1][0] == done:
            self._samples.pop()
        self._samples.append((done, seen))
        # The window is measured in pages, not in time: a slow site has as many surprises as a fast one.
        while len(self._samples) > 2 and done - self._samples[1][0] >= WINDOW_PAGES:
            self._samples.popleft()
        if len(self._samples) > 4_000:
            self._samples = deque(list(self._samples)[::2])

    def estimate(self, done: int, waiting: int) -> Estimate:
        pages = self._samples[-1][0] - self._samples[0][0] if self._samples else 0
        if not waiting:
            return Estimate(share=1.0, basis=EstimateBasis.FINISHED, to_come=0, new_per_page=0.0)
        known = done / (done + waiting)
        if pages < FEWEST_PAGES:
            return Estimate(share=known, basis=EstimateBasis.TOO_EARLY, to_come=waiting, new_per_page=0.0)
        new_per_page = max(self._samples[-1][1] - self._samples[0][1], 0) / pages
        if new_per_page >= 1:
            return Estimate(
                share=known, basis=EstimateBasis.GROWING, to_come=waiting, new_per_page=new_per_page
            )
        to_come = round(waiting / (1 - new_per_page))
        return Estimate(
            share=done / (done + to_come),
            basis=EstimateBasis.SHRINKING,
            to_come=to_come,
            new_per_page=new_per_page,
        )
