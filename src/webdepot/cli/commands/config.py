"""`webdepot config`: what is set, and why."""

import typer

from webdepot import config as configuration
from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain

commands = typer.Typer(no_args_is_help=True)


@commands.callback()
def config() -> None:
    """See the configuration."""


@commands.command(epilog="Example: webdepot config show --json")
def show(context: typer.Context, json: Json = False) -> None:
    """Every key with its value and where that came from (default, file, or environment variable)."""
    call = call_of(context)
    output = call.output(json)
    for setting in configuration.iter_settings(configuration.read(call.home)):
        fields = {
            "key": setting.name,
            "value": setting.value,
            "default": setting.default,
            "source": setting.source,
        }
        output.result(
            fields,
            f"{setting.name} = [bold]{plain(repr(setting.value))}[/bold]  [dim]({plain(setting.source)})[/dim]",
        )
