"""Proxy mode: the archive as the HTTP proxy of reading-room terminals. Pages are shown under their own
address, so nothing is rewritten.

    request    GET http://www.example.org/page?x=1, or the same inside a TLS tunnel (`tunnel.py`)
    moment     Accept-Datetime of the request, else the terminal's choice, else [web] proxy_date, else now
    answer     status, headers and body as archived, with the same access rules as everywhere; 404 for
               a page that is not archived, never the live web

http://webdepot.proxy/ is a page of the proxy itself: it shows and changes the moment and the collection of
this terminal, and offers the certificate of the authority that terminals must trust for pages over HTTPS.
Terminals are distinguished by their address.
"""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from webdepot.errors import InputError, WebdepotError
from webdepot.model import EVERYTHING
from webdepot.services.access import collections
from webdepot.services.access.replay import replay_answer, session_cookies
from webdepot.services.access.replay.replay import Replayed
from webdepot.services.access.replay.replay_answer import MOST_BODY_BYTES
from webdepot.times import from_http, from_timestamp, period_of, to_timestamp
from webdepot.url import Url, find_canonical
from webdepot.web.language.language import read_date
from webdepot.web.replay import address, captures
from webdepot.web.replay.address import ReplayAddress
from webdepot.web.replay.authority import Authority
from webdepot.web.site import language_of, of_app, reader_of, render, site_of

CONTROL_HOST = "webdepot.proxy"
MOST_TERMINALS = 10_000
_LONGEST_FORM_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalChoice:
    """What a terminal shows."""

    timestamp: str = ""
    """14 digits; empty means as configured."""
    collection: str = ""


class Terminals:
    """The choices of terminals by their addresses; the oldest is forgotten when there are very many."""

    def __init__(self) -> None:
        self._choices: OrderedDict[str, TerminalChoice] = OrderedDict()
        self._lock = Lock()

    def get(self, client: str) -> TerminalChoice:
        return self._choices.get(client, TerminalChoice())

    def choose(self, client: str, choice: TerminalChoice) -> None:
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
        return _allow(request)
    body = b""
    if request.method in ("POST", "PUT", "PATCH"):
        async for piece in request.stream():
            body += piece[: MOST_BODY_BYTES - len(body)]
    return await run_in_threadpool(_archived, request, host, body)


def _archived(request: Request, host: str, body: bytes) -> Response:
    site = site_of(request)
    raw_path = (request.scope.get("raw_path") or b"/").decode("latin-1")
    query = request.scope["query_string"].decode("latin-1")
    text = f"{request.scope['scheme']}://{host}{raw_path}{'?' if query else ''}{query}"
    url = find_canonical(text)
    if url is None:
        asked = ReplayAddress(collection=EVERYTHING, timestamp="", modifier="", url=Url(text[:200]))
        return _missing(request, asked, InputError(f"{text[:200]!r} is not a web address."))
    collection = _choice(request).collection or site.archive.config.web.proxy_collection
    asked = ReplayAddress(collection=collection, timestamp="", modifier="", url=url)
    try:
        opened = replay_answer.open_requested(
            site.archive,
            url,
            _moment(request),
            method=request.method,
            content_type=request.headers.get("content-type", ""),
            body=body,
            collection=collection,
            reader=reader_of(request),
        )
    except WebdepotError as error:
        return _missing(request, asked, error)
    try:
        return _answer(request, asked, opened)
    except BaseException:
        opened.close()
        raise


def _missing(request: Request, asked: ReplayAddress, error: WebdepotError) -> Response:
    response = captures.not_there(request, asked, error)
    # No sandbox: the message is shown under the address that was asked for, as a page of that origin.
    response.headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
    return response


