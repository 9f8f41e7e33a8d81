"""The CDX server: which captures there are, for machines, in the words of pywb and of the Internet Archive's
server.

/{collection}/cdx?url=…     pywb's answers: CDXJ lines, or JSON objects a line, text, link
/cdx/search/cdx?url=…       the Internet Archive's: columns of text, or one JSON array of rows with a head
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from webdepot import cdxj
from webdepot.access import cdx
from webdepot.access.cdx import CdxQuery, Dialect, Output
from webdepot.access.replay.headers import http_date
from webdepot.errors import InputError
from webdepot.model import EVERYTHING, Capture, RecordKind
from webdepot.services.access import cdx_server, replay
from webdepot.url import UrlMatch
from webdepot.web.api.openapi_parts import COLLECTION, NOT_KEPT, parameter
from webdepot.web.replay import address
from webdepot.web.site import Site, reader_of, site_of

BATCH = 500
"""So many lines are sent at a time."""
_TYPES = {
    Output.CDXJ: "text/x-cdxj",
    Output.JSON: "application/x-ndjson",
    Output.TEXT: "text/plain",
    Output.LINK: "application/link-format",
}
_HEADERS = {"Cache-Control": "no-cache", "Access-Control-Allow-Origin": "*"}


def of_collection(request: Request) -> Response:
    """pywb's dialect."""
    return _answer(request, Dialect.PYWB, request.path_params["collection"].lower())


def of_everything(request: Request) -> Response:
    """The Internet Archive's dialect, over the whole archive or `&collection=`."""
    return _answer(
        request, Dialect.INTERNET_ARCHIVE, request.query_params.get("collection", EVERYTHING).lower()
    )


def described(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    common = [
        parameter("url", "Address; `*` at its end or `*.` before it takes in more.", required=True),
        parameter("matchType", "How much the address takes in.", enum=list(UrlMatch)),
        parameter("from", "First moment, 4 to 14 digits."),
        parameter("to", "Last moment, 4 to 14 digits."),
        parameter("limit", "So many lines; below 0 the last ones.", "integer"),
        parameter("sort", "Order of the captures of one address.", enum=list(cdx.Sort)),
        parameter("closest", "With sort=closest: near to which moment."),
        parameter(
            "filter",
            "[!][=|~]field:text (pywb) or [!]field:expression (Internet Archive); repeat it for more.",
        ),
        parameter("fl", "Fields, separated by commas."),
        parameter(
            "collapse",
            "Of neighbours that agree in a field, or in its first signs (timestamp:8), only the first.",
        ),
        parameter("output", "Form of the answer.", enum=list(Output)),
        parameter("page", "Number of the page, from 0.", "integer"),
        parameter("pageSize", "Blocks on a page.", "integer"),
        parameter("showNumPages", "Only tell how many pages there are.", "boolean"),
        parameter("resumeKey", "Go on behind this place."),
        parameter("showResumeKey", "End with the key of the place to go on from.", "boolean"),
        parameter(
            "resolveRevisits",
            "Say where the bytes of a revisit are: orig.length, orig.offset, orig.filename.",
            "boolean",
        ),
        parameter(
            "allowFuzzy",
            "Where the address is not kept, take one that differs in cache-busters only.",
            "boolean",
        ),
    ]
    lines = {
        "description": "Captures, one a line.",
        "content": {kind: {"schema": {"type": "string"}} for kind in _TYPES.values()},
    }
    wrong = {"400": {"description": "A parameter is wrong; `message` says which."}}
    pywb = {
        "summary": "Captures, in pywb's dialect",
        "parameters": [COLLECTION, *common],
        "responses": {"200": lines, **wrong, **NOT_KEPT},
    }
    array = {
        "description": "Rows.",
        "content": {
            "text/plain": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "array"}},
        },
    }
    other = {
        "summary": "Captures, in the Internet Archive's dialect",
        "parameters": [*common, parameter("collection", "Name of a collection.")],
        "responses": {"200": array, **wrong},
    }
    return {"/{collection}/cdx": {"get": pywb}, "/cdx/search/cdx": {"get": other}}


QUICK_PATH = re.compile(rb"/(?:[^/]+/cdx|cdx/search/cdx)\Z")
_QUICK_LINES = 12


def quick(request: Request) -> Response | None:
    """The few captures of one address; None for whatever may be many, has to be searched for, or is wrong."""
    path: str = request.scope["path"]
    is_foreign = path == "/cdx/search/cdx"
    dialect = Dialect.INTERNET_ARCHIVE if is_foreign else Dialect.PYWB
    asked = _pairs(request.scope["query_string"].decode("latin-1"))
    collection = dict(asked).get("collection", EVERYTHING) if is_foreign else path.split("/")[1]
    if (
        "cookie" in request.headers
        or "authorization" in request.headers
        or not address.COLLECTION.match(collection)
    ):
        return None
    query = cdx.parse(asked, dialect)
    if not query.is_plain:
        return None
    site = site_of(request)
    with site.archive.database.at_one_moment():
        found = cdx_server.find(site.archive, query, reader=reader_of(request), collection=collection.lower())
        few = list(islice(found.captures, _QUICK_LINES))
    if not few or len(few) == _QUICK_LINES:
        return None
    lines = "".join(
        _lines(
            cdx_server.Lines(captures=iter(few), resume=found.resume),
            query,
            f"{site.replay_url}/{collection.lower()}",
            lambda _: None,
        )
    )
    return Response(lines, media_type=_media_type(query), headers=_HEADERS)


