"""The program `webdepot`. One file per noun in this folder; each command parses, calls one service function, renders.

Exit codes: 0 done · 1 failed, findings, or not found · 2 wrong usage, input or configuration · 3 not permitted ·
4 conflict (port in use, home in use or newer) · 5 another machine failed · 6 damaged data · 7 disk full or read-only ·
130 interrupted (resumable).
"""

import errno
import importlib
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from webdepot.archive import VERSION
from webdepot.cli.call import Call, Json, Quiet, default_home
from webdepot.cli.output import Output, plain
from webdepot.database import explain
from webdepot.errors import NoSpace, WebdepotError

EXIT_INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of its own, or, without a function, a noun with its commands. Its module is loaded when it is asked for."""

    name: str
    module: str
    function: str = ""
    epilog: str | None = None


COMMANDS = (
    Command(name="init", module="home", function="init", epilog="Example: webdepot init /srv/webarchive"),
    Command(
        name="archive", module="archive", function="archive", epilog="Example: webdepot archive https://www.example.org/ --limit-pages 500"
    ),
    Command(name="import", module="archive", function="import_", epilog="Example: webdepot import old/*.arc.gz more-warcs/"),
    Command(name="search", module="search", function="search", epilog="Example: webdepot search '\"town council\" after:2010' --json"),
    Command(name="serve", module="serve", function="serve", epilog="Example: webdepot serve --port 8080"),
    Command(name="scheduler", module="schedule", function="scheduler", epilog="Example: webdepot scheduler --once"),
    Command(name="status", module="home", function="status", epilog="Example: webdepot status --json"),
    Command(name="doctor", module="home", function="doctor", epilog="Example: webdepot doctor --mend"),
    Command(name="demo", module="demo", function="demo", epilog="Example: webdepot --home demo-home demo"),
    Command(name="organisation", module="organisation"),
    Command(name="harvest", module="harvest"),
    Command(name="profile", module="profile"),
    Command(name="target", module="target"),
    Command(name="permission", module="permission"),
    Command(name="schedule", module="schedule"),
    Command(name="review", module="review"),
    Command(name="case", module="case"),
    Command(name="scope", module="scope"),
    Command(name="quality", module="quality"),
    Command(name="formats", module="formats"),
    Command(name="index", module="index"),
    Command(name="cdx", module="cdx", function="cdx", epilog="Example: webdepot cdx 'example.org/*' --filter '=status:200' --limit 20"),
    Command(name="rule", module="rule"),
    Command(
        name="statistics",
        module="statistics",
        function="statistics",
        epilog="Example: webdepot statistics --from 2026-01 --to 2026-06 --csv > usage.csv",
    ),
    Command(name="package", module="package"),
    Command(name="partner", module="partner"),
    Command(name="depot", module="depot"),
    Command(name="account", module="account"),
    Command(name="config", module="config"),
)
"""In the order a newcomer meets them."""


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"webdepot {VERSION}")
        raise typer.Exit


def before(
    context: typer.Context,
    home_folder: Annotated[
        Path | None, typer.Option("--home", help="Folder of the archive. Default: $WEBDEPOT_HOME, or ~/webdepot.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    context.obj = Call(home=(home_folder or default_home()).expanduser().absolute(), json=json, quiet=quiet)


def build_app(only: str = "") -> typer.Typer:
    """The whole program; or with one command only, which starts several times as fast."""
    app = typer.Typer(
        name="webdepot",
        help="A complete web archive: harvest, check, keep, search and replay web sites.",
        epilog="Example: webdepot archive https://www.example.org/   then: webdepot serve",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(before)
    for command in [found for found in COMMANDS if found.name == only] or COMMANDS:
        module = importlib.import_module(f"webdepot.cli.{command.module}")
        if command.function:
            app.command(name=command.name, epilog=command.epilog)(getattr(module, command.function))
        else:
            app.add_typer(module.commands, name=command.name)
    return app


def asked(arguments: Sequence[str]) -> str:
    """The command that is asked for; empty when it is none, or when all must be known (to help, to correct a typing error)."""
    rest = iter(arguments)
    for argument in rest:
        if argument == "--home":
            next(rest, None)
        elif not argument.startswith("-"):
            return argument
    return ""


def main() -> None:
    """Run the program; every error becomes one line of words and its exit code, never a traceback."""
    try:
        build_app(asked(sys.argv[1:]))()
    except WebdepotError as error:
        _fail(str(error), error.exit_status)
    except sqlite3.OperationalError as error:
        explained = explain(str(error), "an index in the home of the archive")
        if explained is None:
            raise
        _fail(str(explained), explained.exit_status)
    except KeyboardInterrupt:
        _fail("Interrupted. What was acknowledged is safe; run the same command again to go on.", EXIT_INTERRUPTED)
    except OSError as error:
        if error.errno in _STORAGE_WORDS:
            _fail(_storage_words(error), NoSpace.exit_status)
        _fail(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), 1)


_STORAGE_WORDS = {
    errno.ENOSPC: "The disk is full",
    errno.EDQUOT: "The disk quota is used up",
    errno.EROFS: "The file system is read-only",
    errno.EACCES: "No permission to write or read",
    errno.EPERM: "No permission to write or read",
}


def _storage_words(error: OSError) -> str:
    return (
        f"{_STORAGE_WORDS[error.errno or 0]}: {error.filename or 'in the home of the archive'}. What was acknowledged is safe. "
        "Make room or name another home, then run the same command again."
    )


def _fail(words: str, status: int) -> NoReturn:
    sys.stdout.flush()
    Output().console.print(f"[bold red]Error:[/bold red] {plain(words)}")
    sys.exit(status)
