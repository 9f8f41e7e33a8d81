"""Fetching over HTTP: exact bytes in, one `Visit` out, whatever the server does.

libcurl does the talking (HTTP/1.0, 1.1 and 2, TLS), with its help turned off: no decoding of chunks or
content, no redirects, no cookies, no proxy from the environment, no own look-up of names. Order of steps:

1. `addresses.Router` finds where the host may be asked; a forbidden or missing address ends here. What
   libcurl then really connects to is checked once more when the socket is opened.
2. The request is written by us, header by header, so that it can be kept byte for byte; libcurl adds only
   line and `Host`.
3. Headers and body come in through callbacks, into lists (of the body up to `spool_bytes`, then into a
   temporary file). There are limits on both: a long body is kept as far as it came, a flood of headers is a
   failure.
4. libcurl's error number becomes a `Failure`, or, when the headers were whole, a `truncated` visit.

HTTP/2 is written down in HTTP/1.1 form (RFC 9113, 8.3 has no status line of its own); `protocol` says `h2`.
"""

import socket
import ssl
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import urlencode

import pycurl

from webdepot.container.http import content_decoded, parse_head, transfer_decoded
from webdepot.errors import NoSpace
from webdepot.harvest.fetch.addresses import Route, Router
from webdepot.harvest.fetch.cookies import CookieJar
from webdepot.harvest.fetch.curl_loop import CurlLoop
from webdepot.harvest.fetch.login import Login, filled
from webdepot.model import Candidate, Failure, Visit
from webdepot.times import Clock, utc_now
from webdepot.url import Url

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ACCEPT_ENCODING = "gzip, deflate, br"
_STOP = -1
_DEFAULT_PORTS = {"http": 80, "https": 443}

_TIMEOUT = 28
_FAILURES: dict[int, Failure] = {
    6: Failure.DNS,
    7: Failure.CONNECT,
    _TIMEOUT: Failure.TIMEOUT,
    18: Failure.DISCONNECT,
    52: Failure.DISCONNECT,
    55: Failure.DISCONNECT,
    56: Failure.DISCONNECT,
    **dict.fromkeys((35, 51, 53, 54, 58, 59, 60, 64, 66, 77, 80, 82, 83, 90, 91, 98), Failure.TLS),
}
"""libcurl's error numbers (https://curl.se/libcurl/c/libcurl-errors.html); any other is a breach of protocol.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    timeout_s: float = 60.0
    """For the whole request; what came until then is kept and marked."""
    connect_timeout_s: float = 15.0
    body_bytes: int = 4 << 30
    head_bytes: int = 128 << 10
    spool_bytes: int = 1 << 20
    """So much of a body stays in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAccess:
    """What is particular about asking one host."""

    bytes_per_s: int = 0
    """Bandwidth; 0 is no cap."""
    verify: bool = True
    """Whether its certificate must be valid."""
    login: Login | None = None


_PLAIN_ACCESS = HostAccess()


def _plain_access(host: str) -> HostAccess:
    return _PLAIN_ACCESS


