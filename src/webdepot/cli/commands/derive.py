"""`webdepot derive`: tables for research."""

from pathlib import Path
from typing import Annotated

import typer

from webdepot.access.policy import ANYONE, Reader
from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import plain
from webdepot.cli.progress import shown
from webdepot.model import EVERYTHING
from webdepot.services.index import derivatives
from webdepot.services.index.derivatives import Derivative


def derive(
    context: typer.Context,
    derivative: Annotated[
        Derivative, typer.Argument(metavar="TABLE", help="domains, web-graph, text or images.")
    ],
    to: Annotated[Path, typer.Option("--to", help="New file; its name ends with .parquet or .csv.")],
    collection: Annotated[str, typer.Option(help="Of this collection only.")] = EVERYTHING,
    staff: Annotated[
        bool, typer.Option("--staff", help="With what access rules close to the public but not to staff.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        reader = Reader.staff(archive.agent) if staff else ANYONE
        rows = derivatives.derive(archive, derivative, to, reader=reader, collection=collection, watch=watch)
    fields = {"table": derivative.value, "file": str(to), "rows": rows}
    output.result(fields, f"Wrote {rows:,} rows to {plain(str(to))}.")
