"""Tables for other programs: CSV whose cells no table program takes for a formula."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from starlette.responses import Response

from webdepot.sheets import harmless


def csv_answer(name: str, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> Response:
    """Rows as a file to save."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([harmless(row.get(column, "")) for column in columns] for row in rows)
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)