class CurlFetcher:
    """`Fetcher` on libcurl. Made and used inside one running event loop; at most one request per host is the
    caller's care.
    """

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
        """`access` is asked with the host name of every request; without a jar no cookies are kept."""
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
        self._idle: list[_Transfer] = []

    def known_server(self, origin: str) -> str:
        """The address at which a host would be asked, if it needs no look-up; empty otherwise."""
        _, host, port = _place(origin)
        route = self._router.find_known(host, port)
        return _server_of(route) if route is not None else ""

    async def find_server(self, origin: str) -> str:
        """As `known_server`, looking the name up; empty when it has no address."""
        _, host, port = _place(origin)
        return _server_of(await self._router.find(host, port))

    def fetch(
        self, candidate: Candidate, headers: Sequence[tuple[str, str]] = ()
    ) -> Coroutine[None, None, Visit]:
        """Ask for one URL. Raises nothing but NoSpace, when our own disk takes no more."""
        host = _parts(candidate.url)[1]
        access = self._access(host)
        if access.login is not None and access.login.form and host not in self._logged_in:
            self._logged_in.add(host)
            return self._fetch_logged_in(candidate, access, access.login, headers)
        return self._fetch(candidate, access, more=headers)

    async def _fetch_logged_in(
        self, candidate: Candidate, access: HostAccess, login: Login, headers: Sequence[tuple[str, str]]
    ) -> Visit:
        await self._log_in(login, access)
        return await self._fetch(candidate, access, more=headers)

    async def _log_in(self, login: Login, access: HostAccess) -> None:
        """Fetch the form, fill it in, send it; only its cookies matter. What fails is seen by the answers to
        come.
        """
        page = await self._fetch(Candidate(url=Url(login.form)), access, is_secret=True)
        with page.body:
            head = parse_head(page.head)
            body = content_decoded(transfer_decoded(page.body, head), head, limit_bytes=1 << 20).read()
        action, fields = filled(body.decode("utf-8", "replace"), login.form, login.fields)
        sent = await self._fetch(Candidate(url=Url(action)), access, is_secret=True, form=urlencode(fields))
        sent.body.close()

    async def _fetch(
        self,
        candidate: Candidate,
        access: HostAccess,
        *,
        is_secret: bool = False,
        form: str = "",
        more: Sequence[tuple[str, str]] = (),
    ) -> Visit:
        at = self._clock()
        scheme, host, port, target = _parts(candidate.url)
        if scheme not in _DEFAULT_PORTS:
            return _failed(
                candidate,
                at=at,
                failure=Failure.PROTOCOL,
                detail=f"{scheme} is not spoken here",
                permanent=True,
            )
        route = self._router.find_known(host, port) or await self._router.find(host, port)
        if route.failure is not None:
            return _failed(
                candidate, at=at, failure=route.failure, detail=route.detail, permanent=route.permanent
            )
        authority = host if port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"
        headers = (
            [*self._headers, b"Referer: " + candidate.via.encode()]
            if candidate.via and _may_refer(candidate)
            else self._headers
        )
        if more:
            headers = _with_more(headers, more)
        shown = headers
        if self._cookies is not None and (cookies := self._cookies.header(candidate.url, at))[0]:
            shown = [*headers, _header("Cookie", cookies[1])]
            headers = [*headers, _header("Cookie", cookies[0])]
        method = "POST" if form else "GET"
        request = b"\r\n".join(
            (f"{method} {target} HTTP/1.1\r\nHost: {authority}".encode("ascii", "replace"), *shown, b"", b"")
        )
        transfer = (
            self._idle.pop() if self._idle else _Transfer(self._limits, self._ca_file, self._spool_folder)
        )
        transfer.prepare(f"{scheme}://{authority}/", target, headers, _route_options(route, host, port))
        transfer.may_connect = _anywhere if route.connect_to else self._router.allows
        transfer.follow(access, form)
        try:
            number, message = await self._loop.begin(transfer.curl)
        except BaseException:  # cancelled: the crawl was stopped
            self._loop.give_up(transfer.curl)
            transfer.discard()
            raise
        visit = transfer.visit(candidate, request, number, message, at=at)
        self._idle.append(transfer)
        if self._cookies is not None and (b"-Cookie:" in visit.head or b"-cookie:" in visit.head.lower()):
            self._cookies.take(
                parse_head(visit.head).get_all("set-cookie"), candidate.url, at, secret=is_secret
            )
        return visit

    async def close(self) -> None:
        self._loop.close()
        self._router.close()
        for transfer in self._idle:
            transfer.curl.close()
        self._idle.clear()


