"""`webdepot index`: the capture index and the text index; both can be rebuilt from the containers. And
`webdepot derive`: tables for research, from the same sources.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from webdepot.access.policy import ANYONE, Reader
from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import plain, size_words
from webdepot.cli.progress import shown
from webdepot.model import EVERYTHING
from webdepot.services.access.cdx import cdx_server
from webdepot.services.access.cdx.cdx_server import CdxFileForm
from webdepot.services.index import indexer, research_tables
from webdepot.services.index.research_tables import Derivative

commands = typer.Typer(no_args_is_help=True)


@commands.command(epilog="Example: webdepot index build")
def build(context: typer.Context, json: Json = False, quiet: Quiet = False) -> None:
    """Build the indexes, or continue where the last run was stopped. Indexed containers are skipped."""
    _run(context, json, quiet, indexer.update)


@commands.command(epilog="Example: webdepot index update")
def update(context: typer.Context, json: Json = False, quiet: Quiet = False) -> None:
    """Index the containers that are not indexed yet. Containers that are gone or may not be shown are removed
    from the indexes.
    """
    _run(context, json, quiet, indexer.update)


@commands.command(epilog="Example: webdepot index rebuild")
def rebuild(context: typer.Context, json: Json = False, quiet: Quiet = False) -> None:
    """Rebuild the indexes from scratch, from the containers."""
    _run(context, json, quiet, indexer.rebuild)


@commands.command(epilog="Example: webdepot index status --json")
def status(context: typer.Context, json: Json = False) -> None:
    """Show how complete the indexes are; exits 1 if a container is missing from one."""
    call = call_of(context)
    with call.archive() as archive:
        now = indexer.status(archive)
    call.output(json).result(
        asdict(now),
        f"{now.containers:,} containers: {now.with_captures:,} in the capture index "
        f"({now.captures:,} captures), "
        f"{now.with_words:,} in the text index ({now.states:,} page states, {now.dead:.0%} replaced). "
        f"{size_words(now.size_bytes)} in total.",
    )
    if min(now.with_captures, now.with_words) < now.containers:
        raise typer.Exit(1)


def _run(context: typer.Context, json: bool, quiet: bool, work: Callable[..., indexer.Indexed]) -> None:
    """Run the work and print the result. Containers that failed are listed, and the exit code is 1."""
    call = call_of(context)
    output = call.output(json, quiet)
    call.give_way()
    with call.archive() as archive, shown(output) as watch:
        done = work(archive, watch=watch)
    for name, reason in done.failed.items():
        output.warn(f"{plain(name)} was not indexed: {plain(reason)}")
    output.result(
        {"captures": done.captures, "pages": done.pages, "failed": dict(done.failed)},
        f"{done.captures:,} captures and {done.pages:,} pages indexed."
        + (f" {len(done.failed)} containers failed." if done.failed else ""),
    )
    if done.failed:
        raise typer.Exit(1)


@commands.command(epilog="Example: webdepot index export captures.cdxj --form cdxj")
def export(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="File to write; compressed if its name ends in .gz.")],
    form: Annotated[
        CdxFileForm, typer.Option(help="cdxj, cdx11, cdx9, or zipnum (NAME.cdxj.gz with its .idx and .loc).")
    ] = CdxFileForm.CDXJ,
    collection: Annotated[str, typer.Option(help="Only captures of this collection.")] = "all",
    json: Json = False,
) -> None:
    """Write the capture index to a file for other tools."""
    call = call_of(context)
    with call.archive() as archive:
        lines = cdx_server.export(archive, path, form, collection=collection)
    call.output(json).result(
        {"lines": lines, "path": str(path)}, f"Wrote {lines:,} captures to {plain(str(path))}."
    )


@commands.command(name="import", epilog="Example: webdepot index import old-index.cdxj --collection museums")
def import_(
    context: typer.Context,
    path: Annotated[
        Path,
        typer.Argument(
            help="CDX with 9 or 11 columns, CDXJ or ZipNum (.cdxj.gz).", exists=True, dir_okay=False
        ),
    ],
    collection: Annotated[str, typer.Option(help="Collection that the captures belong to.")],
    json: Json = False,
) -> None:
    """Import the capture index of another archive. Containers are not imported; missing ones are reported."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        done = cdx_server.import_(archive, path, collection=collection)
    fields = {"captures": done.captures, "containers": done.containers, "unknown": list(done.unknown)}
    output.result(fields, f"Imported {done.captures:,} captures of {done.containers:,} containers.")
    if done.unknown:
        output.warn(
            f"{len(done.unknown)} containers are not in this archive ({plain(done.unknown[0])}, …). "
            "Import them with: webdepot import FILE"
        )


def derive(
    context: typer.Context,
    derivative: Annotated[
        Derivative, typer.Argument(metavar="TABLE", help="domains, web-graph, text or images.")
    ],
    to: Annotated[Path, typer.Option("--to", help="New file; its name ends with .parquet or .csv.")],
    collection: Annotated[str, typer.Option(help="Only this collection.")] = EVERYTHING,
    staff: Annotated[
        bool, typer.Option("--staff", help="Include what access rules close to the public but not to staff.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        reader = Reader.staff(archive.agent) if staff else ANYONE
        rows = research_tables.derive(
            archive, derivative, to, reader=reader, collection=collection, watch=watch
        )
    fields = {"table": derivative.value, "file": str(to), "rows": rows}
    output.result(fields, f"Wrote {rows:,} rows to {plain(str(to))}.")
