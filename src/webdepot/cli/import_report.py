"""What `webdepot import` prints: a report of each package when it is complete, then which files were imported
and which were not.

With --json the last line also has `outcomes` (how many were imported, known and skipped) and `skipped` (files
with reasons). The file of --report has a line for each file, written as soon as its outcome is known.
"""

import json
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from webdepot.cli.output import INTERRUPTED, Output, plain, size_words
from webdepot.cli.progress import paused
from webdepot.cli.report import TO_VIEW, report_fields, report_lines
from webdepot.services.intake.imports import ImportReport
from webdepot.services.intake.warc_files import FileOutcome, FileState
from webdepot.services.progress import Watch, unwatched

if TYPE_CHECKING:
    from webdepot.services.intake.ingest import ArchiveReport


class ImportPrinter:
    """Prints while an import runs; a context manager that also prints the summary of an interrupted one."""

    def __init__(self, output: Output, report: Path | None) -> None:
        self.watch: Watch = unwatched
        self._output = output
        self._total = ImportReport()
        self._last: dict[str, Any] | None = None
        self._listing: TextIO | None = (
            report.open("w", encoding="utf-8", errors="backslashreplace") if report else None
        )

    def __enter__(self) -> "ImportPrinter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, KeyboardInterrupt):
            self.print_summary()
            self._output.warn(INTERRUPTED)  # Typer ends the program without a message
        if self._listing:
            self._listing.close()

    @property
    def is_incomplete(self) -> bool:
        """Whether a file could not be imported."""
        return self._total.files[FileState.SKIPPED] > 0

    def add_file(self, outcome: FileOutcome) -> None:
        self._total.add(outcome)
        if outcome.state is FileState.IMPORTED and outcome.reason:
            with paused(self.watch):
                self._output.warn(plain(f"{outcome.file}: {outcome.reason}"))
        if self._listing:
            self._listing.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")
            self._listing.flush()

    def add_package(self, report: "ArchiveReport") -> None:
        """Print the report of a package. With --json it is held back until the next one or the end, because
        the last line has more fields.
        """
        self._total.harvests += 1
        if self._output.json:
            self._print_last({})
            self._last = report_fields(report)
        elif not self._output.quiet:
            with paused(self.watch):
                self._output.result({}, "\n".join(report_lines(report)))

    def print_summary(self) -> None:
        """Print how many files were imported, which were not, and why."""
        for outcome in self._total.skipped:
            self._output.warn(plain(f"{outcome.file}: {outcome.reason}"))
        counts = {state.value: self._total.files[state] for state in FileState}
        unlisted = counts[FileState.SKIPPED] - len(self._total.skipped)
        if unlisted:
            self._output.warn(f"{unlisted:,} more could not be imported; --report FILE lists all.")
        skipped = [
            {"file": _text(outcome.file), "reason": _text(outcome.reason)} for outcome in self._total.skipped
        ]
        if self._output.json:
            if self._last is None:
                state = "known" if counts[FileState.KNOWN] else "skipped"
                self._last = {"state": state, "files": counts[state]}
            self._print_last({"outcomes": counts, "skipped": skipped})
        elif not self._output.quiet:
            self._output.result({}, _summary(counts, self._total))

    def _print_last(self, more: dict[str, Any]) -> None:
        if self._last is not None:
            self._output.result(self._last | more, "")
        self._last = None


def _text(name: str) -> str:
    """A file name, which may be any bytes, as text."""
    return name.encode(errors="backslashreplace").decode()


def _summary(counts: dict[str, int], total: ImportReport) -> str:
    imported, known, skipped = (counts[state] for state in FileState)
    if not imported and known and not total.harvests:
        first = f"Nothing new: all {known:,} files are already in the archive."
        if skipped:
            first = f"Nothing new: {known:,} files are already in the archive."
    else:
        first = f"{imported:,} files imported, {size_words(total.size_bytes)}; {known:,} were already there."
    lines = [first] + ([f"{skipped:,} could not be imported; the reasons are above."] if skipped else [])
    return "\n".join([*lines, *([TO_VIEW] if total.harvests else [])])
