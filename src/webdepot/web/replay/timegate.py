"""The TimeGate of Memento (RFC 7089): from an address and `Accept-Datetime` to the nearest capture."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from webdepot.services.access import lookup
from webdepot.services.access.replay import replay_answer
from webdepot.times import from_http, to_timestamp
from webdepot.web.replay import address
from webdepot.web.replay.address import ReplayAddress
from webdepot.web.site import machine_reader, site_of

EXPOSED = {"Access-Control-Expose-Headers": "Content-Location, Link, Location, Memento-Datetime"}
"""Headers that pages of other sites may read."""


def is_meant(request: Request, asked: ReplayAddress) -> bool:
    """Whether the request is for the TimeGate: by its address, or by a date beside an address without one."""
    if asked.modifier == "timegate":
        return True
    return not asked.modifier and not asked.timestamp and bool(request.headers.get("accept-datetime"))


def answer(request: Request, asked: ReplayAddress) -> Response:
    """Redirect to the capture nearest to the date, or to now. Raises WebdepotError if there is none."""
    site = site_of(request)
    wanted = request.headers.get("accept-datetime")
    try:
        stamp = to_timestamp(from_http(wanted) if wanted else site.archive.clock())
    except ValueError:
        return PlainTextResponse("Accept-Datetime is not an HTTP date.\n", status_code=400)
    reader, shared = machine_reader(request, asked)
    capture, neighbours = lookup.find_memento(
        site.archive, asked.url, stamp, collection=asked.collection, reader=reader
    )
    links = replay_answer.memento_headers(
        capture, collection=asked.collection, replay_url=site.replay_url, neighbours=neighbours
    )
    where = address.path_of(asked.collection, capture.timestamp + "id_", capture.url)
    headers = {**shared, **EXPOSED, **dict(links[1:]), "Vary": "accept-datetime, origin"}
    return RedirectResponse(site.replay_url + where, status_code=302, headers=headers)
