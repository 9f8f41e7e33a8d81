"""`webdepot search`: by words and time."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from webdepot.access.policy import AccessPoint, Reader
from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain, size_words
from webdepot.cli.progress import shown
from webdepot.errors import Conflict
from webdepot.model import EVERYTHING
from webdepot.ports import SearchSort
from webdepot.services.access import export as export_service
from webdepot.services.access import search as search_service
from webdepot.services.access.export import ExportForm
from webdepot.times import from_timestamp


def search(
    context: typer.Context,
    query: Annotated[
        list[str],
        typer.Argument(help='Words, "phrases", -not, OR, site: type: lang: author: before: after: as-of:'),
    ],
    collection: Annotated[str, typer.Option(help="Search in one collection.")] = EVERYTHING,
    sort: Annotated[SearchSort, typer.Option(help="Order of the results.")] = SearchSort.RELEVANCE,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="So many results at most.")] = 10,
    offset: Annotated[int, typer.Option(min=0, help="Leave out so many results at the beginning.")] = 0,
    fold: Annotated[
        bool, typer.Option("--fold", help="Show of pages with nearly the same text only the best.")
    ] = False,
    facets: Annotated[
        bool,
        typer.Option("--facets", help="Count the results by site, format, language, collection and year."),
    ] = False,
    export: Annotated[
        ExportForm | None,
        typer.Option(help="Write every capture that matches instead: a table, lines, or the records."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the export. Default: standard output.")
    ] = None,
    json: Json = False,
) -> None:
    """Find pages by their words. Prints one result per page; exits 1 when there is none."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        reader = Reader(name=archive.agent, access_point=AccessPoint.STAFF)
        text = " ".join(query)
        if export is not None:
            with shown(output) as watch:
                _write(
                    export_service.export(
                        archive, text, export, reader=reader, collection=collection, watch=watch
                    ),
                    out,
                )
            return
        page = search_service.search(
            archive,
            text,
            reader=reader,
            collection=collection,
            sort=sort,
            offset=offset,
            limit=limit,
            fold=fold,
            facets=search_service.EVERY_FACET if facets else (),
        )
    for hit in page.hits:
        when = from_timestamp(hit.timestamp)
        output.result(
            {
                "url": hit.url,
                "timestamp": hit.timestamp,
                "title": hit.title,
                "snippet": hit.snippet,
                "mime": hit.mime,
                "size": hit.size_bytes,
                "versions": hit.versions,
            },
            f"[bold]{plain(hit.title or hit.url)}[/bold]\n  {plain(hit.snippet)}\n"
            f"  [dim]{plain(hit.url)} · {when:%Y-%m-%d %H:%M} · {plain(hit.mime)} · {size_words(hit.size_bytes)} · "
            f"{hit.versions} version{'s' if hit.versions != 1 else ''}[/dim]\n",
        )
    for facet, values in page.facets.items():
        told = ", ".join(f"{plain(value)} {count:,}" for value, count in values)
        output.result({"facet": facet.value, "values": dict(values)}, f"[dim]{facet.value}: {told}[/dim]")
    if facets:
        output.result(
            {"facet": "year", "values": page.years},
            f"[dim]year: {', '.join(f'{y} {n:,}' for y, n in page.years.items())}[/dim]",
        )
    if page.spelling:
        output.say(f"Did you mean: {plain(page.spelling)}")
    if not output.json:
        output.say(f"{page.pages:,} page{'s' if page.pages != 1 else ''} found.")
    if not page.hits:
        raise typer.Exit(1)


def _write(pieces: Iterator[bytes], out: Path | None) -> None:
    if out is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    if out.exists():
        raise Conflict(f"{out} exists already. Name a new file.")
    part = out.with_name(f".{out.name}.partial")
    with part.open("wb") as stream:
        for piece in pieces:
            stream.write(piece)
        stream.flush()
        os.fsync(stream.fileno())
    part.rename(out)
