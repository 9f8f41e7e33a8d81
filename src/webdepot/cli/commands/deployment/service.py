"""`webdepot service`: let systemd run the portal and other roles."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain
from webdepot.services.admin import service_unit
from webdepot.services.admin.service_unit import ServiceRole

commands = typer.Typer(no_args_is_help=True)


@commands.callback()
def service() -> None:
    """Run the portal as a service."""


@commands.command(epilog="Example: webdepot --home /srv/archive service install --print")
def install(
    context: typer.Context,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- OPTION...", help="Options of the command that it runs."),
    ] = None,
    user: Annotated[
        bool, typer.Option("--user", help="Install it for your user only, without root.")
    ] = False,
    account: Annotated[
        str, typer.Option(metavar="NAME", help="User that the service runs as; not with --user.")
    ] = "webdepot",
    writable: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER", help="A folder outside the home that it writes to, such as a copy of the depot."
        ),
    ] = None,
    role: Annotated[
        ServiceRole, typer.Option(help="What to run: the portal, or another command with a unit of its own.")
    ] = ServiceRole.SERVE,
    print_: Annotated[bool, typer.Option("--print", help="Only print the unit; write nothing.")] = False,
    json: Json = False,
) -> None:
    """Write a sandboxed systemd unit for the portal of this archive, or for another role, and print how to
    start it.
    """
    call = call_of(context)
    home = call.home.expanduser().absolute()
    folders = [folder.expanduser().absolute() for folder in writable or ()]
    unit = service_unit.describe(
        home, for_user=user, account=account, writable=folders, role=role, arguments=arguments or ()
    )
    if print_:
        sys.stdout.write(unit.text)
        return
    is_changed = service_unit.install(unit)
    fields = {"path": str(unit.path), "changed": is_changed, "next": list(unit.commands)}
    state = "Wrote" if is_changed else "Unchanged:"
    following = "\n".join(f"  {plain(command)}" for command in unit.commands)
    call.output(json).result(fields, f"{state} [bold]{plain(str(unit.path))}[/bold]. Now run:\n{following}")
