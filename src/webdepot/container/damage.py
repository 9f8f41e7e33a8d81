"""Findings about damaged containers: which one, at which byte, what is wrong, and what to do."""

from collections.abc import Callable

from webdepot.model import Finding, Severity

OnFinding = Callable[[Finding], None]

TORN = "container.torn-record"
GARBAGE = "container.garbage"
BAD_HEADER = "container.bad-header"
BAD_LENGTH = "container.bad-length"
NOT_RANDOM = "container.not-random"
"""Records share a gzip member and cannot be read by their location; `rewrite.record_wise` repairs it."""

_COMPARE = "Compare it with another copy of this container. All other records are read."


class Reporter:
    """Reports what is wrong in one container. `unit` names what offsets count."""

    def __init__(self, name: str, on_finding: OnFinding, unit: str = "byte") -> None:
        self._name = name
        self._on_finding = on_finding
        self._unit = unit
        self._has_reported_not_random = False

    def skipped(self, code: str, offset: int, reason: str, next_offset: int | None) -> None:
        """A record was skipped; reading continues at the next offset or, with None, ends."""
        next_step = (
            f"Reading continues at {self._unit} {next_offset}."
            if next_offset is not None
            else "No record follows it."
        )
        message = f"the record at {self._unit} {offset} is skipped: {reason}. {next_step}"
        self._report(code, Severity.ERROR, offset, message, _COMPARE)

    def garbage(self, offset: int, next_offset: int | None) -> None:
        until = f"up to {self._unit} {next_offset}" if next_offset is not None else "up to the end"
        message = f"the data from {self._unit} {offset} {until} is not a record."
        self._report(GARBAGE, Severity.WARNING, offset, message, _COMPARE)

    def not_random(self, offset: int) -> None:
        """Report that records share a gzip member; only once for each container."""
        if not self._has_reported_not_random:
            self._has_reported_not_random = True
            message = (
                f"from {self._unit} {offset} on, records share a gzip member "
                "and cannot be read by their location."
            )
            action = "Import it: it is then rewritten record by record, with unchanged records."
            self._report(NOT_RANDOM, Severity.WARNING, offset, message, action)

    def _report(self, code: str, severity: Severity, offset: int, message: str, action: str) -> None:
        self._on_finding(
            Finding(
                code=code,
                severity=severity,
                subject=self._name,
                message=f"Container {self._name}: {message}",
                place=f"{self._unit} {offset}",
                action=action,
            )
        )
