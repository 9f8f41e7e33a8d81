"""uvicorn's HTTP parser with limits on the head of a request and on slow clients, and a readable answer to
input that is not HTTP. The head of an answer is sent together with the beginning of its body.

The parser itself has no limit on the length of the request target and the headers, so a client could fill the
memory with either; nor on their time, so that clients which send nothing could take every connection.
"""

import asyncio
import heapq
import resource
from enum import Enum, auto
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_TARGET_BYTES = 65_535
"""Longest target in a request line; the parser cannot read longer ones."""
LONGEST_HEADERS_BYTES = 65_536
HEAD_S = 20.0
"""Time for the whole head of a request, from the start of the connection or the end of the last answer."""
BODY_S = 120.0
"""Time for the whole body of a request; a large body gets more."""
SLOWEST_BYTES_PER_S = 50_000
"""Slowest rate for a large body: an upload may take hours, but not by sending one byte a minute."""
STALL_S = 300.0
"""How long a client may read nothing of an answer; a paused video reads nothing."""
MOST_CONNECTIONS = 2048
MOST_HELD_BYTES = 65_536
"""How much of an answer waits to be sent together with what follows."""
_SWEEP_S = 1.0
_EVICTED = 32
"""How many silent connections are closed at once, so that a flood of new ones does not need a search each."""
_MOST_FILES = 65_536

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><main><h1>{title}</h1><p>{text}</p></main></body></html>
"""


class Waiting(Enum):
    """What a connection is waiting for."""

    HEAD = auto()
    BODY = auto()
    ANSWER = auto()


class OpenConnections:
    """The connections of a server: a limited number, and none that keeps the server waiting for long.

    If there is no room for a new client, the connections that have been silent longest are closed. So clients
    that open connections and send nothing only displace each other.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[BoundedHttp] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    def add(self, connection: "BoundedHttp") -> None:
        if len(self._open) >= self._most:
            silent = [
                (since, id(each), each) for each in self._open if (since := each.silent_since) is not None
            ]
            if not silent:
                connection.refuse_busy()
                return
            for _, _, each in heapq.nsmallest(_EVICTED, silent):
                self.remove(each)
                each.transport.abort()
        self._open.add(connection)
        if self._sweeper is None:
            self._sweeper = connection.loop.call_later(_SWEEP_S, self._sweep, connection.loop)

    def remove(self, connection: "BoundedHttp") -> None:
        self._open.discard(connection)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in list(self._open):
            connection.end_if_too_slow(now)
        self._sweeper = loop.call_later(_SWEEP_S, self._sweep, loop) if self._open else None


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


class JoinedWrites:
    """The transport of a connection; what is written in one turn of the event loop is sent at once.

    uvicorn writes the head of an answer and then its body. Each write costs a system call and a packet, which
    is 6 to 9 % of the processor time of a small answer.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.unjoined = transport
        """For TLS, which takes the transport over: flush first."""
        self._loop = loop
        self._held: list[bytes] = []
        self._held_bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unjoined, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes >= MOST_HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send what is held; nothing if the connection is closed."""
        held, self._held, self._held_bytes = self._held, [], 0
        if held and not self.unjoined.is_closing():
            self.unjoined.write(b"".join(held))

    def close(self) -> None:
        self.flush()
        self.unjoined.close()

    def get_write_buffer_size(self) -> int:
        return self._held_bytes + self.unjoined.get_write_buffer_size()


class ServerConfig(uvicorn.Config):
    """uvicorn creates the connections itself and gives them this."""

    open_connections: OpenConnections


class BoundedHttp(HttpToolsProtocol):  # type: ignore[misc, unused-ignore]
    """One connection. A subclass because uvicorn takes a class here and calls these methods."""

    _header_bytes = 0
    _body_bytes = 0
    _waiting = Waiting.HEAD
    _waiting_since = 0.0
    _stalled_since: float | None = None
    _is_made = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.writes = JoinedWrites(transport, self.loop)
        super().connection_made(cast(asyncio.Transport, self.writes))
        self._waiting_since = self.loop.time()
        self.open_connections = cast(ServerConfig, self.config).open_connections
        self.open_connections.add(self)
        self._is_made = True

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._is_made:
            return  # TLS in a tunnel that was never completed
        self.open_connections.remove(self)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._header_bytes = self._body_bytes = 0
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_headers_complete(self) -> None:
        self._wait_for(Waiting.BODY)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._wait_for(Waiting.ANSWER)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self.pipeline:
            self._wait_for(Waiting.HEAD)
        super().on_response_complete()

    def pause_writing(self) -> None:
        if self._stalled_since is None:
            self._stalled_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stalled_since = None
        super().resume_writing()

    @property
    def silent_since(self) -> float | None:
        """Since when the server waits for this client; None if it does not."""
        if self._waiting is Waiting.ANSWER:
            return self._stalled_since
        return min(self._waiting_since, self._stalled_since or self._waiting_since)

    def end_if_too_slow(self, now: float) -> None:
        if self._stalled_since is not None and now - self._stalled_since >= STALL_S:
            self.transport.abort()
            return
        waited_s = now - self._waiting_since
        match self._waiting:
            case Waiting.BODY if waited_s >= BODY_S + self._body_bytes / SLOWEST_BYTES_PER_S:
                self.transport.abort()
            case Waiting.HEAD if waited_s >= HEAD_S + STALL_S:
                self.transport.abort()
            case Waiting.HEAD if waited_s >= HEAD_S and not self.transport.get_write_buffer_size():
                # Otherwise an answer is being sent to a slow client. The system still sends what it has
                # buffered.
                self.transport.close()

    def _wait_for(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._waiting_since = self.loop.time()

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
        """Answer 503 to a client because there are too many connections."""
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
