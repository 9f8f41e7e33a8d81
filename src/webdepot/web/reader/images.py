"""Search for images.

/search/images     images by the text that describes them, with thumbnails from the replay origin
/api/images        the same for machines
/-/thumbnail/...   on the replay origin: the thumbnail of an archived image; the portal's origin never
                   serves archived content
"""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.errors import InputError
from webdepot.formats.thumbnail import MIME
from webdepot.services.access import collections, images
from webdepot.services.access.images import ImageHit, ImageHits
from webdepot.web.forms import find_number
from webdepot.web.problems import explain
from webdepot.web.reader.search import SearchQuery, read_query
from webdepot.web.replay import address, staff_passes
from webdepot.web.security import portal_policy
from webdepot.web.site import reader_of, render, site_of

_LAST_OFFSET = 10_000


def show(request: Request) -> Response:
    query, site = read_query(request), site_of(request)
    pictures, wrong = None, ""
    if query.words:
        try:
            pictures = _find(request, query)
        except InputError as error:
            wrong = explain(request, error)
    response = render(
        request,
        "pictures.html",
        status=400 if wrong else 200,
        asked=query,
        query=query.words,
        collection=query.collection,
        collections=collections.names(site.archive),
        wrong=wrong,
        found=pictures,
        small=lambda picture: _thumbnail_url(request, query.collection, picture),
        more=query.link("/search/images", offset=pictures.next_offset)
        if pictures and pictures.next_offset
        else "",
    )
    policy = portal_policy(site.frame_url, pictures_url=site.replay_url)
    response.headers["Content-Security-Policy"] = policy
    return response


def as_json(request: Request) -> Response:
    query, site = read_query(request), site_of(request)
    pictures = _find(request, query)
    return JSONResponse(
        {
            "query": query.words,
            "pages": pictures.pages,
            "next_offset": pictures.next_offset,
            "images": [
                {
                    "url": image.url,
                    "timestamp": image.timestamp,
                    "words": image.words,
                    "mime": image.mime,
                    "thumbnail": _thumbnail_url(request, query.collection, image),
                    "open": site.portal_url + address.path_of(query.collection, image.timestamp, image.url),
                    "page": {
                        "url": image.page_url,
                        "title": image.page_title,
                        "timestamp": image.page_timestamp,
                    },
                }
                for image in pictures.shown
            ],
        }
    )


def send_thumbnail(request: Request) -> Response:
    """The thumbnail of an image that this reader may see."""
    place = address.address_of(request, below="/-/thumbnail")
    if place is None:
        raise HTTPException(404)
    archive = site_of(request).archive
    stamp = address.nearest_stamp(place.timestamp, archive.clock())
    reader = reader_of(request, place)
    data = images.thumbnail(archive, place.url, stamp, reader=reader, collection=place.collection)
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, max-age=300",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    return Response(data, media_type=MIME, headers=headers)


def _thumbnail_url(request: Request, collection: str, picture: ImageHit) -> str:
    """The address of a thumbnail, with a pass for people who are signed in. An SVG file is its own
    thumbnail: it scales, and runs no scripts when shown as a picture.
    """
    site, point = site_of(request), reader_of(request).access_point
    token = staff_passes.make(
        site.archive.database, site.archive.clock(), point, collection=collection, url=picture.url
    )
    shelf = address.shelf_of(collection, token)
    if picture.mime == "image/svg+xml":
        return site.replay_url + address.path_of(shelf, f"{picture.timestamp}id_", picture.url)
    return site.replay_url + "/-/thumbnail" + address.path_of(shelf, picture.timestamp, picture.url)


def _find(request: Request, query: SearchQuery) -> ImageHits:
    offset = min(find_number(request.query_params.get("offset", "")) or 0, _LAST_OFFSET)
    return images.find(
        site_of(request).archive,
        query.text,
        reader=reader_of(request),
        collection=query.collection,
        offset=offset,
    )
