"""The resolver at `/urn/`, pages of titles, and transfer objects at `/transfer/`."""

import base64
from collections.abc import Iterator

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from webdepot.errors import NotFound, NotPermitted, Withdrawn
from webdepot.exchange.object_addresses import TREE
from webdepot.http_headers import parse_range
from webdepot.model import EVERYTHING
from webdepot.services.exchange import object_delivery, title_view
from webdepot.services.exchange.object_delivery import HandedOver, TokenNeeded
from webdepot.web.api.oai import token_of
from webdepot.web.replay.address import path_of
from webdepot.web.site import reader_of, render, site_of


def resolve(request: Request) -> Response:
    """Redirect to the page of a URN."""
    record = object_delivery.resolve(site_of(request).archive, request.path_params["urn"])
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
        handed_over = object_delivery.hand_over(
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
