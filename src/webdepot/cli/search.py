"""`webdepot search`: by words and time."""

from typing import Annotated

import typer

from webdepot.access.policy import AccessPoint, Reader
from webdepot.cli.call import Json, call_of
from webdepot.cli.output import plain, size_words
from webdepot.model import EVERYTHING
from webdepot.ports import Sort
from webdepot.services import searching
from webdepot.times import from_timestamp


def search(
    context: typer.Context,
    query: Annotated[list[str], typer.Argument(help='Words, "phrases", -not, OR, site: type: lang: before: after: as-of:')],
    collection: Annotated[str, typer.Option(help="Search in one collection.")] = EVERYTHING,
    sort: Annotated[Sort, typer.Option(help="Order of the results.")] = Sort.RELEVANCE,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="So many results at most.")] = 10,
    offset: Annotated[int, typer.Option(min=0, help="Leave out so many results at the beginning.")] = 0,
    json: Json = False,
) -> None:
    """Find pages by their words. Prints one result per page; exits 1 when there is none."""
    call = call_of(context)
    output = call.output(json)
    with call.archive() as archive:
        reader = Reader(name=archive.agent, access_point=AccessPoint.STAFF)
        text = " ".join(query)
        page = searching.search(archive, text, reader=reader, collection=collection, sort=sort, offset=offset, limit=limit)
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
    if not output.json:
        output.say(f"{page.pages:,} page{'s' if page.pages != 1 else ''} found.")
    if not page.hits:
        raise typer.Exit(1)
