"""Tables as CSV (RFC 4180), safe to open in a spreadsheet: text from outside must not become a formula.

A cell that a spreadsheet would evaluate gets a leading apostrophe (OWASP, CSV injection). `read_cell` removes
it, so that an exported list can be imported unchanged.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def harmless(value: object) -> str:
    """A cell as text, with an apostrophe if a spreadsheet would evaluate it; plain numbers stay numbers."""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def read_cell(text: str) -> str:
    """The text of the cell before `harmless`."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def lines(
    columns: Sequence[str], rows: Iterable[Mapping[str, object]], *, end: str = "\r\n"
) -> Iterator[str]:
    """A table as lines of CSV, with a header; streams."""
    yield from written([columns], end=end)
    yield from written(([row.get(column, "") for column in columns] for row in rows), end=end)


def written(rows: Iterable[Sequence[object]], *, end: str = "\r\n") -> Iterator[str]:
    """Rows as lines of CSV. All CSV of the program is written here."""
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
