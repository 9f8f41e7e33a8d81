"""Fetching over HTTP: the exact bytes of a response as one `Visit`, whatever the server does.

libcurl speaks HTTP/1.0, 1.1, 2 and TLS (`curl_transfer`, `curl_loop`). Order of steps:

1. `host_addresses.Router` finds the addresses of the host; a forbidden or missing address ends here. The
   address that libcurl then connects to is checked once more when the socket is opened.
2. We build the request header by header, so that it can be stored byte for byte; libcurl adds only the
   request line and `Host`.
3. The transfer runs on the event loop and becomes a visit.

HTTP/2 has no status line (RFC 9113, 8.3), so it is stored in HTTP/1.1 form; `protocol` is then `h2`.
"""

import logging
import ssl
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode

from webdepot.container.http import content_decoded, parse_head, transfer_decoded
from webdepot.harvest.fetch.cookies import CookieJar, hide_values
from webdepot.harvest.fetch.curl_loop import CurlLoop
from webdepot.harvest.fetch.curl_transfer import (
    PLAIN_ACCESS,
    CurlTransfer,
    FetchLimits,
    HostAccess,
    connect_anywhere,
    route_options,
)
from webdepot.harvest.fetch.host_addresses import Route, Router
from webdepot.harvest.fetch.login import Login, fill_form
from webdepot.model import Candidate, Failure, Visit
from webdepot.times import Clock, utc_now
from webdepot.url import Url, origin_of

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ACCEPT_ENCODING = "gzip, deflate, br"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_log = logging.getLogger(__name__)


def _plain_access(origin: str) -> HostAccess:
    return PLAIN_ACCESS


class CurlFetcher:
    """`Fetcher` with libcurl, for one running event loop. The caller limits the requests per host."""

    def __init__(
        self,
        *,
        user_agent: str,
        limits: FetchLimits | None = None,
        router: Router | None = None,
        clock: Clock = utc_now,
        spool_folder: Path | None = None,
        ca_file: Path | None = None,
        connections: int = 256,
        access: Callable[[str], HostAccess] = _plain_access,
        cookies: CookieJar | None = None,
    ) -> None:
        """`access` is called with the origin of every request; without a jar no cookies are kept."""
        self._access = access
        self._cookies = cookies
        self._logged_in: set[str] = set()
        self._headers = [
            _header("User-Agent", user_agent),
            _header("Accept", ACCEPT),
            _header("Accept-Encoding", ACCEPT_ENCODING),
        ]
        self._limits = limits or FetchLimits()
        self._router = router or Router(timeout_s=self._limits.connect_timeout_s)
        self._clock = clock
        self._spool_folder = spool_folder
        self._ca_file = str(ca_file) if ca_file else ssl.get_default_verify_paths().cafile
        self._loop = CurlLoop(connections=connections)
        self._idle: list[CurlTransfer] = []

    def known_server(self, origin: str) -> str:
        """The address of a host if it is known without a lookup; empty otherwise."""
        _, host, port = _place(origin)
        route = self._router.find_known(host, port)
        return _server_of(route) if route is not None else ""

    async def find_server(self, origin: str) -> str:
        """The address of a host, with a lookup if needed; empty if it has none."""
        _, host, port = _place(origin)
        return _server_of(await self._router.find(host, port))

    def fetch(
        self, candidate: Candidate, headers: Sequence[tuple[str, str]] = (), body: bytes = b""
    ) -> Coroutine[None, None, Visit]:
        """Fetch one URL, by POST if there is a body. Raises only NoSpace, when our own disk is full."""
        origin = origin_of(candidate.url)
        access = self._access(origin)
        if access.login is not None and access.login.form and origin not in self._logged_in:
            self._logged_in.add(origin)
            return self._fetch_logged_in(candidate, access, access.login, headers, body)
        return self._fetch(candidate, access, more=headers, body=body)

    async def _fetch_logged_in(
        self,
        candidate: Candidate,
        access: HostAccess,
        login: Login,
        headers: Sequence[tuple[str, str]],
        body: bytes,
    ) -> Visit:
        await self._log_in(login, access)
        return await self._fetch(candidate, access, more=headers, body=body)

    async def _log_in(self, login: Login, access: HostAccess) -> None:
        """Fetch the form, fill it in and send it, for its cookies. A failure shows in later responses."""
        page = await self._fetch(Candidate(url=Url(login.form)), access)
        with page.body:
            head = parse_head(page.head)
            body = content_decoded(transfer_decoded(page.body, head), head, limit_bytes=1 << 20).read()
        action, fields = fill_form(body.decode("utf-8", "replace"), login.form, login.fields)
        if not login.is_for(action):
            _log.warning(
                "login %s: its form is sent to %s, which is not one of its origins; nothing was sent. "
                "If that is right, add it to origins in the file of logins.",
                login.name,
                origin_of(action),
            )
            return
        sent = await self._fetch(Candidate(url=Url(action)), access, body=urlencode(fields).encode())
        sent.body.close()

    async def _fetch(
        self,
        candidate: Candidate,
        access: HostAccess,
        *,
        body: bytes = b"",
        more: Sequence[tuple[str, str]] = (),
    ) -> Visit:
        login = access.login
        if login is not None and not login.is_for(candidate.url):  # the last check before something is sent
            access, login = replace(access, login=None), None
        at = self._clock()
        scheme, host, port, target = _parts(candidate.url)
        if scheme not in _DEFAULT_PORTS:
            return _failed(
                candidate,
                at=at,
                failure=Failure.PROTOCOL,
                detail=f"{scheme} is not supported",
                permanent=True,
            )
        route = self._router.find_known(host, port) or await self._router.find(host, port)
        if route.failure is not None:
            return _failed(
                candidate, at=at, failure=route.failure, detail=route.detail, permanent=route.permanent
            )
        authority = host if port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"
        headers, shown = self._headers_for(candidate, more, at)
        first_lines = f"{'POST' if body else 'GET'} {target} HTTP/1.1\r\nHost: {authority}"
        length = [b"Content-Length: %d" % len(body)] if body else []
        request = b"\r\n".join((first_lines.encode("ascii", "replace"), *shown, *length, b"", body))
        transfer = (
            self._idle.pop() if self._idle else CurlTransfer(self._limits, self._ca_file, self._spool_folder)
        )
        transfer.prepare(f"{scheme}://{authority}/", target, headers, route_options(route, host, port))
        transfer.may_connect = connect_anywhere if route.connect_to else self._router.allows
        transfer.follow(access, body)
        try:
            number, message = await self._loop.begin(transfer.curl)
        except BaseException:  # cancelled: the crawl was stopped
            self._loop.give_up(transfer.curl)
            transfer.discard()
            raise
        visit = transfer.visit(candidate, request, number, message, at=at)
        removed = ("Authorization",) * (login is not None and bool(login.user))
        removed += ("Cookie",) * (headers != shown)
        if removed:
            visit = replace(visit, removed=removed)
        self._idle.append(transfer)
        if login is not None or b"set-cookie" in visit.head.lower():
            return self._with_cookies_taken(visit, login)
        return visit

    def _with_cookies_taken(self, visit: Visit, login: Login | None) -> Visit:
        """Put the cookies of a response into the jar. The visit is returned without secret values."""
        jar, url = self._cookies, visit.candidate.url
        if jar is not None:
            lines = parse_head(visit.head).get_all("set-cookie")
            jar.take(lines, url, visit.at, origins=login.origins if login is not None else None)
        head = hide_values(
            visit.head, lambda name: login is not None or (jar is not None and jar.is_secret(name, url))
        )
        return (
            visit if head == visit.head else replace(visit, head=head, removed=(*visit.removed, "Set-Cookie"))
        )

    def _headers_for(
        self, candidate: Candidate, more: Sequence[tuple[str, str]], at: datetime
    ) -> tuple[list[bytes], list[bytes]]:
        """The header lines to send, and the same without secret cookies, to store."""
        headers = self._headers
        if candidate.via and _may_refer(candidate):
            headers = [*headers, b"Referer: " + candidate.via.encode()]
        if more:
            headers = _with_more(headers, more)
        sent, shown = self._cookies.header(candidate.url, at) if self._cookies is not None else ("", "")
        if not sent:
            return headers, headers
        return [*headers, _header("Cookie", sent)], [*headers, _header("Cookie", shown)]

    async def close(self) -> None:
        self._loop.close()
        self._router.close()
        for transfer in self._idle:
            transfer.curl.close()
        self._idle.clear()


