"""Search for machines: JSON, described by OpenAPI 3.1; suggestions for browsers (OpenSearch 1.1); Atom feeds
(RFC 4287).

/api/search         one page of results
/api/suggest        ["typed", ["completion", …]], as browsers expect it
/api/trend          terms over the years
/opensearch.xml     describes the search for the search field of a browser
/search.atom        the newest results of a query
/searches           a person's saved searches; /searches/TOKEN.atom is the feed of one for anybody, with the
                    results that the public may see
"""

from typing import Any
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from webdepot.access.policy import ANYONE, Reader
from webdepot.access.saved_search_rows import SavedSearch
from webdepot.ports.search import Hit, SearchSort
from webdepot.services.access import saved_searches, search
from webdepot.services.access.export.export import ExportForm
from webdepot.times import from_timestamp, to_iso
from webdepot.web import confirmation
from webdepot.web.api.openapi_parts import parameter
from webdepot.web.forms import SHORT_FORM, find_number, read_form
from webdepot.web.reader.search import LONGEST_QUERY, read_query
from webdepot.web.replay import address
from webdepot.web.site import Site, name_of, reader_of, render, site_of

MOST_HITS = 100
FEED_HITS = 30
_ATOM = "http://www.w3.org/2005/Atom"
_OPENSEARCH = "http://a9.com/-/spec/opensearch/1.1/"


def as_json(request: Request) -> Response:
    query = read_query(request)
    limit, offset = _number(request, "limit", 10, MOST_HITS), _number(request, "offset", 0, 100_000)
    page = search.search(
        site_of(request).archive,
        query.text,
        reader=reader_of(request),
        collection=query.collection,
        sort=query.sort,
        offset=offset,
        limit=limit,
        facets=search.EVERY_FACET,
        fold=request.query_params.get("fold") == "1",
    )
    return JSONResponse(
        {
            "query": page.text,
            "pages": page.pages,
            "exact": page.exact,
            "offset": offset,
            "limit": limit,
            "hits": [_hit(request, query.collection, hit) for hit in page.hits],
            "years": page.years,
            "months": page.months,
            "facets": {facet.value: dict(values) for facet, values in page.facets.items()},
            "spelling": page.spelling,
        }
    )


def suggest(request: Request) -> Response:
    typed = request.query_params.get("q", "")[:LONGEST_QUERY]
    completions = search.suggest(site_of(request).archive, typed, reader=reader_of(request))
    return JSONResponse([typed, completions], media_type="application/x-suggestions+json")


def trend(request: Request) -> Response:
    words = [word for word in request.query_params.getlist("w") if word.strip()]
    trend = search.trend(
        site_of(request).archive,
        words,
        reader=reader_of(request),
        collection=read_query(request).collection,
    )
    return JSONResponse({"words": trend.words, "volume": trend.volume})


def opensearch(request: Request) -> Response:
    site = site_of(request)
    root = ElementTree.Element("OpenSearchDescription", xmlns=_OPENSEARCH)
    ElementTree.SubElement(root, "ShortName").text = site.archive.config.archive.name[:16]
    ElementTree.SubElement(root, "LongName").text = site.archive.config.archive.name[:48]
    ElementTree.SubElement(root, "Description").text = site.archive.config.archive.purpose[:1024]
    for kind, path in (
        ("text/html", "/search?q={searchTerms}&page={startPage?}"),
        ("application/atom+xml", "/search.atom?q={searchTerms}"),
        ("application/json", "/api/search?q={searchTerms}&limit={count?}&offset={startIndex?}"),
        ("application/x-suggestions+json", "/api/suggest?q={searchTerms}"),
    ):
        # Offsets count from 0 here; the default of OpenSearch is 1.
        element = ElementTree.SubElement(root, "Url", type=kind, template=site.portal_url + path)
        if "{startIndex?}" in path:
            element.set("indexOffset", "0")
    ElementTree.SubElement(root, "InputEncoding").text = "UTF-8"
    return Response(_xml(root), media_type="application/opensearchdescription+xml")


