"""`webdepot serve` and `webdepot demo`: the portal, the replay server and, unless it runs separately, the
scheduler; the demo archives a sample site first.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from webdepot import browser_files
from webdepot.cli.call import Call, Json, Quiet, call_of
from webdepot.cli.output import plain
from webdepot.errors import ConfigError
from webdepot.services.exchange import webhooks
from webdepot.services.schedule import chores, scheduler
from webdepot.web.serve import serve as serve_archive

Port = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Port of the portal; 0 means any free port.")
]
ReplayPort = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Port of the replay server; 0 means any free port.")
]


def serve(
    context: typer.Context,
    port: Port = None,
    replay_port: ReplayPort = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    proxy: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="PORT",
            help="Port of the HTTP proxy for reading-room terminals; 0 means any free port. "
            "Default: web.proxy_port.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:

    call = call_of(context)
    output = call.output(json, quiet)

    def proxy_ready(address: str, certificate: Path) -> None:
        output.result(
            {"proxy": address, "authority": str(certificate)},
            f"Proxy for terminals: [bold]{address}[/bold]. Terminals must trust {plain(str(certificate))}. "
            "Readers choose a date at http://webdepot.proxy/",
        )

    def ready(portal: str, replay: str) -> None:
        output.result(
            {"portal": portal, "replay": replay},
            f"The portal is at [bold]{portal}[/bold] (archived pages at {replay}). Stop with Ctrl-C.",
        )

    if wrong := browser_files.find_wrong():
        raise ConfigError(
            f"The files for browsers are missing or changed: {', '.join(wrong)}. Fetch them again: "
            f"{browser_files.remedy()}"
        )
    if os.geteuid() == 0:
        output.warn(
            "The server runs as root, so a break-in would take over the whole machine. "
            "Run it as a user of its own, as in docs/how-to/run-as-a-service.md."
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
    """Run the scheduler in a thread with its own `Archive`; its harvests stop cleanly with the server."""
    if not wanted:
        yield
        return

    stop = threading.Event()

    def run() -> None:
        with call.archive() as archive, webhooks.sending(archive):
            scheduler.Scheduler(archive, chores=chores.CHORES).run(stop)

    thread = threading.Thread(target=run, name="scheduler")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def demo(
    context: typer.Context,
    port: Port = None,
    replay_port: ReplayPort = None,
    no_serve: Annotated[
        bool, typer.Option("--no-serve", help="Archive the editions, but do not start the portal.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from webdepot.demo.run import run  # loads Pillow and pikepdf, which draw the sample site

    call = call_of(context)
    output = call.output(json, quiet)
    run(call.home, lambda message: output.say(plain(message)))
    if not no_serve:
        serve(context, port=port, replay_port=replay_port, json=json, quiet=quiet)
