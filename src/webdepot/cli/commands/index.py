"""`webdepot index`: the indexes, which can be made anew from the containers at any time."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from webdepot.cli.call import Json, Quiet, call_of
from webdepot.cli.output import plain, size_words
from webdepot.cli.progress import shown
from webdepot.services.access import cdx_server
from webdepot.services.access.cdx_server import CdxFileForm
from webdepot.services.index import indexer

commands = typer.Typer(no_args_is_help=True)


@commands.command(epilog="Example: webdepot index build")
def build(context: typer.Context, json: Json = False, quiet: Quiet = False) -> None:
    """Make the indexes, or go on where the last run was stopped: containers that are in them are left alone."""
    _indexed(context, json, quiet, indexer.update)


@commands.command(epilog="Example: webdepot index update")
def update(context: typer.Context, json: Json = False, quiet: Quiet = False) -> None:
    """Index the containers that are not indexed yet."""
    _indexed(context, json, quiet, indexer.update)


@commands.command(epilog="Example: webdepot index rebuild")
def rebuild(context: typer.Context, json: Json = False, quiet: Quiet = False) -> None:
    """Throw the indexes away and make them anew from the containers."""
    _indexed(context, json, quiet, indexer.rebuild)


@commands.command(epilog="Example: webdepot index status --json")
def status(context: typer.Context, json: Json = False) -> None:
    """How far the indexes are; exits 1 when a container is missing from one."""
    call = call_of(context)
    with call.archive() as archive:
        found = indexer.status(archive)
    call.output(json).result(
        asdict(found),
        f"{found.containers:,} containers: {found.with_captures:,} in the index of addresses ({found.captures:,} captures), "
        f"{found.with_words:,} in the index of words ({found.states:,} states of pages, {found.dead:.0%} replaced). "
        f"{size_words(found.size_bytes)} in all.",
    )
    if min(found.with_captures, found.with_words) < found.containers:
        raise typer.Exit(1)


def _indexed(context: typer.Context, json: bool, quiet: bool, work: Callable[..., indexer.Indexed]) -> None:
    """Every failing container is named, and makes the exit code 1; the others are in."""
    call = call_of(context)
    output = call.output(json, quiet)
    with call.archive() as archive, shown(output) as watch:
        done = work(archive, watch=watch)
    for name, reason in done.failed.items():
        output.warn(f"{plain(name)} was left out: {plain(reason)}")
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
    path: Annotated[Path, typer.Argument(help="File to write; with .gz it is compressed.")],
    form: Annotated[
        CdxFileForm, typer.Option(help="cdxj, cdx11, cdx9, or zipnum (NAME.cdxj.gz with its .idx and .loc).")
    ] = CdxFileForm.CDXJ,
    collection: Annotated[str, typer.Option(help="Only captures of this collection.")] = "all",
    json: Json = False,
) -> None:
    """Write the index of addresses to a file that other tools read."""
    call = call_of(context)
    with call.archive() as archive:
        lines = cdx_server.export(archive, path, form, collection=collection)
    call.output(json).result(
        {"lines": lines, "path": str(path)}, f"{lines:,} captures written to {plain(str(path))}."
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
    """Take the lines of another archive's index in. Containers are not touched; those that are missing here
    are told.
    """
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        done = cdx_server.import_(archive, path, collection=collection)
    fields = {"captures": done.captures, "containers": done.containers, "unknown": list(done.unknown)}
    output.result(fields, f"{done.captures:,} captures of {done.containers:,} containers taken in.")
    if done.unknown:
        output.warn(
            f"{len(done.unknown)} containers are not in this archive ({plain(done.unknown[0])}, …). Import them: webdepot import FILE"
        )
