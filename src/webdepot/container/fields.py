"""Named fields, `name: value` in a line each: the one reader of WARC headers and HTTP heads.

Lines end in CRLF or in LF alone. A line that begins with a space or tab continues the value before it (RFC
9112, 5.2). Any other line is skipped, and so are the lines that continue it.
"""

import re
from collections.abc import Iterator, Sequence

# Names are printable ASCII. No character fits two neighbouring parts, so nothing is tried twice.
_FIELD = re.compile(r"\n([!-9;-~]+)[ \t]*:(.*)")
_FOLDS = (" ", "\t")


class Fields:
    """The named fields of a record header. Names match in any case; if several fields have one name, the
    first counts. Whitespace around values is removed.
    """

    __slots__ = ("_first", "_pairs")

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._pairs = pairs
        self._first = {name.lower(): value.strip() for name, value in reversed(pairs)}

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Name and value of each field, in their order, as spelled."""
        return [(name, value.strip()) for name, value in self._pairs]

    def get(self, name: str) -> str | None:
        return self._first.get(name.lower())

    def get_all(self, name: str) -> list[str]:
        wanted = name.lower()
        return [value for key, value in self.pairs if key.lower() == wanted]

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._first

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self._pairs)


def read_pairs(text: str) -> list[tuple[str, str]]:
    """Name and value of each field after the first line end, in their order; values with the whitespace
    around them. Takes linear time.
    """
    if "\n " in text or "\n\t" in text:
        text = _unfolded(text)
    return _FIELD.findall(text)


def _unfolded(text: str) -> str:
    """The text with each value in one line."""
    lines: list[list[str]] = []
    for line in text.split("\n"):
        if line[:1] not in _FOLDS:
            lines.append([line.rstrip()])
        elif lines and ":" in lines[-1][0] and (more := line.strip()):
            lines[-1].append(more)
    return "\n".join([" ".join(parts) for parts in lines])
