"""Replay: raw captures, the worker that rewrites them in the browser, Memento for machines. No sessions.

/{collection}/{timestamp}id_/{url}   the capture: status, headers, exact payload
/{collection}/{timestamp}sw_/{url}   the same for the worker: always 200, with the archived status and
                                     redirect in headers, since the worker would otherwise follow redirects
                                     and replace error pages
/{collection}/{timestamp}ns_/{url}   rewritten on the server, without scripts, for clients without a worker
/-/start/{collection}/{timestamp}mp_/{url}   a page that installs the worker and opens the rewritten page
/-/migrated/{collection}/{timestamp}/{url}   the capture in the format it was migrated to, if it was
/{collection}/{timestamp}/{url}      redirect to the frame
/{collection}/{url}                  TimeGate with Accept-Datetime, else redirect to the portal
/{collection}/timegate/{url}         TimeGate (RFC 7089, 4)
/{collection}/timemap/link/{url}     TimeMap (RFC 7089, 5), see `web/api/timemap.py`
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from webdepot.access.policy import ANYONE, Reader
from webdepot.access.replay.headers import RAW_POLICY
from webdepot.access.replay.xml_view import Feed, XmlTree
from webdepot.errors import WebdepotError
from webdepot.model import Capture
from webdepot.services.access import lookup
from webdepot.services.access.replay import replay, replay_answer
from webdepot.services.access.replay.replay import Replayed
from webdepot.services.access.replay.replay_answer import Headers, ReplayAnswer
from webdepot.services.review import preview
from webdepot.web.api import timemap
from webdepot.web.api.openapi_parts import ADDRESS, COLLECTION, NOT_KEPT, on_replay, parameter
from webdepot.web.problems import explain, heading
from webdepot.web.replay import address, timegate, worker
from webdepot.web.replay.address import ReplayAddress
from webdepot.web.security import start_policy, still_policy
from webdepot.web.site import Site, language_of, machine_reader, reader_of, render, site_of

PIECE_BYTES = 1 << 18
RAW = "id_"
STILL = "ns_"
"""The modifier of pages rewritten on the server, without scripts."""
DOCUMENT_MODIFIERS = frozenset({"mp_", "if_", "fr_"})
_PUBLIC = (("Access-Control-Allow-Origin", "*"), *timegate.EXPOSED.items())
"""Pages of any site may read it, as they may read TimeMaps."""
_FRAMES = frozenset({"iframe", "frame", "object", "embed"})
_UNSANDBOXED = "application/pdf"
_VIEWER_POLICY = (
    # Only the browser's own viewer may show it: the browser must not guess that it is a page.
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "default-src 'none'; object-src 'self'"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BarePage:
    """A page that was archived without the query, or without some parameters, of the address that was asked
    for.
    """

    capture: Capture
    fragment: str
    """Makes `archived_page.js` give the query to the scripts of the page; empty if it has parameters."""


def answer(request: Request) -> Response:
    """Every archived address."""
    request.state.is_archived = True
    if request.headers.get("service-worker") == "script":
        # An archived script must never become the worker of this origin.
        raise HTTPException(403)
    place = address.address_of(request)
    if place is None:
        raise HTTPException(404)
    try:
        if place.modifier == "timemap":
            return timemap.answer(request, place)
        if timegate.is_meant(request, place):
            return timegate.answer(request, place)
    except WebdepotError as error:
        return not_there(request, place, error)
    if place.modifier in ("*", ""):
        return _to_portal(request, place)
    if place.modifier in DOCUMENT_MODIFIERS and request.headers.get("sec-fetch-dest", "document") in {
        *_FRAMES,
        "document",
    }:
        return _start(request, place)
    return _raw(request, place)


def describe_api(site: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    stamp = parameter("timestamp", "14 digits; the closest capture is returned.", where="path", required=True)
    body = {
        "description": "The capture with its archived status.",
        "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
    }
    near = {
        "302": {"description": "Redirect to the closest capture."},
        "400": {"description": "A timestamp or date is invalid."},
        **NOT_KEPT,
    }
    wanted = {**parameter("Accept-Datetime", "The wanted moment, as an HTTP date."), "in": "header"}
    whole = {"parameters": [COLLECTION, stamp, ADDRESS], "responses": {"200": body, **near}}
    return {
        **on_replay(
            site, "/{collection}/{timestamp}id_/{url}", {"summary": "A capture as archived", **whole}
        ),
        **on_replay(
            site,
            "/{collection}/{timestamp}ns_/{url}",
            {"summary": "A capture rewritten, without scripts", **whole},
        ),
        **on_replay(
            site,
            "/{collection}/timegate/{url}",
            {
                "summary": "TimeGate (RFC 7089)",
                "parameters": [COLLECTION, ADDRESS, wanted],
                "responses": near,
            },
        ),
    }


QUICK_PATH = re.compile(rb"/[^/]+/[0-9]{14}id_/")


def quick(request: Request) -> Response | None:
    """A small raw capture that needs no waiting; None for everything else, refusals and errors included."""
    if "service-worker" in request.headers:
        return None
    place = address.find_address(request.scope["raw_path"], request.scope["query_string"])
    if place is None or place.token or place.modifier != RAW or len(place.timestamp) != 14:
        return None
    reader = _reader(request, place)
    opened = replay_answer.find_small(
        site_of(request).archive, place.url, place.timestamp, collection=place.collection, reader=reader
    )
    return _answer(request, place, opened, reader) if opened is not None else None


def show_start(request: Request) -> Response:
    """The first page in the frame: makes sure that the worker is installed and knows the collection, then
    opens the archived page.
    """
    request.state.is_archived = True
    place = address.address_of(request, below="/-/start")
    if place is None:
        raise HTTPException(404)
    return _start(request, place)


def send_migrated(request: Request) -> Response:
    """A capture in the format it was migrated to; the original is at its usual address."""
    request.state.is_archived = True
    place = address.address_of(request, below="/-/migrated")
    if place is None:
        raise HTTPException(404)
    archive = site_of(request).archive
    stamp = address.nearest_stamp(place.timestamp, archive.clock())
    try:
        opened = replay.open_conversion(
            archive, place.url, stamp, collection=place.collection, reader=reader_of(request, place)
        )
    except WebdepotError as error:
        return not_there(request, place, error)
    headers = [
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-cache"),
        ("Content-Security-Policy", RAW_POLICY),
    ]
    return send(replay_answer.converted(opened), headers, opened.close)


def _start(request: Request, asked: ReplayAddress) -> Response:
    site = site_of(request)
    if request.headers.get("sec-fetch-dest") == "document":
        return RedirectResponse(
            site.portal_url + address.path_of(asked.collection, asked.timestamp, asked.url), status_code=302
        )
    own_url = site.hosts.url_for(asked.url)
    if site.hosts.find_asked(request.headers.get("host", "")) != own_url:
        # A page starts on its own host only, so that it cannot get at what another site has stored.
        path = address.path_of(asked.shelf, f"{asked.timestamp}mp_", asked.url)
        return RedirectResponse(f"{own_url}/-/start{path}", status_code=307)
    return render(
        request,
        "start.html",
        headers={"Content-Security-Policy": start_policy(own_url, site.frame_url)},
        target=address.path_of(asked.shelf, asked.timestamp + "mp_", asked.url),
        still=address.path_of(asked.shelf, asked.timestamp + STILL, asked.url),
        worker=worker.path_for(site),
    )


def _to_portal(request: Request, asked: ReplayAddress) -> Response:
    step = asked.timestamp + asked.modifier if asked.modifier else asked.timestamp
    where = (
        address.path_of(asked.collection, step, asked.url)
        if step
        else f"/{asked.collection}/{address.quote_url(asked.url)}"
    )
    return RedirectResponse(site_of(request).portal_url + where, status_code=302)


def _raw(request: Request, asked: ReplayAddress) -> Response:
    archive, reader = site_of(request).archive, _reader(request, asked)
    stamp = address.nearest_stamp(asked.timestamp, archive.clock())
    try:
        if len(asked.timestamp) < 14:
            capture = lookup.find_closest(
                archive, asked.url, stamp, collection=asked.collection, reader=reader
            )
            return RedirectResponse(
                address.path_of(asked.shelf, capture.timestamp + asked.modifier, capture.url),
                status_code=302,
            )
        with preview.opened(archive, asked.collection, reader) as shown:
            opened = replay.open_capture(shown, asked.url, stamp, collection=asked.collection, reader=reader)
    except WebdepotError as error:
        return not_there(request, asked, error)
    return _answer(request, asked, opened, reader)


def _reader(request: Request, asked: ReplayAddress) -> Reader:
    """Who asks for a capture. Pages of other sites may read raw captures, and no more than the public."""
    return machine_reader(request, asked)[0] if asked.modifier == RAW else reader_of(request, asked)


def _answer(request: Request, asked: ReplayAddress, opened: Replayed, reader: Reader) -> Response:
    """The capture opened for this reader, in the form that the modifier asks for."""
    try:
        match asked.modifier:
            case "id_":  # RAW
                return _send_raw(request, asked, opened, is_public=reader is ANYONE)
            case "ns_":
                return _send_still(request, asked, opened)
            case _:
                return _send_to_worker(request, asked, opened)
    except BaseException:
        opened.close()
        raise


def _send_raw(request: Request, asked: ReplayAddress, opened: Replayed, *, is_public: bool) -> Response:
    answer = replay_answer.for_client(opened, **wanted_body(request))
    headers = [
        *memento_of(request, asked.collection, opened.capture),
        ("Cache-Control", "no-cache"),
        ("Vary", "Accept-Encoding, Origin"),
        _content_location(asked, opened.capture),
        *_location(asked, opened),
        *(_PUBLIC if is_public else ()),
    ]
    if opened.capture.mime == _UNSANDBOXED:
        answer = replay_answer.as_type(answer, _UNSANDBOXED)
        headers += _VIEWER_POLICY
    else:
        headers.append(("Content-Security-Policy", RAW_POLICY))
    return send(answer, headers, opened.close)


def _send_to_worker(request: Request, asked: ReplayAddress, opened: Replayed) -> Response:
    if request.headers.get("x-replay-destination") in {*_FRAMES, "document"}:
        opened, view = replay_answer.with_xml_view(opened)
        if view is not None:
            return _show_xml(request, asked, opened, view)
    answer = replay_answer.for_worker(opened, **wanted_body(request))
    headers = [
        *memento_of(request, asked.collection, opened.capture),
        ("Cache-Control", "no-cache"),
        ("Vary", "Accept-Encoding"),
        _content_location(asked, opened.capture),
        # For a capture that is opened directly; the worker sets the policy of what it makes of it.
        ("Content-Security-Policy", RAW_POLICY),
    ]
    target = replay_answer.find_redirect(opened)
    if target is not None:
        headers.append(("X-Orig-Location", address.quote_url(target)))
        headers.append(("X-Orig-Ts", opened.capture.timestamp))
    return send(answer, headers, opened.close)


def _show_xml(request: Request, asked: ReplayAddress, opened: Replayed, view: Feed | XmlTree) -> Response:
    """A page about an XML document, for the worker, which makes its links lead into the archive."""
    opened.close()
    headers = [*memento_of(request, asked.collection, opened.capture), ("Cache-Control", "no-cache")]
    return render(
        request,
        "xml_view.html",
        headers={**dict(headers), "Content-Security-Policy": RAW_POLICY},
        view=view,
        url=opened.capture.url,
    )


def _send_still(request: Request, asked: ReplayAddress, opened: Replayed) -> Response:
    def lead(absolute: str) -> str:
        return address.path_of(asked.shelf, opened.capture.timestamp + STILL, absolute)

    answer = replay_answer.still(opened, lead=lead, **wanted_body(request))
    headers = [
        *memento_of(request, asked.collection, opened.capture),
        *_location(asked, opened),
        ("Cache-Control", "no-cache"),
        ("Vary", "Accept-Encoding"),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", still_policy(site_of(request).frame_url)),
    ]
    return send(answer, headers, opened.close)


def wanted_body(request: Request) -> dict[str, str | None]:
    """The headers of a request that decide about the form of the body."""
    return {
        "accept_encoding": request.headers.get("accept-encoding"),
        "byte_range": request.headers.get("range"),
    }


def _content_location(asked: ReplayAddress, capture: Capture) -> tuple[str, str]:
    return "Content-Location", address.path_of(
        asked.collection, capture.timestamp + asked.modifier, capture.url
    )


def _location(asked: ReplayAddress, opened: Replayed) -> Headers:
    """Where an archived redirect leads: to the archived target, never to the live web."""
    target = replay_answer.find_redirect(opened)
    if target is None:
        return []
    step = opened.capture.timestamp + asked.modifier
    return [("Location", address.path_of(asked.shelf, step, target))]


def memento_of(request: Request, collection: str, capture: Capture) -> Headers:
    return replay_answer.memento_headers(
        capture, collection=collection, replay_url=site_of(request).replay_url
    )


def send(answer: ReplayAnswer, headers: Headers, close: Callable[[], None]) -> Response:
    """The response; `close` is called when the body has been read."""
    first = answer.body.read(PIECE_BYTES)
    response: Response
    if len(first) < PIECE_BYTES:
        close()
        response = Response(first, status_code=answer.status)
    else:
        response = StreamedCapture(first, answer.body, close, answer.status)
    for name, value in (*answer.headers, *headers):
        response.raw_headers.append((name.lower().encode("latin-1"), value.encode("latin-1", "replace")))
    return response


class StreamedCapture(Response):
    """A body in pieces, each read in a thread while the last one is sent; then the capture is closed."""

    def __init__(self, first: bytes, stream: BinaryIO, close: Callable[[], None], status: int) -> None:
        super().__init__(status_code=status)
        self.raw_headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        self._first, self._stream, self._close = first, stream, close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            piece = self._first
            while piece:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                piece = (
                    b""
                    if scope["method"] == "HEAD"
                    else await run_in_threadpool(self._stream.read, PIECE_BYTES)
                )
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await run_in_threadpool(self._close)


def not_there(request: Request, asked: ReplayAddress, error: WebdepotError) -> Response:
    """A missing capture: a page for people, one line for other clients."""
    status = error.http_status
    if "text/html" not in request.headers.get("accept", ""):
        return PlainTextResponse(explain(request, error) + "\n", status_code=status)
    spoken = language_of(request)
    title = spoken.texts["missing.inside_heading"] if status == 404 else heading(spoken, status)
    headers = {"Content-Security-Policy": RAW_POLICY, "X-Orig-Ts": asked.timestamp}
    # For the worker always 404: it replaces the body of any other error by its own text.
    shown = 404 if asked.modifier == "sw_" else status
    return render(
        request,
        "inside.html",
        status=shown,
        headers=headers,
        heading=title,
        words=explain(request, error),
        url=asked.url,
        bare=find_bare(request, asked) if status == 404 else None,
    )


def find_bare(request: Request, asked: ReplayAddress) -> BarePage | None:
    """What to offer when an address was not archived with this query. Only a page without any query reads it
    with a script.
    """
    archive = site_of(request).archive
    capture = lookup.find_shorter(
        archive,
        asked.url,
        address.nearest_stamp(asked.timestamp, archive.clock()),
        collection=asked.collection,
        reader=reader_of(request, asked),
    )
    query = asked.url.partition("?")[2]
    if capture is None:
        return None
    fragment = "" if "?" in capture.url else f"#webdepot-query={quote(query, safe='')}"
    return BarePage(capture=capture, fragment=fragment)
