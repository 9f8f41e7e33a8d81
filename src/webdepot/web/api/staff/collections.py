"""Collections for programs: list them and write what their pages say. Harvests create
collections; they cannot be created or deleted here.

GET   /api/collections
GET   /api/collections/{collection}      PUT   /api/collections/{collection}
"""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.access.collection_pages import CollectionPage
from webdepot.errors import InputError
from webdepot.services.access import collections
from webdepot.services.access.collections import LONGEST_TEXT, LONGEST_TITLE
from webdepot.web.api.input_fields import FieldKind, InputField, describe_body, read_json, read_query
from webdepot.web.api.openapi_parts import FLAG, TEXT, list_of, object_of, operation, parameter, ref
from webdepot.web.site import Site, name_of, site_of

PAGE = (
    InputField(
        name="title", meaning="The title; the name of the collection if empty.", longest=LONGEST_TITLE
    ),
    InputField(name="text", meaning="Paragraphs, with empty lines between them.", longest=LONGEST_TEXT),
    InputField(name="is_public", meaning="Whether it has a page. Default: true.", kind=FieldKind.FLAG),
    InputField(
        name="picture_url",
        meaning="The page whose picture represents the collection; empty for that of its newest site.",
        longest=4000,
    ),
    InputField(name="picture_timestamp", meaning="The version of that page, 14 digits.", longest=14),
)


def show_list(request: Request) -> Response:
    read_query(request, ())
    site = site_of(request)
    names = collections.names(site.archive, hidden=True)
    pages = [collections.get(site.archive, name, hidden=True) for name in names]
    return JSONResponse({"collections": [_page_json(site, page) for page in pages]})


def show(request: Request) -> Response:
    read_query(request, ())
    site = site_of(request)
    page = collections.get(site.archive, request.path_params["collection"], hidden=True)
    return JSONResponse(_page_json(site, page))


async def save(request: Request) -> Response:
    return await run_in_threadpool(_save, request, await read_json(request, PAGE))


def _save(request: Request, sent: dict[str, Any]) -> Response:
    """Replace the page of the collection."""
    site, name = site_of(request), request.path_params["collection"]
    collections.get(site.archive, name, hidden=True)  # NotFound before anything else
    url, timestamp = sent.get("picture_url", ""), sent.get("picture_timestamp", "")
    if bool(url) != bool(timestamp) or (timestamp and not (len(timestamp) == 14 and timestamp.isdecimal())):
        raise InputError("A picture needs both picture_url and picture_timestamp, with 14 digits.")
    page = CollectionPage(
        name=name,
        title=" ".join(sent.get("title", "").split()),
        text=sent.get("text", ""),
        is_public=sent.get("is_public", True),
        picture_url=url,
        picture_timestamp=timestamp,
    )
    collections.save(site.archive, page, by=name_of(request))
    return JSONResponse(_page_json(site, collections.get(site.archive, name, hidden=True)))


def _page_json(site: Site, page: CollectionPage) -> dict[str, Any]:
    return {
        "name": page.name,
        "title": page.title,
        "text": page.text,
        "is_public": page.is_public,
        "picture_url": page.picture_url,
        "picture_timestamp": page.picture_timestamp,
        "page": f"{site.portal_url}/collections/{page.name}",
    }


# --- description ---

SCHEMAS = {
    "Collection": object_of(
        {
            "name": TEXT,
            "title": TEXT,
            "text": TEXT,
            "is_public": FLAG,
            "picture_url": TEXT,
            "picture_timestamp": TEXT,
            "page": TEXT,
        }
    )
}


def describe_api(_: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    collection = ref("Collection")
    name = parameter("collection", "Name of the collection.", where="path", required=True)
    listed = object_of({"collections": list_of(collection)})
    return {
        "/api/collections": {"get": operation("listCollections", "Collections by name", listed)},
        "/api/collections/{collection}": {
            "parameters": [name],
            "get": operation("getCollection", "One collection", collection, errors=[404]),
            "put": operation(
                "saveCollection",
                "Write the page of a collection",
                collection,
                body=describe_body(PAGE),
                errors=[404],
            ),
        },
    }
