"""What proxy mode adds to the server: its certificate authority, its connections and its application."""

from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Route

from webdepot.archive import Archive
from webdepot.web.app import ArchiveApp
from webdepot.web.replay import proxy
from webdepot.web.replay.authority import Authority
from webdepot.web.replay.tunnel import protocol_for
from webdepot.web.site import Site, WebOrigin

ProxyReady = Callable[[str, Path], None]
_EVERY_METHOD = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


class ProxyMode:
    """The archive as the proxy of terminals, on a port of this server."""

    def __init__(self, archive: Archive, host: str, port: int, ready: ProxyReady | None) -> None:
        self.port = port
        self._archive, self._host, self._ready = archive, host, ready
        self._authority = Authority(
            archive.home / "proxy", name=archive.config.archive.name, clock=archive.clock
        )
        self.protocol = protocol_for(port, self._authority)

    def announce(self) -> None:
        """Tell the caller the address of the proxy and the path of its certificate."""
        if self._ready is not None:
            name = f"[{self._host}]" if ":" in self._host else self._host
            self._ready(f"http://{name}:{self.port}", self._authority.path)

    def build(self, *, portal_url: str, replay_url: str, frame_url: str, pages_url: str) -> Starlette:
        """The application: every path of every host."""
        site = Site(
            archive=self._archive,
            origin=WebOrigin.REPLAY,
            portal_url=portal_url,
            frame_url=frame_url or portal_url,
            replay_url=replay_url,
            pages_url=pages_url,
        )
        app = ArchiveApp(site, [Route("/{path:path}", proxy.answer, methods=_EVERY_METHOD)])
        app.state.authority = self._authority
        return app