def _pairs(query: str) -> list[tuple[str, str]]:
    """Names and values of a query; most have nothing escaped."""
    if "%" in query or "+" in query:
        return parse_qsl(query, keep_blank_values=True)
    return [
        (name, value)
        for name, _, value in (part.partition("=") for part in query.split("&"))
        if name or value
    ]


def _answer(request: Request, dialect: Dialect, collection: str) -> Response:
    if not address.COLLECTION.match(collection):
        return JSONResponse({"message": f"{collection[:60]!r} is no name of a collection."}, status_code=400)
    site = site_of(request)
    try:
        query = cdx.parse(request.query_params.multi_items(), dialect)
        if query.counts_pages:
            pages = cdx_server.count_pages(
                site.archive, query, reader=reader_of(request), collection=collection
            )
            if dialect is Dialect.INTERNET_ARCHIVE:
                return PlainTextResponse(f"{pages}\n")
            return JSONResponse(
                {"pages": pages, "pageSize": query.page_lines // cdx.PAGE_LINES, "blocks": pages}
            )
        found = cdx_server.find(site.archive, query, reader=reader_of(request), collection=collection)
    except InputError as error:
        return JSONResponse({"message": str(error)}, status_code=400)
    lines = _lines(
        found, query, f"{site.replay_url}/{collection}", partial(replay.find_original, site.archive)
    )
    first = list(islice(lines, BATCH))
    if not first and dialect is Dialect.PYWB:
        return JSONResponse({"message": f"No Captures found for: {query.url[:2000]}"}, status_code=404)
    if len(first) < BATCH:
        return Response("".join(first), media_type=_media_type(query), headers=_HEADERS)
    return StreamingResponse(_batches(chain(first, lines)), media_type=_media_type(query), headers=_HEADERS)


def _media_type(query: CdxQuery) -> str:
    is_one_array = query.output is Output.JSON and query.dialect is Dialect.INTERNET_ARCHIVE
    return "application/json" if is_one_array else _TYPES[query.output]


def _batches(lines: Iterator[str]) -> Iterator[str]:
    while batch := "".join(islice(lines, BATCH)):
        yield batch


Original = Callable[[Capture], Capture | None]


def _originals(capture: Capture, original: Original) -> dict[str, str]:
    """Where the bytes of a revisit are, in pywb's names; `-` of all others."""
    found = original(capture) if capture.kind is RecordKind.REVISIT else None
    place = found.location if found else None
    values = (str(place.length), str(place.offset), place.container) if place else ("-", "-", "-")
    return dict(zip(("orig.length", "orig.offset", "orig.filename"), values, strict=True))


def _lines(found: cdx_server.Lines, query: CdxQuery, base: str, original: Original) -> Iterator[str]:
    if query.output is Output.JSON and query.dialect is Dialect.INTERNET_ARCHIVE:
        yield from _rows(found, query)
        return
    for capture in found.captures:
        yield _line(capture, query, base, original) + "\n"
    if query.shows_resume_key and found.resume:
        yield f"\n{cdx.resume_key(found.resume[0])}\n"


def _rows(found: cdx_server.Lines, query: CdxQuery) -> Iterator[str]:
    """One array; nothing found is an empty one."""
    start = "[" + json.dumps(query.fields)
    for capture in found.captures:
        yield f"{start},\n{json.dumps(cdx.values(capture, query))}"
        start = ""
    if start:
        yield "[]\n"
    elif query.shows_resume_key and found.resume:
        yield f",\n[],\n{json.dumps([cdx.resume_key(found.resume[0])])}]\n"
    else:
        yield "]\n"


def _line(capture: Capture, query: CdxQuery, base: str, original: Original) -> str:
    originals = _originals(capture, original) if query.resolves_revisits else {}
    match query.output:
        case Output.CDXJ if not query.has_fields and not query.resolves_revisits:
            return cdxj.line(capture)
        case Output.CDXJ:
            fields = {
                name: value
                for name, value in zip(query.fields, cdx.values(capture, query), strict=True)
                if name not in ("urlkey", "timestamp")
            } | originals
            return f"{capture.key} {capture.timestamp} {json.dumps(fields)}"
        case Output.JSON:
            said = {**dict(zip(query.fields, cdx.values(capture, query), strict=True)), **originals}
            # Names are our own words. A fifth of the time of json.dumps, which makes an encoder for each
            # line.
            return "{" + ", ".join([f'"{name}": {_quoted(value)}' for name, value in said.items()]) + "}"
        case Output.TEXT:
            return " ".join([*cdx.values(capture, query), *originals.values()])
        case Output.LINK:
            where = f"{base}/{capture.timestamp}id_/{address.quote_url(capture.url)}"
            return f'<{where}>; rel="memento"; datetime="{http_date(capture.timestamp)}",'
