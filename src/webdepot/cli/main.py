"""The program `webdepot`. One file per noun in this folder; each command parses, calls one service function, renders.

Exit codes: 0 done · 1 failed, findings, or not found · 2 wrong usage, input or configuration · 3 not permitted ·
4 conflict (port in use, home in use or newer) · 5 another machine failed · 6 damaged data · 7 disk full or read-only ·
130 interrupted (resumable).
"""

import errno
import sqlite3
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from webdepot.archive import VERSION
from webdepot.cli import (
    account,
    archive,
    case,
    cdx,
    config,
    demo,
    depot,
    formats,
    harvest,
    home,
    index,
    organisation,
    package,
    partner,
    permission,
    profile,
    quality,
    review,
    rule,
    schedule,
    scope,
    search,
    serve,
    statistics,
    target,
)
from webdepot.cli.call import Call, Json, Quiet, default_home
from webdepot.cli.output import Output, plain
from webdepot.database import explain
from webdepot.errors import NoSpace, WebdepotError

EXIT_INTERRUPTED = 130


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


def build_app() -> typer.Typer:
    """The whole program: commands in the order a newcomer meets them."""
    app = typer.Typer(
        name="webdepot",
        help="A complete web archive: harvest, check, keep, search and replay web sites.",
        epilog="Example: webdepot archive https://www.example.org/   then: webdepot serve",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(before)
    app.command(epilog="Example: webdepot init /srv/webarchive")(home.init)
    app.command(epilog="Example: webdepot archive https://www.example.org/ --limit-pages 500")(archive.archive)
    app.command(name="import", epilog="Example: webdepot import old/*.arc.gz more-warcs/")(archive.import_)
    app.command(epilog="Example: webdepot search '\"town council\" after:2010' --json")(search.search)
    app.command(epilog="Example: webdepot serve --port 8080")(serve.serve)
    app.command(epilog="Example: webdepot scheduler --once")(schedule.scheduler)
    app.command(epilog="Example: webdepot status --json")(home.status)
    app.command(epilog="Example: webdepot doctor --mend")(home.doctor)
    app.command(epilog="Example: webdepot --home demo-home demo")(demo.demo)
    app.add_typer(organisation.commands, name="organisation")
    app.add_typer(harvest.commands, name="harvest")
    app.add_typer(profile.commands, name="profile")
    app.add_typer(target.commands, name="target")
    app.add_typer(permission.commands, name="permission")
    app.add_typer(schedule.commands, name="schedule")
    app.add_typer(review.commands, name="review")
    app.add_typer(case.commands, name="case")
    app.add_typer(scope.commands, name="scope")
    app.add_typer(quality.commands, name="quality")
    app.add_typer(formats.commands, name="formats")
    app.add_typer(index.commands, name="index")
    app.command(epilog="Example: webdepot cdx 'example.org/*' --filter '=status:200' --limit 20")(cdx.cdx)
    app.add_typer(rule.commands, name="rule")
    app.command(epilog="Example: webdepot statistics --from 2026-01 --to 2026-06 --csv > usage.csv")(statistics.statistics)
    app.add_typer(package.commands, name="package")
    app.add_typer(partner.commands, name="partner")
    app.add_typer(depot.commands, name="depot")
    app.add_typer(account.commands, name="account")
    app.add_typer(config.commands, name="config")
    return app


def main() -> None:
    """Run the program; every error becomes one line of words and its exit code, never a traceback."""
    try:
        build_app()()
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
