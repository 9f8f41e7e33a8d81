"""What stands before every command: where the archive is, who asks, and how to speak."""

import getpass
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from webdepot.cli.output import Output
from webdepot.version import VERSION

if TYPE_CHECKING:
    from webdepot.archive import Archive

Json = Annotated[bool, typer.Option("--json", help="One JSON object a line on stdout.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no remarks; errors are still told.")
]
NoDeposit = Annotated[
    bool,
    typer.Option(
        "--no-deposit", help="Leave it out of the depot for now; keep it later with: webdepot harvest keep"
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    home: Path
    json: bool
    quiet: bool

    def output(self, json: bool = False, quiet: bool = False) -> Output:
        return Output(json=self.json or json, quiet=self.quiet or quiet)

    def archive(self) -> "Archive":
        from webdepot.archive import Archive  # with the database: most of the start of a small command

        return Archive.open(self.home, agent=agent())


def default_home() -> Path:
    return Path(os.environ.get("WEBDEPOT_HOME") or Path.home() / "webdepot")


def agent() -> str:
    """The person at the keyboard, for provenance."""
    try:
        return f"{getpass.getuser()} (webdepot {VERSION})"
    except (KeyError, OSError):
        return f"webdepot {VERSION}"


def call_of(context: typer.Context) -> Call:
    found = context.obj
    assert isinstance(found, Call)  # noqa: S101 - set for every command by `main.before`
    return found
