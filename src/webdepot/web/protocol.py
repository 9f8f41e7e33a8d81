"""uvicorn's HTTP parser with limits on the head of a request, and a readable answer to input that is not
HTTP.

The parser itself has no limit on the length of the request target and the headers, so a client could fill the
memory with either.
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_TARGET_BYTES = 65_535
"""Of the request line; the parser cannot read longer ones."""
LONGEST_HEADERS_BYTES = 65_536

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><main><h1>{title}</h1><p>{text}</p></main></body></html>
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
                "The headers of this request are larger than this server accepts.",
            )
        else:
            self._refuse(
                "400 Bad Request",
                "Invalid request",
                "This is not a valid HTTP request; characters outside ASCII must be escaped.",
            )

    def _refuse(self, status: str, title: str, text: str) -> None:
        body = _PAGE.format(title=title, text=text).encode()
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
