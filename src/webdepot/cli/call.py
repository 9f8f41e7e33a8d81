"""Options common to all commands: where the archive is, who is acting, and how results are printed."""

import getpass
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from webdepot.cli.output import Output
from webdepot.config import config
from webdepot.errors import InputError
from webdepot.version import VERSION

if TYPE_CHECKING:
    from webdepot.archive import Archive

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per line on stdout.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print no progress and no remarks; errors are still shown.")
]
NoDeposit = Annotated[
    bool,
    typer.Option(
        "--no-deposit", help="Do not deposit the harvest yet. To do so later: webdepot harvest keep"
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The options given before the command."""

    home: Path
    json: bool
    quiet: bool

    def output(self, json: bool = False, quiet: bool = False) -> Output:
        return Output(json=self.json or json, quiet=self.quiet or quiet)

    def give_way(self) -> None:
        """Lower the priority of this process, for work that takes hours, so that readers of a server on the
        same machine do not wait for it.
        """
        niceness = config.read(self.home).index.niceness
        os.nice(max(niceness - os.nice(0), 0))

    def archive(self) -> "Archive":
        from webdepot.archive import Archive  # loads SQLAlchemy, which `--help` and `config show` do without

        return Archive.open(self.home, agent=agent())


def default_home() -> Path:
    return Path(os.environ.get("WEBDEPOT_HOME") or Path.home() / "webdepot")


def agent() -> str:
    """The user of this computer and the program's version, for provenance."""
    try:
        return f"{getpass.getuser()} (webdepot {VERSION})"
    except (KeyError, OSError):
        return f"webdepot {VERSION}"


def call_of(context: typer.Context) -> Call:
    """The options given before this command."""
    call = context.obj
    assert isinstance(call, Call)  # noqa: S101 - set for every command by `main.before`
    return call


def read_limited(file: Path, limit_bytes: int) -> bytes:
    """The bytes of a file that the user named; InputError if it is missing, not a file, or too large."""
    try:
        with file.expanduser().open("rb") as stream:
            raw = stream.read(limit_bytes + 1)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}.") from error
    if len(raw) > limit_bytes:
        raise InputError(f"{file} is larger than {max(limit_bytes >> 20, 1)} MB. Split it into parts.")
    return raw
