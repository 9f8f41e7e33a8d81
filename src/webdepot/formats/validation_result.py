"""The result of validating a file against its format, in the terms of JHOVE, with its technical metadata."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from webdepot.model import Finding, Severity

Property = str | int | float | bool
"""One property of a file, as a JSON value."""


class Validity(StrEnum):
    VALID = "valid"
    WELL_FORMED = "well-formed"
    """It can be read to its end; further rules of its format were not checked or are broken."""
    NOT_VALID = "not valid"
    NOT_CHECKED = "not checked"


class DamagedFile(Exception):
    """A check cannot continue: what is wrong, and at which byte. The check catches it and makes a finding."""

    def __init__(self, detail: str, place: int = 0) -> None:
        super().__init__(detail)
        self.place = place


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of checking one file."""

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
    """A result that is not valid if a finding is an error, and otherwise `best`."""
    wrong = any(each.severity is Severity.ERROR for each in findings)
    return CheckResult(
        validity=Validity.NOT_VALID if wrong else best,
        findings=list(findings),
        properties=dict(properties or {}),
    )
