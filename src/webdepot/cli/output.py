"""How commands speak: results on stdout (`--json`: one object a line), words and progress on stderr.

Rich is loaded when words are printed: programs that read `--json` do not wait for it.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What the person asked for: machine-readable lines, or words; and how many of them."""

    json: bool = False
    quiet: bool = False

    def result(self, fields: Mapping[str, Any], words: str) -> None:
        """One result: an object on one line, or the words for a person (Rich markup)."""
        if self.json:
            sys.stdout.write(json.dumps(fields, ensure_ascii=False, default=_plain) + "\n")
            sys.stdout.flush()
        else:
            _console().print(words)

    def say(self, words: str) -> None:
        """A remark beside the result, on stderr; silent with --quiet."""
        if not self.quiet:
            self.console.print(words)

    def warn(self, words: str) -> None:
        """A remark that even --quiet lets through."""
        self.console.print(f"[yellow]{words}[/yellow]")

    @property
    def console(self) -> "Console":
        return _console(stderr=True)

    @property
    def shows_progress(self) -> bool:
        """A live line only on a terminal, and only where nobody asked for silence."""
        return not self.quiet and not self.json and sys.stderr.isatty()


def _console(*, stderr: bool = False) -> "Console":
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, emoji=False, soft_wrap=True)


def size_words(size_bytes: float) -> str:
    """`1.2 MB`, in powers of a thousand, as file managers and disks count."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size_bytes < 1000 or unit == "TB":
            return f"{size_bytes:,.0f} {unit}" if unit == "bytes" else f"{size_bytes:,.1f} {unit}"
        size_bytes /= 1000
    raise AssertionError("unreachable")


def plain(text: str) -> str:
    """Text from outside, safe to print: no Rich markup, no terminal control characters."""
    from rich.markup import escape

    return escape("".join(char if char.isprintable() or char == "\n" else "�" for char in text))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return to_iso(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)