def _server_of(route: Route) -> str:
    """The name of a server: the place in `connect_to`, or its lowest address."""
    return route.connect_to or min(route.addresses, default="")


def _parts(url: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and request target of a canonical address; user and password are left out."""
    slash = url.find("/", url.find("://") + 3)
    return (*_place(url), "/") if slash < 0 else (*_place(url[:slash]), url[slash:])


@lru_cache(maxsize=10_000)
def _place(origin: str) -> tuple[str, str, int]:
    scheme, _, authority = origin.partition("://")
    authority = authority.rpartition("@")[2]
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        return scheme, authority, _DEFAULT_PORTS.get(scheme, 0)
    return scheme, host, int(port)


def _header(name: str, value: str) -> bytes:
    """One header line. The name of an institution may contain any characters, but no line breaks."""
    return f"{name}: {' '.join(value.split())}".encode("latin-1", "replace")


def _with_more(headers: list[bytes], more: Sequence[tuple[str, str]]) -> list[bytes]:
    """Our headers, with those in `more` replaced or added."""
    replaced = {name.lower().encode("latin-1", "replace") for name, _ in more}
    kept = [line for line in headers if line.partition(b":")[0].lower() not in replaced]
    return [
        *kept,
        *(_header(name, value) for name, value in more if name.isascii() and name.replace("-", "").isalnum()),
    ]


def _may_refer(candidate: Candidate) -> bool:
    """Whether the referring page may be sent, as in browsers: not from https to http, not with a password."""
    via = candidate.via
    return (
        via is not None
        and "@" not in via
        and via.isascii()
        and (via[:6] != "https:" or candidate.url[:6] == "https:")
    )


def _failed(candidate: Candidate, *, at: datetime, failure: Failure, detail: str, permanent: bool) -> Visit:
    return Visit(
        candidate=candidate,
        at=at,
        duration_s=0.0,
        body=BytesIO(),
        failure=failure,
        failure_detail=detail,
        permanent=permanent,
    )
