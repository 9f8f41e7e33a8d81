"""`webdepot demo`: a sample institution archives a sample site, then the portal opens."""

from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.commands.serve import serve
from webdepot.cli.output import plain


def demo(
    context: typer.Context,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the portal; 0 takes any free one.")
    ] = None,
    replay_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the replay server; 0 takes any free one.")
    ] = None,
    no_serve: Annotated[
        bool, typer.Option("--no-serve", help="Archive the editions, but do not open the portal.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Archive a sample site in several editions (the dates are invented) and open the portal. A second run
    reuses it.
    """
    # The sample site draws its pictures with a library that no other command needs.
    from webdepot.demo.run import run

    call = call_of(context)
    output = call.output(json, quiet)
    run(call.home, lambda words: output.say(plain(words)))
    if not no_serve:
        serve(context, port=port, replay_port=replay_port, json=json, quiet=quiet)
