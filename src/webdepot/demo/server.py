"""The sample site as a web server on loopback: one edition at a time, with its host names by the Host header.

For each request: look up host and path in the current edition, or answer 404 with the site's own page;
compress text if the client accepts it (from the edition of 2016 on); send headers and body.
"""

import gzip
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import unquote, urlsplit

from webdepot.demo import site
from webdepot.demo.resource import HOSTS, Edition, Resource
from webdepot.demo.site import Served
from webdepot.times import to_http

_SERVERS = {
    "2003": "Apache/1.3.27 (Unix)",
    "2004": "Apache/1.3.31 (Unix)",
    "2009": "Apache/2.2.9",
    "2016": "nginx/1.10.1",
    "2024": "nginx",
}
_COMPRESSED_SINCE = "2016"


class DemoSite:
    """Serves the sample site while it is open. `show` switches the edition, safe between requests."""

    def __init__(self, edition: Edition = site.EDITIONS[0]) -> None:
        self._shown = site.serve(edition)
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="demo site", daemon=True
        )

    @property
    def address(self) -> str:
        """`127.0.0.1:PORT`."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    @property
    def connect_to(self) -> Mapping[str, str]:
        """The value of `harvest.connect_to` that makes the host names of the site lead here."""
        return dict.fromkeys(HOSTS, self.address)

    def show(self, edition: Edition) -> Served:
        """Serve this edition from now on."""
        self._shown = site.serve(edition)
        return self._shown

    def answer(self, host: str, target: str) -> tuple[Edition, Resource]:
        """The response to a request: the resource, or the page for missing ones."""
        shown = self._shown
        name = host.partition(":")[0].lower()
        path = unquote(urlsplit(target).path) or "/"
        return shown.edition, shown.resources.get((name, path), shown.missing)

    def __enter__(self) -> "DemoSite":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, demo: DemoSite) -> None:
        self.demo = demo
        super().__init__(("127.0.0.1", 0), _RequestHandler)


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._send(with_body=True)

    def do_HEAD(self) -> None:
        self._send(with_body=False)

    def log_message(self, format: str, *args: object) -> None:
        """Do nothing: the demonstration has no access log."""

    def _send(self, *, with_body: bool) -> None:
        edition, resource = self.server.demo.answer(self.headers.get("Host", ""), self.path)
        body, headers = _payload(edition, resource, self.headers.get("Accept-Encoding", ""))
        self.send_response_only(resource.status)
        self.send_header("Date", to_http(edition.date))
        self.send_header("Server", _SERVERS[edition.name])
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)


def _payload(edition: Edition, resource: Resource, accepted: str) -> tuple[bytes, dict[str, str]]:
    headers = {"Content-Type": resource.type}
    if resource.status == 200:
        headers["Last-Modified"] = to_http(resource.changed)
    if resource.location:
        headers["Location"] = resource.location
    if edition.name < _COMPRESSED_SINCE or not _is_text(resource.type):
        return resource.body, headers
    headers["Vary"] = "Accept-Encoding"
    if "gzip" not in accepted:
        return resource.body, headers
    headers["Content-Encoding"] = "gzip"
    return gzip.compress(resource.body, mtime=0), headers


def _is_text(kind: str) -> bool:
    return kind.startswith("text/") or any(word in kind for word in ("javascript", "json", "xml"))
