"""The grounds that make a harvest lawful or forbid it, as values. Rows of them are in `grounds.py`."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum


class Ground(StrEnum):
    CONSENT = "consent"
    IMPLIED_CONSENT = "implied consent"
    GOVERNMENT_WORK = "government work without reservation"
    OPEN_LICENCE = "open licence"
    PUBLIC_DOMAIN = "public-domain statement"
    LAW = "legal deposit law"
    OPERATOR = "decision of the operator"
    """The person at the command line took the responsibility; recorded with their name."""
    REFUSAL = "refusal"


WITHOUT_LETTER = (
    Ground.CONSENT,
    Ground.GOVERNMENT_WORK,
    Ground.OPEN_LICENCE,
    Ground.PUBLIC_DOMAIN,
    Ground.LAW,
)
"""Grounds that a person can record without a letter; consent is then an explicit opt-in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionBasis:
    """One ground with its first day and, if it ends, its last."""

    ground: Ground
    since: date
    until: date | None = None
    reason: str = ""

    def is_valid_on(self, day: date) -> bool:
        return self.since <= day and (self.until is None or day <= self.until)
