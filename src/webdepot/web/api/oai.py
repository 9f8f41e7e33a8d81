"""OAI-PMH at `/oai`.

Answers are XML with a style sheet for people. They are written when it is the turn of the client's network
(`heavy_work.py`). The configuration limits how many are made or wait at the same time; further requests get
503 with Retry-After, which harvesters understand.
"""

import gzip
from collections.abc import Sequence
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from urllib.parse import parse_qsl

from lxml import etree
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from webdepot.errors import TooExpensive
from webdepot.http_headers import accepts
from webdepot.services.exchange import oai_provider
from webdepot.web import heavy_work
from webdepot.web.site import of_app, reader_of, site_of

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
        return PlainTextResponse(f"{error}\n", status_code=error.http_status)
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
