"""`webdepot account`: the people who may sign in."""

import sys
from typing import Annotated

import typer

from webdepot import accounts, sessions
from webdepot.accounts import Role
from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain
from webdepot.errors import InputError

commands = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name to sign in with.")]
FromStdin = Annotated[
    bool,
    typer.Option(
        "--password-stdin", help="Read the password from the first line of stdin instead of asking."
    ),
]


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
        person = accounts.add(
            archive.database, name, _password(password_stdin), role, archive.clock(), by=archive.agent
        )
    fields = {"name": person.name, "roles": sorted(person.roles)}
    call.output().result(fields, f"{plain(person.name)} can sign in as {', '.join(sorted(person.roles))}.")


@commands.command(epilog="Example: webdepot account password anna")
def password(context: typer.Context, name: Name, password_stdin: FromStdin = False) -> None:
    """Give a person a new password; all their sessions end."""
    call = call_of(context)
    with call.archive() as archive:
        accounts.set_password(
            archive.database, name, _password(password_stdin), now=archive.clock(), by=archive.agent
        )
    call.output().say(f"{plain(name)} has a new password.")


@commands.command(name="list", epilog="Example: webdepot account list --json")
def list_(context: typer.Context, json: Json = False) -> None:
    """Everybody who may sign in, and their roles."""
    call = call_of(context)
    with call.archive() as archive:
        for person in accounts.every(archive.database):
            fields = {"name": person.name, "roles": sorted(person.roles)}
            call.output(json).result(
                fields, f"{plain(person.name)}  [dim]{', '.join(sorted(person.roles))}[/dim]"
            )


@commands.command(epilog="Example: webdepot account roles anna --role curator --role reviewer")
def roles(
    context: typer.Context,
    name: Name,
    role: Annotated[list[Role], typer.Option(help="From now on; may be given more than once.")],
) -> None:
    """Give a person other roles, from their next request on."""
    call = call_of(context)
    with call.archive() as archive:
        person = accounts.set_roles(archive.database, name, role, archive.clock(), by=archive.agent)
    fields = {"name": person.name, "roles": sorted(person.roles)}
    call.output().result(fields, f"{plain(person.name)} is now {', '.join(sorted(person.roles))}.")


@commands.command(epilog="Example: webdepot account close anna")
def close(context: typer.Context, name: Name) -> None:
    """Let nobody sign in as this person any more; sessions and keys end, what they did stays theirs."""
    call = call_of(context)
    with call.archive() as archive:
        accounts.close(archive.database, name, archive.clock(), by=archive.agent)
    call.output().say(f"The account {plain(name)} is closed.")


@commands.command(epilog="Example: webdepot account reopen anna")
def reopen(context: typer.Context, name: Name) -> None:
    """Open a closed account again."""
    call = call_of(context)
    with call.archive() as archive:
        accounts.reopen(archive.database, name, archive.clock(), by=archive.agent)
    call.output().say(f"The account {plain(name)} is open again.")


@commands.command(
    epilog="Example: webdepot account key anna --label 'nightly report' --role reader --days 90"
)
def key(
    context: typer.Context,
    name: Name,
    label: Annotated[str, typer.Option(help="What it is for.")],
    role: Annotated[list[Role], typer.Option(help="What the key may do; among the person's own roles.")],
    days: Annotated[int, typer.Option(min=0, help="It ends after so many days; 0 means never.")] = 0,
    json: Json = False,
) -> None:
    """Make a key for programs (`Authorization: Bearer KEY`). It is printed this once."""
    call = call_of(context)
    with call.archive() as archive:
        made, text = sessions.make_key(
            archive.database, name, label, role, archive.clock(), days=days, by=archive.agent
        )
    call.output(json).result(
        {"id": made.id, "label": made.label, "roles": sorted(made.roles), "key": text}, text
    )


@commands.command(epilog="Example: webdepot account keys anna --revoke 3")
def keys(
    context: typer.Context,
    name: Name,
    revoke: Annotated[int, typer.Option(metavar="NUMBER", help="Take this one back.")] = 0,
    json: Json = False,
) -> None:
    """The keys of a person; or take one of them back."""
    call = call_of(context)
    with call.archive() as archive:
        if revoke:
            sessions.revoke_key(archive.database, name, revoke, archive.clock(), by=archive.agent)
        for held in sessions.keys_of(archive.database, name):
            fields = {
                "id": held.id,
                "label": held.label,
                "roles": sorted(held.roles),
                "ends": held.ends_at,
                "used": held.used_at,
            }
            call.output(json).result(
                fields, f"{held.id}  {plain(held.label)}  [dim]{', '.join(sorted(held.roles))}[/dim]"
            )


@commands.command(name="sessions", epilog="Example: webdepot account sessions anna --end")
def sessions_(
    context: typer.Context,
    name: Name,
    end: Annotated[bool, typer.Option("--end", help="End all of them.")] = False,
    json: Json = False,
) -> None:
    """Where a person is signed in; or end it."""
    call = call_of(context)
    with call.archive() as archive:
        if end:
            sessions.end_session(archive.database, name, "", archive.clock(), by=archive.agent)
        for each in sessions.sessions_of(archive.database, name, archive.clock()):
            fields = {
                "id": each.id,
                "began": each.began_at,
                "seen": each.seen_at,
                "ends": each.ends_at,
                "device": each.device,
            }
            call.output(json).result(
                fields | {"address": each.address}, f"{each.id}  {each.address}  {plain(each.device)}"
            )


def _password(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    if not sys.stdin.isatty():
        raise InputError("There is no terminal to ask for a password. Use --password-stdin.")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
