"""`webdepot profile`: how kinds of sites are harvested."""

from pathlib import Path
from typing import Annotated

import typer

from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain
from webdepot.errors import InputError
from webdepot.services.harvest import profiles

commands = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the profile.")]


@commands.command(name="list", epilog="Example: webdepot profile list --json")
def list_(context: typer.Context, json: Json = False) -> None:
    """All profiles, of webdepot.toml and of the folder profiles."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        good, broken = profiles.every(archive)
    for profile in good:
        fields = {
            "name": profile.name,
            "description": profile.description,
            "origin": profile.origin,
            "rules": len(profile.rules),
        }
        output.result(
            fields,
            f"[bold]{plain(profile.name)}[/bold]  {plain(profile.description)}  [dim]{plain(profile.origin)}[/dim]",
        )
    for item in broken:
        output.warn(plain(item.problem))
    if broken:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot profile show museum")
def show(context: typer.Context, name: Name, json: Json = False) -> None:
    """What a profile says."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        profile = profiles.get(archive, name)
    fields = {
        "name": profile.name,
        "description": profile.description,
        "origin": profile.origin,
        "seeds": list(profile.seeds),
        "values": dict(profile.values),
        "rules": [str(spec) for spec in profile.rules],
        "hosts": {host: dict(told) for host, told in profile.hosts.items()},
    }
    lines = [
        f"[bold]{plain(profile.name)}[/bold]  {plain(profile.description)}  [dim]{plain(profile.origin)}[/dim]"
    ]
    lines += [f"  {key} = {plain(repr(value))}" for key, value in profile.values.items()]
    lines += [f"  seed {plain(seed)}" for seed in profile.seeds]
    lines += [f"  rule {number}: {plain(str(spec))}" for number, spec in enumerate(profile.rules, start=1)]
    lines += [f"  host {plain(host)}: {plain(str(dict(told)))}" for host, told in profile.hosts.items()]
    output.result(fields, "\n".join(lines))


@commands.command(epilog="Example: webdepot profile save museum museum.toml")
def save(
    context: typer.Context,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML file with the keys of a profile.")],
    json: Json = False,
) -> None:
    """Check a file and keep it as a profile."""
    call = call_of(context)
    output = call.output(json)
    if not file.is_file():
        raise InputError(f"There is no file {file}.")
    with call.archive() as archive:
        profile = profiles.save(archive, name, file.read_text(encoding="utf-8", errors="replace"))
    output.result(
        {"name": profile.name, "origin": profile.origin}, f"Kept as [bold]{plain(profile.origin)}[/bold]."
    )
