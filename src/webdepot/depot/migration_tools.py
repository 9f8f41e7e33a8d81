"""Migration: a file in an obsolete format is also kept in a current one. The original stays as it is.

A tool is a command with a source and a target format. It reads one file and writes another, with limits on
time, memory and output, without our environment and without a network, because old decoders may meet hostile
files. Its output becomes a WARC conversion
record (ISO 28500, 6.9) in a new version of the package, and a row in `index/conversions.jsonl.gz`, by the
payload digest of the original: all captures with that payload share it.
"""

import resource
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select

from webdepot.depot.tables import conversions
from webdepot.errors import ConfigError, NotFound
from webdepot.guard import environment, walls
from webdepot.model import Location, PackageId
from webdepot.times import from_iso, to_iso

CONVERSIONS = "index/conversions.jsonl.gz"
TIME_S = 120
MEMORY_BYTES = 2 << 30
LARGEST_OUTPUT_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    source: str
    """Media type or PRONOM identifier of its input."""
    target: str
    """Media type of its output."""
    command: tuple[str, ...]
    """`{input}` and `{output}` are replaced by the two files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    digest: str
    """Payload digest of the original."""
    mime: str
    package: PackageId
    url: str
    original_mime: str
    location: Location
    tool: str
    converted_at: datetime


def built_in() -> dict[str, Tool]:
    """The tool for X bitmaps, which browsers no longer show: to PNG."""
    module = (sys.executable, "-P", "-s", "-m", "webdepot.depot.png_conversion", "{input}", "{output}")
    return {
        "xbitmap-to-png": Tool(
            name="xbitmap-to-png", source="image/x-xbitmap", target="image/png", command=module
        )
    }


def tools(configured: Mapping[str, str]) -> dict[str, Tool]:
    """The built-in tools and those of the configuration: NAME = "SOURCE TARGET command {input} {output}"."""
    known = built_in()
    for name, text in configured.items():
        source, target, *command = [*shlex.split(text), "", ""]
        command = [word for word in command if word]
        if "/" not in source or "/" not in target or "{input}" not in command or "{output}" not in command:
            raise ConfigError(
                f'depot.migration_tools {name} must be "SOURCE TARGET command {{input}} {{output}}", '
                f"not {text!r}."
            )
        known[name] = Tool(name=name, source=source, target=target, command=tuple(command))
    return known


def get_tool(name: str, configured: Mapping[str, str]) -> Tool:
    known = tools(configured)
    if name not in known:
        raise NotFound(
            f"There is no migration tool {name}. Known: {', '.join(sorted(known))}. "
            "Add others under depot.migration_tools in the configuration."
        )
    return known[name]


def run(tool: Tool, source: Path, output: Path) -> str:
    """Convert one file; an error message, empty if it succeeded."""
    places = {"{input}": str(source), "{output}": str(output)}
    command = [places.get(word, word) for word in tool.command]
    try:
        done = subprocess.run(  # noqa: S603 - a command of this program or of the operator
            command,
            capture_output=True,
            timeout=TIME_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env=environment.of_module(environment.of_command()),
            preexec_fn=_limits(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode != 0:
        return f"exit {done.returncode}: {done.stderr[-300:].decode(errors='replace').strip()}"
    return "" if output.is_file() and output.stat().st_size > 0 else "the tool wrote no file"


def record(connection: Connection, new: Iterable[Conversion]) -> None:
    """Write the rows of conversions; they replace earlier ones of the same payload to the same format."""
    for each in new:
        same = (conversions.c.digest == each.digest) & (conversions.c.mime == each.mime)
        connection.execute(delete(conversions).where(same))
        connection.execute(insert(conversions).values(**_values(each)))


def forget(connection: Connection, package: PackageId) -> None:
    connection.execute(delete(conversions).where(conversions.c.package == package))


def find(connection: Connection, digest: str) -> list[Conversion]:
    """The conversions of a payload, the newest first."""
    chosen = (
        select(conversions).where(conversions.c.digest == digest).order_by(conversions.c.converted_at.desc())
    )
    return [_conversion(row) for row in connection.execute(chosen).mappings()]


def to_row(conversion: Conversion) -> dict[str, Any]:
    return _values(conversion) | {"converted_at": to_iso(conversion.converted_at)}


def from_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[Conversion]:
    for row in rows:
        yield _conversion(dict(row) | {"converted_at": from_iso(row["converted_at"])})


def _values(conversion: Conversion) -> dict[str, Any]:
    facts = asdict(conversion)
    place: dict[str, Any] = facts.pop("location")
    return facts | place


def _conversion(row: RowMapping | Mapping[str, Any]) -> Conversion:
    place = Location(container=row["container"], offset=row["offset"], length=row["length"])
    names = ("digest", "mime", "package", "url", "original_mime", "tool", "converted_at")
    return Conversion(location=place, **{name: row[name] for name in names})


def _limits() -> Callable[[], None]:
    confine = walls.around_command()

    def limit() -> None:
        confine()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_OUTPUT_BYTES, LARGEST_OUTPUT_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (TIME_S, TIME_S))

    return limit
