"""`webdepot serve` and `webdepot demo`: the portal, the replay server and, unless they run separately, the
scheduler and the worker for jobs; the demo archives a sample site first. `webdepot batch`: such a worker.
`webdepot job`: list jobs, and cancel one that has not begun.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from webdepot import browser_files
from webdepot.archive import Archive
from webdepot.cli.call import Call, Json, Quiet, call_of
from webdepot.cli.output import Output, plain
from webdepot.engine.job_queue import JobState, QueuedJob
from webdepot.engine.process_rows import WorkerRole
from webdepot.errors import ConfigError, RemoteError
from webdepot.services.cluster import dask_machine, heartbeat
from webdepot.services.exchange import webhooks
from webdepot.services.jobs import job_control, kinds
from webdepot.services.jobs.worker import Worker
from webdepot.services.schedule import chores, scheduler
from webdepot.web.serve import serve as serve_archive

job_commands = typer.Typer(no_args_is_help=True)

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
    with call.archive() as archive, _scheduling(call, archive):
        try:
            archive.texts.total()
        except RemoteError as error:
            output.warn(f"{error} Until then, full-text search is unavailable; everything else works.")
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
def _scheduling(call: Call, portal: Archive) -> Iterator[None]:
    """Report that the portal is alive and, unless it runs separately, run the scheduler in a thread with
    its own `Archive`; its harvests stop cleanly with the server.
    """
    if not portal.config.schedule.in_server:
        with heartbeat.shown(portal, WorkerRole.PORTAL):
            yield
        return

    stop = threading.Event()

    def run() -> None:
        with call.archive() as archive, webhooks.sending(archive):
            scheduler.Scheduler(archive, chores=chores.CHORES).run(stop)

    thread = threading.Thread(target=run, name="scheduler")
    thread.start()
    try:
        with heartbeat.shown(portal, WorkerRole.PORTAL):
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


def batch(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Run the jobs that are waiting, then exit.")] = False,
    processes: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="With [engine] kind = dask: number of Dask workers that read containers on this machine. "
            "Default: one for each processor.",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    call = call_of(context)
    output = call.output(json, quiet)
    stop = threading.Event()
    with call.archive() as archive, dask_machine.running_workers(archive, 0 if once else processes):
        worker = Worker(archive)

        def request_stop(number: int, frame: FrameType | None) -> None:
            stop.set()
            worker.wake()

        signal.signal(signal.SIGINT, request_stop)
        signal.signal(signal.SIGTERM, request_stop)
        output.result({"state": "running"}, "The worker is running. Stop with Ctrl-C.")
        with heartbeat.shown(archive, WorkerRole.BATCH):
            worker.run(stop, until_idle=once)


@job_commands.command("list", epilog="Example: webdepot job list --state running")
def list_(
    context: typer.Context,
    state: Annotated[JobState | None, typer.Option(help="Only jobs in this state.")] = None,
    page: Annotated[int, typer.Option(help="Page of the list.", min=1)] = 1,
    json: Json = False,
) -> None:
    """List jobs, newest first: long-running work started in the portal."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        jobs = job_control.list_page(archive, state, page=page)
    for job in jobs.rows:
        _print(output, job)
    output.say(f"There are more. Next: --page {page + 1}" if jobs.has_more else "End of the list.")


@job_commands.command(epilog="Example: webdepot job cancel 12")
def cancel(
    context: typer.Context,
    number: Annotated[int, typer.Argument(metavar="JOB", help="Number of the job.")],
    json: Json = False,
) -> None:
    """Cancel a job that no worker has taken yet."""
    call = call_of(context)
    with call.archive() as archive:
        job = job_control.cancel(archive, number, by=archive.agent)
        kinds.clean_up(archive, job)
    _print(call.output(json), job)


def _print(output: Output, job: QueuedJob) -> None:
    fields = {
        "job": job.id,
        "kind": job.kind,
        "subject": job.subject,
        "state": job.state.value,
        "by": job.by,
        "created_at": job.created_at,
        "ended_at": job.ended_at,
        "tries": job.tries,
        "holder": job.holder,
        "reason": str(job.reason),
    }
    why = f"  {plain(str(job.reason))}" if job.reason else ""
    output.result(
        fields,
        f"[bold]{job.id}[/bold]  {plain(job.kind)} {plain(job.subject)}  {job.state.value}  "
        f"{job.created_at:%Y-%m-%d %H:%M} UTC  {plain(job.by)}{why}",
    )
