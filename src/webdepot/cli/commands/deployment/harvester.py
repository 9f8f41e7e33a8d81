"""`webdepot harvester`: run parts of harvests on this machine."""

import signal
import threading
from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, call_of
from webdepot.services.harvest.harvester import Harvester
from webdepot.services.jobs import job_control


def harvester(
    context: typer.Context,
    parts: Annotated[int, typer.Option(help="Number of parts to run in parallel.", min=1)] = 2,
    browser: Annotated[
        bool, typer.Option("--browser", help="Also take harvests that need a browser.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    call = call_of(context)
    output = call.output(json, quiet)
    stop = threading.Event()
    with call.archive() as archive:
        running = Harvester(
            archive,
            places=parts,
            browser=browser,
            on_over=lambda harvest: job_control.add_end(archive, harvest),
        )
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        output.result({"state": "running"}, "The harvester is running. Stop with Ctrl-C.")
        running.run(stop)
