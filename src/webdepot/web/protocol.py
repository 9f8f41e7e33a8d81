"""HTTP as uvicorn speaks it, with limits on the head of a request and an answer in words to what is no HTTP.

uvicorn's parser has no limit of its own for address and headers; a client could fill the memory with either.

`complaints` gives connections that send an answer which is there at once straight away: to make a task for
such a request, and to pass its answer through it in messages, takes a third of the time of the whole.
"""

from collections.abc import Callable
from typing import cast

from starlette.responses import Response
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

FindReady = Callable[[Scope], Response | None]

LONGEST_TARGET_BYTES = 65_535
"""Of the request line; the parser cannot read longer ones."""
LONGEST_HEADERS_BYTES = 65_536

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><main><h1>{title}</h1><p>{words}</p></main></body></html>
"""


class BoundedHttp(HttpToolsProtocol):  # type: ignore[misc, unused-ignore]
    """One connection. A subclass because uvicorn takes a class here and calls these methods."""

    _header_bytes = 0

    def on_message_begin(self) -> None:
        self._header_bytes = 0
        super().on_message_begin()

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
        """Called for everything that the parser or one of the limits refuses."""
        if len(getattr(self, "url", b"")) > LONGEST_TARGET_BYTES:
            self._refuse("414 URI Too Long", "Address too long", "The address is too long to be archived.")
        elif self._header_bytes > LONGEST_HEADERS_BYTES:
            self._refuse(
                "431 Request Header Fields Too Large",
                "Too large",
                "The headers of this request are larger than this server accepts.",
            )
        else:
            self._refuse(
                "400 Bad Request",
                "Invalid request",
                "This is not a valid HTTP request; characters outside ASCII must be escaped.",
            )

    def _refuse(self, status: str, title: str, words: str) -> None:
        body = _PAGE.format(title=title, words=words).encode()
        head = [
            f"HTTP/1.1 {status}",
            "Content-Type: text/html; charset=utf-8",
            f"Content-Length: {len(body)}",
            "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
        ]
        self.transport.write("\r\n".join([*head, "", ""]).encode() + body)
        self.transport.close()


def answering(base: type[BoundedHttp], find_ready: FindReady) -> type[BoundedHttp]:
    """uvicorn takes a class: the same connections, which ask `find_ready` first and go the usual way where it
    gives None.
    """

    class Answering(base):  # type: ignore[misc, valid-type]
        def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGIApp) -> None:
            ready = find_ready(cast(Scope, cycle.scope)) if app is self.app else None
            if ready is None:
                super()._start_asgi_task(cycle, app)
            elif type(ready) is not Response or not self._send(cycle, ready):
                super()._start_asgi_task(cycle, ready)

        def _send(self, cycle: RequestResponseCycle, ready: Response) -> bool:
            """Whether the answer was sent. A client that does not read is waited for in a task, and odd
            answers are uvicorn's affair.
            """
            pairs = [*cycle.default_headers, *ready.raw_headers]
            if not cycle.keep_alive:
                pairs.append((b"connection", b"close"))
            lines = [b"%b: %b\r\n" % pair for pair in pairs]
            head = b"".join((STATUS_LINE.get(ready.status_code, b""), *lines, b"\r\n"))
            is_plain = (
                ready.status_code >= 200
                and ready.status_code not in (204, 304)
                and head.count(b"\n") == len(lines) + 2
            )
            if not is_plain or self.flow.write_paused or self.transport.is_closing():
                return False
            self.transport.write(head + ready.body)
            cycle.response_started = cycle.response_complete = True
            if not cycle.keep_alive:
                self.transport.close()
            self.on_response_complete()
            return True

    return Answering
