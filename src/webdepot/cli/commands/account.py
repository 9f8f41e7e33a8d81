"""`webdepot account`: people who may sign in, their roles, sessions and API keys."""

import sys
from typing import Annotated

import typer

from webdepot.accounts import accounts, api_keys, sessions
from webdepot.accounts.roles import Role
from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain
from webdepot.errors import InputError

commands = typer.Typer(no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the account.")]
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
    role: Annotated[list[Role], typer.Option(help="A role; may be given more than once.")],
    password_stdin: FromStdin = False,
) -> None:
    """Add an account. Asks for the password, or reads it from stdin."""
    call = call_of(context)
    with call.archive() as archive:
        person = accounts.add(
            archive.database, name, _password(password_stdin), role, archive.clock(), by=archive.agent
        )
    fields = {"name": person.name, "roles": sorted(person.roles)}
    call.output().result(fields, f"{plain(person.name)} can sign in as {', '.join(sorted(person.roles))}.")


@commands.command(epilog="Example: webdepot account password anna")
def password(context: typer.Context, name: Name, password_stdin: FromStdin = False) -> None:
    """Set a new password; all sessions of the person end."""
    call = call_of(context)
    with call.archive() as archive:
        accounts.set_password(
            archive.database, name, _password(password_stdin), now=archive.clock(), by=archive.agent
        )
    call.output().say(f"{plain(name)} has a new password.")


@commands.command(name="list", epilog="Example: webdepot account list --json")
def list_(context: typer.Context, json: Json = False) -> None:
    """List the accounts with their roles."""
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
    role: Annotated[list[Role], typer.Option(help="A new role; may be given more than once.")],
) -> None:
    """Replace the roles of a person, from their next request on."""
    call = call_of(context)
    with call.archive() as archive:
        person = accounts.set_roles(archive.database, name, role, archive.clock(), by=archive.agent)
    fields = {"name": person.name, "roles": sorted(person.roles)}
    call.output().result(fields, f"{plain(person.name)} is now {', '.join(sorted(person.roles))}.")


@commands.command(epilog="Example: webdepot account close anna")
def close(context: typer.Context, name: Name) -> None:
    """Close an account: sessions and keys end, and nobody can sign in with it. The history keeps the name."""
    call = call_of(context)
    with call.archive() as archive:
        accounts.close(archive.database, name, archive.clock(), by=archive.agent)
    call.output().say(f"The account {plain(name)} is closed.")


@commands.command(epilog="Example: webdepot account reopen anna")
def reopen(context: typer.Context, name: Name) -> None:
    """Reopen a closed account."""
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
    label: Annotated[str, typer.Option(help="What the key is for.")],
    role: Annotated[list[Role], typer.Option(help="A role of the key; the person must have it, too.")],
    days: Annotated[int, typer.Option(min=0, help="Days until it expires; 0 means never.")] = 0,
    json: Json = False,
) -> None:
    """Create an API key for a program (`Authorization: Bearer KEY`). It is shown only once."""
    call = call_of(context)
    with call.archive() as archive:
        api_key, text = api_keys.make_key(
            archive.database, name, label, role, archive.clock(), days=days, by=archive.agent
        )
    call.output(json).result(
        {"id": api_key.id, "label": api_key.label, "roles": sorted(api_key.roles), "key": text}, text
    )


@commands.command(epilog="Example: webdepot account keys anna --revoke 3")
def keys(
    context: typer.Context,
    name: Name,
    revoke: Annotated[int, typer.Option(metavar="NUMBER", help="Revoke the key with this number.")] = 0,
    json: Json = False,
) -> None:
    """List the API keys of a person, or revoke one."""
    call = call_of(context)
    with call.archive() as archive:
        if revoke:
            api_keys.revoke_key(archive.database, name, revoke, archive.clock(), by=archive.agent)
        for api_key in api_keys.keys_of(archive.database, name):
            fields = {
                "id": api_key.id,
                "label": api_key.label,
                "roles": sorted(api_key.roles),
                "ends": api_key.ends_at,
                "used": api_key.used_at,
            }
            call.output(json).result(
                fields, f"{api_key.id}  {plain(api_key.label)}  [dim]{', '.join(sorted(api_key.roles))}[/dim]"
            )


@commands.command(name="sessions", epilog="Example: webdepot account sessions anna --end")
def sessions_(
    context: typer.Context,
    name: Name,
    end: Annotated[bool, typer.Option("--end", help="End all sessions.")] = False,
    json: Json = False,
) -> None:
    """List the sessions of a person, or end them."""
    call = call_of(context)
    with call.archive() as archive:
        if end:
            sessions.end_session(archive.database, name, "", archive.clock(), by=archive.agent)
        for session in sessions.sessions_of(archive.database, name, archive.clock()):
            fields = {
                "id": session.id,
                "began": session.began_at,
                "seen": session.seen_at,
                "ends": session.ends_at,
                "device": session.device,
            }
            call.output(json).result(
                fields | {"address": session.address},
                f"{session.id}  {session.address}  {plain(session.device)}",
            )


def _password(from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    if not sys.stdin.isatty():
        raise InputError("No terminal to ask for the password. Use --password-stdin.")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
