"""`webdepot harvest`: the runs so far, and what can still be done with them."""

from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import plain, size_words
from webdepot.cli.progress import shown
from webdepot.cli.report import tell
from webdepot.services import archiving, harvesting

commands = typer.Typer(help="Harvests: one run for a site, or one import.", no_args_is_help=True)
Harvest = Annotated[str, typer.Argument(help="Identifier of the harvest, as `webdepot harvest list` prints it.")]


@commands.command(name="list", epilog="Example: webdepot harvest list --json")
def list_(context: typer.Context, limit: Annotated[int, typer.Option(min=1, help="So many at most.")] = 50, json: Json = False) -> None:
    """The newest harvests first."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        found = harvesting.latest(archive, limit)
    for harvest in found:
        fields = {
            "id": harvest.id,
            "kind": harvest.kind.value,
            "state": harvest.state.value,
            "seeds": list(harvest.seeds),
            "started": harvest.started_at,
            "ended": harvest.ended_at,
            "reason": harvest.reason,
            "counts": dict(harvest.counts),
        }
        got = f"{harvest.counts.get('fetched', 0):,} documents, {size_words(harvest.counts.get('bytes', 0))}"
        words = f"[bold]{plain(harvest.id)}[/bold]  {harvest.state.value}  {got}  [dim]{plain(harvest.reason)}[/dim]"
        output.result(fields, words)


@commands.command(epilog="Example: webdepot harvest resume 20261115090251-www-example-org-1f2e3d")
def resume(context: typer.Context, harvest: Harvest, json: Json = False, quiet: Quiet = False) -> None:
    """Go on with a harvest that was stopped or killed, then check, keep and index it."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        report = archiving.resume(archive, harvest, watch=watch)
    tell(output, report)


@commands.command(epilog="Example: webdepot harvest keep 20261115090251-www-example-org-1f2e3d")
def keep(context: typer.Context, harvest: Harvest, json: Json = False, quiet: Quiet = False) -> None:
    """Put a finished harvest into the depot (after `archive --no-deposit`)."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        report = archiving.take_in(archive, harvesting.get(archive, harvest), deposit=True, watch=watch)
    tell(output, report)
