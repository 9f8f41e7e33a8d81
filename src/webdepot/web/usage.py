"""Counts what is read on the portal and the frame, by looking at requests and the status of their answers. It
keeps nothing else of them.

page opened       /{collection}/{timestamp}/{url} and what the banner follows to    200, or the page's own error
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

from webdepot.access.usage import Metric, is_robot
from webdepot.errors import InputError
from webdepot.model import EVERYTHING
from webdepot.services.access.statistics import Counter
from webdepot.url import host_of
from webdepot.web.replay import address
from webdepot.web.site import reader_of, site_of

log = logging.getLogger(__name__)
LEGAL, LOCKED = 451, 423
_OPENED = frozenset({200, 404, 410, 403, 500, 502, 503})
_BANNER = b"/-/banner"
_COUNTRY = re.compile(r"[A-Za-z]{2}\Z")


class Counting:
    """Notes one use for each answer that is one, behind the reader's back in no way: see
    docs/explanation/statistics.md.
    """

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
        if not is_robot(request.headers.get("user-agent", "")) and _may_be_use(scope, status):
            try:
                await run_in_threadpool(self._note, request, status)
            except Exception:
                # A page that was shown is shown, whatever becomes of the statistics.
                log.exception("not counted")

    def _note(self, request: Request, status: int) -> None:
        for metric, collection, url in uses_of(request, status):
            site = host_of(url).removeprefix("www.") if url else ""
            config = site_of(request).archive.config.statistics
            said = request.headers.get(config.country_header, "") if config.country_header else ""
            country = said.upper() if _COUNTRY.match(said) else ""
            point = reader_of(request).access_point
            self.counter.note(metric, collection=collection, site=site, url=url, point=point, country=country)


def _may_be_use(scope: Scope, status: int) -> bool:
    path: bytes = scope.get("raw_path") or b""
    return (status in _OPENED or status in (LEGAL, LOCKED)) and not path.startswith(
        (b"/-/static", b"/api", b"/cdx")
    )


def uses_of(request: Request, status: int) -> list[tuple[Metric, str, str]]:
    """What an answered request counts as: (metric, collection, address)."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    query: bytes = request.scope["query_string"]
    if raw == b"/search":
        asked = parse_qs(query.decode("latin-1"))
        return (
            [(Metric.SEARCHES, _collection(asked.get("collection", [""])[0]), "")]
            if asked.get("q") and status == 200
            else []
        )
    if raw == b"/compare":
        asked = parse_qs(query.decode("latin-1"))
        raw, query = (
            f"/{_collection(asked.get('collection', [''])[0])}/*/{asked.get('url', [''])[0]}".encode(),
            b"",
        )
    try:
        found = address.find_address(raw.removeprefix(_BANNER), query)
    except InputError:
        return []
    if found is None or found.modifier not in ("", "*"):
        return []
    if status in (LEGAL, LOCKED):
        return [(Metric.REFUSED if status == LEGAL else Metric.IN_USE, found.collection, found.url)]
    is_missing = status == 404 and getattr(request.state, "is_missing", False)
    if is_missing or (found.modifier == "*" and status != 200):
        return []
    opened = [] if found.modifier else [(Metric.REQUESTS, found.collection, str(found.url))]
    return [*opened, (Metric.INVESTIGATIONS, found.collection, str(found.url))]


def _collection(text: str) -> str:
    return text.lower() if address.COLLECTION.match(text) else EVERYTHING
