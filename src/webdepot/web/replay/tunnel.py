"""Connections of browsers that use the archive as their proxy (RFC 9110, 9.3.6; RFC 9112, 3.2.2).

    GET http://host/path    answered by the application as it is; the host is in the Host header as well
    CONNECT host:443        answered 200, and from then on the archive speaks TLS with a certificate of that host

A tunnel never leads anywhere else than back into this application: what asks for the live web gets the
archive.
"""

import asyncio
import re

from webdepot.web.protocol import BoundedHttp
from webdepot.web.replay.authority import Authority

_CONNECT = re.compile(rb"CONNECT ([!-~]{1,300}) HTTP/1\.[01]\r?\n")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9_.-]{1,253}):([0-9]{1,5})\Z")
_LONGEST_HEAD_BYTES = 16_384
_ESTABLISHED = b"HTTP/1.1 200 Connection Established\r\n\r\n"


def protocol_for(port: int, authority: Authority) -> type[BoundedHttp]:
    """uvicorn takes a class: connections to that port may ask for tunnels, all others are what they always
    were.
    """

    class Proxied(BoundedHttp):
        """One connection, before its tunnel is there."""

        _head = b""
        _is_proxied = False
        _tunnel: asyncio.Task[None] | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._is_proxied = self.server is not None and self.server[1] == port and self.scheme == "http"

        def data_received(self, data: bytes) -> None:
            if not self._is_proxied:
                super().data_received(data)
                return
            self._head += data
            if not b"CONNECT ".startswith(self._head[:8]):
                self._is_proxied, whole, self._head = False, self._head, b""
                super().data_received(whole)
            elif b"\r\n\r\n" in self._head or len(self._head) > _LONGEST_HEAD_BYTES:
                self._connect()

        def _connect(self) -> None:
            asked = _CONNECT.match(self._head)
            named = _HOST.match(asked[1].decode("ascii")) if asked else None
            if named is None:
                self._refuse("400 Bad Request", "Invalid request", "CONNECT needs a host and a port.")
                return
            self.transport.pause_reading()
            self.transport.write(_ESTABLISHED)
            self._tunnel = self.loop.create_task(self._speak_tls(named[1].lower().rstrip(".")))

        async def _speak_tls(self, host: str) -> None:
            # From here on the transport belongs to the TLS inside it, which tells us nothing any more.
            self.connections.discard(self)
            inside = BoundedHttp(
                config=self.config, server_state=self.server_state, app_state=self.app_state, _loop=self.loop
            )
            try:
                context = await asyncio.to_thread(authority.context_for, host)
                transport = await self.loop.start_tls(
                    self.transport,
                    inside,
                    context,
                    server_side=True,
                    ssl_handshake_timeout=20,
                    ssl_shutdown_timeout=5,
                )
            except (OSError, ValueError, asyncio.CancelledError):
                # A browser that does not trust us hangs up here.
                self.transport.close()
                return
            if transport is not None:
                inside.connection_made(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            if self._tunnel is not None:
                self._tunnel.cancel()
            super().connection_lost(exc)

    return Proxied
