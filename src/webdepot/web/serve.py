"""All faces in one process: one server on some sockets; port and host name of a request tell which face is
meant.

On loopback the portal is `http://127.0.0.1:P` and replay `http://localhost:Q`: browsers keep cookies by host
name and not by port, so two names are what keeps the portal's session away from archived pages. The frame
around them is `http://localhost:P` (`site.Face` says why). On any other address the operator names portal and
replay, best in one domain.
"""

import asyncio
import errno
import gc
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from webdepot.archive import Archive
from webdepot.errors import ConfigError, Conflict, InputError
from webdepot.web import preload
from webdepot.web.app import build_frame, build_portal, build_proxy, build_replay
from webdepot.web.protocol import BoundedHttp, FindReady, answering
from webdepot.web.security import HostGuard
from webdepot.web.site import Face

Ready = Callable[[str, str], None]
ProxyReady = Callable[[str, Path], None]
_BACKLOG = 512
THREADS = 12
"""Requests answered at once. Each thread costs memory for its connections, and more of them wait for one
another, not for disks.
"""
_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    portal_url: str
    frame_url: str
    replay_url: str
    is_strict: bool
    """Whether each face answers to its own host name alone; a web server in front sees to that otherwise."""


def serve(
    archive: Archive,
    *,
    host: str,
    port: int,
    replay_port: int,
    ready: Ready,
    proxy_port: int | None = None,
    proxy_ready: ProxyReady | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM, then stop tidily. `ready` gets both addresses when requests are taken.

    Port 0 takes any free one. Conflict when a port is taken, ConfigError when portal and replay would share a
    host name. With a `proxy_port` terminals can use the archive as their proxy; `proxy_ready` gets its
    address and the authority's certificate.
    """
    wanted = [
        (port, "--port"),
        (replay_port, "--replay-port"),
        *([] if proxy_port is None else [(proxy_port, "--proxy")]),
    ]
    with ExitStack() as opened:
        sockets = []
        for number, option in wanted:
            sockets.append(_listening(host, number, option=option, both_families=is_loopback(host)))
            opened.callback(_close, sockets[-1])
        addresses = addresses_of(archive, host, *map(_port_of, sockets[:2]))
        proxied = _Proxied(archive, host, sockets[2], proxy_ready) if len(sockets) > 2 else None
        _run(archive, addresses, sockets, ready, proxied)


class _Proxied:
    """What proxy mode adds. Its libraries are loaded only where it is used."""

    def __init__(
        self, archive: Archive, host: str, sockets: Sequence[socket.socket], ready: ProxyReady | None
    ) -> None:
        from webdepot.web.replay.authority import Authority
        from webdepot.web.replay.tunnel import protocol_for

        self.port = _port_of(sockets)
        self.authority = Authority(
            archive.home / "proxy", name=archive.config.archive.name, clock=archive.clock
        )
        self.protocol = protocol_for(self.port, self.authority)
        self._host, self._ready = host, ready

    def tell(self) -> None:
        if self._ready is not None:
            name = f"[{self._host}]" if ":" in self._host else self._host
            self._ready(f"http://{name}:{self.port}", self.authority.path)


def addresses_of(archive: Archive, host: str, port: int, replay_port: int) -> Addresses:
    """How readers reach the two faces: as configured, or by two names of the loopback."""
    config = archive.config.web
    portal_url, replay_url = config.portal_url.rstrip("/"), config.replay_url.rstrip("/")
    if bool(portal_url) != bool(replay_url) or (not portal_url and not is_loopback(host)):
        raise ConfigError(
            f"Readers at {host} need two addresses with different host names, one for the portal and one for archived pages. "
            'Set portal_url and replay_url in [web], for example "https://archive.example.org" and "https://replay.example.org".'
        )
    if not portal_url:
        name = f"[{host}]" if ":" in host else host
        other = "127.0.0.1" if host == "localhost" else "localhost"
        return Addresses(
            portal_url=f"http://{name}:{port}",
            frame_url=f"http://{other}:{port}",
            replay_url=f"http://{other}:{replay_port}",
            is_strict=True,
        )
    if urlsplit(portal_url).hostname == urlsplit(replay_url).hostname:
        raise ConfigError(
            f"portal_url and replay_url in [web] have the same host name {urlsplit(portal_url).hostname}. Use two."
        )
    return Addresses(portal_url=portal_url, frame_url=portal_url, replay_url=replay_url, is_strict=False)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _run(
    archive: Archive,
    addresses: Addresses,
    sockets: Sequence[Sequence[socket.socket]],
    ready: Ready,
    proxied: _Proxied | None,
) -> None:
    given = {
        "portal_url": addresses.portal_url,
        "frame_url": addresses.frame_url,
        "replay_url": addresses.replay_url,
    }
    faces = {
        Face.PORTAL: build_portal(archive, **given),
        Face.FRAME: build_frame(archive, **given),
        Face.REPLAY: build_replay(archive, **given),
    }

    def all_ready() -> None:
        if proxied is not None:
            proxied.tell()
        ready(addresses.portal_url, addresses.replay_url)

    app = _by_address(faces, addresses, replay_port=_port_of(sockets[1]), ready=all_ready)
    if proxied is not None:
        app = _with_proxy(app, build_proxy(archive, proxied.authority, **given), proxied.port)
    protocol = proxied.protocol if proxied else BoundedHttp
    if addresses.is_strict:
        protocol = answering(
            protocol, _ready(faces[Face.REPLAY], addresses, replay_port=_port_of(sockets[1]))
        )
    config = uvicorn.Config(
        app,
        lifespan="on",
        loop="uvloop",
        log_level="warning",
        access_log=False,
        server_header=False,
        http=protocol,
        ws="none",
        timeout_graceful_shutdown=5,
        timeout_keep_alive=15,
        proxy_headers=not addresses.is_strict,
    )
    # What is loaded now stays: the collector need not look through it again and again.
    gc.freeze()
    # uvloop: half of a small answer's cost is the event loop.
    with _quiet_signals(), asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(uvicorn.Server(config).serve(sockets=[one for several in sockets for one in several]))
    preload.end(faces[Face.PORTAL])
    for face in (Face.PORTAL, Face.FRAME):
        faces[face].state.counter.write()


def _by_address(
    faces: Mapping[Face, ASGIApp], addresses: Addresses, *, replay_port: int, ready: Callable[[], None]
) -> ASGIApp:
    """One application that passes each request to its face; who came by a wrong name of this machine is sent
    to the right one.
    """
    portal_host, frame_host = urlsplit(addresses.portal_url).netloc, urlsplit(addresses.frame_url).netloc
    portal, replay = faces[Face.PORTAL], faces[Face.REPLAY]
    if addresses.is_strict:
        portal, replay = HostGuard(portal, addresses.portal_url), HostGuard(replay, addresses.replay_url)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send, ready)
        elif (scope.get("server") or ("", 0))[1] == replay_port:
            await replay(scope, receive, send)
        elif frame_host != portal_host and Headers(scope=scope).get("host", "").lower() == frame_host:
            await faces[Face.FRAME](scope, receive, send)
        else:
            await portal(scope, receive, send)

    return app


def _ready(replay: Starlette, addresses: Addresses, *, replay_port: int) -> FindReady:
    """Answers of the replay face that are there at once, for requests that came by its own name.

    Behind another web server they go through uvicorn's wrapper that reads who asked, so they are found behind
    it (`Quick`).
    """
    guard = HostGuard(replay, addresses.replay_url)

    def find_ready(scope: Scope) -> Response | None:
        is_for_replay = (scope.get("server") or ("", 0))[1] == replay_port and guard.is_own(scope)
        found: Response | None = replay.state.find_ready(scope) if is_for_replay else None
        return found

    return find_ready


def _with_proxy(app: ASGIApp, proxy: ASGIApp, port: int) -> ASGIApp:
    async def by_port(scope: Scope, receive: Receive, send: Send) -> None:
        is_proxied = scope["type"] == "http" and (scope.get("server") or ("", 0))[1] == port
        await (proxy if is_proxied else app)(scope, receive, send)

    return by_port


async def _lifespan(receive: Receive, send: Send, ready: Callable[[], None]) -> None:
    await receive()
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    # The sockets listen already: who connects now is served in a moment.
    ready()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


@contextmanager
def _quiet_signals() -> Iterator[None]:
    """uvicorn raises a signal again after its tidy stop, which would end the process as if it had been
    killed.
    """
    kept = {}
    with suppress(ValueError):  # not the main thread: signals are somebody else's
        kept = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _listening(host: str, port: int, *, option: str, both_families: bool) -> list[socket.socket]:
    """Sockets that listen on one port; with `both_families` on 127.0.0.1 and, where the machine has it, on
    ::1.
    """
    hosts = ["127.0.0.1", "::1"] if both_families else ["127.0.0.1" if host == "localhost" else host]
    for _ in range(_TRIES):
        opened: list[socket.socket] = []
        try:
            for name in hosts:
                made = _bound(
                    name,
                    port or (_port_of(opened) if opened else 0),
                    is_optional=name == "::1" and both_families,
                )
                opened += [made] if made else []
            return opened
        except OSError as error:
            _close(opened)
            if error.errno == errno.EADDRINUSE and port == 0:
                continue  # the number that was free on one family is taken on the other: another number
            raise _refused(error, host, port, option) from error
    raise Conflict("No free port was found on this machine. Stop another server and try again.")


def _bound(host: str, port: int, *, is_optional: bool) -> socket.socket | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        if is_optional:
            return None
        raise
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        if is_optional and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return None
        raise
    return made


def _refused(error: OSError, host: str, port: int, option: str) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return Conflict(
            f"Port {port} on {host} is in use. Stop the other server, or choose another port: webdepot serve {option} 0"
        )
    if error.errno == errno.EACCES:
        return Conflict(
            f"Port {port} may not be opened by this user. Choose one above 1023: webdepot serve {option} 8080"
        )
    return InputError(
        f"{host} is no address of this machine ({error.strerror}). Choose another: webdepot serve --host 127.0.0.1"
    )


def _port_of(sockets: Sequence[socket.socket]) -> int:
    port: int = sockets[0].getsockname()[1]
    return port


def _close(sockets: Sequence[socket.socket]) -> None:
    for opened in sockets:
        opened.close()
