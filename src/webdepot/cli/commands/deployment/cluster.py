"""`webdepot cluster`: try a cluster on one machine; move an archive to the servers of a cluster and back."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from webdepot.cli.call import Call, Json, Quiet, agent, call_of
from webdepot.cli.output import duration_words, plain
from webdepot.cli.progress import shown
from webdepot.services.cluster import local_cluster, move

commands = typer.Typer(no_args_is_help=True)

Home = Annotated[Path | None, typer.Argument(help="Folder of the archive. Default: the value of --home.")]


@commands.command(epilog="Example: webdepot cluster up try-home")
def up(
    context: typer.Context,
    home: Home = None,
    harvesters: Annotated[
        int | None, typer.Option(min=1, max=9, help="Number of harvesters. Default: 3.")
    ] = None,
    portals: Annotated[int | None, typer.Option(min=1, max=9, help="Number of portals. Default: 2.")] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, max=9, help="Number of workers for jobs. Default: 1.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Start PostgreSQL, SeaweedFS, Dask, harvesters, workers and two portals on this machine, and create the
    archive if there is none. If Java and Maven are installed, a new cluster also has OpenSearch. Processes
    that are already running are not restarted.
    """
    call = call_of(context)
    output, folder = call.output(json, quiet), _home(call, home)
    given = (("harvester", harvesters), ("portal", portals), ("batch", batch))
    counts = {name: count for name, count in given if count is not None}
    result = local_cluster.up(folder, counts, agent=agent(), say=output.say)
    shell = f"Before other commands, run: [bold]. {plain(str(result.environment))}[/bold]"
    if result.is_elsewhere:
        text = (
            f"The servers are running. The archive at {plain(str(folder))} does not use them yet. {shell}\n"
            f"To move the archive to them: webdepot --home {plain(str(folder))} "
            f"cluster move --to {plain(str(result.settings))}"
        )
    else:
        text = f"The cluster is running. Portals: {', '.join(result.portals)}. {shell}"
    fields = {
        "started": result.started,
        "portals": result.portals,
        "environment": str(result.environment),
        "settings": str(result.settings),
        "is_elsewhere": result.is_elsewhere,
    }
    output.result(fields, text)


@commands.command(epilog="Example: webdepot cluster status try-home --json")
def status(context: typer.Context, home: Home = None, json: Json = False) -> None:
    """List the processes of the cluster on this machine; exits 1 if one is not running."""
    call = call_of(context)
    members = local_cluster.status(_home(call, home))
    for member in members:
        _print(call, member, json)
    if not all(member.is_alive for member in members):
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot cluster kill portal-2 try-home")
def kill(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the process, as in: webdepot cluster status")],
    home: Home = None,
    json: Json = False,
) -> None:
    """Kill one process of the cluster without warning, to see others take over. `up` starts it again."""
    call = call_of(context)
    _print(call, local_cluster.kill(_home(call, home), name), json)


@commands.command(epilog="Example: webdepot cluster down try-home")
def down(
    context: typer.Context,
    home: Home = None,
    only_roles: Annotated[
        bool,
        typer.Option(
            "--only-roles",
            help="Stop only portals and workers; PostgreSQL, SeaweedFS and the other servers keep running.",
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Stop all processes of the cluster on this machine. The data stays; `up` starts them again."""
    call = call_of(context)
    output = call.output(json, quiet)
    stopped = local_cluster.down(_home(call, home), only_roles=only_roles, say=output.say)
    output.result({"stopped": stopped}, f"The cluster is stopped ({stopped} processes were running).")


@commands.command("move", epilog="Example: webdepot cluster move --to /srv/archive/cluster.toml")
def move_(
    context: typer.Context,
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The new webdepot.toml.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="First delete what is in the new database and depot.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Move the archive to another configuration, such as to PostgreSQL and S3, or back: depot, database and
    capture index are copied and compared, then the configuration is replaced. The old data stays.
    """
    call = call_of(context)
    output = call.output(json, quiet)
    with shown(output) as watch:
        report = move.move(call.home, to, agent=agent(), replace=replace, watch=watch)
    fields = {
        "settings": {name: list(values) for name, values in report.settings.items()},
        "tables": {name: {"rows": one.rows, "sha256": one.sha256} for name, one in report.tables.items()},
        "objects": report.objects,
        "captures": asdict(report.captures) if report.captures else None,
        "words_indexed": report.words_indexed,
        "failed": dict(report.failed),
    }
    output.result(fields, "\n".join(_moved_lines(report)))
    if report.failed:
        raise typer.Exit(1)


def _moved_lines(report: move.MoveReport) -> Iterator[str]:
    yield "The archive was moved. Compared and equal:"
    if report.tables:
        rows = sum(table.rows for table in report.tables.values())
        yield f"  database: {len(report.tables)} tables, {rows:,} rows, each with its checksum"
    if report.objects is not None:
        yield f"  depot: {report.objects:,} objects; every byte was read in the new place"
    if report.captures is not None:
        captures = report.captures
        yield f"  capture index: {captures.captures:,} captures in {captures.containers:,} containers"
    yield "Settings that changed:"
    for name, (before, after) in report.settings.items():
        yield f"  {plain(name)}: {plain(str(before))} → {plain(str(after))}"
    yield f"To go back: webdepot cluster move --to {move.BEFORE} (in the home)"
    for name, why in report.failed.items():
        yield f"Not indexed: {plain(name)}: {plain(why)}"


def _home(call: Call, home: Path | None) -> Path:
    return home.expanduser().absolute() if home else call.home


def _print(call: Call, member: local_cluster.ClusterMember, json: bool) -> None:
    state = "running" if member.is_alive else "not running"
    fields = {
        "name": member.name,
        "state": state,
        "pid": member.pid,
        "age_s": round(member.age_s, 1),
        "address": member.address,
        "log": str(member.log),
    }
    shown = f"[green]{state}[/green]    " if member.is_alive else f"[red]{state}[/red]"
    age = f" for {duration_words(member.age_s)}" if member.is_alive else f" (log: {plain(str(member.log))})"
    call.output(json).result(fields, f"{shown} [bold]{member.name:18}[/bold] {plain(member.address)}{age}")
