"""The sites of a web server, read from its configuration: the only complete answer for sector 4 of a survey.

nginx files are parsed by crossplane, those of Apache by `apache`. Comments are ignored, includes are
followed, and every file that cannot be read gives a finding with its line. Names with wildcards or regular
expressions cannot be listed; they are reported as notes, so that a person can add the hosts they stand for.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import crossplane

from webdepot.model import Finding, Severity
from webdepot.selection.domains import apache

MOST_FILES = 5000
_APACHE = re.compile(
    r"(?im)^[ \t]*+(?:<VirtualHost\b|ServerName\s|ServerAlias\s|IncludeOptional\s|<IfModule\b|ServerRoot\s|"
    r"Include\s)"
)
_NGINX = re.compile(
    r"(?m)^[ \t]*+(?:http|server|events|stream)\s*+\{|\bserver_name\s|^[ \t]*+include\s[^;\n]++;"
)
_NAME = re.compile(r"(?i)\A(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z0-9-]{2,63}\Z")
_LITERAL = re.compile(
    r"\A\^?(\(\?:www\\\.\)\?|\(www\\\.\)\?|www\\\.)?((?:[A-Za-z0-9-]+\\?\.)+[A-Za-z0-9-]+)\$?\Z"
)


class NameKind(StrEnum):
    EXACT = "exact"
    WILDCARD = "wildcard"
    REGEX = "regular expression"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosted:
    """A name that a server is configured for."""

    name: str
    kind: NameKind
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The names in a server configuration, and problems found in it."""

    hosted: tuple[Hosted, ...]
    findings: tuple[Finding, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names without wildcards or regular expressions."""
        return tuple(dict.fromkeys(item.name for item in self.hosted if item.kind is NameKind.EXACT))


def read(paths: Iterable[Path]) -> Configuration:
    """All names in these files and folders. Never raises for their content."""
    hosted: list[Hosted] = []
    findings: list[Finding] = []
    seen: set[Path] = set()
    for path in _files(paths, findings):
        if path.resolve() in seen:
            continue
        seen.add(path.resolve())
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            findings.append(_finding("vhost-unreadable", str(path), error.strerror or "cannot be read", 0))
            continue
        is_apache = bool(_APACHE.search(text)) and not _NGINX.search(text)
        hosted.extend(_of_apache(path, findings) if is_apache else _of_nginx(path, findings))
    unique = {(item.name, item.kind): item for item in reversed(hosted)}
    for item in unique.values():
        if item.kind is not NameKind.EXACT:
            message = (
                f"{item.name!r} is a {item.kind.value}: the hosts it stands for cannot be listed. "
                "Accept those you know by hand."
            )
            findings.append(
                _finding("vhost-open-name", item.file, message, item.line, severity=Severity.NOTE)
            )
    return Configuration(hosted=tuple(reversed(unique.values())), findings=tuple(findings))


def _files(paths: Iterable[Path], findings: list[Finding]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            inside = sorted(
                item
                for item in path.rglob("*")
                if item.is_file() and not item.name.startswith(".") and _may_be(item)
            )
            yield from inside[:MOST_FILES]
        elif path.exists():
            yield path
        else:
            findings.append(_finding("vhost-missing", str(path), "the file or folder does not exist", 0))


def _may_be(path: Path) -> bool:
    return path.suffix in (".conf", ".cfg", "", ".vhost", ".site") or "sites-" in path.parent.name


def _of_apache(path: Path, findings: list[Finding]) -> list[Hosted]:
    names, errors = apache.read(path)
    findings.extend(_finding("vhost-error", error.file, error.reason, error.line) for error in errors)
    return [hosted for item in names if (hosted := _hosted(item.name, item.file, item.line)) is not None]


def _of_nginx(path: Path, findings: list[Finding]) -> list[Hosted]:
    # A file in sites-enabled has no `http` block around it, so the context is not checked.
    payload = crossplane.parse(str(path), catch_errors=True, check_ctx=False, check_args=False)
    findings.extend(
        _finding(
            "vhost-error", error.get("file") or str(path), str(error.get("error")), error.get("line") or 0
        )
        for error in payload.get("errors", [])
    )
    return [
        hosted
        for config in payload.get("config", [])
        for name, line in _server_names(config.get("parsed", []))
        if (hosted := _hosted(name, config.get("file", str(path)), line)) is not None
    ]


def _server_names(blocks: list[dict[str, Any]], depth: int = 0) -> Iterator[tuple[str, int]]:
    for block in blocks:
        if block.get("directive") == "server_name":
            for name in block.get("args", []):
                yield name, block.get("line", 0)
        elif block.get("block") and depth < 20:
            yield from _server_names(block["block"], depth + 1)


def _hosted(raw: str, file: str, line: int) -> Hosted | None:
    """The host of a name as written; None for `_`, an empty name or a single word. `.example.org` stands for
    the name and all below it.
    """
    name = raw.strip("\"'").lower().rstrip(".")
    if raw.startswith("~"):
        literal = _LITERAL.match(raw.lstrip("~*").strip())
        if literal:
            return Hosted(
                name=literal[2].replace("\\", "").lower(), kind=NameKind.EXACT, file=file, line=line
            )
        return Hosted(name=raw, kind=NameKind.REGEX, file=file, line=line)
    if "*" in name or "?" in name or "$" in name:
        return Hosted(name=name, kind=NameKind.WILDCARD, file=file, line=line)
    name = name.removeprefix("http://").removeprefix("https://").partition(":")[0].lstrip(".")
    return Hosted(name=name, kind=NameKind.EXACT, file=file, line=line) if _NAME.match(name) else None


def _finding(
    code: str, subject: str, message: str, line: int, severity: Severity = Severity.WARNING
) -> Finding:
    return Finding(
        code=code, severity=severity, subject=subject, message=message, place=f"line {line}" if line else ""
    )
