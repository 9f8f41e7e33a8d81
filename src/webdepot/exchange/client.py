"""HTTP requests to partners, on libcurl: bounded responses, resumable downloads, and only to addresses that
the caller allows.

A URL from a partner (a Transfer-URL, a redirect) must not make us read the intranet: `allowed` checks every
IP address at the moment of connecting, after redirects and DNS, so that no host name can get around it.
"""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message

import pycurl

from webdepot.errors import RemoteError

Allowed = Callable[[str], bool]
"""Whether we may connect to an IP address."""
CONNECT_S = 30
STALLED_S = 120
"""A transfer fails if no data arrive for this long."""
MOST_REDIRECTS = 5
_SocketAddress = tuple[int, int, int, tuple[object, ...]]


class TooLarge(RemoteError):
    """The response is larger than the caller's limit."""


@dataclass(slots=True, kw_only=True)
class PartnerResponse:
    """Status and headers, as far as they have been received."""

    status: int = 0
    headers: Message = field(default_factory=Message)

    def add_header_line(self, line: bytes) -> None:
        text = line.decode("latin-1").strip()
        if text.startswith("HTTP/"):  # each redirect starts again
            number = text.partition(" ")[2][:3]
            self.status = int(number) if number.isascii() and number.isdigit() else 0
            self.headers = Message()
        elif ":" in text:
            name, _, value = text.partition(":")
            self.headers[name.strip()] = value.strip()


Sink = Callable[[PartnerResponse, bytes], None]
"""Receives the body in pieces, with what is known of the response."""


@dataclass(slots=True, kw_only=True)
class _Body:
    """The body on its way to the sink, up to a limit."""

    sink: Sink
    limit_bytes: int
    response: PartnerResponse
    received_bytes: int = 0
    failure: BaseException | None = None

    @property
    def is_too_large(self) -> bool:
        return self.received_bytes > self.limit_bytes

    def take(self, piece: bytes) -> int:
        """Pass a piece on; -1 makes libcurl stop."""
        self.received_bytes += len(piece)
        if self.is_too_large:
            return -1
        try:
            self.sink(self.response, piece)
        except BaseException as error:  # libcurl would only print it
            self.failure = error
            return -1
        return len(piece)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartnerClient:
    user_agent: str
    allowed: Allowed
    token: str = ""
    connect_s: int = CONNECT_S
    stalled_s: int = STALLED_S

    def get(
        self,
        url: str,
        sink: Sink,
        *,
        limit_bytes: int,
        offset: int = 0,
        etag: str = "",
        packed: bool = False,
        with_token: bool = True,
    ) -> PartnerResponse:
        """Send one GET request and follow redirects; the body goes to `sink`.

        RemoteError if the response is not complete; TooLarge beyond the limit. `packed` asks for gzip and
        unpacks it.
        """
        response = PartnerResponse()
        body = _Body(sink=sink, limit_bytes=limit_bytes, response=response)
        lines = [f"Authorization: Bearer {self.token}"] if self.token and with_token else []
        if offset:
            lines.append(f"Range: bytes={offset}-")
            lines += [f"If-Range: {etag}"] if etag else []
        options = {pycurl.FOLLOWLOCATION: 1, **({pycurl.ACCEPT_ENCODING: "gzip"} if packed else {})}
        return self._perform(url, lines, options, body)

    def post(self, url: str, data: bytes, headers: Mapping[str, str], *, timeout_s: int) -> int:
        """Send one POST request and return its status. Redirects are not followed and the body of the
        response is not read; RemoteError if there is no response in time.
        """
        lines = [f"{name}: {value}" for name, value in headers.items()]
        options = {
            pycurl.POST: 1,
            pycurl.POSTFIELDS: data,
            pycurl.FOLLOWLOCATION: 0,
            pycurl.TIMEOUT: timeout_s,
            pycurl.CONNECTTIMEOUT: min(self.connect_s, timeout_s),
        }
        response = PartnerResponse()
        body = _Body(sink=lambda _, piece: None, limit_bytes=0, response=response)
        try:
            return self._perform(url, [*lines, "Expect:"], options, body).status
        except TooLarge:  # it has a body, but the status is all that counts
            return response.status

    def _perform(
        self, url: str, lines: list[str], options: Mapping[int, object], body: _Body
    ) -> PartnerResponse:
        response = body.response
        sockets: list[socket.socket] = []
        refused: list[str] = []
        curl = pycurl.Curl()
        try:
            self._prepare(curl, url, lines, options)
            curl.setopt(
                pycurl.OPENSOCKETFUNCTION, lambda _, address: self._open_socket(address, sockets, refused)
            )
            curl.setopt(pycurl.HEADERFUNCTION, response.add_header_line)
            curl.setopt(pycurl.WRITEFUNCTION, body.take)
            curl.perform()
            response.status = curl.getinfo(pycurl.RESPONSE_CODE)
        except pycurl.error as error:
            if body.failure is not None:
                raise body.failure from None
            if body.is_too_large:
                raise TooLarge(
                    f"The response of {url[:500]} is larger than {body.limit_bytes} bytes.", retry=False
                ) from error
            if refused and not sockets:
                raise RemoteError(
                    f"{url[:500]} is at {refused[0]}, which is not a public address. If that is intended, an "
                    "administrator adds its network to harvest.private_networks in webdepot.toml.",
                    retry=False,
                ) from error
            raise RemoteError(
                f"{url[:500]} sent no complete response: {error.args[1]}.", retry=True
            ) from error
        finally:
            curl.close()
            for each in sockets:
                each.close()
        return response

    def _open_socket(
        self, address: _SocketAddress, sockets: list[socket.socket], refused: list[str]
    ) -> object:
        """A socket for libcurl, unless the address is not allowed. libcurl uses a copy of its descriptor; the
        caller closes those in `sockets`.
        """
        family, kind, protocol, place = address
        if not self.allowed(str(place[0])):
            refused.append(str(place[0]))
            return pycurl.SOCKET_BAD
        sockets.append(socket.socket(family, kind, protocol))
        return sockets[-1]

    def _prepare(self, curl: pycurl.Curl, url: str, lines: list[str], own: Mapping[int, object]) -> None:
        options = {
            pycurl.URL: url,
            pycurl.USERAGENT: self.user_agent,
            pycurl.HTTPHEADER: lines,
            pycurl.MAXREDIRS: MOST_REDIRECTS,
            pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
            pycurl.REDIR_PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
            pycurl.CONNECTTIMEOUT: self.connect_s,
            pycurl.LOW_SPEED_LIMIT: 1,
            pycurl.LOW_SPEED_TIME: self.stalled_s,
            pycurl.NOSIGNAL: 1,
            pycurl.NOPROXY: "*",
            **own,
        }
        for option, value in options.items():
            curl.setopt(option, value)
