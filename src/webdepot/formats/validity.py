"""How sound a file is by the rules of its own format, in the words JHOVE made known, and what was learned on
the way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from webdepot.model import Finding, Severity

Property = str | int | float | bool
"""One fact of a file, as it stands in JSON."""


class Validity(StrEnum):
    VALID = "valid"
    WELL_FORMED = "well-formed"
    """It can be read to its end; its format has further rules that were not asked or are not kept."""
    NOT_VALID = "not valid"
    NOT_CHECKED = "not checked"


class DamagedFile(Exception):
    """A check cannot go on: what is wrong, and at which byte. Caught by the check itself, which makes a
    finding of it.
    """

    def __init__(self, detail: str, place: int = 0) -> None:
        super().__init__(detail)
        self.place = place


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a check says about one file."""

    validity: Validity
    findings: Sequence[Finding] = ()
    properties: Mapping[str, Property] = field(default_factory=dict)
    """Technical metadata: width, height, pages, duration_s, encoding, … by the names in
    `docs/reference/properties.md`.
    """


def judge(
    findings: Sequence[Finding],
    properties: Mapping[str, Property] | None = None,
    *,
    best: Validity = Validity.VALID,
) -> CheckResult:
    """Not valid if one of the findings is an error, else the best that the check can say."""
    wrong = any(each.severity is Severity.ERROR for each in findings)
    return CheckResult(
        validity=Validity.NOT_VALID if wrong else best,
        findings=list(findings),
        properties=dict(properties or {}),
    )
