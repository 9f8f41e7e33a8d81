"""The CDX server: lists captures for programs, with the parameters of pywb and of the Internet Archive's
server.

/{collection}/cdx?url=…     as pywb answers: CDXJ lines, one JSON object per line, text, or links
/cdx/search/cdx?url=…       as the Internet Archive answers: columns of text, or one JSON array of rows with a
                            header row
/web/timemap/cdx?url=…      the same, where Zeno asks
/outbackcdx/{collection}?url=…   as OutbackCDX answers: CDX lines with eleven columns
/{collection}/xmlquery?q=…  as OpenWayback's index answers, in XML; also /outbackcdx/{collection}?q=…
/wayback/available?url=…    the closest capture as JSON

One answer reads a limited number of captures (`access.cdx.MOST_EXAMINED`). If it ends there, its last line is
the resume key, after an empty line, and a short answer also has a `Link` to the next.
"""

import re
from collections.abc import Callable
from functools import partial
from itertools import chain, islice
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from webdepot.access.cdx import CdxOutput, CdxQuery, CdxSort, Dialect
from webdepot.errors import Closed, InputError, NotFound
from webdepot.model import EVERYTHING, Capture
from webdepot.services.access import lookup
from webdepot.services.access.cdx import cdx_answer, xml_query
from webdepot.url import UrlMatch, from_typed
from webdepot.web import heavy_work
from webdepot.web.api.openapi_parts import COLLECTION, NOT_KEPT, parameter
from webdepot.web.replay import address
from webdepot.web.site import Site, machine_reader, site_of

BATCH_LINES = 500
"""Answers with fewer lines are sent whole, longer ones are streamed."""
_TYPES = {
    CdxOutput.CDXJ: "text/x-cdxj",
    CdxOutput.JSON: "application/x-ndjson",
    CdxOutput.TEXT: "text/plain",
    CdxOutput.LINK: "application/link-format",
}


async def of_collection(request: Request) -> Response:
    """In pywb's dialect."""
    return await _answer(request, Dialect.PYWB, request.path_params["collection"].lower())


async def of_everything(request: Request) -> Response:
    """In the Internet Archive's dialect, for the whole archive or `&collection=`."""
    collection = request.query_params.get("collection", EVERYTHING).lower()
    return await _answer(request, Dialect.INTERNET_ARCHIVE, collection)


async def of_outbackcdx(request: Request) -> Response:
    """In OutbackCDX's dialect, for crawlers that deduplicate (Heritrix, jwarc). Captures
    cannot be added as CDX lines, only by an import.
    """
    if request.method == "POST":
        message = "Captures cannot be added as CDX lines. Import the WARC files: webdepot import"
        return JSONResponse({"message": message}, status_code=403)
    if "q" in request.query_params:
        return await of_xmlquery(request)
    return await _answer(request, Dialect.OUTBACKCDX, request.path_params["collection"].lower())


async def of_xmlquery(request: Request) -> Response:
    """As OpenWayback's index answers, in XML."""
    return await heavy_work.run(request, partial(_make_xml, request))


def _make_xml(request: Request) -> Response:
    site, (reader, headers) = site_of(request), machine_reader(request)
    collection = request.path_params["collection"].lower()
    try:
        if not address.COLLECTION.match(collection):
            raise InputError(f"{collection[:60]!r} is not the name of a collection.")
        text = xml_query.answer(site.archive, request.query_params, reader=reader, collection=collection)
    except InputError as error:
        return JSONResponse({"message": str(error)}, status_code=400, headers=headers)
    return Response(text, media_type="application/xml", headers=headers)


async def available(request: Request) -> Response:
    """The closest capture of an address, as the Internet Archive's availability API answers."""
    return await heavy_work.run(request, partial(_find_available, request))


def _find_available(request: Request) -> Response:
    site, (reader, headers) = site_of(request), machine_reader(request)
    url, stamp = request.query_params.get("url", ""), request.query_params.get("timestamp", "")
    try:
        wanted = address.nearest_stamp(stamp, site.archive.clock())
        capture = lookup.find_closest(
            site.archive, from_typed(url), wanted, collection=EVERYTHING, reader=reader
        )
    except InputError as error:
        return JSONResponse({"message": str(error)}, status_code=400, headers=headers)
    except ValueError:
        message = "timestamp must have 4 to 14 digits, such as 2019 or 20190304050607."
        return JSONResponse({"message": message}, status_code=400, headers=headers)
    except (NotFound, Closed):
        return JSONResponse({"url": url, "archived_snapshots": {}}, headers=headers)
    closest = {
        "status": str(capture.status or 200),
        "available": True,
        "url": site.portal_url + address.path_of(EVERYTHING, capture.timestamp, capture.url),
        "timestamp": capture.timestamp,
    }
    answer = {"url": url, "archived_snapshots": {"closest": closest}}
    return JSONResponse({**answer, **({"timestamp": stamp} if stamp else {})}, headers=headers)


QUICK_PATH = re.compile(rb"/(?:[^/]+/cdx|cdx/search/cdx)\Z")


