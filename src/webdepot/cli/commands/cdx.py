"""`webdepot cdx`: which captures there are, as lines for other tools."""

import sys
from typing import Annotated

import typer

from webdepot import cdxj
from webdepot.access import cdx as questions
from webdepot.access.cdx import Dialect
from webdepot.access.policy import Reader
from webdepot.cli.call import agent, call_of
from webdepot.services.access import cdx_server


def cdx(
    context: typer.Context,
    address: Annotated[str, typer.Argument(help="Address: example.org, example.org/path/*, *.example.org.")],
    from_: Annotated[
        str, typer.Option("--from", help="Captures from this timestamp on: 2019, 201903, ...")
    ] = "",
    to: Annotated[str, typer.Option("--to", help="Captures up to this timestamp.")] = "",
    filter_: Annotated[
        list[str] | None, typer.Option("--filter", help="As in the CDX server: =status:200, !~mime:image/.*")
    ] = None,
    collapse: Annotated[
        list[str] | None, typer.Option(help="Of equal neighbours the first: digest, timestamp:8, urlkey.")
    ] = None,
    sort: Annotated[str, typer.Option(help="reverse, or closest with --closest.")] = "",
    closest: Annotated[str, typer.Option(help="Nearest to this timestamp first.")] = "",
    limit: Annotated[int, typer.Option(help="So many lines at most.")] = questions.MOST_LINES,
    collection: Annotated[str, typer.Option(help="Only of this collection.")] = "all",
) -> None:
    """List captures as CDXJ lines, in the words of the CDX server. On the archive's own machine only rules
    for staff apply.
    """
    call = call_of(context)
    given = [
        ("url", address),
        ("from", from_),
        ("to", to),
        ("sort", sort),
        ("closest", closest),
        ("limit", str(limit)),
    ]
    given += [("filter", each) for each in filter_ or ()] + [("collapse", each) for each in collapse or ()]
    query = questions.parse([(name, value) for name, value in given if value], Dialect.PYWB)
    with call.archive() as archive:
        for capture in cdx_server.find(
            archive, query, reader=Reader.staff(agent()), collection=collection
        ).captures:
            sys.stdout.write(cdxj.line(capture) + "\n")
