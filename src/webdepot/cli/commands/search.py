"""`webdepot search` and `webdepot cdx`: find pages by their text, and captures by their address."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from webdepot import durable
from webdepot.access.cdx import MOST_LINES
from webdepot.access.policy import AccessPoint, Reader
from webdepot.cli.call import Json, agent, call_of
from webdepot.cli.output import Output, plain, size_words
from webdepot.cli.progress import shown
from webdepot.errors import Conflict
from webdepot.model import EVERYTHING
from webdepot.ports.search import Hit, SearchSort
from webdepot.services.access import search as search_service
from webdepot.services.access.cdx import cdx_server
from webdepot.services.access.export import export as export_service
from webdepot.services.access.export.export import ExportForm
from webdepot.times import from_timestamp


def search(
    context: typer.Context,
    query: Annotated[
        list[str],
        typer.Argument(help='Words, "phrases", -not, OR, site: type: lang: author: before: after: as-of:'),
    ],
    collection: Annotated[str, typer.Option(help="Search in this collection only.")] = EVERYTHING,
    sort: Annotated[SearchSort, typer.Option(help="Order of the results.")] = SearchSort.RELEVANCE,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of results.")] = 10,
    offset: Annotated[int, typer.Option(min=0, help="Number of results to skip.")] = 0,
    fold: Annotated[
        bool, typer.Option("--fold", help="Show only the best of the pages that have nearly the same text.")
    ] = False,
    facets: Annotated[
        bool,
        typer.Option("--facets", help="Count the results by site, format, language, collection and year."),
    ] = False,
    export: Annotated[
        ExportForm | None,
        typer.Option(help="Export all matching captures in this form instead of listing pages."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the export. Default: standard output.")
    ] = None,
    json: Json = False,
) -> None:
    call = call_of(context)
    output = call.output(json)
    text = " ".join(query)
    with call.archive() as archive:
        reader = Reader(name=archive.agent, access_point=AccessPoint.STAFF)
        if export is not None:
            with shown(output) as watch:
                pieces = export_service.export(
                    archive, text, export, reader=reader, collection=collection, watch=watch
                )
                _write(pieces, out)
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
    _print_page(output, page, facets=facets)
    if not page.hits:
        raise typer.Exit(1)


def _print_page(output: Output, page: search_service.SearchPage, *, facets: bool) -> None:
    for hit in page.hits:
        _print_hit(output, hit)
    for facet, values in page.facets.items():
        counts = ", ".join(f"{plain(value)} {count:,}" for value, count in values)
        output.result({"facet": facet.value, "values": dict(values)}, f"[dim]{facet.value}: {counts}[/dim]")
    if facets:
        output.result(
            {"facet": "year", "values": page.years},
            f"[dim]year: {', '.join(f'{year} {count:,}' for year, count in page.years.items())}[/dim]",
        )
    if page.spelling:
        output.say(f"Did you mean: {plain(page.spelling)}")
    if not output.json:
        output.say(f"{page.pages:,} page{'s' if page.pages != 1 else ''} found.")


def _print_hit(output: Output, hit: Hit) -> None:
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
        f"  [dim]{plain(hit.url)} · {when:%Y-%m-%d %H:%M} · {plain(hit.mime)} · "
        f"{size_words(hit.size_bytes)} · {hit.versions} version{'s' if hit.versions != 1 else ''}[/dim]\n",
    )


def _write(pieces: Iterator[bytes], out: Path | None) -> None:
    if out is None:
        sys.stdout.buffer.writelines(pieces)
        sys.stdout.buffer.flush()
        return
    if out.exists():
        raise Conflict(f"{out} already exists. Choose another file.")
    with durable.whole_file(out) as file:
        file.writelines(pieces)


def cdx(
    context: typer.Context,
    address: Annotated[str, typer.Argument(help="Address: example.org, example.org/path/*, *.example.org.")],
    from_: Annotated[
        str, typer.Option("--from", help="Only captures from this timestamp on: 2019, 201903, ...")
    ] = "",
    to: Annotated[str, typer.Option("--to", help="Only captures up to this timestamp.")] = "",
    filter_: Annotated[
        list[str] | None,
        typer.Option("--filter", help="Filter, as in a CDX server: =status:200, !~mime:image/.*"),
    ] = None,
    collapse: Annotated[
        list[str] | None,
        typer.Option(
            help="Keep only the first of adjacent lines with the same value: digest, timestamp:8, urlkey."
        ),
    ] = None,
    sort: Annotated[str, typer.Option(help="reverse, or closest (with --closest).")] = "",
    closest: Annotated[str, typer.Option(help="List the captures closest to this timestamp first.")] = "",
    limit: Annotated[int, typer.Option(help="Maximum number of lines.")] = MOST_LINES,
    collection: Annotated[str, typer.Option(help="Only captures of this collection.")] = "all",
) -> None:
    parameters = [
        ("url", address),
        ("from", from_),
        ("to", to),
        ("sort", sort),
        ("closest", closest),
        ("limit", str(limit)),
        *(("filter", text) for text in filter_ or ()),
        *(("collapse", text) for text in collapse or ()),
    ]
    given = [(name, value) for name, value in parameters if value]
    with call_of(context).archive() as archive:
        for line in cdx_server.find_lines(
            archive, given, reader=Reader.staff(agent()), collection=collection
        ):
            sys.stdout.write(line + "\n")
