"""Findings about containers that are not as they should be: which one, at which byte, what, and what to do."""

from collections.abc import Callable

from webdepot.model import Finding, Severity

OnFinding = Callable[[Finding], None]

TORN = "container.torn-record"
GARBAGE = "container.garbage"
BAD_HEADER = "container.bad-header"
BAD_LENGTH = "container.bad-length"
NOT_RANDOM = "container.not-random"
"""Records share a gzip member, so that they cannot be read at their place; `rewrite.record_wise` mends it."""

_COMPARE = "Compare it with another copy of this container. All other records are read."


class Reporter:
    """Says what is wrong in one container. `unit` names what offsets count."""

    def __init__(self, name: str, on_finding: OnFinding, unit: str = "byte") -> None:
        self._name = name
        self._on_finding = on_finding
        self._unit = unit
        self._told_not_random = False

    def skipped(self, code: str, offset: int, reason: str, next_offset: int | None) -> None:
        """A record was passed over, and reading goes on at the next offset or, with None, ends."""
        goes_on = (
            f"Reading goes on at {self._unit} {next_offset}."
            if next_offset is not None
            else "No record follows it."
        )
        self._tell(
            code,
            Severity.ERROR,
            offset,
            f"the record at {self._unit} {offset} is skipped: {reason}. {goes_on}",
            _COMPARE,
        )

    def garbage(self, offset: int, next_offset: int | None) -> None:
        until = f"up to {self._unit} {next_offset}" if next_offset is not None else "up to the end"
        self._tell(
            GARBAGE,
            Severity.WARNING,
            offset,
            f"what stands from {self._unit} {offset} {until} is no record.",
            _COMPARE,
        )

    def not_random(self, offset: int) -> None:
        """Once per container."""
        if not self._told_not_random:
            self._told_not_random = True
            message = f"from {self._unit} {offset} on, records share a gzip member, so that they cannot be read at their place."
            self._tell(
                NOT_RANDOM,
                Severity.WARNING,
                offset,
                message,
                "Import it: it is then rewritten record by record, the records unchanged.",
            )

    def _tell(self, code: str, severity: Severity, offset: int, message: str, action: str) -> None:
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
