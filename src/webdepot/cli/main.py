"""The program `webdepot`. `commands/` has the commands, by noun; each parses its arguments, calls a service
and prints the result.

Exit codes: 0 done · 1 failed, findings, or not found · 2 wrong usage, input or configuration · 3 not
permitted · 4 conflict (port in use, archive in use or newer than the program) · 5 another server failed · 6
damaged data · 7 disk full or read-only · 130 interrupted (can be resumed).
"""

import errno
import importlib
import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from webdepot.cli.call import Call, Json, Quiet, default_home
from webdepot.cli.command_table import COMMANDS, Command
from webdepot.cli.output import INTERRUPTED, Output, plain
from webdepot.errors import NoSpace, WebdepotError
from webdepot.version import VERSION

EXIT_INTERRUPTED = 130
PRIVATE = 0o077
"""The umask: what we write is for our own user only."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"webdepot {VERSION}")
        raise typer.Exit


def before(
    context: typer.Context,
    home_folder: Annotated[
        Path | None,
        typer.Option("--home", help="Folder of the archive. Default: $WEBDEPOT_HOME, or ~/webdepot."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Read the options before the command."""
    context.obj = Call(home=(home_folder or default_home()).expanduser().absolute(), json=json, quiet=quiet)


def build_app(only: str | None = None) -> typer.Typer:
    """The whole program, or with `only` the module of that command alone, which starts several times faster.

    The other commands are then known by name and help text: enough to list them and to correct a typing
    error.
    """
    app = typer.Typer(
        name="webdepot",
        help="A complete web archive: harvest, check, preserve, search and replay web sites.",
        epilog="Example: webdepot archive https://www.example.org/   then: webdepot serve",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(before)
    for command in COMMANDS:
        if only in (None, command.name):
            _add(app, command)
        else:
            app.command(name=command.name, help=command.help)(_not_loaded)
    return app


def _add(app: typer.Typer, command: Command) -> None:
    module = importlib.import_module(f"webdepot.cli.commands.{command.module}")
    if command.function:
        app.command(name=command.name, help=command.help, epilog=command.epilog)(
            getattr(module, command.function)
        )
    else:
        app.add_typer(getattr(module, command.group), name=command.name, help=command.help)


def _not_loaded() -> NoReturn:
    raise AssertionError("the module of this command was not loaded")


def command_name(arguments: Sequence[str]) -> str:
    """The command among the arguments; empty if there is none."""
    rest = iter(arguments)
    for argument in rest:
        if argument == "--home":
            next(rest, None)
        elif not argument.startswith("-"):
            return argument
    return ""


def with_browser_mode(arguments: Sequence[str]) -> list[str]:
    """The arguments, with `--browser` alone written out as `--browser=always`: for all commands but those of
    harvesters, where it has no modes.
    """
    if command_name(arguments) in ("harvester", "service"):
        return list(arguments)
    complete = []
    for argument, following in zip(arguments, [*arguments[1:], ""]):
        is_alone = argument == "--browser" and following not in _BROWSER_MODES
        complete.append("--browser=always" if is_alone else argument)
    return complete


_BROWSER_MODES = ("auto", "always", "never")


def main() -> None:
    """Run the program; every error becomes a one-line message and its exit code, never a traceback."""
    os.umask(PRIVATE)  # passwords, letters and closed pages are nobody else's business on this machine
    try:
        arguments = with_browser_mode(sys.argv[1:])
        build_app(command_name(arguments))(arguments)
    except WebdepotError as error:
        _fail(str(error), error.exit_status)
    except sqlite3.OperationalError as error:
        from webdepot.dialects.sqlite import (
            explain,
        )  # loads SQLAlchemy, as whatever raised this error did before

        explained = explain(str(error), "an index in the home of the archive")
        if explained is None:
            _fail_unexpectedly(error)
        _fail(str(explained), explained.exit_status)
    except KeyboardInterrupt:
        _fail(INTERRUPTED, EXIT_INTERRUPTED)
    except OSError as error:
        if error.errno in _STORAGE_MESSAGES:
            _fail(_storage_message(error), NoSpace.exit_status)
        _fail(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), 1)
    except Exception as error:
        _fail_unexpectedly(error)


_STORAGE_MESSAGES = {
    errno.ENOSPC: "The disk is full",
    errno.EDQUOT: "The disk quota is exceeded",
    errno.EROFS: "The file system is read-only",
    errno.EACCES: "Permission denied",
    errno.EPERM: "Permission denied",
}


def _storage_message(error: OSError) -> str:
    return (
        f"{_STORAGE_MESSAGES[error.errno or 0]}: {error.filename or 'in the home of the archive'}. "
        "Everything reported as done is safe. "
        "Make the disk writable and free some space, or choose another home; then run the same command again."
    )


def _fail_unexpectedly(error: Exception) -> NoReturn:
    """Fail with an internal error; the traceback is written to a file, to be reported."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="webdepot-error-", suffix=".txt", delete=False) as file:
        file.writelines(traceback.format_exception(error))
    _fail(
        f"Internal error: {type(error).__name__}: {error}. Everything reported as done is safe. "
        f"Please report it and attach this file: {file.name}",
        1,
    )


def _fail(message: str, status: int) -> NoReturn:
    sys.stdout.flush()
    Output().console.print(f"[bold red]Error:[/bold red] {plain(message)}")
    sys.exit(status)
