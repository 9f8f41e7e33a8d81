"""The replay face: raw captures, the worker that rewrites them in the browser, Memento for machines. It knows
no session.

/{collection}/{timestamp}id_/{url}   the capture: status, headers, exact payload
/{collection}/{timestamp}sw_/{url}   the same for the worker: always 200, true status and redirect in headers that it
                                     understands, since it would follow redirects and replace error pages
                                     otherwise
/{collection}/{timestamp}ns_/{url}   rewritten on the server, without scripts, for clients without a worker
/-/start/{collection}/{timestamp}mp_/{url}   a page that installs the worker and goes on to the rewritten page
/-/migrated/{collection}/{timestamp}/{url}   the capture in the format it was migrated to, where it was
/{collection}/{timestamp}/{url}      to the portal's frame
/{collection}/{url}                  TimeGate with Accept-Datetime, else to the portal
/{collection}/timegate/{url}         TimeGate (RFC 7089, 4)
/{collection}/timemap/link/{url}     TimeMap (RFC 7089, 5), see `web/api/timemap.py`
"""

import re
from collections.abc import Callable
from io import BytesIO
from typing import Any, BinaryIO

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from webdepot.access.replay import headers as replay_headers
from webdepot.access.replay.body import negotiated, parse_range, part_of, with_ended_embeds
from webdepot.errors import WebdepotError
from webdepot.model import Capture
from webdepot.services.access import lookup, replay
from webdepot.services.access.replay import NotAtHand, Replayed
from webdepot.times import from_http, to_timestamp
from webdepot.url import find_canonical
from webdepot.web.api import timemap
from webdepot.web.api.openapi_parts import ADDRESS, COLLECTION, NOT_KEPT, on_replay, parameter
from webdepot.web.problems import heading, words_for
from webdepot.web.replay import address
from webdepot.web.replay.address import Address
from webdepot.web.site import Site, language_of, reader_of, render, site_of

PIECE_BYTES = 1 << 18
WORKER_PATH = "/sw.js"
WORKER_QUERY = "?replayPrefix=&injectScripts=/-/inside.js"
CONFIG_VERSION = "1"
"""Changes when what the worker is told changes, so that browsers which know the old words are told again."""
STILL = "ns_"
"""Rewritten on the server and without scripts, see `web/replay/still.py`."""
DOCUMENT_MODIFIERS = frozenset({"mp_", "if_", "fr_"})
_FRAMES = frozenset({"iframe", "frame", "object", "embed"})
_UNSANDBOXED = "application/pdf"


def replayed(request: Request) -> Response:
    """Everything of the field's address scheme."""
    request.state.is_archived = True
    if request.headers.get("service-worker") == "script":
        # An archived script must never become the worker of this origin.
        raise HTTPException(403)
    found = address.find_address(
        request.scope.get("raw_path") or request.url.path.encode(), request.scope["query_string"]
    )
    if found is None:
        raise HTTPException(404)
    if found.modifier == "timemap":
        try:
            return timemap.answer(request, found)
        except WebdepotError as error:
            return not_there(request, found, error)
    if found.modifier in ("*", "timegate", ""):
        return _to_portal_or_gate(request, found)
    if found.modifier in DOCUMENT_MODIFIERS and request.headers.get("sec-fetch-dest", "document") in {
        *_FRAMES,
        "document",
    }:
        return _start(request, found)
    return _raw(request, found, for_worker=found.modifier not in ("id_", STILL))


def described(site: Site) -> dict[str, Any]:
    """These interfaces for `web/api/openapi.py`."""
    stamp = parameter("timestamp", "14 digits; the closest capture is given.", where="path", required=True)
    body = {
        "description": "The capture with its own status.",
        "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
    }
    near = {
        "302": {"description": "To the closest capture."},
        "400": {"description": "A timestamp or date is wrong."},
        **NOT_KEPT,
    }
    asked = {**parameter("Accept-Datetime", "The wanted moment, as an HTTP date."), "in": "header"}
    whole = {"parameters": [COLLECTION, stamp, ADDRESS], "responses": {"200": body, **near}}
    return {
        **on_replay(site, "/{collection}/{timestamp}id_/{url}", {"summary": "A capture as it was", **whole}),
        **on_replay(
            site,
            "/{collection}/{timestamp}ns_/{url}",
            {"summary": "A capture rewritten, without scripts", **whole},
        ),
        **on_replay(
            site,
            "/{collection}/timegate/{url}",
            {"summary": "TimeGate (RFC 7089)", "parameters": [COLLECTION, ADDRESS, asked], "responses": near},
        ),
    }


