"""All origins in one process: one server on several sockets. Port and host name of a request decide which
application answers.

On loopback the portal is `http://127.0.0.1:P` and replay is `http://localhost:Q`: browsers keep cookies by
host name and not by port, so only different names keep the portal's session away from archived pages. Each
archived site is shown on a name of its own, `http://{label}.webdepot.localhost:Q`
(`access/replay/site_hosts.py`), in the frame `http://webdepot.localhost:P` (`site.WebOrigin` says why).
Browsers resolve these names themselves (RFC 6761). On any other address the operator configures the names of
portal and replay, preferably in one domain.
"""

import errno
import gc
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio.to_thread
import uvicorn
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from webdepot import event_loop
from webdepot.access.replay.site_hosts import SiteHosts
from webdepot.archive import Archive
from webdepot.config.sections.portal import WebConfig
from webdepot.errors import ConfigError, Conflict, InputError
from webdepot.services.admin import proxy_probe
from webdepot.web.app import build_frame, build_portal, build_replay
from webdepot.web.client_address import ForwardedClient
from webdepot.web.jobs.portal_worker import start_worker, stop_worker
from webdepot.web.protocol import BoundedHttp, OpenConnections, ServerConfig, limit_connections
from webdepot.web.request_turns import HeavyWork
from webdepot.web.security import HostGuard, SiteHostGuard
from webdepot.web.site import WebOrigin
from webdepot.web.staff.dashboard import stop_counting

if TYPE_CHECKING:
    from webdepot.web.replay.proxy_mode import ProxyMode

log = logging.getLogger(__name__)

