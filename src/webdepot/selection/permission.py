"""May a target be harvested? The one gate before every harvest (mission K3).

A ground makes the harvest lawful: an owner's consent, silence after the opt-out term, or a ground that needs no letter. A
refusal closes it, whatever else speaks for it. Grounds are values that name themselves, so that the verdict can be kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from webdepot.model import Answer, Verdict


class Ground(StrEnum):
    CONSENT = "consent"
    IMPLIED_CONSENT = "implied consent"
    GOVERNMENT_WORK = "government work without reservation"
    OPEN_LICENCE = "open licence"
    PUBLIC_DOMAIN = "public-domain statement"
    OPERATOR = "decision of the operator"
    """The person at the command line took the responsibility; recorded with their name."""
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """One ground with the day from which it counts and the day after which it ends."""

    ground: Ground
    since: date
    until: date | None = None
    reason: str = ""

    def holds_on(self, day: date) -> bool:
        return self.since <= day and (self.until is None or day <= self.until)


def may_harvest(bases: Sequence[Basis], today: date) -> Verdict:
    """The latest refusal wins over everything older; otherwise any ground that holds today is enough."""
    holding = [basis for basis in bases if basis.holds_on(today)]
    refusal = max((basis for basis in holding if basis.ground is Ground.REFUSAL), key=lambda basis: basis.since, default=None)
    for basis in sorted(holding, key=lambda basis: basis.since, reverse=True):
        if basis.ground is Ground.REFUSAL:
            continue
        if refusal is None or (basis.ground is Ground.CONSENT and basis.since > refusal.since):
            return Verdict(answer=Answer.ACCEPT, rule=basis.ground.value, reason=basis.reason or f"since {basis.since}")
    if refusal is not None:
        return Verdict(answer=Answer.REJECT, rule=Ground.REFUSAL.value, reason=refusal.reason or f"refused on {refusal.since}")
    return Verdict(answer=Answer.REJECT, rule="no ground", reason="no consent, no elapsed opt-out term and no ground that needs no letter")