QUICK_PATH = re.compile(rb"/[^/]+/[0-9]{14}id_/")


def quick(request: Request) -> Response | None:
    """A small raw capture that is at hand; None for everything else, refusals and errors included."""
    if "service-worker" in request.headers:
        return None
    found = address.find_address(request.scope["raw_path"], request.scope["query_string"])
    if found is None or found.modifier != "id_" or len(found.timestamp) != 14:
        return None
    archive = site_of(request).archive
    try:
        with archive.database.at_one_moment():
            opened = replay.open_at_hand(
                archive, found.url, found.timestamp, collection=found.collection, reader=reader_of(request)
            )
    except (WebdepotError, NotAtHand):
        return None
    try:
        return _answer(request, found, opened, for_worker=False)
    except BaseException:
        opened.close()
        raise


def start(request: Request) -> Response:
    """Where the portal's frame begins: make sure that the worker is there and knows the collection, then go
    on.
    """
    request.state.is_archived = True
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    found = address.find_address(raw.removeprefix(b"/-/start"), request.scope["query_string"])
    if found is None:
        raise HTTPException(404)
    return _start(request, found)


def migrated(request: Request) -> Response:
    """A capture in the format it was migrated to; the original stands at its usual address."""
    request.state.is_archived = True
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    found = address.find_address(raw.removeprefix(b"/-/migrated"), request.scope["query_string"])
    if found is None:
        raise HTTPException(404)
    archive = site_of(request).archive
    stamp = address.nearest_stamp(found.timestamp, archive.clock())
    try:
        opened = replay.open_conversion(
            archive, found.url, stamp, collection=found.collection, reader=reader_of(request)
        )
    except WebdepotError as error:
        return not_there(request, found, error)
    mime = (opened.head.get("content-type") if opened.head else None) or "application/octet-stream"
    headers = [("Content-Type", mime), ("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-cache")]
    headers.append(("Content-Security-Policy", replay_headers.RAW_POLICY))
    return sent(200, headers, opened.payload, opened.close)


def _start(request: Request, found: Address) -> Response:
    site = site_of(request)
    if request.headers.get("sec-fetch-dest") == "document":
        return RedirectResponse(
            site.portal_url + address.path_of(found.collection, found.timestamp, found.url), status_code=302
        )
    return render(
        request,
        "start.html",
        collection=found.collection,
        target=address.path_of(found.collection, found.timestamp + "mp_", found.url),
        raw=address.path_of(found.collection, found.timestamp + "id_", found.url),
        still=address.path_of(found.collection, found.timestamp + STILL, found.url),
        worker=WORKER_PATH + WORKER_QUERY,
        config_version=CONFIG_VERSION,
        policy=replay_headers.page_policy(site.replay_url, site.frame_url),
    )


def _to_portal_or_gate(request: Request, found: Address) -> Response:
    site = site_of(request)
    wanted = request.headers.get("accept-datetime")
    if found.modifier != "timegate" and (not wanted or found.modifier or found.timestamp):
        step = found.timestamp + found.modifier if found.modifier else found.timestamp
        where = (
            address.path_of(found.collection, step, found.url)
            if step
            else f"/{found.collection}/{address.quote_url(found.url)}"
        )
        return RedirectResponse(site.portal_url + where, status_code=302)
    try:
        stamp = to_timestamp(from_http(wanted) if wanted else site.archive.clock())
    except ValueError:
        return PlainTextResponse("Accept-Datetime is no HTTP date.\n", status_code=400)
    try:
        capture = lookup.find_closest(
            site.archive, found.url, stamp, collection=found.collection, reader=reader_of(request)
        )
    except WebdepotError as error:
        return not_there(request, found, error)
    headers = dict(memento_of(request, found.collection, capture)[1:])
    where = address.path_of(found.collection, capture.timestamp + "id_", capture.url)
    return RedirectResponse(
        site.replay_url + where, status_code=302, headers={**headers, "Vary": "accept-datetime"}
    )


