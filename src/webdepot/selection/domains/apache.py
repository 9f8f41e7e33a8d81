"""Host names in the configuration of Apache: VirtualHost, ServerName, ServerAlias, Include, Define.

Syntax: https://httpd.apache.org/docs/2.4/configuring.html: one directive per line, a backslash at the end
continues it on the next line, `#` only at the beginning of a line. Conditions (IfModule, IfDefine) are
assumed to be true: a site that is disabled today was hosted before.
"""

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DEEPEST = 10
MOST_INCLUDED = 5000
LONGEST_LINE = 16 << 10
"""Twice the longest line that Apache itself accepts. A limit is needed because variables that contain each
other double with every definition.
"""
_OPEN = re.compile(r"\A<\s*([A-Za-z]+)\b[^>]*>?\Z")
_CLOSE = re.compile(r"\A</\s*([A-Za-z]+)\s*>\Z")
_VARIABLE = re.compile(r"\$\{([A-Za-z0-9_]+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedHost:
    """A name in a configuration file, with its place."""

    name: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableLine:
    """A line that could not be read, and why."""

    file: str
    line: int
    reason: str


@dataclass(slots=True)
class _Reading:
    root: Path
    names: list[NamedHost] = field(default_factory=list)
    errors: list[UnreadableLine] = field(default_factory=list)
    defined: dict[str, str] = field(default_factory=dict)
    files: int = 0


def read(path: Path) -> tuple[list[NamedHost], list[UnreadableLine]]:
    """The names in a file and in the files it includes, and the lines that could not be read."""
    reading = _Reading(root=path.parent)
    _read(path, reading, ())
    return reading.names, reading.errors


def _read(path: Path, reading: _Reading, above: tuple[Path, ...]) -> None:
    reading.files += 1
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        reading.errors.append(
            UnreadableLine(file=str(path), line=0, reason=error.strerror or "cannot be read")
        )
        return
    blocks: list[tuple[str, int]] = []
    for number, line in _lines(text):
        closing, opening = _CLOSE.match(line), _OPEN.match(line)
        if closing:
            if not blocks or blocks[-1][0] != closing[1].lower():
                reading.errors.append(
                    UnreadableLine(file=str(path), line=number, reason=f"</{closing[1]}> has no opening tag")
                )
            else:
                blocks.pop()
        elif opening:
            blocks.append((opening[1].lower(), number))
        else:
            _directive(line, number, path, reading, above)
    for name, number in blocks:
        reading.errors.append(UnreadableLine(file=str(path), line=number, reason=f"<{name}> is never closed"))


def _directive(line: str, number: int, path: Path, reading: _Reading, above: tuple[Path, ...]) -> None:
    line = _VARIABLE.sub(lambda match: reading.defined.get(match[1], match[0]), line)
    if len(line) > LONGEST_LINE:
        reason = f"longer than {LONGEST_LINE} characters: {line[:80]}"
        reading.errors.append(UnreadableLine(file=str(path), line=number, reason=reason))
        return
    try:
        word, *arguments = shlex.split(line, comments=False)
    except ValueError as error:
        reading.errors.append(UnreadableLine(file=str(path), line=number, reason=f"{error}: {line[:80]}"))
        return
    match word.lower():
        case "servername" | "serveralias":
            reading.names.extend(
                NamedHost(name=argument, file=str(path), line=number) for argument in arguments
            )
        case "define" if len(arguments) == 2:
            reading.defined[arguments[0]] = arguments[1]
        case "serverroot" if arguments and os.path.isdir(arguments[0]):  # noqa: PTH112 - for any text
            reading.root = Path(arguments[0])
        case "include" | "includeoptional":
            for argument in arguments:
                _include(
                    argument, number, path, reading, above, is_optional=word.lower() == "includeoptional"
                )


def _include(
    argument: str, number: int, path: Path, reading: _Reading, above: tuple[Path, ...], *, is_optional: bool
) -> None:
    try:
        matches = _files_of(argument, reading.root)
    except (OSError, ValueError) as error:  # a name that is too long, or a pattern that is not one
        reason = f"Include {argument[:200]}: {error}"
        reading.errors.append(UnreadableLine(file=str(path), line=number, reason=reason))
        return
    if not matches and not is_optional:
        reading.errors.append(
            UnreadableLine(file=str(path), line=number, reason=f"Include {argument}: there is no such file")
        )
    for item in matches:
        inner = sorted(item.rglob("*")) if item.is_dir() else [item]
        for file in inner:
            if file.is_file():
                _include_file(file, number, path, reading, above)


def _files_of(argument: str, root: Path) -> list[Path]:
    base = Path(argument) if Path(argument).is_absolute() else root / argument
    if any(sign in argument for sign in "*?["):
        return sorted(Path(base.anchor).glob(str(base.relative_to(base.anchor)))) if base.anchor else []
    return [base] if base.exists() else []


def _include_file(file: Path, number: int, path: Path, reading: _Reading, above: tuple[Path, ...]) -> None:
    if file.resolve() in above or file.resolve() == path.resolve():
        reading.errors.append(
            UnreadableLine(
                file=str(path),
                line=number,
                reason=f"Include {file}: the files include each other in a circle",
            )
        )
    elif len(above) >= DEEPEST or reading.files >= MOST_INCLUDED:
        reading.errors.append(
            UnreadableLine(file=str(path), line=number, reason=f"Include {file}: too many includes")
        )
    else:
        _read(file, reading, (*above, path.resolve()))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of their first physical one."""
    held, begun = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not held and line.startswith("#"):
            continue
        begun = begun if held else number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        whole, held = held + line, ""
        if whole.strip():
            yield begun, whole.strip()
    if held.strip():
        yield begun, held.strip()
