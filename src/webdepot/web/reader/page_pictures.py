"""Small pictures of archived pages, for lists: `/picture?url=…&at=…&collection=…&size=card`; and making those
of start pages when staff open them.
"""

from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from webdepot.access.policy import ANYONE
from webdepot.accounts.roles import STAFF
from webdepot.formats.thumbnail import MIME
from webdepot.model import EVERYTHING, Capture
from webdepot.services.access import gate
from webdepot.services.access.browse import page_pictures
from webdepot.services.access.browse.page_pictures import PictureSize
from webdepot.web.background import BackgroundRuns
from webdepot.web.replay import address
from webdepot.web.site import may, of_app, reader_of, site_of

_RUN = "picture"
_MOST_TRIED = 1000
"""Pictures that one server process tries to make; `webdepot pictures build` makes the others."""


def send(request: Request) -> Response:
    """A picture of a page that this reader may see: always a new JPEG, with nothing of the original in it but
    its pixels, so that the portal can show it.
    """
    query, archive = request.query_params, site_of(request).archive
    collection = query.get("collection", EVERYTHING).lower()
    place = address.find_address(f"/{collection}/{query.get('at', '')}/{query.get('url', '')}".encode(), b"")
    size = query.get("size", "card").upper()
    if place is None or place.modifier or size not in PictureSize.__members__:
        raise HTTPException(400)
    data = page_pictures.small(
        archive,
        place.url,
        address.nearest_stamp(place.timestamp, archive.clock()),
        PictureSize[size],
        collection=place.collection,
        reader=reader_of(request, place),
    )
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, max-age=300"}
    return Response(data, media_type=MIME, headers=headers)


class _PictureRuns:
    """Pictures that are made in the background, one at a time, each tried once."""

    def __init__(self) -> None:
        self.runs = BackgroundRuns()
        self.tried: set[str] = set()


def make_missing(request: Request, capture: Capture) -> None:
    """Make the picture of a start page that a member of staff opens, if it has none, in the background. Does
    nothing if there is no browser on the server.
    """
    archive, shared = site_of(request).archive, of_app(request, _PictureRuns)
    place = f"{capture.key} {capture.timestamp}"
    if (
        not may(request, STAFF)
        or not capture.key.endswith(")/")
        or place in shared.tried
        or shared.runs.is_running(_RUN)
        or page_pictures.find(archive, capture) is not None
        or not gate.is_open(archive, capture, ANYONE)
    ):
        return
    if len(shared.tried) < _MOST_TRIED:
        shared.tried.add(place)
        # Loaded only where staff work: it needs the browser and the depot.
        from webdepot.services.depot import picture_maker, pictures

        if picture_maker.find_browser(archive):
            shared.runs.start(_RUN, lambda: pictures.build_page(archive, capture))


def path_of(url: str, timestamp: str, *, collection: str = EVERYTHING, size: str = "card") -> str:
    """The path of a picture."""
    query = {"url": url, "at": timestamp, "size": size}
    if collection != EVERYTHING:
        query["collection"] = collection
    return f"/picture?{urlencode(query)}"
