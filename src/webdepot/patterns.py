"""Regular expressions written by people: staff in profiles and commands, readers in CDX queries.

They are matched by RE2 (https://github.com/google/re2/wiki/Syntax), in time that is linear in the length of
the text. Python's own engine can take years for one address and stops the whole process meanwhile. RE2 has no
look-around and no back-references: such an expression is refused when it is saved.
"""

import re
from collections.abc import Callable

import re2  # type: ignore[import-untyped]

LARGEST = 10_000
"""Instructions of the compiled expression: its time for one character grows with them."""
_MEMORY_BYTES = 8 << 20
_NOT_IN_RE2 = re.compile(r"\(\?(?:[=!]|<[=!]|>|\()|\\[1-9]|\(\?P=|[*+?}]\+")


class LinearPattern:
    """A compiled expression."""

    def __init__(self, text: str, *, largest: int = LARGEST) -> None:
        """ValueError, with a reason, if the text is not an expression of RE2 or is too large."""
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY_BYTES
        try:
            self._compiled = re2.compile(text, options)
        except re2.error as error:
            raise ValueError(_reason(text, error)) from None
        except UnicodeError:
            raise ValueError("it contains characters that are not valid text") from None
        if self._compiled.programsize > largest:
            raise ValueError("it is too large; use fewer or smaller repetitions")
        self.text = text

    def search(self, text: str) -> bool:
        """Whether it is found anywhere in a text."""
        return self._matches(self._compiled.search, text)

    def match(self, text: str) -> bool:
        """Whether a text starts with it."""
        return self._matches(self._compiled.match, text)

    def fullmatch(self, text: str) -> bool:
        return self._matches(self._compiled.fullmatch, text)

    def find_groups(self, text: str) -> dict[str, str] | None:
        """The named groups if all of a text matches."""
        try:
            match = self._compiled.fullmatch(text)
        except UnicodeError:
            return None
        return dict(match.groupdict()) if match is not None else None

    def _matches(self, function: Callable[[str], object], text: str) -> bool:
        try:
            return function(text) is not None
        except UnicodeError:  # half of a surrogate pair, which RE2 cannot read
            return function(text.encode("utf-8", "replace").decode()) is not None


def wildcard(text: str) -> LinearPattern:
    """A text in which `*` stands for any characters, in either case, for `fullmatch`."""
    return LinearPattern("(?is)" + ".*".join(map(re2.escape, text.split("*"))))


def _reason(text: str, error: Exception) -> str:
    message = error.args[0] if error.args else ""
    readable = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    if _NOT_IN_RE2.search(text):
        return (
            f"{readable}. Look-around, back-references and possessive repetitions are not supported; "
            "use several expressions or rules"
        )
    return readable
