"""OAI-PMH at `/oai`, the resolver at `/urn/`, pages of titles, transfer objects.

Answers of OAI-PMH are XML with a style sheet for people. They are made when it is the sender's turn
(`heavy_work.py`). The configuration limits how many are made or wait at the same time; further requests get
503 with Retry-After, which harvesters understand.
"""

import base64
import gzip
from collections.abc import Iterator, Sequence
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from urllib.parse import parse_qsl

from lxml import etree
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from webdepot.errors import NotFound, NotPermitted, TooExpensive, Withdrawn
from webdepot.exchange.addresses import TREE
from webdepot.http_headers import accepts, parse_range
from webdepot.model import EVERYTHING
from webdepot.services.exchange import oai_provider, title_view
from webdepot.services.exchange.oai_provider import HandedOver, TokenNeeded
from webdepot.web import heavy_work
from webdepot.web.replay.address import path_of
from webdepot.web.site import of_app, reader_of, render, site_of

LONGEST_REQUEST_BYTES = 1 << 16
RETRY_S = 10
XML = "text/xml; charset=utf-8"
# Browsers load style sheets of XML like scripts; these pages have no others.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; "
    "base-uri 'none'; form-action 'self'"
)


class RequestLimit:
    """Limits the number of simultaneous requests. Used by one event loop."""

    def __init__(self) -> None:
        self._inside = 0
        self.places = 1

    def enter(self) -> bool:
        if self._inside >= self.places:
            return False
        self._inside += 1
        return True

    def leave(self) -> None:
        self._inside -= 1


async def answer(request: Request) -> Response:
    """The OAI-PMH interface, by GET or POST."""
    raw: bytes = request.scope["query_string"]
    if request.method == "POST":
        raw = await _body(request)
    limit = of_app(request, RequestLimit)
    limit.places = site_of(request).archive.config.exchange.most_requests
    if not limit.enter():
        text = f"Too many requests at the same time. Try again in {RETRY_S} seconds.\n"
        return PlainTextResponse(text, status_code=503, headers={"Retry-After": str(RETRY_S)})
    try:
        return await heavy_work.run(request, partial(_answer, request, raw))
    except TooExpensive as error:
        return _refuse(error.http_status, str(error))
    finally:
        limit.leave()


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_REQUEST_BYTES:
            raise HTTPException(413)
    return bytes(body)


def _answer(request: Request, raw: bytes) -> Response:
    site = site_of(request)
    reader, token = reader_of(request), token_of(request)
    data = oai_provider.answer(
        site.archive, _pairs(raw), portal_url=site.portal_url, reader=reader, token=token
    )
    headers = {
        "Cache-Control": "no-cache",
        "Vary": "Accept-Encoding, Sec-Fetch-Dest",
        "Content-Security-Policy": POLICY,
    }
    if request.headers.get("sec-fetch-dest") == "document":
        # Browsers are dropping XSLT, so the page for people is made here. No harvester sends this header.
        return Response(
            str(_style()(etree.fromstring(data))), headers=headers, media_type="text/html; charset=utf-8"
        )
    accepted = request.headers.get("accept-encoding")
    if accepted and accepts("gzip", accepted):  # a client without the header may be a simple script
        data = gzip.compress(data, 3)
        headers["Content-Encoding"] = "gzip"
    return Response(data, headers=headers, media_type=XML)


@cache
def _style() -> etree.XSLT:
    path = Path(str(files("webdepot.web"))) / "static" / "oai.xsl"
    return etree.XSLT(etree.parse(str(path)))


def _pairs(raw: bytes) -> Sequence[tuple[str, str]]:
    try:
        return parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=50, errors="replace")
    except ValueError:
        return ()


def token_of(request: Request) -> str:
    """The token that a partner sends."""
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else ""


def resolve(request: Request) -> Response:
    """Redirect to the page of a URN."""
    record = oai_provider.resolve(site_of(request).archive, request.path_params["urn"])
    return RedirectResponse(f"/title/{record.key}", status_code=303)


def show_title(request: Request) -> Response:
    """The page of a site, a slice, a journal or an article."""
    site = site_of(request)
    view = title_view.view(
        site.archive, request.path_params["key"], reader=reader_of(request), portal_url=site.portal_url
    )
    return render(
        request,
        "title.html",
        json_ld=view.json_ld,
        seen=view.described,
        record=view.described.record,
        languages_of_record=view.languages,
        transfer=view.transfer,
        tree=view.tree,
        shown_at={member: path_of(EVERYTHING, stamp, url) for member, (url, stamp) in view.places.items()},
        is_open=view.is_open,
        repository=view.repository,
    )


def send_transfer(request: Request) -> Response:
    """One ZIP with all files of an object, or any range of it."""
    archive = site_of(request).archive
    name: str = request.path_params["key"]
    key, is_tree = name.removesuffix(TREE), name.endswith(TREE)
    try:
        handed_over = oai_provider.hand_over(
            archive, key, reader=reader_of(request), token=token_of(request), unpacked=is_tree
        )
    except TokenNeeded as error:
        return _refuse(401, str(error), {"WWW-Authenticate": 'Bearer realm="transfer objects"'})
    except NotPermitted as error:
        return _refuse(403, str(error))
    except (Withdrawn, NotFound) as error:
        return _refuse(error.http_status, str(error))
    etag = f'"{handed_over.transfer.sha256}"'
    size = handed_over.transfer.size_bytes
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": etag,
        "Content-Disposition": f'attachment; filename="{name}.zip"',
        "Repr-Digest": f"sha-256=:{_base64(handed_over.transfer.sha256)}:",
        "Cache-Control": "no-cache",
    }
    wanted = request.headers.get("range")
    if wanted and request.headers.get("if-range", etag) != etag:
        wanted = None
    part = parse_range(wanted, size)
    if wanted and part is None and wanted.startswith("bytes="):
        return _refuse(416, f"The object has only {size} bytes.", {"Content-Range": f"bytes */{size}"})
    first, stop = (part[0], part[1] + 1) if part else (0, size)
    if part:
        headers["Content-Range"] = f"bytes {first}-{stop - 1}/{size}"
    headers["Content-Length"] = str(stop - first)
    return ZipRange(handed_over, first, stop, status=206 if part else 200, headers=headers)


def _refuse(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(text + "\n", status_code=status, headers=headers)


def _base64(sha256: str) -> str:
    return base64.b64encode(bytes.fromhex(sha256)).decode()


class ZipRange(Response):
    """A range of a transfer object, read in pieces in a thread while the last piece is sent."""

    def __init__(
        self, handed_over: HandedOver, first: int, stop: int, *, status: int, headers: dict[str, str]
    ) -> None:
        super().__init__(status_code=status, media_type="application/zip")
        own = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        self.raw_headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"] + own
        self._pieces: Iterator[bytes] = handed_over.pieces(first, stop)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            while scope["method"] != "HEAD" and (piece := await run_in_threadpool(next, self._pieces, b"")):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            close = getattr(self._pieces, "close", None)
            if close is not None:
                await run_in_threadpool(close)
