"""The short report at the end of `archive`, `import` and `harvest resume`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from webdepot.cli.output import Output, plain, size_words
from webdepot.model import HarvestState

if TYPE_CHECKING:
    from webdepot.services.intake.ingest import ArchiveReport

EXIT_STOPPED = 130


def print_report(output: Output, report: "ArchiveReport") -> None:
    """Print the report; exits 130 if the harvest was stopped and can be resumed."""
    harvest = report.harvest
    counts, formats = harvest.counts, report.formats
    fields = {
        "harvest": harvest.id,
        "state": harvest.state.value,
        "reason": harvest.reason,
        "counts": dict(counts),
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
    }
    lines = [f"[bold]{plain(harvest.id)}[/bold]: {plain(harvest.reason)}"]
    lines.append(
        f"  Harvested   {counts.get('fetched', 0):,} documents, {size_words(counts.get('bytes', 0))}, "
        f"{counts.get('errors', 0):,} failed"
    )
    lines += _left_out_lines(report.left_out)
    mark = "[green]✓[/green]" if report.verdict else "[yellow]![/yellow]"
    lines.append(f"  Quality     {mark} {plain(report.verdict.reason)}")
    lines += [
        f"              [dim]{plain(finding.subject)}[/dim]  {plain(finding.message)}"
        for finding in report.findings[:5]
    ]
    lines.append(
        f"  Formats     {formats.recognised:,} recognised, {formats.uncertain:,} uncertain, "
        f"{formats.not_recognised:,} not recognised"
    )
    lines.append(
        f"  Depot       {plain(report.package.urn)}" if report.package else "  Depot       not deposited"
    )
    lines.append(f"  Index       {report.captures:,} captures, {report.pages:,} pages with text")
    if not output.json:
        lines.append("To view it, run: [bold]webdepot serve[/bold]")
    if output.json or not output.quiet:
        output.result(fields, "\n".join(lines))
    if harvest.state is HarvestState.STOPPED:
        raise typer.Exit(EXIT_STOPPED)


def _left_out_lines(kinds: Mapping[str, int]) -> list[str]:
    """What was left out because the software of the site adds it to its content, and how to harvest it."""
    if not kinds:
        return []
    numbers = ", ".join(f"{count:,} {plain(kind)}" for kind, count in kinds.items())
    return [
        f"  Left out    {sum(kinds.values()):,} addresses that are not content: {numbers}",
        f"              To harvest them: --include {plain(next(iter(kinds)))}, …, or --include all; "
        "the rules: webdepot scope software",
    ]
