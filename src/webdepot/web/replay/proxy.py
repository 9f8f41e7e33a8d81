"""Proxy mode: the archive as the HTTP proxy of reading-room terminals. A page runs under its own address, so
nothing is rewritten.

    request      GET http://www.example.org/page?x=1, or the same inside a TLS tunnel (`tunnel.py`)
    which time   Accept-Datetime of the request, else what this terminal chose, else [web] proxy_date, else now
    answer       status, headers and body as archived, past the same gate as everywhere; what is not kept is 404, never the live web

http://webdepot.proxy/ is a page of ours: it shows the time and the collection of this terminal, takes others,
and gives out the certificate of the authority that terminals must trust for pages over HTTPS. Terminals are
told apart by their address.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.access.replay import headers as replay_headers
from webdepot.errors import InputError, WebdepotError
from webdepot.index import post
from webdepot.model import EVERYTHING
from webdepot.services.access import collections, replay
from webdepot.services.access.lookup import NotKept
from webdepot.services.access.replay import Replayed
from webdepot.times import from_http, from_timestamp, period_of, to_timestamp
from webdepot.url import Url, find_canonical
from webdepot.web.replay import address, raw
from webdepot.web.replay.address import Address
from webdepot.web.replay.authority import Authority
from webdepot.web.site import language_of, of_app, reader_of, render, site_of

CONTROL_HOST = "webdepot.proxy"
MOST_TERMINALS = 10_000
_LONGEST_FORM_BYTES = 4096
_AROUND_THE_PROXY = frozenset(
    "alt-svc strict-transport-security public-key-pins public-key-pins-report-only expect-ct nel report-to reporting-endpoints".split()  # noqa: SIM905
)
"""Headers that would make a browser go around the proxy, remember something about the living host, or report
to it.
"""
_OUR_OWN = frozenset(
    "cache-control pragma expires age etag date server via memento-datetime link vary".split()  # noqa: SIM905
)
"""Headers that speak about a copy in a cache: the next question may be about another time."""
_DATE = re.compile(r"\s*(\d{4})-?(\d{2})?-?(\d{2})?\s*\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a terminal looks at."""

    timestamp: str = ""
    """14 digits; empty: as configured."""
    collection: str = ""


class Terminals:
    """The choices of terminals by their addresses; the one that chose longest ago is forgotten when there are
    very many.
    """

    def __init__(self) -> None:
        self._choices: OrderedDict[str, Choice] = OrderedDict()
        self._lock = Lock()

    def get(self, client: str) -> Choice:
        return self._choices.get(client, Choice())

    def choose(self, client: str, choice: Choice) -> None:
        with self._lock:
            self._choices.pop(client, None)
            self._choices[client] = choice
            if len(self._choices) > MOST_TERMINALS:
                self._choices.popitem(last=False)


async def answer(request: Request) -> Response:
    """Every request of a browser that uses the archive as its proxy."""
    request.state.is_archived = True
    host = request.headers.get("host", "").lower()
    if host.partition(":")[0] == CONTROL_HOST:
        return await _control(request)
    if request.method == "OPTIONS" and "access-control-request-method" in request.headers:
        return _allowed(request)
    body = b""
    if request.method in ("POST", "PUT", "PATCH"):
        async for piece in request.stream():
            body += piece[: post.MOST_BODY_BYTES - len(body)]
    return await run_in_threadpool(_archived, request, host, body)


def _archived(request: Request, host: str, body: bytes) -> Response:
    site = site_of(request)
    raw_path = (request.scope.get("raw_path") or b"/").decode("latin-1")
    query = request.scope["query_string"].decode("latin-1")
    asked = f"{request.scope['scheme']}://{host}{raw_path}{'?' if query else ''}{query}"
    url = find_canonical(asked)
    if url is None:
        return _missing(
            request,
            Address(collection=EVERYTHING, timestamp="", modifier="", url=Url(asked[:200])),
            _no_address(asked),
        )
    collection = _choice(request).collection or site.archive.config.web.proxy_collection
    found = Address(collection=collection, timestamp="", modifier="", url=url)
    try:
        stamp = _moment(request)
        folded = post.folded(url, request.method, request.headers.get("content-type", ""), body)
        reader = reader_of(request)
        try:
            opened = replay.open_capture(site.archive, folded, stamp, collection=collection, reader=reader)
        except NotKept:
            if folded == url:
                raise
            # Kept without its question, by a tool that wrote no request.
            opened = replay.open_capture(site.archive, url, stamp, collection=collection, reader=reader)
    except WebdepotError as error:
        return _missing(request, found, error)
    try:
        return _answered(request, found, opened)
    except BaseException:
        opened.close()
        raise


