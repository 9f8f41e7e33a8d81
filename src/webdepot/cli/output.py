"""Output of commands: results on stdout (with `--json` one object per line), remarks and progress on stderr.

Rich is loaded when text is printed; programs that read `--json` do not wait for it.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from webdepot.times import to_iso

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPTED = "Interrupted. Everything reported as done is safe; run the same command again to continue."


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where results and remarks go, by the options --json and --quiet."""

    json: bool = False
    quiet: bool = False

    def result(self, fields: Mapping[str, Any], text: str) -> None:
        """Print one result: the fields as JSON on one line, or the text (Rich markup)."""
        if self.json:
            sys.stdout.write(json.dumps(fields, ensure_ascii=False, default=_plain) + "\n")
            sys.stdout.flush()
        else:
            _console().print(text)

    def say(self, text: str) -> None:
        """Print a remark on stderr, unless --quiet was given."""
        if not self.quiet:
            self.console.print(text)

    def warn(self, text: str) -> None:
        """Print a warning on stderr, even with --quiet."""
        self.console.print(f"[yellow]{text}[/yellow]")

    @property
    def console(self) -> "Console":
        return _console(stderr=True)

    @property
    def shows_progress(self) -> bool:
        """Whether to draw a live progress line: on a terminal, without --json and --quiet."""
        return not self.quiet and not self.json and sys.stderr.isatty()


def _console(*, stderr: bool = False) -> "Console":
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, emoji=False, soft_wrap=True)


def size_words(size_bytes: float) -> str:
    """A size as `1.2 MB`, in powers of a thousand, as file managers and disk makers count."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size_bytes < 1000 or unit == "TB":
            return f"{size_bytes:,.0f} {unit}" if unit == "bytes" else f"{size_bytes:,.1f} {unit}"
        size_bytes /= 1000
    raise AssertionError("unreachable")


def duration_words(seconds: float) -> str:
    """A duration as `1:05` or `2:00:05`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def count_words(count: int, nouns: str) -> str:
    """`1 page`, `20,553 pages`; the noun is given in the plural."""
    if count != 1:
        return f"{count:,} {nouns}"
    return f"1 {nouns.removesuffix('es') if nouns.endswith('sses') else nouns.removesuffix('s')}"


def failure_words(errors: int, failed_parts: int) -> str:
    """`3 pages and 12 parts could not be fetched`; empty if nothing failed."""
    counts = ((errors - failed_parts, "pages"), (failed_parts, "parts"))
    counted = [count_words(count, nouns) for count, nouns in counts if count > 0]
    return f"{' and '.join(counted)} could not be fetched" if counted else ""


def plain(text: str) -> str:
    """Untrusted text made safe to print: Rich markup escaped, terminal control characters replaced."""
    from rich.markup import escape

    return escape("".join(char if char.isprintable() or char == "\n" else "�" for char in text))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return to_iso(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)
