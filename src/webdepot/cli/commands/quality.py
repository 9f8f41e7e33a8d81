"""`webdepot quality`: check whether a harvest is complete, fetch missing parts, ignore findings."""

from typing import Annotated, Any

import typer

from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import plain
from webdepot.cli.progress import shown
from webdepot.model import Finding
from webdepot.services.depot import examination
from webdepot.services.harvest import harvests
from webdepot.services.quality import harvest_check
from webdepot.services.quality.harvest_check import HarvestCheck
from webdepot.services.review import patches

commands = typer.Typer(no_args_is_help=True)
Harvest = Annotated[
    str, typer.Argument(help="Identifier of the harvest, as `webdepot harvest list` prints it.")
]


@commands.command(epilog="Example: webdepot quality check 20261115090251-www-example-org-1f2e3d --json")
def check(
    context: typer.Context,
    harvest: Harvest,
    again: Annotated[
        bool, typer.Option("--again", help="Check a deposited harvest again; its package gets a new version.")
    ] = False,
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of findings to show; 0 means all.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check a harvest for missing parts, broken links, false pages, truncated responses and differences from
    earlier harvests, and give a verdict.

    Exits 1 if the verdict is not good.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        check_now = examination.check_again if again else harvest_check.check
        checked = check_now(archive, harvests.get(archive, harvest), watch=watch)
        for number, finding in enumerate(harvest_check.iter_findings(archive, harvest)):
            if limit and number >= limit:
                break
            output.result(_finding_fields(finding), _finding_text(finding))
    output.result(_verdict_fields(harvest, checked), _verdict_text(checked))
    if not checked.verdict:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot quality patch 20261115090251-www-example-org-1f2e3d")
def patch(
    context: typer.Context,
    harvest: Harvest,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list the addresses that would be fetched.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Harvest missing parts as a patch of the harvest, and check it again."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive:
        if dry_run:
            for url in patches.missing(archive, harvests.get(archive, harvest)):
                output.result({"url": url}, plain(url))
            return
        with shown(output) as watch:
            done = patches.patch(archive, harvest, watch=watch)
    fetched = done.patch.harvest.counts.get("fetched", 0) if done.patch else 0
    fields = _verdict_fields(harvest, done.checked) | {
        "patch": done.patch.harvest.id if done.patch else None,
        "asked": done.asked,
        "brought": fetched,
        "reason": done.reason,
    }
    message = done.reason if done.patch is None else f"{done.patch.harvest.id} fetched {fetched:,} documents"
    output.result(
        fields,
        f"{done.asked:,} addresses requested again: {plain(message)}\n{_verdict_text(done.checked)}",
    )


@commands.command(
    epilog="Example: webdepot quality ignore 20261115090251-www-example-org-1f2e3d "
    "quality.sub-domain shop.example.org"
)
def ignore(
    context: typer.Context,
    harvest: Harvest,
    code: Annotated[str, typer.Argument(help="Code of the finding.")],
    subject: Annotated[
        str, typer.Argument(help="Subject of the finding. Default: all findings with that code.")
    ] = "",
    reason: Annotated[str, typer.Option(help="The reason; it is recorded.")] = "",
    json: Json = False,
) -> None:
    """Ignore a finding in future checks of the same target."""
    call = call_of(context)
    with call.archive() as archive:
        harvest_check.ignore(
            archive, harvests.get(archive, harvest), code, subject, reason=reason, by=archive.agent
        )
    call.output(json).result(
        {"code": code, "subject": subject, "ignored": True},
        f"Ignored in future checks: {plain(code)} {plain(subject)}",
    )


def _finding_fields(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "subject": finding.subject,
        "evidence": finding.place,
        "message": finding.message,
        "action": finding.action,
    }


def _finding_text(finding: Finding) -> str:
    colour = {"error": "red", "warning": "yellow"}.get(finding.severity.value, "dim")
    action = f"  → {finding.action}" if finding.action else ""
    place = f"\n    [dim]{plain(finding.place)}[/dim]" if finding.place else ""
    return (
        f"[{colour}]{finding.severity.value:8}[/{colour}] {plain(finding.subject)}\n"
        f"    {plain(finding.message)}{plain(action)}{place}"
    )


def _verdict_fields(harvest: str, checked: HarvestCheck) -> dict[str, Any]:
    verdict = checked.verdict
    return {
        "harvest": harvest,
        "verdict": {"answer": verdict.answer.value, "rule": verdict.rule, "reason": verdict.reason},
        "counts": dict(checked.counts),
    }


def _verdict_text(checked: HarvestCheck) -> str:
    mark = "[green]✓[/green]" if checked.verdict else "[yellow]![/yellow]"
    return f"{mark} {plain(checked.verdict.reason)}"