def feed(request: Request) -> Response:
    query = read_query(request)
    if not query.words:
        return RedirectResponse("/search", status_code=303)
    return _feed(request, query.text, query.words, query.collection, reader_of(request))


def saved_feed(request: Request) -> Response:
    """The feed of a saved search. Anyone who has the token sees what the public may see, never more."""
    saved = saved_searches.get(site_of(request).archive, request.path_params["token"])
    return _feed(request, saved.query, saved.name, saved.collection, ANYONE)


def saved_list(request: Request) -> Response:
    searches = saved_searches.list_of(site_of(request).archive, name_of(request))
    return render(request, "searches.html", searches=searches, link=_link)


async def save(request: Request) -> Response:
    form = await read_form(request, limits=SHORT_FORM)
    return await run_in_threadpool(_save_or_remove, request, form)


def _save_or_remove(request: Request, form: dict[str, str]) -> Response:
    archive, person = site_of(request).archive, name_of(request)
    if form.get("remove"):
        if question := confirmation.ask(request, form, "search", back="/searches"):
            return question
        saved_searches.remove(archive, person, form["remove"][:100])
    else:
        collection = form.get("collection", "all")
        if not address.COLLECTION.match(collection):
            raise address.BadAddress("errors.text_collection", collection=collection[:60])
        text = form.get("q", "")[:LONGEST_QUERY]
        saved_searches.save(archive, person, name=form.get("name", ""), query=text, collection=collection)
    return RedirectResponse("/searches", status_code=303)


def _link(saved: SavedSearch) -> str:
    return "/search?" + urlencode({"q": saved.query, "collection": saved.collection})


def _own_address(request: Request) -> str:
    """The address of this feed, for clients that stored the feed without its address."""
    query = request.url.query
    return site_of(request).portal_url + quote(request.url.path) + (f"?{query}" if query else "")


def _feed(request: Request, text: str, title: str, collection: str, reader: Reader) -> Response:
    site = site_of(request)
    page = search.search(
        site.archive, text, reader=reader, collection=collection, sort=SearchSort.NEWEST, limit=FEED_HITS
    )
    own = site.portal_url + "/search?" + urlencode({"q": text, "collection": collection, "sort": "newest"})
    root = ElementTree.Element("feed", xmlns=_ATOM)
    ElementTree.SubElement(root, "title").text = f"{title} · {site.archive.config.archive.name}"
    ElementTree.SubElement(root, "id").text = own
    ElementTree.SubElement(root, "link", href=own)
    ElementTree.SubElement(root, "link", rel="self", type="application/atom+xml", href=_own_address(request))
    newest = max((hit.timestamp for hit in page.hits), default="19960101000000")
    ElementTree.SubElement(root, "updated").text = to_iso(from_timestamp(newest))
    ElementTree.SubElement(
        ElementTree.SubElement(root, "author"), "name"
    ).text = site.archive.config.archive.name
    for hit in page.hits:
        entry = ElementTree.SubElement(root, "entry")
        where = site.portal_url + address.path_of(collection, hit.timestamp, hit.url)
        ElementTree.SubElement(entry, "title").text = hit.title or hit.url
        ElementTree.SubElement(entry, "id").text = where
        ElementTree.SubElement(entry, "link", href=where)
        ElementTree.SubElement(entry, "updated").text = to_iso(from_timestamp(hit.timestamp))
        ElementTree.SubElement(entry, "summary").text = hit.snippet
    return Response(_xml(root), media_type="application/atom+xml")


def _xml(root: ElementTree.Element) -> bytes:
    document: bytes = ElementTree.tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + document


def _hit(request: Request, collection: str, hit: Hit) -> dict[str, Any]:
    portal = site_of(request).portal_url
    return {
        "url": hit.url,
        "timestamp": hit.timestamp,
        "title": hit.title,
        "snippet": hit.snippet,
        "marks": hit.marks,
        "mime": hit.mime,
        "format": hit.format,
        "size": hit.size_bytes,
        "language": hit.language,
        "versions": hit.versions,
        "similar": hit.similar,
        "score": hit.score,
        "open": portal + address.path_of(collection, hit.timestamp, hit.url),
        "all_versions": portal + address.path_of(collection, "*", hit.url),
    }


