"""Connections of browsers that use the archive as their proxy (RFC 9110, 9.3.6; RFC 9112, 3.2.2).

    GET http://host/path    answered by the application as usual; the host is in the Host header as well
    CONNECT host:443        answered 200; from then on the archive speaks TLS with a certificate of that host

A tunnel only leads back into this application: a request for the live web is answered by the archive.
"""

import asyncio
import re

from webdepot.web.protocol import BoundedHttp
from webdepot.web.replay.authority import Authority

_CONNECT = re.compile(rb"CONNECT ([!-~]{1,300}) HTTP/1\.[01]\r?\n")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9_.-]{1,253}):([0-9]{1,5})\Z")
_LONGEST_HEAD_BYTES = 16_384
_ESTABLISHED = b"HTTP/1.1 200 Connection Established\r\n\r\n"


class TunnelHttp(BoundedHttp):
    """One connection to the server. Only those to the proxy's port may ask for a tunnel."""

    authority: Authority
    proxy_port: int
    _head = b""
    _may_tunnel = False
    _tunnel: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._may_tunnel = (
            self.server is not None and self.server[1] == self.proxy_port and self.scheme == "http"
        )

    def data_received(self, data: bytes) -> None:
        if not self._may_tunnel:
            super().data_received(data)
            return
        self._head += data
        if not b"CONNECT ".startswith(self._head[:8]):
            self._may_tunnel, whole, self._head = False, self._head, b""
            super().data_received(whole)
        elif b"\r\n\r\n" in self._head or len(self._head) > _LONGEST_HEAD_BYTES:
            self._connect()

    def _connect(self) -> None:
        request = _CONNECT.match(self._head)
        target = _HOST.match(request[1].decode("ascii")) if request else None
        if target is None:
            self._refuse("400 Bad Request", "Invalid request", "CONNECT needs a host and a port.")
            return
        self.transport.pause_reading()
        self.transport.write(_ESTABLISHED)
        self.writes.flush()
        self._tunnel = self.loop.create_task(self._speak_tls(target[1].lower().rstrip(".")))

    async def _speak_tls(self, host: str) -> None:
        # From here on the transport belongs to the TLS inside it, and this object receives no more events.
        self.connections.discard(self)
        self.open_connections.remove(self)
        inside = BoundedHttp(
            config=self.config, server_state=self.server_state, app_state=self.app_state, _loop=self.loop
        )
        try:
            context = await asyncio.to_thread(self.authority.context_for, host)
            transport = await self.loop.start_tls(
                self.writes.unjoined,
                inside,
                context,
                server_side=True,
                ssl_handshake_timeout=20,
                ssl_shutdown_timeout=5,
            )
        except (OSError, ValueError, asyncio.CancelledError):
            # A browser that does not trust the authority hangs up here.
            self.transport.close()
            return
        if transport is not None:
            inside.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._tunnel is not None:
            self._tunnel.cancel()
        super().connection_lost(exc)


def protocol_for(port: int, authority: Authority) -> type[TunnelHttp]:
    """The class for uvicorn, which creates its connections itself: those to `port` may ask for tunnels."""
    return type("BoundTunnelHttp", (TunnelHttp,), {"proxy_port": port, "authority": authority})
