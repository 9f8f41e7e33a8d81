"""Counts use of the portal and the frame by the path of requests and the status of their answers. Nothing
else of a request is kept.

page opened       /{collection}/{timestamp}/{url} and pages the banner follows    200, or the page's own error
versions          /{collection}/*/{url}, /compare
search            /search?q=
refused, in use   any of these with 451, 423
"""

import logging
import re
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webdepot.access.usage import Metric
from webdepot.errors import InputError
from webdepot.model import EVERYTHING
from webdepot.services.access.statistics import Counter
from webdepot.services.review import preview
from webdepot.url import host_of
from webdepot.web.replay import address
from webdepot.web.site import reader_of, site_of

log = logging.getLogger(__name__)
LEGAL, LOCKED = 451, 423
_OPENED = frozenset({200, 404, 410, 403, 500, 502, 503})
_BANNER = b"/-/banner"
_COUNTRY = re.compile(r"[A-Za-z]{2}\Z")


class UsageCounting:
    """Counts each answer that is a use; docs/how-to/usage-statistics.md says what is counted and kept."""

    def __init__(self, app: ASGIApp, counter: Counter) -> None:
        self.app = app
        self.counter = counter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        await self.app(scope, receive, sending)
        request = Request(scope)
        if self.counter.counts(request.headers.get("user-agent", "")) and _may_be_use(scope, status):
            try:
                await run_in_threadpool(self._note, request, status)
            except Exception:
                # The page has been sent; a failure of the statistics must not matter to the reader.
                log.exception("a use was not counted")

    def _note(self, request: Request, status: int) -> None:
        for metric, collection, url in uses_of(request, status):
            site = host_of(url).removeprefix("www.") if url else ""
            config = site_of(request).archive.config.statistics
            code = request.headers.get(config.country_header, "") if config.country_header else ""
            country = code.upper() if _COUNTRY.match(code) else ""
            point = reader_of(request).access_point
            self.counter.note(metric, collection=collection, site=site, url=url, point=point, country=country)


def _may_be_use(scope: Scope, status: int) -> bool:
    path: bytes = scope.get("raw_path") or b""
    return (status in _OPENED or status in (LEGAL, LOCKED)) and not path.startswith(
        (b"/-/static", b"/api", b"/cdx")
    )


def uses_of(request: Request, status: int) -> list[tuple[Metric, str, str]]:
    """The uses that an answered request counts as: (metric, collection, address)."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    query: bytes = request.scope["query_string"]
    if raw == b"/search":
        fields = parse_qs(query.decode("latin-1"))
        return (
            [(Metric.SEARCHES, _collection(fields.get("collection", [""])[0]), "")]
            if fields.get("q") and status == 200
            else []
        )
    if raw == b"/compare":
        fields = parse_qs(query.decode("latin-1"))
        collection, url = fields.get("collection", [""])[0], fields.get("url", [""])[0]
        raw, query = f"/{_collection(collection)}/*/{url}".encode(), b""
    try:
        place = address.find_address(raw.removeprefix(_BANNER), query)
    except InputError:
        return []
    if place is None or place.modifier not in ("", "*") or preview.find_harvest(place.collection):
        return []
    if status in (LEGAL, LOCKED):
        return [(Metric.REFUSED if status == LEGAL else Metric.IN_USE, place.collection, place.url)]
    is_missing = status == 404 and getattr(request.state, "is_missing", False)
    if is_missing or (place.modifier == "*" and status != 200):
        return []
    opened = [] if place.modifier else [(Metric.REQUESTS, place.collection, str(place.url))]
    return [*opened, (Metric.INVESTIGATIONS, place.collection, str(place.url))]


def _collection(text: str) -> str:
    return text.lower() if address.COLLECTION.match(text) else EVERYTHING
