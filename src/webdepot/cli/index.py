"""`webdepot index`: the indexes, which can be made anew from the containers at any time."""

import typer

from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.progress import shown
from webdepot.services import searching

commands = typer.Typer(help="The indexes of addresses and words.", no_args_is_help=True)


@commands.command(epilog="Example: webdepot index update")
def update(context: typer.Context, json: Json = False, quiet: Quiet = False) -> None:
    """Index the containers that are not indexed yet."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        done = searching.update(archive, watch=watch)
    output.result({"captures": done.captures, "pages": done.pages}, f"{done.captures:,} captures and {done.pages:,} pages added.")


@commands.command(epilog="Example: webdepot index rebuild")
def rebuild(context: typer.Context, json: Json = False, quiet: Quiet = False) -> None:
    """Throw the indexes away and make them anew from the containers."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        done = searching.rebuild(archive, watch=watch)
    output.result({"captures": done.captures, "pages": done.pages}, f"{done.captures:,} captures and {done.pages:,} pages indexed.")
