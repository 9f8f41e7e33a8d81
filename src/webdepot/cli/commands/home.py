"""`webdepot init`, `status` and `doctor`: the archive as a whole. Each loads its own service: `status` is
asked often.
"""

from pathlib import Path
from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, agent, call_of
from webdepot.cli.output import plain, size_words
from webdepot.cli.progress import shown

_MARKS = {
    "ok": "[green]ok[/green]     ",
    "warning": "[yellow]warning[/yellow]",
    "error": "[red]error[/red]  ",
}


def init(
    context: typer.Context,
    home: Annotated[
        Path | None, typer.Argument(help="Folder of the new archive. Default: the one of --home.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make an archive: folder, configuration, database. On an existing one: bring its database up to date."""
    from webdepot.services.admin import setup

    call = call_of(context)
    folder = home.expanduser().absolute() if home else call.home
    is_new = setup.found(folder, agent=agent())
    output = call.output(json, quiet)
    if output.quiet and not output.json:
        return
    words = f"{'Made a new archive' if is_new else 'The archive is up to date'} at [bold]{plain(str(folder))}[/bold]."
    output.result({"home": str(folder), "new": is_new}, words)


def status(context: typer.Context, json: Json = False) -> None:
    """What is in the archive, what runs, what waits, and how much room is left."""
    from webdepot.services.admin import archive_status

    call = call_of(context)
    with call.archive() as archive:
        seen = archive_status.status(archive)
    states = (
        ", ".join(f"{count} {state}" for state, count in sorted(seen.harvests_by_state.items())) or "none yet"
    )
    running = [harvest.id for harvest in seen.harvests if harvest.state == "running"]
    call.output(json).result(
        {
            "home": str(call.home),
            "harvests": dict(seen.harvests_by_state),
            "running": running,
            "containers": seen.containers,
            "container_bytes": seen.container_bytes,
            "packages": seen.packages,
            "captures": seen.captures,
            "texts": seen.texts,
            "not_indexed": seen.not_indexed,
            "disk_free_bytes": seen.disk_free_bytes,
        },
        f"Home        {plain(str(call.home))}\n"
        f"Harvests    {states}\n"
        f"Containers  {seen.containers:,} ({size_words(seen.container_bytes)}), {seen.not_indexed:,} not indexed\n"
        f"Packages    {seen.packages:,} in the depot\n"
        f"Captures    {seen.captures:,}\n"
        f"Words       {seen.texts:,} page states\n"
        f"Disk        {size_words(seen.disk_free_bytes)} free of {size_words(seen.disk_total_bytes)}",
    )


def doctor(
    context: typer.Context,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every container and compare it with its checksum.")
    ] = False,
    mend: Annotated[
        bool,
        typer.Option("--mend", help="Do what can be done at once: recover containers, update the indexes."),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check installation, configuration, disk, database, depot and indexes, and say how to mend. Exits 1 on
    errors.
    """
    from webdepot.services.admin import doctor as doctor_service

    call = call_of(context)
    output = call.output(json, quiet)
    with shown(output) as watch:
        checks = doctor_service.examine(call.home, deep=deep, mend=mend, agent=agent(), watch=watch)
    for check in checks:
        if output.quiet and check.state == "ok":
            continue
        remedy = f"\n         → {plain(check.remedy)}" if check.remedy else ""
        fields = {"check": check.name, "state": check.state, "message": check.message, "remedy": check.remedy}
        output.result(fields, f"{_MARKS[check.state]}  {plain(check.name)}: {plain(check.message)}{remedy}")
    if any(check.state == "error" for check in checks):
        raise typer.Exit(1)
