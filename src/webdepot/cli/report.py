"""The short report at the end of `archive`, `import` and `harvest resume`."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from webdepot.cli.output import Output, count_words, failure_words, plain, size_words
from webdepot.model import HarvestState

if TYPE_CHECKING:
    from webdepot.services.intake.ingest import ArchiveReport

EXIT_STOPPED = 130
SHOWN_FINDINGS = 5
INDENT = " " * 14
TO_VIEW = "To view it, run: [bold]webdepot serve[/bold]"


def print_report(output: Output, report: "ArchiveReport") -> None:
    """Print the report; exits 130 if the harvest was stopped and can be resumed."""
    if output.json or not output.quiet:
        output.result(report_fields(report), "\n".join([*_fitted(report_lines(report)), TO_VIEW]))
    if report.harvest.state is HarvestState.STOPPED:
        raise typer.Exit(EXIT_STOPPED)


def _fitted(lines: Iterable[str]) -> list[str]:
    """The lines; on a terminal, long ones are continued between words, below the text of the first line."""
    if not sys.stdout.isatty():
        return list(lines)
    width = shutil.get_terminal_size().columns
    return [
        part
        for line in lines
        for part in textwrap.wrap(
            line,
            width,
            subsequent_indent=INDENT,
            break_long_words=False,  # an address can be copied
            break_on_hyphens=False,
        )
    ]


def report_fields(report: "ArchiveReport") -> dict[str, Any]:
    """The report as JSON values."""
    harvest, formats = report.harvest, report.formats
    return {
        "harvest": harvest.id,
        "state": harvest.state.value,
        "reason": harvest.reason,
        "counts": dict(harvest.counts),
        "left_out": dict(report.left_out),
        "verdict": {
            "answer": report.verdict.answer.value,
            "rule": report.verdict.rule,
            "reason": report.verdict.reason,
        },
        "findings": dict(report.finding_counts),
        "formats": {
            "files": formats.files,
            "recognised": formats.recognised,
            "uncertain": formats.uncertain,
            "not_recognised": formats.not_recognised,
        },
        "package": report.package.id if report.package else None,
        "urn": report.package.urn if report.package else None,
        "captures": report.captures,
        "pages": report.pages,
        "words_away": report.words_away,
    }


def report_lines(report: "ArchiveReport") -> list[str]:
    """The report as lines of text."""
    harvest = report.harvest
    counts, formats = harvest.counts, report.formats
    lines = [f"[bold]{plain(harvest.id)}[/bold]: {plain(harvest.reason)}"]
    lines.append(f"  Harvested   {_harvested(counts)}, {size_words(counts.get('bytes', 0))}")
    if failed := failure_words(counts.get("errors", 0), counts.get("failed_parts", 0)):
        lines.append(f"              {failed}")
    lines += _left_out_lines(report.not_content, report.invented)
    mark = "[green]✓[/green]" if report.verdict else "[yellow]![/yellow]"
    lines.append(f"  Quality     {mark} {plain(report.verdict.reason)}")
    lines += [
        f"              [dim]{plain(finding.subject)}[/dim]  {plain(finding.message)}"
        for finding in report.findings[:SHOWN_FINDINGS]
    ]
    more = len(report.findings) - SHOWN_FINDINGS
    if more > 0:
        noun = "finding" if more == 1 else "findings"
        lines.append(f"              {more:,} more {noun}: webdepot quality check {plain(harvest.id)}")
    lines.append(
        f"  Formats     {count_words(formats.files, 'files')} without duplicates: "
        f"{formats.recognised:,} recognised, {formats.uncertain:,} uncertain, "
        f"{formats.not_recognised:,} not recognised"
    )
    lines.append(
        f"  Depot       {plain(report.package.urn)}" if report.package else "  Depot       not deposited"
    )
    lines.append(f"  Index       {_indexed(report)}")
    if report.words_away:
        lines.append(
            f"              [yellow]![/yellow] {plain(report.words_away)} When it answers again, "
            "`webdepot serve` or `webdepot batch` indexes the text."
        )
    return lines


def _harvested(counts: Mapping[str, int]) -> str:
    documents, pages = count_words(counts.get("fetched", 0), "documents"), counts.get("pages")
    if pages is None:  # an import, or a harvest of an earlier version
        return documents
    return f"{documents}, of which {pages:,} {'is a page' if pages == 1 else 'are pages'}"


def _indexed(report: "ArchiveReport") -> str:
    """The number of captures, with the reason why it is not that of the documents."""
    counts, captures = report.harvest.counts, count_words(report.captures, "captures")
    shots = counts.get("screenshots", 0)
    if shots and report.captures == counts.get("fetched", 0) + shots:
        captures += f" (the documents and {count_words(shots, 'screenshots')})"
    return f"{captures}, {report.pages:,} of them with text"


def _left_out_lines(kinds: Mapping[str, int], invented: int) -> list[str]:
    """What was left out because it is not content, or because the site invents it, and how to harvest it."""
    lines = []
    if kinds:
        numbers = ", ".join(f"{number:,} {plain(kind)}" for kind, number in kinds.items())
        count = sum(kinds.values())
        verb = "is" if count == 1 else "are"
        lines += [
            f"  Left out    {count_words(count, 'addresses')} that {verb} not content: {numbers}",
            f"              To harvest them: --include {plain(next(iter(kinds)))}, …, or --include all; "
            "for the rules: webdepot scope software",
        ]
    if invented:
        lines += [
            f"  Left out    {count_words(invented, 'addresses')} of pages that the site invents without end",
            "              To harvest some of them: --include mazes, with a limit such as --limit-pages",
        ]
    return lines
