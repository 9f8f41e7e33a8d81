"""One libcurl handle: how it is set up, how a response is received, and the `Visit` that it becomes.

libcurl's own features are turned off: no decoding of chunks or content, no redirects, no proxy from the
environment, no DNS. Headers and body come through callbacks into lists, the body after `spool_bytes` into a
temporary file. Both are limited: a long body is kept as far as it was received, too many headers are a
failure. libcurl's error number becomes a `Failure`, or, if the headers were complete, a `truncated` visit.
"""

import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, cast

import pycurl

from webdepot.errors import NoSpace
from webdepot.harvest.fetch.host_addresses import Route
from webdepot.harvest.fetch.login import Login
from webdepot.model import Candidate, Failure, Visit

_STOP = -1
_EMPTY_LINES = (b"\r\n", b"\n")
_NO_ROUTE: dict[int, list[str]] = {pycurl.CONNECT_TO: [], pycurl.RESOLVE: []}
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
"""libcurl's error numbers (https://curl.se/libcurl/c/libcurl-errors.html); any other is a protocol error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    timeout_s: float = 60.0
    """For the whole request; what was received until then is kept and marked."""
    connect_timeout_s: float = 15.0
    body_bytes: int = 4 << 30
    head_bytes: int = 128 << 10
    spool_bytes: int = 1 << 20
    """How much of a body stays in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAccess:
    """Special settings for requests to one host."""

    bytes_per_s: int = 0
    """Bandwidth; 0 means no limit."""
    verify: bool = True
    """Whether its certificate must be valid."""
    login: Login | None = None


PLAIN_ACCESS = HostAccess()