def quick(request: Request) -> Response | None:
    """The few captures of one address; None when there may be many, when they have to be searched for, and
    for errors.
    """
    path: str = request.scope["path"]
    is_foreign = path == "/cdx/search/cdx"
    dialect = Dialect.INTERNET_ARCHIVE if is_foreign else Dialect.PYWB
    pairs = _pairs(request.scope["query_string"].decode("latin-1"))
    collection = dict(pairs).get("collection", EVERYTHING) if is_foreign else path.split("/")[1]
    if (
        "cookie" in request.headers
        or "authorization" in request.headers
        or not address.COLLECTION.match(collection)
    ):
        return None
    query, site = cdx_answer.read_query(pairs, dialect), site_of(request)
    reader, headers = machine_reader(request)
    text = cdx_answer.find_few_lines(
        site.archive,
        query,
        reader=reader,
        collection=collection.lower(),
        make_url=_url_maker(site, collection.lower()),
    )
    if text is None:
        return None
    return Response(text, media_type=_media_type(query), headers=headers)


def _pairs(query: str) -> list[tuple[str, str]]:
    """Names and values of a query; in most queries nothing is escaped."""
    if "%" in query or "+" in query:
        return parse_qsl(query, keep_blank_values=True)
    return [
        (name, value)
        for name, _, value in (part.partition("=") for part in query.split("&"))
        if name or value
    ]


async def _answer(request: Request, dialect: Dialect, collection: str) -> Response:
    if not address.COLLECTION.match(collection):
        return JSONResponse(
            {"message": f"{collection[:60]!r} is not the name of a collection."}, status_code=400
        )
    return await heavy_work.run(request, partial(_make_answer, request, dialect, collection))


def _make_answer(request: Request, dialect: Dialect, collection: str) -> Response:
    site, (reader, headers) = site_of(request), machine_reader(request)
    try:
        query = cdx_answer.read_query(request.query_params.multi_items(), dialect)
        if query.counts_pages:
            pages, page_size = cdx_answer.count_pages(
                site.archive, query, reader=reader, collection=collection
            )
            if dialect is Dialect.INTERNET_ARCHIVE:
                return PlainTextResponse(f"{pages}\n", headers=headers)
            return JSONResponse({"pages": pages, "pageSize": page_size, "blocks": pages}, headers=headers)
        answer = cdx_answer.iter_lines(
            site.archive, query, reader=reader, collection=collection, make_url=_url_maker(site, collection)
        )
        first = list(islice(answer.lines, BATCH_LINES))
    except InputError as error:
        return JSONResponse({"message": str(error)}, status_code=400)
    if query.page and first in ([], [cdx_answer.NO_ROWS]):
        # Clients ask for one page after the other until they get this.
        message = f"Page {query.page} is past the last one. The first page is 0."
        return JSONResponse({"message": message}, status_code=400, headers=headers)
    if not first and dialect is Dialect.PYWB and query.after is None:
        return JSONResponse({"message": f"No Captures found for: {query.url[:2000]}"}, status_code=404)
    if len(first) < BATCH_LINES:
        headers = headers | (_continued(request, answer.cut) if answer.cut else {})
        return Response("".join(first), media_type=_media_type(query), headers=headers)
    return heavy_work.stream(
        request, chain(first, answer.lines), media_type=_media_type(query), headers=headers
    )


def _continued(request: Request, key: str) -> dict[str, str]:
    """Headers of an answer that was cut: the address of the next part."""
    pairs = [pair for pair in request.query_params.multi_items() if pair[0] != "resumeKey"]
    return {"Link": f'<?{urlencode([*pairs, ("resumeKey", key)])}>; rel="next"'}


def _url_maker(site: Site, collection: str) -> Callable[[Capture], str]:
    base = f"{site.replay_url}/{collection}"
    return lambda capture: f"{base}/{capture.timestamp}id_/{address.quote_url(capture.url)}"


def _media_type(query: CdxQuery) -> str:
    is_one_array = query.output is CdxOutput.JSON and query.dialect is Dialect.INTERNET_ARCHIVE
    return "application/json" if is_one_array else _TYPES[query.output]


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    common = _parameters()
    lines = {
        "description": "Captures, one a line.",
        "content": {kind: {"schema": {"type": "string"}} for kind in _TYPES.values()},
    }
    wrong = {"400": {"description": "A parameter is invalid; `message` says which."}}
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


def _parameters() -> list[dict[str, Any]]:
    return [
        parameter("url", "Address; `*` at its end or `*.` before it matches more.", required=True),
        parameter("matchType", "How much the address matches.", enum=list(UrlMatch)),
        parameter("from", "First moment, 4 to 14 digits."),
        parameter("to", "Last moment, 4 to 14 digits."),
        parameter("limit", "Maximum number of lines; a negative number returns the last ones.", "integer"),
        parameter("sort", "Order of the captures of one address.", enum=list(CdxSort)),
        parameter("closest", "With sort=closest: the moment to be close to."),
        parameter(
            "filter",
            "[!][=|~]field:text (pywb) or [!]field:expression (Internet Archive); can be repeated.",
        ),
        parameter("fl", "Fields, separated by commas."),
        parameter(
            "collapse",
            "Return only the first of consecutive captures with the same value of a field, or of its first "
            "characters (timestamp:8).",
        ),
        parameter("output", "Format of the answer.", enum=list(CdxOutput)),
        parameter("page", "Number of the page, from 0.", "integer"),
        parameter("pageSize", "Blocks on a page.", "integer"),
        parameter("showNumPages", "Return only the number of pages.", "boolean"),
        parameter("resumeKey", "Continue after this place."),
        parameter("showResumeKey", "End with the key of the place to continue from.", "boolean"),
        parameter(
            "resolveRevisits",
            "Add where the payload of a revisit is: orig.length, orig.offset, orig.filename.",
            "boolean",
        ),
        parameter(
            "allowFuzzy",
            "If the address is not archived, use one that differs only in cache-busters.",
            "boolean",
        ),
    ]
