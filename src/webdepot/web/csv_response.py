"""Tables as CSV files, with cells that no spreadsheet program takes for a formula."""

from collections.abc import Iterable, Mapping, Sequence

from starlette.responses import Response

from webdepot.text.csv_text import lines


def csv_answer(name: str, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> Response:
    """Rows as a file to download."""
    return csv_file(name, lines(columns, rows, end="\n"))


def csv_file(name: str, text: Iterable[str]) -> Response:
    """Lines written by `webdepot.text.csv_text`, as a file to download."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response("".join(text), media_type="text/csv; charset=utf-8", headers=headers)
