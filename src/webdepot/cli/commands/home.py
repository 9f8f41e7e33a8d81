"""`webdepot init`, `status`, `doctor` and `config`: the archive as a whole.

Each command loads its own service: `config show` does without SQLAlchemy, and `status`, which is run often,
without the crawler that `doctor` needs.
"""

from pathlib import Path
from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, agent, call_of
from webdepot.cli.output import plain, size_words
from webdepot.cli.progress import shown
from webdepot.config import config

config_commands = typer.Typer(no_args_is_help=True)
_MARKS = {
    "ok": "[green]ok[/green]     ",
    "warning": "[yellow]warning[/yellow]",
    "error": "[red]error[/red]  ",
}


def init(
    context: typer.Context,
    home: Annotated[
        Path | None, typer.Argument(help="Folder of the new archive. Default: the value of --home.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from webdepot.services.admin import setup

    call = call_of(context)
    folder = home.expanduser().absolute() if home else call.home
    is_new = setup.create(folder, agent=agent())
    output = call.output(json, quiet)
    if output.quiet and not output.json:
        return
    message = "Created a new archive" if is_new else "The archive is up to date"
    output.result({"home": str(folder), "new": is_new}, f"{message} at [bold]{plain(str(folder))}[/bold].")


def status(context: typer.Context, json: Json = False) -> None:
    from webdepot.services.admin import archive_status

    call = call_of(context)
    with call.archive() as archive:
        now = archive_status.status(archive)
    states = (
        ", ".join(f"{count} {state}" for state, count in sorted(now.harvests_by_state.items())) or "none yet"
    )
    running = [harvest.id for harvest in now.harvests if harvest.state == "running"]
    call.output(json).result(
        {
            "home": str(call.home),
            "harvests": dict(now.harvests_by_state),
            "running": running,
            "containers": now.containers,
            "container_bytes": now.container_bytes,
            "packages": now.packages,
            "captures": now.captures,
            "texts": now.texts,
            "not_indexed": now.not_indexed,
            "disk_free_bytes": now.disk_free_bytes,
        },
        f"Home        {plain(str(call.home))}\n"
        f"Harvests    {states}\n"
        f"Containers  {now.containers:,} ({size_words(now.container_bytes)}), "
        f"{now.not_indexed:,} not indexed\n"
        f"Packages    {now.packages:,} in the depot\n"
        f"Captures    {now.captures:,}\n"
        f"Text        {_states(now.texts)}\n"
        f"Disk        {size_words(now.disk_free_bytes)} free of {size_words(now.disk_total_bytes)}",
    )


def doctor(
    context: typer.Context,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every container and compare it with its checksum.")
    ] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--mend",
            help="Repair what can be repaired now: containers, missing rows, temporary folders, indexes.",
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    from webdepot.services.admin.doctor import doctor

    call = call_of(context)
    output = call.output(json, quiet)
    with shown(output) as watch:
        checks = doctor.examine(call.home, deep=deep, repair=repair, agent=agent(), watch=watch)
    for check in checks:
        if output.quiet and check.state == "ok":
            continue
        remedy = f"\n         → {plain(check.remedy)}" if check.remedy else ""
        fields = {"check": check.name, "state": check.state, "message": check.message, "remedy": check.remedy}
        output.result(fields, f"{_MARKS[check.state]}  {plain(check.name)}: {plain(check.message)}{remedy}")
    if any(check.state == "error" for check in checks):
        raise typer.Exit(1)


@config_commands.command(name="show", epilog="Example: webdepot config show --json")
def show_config(context: typer.Context, json: Json = False) -> None:
    """Show every key with its value and its source: default, file or environment variable."""
    call = call_of(context)
    output = call.output(json)
    for setting in config.iter_settings(config.read(call.home)):
        fields = {
            "key": setting.name,
            "value": setting.value,
            "default": setting.default,
            "source": setting.source,
        }
        output.result(
            fields,
            f"{setting.name} = [bold]{plain(repr(setting.value))}[/bold]  "
            f"[dim]({plain(setting.source)})[/dim]",
        )


def _states(number: int | None) -> str:
    return "the search server does not answer" if number is None else f"{number:,} page states"
