"""Search for pictures.

/search/images     pictures by the words said about them, with small pictures from the replay face
/api/images        the same for machines
/-/thumbnail/...   on the replay face: a small picture of an archived one; the portal's origin never serves archived pixels
"""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from webdepot.errors import InputError
from webdepot.formats.thumbnail import MIME
from webdepot.services.access import images
from webdepot.services.access.images import ImageHit, ImageHits
from webdepot.services.admin import archive_status
from webdepot.web.reader.search import read, with_period
from webdepot.web.replay import address
from webdepot.web.security import portal_headers
from webdepot.web.site import reader_of, render, site_of

_LAST_OFFSET = 10_000


def pictures(request: Request) -> Response:
    asked, site = read(request), site_of(request)
    found, wrong = None, ""
    if asked.query:
        try:
            found = _found(request)
        except InputError as error:
            wrong = str(error)
    response = render(
        request,
        "pictures.html",
        status=400 if wrong else 200,
        asked=asked,
        query=asked.query,
        collection=asked.collection,
        collections=[one.name for one in archive_status.collections(site.archive)],
        wrong=wrong,
        found=found,
        small=lambda picture: site.replay_url + small_path(asked.collection, picture),
        more=asked.link("/search/images", offset=found.next_offset) if found and found.next_offset else "",
    )
    policy = portal_headers(site.replay_url, site.frame_url)["Content-Security-Policy"]
    response.headers["Content-Security-Policy"] = policy.replace(
        "img-src 'self'", f"img-src 'self' {site.replay_url}"
    )
    return response


def as_json(request: Request) -> Response:
    asked, site = read(request), site_of(request)
    try:
        found = _found(request)
    except InputError as error:
        return JSONResponse({"error": str(error)}, status_code=400)
    return JSONResponse(
        {
            "query": asked.query,
            "pages": found.pages,
            "next_offset": found.next_offset,
            "images": [
                {
                    "url": one.url,
                    "timestamp": one.timestamp,
                    "words": one.words,
                    "mime": one.mime,
                    "thumbnail": site.replay_url + small_path(asked.collection, one),
                    "open": site.portal_url + address.path_of(asked.collection, one.timestamp, one.url),
                    "page": {"url": one.page_url, "title": one.page_title, "timestamp": one.page_timestamp},
                }
                for one in found.shown
            ],
        }
    )


def thumbnail(request: Request) -> Response:
    """On the replay face, past the same gate as the picture itself."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    found = address.find_address(raw.removeprefix(b"/-/thumbnail"), request.scope["query_string"])
    if found is None:
        raise HTTPException(404)
    archive = site_of(request).archive
    stamp = address.nearest_stamp(found.timestamp, archive.clock())
    data = images.thumbnail(archive, found.url, stamp, reader=reader_of(request), collection=found.collection)
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, max-age=300",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }
    return Response(data, media_type=MIME, headers=headers)


def small_path(collection: str, picture: ImageHit) -> str:
    """A drawing (SVG) scales by itself, and runs nothing where it is shown as a picture."""
    if picture.mime == "image/svg+xml":
        return address.path_of(collection, f"{picture.timestamp}id_", picture.url)
    return "/-/thumbnail" + address.path_of(collection, picture.timestamp, picture.url)


def _found(request: Request) -> ImageHits:
    asked = read(request)
    given = request.query_params.get("offset", "")
    offset = min(int(given), _LAST_OFFSET) if given.isascii() and given.isdigit() and len(given) < 6 else 0
    return images.find(
        site_of(request).archive,
        with_period(asked),
        reader=reader_of(request),
        collection=asked.collection,
        offset=offset,
    )