def _raw(request: Request, found: Address, *, for_worker: bool) -> Response:
    archive = site_of(request).archive
    stamp = address.nearest_stamp(found.timestamp, archive.clock())
    try:
        if len(found.timestamp) < 14:
            capture = lookup.find_closest(
                archive, found.url, stamp, collection=found.collection, reader=reader_of(request)
            )
            return RedirectResponse(
                address.path_of(found.collection, capture.timestamp + found.modifier, capture.url),
                status_code=302,
            )
        opened = replay.open_capture(
            archive, found.url, stamp, collection=found.collection, reader=reader_of(request)
        )
    except WebdepotError as error:
        return not_there(request, found, error)
    try:
        return _answer(request, found, opened, for_worker=for_worker)
    except BaseException:
        opened.close()
        raise


def _answer(request: Request, found: Address, opened: Replayed, *, for_worker: bool) -> Response:
    if found.modifier == STILL:
        return _still(request, found, opened)
    if for_worker and "html" in opened.capture.mime:
        whole = negotiated(opened.payload, opened.head, "identity").stream
        status, stream, about_body = opened.status, with_ended_embeds(whole), list[tuple[str, str]]()
    else:
        status, stream, about_body = body_of(request, opened)
    archived = opened.head.headers if opened.head else (("Content-Type", opened.capture.mime),)
    headers = [pair for pair in replay_headers.passed_on(archived) if pair[0].lower() != "content-encoding"]
    headers += about_body + memento_of(request, found.collection, opened.capture)
    headers += [("Cache-Control", "no-cache"), ("Vary", "Accept-Encoding")]
    headers.append(
        (
            "Content-Location",
            address.path_of(found.collection, opened.capture.timestamp + found.modifier, opened.capture.url),
        )
    )
    headers += _location(found, opened, for_worker=for_worker)
    if for_worker:
        # The one header that a page can read of all its parts: the banner tells which of them are from
        # another time.
        headers += [
            ("Server-Timing", f'captured;desc="{opened.capture.timestamp}"'),
            replay_headers.CONNECTIONS,
        ]
        said = replay_headers.sendable(status)
        headers += [
            ("X-Redirect-Status", str(said)),
            ("X-Redirect-StatusText", opened.head.reason[:100] if opened.head else "OK"),
        ]
        stream = BytesIO() if said in replay_headers.WITHOUT_BODY else stream
        status = 206 if status == 206 else 200
    else:
        headers += _raw_policy(opened.capture)
    return sent(status, headers, stream, opened.close)


def _still(request: Request, found: Address, opened: Replayed) -> Response:
    # Loaded by those who need it: the tokeniser and the tables of encodings are not small.
    from webdepot.web.replay import still

    rewritten = still.find_rewritten(request, found, opened)
    status, stream, about_body = (
        body_of(request, opened) if rewritten is None else (opened.status, BytesIO(rewritten[0]), [])
    )
    archived = opened.head.headers if opened.head else (("Content-Type", opened.capture.mime),)
    dropped = {"content-encoding"} if rewritten is None else {"content-encoding", "content-type"}
    headers = [pair for pair in replay_headers.passed_on(archived) if pair[0].lower() not in dropped]
    headers += (
        about_body
        + memento_of(request, found.collection, opened.capture)
        + _location(found, opened, for_worker=False)
    )
    headers += [
        ("Cache-Control", "no-cache"),
        ("Vary", "Accept-Encoding"),
        ("X-Content-Type-Options", "nosniff"),
        still.policy_of(request),
    ]
    if rewritten is not None:
        headers.append(("Content-Type", rewritten[1]))
    return sent(status, headers, stream, opened.close)


