"""How complete is a harvest that still runs? An estimate, with what it rests on.

A page brings new addresses, each of which may bring more. If lately each page brought `r` new ones, what
waits will grow to `waiting / (1 - r)` before it is done (the sum of waiting·rⁿ). With r of 1 or more there is
no end in sight: then only the share of what is known can be said, and it is called an upper bound. Early
pages of a site bring much, later ones little, so the estimate is careful at first and gets better.
"""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

FEWEST_PAGES = 50
"""Fewer pages say nothing about the next ones."""
WINDOW_PAGES = 2_000


class EstimateBasis(StrEnum):
    FINISHED = "finished"
    """Nothing waits."""
    TOO_EARLY = "too early"
    GROWING = "growing"
    """Each page brings one or more new addresses: the share is an upper bound."""
    SHRINKING = "shrinking"
    """Each page brings less than one: what waits and what it will bring can be added up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    share: float
    """Of the whole, from 0 to 1."""
    basis: EstimateBasis
    to_come: int
    """Addresses waiting, with those they will bring where that can be said."""
    new_per_page: float
    """New addresses that each page brought lately."""

    def __str__(self) -> str:
        match self.basis:
            case EstimateBasis.FINISHED:
                return "complete: nothing waits"
            case EstimateBasis.TOO_EARLY:
                return f"too early to say: {self.to_come:,} addresses wait"
            case EstimateBasis.GROWING:
                return f"at most {self.share:.0%}: {self.to_come:,} wait, and each page brings {self.new_per_page:.1f} new addresses"
            case _:
                return f"about {self.share:.0%}: some {self.to_come:,} to come, as each page brings {self.new_per_page:.2f} new addresses"


class Sampler:
    """Remembers how done and seen grew lately."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, int]] = deque()

    def add(self, done: int, seen: int) -> None:
        if self._samples and self._samples[-1][0] == done:
            self._samples.pop()
        self._samples.append((done, seen))
        # The window is counted in pages, not in time: a slow site has as many surprises as a quick one.
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