class _Transfer:
    """One libcurl handle and what came over it; used again for the next request."""

    def __init__(self, limits: FetchLimits, ca_file: str | None, spool_folder: Path | None) -> None:
        self._limits = limits
        self._spool_folder = spool_folder
        self._head: list[bytes] = []
        """Lines as they come. libcurl itself ends a transfer with more than 300 KB of them."""
        self._route = _NO_ROUTE
        self.curl = pycurl.Curl()
        for option, value in _fixed_options(limits, ca_file).items():
            self.curl.setopt(option, value)
        self.curl.setopt(pycurl.HEADERFUNCTION, self._head.append)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._on_socket)
        self.may_connect: Callable[[str], bool] = _anywhere
        self._access, self._form = _PLAIN_ACCESS, ""
        self._opened: list[socket.socket] = []
        """Sockets given to pycurl, which works on a duplicate: ours are closed after the transfer."""

    def prepare(self, url: str, target: str, headers: list[bytes], route: dict[int, list[str]]) -> None:
        self._head.clear()
        self._pieces: list[bytes] = []
        self._spool: BinaryIO | None = None
        self._body_bytes = 0
        self._stopped = ""
        self._disk_error: OSError | None = None
        self._refused_address = ""
        set_option = self.curl.setopt
        set_option(pycurl.URL, url)
        set_option(pycurl.REQUEST_TARGET, target)
        set_option(pycurl.HTTPHEADER, headers)
        if route != self._route or route is not _NO_ROUTE:
            # Set again even when it is the same: libcurl reads it once.
            self._route = route
            for option, value in route.items():
                set_option(option, value)

    def follow(self, access: HostAccess, form: str) -> None:
        """Set what differs for this host, and send a form if there is one; most requests change nothing."""
        if (access is self._access or access == self._access) and form == self._form:
            return
        self._access, self._form = access, form
        set_option, login = self.curl.setopt, access.login
        set_option(pycurl.MAX_RECV_SPEED_LARGE, access.bytes_per_s)
        set_option(pycurl.SSL_VERIFYPEER, int(access.verify))
        set_option(pycurl.SSL_VERIFYHOST, 2 if access.verify else 0)
        if form:
            set_option(pycurl.POSTFIELDS, form)
        else:
            set_option(pycurl.HTTPGET, 1)
        if login is not None and login.user:
            set_option(pycurl.HTTPAUTH, pycurl.HTTPAUTH_BASIC | pycurl.HTTPAUTH_DIGEST)
            set_option(pycurl.USERPWD, f"{login.user}:{login.password}")
        else:
            self.curl.unsetopt(pycurl.USERPWD)

    def _on_body(self, piece: bytes) -> int | None:
        room = self._limits.body_bytes - self._body_bytes
        self._pieces.append(piece if len(piece) <= room else piece[:room])
        self._body_bytes += min(len(piece), room)
        if self._body_bytes > self._limits.spool_bytes and not self._spooled():
            return _STOP
        if len(piece) > room:
            self._stopped = "length"
            return _STOP
        return None

    def _spooled(self) -> bool:
        """Put what came into the temporary file; False when the disk takes no more (an exception would be
        lost in libcurl).
        """
        try:
            if self._spool is None:
                self._spool = cast(BinaryIO, tempfile.TemporaryFile(dir=self._spool_folder))  # noqa: SIM115 - it is the visit's
            self._spool.writelines(self._pieces)
        except OSError as error:
            self._disk_error = error
            return False
        self._pieces = []
        return True

    def _body(self) -> BinaryIO:
        """What came, from its beginning."""
        if self._spool is None:
            return BytesIO(self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces))
        try:
            self._spool.seek(0)  # which writes what is buffered
        except OSError as error:
            self._disk_error = error
        return self._spool

    def _whole_head(self) -> list[bytes]:
        """The lines of the final answer's head; none when it did not come to its end, or had no end.

        Before it stand interim answers (1xx) and the question for a password; behind it trailers, which are
        in the body, too, where the chunks are.
        """
        lines = self._head
        if not lines or sum(map(len, lines)) > self._limits.head_bytes:
            return []
        if lines[-1] in _EMPTY_LINES and lines.index(lines[-1]) == len(lines) - 1:
            return lines
        begin, found = 0, (0, 0)
        for at, line in enumerate(lines, 1):
            if line in _EMPTY_LINES:
                found = (begin, at) if lines[begin][:5] == b"HTTP/" or found == (0, 0) else found
                begin = at
        return lines[slice(*found)] if begin == len(lines) or lines[begin][:5] != b"HTTP/" else []

    def _on_socket(self, purpose: int, address: tuple[int, int, int, tuple[str, int]]) -> socket.socket | int:
        family, kind, protocol, place = address
        if not self.may_connect(place[0]):
            self._refused_address = place[0]
            return cast(int, pycurl.SOCKET_BAD)
        opened = socket.socket(family, kind, protocol)
        self._opened.append(opened)
        return opened

    def visit(
        self, candidate: Candidate, request: bytes, number: int, message: str, *, at: datetime
    ) -> Visit:
        """What came of it. The transfer may be used again afterwards: the visit owns the spool."""
        while self._opened:
            self._opened.pop().close()
        body = self._body()
        if self._disk_error is not None:
            body.close()
            raise NoSpace(
                f"The temporary folder takes no more while {candidate.url} is fetched: {self._disk_error}"
            ) from self._disk_error
        curl = self.curl
        protocol = (
            "h2" if curl.getinfo(pycurl.INFO_HTTP_VERSION) == pycurl.CURL_HTTP_VERSION_2_0 else "http/1.1"
        )
        lines = self._whole_head()
        whole = bool(lines)
        failure, detail = (None, "") if whole else self._failure(number, message)
        head = _as_http1(lines) if protocol == "h2" and whole else b"".join(lines)
        if not whole:
            body.close()
            body, self._body_bytes = BytesIO(), 0
        return Visit(
            candidate=candidate,
            at=at,
            duration_s=curl.getinfo(pycurl.TOTAL_TIME),
            request=request if curl.getinfo(pycurl.REQUEST_SIZE) else b"",
            head=head,
            body=body,
            body_bytes=self._body_bytes,
            status=curl.getinfo(pycurl.RESPONSE_CODE) if whole else 0,
            server_address=curl.getinfo(pycurl.PRIMARY_IP) or "",
            protocol=protocol,
            truncated=self._truncated(number) if whole and number else "",
            failure=failure,
            failure_detail=detail,
        )

    def discard(self) -> None:
        """Let go of everything; not to be used again."""
        while self._opened:
            self._opened.pop().close()
        if self._spool is not None:
            self._spool.close()
        self.curl.close()

    def _failure(self, number: int, message: str) -> tuple[Failure, str]:
        if sum(map(len, self._head)) > self._limits.head_bytes:
            return Failure.PROTOCOL, f"more than {self._limits.head_bytes} bytes of headers"
        if self._refused_address:
            return Failure.PRIVATE_ADDRESS, f"{self._refused_address} is not on the open internet"
        if number == _TIMEOUT and not self.curl.getinfo(pycurl.CONNECT_TIME):
            return Failure.CONNECT, f"no connection within {self._limits.connect_timeout_s:g} s"
        return _FAILURES.get(number, Failure.PROTOCOL), message or "no headers came"

    def _truncated(self, number: int) -> str:
        return self._stopped or ("time" if number == _TIMEOUT else "disconnect")


