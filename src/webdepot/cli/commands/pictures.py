"""`webdepot pictures`: small pictures of archived pages for the home page, collections and search results."""

from dataclasses import asdict
from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import plain
from webdepot.cli.progress import shown
from webdepot.services.depot import pictures

commands = typer.Typer(no_args_is_help=True)


@commands.callback()
def _several() -> None:
    """Keep `build` a command of its own: with only one, typer would leave out its name."""


@commands.command(epilog="Example: webdepot pictures build --pages 10")
def build(
    context: typer.Context,
    harvest: Annotated[str, typer.Option(help="Only pages of this harvest.")] = "",
    collection: Annotated[str, typer.Option(help="Only pages of this collection.")] = "",
    pages: Annotated[
        int, typer.Option(help="Pages of each harvest that get a picture; 0 means its start pages.", min=0)
    ] = 0,
    limit: Annotated[int | None, typer.Option(help="Maximum number of pictures.", min=1)] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make pictures of pages that have none, newest harvests first, and store them in the depot.

    Needs a browser. Can be stopped and repeated: pages that have a picture are skipped.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    call.give_way()
    with call.archive() as archive, shown(output) as watch:
        report = pictures.build(
            archive, harvest=harvest, collection=collection, pages=pages, most=limit, watch=watch
        )
    for url, reason in report.failed.items():
        output.warn(f"No picture of {plain(url)}: {plain(reason)}")
    output.result(
        asdict(report),
        f"{report.made:,} pictures made, of {report.harvests:,} harvests."
        + (f" {len(report.failed)} pages failed." if report.failed else ""),
    )
    if report.failed:
        raise typer.Exit(1)
