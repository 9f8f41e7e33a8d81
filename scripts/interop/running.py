"""Run programs of others, and compare what they say with what we know."""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from installing import PLACE, Unavailable
from world import World

LIMIT_S = 180


class Different(Exception):
    """A tool gave a result other than the expected one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One row of the table."""

    name: str
    source: str
    what: str
    check: Callable[[World], str]
    """Runs a tool and returns its version; raises Unavailable or Different."""
    is_slow: bool = False
    """Whether it is compiled, downloaded with hundreds of MB, or runs for minutes."""


def run(
    command: list[str | Path],
    *,
    folder: Path | None = None,
    expected: str = "",
    variables: Mapping[str, str] | None = None,
    codes: tuple[int, ...] = (0,),
) -> str:
    """The output of a command that must end with one of these exit codes and contain this text."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            cwd=folder,
            env=None if variables is None else dict(variables),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Different(f"did not end within {LIMIT_S} s") from None
    except OSError as error:
        raise Unavailable(str(error)) from error
    output = done.stdout + done.stderr
    if done.returncode not in codes or expected not in output:
        raise Different(f"exit {done.returncode}: {output.strip()[-300:]}")
    return output


def python(code: str, *arguments: object) -> str:
    """The output of a Python program in the environment of the tools."""
    return run([PLACE / "bin" / "python", "-W", "ignore", "-c", code, *map(str, arguments)]).strip()


def version_of(name: str) -> str:
    return python("import sys; from importlib.metadata import version; print(version(sys.argv[1]))", name)


def same(actual: object, expected: object) -> None:
    if actual != expected:
        raise Different(f"{actual!r} instead of {expected!r}")
