"""Search for machines: JSON, described by OpenAPI 3.1; suggestions for browsers (OpenSearch 1.1); Atom feeds
(RFC 4287).

/api/search         one page of results
/api/suggest        ["typed", ["completed", …]] as browsers ask for it
/api/trend          words over the years
/opensearch.xml     the box in a browser's own search field
/search.atom        the newest results of a query
/searches           a person's saved searches; /searches/TOKEN.atom opens one without signing in, as the public sees it
"""

from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from webdepot.access import saved
from webdepot.access.policy import ANYONE, Reader
from webdepot.access.saved import SavedSearch
from webdepot.errors import InputError
from webdepot.ports import Hit, SearchSort
from webdepot.services.access import search
from webdepot.services.access.export import ExportForm
from webdepot.times import from_timestamp, to_iso
from webdepot.web.api.openapi_parts import parameter
from webdepot.web.reader.search import LONGEST_QUERY, read, with_period
from webdepot.web.replay import address
from webdepot.web.sign_in import read_form
from webdepot.web.site import Site, person_of, reader_of, render, site_of

MOST_HITS = 100
FEED_HITS = 30
_ATOM = "http://www.w3.org/2005/Atom"
_OPENSEARCH = "http://a9.com/-/spec/opensearch/1.1/"


def as_json(request: Request) -> Response:
    asked = read(request)
    limit, offset = _number(request, "limit", 10, MOST_HITS), _number(request, "offset", 0, 100_000)
    try:
        page = search.search(
            site_of(request).archive,
            with_period(asked),
            reader=reader_of(request),
            collection=asked.collection,
            sort=asked.sort,
            offset=offset,
            limit=limit,
            facets=search.EVERY_FACET,
            fold=request.query_params.get("fold") == "1",
        )
    except InputError as error:
        return JSONResponse({"error": str(error)}, status_code=400)
    return JSONResponse(
        {
            "query": page.text,
            "pages": page.pages,
            "exact": page.exact,
            "offset": offset,
            "limit": limit,
            "hits": [_hit(request, asked.collection, hit) for hit in page.hits],
            "years": page.years,
            "months": page.months,
            "facets": {facet.value: dict(values) for facet, values in page.facets.items()},
            "spelling": page.spelling,
        }
    )


def suggest(request: Request) -> Response:
    typed = request.query_params.get("q", "")[:LONGEST_QUERY]
    found = search.suggest(site_of(request).archive, typed, reader=reader_of(request))
    return JSONResponse([typed, found], media_type="application/x-suggestions+json")


def trend(request: Request) -> Response:
    words = [word for word in request.query_params.getlist("w") if word.strip()]
    try:
        found = search.trend(
            site_of(request).archive, words, reader=reader_of(request), collection=read(request).collection
        )
    except InputError as error:
        return JSONResponse({"error": str(error)}, status_code=400)
    return JSONResponse({"words": found.words, "volume": found.volume})


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
        ElementTree.SubElement(root, "Url", type=kind, template=site.portal_url + path)
    ElementTree.SubElement(root, "InputEncoding").text = "UTF-8"
    return Response(_xml(root), media_type="application/opensearchdescription+xml")


def feed(request: Request) -> Response:
    asked = read(request)
    if not asked.query:
        return RedirectResponse("/search", status_code=303)
    return _feed(request, with_period(asked), asked.query, asked.collection, reader_of(request))


def saved_feed(request: Request) -> Response:
    """Whoever has the token sees what anybody may see: never more than the public."""
    with site_of(request).archive.database.reading() as connection:
        kept = saved.get(connection, request.path_params["token"])
    return _feed(request, kept.query, kept.name, kept.collection, ANYONE)


def saved_list(request: Request) -> Response:
    person = person_of(request)
    with site_of(request).archive.database.reading() as connection:
        found = saved.of_person(connection, person.name if person else "")
    return render(request, "searches.html", searches=found, link=_link)


async def save(request: Request) -> Response:
    form = await read_form(request)
    return await run_in_threadpool(_changed, request, form)


