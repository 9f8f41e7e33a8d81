"""Two versions of a page compared: words, links and pictures, side by side, and by wiping one screenshot over
the other.
"""

from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import NotFound
from webdepot.model import EVERYTHING, Capture
from webdepot.services.access import comparison, lookup
from webdepot.services.review import reviews
from webdepot.web.problems import problem
from webdepot.web.replay import address
from webdepot.web.replay.address import Address
from webdepot.web.site import Face, here, language_of, reader_of, render, site_of


def compare(request: Request) -> Response:
    """`/compare?url=…&at=…&with=…&collection=…`: archived pages may be framed by the frame face alone, so it
    stands there.
    """
    site = site_of(request)
    if site.face is Face.PORTAL and site.frame_url != site.portal_url:
        return RedirectResponse(site.frame_url + here(request), status_code=302)
    one, other = _asked(request, "at"), _asked(request, "with")
    stamps = [address.nearest_stamp(each.timestamp, site.archive.clock()) for each in (one, other)]
    wanted = stamps[1] if other.timestamp else ""
    try:
        found = comparison.run(
            site.archive, one.url, stamps[0], wanted, collection=one.collection, reader=reader_of(request)
        )
    except lookup.NotKept:
        return problem(request, 404, language_of(request).texts["missing.heading"])
    except NotFound as error:
        return problem(request, 404, str(error))
    return render(
        request,
        "compare.html",
        found=found,
        collection=one.collection,
        start=_starts(request, one, found),
        picture=_picture_path,
    )


def picture(request: Request) -> Response:
    """The screenshot of a version; nothing but a picture, whatever its bytes say."""
    archive, asked = site_of(request).archive, _asked(request, "at")
    stamp = address.nearest_stamp(asked.timestamp, archive.clock())
    capture = lookup.find_closest(
        archive, asked.url, stamp, collection=asked.collection, reader=reader_of(request)
    )
    shot = comparison.find_screenshot(archive, capture)
    if shot is None:
        raise HTTPException(404)
    mime, data = reviews.read_screenshot(archive, shot.id)
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Cache-Control": "no-cache, private",
    }
    return Response(data, media_type=mime, headers=headers)


def _asked(request: Request, name: str) -> Address:
    given = request.query_params
    collection = given.get("collection", EVERYTHING).lower()
    found = address.find_address(
        f"/{collection}/{given.get(name, '')}/{given.get('url', '').strip()}".encode(), b""
    )
    if found is None or found.modifier:
        raise HTTPException(400)
    return found


def _starts(request: Request, asked: Address, found: comparison.Comparison) -> list[tuple[Capture, str]]:
    replay_url = site_of(request).replay_url
    return [
        (
            side.capture,
            f"{replay_url}/-/start{address.path_of(asked.collection, side.capture.timestamp + 'mp_', side.capture.url)}",
        )
        for side in (found.before, found.after)
    ]


def _picture_path(collection: str, capture: Capture) -> str:
    return "/compare/picture?" + urlencode(
        {"url": capture.url, "at": capture.timestamp, "collection": collection}
    )
