"""Tables as CSV (RFC 4180) that people open in a spreadsheet: words of strangers must not become formulas
there.

A cell that a spreadsheet would run gets an apostrophe in front (OWASP, CSV injection); `read_cell` takes it
off again, so that a list that went out comes back as it was.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def harmless(value: object) -> str:
    """A cell as text, guarded where a spreadsheet would take it for a formula; plain numbers stay numbers."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def read_cell(text: str) -> str:
    """What stood in the cell before `harmless`."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def lines(
    columns: Sequence[str], rows: Iterable[Mapping[str, object]], *, end: str = "\r\n"
) -> Iterator[str]:
    """The table line by line, with its head; streams."""
    yield from written([columns], end=end)
    yield from written(([given.get(column, "") for column in columns] for given in rows), end=end)


def written(rows: Iterable[Sequence[object]], *, end: str = "\r\n") -> Iterator[str]:
    """Rows as lines of CSV; the one place where CSV is written, heads and all."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator=end)
    for row in rows:
        writer.writerow([harmless(cell) for cell in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()