def _fixed_options(limits: FetchLimits, ca_file: str | None) -> dict[int, object]:
    options: dict[int, object] = {
        pycurl.NOSIGNAL: 1,
        pycurl.NOPROGRESS: 1,
        pycurl.PROXY: "",  # never from the environment: it would go round our check of addresses
        pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
        pycurl.FOLLOWLOCATION: 0,
        pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_2TLS,
        pycurl.HTTP_TRANSFER_DECODING: 0,
        pycurl.HTTP_CONTENT_DECODING: 0,
        pycurl.HTTP09_ALLOWED: 0,
        pycurl.PATH_AS_IS: 1,
        pycurl.DNS_CACHE_TIMEOUT: 60,
        pycurl.CONNECTTIMEOUT_MS: int(limits.connect_timeout_s * 1000),
        pycurl.TIMEOUT_MS: int(limits.timeout_s * 1000),
        pycurl.BUFFERSIZE: 128 << 10,
        pycurl.TCP_NODELAY: 1,
    }
    if ca_file:
        options[pycurl.CAINFO] = ca_file
    return options


def _server_of(route: Route) -> str:
    """One name for one server: where the operator sends us, or its first address."""
    if len(route.addresses) == 1:
        return route.connect_to or route.addresses[0]
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
    """One line of a request. An institution's name may have any letters; a line has one line."""
    return f"{name}: {' '.join(value.split())}".encode("latin-1", "replace")


def _with_more(headers: list[bytes], more: Sequence[tuple[str, str]]) -> list[bytes]:
    """Ours, without those that are given anew. Who we are is not given anew."""
    given = {name.lower().encode("latin-1", "replace") for name, _ in more}
    kept = [line for line in headers if line.partition(b":")[0].lower() not in given]
    return [
        *kept,
        *(_header(name, value) for name, value in more if name.isascii() and name.replace("-", "").isalnum()),
    ]


def _may_refer(candidate: Candidate) -> bool:
    """The page that led here, as browsers tell it; not from https to http, not with a password in it."""
    via = candidate.via
    return (
        via is not None
        and "@" not in via
        and via.isascii()
        and (via[:6] != "https:" or candidate.url[:6] == "https:")
    )


_NO_ROUTE: dict[int, list[str]] = {pycurl.CONNECT_TO: [], pycurl.RESOLVE: []}
_EMPTY_LINES = (b"\r\n", b"\n")


def _route_options(route: Route, host: str, port: int) -> dict[int, list[str]]:
    if route.connect_to:
        return {pycurl.CONNECT_TO: [f"{host}:{port}:{route.connect_to}"], pycurl.RESOLVE: []}
    if host[0] == "[" or route.addresses == (host,):
        return _NO_ROUTE
    # "+" lets libcurl forget the entry after DNS_CACHE_TIMEOUT; without it they would pile up over a wide
    # crawl.
    joined = ",".join(f"[{address}]" if ":" in address else address for address in route.addresses)
    return {pycurl.CONNECT_TO: [], pycurl.RESOLVE: [f"+{host}:{port}:{joined}"]}


def _as_http1(lines: list[bytes]) -> bytes:
    """`HTTP/2 200` becomes `HTTP/1.1 200 OK`: readers of containers know no other form."""
    number = lines[0].split()[1].decode("ascii", "replace") if lines and len(lines[0].split()) > 1 else "0"
    try:
        phrase = HTTPStatus(int(number)).phrase
    except ValueError:
        phrase = ""
    return b"".join((f"HTTP/1.1 {number} {phrase}\r\n".encode("latin-1"), *lines[1:]))


def _anywhere(address: str) -> bool:
    return True


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
