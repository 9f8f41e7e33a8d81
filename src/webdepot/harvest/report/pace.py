"""How many pages a harvest has fetched over time, in a few numbers: for a graph that shows when it was slow.

Time is the time that the harvest worked, over all its runs. It is cut into steps of equal length; when there
are too many, each two are joined into one. So memory and file stay small, however long the harvest runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

MOST_STEPS = 120
FIRST_STEP_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestPace:
    """Pages by the end of each step. The last step may not be over."""

    step_s: float = FIRST_STEP_S
    pages: tuple[int, ...] = ()

    def per_minute(self, elapsed_s: float) -> list[float]:
        """Pages per minute in each step; `elapsed_s` is the current end of the last step."""
        rates, before = [], 0
        for number, pages in enumerate(self.pages):
            is_last = number == len(self.pages) - 1
            length_s = elapsed_s - number * self.step_s if is_last else self.step_s
            # The first second of a step says nothing about it.
            rates.append(60 * (pages - before) / min(max(length_s, 1.0), self.step_s))
            before = pages
        return rates


def with_pages(pace: HarvestPace, elapsed_s: float, pages: int) -> HarvestPace:
    """The pace after one more report. After a crash `elapsed_s` may be earlier than before: what came later
    is forgotten.
    """
    step_s, totals = pace.step_s, list(pace.pages)
    while elapsed_s >= step_s * MOST_STEPS:
        totals = _halved(totals)
        step_s *= 2
    place = int(max(elapsed_s, 0.0) // step_s)
    del totals[place:]
    totals += [totals[-1] if totals else 0] * (place - len(totals))
    return HarvestPace(step_s=step_s, pages=(*totals, pages))


def _halved(totals: Sequence[int]) -> list[int]:
    """Every second total, and the last one."""
    return [*totals[1::2], *(totals[-1:] if len(totals) % 2 else ())]
