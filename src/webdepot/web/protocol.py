"""uvicorn's HTTP parser with limits on the head of a request and on slow clients, and a readable answer to
input that is not HTTP.

The parser itself has no limit on the length of the request target and the headers, so a client could fill the
memory with either; nor on their time, so that clients which send nothing could take every connection.
"""

import asyncio
import resource
from typing import cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_TARGET_BYTES = 65_535
"""Of the request line; the parser cannot read longer ones."""
LONGEST_HEADERS_BYTES = 65_536
HEAD_S = 20.0
"""For the whole head of a request, from the start of the connection or the end of the last answer."""
BODY_S = 120.0
"""For the whole body of a request."""
STALL_S = 300.0
"""How long a client may take nothing of an answer: a paused film takes nothing."""
MOST_CONNECTIONS = 2048
_SWEEP_S = 1.0
_MOST_FILES = 65_536

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><main><h1>{title}</h1><p>{text}</p></main></body></html>
"""


class OpenConnections:
    """The connections of a server: a limited number, and none that keeps the server waiting for long.

    If a further client comes, the one that has been silent longest has to go: clients that open connections
    and send nothing only push out each other.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[BoundedHttp] = set()
        # Since when; in the order of time, because each connection is put at the end.
        self._heads: dict[BoundedHttp, float] = {}
        self._bodies: dict[BoundedHttp, float] = {}
        self._stalled: dict[BoundedHttp, float] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def add(self, connection: "BoundedHttp") -> None:
        while len(self._open) >= self._most:
            silent = next((each for group in self._waiting() for each in group), None)
            if silent is None:
                connection.refuse_busy()
                return
            self.remove(silent)
            silent.transport.abort()
        self._open.add(connection)
        self.wait_for_head(connection)
        if self._sweeper is None:
            self._sweeper = connection.loop.call_later(_SWEEP_S, self._sweep, connection.loop)

    def remove(self, connection: "BoundedHttp") -> None:
        self._open.discard(connection)
        for group in self._waiting():
            group.pop(connection, None)

    def wait_for_head(self, connection: "BoundedHttp") -> None:
        if connection in self._open:
            self._heads.pop(connection, None)
            self._heads[connection] = connection.loop.time()

    def wait_for_body(self, connection: "BoundedHttp") -> None:
        if self._heads.pop(connection, None) is not None:
            self._bodies[connection] = connection.loop.time()

    def end_of_body(self, connection: "BoundedHttp") -> None:
        self._bodies.pop(connection, None)

    def stall(self, connection: "BoundedHttp") -> None:
        if connection in self._open:
            self._stalled.setdefault(connection, connection.loop.time())

    def resume(self, connection: "BoundedHttp") -> None:
        self._stalled.pop(connection, None)

    def _waiting(self) -> "tuple[dict[BoundedHttp, float], ...]":
        return self._heads, self._bodies, self._stalled

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in _older(self._heads, now - HEAD_S):
            # An answer may still be on its way to a slow client; what the system has, it sends after `close`.
            if not connection.transport.get_write_buffer_size():
                connection.transport.close()
        for group, limit_s in (
            (self._heads, HEAD_S + STALL_S),
            (self._bodies, BODY_S),
            (self._stalled, STALL_S),
        ):
            for connection in _older(group, now - limit_s):
                connection.transport.abort()
        self._sweeper = loop.call_later(_SWEEP_S, self._sweep, loop) if self._open else None


def _older(group: "dict[BoundedHttp, float]", moment: float) -> "list[BoundedHttp]":
    old = []
    for connection, since in group.items():
        if since > moment:
            break
        old.append(connection)
    return old


def limit_connections() -> int:
    """How many connections there may be. Lets this process open as many files as the system permits; if that
    is few, half of them are for other files and for connections that have just been accepted.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else max(min(MOST_CONNECTIONS, soft // 2), 16)


class ServerConfig(uvicorn.Config):
    """uvicorn creates the connections itself and gives them this."""

    open_connections: OpenConnections


class BoundedHttp(HttpToolsProtocol):  # type: ignore[misc, unused-ignore]
    """One connection. A subclass because uvicorn takes a class here and calls these methods."""

    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.open_connections = cast(ServerConfig, self.config).open_connections
        self.open_connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.open_connections.remove(self)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._header_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.open_connections.wait_for_body(self)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.open_connections.end_of_body(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self.pipeline:
            self.open_connections.wait_for_head(self)
        super().on_response_complete()

    def pause_writing(self) -> None:
        self.open_connections.stall(self)
        super().pause_writing()

    def resume_writing(self) -> None:
        self.open_connections.resume(self)
        super().resume_writing()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > LONGEST_TARGET_BYTES:
            raise ValueError("the address is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > LONGEST_HEADERS_BYTES:
            raise ValueError("the headers are too long")
        super().on_header(name, value)

    def send_400_response(self, msg: str) -> None:
        """Called when the parser or one of the limits refuses a request."""
        if len(getattr(self, "url", b"")) > LONGEST_TARGET_BYTES:
            self._refuse(
                "414 URI Too Long",
                "Address too long",
                "The address is too long to be archived.",
            )
        elif self._header_bytes > LONGEST_HEADERS_BYTES:
            self._refuse(
                "431 Request Header Fields Too Large",
                "Too large",
                "The headers of this request are larger than this server accepts. "
                "If an archived page has set too many cookies, they are removed now: load the page again.",
                'Clear-Site-Data: "cookies"',
            )
        else:
            self._refuse(
                "400 Bad Request",
                "Invalid request",
                "This is not a valid HTTP request; characters outside ASCII must be escaped.",
            )

    def refuse_busy(self) -> None:
        """Answer a client for whom there is no place."""
        self._refuse("503 Service Unavailable", "Busy", "Too many clients at the moment. Try again later.")

    def _refuse(self, status: str, title: str, text: str, *more: str) -> None:
        body = _PAGE.format(title=title, text=text).encode()
        head = [
            f"HTTP/1.1 {status}",
            "Content-Type: text/html; charset=utf-8",
            f"Content-Length: {len(body)}",
            "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
            *more,
        ]
        self.transport.write("\r\n".join([*head, "", ""]).encode() + body)
        self.transport.close()
