"""Two versions of a page compared: text, links and images, side by side, and with a slider between two
screenshots.
"""

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import NotFound
from webdepot.model import EVERYTHING, Capture
from webdepot.services.access import comparison, gate, lookup
from webdepot.services.access.browse import page_pictures
from webdepot.web.problems import explain, problem
from webdepot.web.replay import address, staff_passes
from webdepot.web.replay.address import ReplayAddress
from webdepot.web.security import portal_policy
from webdepot.web.site import WebOrigin, here, language_of, reader_by_network, reader_of, render, site_of


def compare(request: Request) -> Response:
    """`/compare?url=…&at=…&with=…&collection=…`, on the frame's origin, since only that may frame archived
    pages.
    """
    site = site_of(request)
    first, second = _asked(request, "at"), _asked(request, "with")
    now = site.archive.clock()
    if site.origin is WebOrigin.PORTAL and site.frame_url != site.portal_url:
        point = reader_of(request).access_point
        token = staff_passes.make(
            site.archive.database, now, point, collection=first.collection, url=first.url
        )
        needed = f"/-/pass/{token}" if token else ""
        return RedirectResponse(site.frame_url + needed + here(request), status_code=302)
    reader = reader_of(request, first)
    try:
        compared = comparison.run(
            site.archive,
            first.url,
            address.nearest_stamp(first.timestamp, now),
            address.nearest_stamp(second.timestamp, now) if second.timestamp else "",
            collection=first.collection,
            reader=reader,
        )
    except lookup.NotKept:
        return problem(request, 404, language_of(request).texts["missing.heading"])
    except NotFound as error:
        return problem(request, 404, explain(request, error))
    captures = (compared.before.capture, compared.after.capture)
    framed_urls = [site.hosts.url_for(capture.url) for capture in captures]
    return render(
        request,
        "compare.html",
        headers={"Content-Security-Policy": portal_policy(site.frame_url, framed_urls=framed_urls)},
        found=compared,
        collection=first.collection,
        start=_starts(request, first, captures),
        picture=_picture_path,
    )


def send_picture(request: Request) -> Response:
    """The screenshot of a version, never interpreted as anything but an image."""
    archive, place = site_of(request).archive, _asked(request, "at")
    stamp = address.nearest_stamp(place.timestamp, archive.clock())
    reader = reader_of(request, place)
    capture = lookup.find_closest(archive, place.url, stamp, collection=place.collection, reader=reader)
    screenshot = page_pictures.find_shown(archive, capture, reader)
    if screenshot is None:
        raise HTTPException(404)
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cache-Control": "no-cache, private",
    }
    return Response(page_pictures.read(archive, screenshot), media_type=screenshot.mime, headers=headers)


def _asked(request: Request, name: str) -> ReplayAddress:
    query = request.query_params
    collection = query.get("collection", EVERYTHING).lower()
    place = address.find_address(
        f"/{collection}/{query.get(name, '')}/{query.get('url', '').strip()}".encode(), b""
    )
    if place is None or place.modifier:
        raise HTTPException(400)
    return place


def _starts(request: Request, asked: ReplayAddress, captures: Sequence[Capture]) -> list[tuple[Capture, str]]:
    site = site_of(request)
    shelf = asked.collection
    if not all(gate.is_open(site.archive, capture, reader_by_network(request)) for capture in captures):
        # Shown only to people who are signed in: both are versions of one page.
        now, point = site.archive.clock(), reader_of(request, asked).access_point
        token = staff_passes.make(
            site.archive.database, now, point, collection=asked.collection, url=asked.url
        )
        shelf = address.shelf_of(asked.collection, token)
    return [
        (
            capture,
            f"{site.hosts.url_for(capture.url)}/-/start"
            + address.path_of(shelf, f"{capture.timestamp}mp_", capture.url),
        )
        for capture in captures
    ]


def _picture_path(collection: str, capture: Capture) -> str:
    return "/compare/picture?" + urlencode(
        {"url": capture.url, "at": capture.timestamp, "collection": collection}
    )