def _number(request: Request, name: str, default: int, highest: int) -> int:
    number = find_number(request.query_params.get(name, ""))
    return default if number is None else min(number, highest)


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    common, paging = _query_parameters(), _paging_parameters()
    terms = {
        **parameter("w", "A query; repeat it to compare several."),
        "schema": {"type": "array", "items": {"type": "string"}},
    }
    form = {
        **parameter("form", "Format of the file.", required=True),
        "schema": {"enum": [form.value for form in ExportForm]},
    }
    return {
        "/api/search": _operation("One page of results, one hit per page", [*common, *paging], _PAGE),
        "/api/images": _operation("Pictures by the text that describes them", [*common, paging[2]], _IMAGES),
        "/api/suggest": _operation(
            "Completions", [common[0]], {"type": "array"}, "application/x-suggestions+json"
        ),
        "/api/trend": _operation("Captures that contain a term, by year", [terms, common[1]], _TREND),
        "/search.atom": _operation("The newest results as a feed", common, _TEXT, "application/atom+xml"),
        "/search/export": _operation(
            "All results, streamed", [*common, form], _TEXT, "application/octet-stream"
        ),
    }


def _query_parameters() -> list[dict[str, Any]]:
    return [
        parameter(
            "q",
            "Words, phrases, -not, OR, site: type: lang: title: author: genre: keyword: "
            "before: after: as-of:",
            required=True,
        ),
        parameter("collection", "Search in one collection."),
        parameter("from", "First year or month: 2010 or 2010-03."),
        parameter("to", "Last year or month."),
        parameter("as_of", "The web as it was at that time: 2010, 2010-03 or 2010-03-15."),
    ]


def _paging_parameters() -> list[dict[str, Any]]:
    return [
        parameter("sort", "relevance, oldest or newest."),
        parameter("limit", f"Maximum number of results, up to {MOST_HITS}.", "integer"),
        parameter("offset", "Number of results to skip.", "integer"),
        parameter("fold", "1 shows only the best of pages with nearly the same text."),
    ]


def _operation(
    summary: str, parameters: list[dict[str, Any]], schema: dict[str, Any], media: str = "application/json"
) -> dict[str, Any]:
    answer = {"description": "The answer.", "content": {media: {"schema": schema}}}
    return {
        "get": {
            "summary": summary,
            "parameters": parameters,
            "responses": {"200": answer, "400": {"description": "The query is invalid."}},
        }
    }


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_INTEGER, _TEXT = {"type": "integer"}, {"type": "string"}
_COUNTS = {"type": "object", "additionalProperties": _INTEGER}
_HIT = _object(
    **dict.fromkeys(
        ("url", "timestamp", "title", "snippet", "mime", "format", "language", "open", "all_versions"), _TEXT
    ),
    **dict.fromkeys(("size", "versions", "similar"), _INTEGER),
    score={"type": "number"},
    marks=_array(_array(_INTEGER)),
)
_PAGE = _object(
    query=_TEXT,
    pages=_INTEGER,
    exact={"type": "boolean"},
    offset=_INTEGER,
    limit=_INTEGER,
    hits=_array(_HIT),
    years=_COUNTS,
    months=_COUNTS,
    facets={"type": "object", "additionalProperties": _COUNTS},
    spelling=_TEXT,
)
_IMAGE = _object(
    **dict.fromkeys(("url", "timestamp", "words", "mime", "thumbnail", "open"), _TEXT),
    page=_object(**dict.fromkeys(("url", "title", "timestamp"), _TEXT)),
)
_IMAGES = _object(query=_TEXT, pages=_INTEGER, next_offset=_INTEGER, images=_array(_IMAGE))
_TREND = _object(words={"type": "object", "additionalProperties": _COUNTS}, volume=_COUNTS)
