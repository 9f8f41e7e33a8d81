"""`webdepot serve`: the portal and the replay server."""

from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, call_of


def serve(
    context: typer.Context,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port of the portal; 0 takes any free one.")] = None,
    replay_port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port of the replay server; 0 takes any free one.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Serve the portal and, on a host name of its own, the archived pages. Stops on Ctrl-C."""
    # The web server takes half a second to import, which no other command should wait for.
    from webdepot.web.serve import serve as serve_archive

    call = call_of(context)
    output = call.output(json, quiet)

    def ready(portal: str, replay: str) -> None:
        output.result(
            {"portal": portal, "replay": replay}, f"The portal is at [bold]{portal}[/bold] (archived pages at {replay}). Stop with Ctrl-C."
        )

    with call.archive() as archive:
        web = archive.config.web
        serve_archive(
            archive,
            host=host or web.host,
            port=web.port if port is None else port,
            replay_port=web.replay_port if replay_port is None else replay_port,
            ready=ready,
        )
