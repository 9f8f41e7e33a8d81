"""`webdepot account`: the people who may sign in."""

import sys
from typing import Annotated

import typer

from webdepot import accounts
from webdepot.accounts import Role
from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain
from webdepot.errors import InputError

commands = typer.Typer(help="The people who may sign in.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name to sign in with.")]
FromStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from the first line of stdin instead of asking.")]


@commands.command(epilog="Example: webdepot account add anna --role curator --role reviewer")
def add(
    context: typer.Context,
    name: Name,
    role: Annotated[list[Role], typer.Option(help="What the person may do; may be given more than once.")],
    password_stdin: FromStdin = False,
) -> None:
    """Add a person. The password is asked for, or read from stdin."""
    call = call_of(context)
    with call.archive() as archive:
        person = accounts.add(archive.database, name, _password(password_stdin), role, archive.clock())
    fields = {"name": person.name, "roles": sorted(person.roles)}
    call.output().result(fields, f"{plain(person.name)} can sign in as {', '.join(sorted(person.roles))}.")


@commands.command(epilog="Example: webdepot account password anna")
def password(context: typer.Context, name: Name, password_stdin: FromStdin = False) -> None:
    """Give a person a new password; all their sessions end."""
    call = call_of(context)
    with call.archive() as archive:
        accounts.set_password(archive.database, name, _password(password_stdin))
    call.output().say(f"{plain(name)} has a new password.")


@commands.command(name="list", epilog="Example: webdepot account list --json")
def list_(context: typer.Context, json: Json = False) -> None:
    """Everybody who may sign in, and their roles."""
    call = call_of(context)
    with call.archive() as archive:
        for person in accounts.every(archive.database):
            fields = {"name": person.name, "roles": sorted(person.roles)}
            call.output(json).result(fields, f"{plain(person.name)}  [dim]{', '.join(sorted(person.roles))}[/dim]")


def _password(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    if not sys.stdin.isatty():
        raise InputError("There is no terminal to ask for a password. Use --password-stdin.")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