def body_of(request: Request, opened: Replayed) -> tuple[int, BinaryIO, list[tuple[str, str]]]:
    """Status, body and the headers about it: coded as the client takes it, whole or the part that was asked
    for.
    """
    body = negotiated(opened.payload, opened.head, request.headers.get("accept-encoding"))
    headers = [("Content-Encoding", body.coding)] if body.coding else []
    is_coded = bool(body.coding) or (opened.head is not None and bool(opened.head.get("content-encoding")))
    size_bytes = None if is_coded else opened.size_bytes
    if size_bytes is None or opened.status != 200:
        return opened.status, body.stream, headers
    headers.append(("Accept-Ranges", "bytes"))
    part = parse_range(request.headers.get("range"), size_bytes)
    if part is None:
        return opened.status, body.stream, headers
    headers.append(("Content-Range", f"bytes {part[0]}-{part[1]}/{size_bytes}"))
    return 206, part_of(body.stream, *part), headers


def _raw_policy(capture: Capture) -> list[tuple[str, str]]:
    if capture.mime == _UNSANDBOXED:
        # Only the browser's own viewer may show it: no guessing that it is a page after all.
        return [
            ("X-Content-Type-Options", "nosniff"),
            ("Content-Security-Policy", "default-src 'none'; object-src 'self'"),
        ]
    return [("Content-Security-Policy", replay_headers.RAW_POLICY)]


def _location(found: Address, opened: Replayed, *, for_worker: bool) -> list[tuple[str, str]]:
    """Where an archived redirect leads: to the archived target."""
    target = opened.capture.redirect or (opened.head.get("location") or "" if opened.head else "")
    absolute = find_canonical(target, opened.capture.url) if target and 300 <= opened.status < 400 else None
    if absolute is None:
        return []
    if for_worker:
        return [("X-Orig-Location", address.quote_url(absolute)), ("X-Orig-Ts", opened.capture.timestamp)]
    return [
        ("Location", address.path_of(found.collection, opened.capture.timestamp + found.modifier, absolute))
    ]


def memento_of(request: Request, collection: str, capture: Capture) -> list[tuple[str, str]]:
    site = site_of(request)
    return replay_headers.memento(
        url=capture.url,
        timestamp=capture.timestamp,
        replay_url=site.replay_url,
        collection=collection,
        steps={},
    )


def sent(
    status: int, headers: list[tuple[str, str]], stream: BinaryIO, close: Callable[[], None]
) -> Response:
    """An archived answer as it can be sent today; a status that cannot be sent is told in a header."""
    archived, status = status, replay_headers.sendable(status)
    if archived != status:
        headers = [*headers, (f"{replay_headers.PREFIX}Status", str(archived))]
    first = b"" if status in replay_headers.WITHOUT_BODY else stream.read(PIECE_BYTES)
    response: Response
    if len(first) < PIECE_BYTES:
        close()
        response = Response(first, status_code=status)
    else:
        response = Streamed(first, stream, close, status)
    for name, value in headers:
        response.raw_headers.append((name.lower().encode("latin-1"), value.encode("latin-1", "replace")))
    return response


class Streamed(Response):
    """A body in pieces, read in a thread while the last piece is sent; the capture is closed whatever
    happens.
    """

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


def not_there(request: Request, found: Address, error: WebdepotError) -> Response:
    """A missing capture: a page for people, one line for everything else."""
    status = error.http_status
    if "text/html" not in request.headers.get("accept", ""):
        return PlainTextResponse(words_for(request, error) + "\n", status_code=status)
    spoken = language_of(request)
    title = spoken.texts["missing.inside_heading"] if status == 404 else heading(spoken, status)
    headers = {"Content-Security-Policy": replay_headers.RAW_POLICY, "X-Orig-Ts": found.timestamp}
    # 404 and not, say, 451: the worker replaces the words of all others by its own.
    shown = 404 if found.modifier == "sw_" else status
    return render(
        request,
        "inside.html",
        status=shown,
        headers=headers,
        heading=title,
        words=words_for(request, error),
        url=found.url,
    )
