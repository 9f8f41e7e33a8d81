"""`webdepot serve`: the portal, the replay server and, unless it runs elsewhere, the scheduler."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from webdepot.cli.call import Call, Json, Quiet, call_of
from webdepot.cli.output import plain


def serve(
    context: typer.Context,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the portal; 0 takes any free one.")
    ] = None,
    replay_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the replay server; 0 takes any free one.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    proxy: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="Be the HTTP proxy of reading-room terminals on this port; 0 takes any free one.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Serve the portal and, on a host name of its own, the archived pages. Stops on Ctrl-C."""
    # The web server takes half a second to import, which no other command should wait for.
    from webdepot.web.serve import serve as serve_archive

    call = call_of(context)
    output = call.output(json, quiet)

    def proxy_ready(address: str, certificate: Path) -> None:
        output.result(
            {"proxy": address, "authority": str(certificate)},
            f"Terminals use the proxy [bold]{address}[/bold] and trust {plain(str(certificate))}; choose a date at http://webdepot.proxy/",
        )

    def ready(portal: str, replay: str) -> None:
        output.result(
            {"portal": portal, "replay": replay},
            f"The portal is at [bold]{portal}[/bold] (archived pages at {replay}). Stop with Ctrl-C.",
        )

    with call.archive() as archive, _scheduling(call, wanted=archive.config.schedule.in_server):
        web = archive.config.web
        serve_archive(
            archive,
            host=host or web.host,
            port=web.port if port is None else port,
            replay_port=web.replay_port if replay_port is None else replay_port,
            ready=ready,
            proxy_port=(web.proxy_port or None) if proxy is None else proxy,
            proxy_ready=proxy_ready,
        )


@contextmanager
def _scheduling(call: Call, *, wanted: bool) -> Iterator[None]:
    """The scheduler on a thread of its own, with an archive of its own; what it started stops tidily with the
    server.
    """
    if not wanted:
        yield
        return
    from webdepot.services.schedule import chores, scheduler

    stop = threading.Event()

    def run() -> None:
        with call.archive() as archive:
            scheduler.Scheduler(archive, chores=chores.CHORES).run(stop)

    thread = threading.Thread(target=run, name="scheduler")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