Ready = Callable[[str, str], None]
ProxyReady = Callable[[str, Path], None]
_BACKLOG = 512
THREADS = 12
"""Requests answered at the same time. Each thread costs memory for its connections, and more threads would
wait for one another, not for disks.
"""
_PORT_ATTEMPTS = 20
LOCAL_NAME = "webdepot.localhost"
"""The domain of the frame and of archived sites on one's own machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedUrls:
    """Where readers reach each origin."""

    portal_url: str
    frame_url: str
    replay_url: str
    pages_url: str
    """The parent of the host names of archived sites; empty if they share `replay_url`."""
    is_strict: bool
    """Whether each origin answers only to its own host name. Otherwise a web server in front checks it."""


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
    """Serve until SIGINT or SIGTERM, then shut down cleanly. `ready` is called with both addresses when the
    server accepts requests.

    Port 0 means any free port. Conflict when a port is in use, ConfigError when portal and replay would share
    a host name. With a `proxy_port`, terminals can use the archive as their proxy; `proxy_ready` is called
    with its address and the path of the authority's certificate.
    """
    ports = [
        (port, "--port"),
        (replay_port, "--replay-port"),
        *([] if proxy_port is None else [(proxy_port, "--proxy")]),
    ]
    with ExitStack() as opened:
        sockets = []
        for number, option in ports:
            sockets.append(_listen(host, number, option=option, both_families=is_loopback(host)))
            opened.callback(_close, sockets[-1])
        urls = choose_urls(archive, host, *map(_port_of, sockets[:2]))
        proxy = _open_proxy(archive, host, _port_of(sockets[2]), proxy_ready) if len(sockets) > 2 else None
        _run(archive, urls, sockets, ready, proxy)


def _open_proxy(archive: Archive, host: str, port: int, ready: ProxyReady | None) -> "ProxyMode":
    from webdepot.web.replay.proxy_mode import ProxyMode

    return ProxyMode(archive, host, port, ready)


def choose_urls(archive: Archive, host: str, port: int, replay_port: int) -> ServedUrls:
    """Where readers reach each origin: as configured, or by two names of the loopback address."""
    config = archive.config.web
    portal_url, replay_url = config.portal_url.rstrip("/"), config.replay_url.rstrip("/")
    if bool(portal_url) != bool(replay_url) or (not portal_url and not is_loopback(host)):
        raise ConfigError(
            f"To serve on {host}, the portal and archived pages need addresses with different host names. "
            "Set portal_url and replay_url in [web], for example "
            '"https://archive.example.org" and "https://replay.example.org".'
        )
    if not portal_url:
        name = f"[{host}]" if ":" in host else host
        other = "127.0.0.1" if host == "localhost" else "localhost"
        has_hosts = config.host_per_site != "off"
        return ServedUrls(
            portal_url=f"http://{name}:{port}",
            frame_url=f"http://{LOCAL_NAME if has_hosts else other}:{port}",
            replay_url=f"http://{other}:{replay_port}",
            pages_url=f"http://{LOCAL_NAME}:{replay_port}" if has_hosts else "",
            is_strict=True,
        )
    if urlsplit(portal_url).hostname == urlsplit(replay_url).hostname:
        raise ConfigError(
            f"portal_url and replay_url in [web] have the same host name, {urlsplit(portal_url).hostname}. "
            "Use two different host names."
        )
    _check_proxies(config, host)
    return ServedUrls(
        portal_url=portal_url,
        frame_url=portal_url,
        replay_url=replay_url,
        pages_url=_parent_of_sites(config, replay_url),
        is_strict=False,
    )


def _parent_of_sites(config: WebConfig, replay_url: str) -> str:
    if config.host_per_site != "on":
        return ""
    if is_address(urlsplit(replay_url).hostname or ""):
        raise ConfigError(
            'host_per_site = "on" in [web] needs host names below that of replay_url, '
            f"and {replay_url} has an IP address instead of a name."
        )
    return replay_url


def _check_proxies(config: WebConfig, host: str) -> None:
    """ConfigError if readers' networks decide what they may see, but their addresses are not known or could
    be forged.
    """
    networks = (*config.reading_room_networks, *config.partner_networks)
    if not config.trusted_proxies and proxy_probe.is_proxied(config, host):
        if networks:
            raise ConfigError(
                "Readers reach the portal through another web server, but [web] trusted_proxies is empty: "
                "readers in reading_room_networks and partner_networks cannot be recognised. Name that "
                'server, for example trusted_proxies = ["127.0.0.1"], and let it send X-Forwarded-For.'
            )
        log.warning(
            "[web] trusted_proxies is empty: all readers count as one, for example when sign-ins are "
            "limited. Name the web server in front of the portal there."
        )
    for text in config.trusted_proxies:
        proxy = ipaddress.ip_network(text, strict=False)
        for other in networks:
            if proxy.num_addresses > 1 and _overlap(proxy, ipaddress.ip_network(other, strict=False)):
                raise ConfigError(
                    f"[web] trusted_proxies = {text} contains readers of {other}, who could then claim any "
                    "address. Name the addresses of the proxies themselves."
                )


def _overlap(
    one: ipaddress.IPv4Network | ipaddress.IPv6Network, other: ipaddress.IPv4Network | ipaddress.IPv6Network
) -> bool:
    return one.version == other.version and one.overlaps(other)


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _run(
    archive: Archive,
    urls: ServedUrls,
    sockets: Sequence[Sequence[socket.socket]],
    ready: Ready,
    proxy: "ProxyMode | None",
) -> None:
    named = {
        "portal_url": urls.portal_url,
        "frame_url": urls.frame_url,
        "replay_url": urls.replay_url,
        "pages_url": urls.pages_url,
    }
    heavy = HeavyWork()
    apps = {
        WebOrigin.PORTAL: build_portal(archive, **named, heavy=heavy),
        WebOrigin.FRAME: build_frame(archive, **named, heavy=heavy),
        WebOrigin.REPLAY: build_replay(archive, **named, heavy=heavy),
    }

    def all_ready() -> None:
        if proxy is not None:
            proxy.announce()
        ready(urls.portal_url, urls.replay_url)

    app = _by_address(apps, urls, replay_port=_port_of(sockets[1]), ready=all_ready)
    if not urls.is_strict:
        app = ForwardedClient(app, archive.config.web.trusted_proxies)
    if proxy is not None:
        app = _with_proxy(app, proxy.build(**named), proxy.port)
    config = ServerConfig(
        app,
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        http=proxy.protocol if proxy else BoundedHttp,
        ws="none",
        timeout_graceful_shutdown=5,
        timeout_keep_alive=15,
        proxy_headers=False,  # `ForwardedClient` reads them
    )
    config.open_connections = OpenConnections(limit_connections())
    # Everything loaded by now stays, so the garbage collector need not look at it again.
    gc.freeze()
    start_worker(apps[WebOrigin.PORTAL], archive)
    with _quiet_signals():
        event_loop.run(uvicorn.Server(config).serve(sockets=[each for group in sockets for each in group]))
    stop_counting(apps[WebOrigin.PORTAL])
    stop_worker(apps[WebOrigin.PORTAL])
    for origin in (WebOrigin.PORTAL, WebOrigin.FRAME):
        apps[origin].state.counter.write()


def _by_address(
    apps: Mapping[WebOrigin, ASGIApp], urls: ServedUrls, *, replay_port: int, ready: Callable[[], None]
) -> ASGIApp:
    """One application that passes each request on by port and host name; a request with another name of this
    machine is redirected to the right one.
    """
    portal_host, frame_host = urlsplit(urls.portal_url).netloc, urlsplit(urls.frame_url).netloc
    hosts = SiteHosts(replay_url=urls.replay_url, parent_url=urls.pages_url)
    portal, replay = apps[WebOrigin.PORTAL], apps[WebOrigin.REPLAY]
    if urls.is_strict:
        portal = HostGuard(portal, urls.portal_url)
        replay = HostGuard(replay, urls.replay_url, lambda host: hosts.find_asked(host) != urls.replay_url)
    replay = SiteHostGuard(replay, hosts)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send, ready)
        elif (scope.get("server") or ("", 0))[1] == replay_port:
            await replay(scope, receive, send)
        elif frame_host != portal_host and Headers(scope=scope).get("host", "").lower() == frame_host:
            await apps[WebOrigin.FRAME](scope, receive, send)
        else:
            await portal(scope, receive, send)

    return app


def _with_proxy(app: ASGIApp, proxy: ASGIApp, port: int) -> ASGIApp:
    async def by_port(scope: Scope, receive: Receive, send: Send) -> None:
        is_proxied = scope["type"] == "http" and (scope.get("server") or ("", 0))[1] == port
        await (proxy if is_proxied else app)(scope, receive, send)

    return by_port


async def _lifespan(receive: Receive, send: Send, ready: Callable[[], None]) -> None:
    await receive()
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    # The sockets listen already, so a connection made now is served as soon as the loop runs.
    ready()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})


@contextmanager
def _quiet_signals() -> Iterator[None]:
    """uvicorn raises the signal again after a clean shutdown, which would end the process as if killed."""
    kept = {}
    with suppress(ValueError):  # not the main thread, which alone may set handlers
        kept = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _listen(host: str, port: int, *, option: str, both_families: bool) -> list[socket.socket]:
    """Sockets that listen on one port; with `both_families` on 127.0.0.1 and, if the machine has it, ::1."""
    hosts = ["127.0.0.1", "::1"] if both_families else ["127.0.0.1" if host == "localhost" else host]
    for _ in range(_PORT_ATTEMPTS):
        opened: list[socket.socket] = []
        try:
            for name in hosts:
                listener = _bind(
                    name,
                    port or (_port_of(opened) if opened else 0),
                    is_optional=name == "::1" and both_families,
                )
                opened += [listener] if listener else []
            return opened
        except OSError as error:
            _close(opened)
            if error.errno == errno.EADDRINUSE and port == 0:
                continue  # free on one family, taken on the other: try another number
            raise _bind_error(error, host, port, option) from error
    raise Conflict("No free port was found on this machine. Stop another server and try again.")


def _bind(host: str, port: int, *, is_optional: bool) -> socket.socket | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        if is_optional:
            return None
        raise
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if is_optional and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return None
        raise
    return listener


def _bind_error(error: OSError, host: str, port: int, option: str) -> Exception:
    if error.errno == errno.EADDRINUSE:
        return Conflict(
            f"Port {port} on {host} is in use. Stop the other server, or choose another port: "
            f"webdepot serve {option} 0"
        )
    if error.errno == errno.EACCES:
        return Conflict(
            f"This user may not open port {port}. Choose one above 1023: webdepot serve {option} 8080"
        )
    return InputError(
        f"{host} is not an address of this machine ({error.strerror}). "
        "Choose another: webdepot serve --host 127.0.0.1"
    )


def _port_of(sockets: Sequence[socket.socket]) -> int:
    port: int = sockets[0].getsockname()[1]
    return port


def _close(sockets: Sequence[socket.socket]) -> None:
    for opened in sockets:
        opened.close()