def _answer(request: Request, asked: ReplayAddress, opened: Replayed) -> Response:
    headers = [
        *captures.memento_of(request, asked.collection, opened.capture),
        ("Cache-Control", "no-cache"),
        ("Vary", "Accept-Encoding, Accept-Datetime"),
    ]
    has_cookies = not session_cookies.concern(site_of(request).archive, opened.capture.url)
    answer = replay_answer.for_proxy(opened, **captures.wanted_body(request), has_cookies=has_cookies)
    return captures.send(answer, headers, opened.close)


def _allow(request: Request) -> Response:
    """The answer to a preflight request: the archived answer itself says who may read it, and nothing can be
    changed here.
    """
    headers = {
        "Access-Control-Allow-Origin": request.headers.get("origin", "*"),
        "Access-Control-Allow-Methods": request.headers["access-control-request-method"],
        "Access-Control-Allow-Headers": request.headers.get("access-control-request-headers", ""),
        "Access-Control-Allow-Credentials": "true",
    }
    return Response(status_code=204, headers=headers)


def _moment(request: Request) -> str:
    """The 14 digits to find the closest version to."""
    wanted = request.headers.get("accept-datetime")
    if wanted:
        try:
            return to_timestamp(from_http(wanted))
        except ValueError:
            raise InputError("Accept-Datetime is not an HTTP date.") from None
    archive = site_of(request).archive
    return _choice(request).timestamp or address.nearest_stamp(archive.config.web.proxy_date, archive.clock())


def _choice(request: Request) -> TerminalChoice:
    return of_app(request, Terminals).get(request.client.host if request.client else "")


# --- the page of the proxy itself ---


async def _control(request: Request) -> Response:
    path = request.scope["path"]
    if path in ("/authority.pem", "/authority.crt"):
        authority: Authority = request.app.state.authority
        headers = {"Content-Disposition": f'attachment; filename="{path[1:]}"'}
        return Response(authority.pem(), media_type="application/x-x509-ca-cert", headers=headers)
    if request.method == "POST":
        return await _change(request)
    return await run_in_threadpool(_show, request, "")


async def _change(request: Request) -> Response:
    if not _is_own(request):
        return Response(
            "An archived page may not change the settings of the reader.\n",
            status_code=403,
            media_type="text/plain",
        )
    body = b""
    async for piece in request.stream():
        body += piece[: _LONGEST_FORM_BYTES - len(body)]
    form = dict(parse_qsl(body.decode("latin-1")))
    try:
        choice = TerminalChoice(
            timestamp=_stamp(form.get("date", "")), collection=_collection(form.get("collection", ""))
        )
    except ValueError:
        return await run_in_threadpool(_show, request, "proxy.wrong")
    of_app(request, Terminals).choose(request.client.host if request.client else "", choice)
    return RedirectResponse("/", status_code=303)


def _is_own(request: Request) -> bool:
    """Whether our own page sent the form. Browsers send Sec-Fetch-Site over HTTPS only, but Origin with every
    form.
    """
    site = request.headers.get("sec-fetch-site", "same-origin")
    own = f"{request.scope['scheme']}://{request.headers.get('host', '').lower()}"
    return site in ("same-origin", "none") and request.headers.get("origin", own) == own


def _show(request: Request, wrong: str) -> Response:
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
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
            "form-action 'self'; frame-ancestors 'none'"
        },
        heading=spoken.texts["proxy.title"],
        date=spoken.date(to_timestamp(moment)) if moment else "",
        now=spoken.say("proxy.now", date=spoken.date(to_timestamp(moment)))
        if moment
        else spoken.texts["proxy.now_newest"],
        collection=choice.collection or config.proxy_collection,
        collections=sorted({*collections.names(archive), choice.collection} - {"", EVERYTHING}),
        wrong=spoken.texts[wrong] if wrong else "",
    )


def _stamp(text: str) -> str:
    """The last moment of a day, month or year as typed; ValueError for anything else."""
    if not text.strip():
        return ""
    return to_timestamp(period_of(read_date(text)).end)


def _collection(text: str) -> str:
    text = text.strip().lower()
    if text and not address.COLLECTION.match(text):
        raise ValueError(text)
    return text