def _changed(request: Request, form: dict[str, str]) -> Response:
    archive, person = site_of(request).archive, person_of(request)
    name = person.name if person else ""
    with archive.database.transaction() as connection:
        if form.get("remove"):
            saved.remove(connection, name, form["remove"][:100])
        else:
            collection = form.get("collection", "all")
            if not address.COLLECTION.match(collection):
                raise address.BadAddress("errors.text_collection", collection=collection[:60])
            text = form.get("q", "")[:LONGEST_QUERY]
            saved.save(
                connection,
                name,
                name=form.get("name", ""),
                query=text,
                collection=collection,
                now=archive.clock(),
            )
    return RedirectResponse("/searches", status_code=303)


def _link(kept: SavedSearch) -> str:
    return "/search?" + urlencode({"q": kept.query, "collection": kept.collection})


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
    made: bytes = ElementTree.tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + made


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
    given = request.query_params.get(name, "")
    return min(int(given), highest) if given.isascii() and given.isdigit() and len(given) < 9 else default


def described(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    common = [
        parameter(
            "q",
            "Words, phrases, -not, OR, site: type: lang: title: author: genre: keyword: before: after: as-of:",
            required=True,
        ),
        parameter("collection", "Search in one collection."),
        parameter("from", "First year or month: 2010 or 2010-03."),
        parameter("to", "Last year or month."),
        parameter("as_of", "The web as it stood then: 2010, 2010-03 or 2010-03-15."),
    ]
    paging = [
        parameter("sort", "relevance, oldest or newest."),
        parameter("limit", f"So many results, at most {MOST_HITS}.", "integer"),
        parameter("offset", "Leave out so many at the beginning.", "integer"),
        parameter("fold", "1 shows of pages with nearly the same text only the best."),
    ]
    words = {
        **parameter("w", "A query; repeat it to compare."),
        "schema": {"type": "array", "items": {"type": "string"}},
    }
    whole, text, counts = (
        {"type": "integer"},
        {"type": "string"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
    )
    hit = {
        "type": "object",
        "properties": {
            **dict.fromkeys(
                (
                    "url",
                    "timestamp",
                    "title",
                    "snippet",
                    "mime",
                    "format",
                    "language",
                    "open",
                    "all_versions",
                ),
                text,
            ),
            **dict.fromkeys(("size", "versions", "similar"), whole),
            "score": {"type": "number"},
            "marks": {"type": "array", "items": {"type": "array", "items": whole}},
        },
    }
    page = {
        "type": "object",
        "properties": {
            "query": text,
            "pages": whole,
            "exact": {"type": "boolean"},
            "offset": whole,
            "limit": whole,
            "hits": {"type": "array", "items": hit},
            "years": counts,
            "months": counts,
            "facets": {"type": "object", "additionalProperties": counts},
            "spelling": text,
        },
    }
    image = {
        "type": "object",
        "properties": {
            **dict.fromkeys(("url", "timestamp", "words", "mime", "thumbnail", "open"), text),
            "page": {"type": "object", "properties": dict.fromkeys(("url", "title", "timestamp"), text)},
        },
    }
    images = {
        "type": "object",
        "properties": {
            "query": text,
            "pages": whole,
            "next_offset": whole,
            "images": {"type": "array", "items": image},
        },
    }
    trends = {
        "type": "object",
        "properties": {"words": {"type": "object", "additionalProperties": counts}, "volume": counts},
    }
    form = {
        **parameter("form", "What the result is written as.", required=True),
        "schema": {"enum": [form.value for form in ExportForm]},
    }

    def answer(
        words: str, parameters: list[dict[str, Any]], schema: dict[str, Any], media: str = "application/json"
    ) -> dict[str, Any]:
        found = {"description": "The answer.", "content": {media: {"schema": schema}}}
        return {
            "get": {
                "summary": words,
                "parameters": parameters,
                "responses": {"200": found, "400": {"description": "A wrong query."}},
            }
        }

    return {
        "/api/search": answer("One page of results: one hit per page", [*common, *paging], page),
        "/api/images": answer("Pictures by the words said about them", [*common, paging[2]], images),
        "/api/suggest": answer(
            "Completions", [common[0]], {"type": "array"}, "application/x-suggestions+json"
        ),
        "/api/trend": answer("Captures with words by year", [words, common[1]], trends),
        "/search.atom": answer("The newest results as a feed", common, text, "application/atom+xml"),
        "/search/export": answer(
            "Everything that matches, streamed", [*common, form], text, "application/octet-stream"
        ),
    }
