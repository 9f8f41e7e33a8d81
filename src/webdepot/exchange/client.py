"""HTTP to partners, on libcurl: bounded answers, downloads that go on where they broke, and only to addresses
that the caller allows.

What a partner writes (a Transfer-URL, a redirect) must not make us read the intranet: every address is shown
to `allowed` at the moment of connecting, after redirects and after DNS, so that no trick with names gets
around it.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from email.message import Message

import pycurl

from webdepot.errors import RemoteError

Allowed = Callable[[str], bool]
"""Whether an IP address may be talked to."""
CONNECT_S = 30
STALLED_S = 120
"""A transfer in which nothing comes for so long has failed."""
MOST_REDIRECTS = 5


class TooLarge(RemoteError):
    """The answer is larger than the caller takes."""


@dataclass(slots=True, kw_only=True)
class Got:
    status: int = 0
    headers: Message = field(default_factory=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    user_agent: str
    allowed: Allowed
    token: str = ""
    connect_s: int = CONNECT_S
    stalled_s: int = STALLED_S

    def get(
        self,
        url: str,
        sink: Callable[[Got, bytes], None],
        *,
        limit_bytes: int,
        offset: int = 0,
        etag: str = "",
        packed: bool = False,
        with_token: bool = True,
    ) -> Got:
        """One GET, redirects followed; the body goes to `sink` in pieces, with what is known of the answer.

        RemoteError when there is no whole answer; TooLarge beyond the limit. `packed` asks for gzip and
        undoes it.
        """
        got, received = Got(), 0
        failure: list[BaseException] = []

        def heard(line: bytes) -> None:
            text = line.decode("latin-1").strip()
            if text.startswith("HTTP/"):
                number = text.partition(" ")[2][:3]
                got.status, got.headers = (
                    int(number) if number.isascii() and number.isdigit() else 0,
                    Message(),
                )
            elif ":" in text:
                name, _, value = text.partition(":")
                got.headers[name.strip()] = value.strip()

        def taken(piece: bytes) -> int:
            nonlocal received
            received += len(piece)
            if received > limit_bytes:
                return -1
            try:
                sink(got, piece)
            except BaseException as error:  # libcurl would only print it
                failure.append(error)
                return -1
            return len(piece)

        def opened(purpose: int, address: tuple[int, int, int, tuple[object, ...]]) -> object:
            family, kind, protocol, place = address
            if not self.allowed(str(place[0])):
                return pycurl.SOCKET_BAD
            # libcurl works on a copy of its number; this object is ours to close.
            sockets.append(socket.socket(family, kind, protocol))
            return sockets[-1]

        curl = pycurl.Curl()
        sockets: list[socket.socket] = []
        try:
            self._prepare(curl, url, offset, etag, packed, with_token)
            curl.setopt(pycurl.OPENSOCKETFUNCTION, opened)
            curl.setopt(pycurl.HEADERFUNCTION, heard)
            curl.setopt(pycurl.WRITEFUNCTION, taken)
            curl.perform()
            got.status = curl.getinfo(pycurl.RESPONSE_CODE)
        except pycurl.error as error:
            if failure:
                raise failure[0] from None
            if received > limit_bytes:
                raise TooLarge(
                    f"{url[:500]} answers with more than {limit_bytes} bytes.", retry=False
                ) from error
            raise RemoteError(f"{url[:500]} gave no whole answer: {error.args[1]}.", retry=True) from error
        finally:
            curl.close()
            for each in sockets:
                each.close()
        return got

    def _prepare(
        self, curl: pycurl.Curl, url: str, offset: int, etag: str, packed: bool, with_token: bool
    ) -> None:
        lines = [f"Authorization: Bearer {self.token}"] if self.token and with_token else []
        if offset:
            lines.append(f"Range: bytes={offset}-")
            lines += [f"If-Range: {etag}"] if etag else []
        options = {
            pycurl.URL: url,
            pycurl.USERAGENT: self.user_agent,
            pycurl.HTTPHEADER: lines,
            pycurl.FOLLOWLOCATION: 1,
            pycurl.MAXREDIRS: MOST_REDIRECTS,
            pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
            pycurl.REDIR_PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
            pycurl.CONNECTTIMEOUT: self.connect_s,
            pycurl.LOW_SPEED_LIMIT: 1,
            pycurl.LOW_SPEED_TIME: self.stalled_s,
            pycurl.NOSIGNAL: 1,
            pycurl.NOPROXY: "*",
        }
        for option, value in options.items():
            curl.setopt(option, value)
        if packed:
            curl.setopt(pycurl.ACCEPT_ENCODING, "gzip")