def _missing(request: Request, found: Address, error: WebdepotError) -> Response:
    response = raw.not_there(request, found, error)
    # No sandbox: the words stand under the address that was asked for, as a page of that origin.
    response.headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
    return response


def _answered(request: Request, found: Address, opened: Replayed) -> Response:
    status, stream, about_body = raw.body_of(request, opened)
    archived = opened.head.headers if opened.head else (("Content-Type", opened.capture.mime),)
    headers = [*passed_on(archived), *about_body, *raw.memento_of(request, found.collection, opened.capture)]
    headers += [("Cache-Control", "no-cache"), ("Vary", "Accept-Encoding, Accept-Datetime")]
    return raw.sent(status, headers, stream, opened.close)


def passed_on(archived: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Archived headers under their own names: cookies, policies, redirects act as they did, for the origin
    they were meant for.
    """
    kept = replay_headers.cleaned(archived)
    return [
        (name, value)
        for name, value in kept
        if name.lower() not in _AROUND_THE_PROXY | _OUR_OWN | {"content-encoding"}
    ]


def _allowed(request: Request) -> Response:
    """A browser asks before it asks: the archived answer says itself who may read it, and nothing here can be
    changed.
    """
    headers = {
        "Access-Control-Allow-Origin": request.headers.get("origin", "*"),
        "Access-Control-Allow-Methods": request.headers["access-control-request-method"],
        "Access-Control-Allow-Headers": request.headers.get("access-control-request-headers", ""),
        "Access-Control-Allow-Credentials": "true",
    }
    return Response(status_code=204, headers=headers)


def _moment(request: Request) -> str:
    """Fourteen digits to look near to."""
    wanted = request.headers.get("accept-datetime")
    if wanted:
        try:
            return to_timestamp(from_http(wanted))
        except ValueError:
            raise InputError("Accept-Datetime is no HTTP date.") from None
    archive = site_of(request).archive
    return _choice(request).timestamp or address.nearest_stamp(archive.config.web.proxy_date, archive.clock())


def _choice(request: Request) -> Choice:
    return of_app(request, Terminals).get(request.client.host if request.client else "")


def _no_address(asked: str) -> InputError:
    return InputError(f"{asked[:200]!r} is not a web address.")


# --- the page of the proxy itself ---


async def _control(request: Request) -> Response:
    path = request.scope["path"]
    if path in ("/authority.pem", "/authority.crt"):
        authority: Authority = request.app.state.authority
        headers = {"Content-Disposition": f'attachment; filename="{path[1:]}"'}
        return Response(authority.pem(), media_type="application/x-x509-ca-cert", headers=headers)
    if request.method == "POST":
        return await _chosen(request)
    return await run_in_threadpool(_shown, request, "")


async def _chosen(request: Request) -> Response:
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return Response(
            "An archived page may not choose for the reader.\n", status_code=403, media_type="text/plain"
        )
    body = b""
    async for piece in request.stream():
        body += piece[: _LONGEST_FORM_BYTES - len(body)]
    form = dict(parse_qsl(body.decode("latin-1")))
    try:
        choice = Choice(
            timestamp=_stamp(form.get("date", "")), collection=_collection(form.get("collection", ""))
        )
    except ValueError:
        return await run_in_threadpool(_shown, request, "proxy.wrong")
    of_app(request, Terminals).choose(request.client.host if request.client else "", choice)
    return RedirectResponse("/", status_code=303)


def _shown(request: Request, wrong: str) -> Response:
    archive, choice, spoken = site_of(request).archive, _choice(request), language_of(request)
    config = archive.config.web
    moment = (
        from_timestamp(choice.timestamp or config.proxy_date)
        if choice.timestamp or config.proxy_date
        else None
    )
    return render(
        request,
        "proxy.html",
        status=400 if wrong else 200,
        headers={
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
        },
        heading=spoken.texts["proxy.title"],
        date=f"{moment:%Y-%m-%d}" if moment else "",
        now=spoken.say("proxy.now", date=spoken.date(to_timestamp(moment)))
        if moment
        else spoken.texts["proxy.now_newest"],
        collection=choice.collection or config.proxy_collection,
        collections=sorted({*collections.names(archive), choice.collection} - {"", EVERYTHING}),
        wrong=spoken.texts[wrong] if wrong else "",
    )


def _stamp(text: str) -> str:
    """The last moment of the day, month or year that was typed; ValueError for anything else."""
    if not text.strip():
        return ""
    found = _DATE.match(text)
    if not found:
        raise ValueError(text)
    return to_timestamp(period_of("".join(part for part in found.groups() if part)).end)


def _collection(text: str) -> str:
    text = text.strip().lower()
    if text and not address.COLLECTION.match(text):
        raise ValueError(text)
    return text