class CurlTransfer:
    """One libcurl handle and what it received; reused for the next request."""

    def __init__(self, limits: FetchLimits, ca_file: str | None, spool_folder: Path | None) -> None:
        self._limits = limits
        self._spool_folder = spool_folder
        self._head: list[bytes] = []
        """Lines as received. libcurl itself ends a transfer with more than 300 KB of them."""
        self._route = _NO_ROUTE
        self.curl = pycurl.Curl()
        for option, value in _fixed_options(limits, ca_file).items():
            self.curl.setopt(option, value)
        self.curl.setopt(pycurl.HEADERFUNCTION, self._head.append)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._on_socket)
        self.may_connect: Callable[[str], bool] = connect_anywhere
        self._access, self._sent = PLAIN_ACCESS, b""
        self._opened: list[socket.socket] = []
        """Sockets given to pycurl, which uses a duplicate: ours are closed after the transfer."""

    def prepare(self, url: str, target: str, headers: list[bytes], route: dict[int, list[str]]) -> None:
        self._head.clear()
        self._pieces: list[bytes] = []
        self._spool: BinaryIO | None = None
        self._body_bytes = 0
        self._stopped = ""
        self._disk_error: OSError | None = None
        self._refused_address = ""
        self.curl.setopt(pycurl.URL, url)
        self.curl.setopt(pycurl.REQUEST_TARGET, target)
        self.curl.setopt(pycurl.HTTPHEADER, headers)
        if route != self._route or route is not _NO_ROUTE:
            # Set again even if it is the same: libcurl reads it once.
            self._route = route
            for option, value in route.items():
                self.curl.setopt(option, value)

    def follow(self, access: HostAccess, body: bytes) -> None:
        """Apply the settings of a host, and send a body if there is one; most requests change nothing."""
        if access == self._access and body == self._sent:
            return
        self._access, self._sent = access, body
        login = access.login
        self.curl.setopt(pycurl.MAX_RECV_SPEED_LARGE, access.bytes_per_s)
        self.curl.setopt(pycurl.SSL_VERIFYPEER, int(access.verify))
        self.curl.setopt(pycurl.SSL_VERIFYHOST, 2 if access.verify else 0)
        if body:
            self.curl.setopt(pycurl.POSTFIELDS, body)
        else:
            self.curl.setopt(pycurl.HTTPGET, 1)
        if login is not None and login.user:
            self.curl.setopt(pycurl.HTTPAUTH, pycurl.HTTPAUTH_BASIC | pycurl.HTTPAUTH_DIGEST)
            self.curl.setopt(pycurl.USERPWD, f"{login.user}:{login.password}")
        else:
            self.curl.unsetopt(pycurl.USERPWD)

    def _on_body(self, piece: bytes) -> int | None:
        space = self._limits.body_bytes - self._body_bytes
        self._pieces.append(piece if len(piece) <= space else piece[:space])
        self._body_bytes += min(len(piece), space)
        if self._body_bytes > self._limits.spool_bytes and not self._write_spool():
            return _STOP
        if len(piece) > space:
            self._stopped = "length"
            return _STOP
        return None

    def _write_spool(self) -> bool:
        """Move the pieces to a temporary file; False if the disk is full (libcurl loses exceptions)."""
        try:
            if self._spool is None:
                self._spool = cast(BinaryIO, tempfile.TemporaryFile(dir=self._spool_folder))  # noqa: SIM115 - the visit owns it
            self._spool.writelines(self._pieces)
        except OSError as error:
            self._disk_error = error
            return False
        self._pieces = []
        return True

    def _body(self) -> BinaryIO:
        """The body received, from its start."""
        if self._spool is None:
            return BytesIO(self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces))
        try:
            self._spool.seek(0)  # this also writes the buffer
        except OSError as error:
            self._disk_error = error
        return self._spool

    def _whole_head(self) -> list[bytes]:
        """The lines of the final response's head; none if it is incomplete or too long.

        Interim responses (1xx) and the request for a password come before it; trailers come after it, and are
        also in the body, with the chunks.
        """
        lines = self._head
        if not lines or sum(map(len, lines)) > self._limits.head_bytes:
            return []
        if lines[-1] in _EMPTY_LINES and lines.index(lines[-1]) == len(lines) - 1:
            return lines
        begin, final = 0, (0, 0)
        for at, line in enumerate(lines, 1):
            if line in _EMPTY_LINES:
                final = (begin, at) if lines[begin][:5] == b"HTTP/" or final == (0, 0) else final
                begin = at
        return lines[slice(*final)] if begin == len(lines) or lines[begin][:5] != b"HTTP/" else []

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
        """The result. The transfer may be reused afterwards: the visit owns the temporary file."""
        while self._opened:
            self._opened.pop().close()
        body = self._body()
        if self._disk_error is not None:
            body.close()
            raise NoSpace(
                f"{candidate.url} could not be stored in the temporary folder: {self._disk_error}. "
                "Free some space and resume the harvest."
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
        """Release everything; the transfer cannot be used again."""
        while self._opened:
            self._opened.pop().close()
        if self._spool is not None:
            self._spool.close()
        self.curl.close()

    def _failure(self, number: int, message: str) -> tuple[Failure, str]:
        if sum(map(len, self._head)) > self._limits.head_bytes:
            return Failure.PROTOCOL, f"more than {self._limits.head_bytes} bytes of headers"
        if self._refused_address:
            return Failure.PRIVATE_ADDRESS, f"{self._refused_address} is not a public address"
        if number == _TIMEOUT and not self.curl.getinfo(pycurl.CONNECT_TIME):
            return Failure.CONNECT, f"no connection within {self._limits.connect_timeout_s:g} s"
        if number == _TIMEOUT and self._head:
            return Failure.TIMEOUT, f"its headers did not end within {self._limits.timeout_s:g} s"
        return _FAILURES.get(number, Failure.PROTOCOL), message or "no headers were received"

    def _truncated(self, number: int) -> str:
        return self._stopped or ("time" if number == _TIMEOUT else "disconnect")


def _fixed_options(limits: FetchLimits, ca_file: str | None) -> dict[int, object]:
    options: dict[int, object] = {
        pycurl.NOSIGNAL: 1,
        pycurl.NOPROGRESS: 1,
        pycurl.PROXY: "",  # never from the environment: it would bypass our check of addresses
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


def route_options(route: Route, host: str, port: int) -> dict[int, list[str]]:
    if route.connect_to:
        return {pycurl.CONNECT_TO: [f"{host}:{port}:{route.connect_to}"], pycurl.RESOLVE: []}
    if host[0] == "[" or route.addresses == (host,):
        return _NO_ROUTE
    # "+" lets libcurl drop the entry after DNS_CACHE_TIMEOUT; without it entries accumulate in a wide crawl.
    joined = ",".join(f"[{address}]" if ":" in address else address for address in route.addresses)
    return {pycurl.CONNECT_TO: [], pycurl.RESOLVE: [f"+{host}:{port}:{joined}"]}


def _as_http1(lines: list[bytes]) -> bytes:
    """`HTTP/2 200` becomes `HTTP/1.1 200 OK`: WARC readers know no other form."""
    number = lines[0].split()[1].decode("ascii", "replace") if lines and len(lines[0].split()) > 1 else "0"
    try:
        phrase = HTTPStatus(int(number)).phrase
    except ValueError:
        phrase = ""
    return b"".join((f"HTTP/1.1 {number} {phrase}\r\n".encode("latin-1"), *lines[1:]))


def connect_anywhere(address: str) -> bool:
    return True
