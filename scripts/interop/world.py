"""The archive that the tools read: harvested and imported here, exported, and served on this machine."""

import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from installing import ROOT

sys.path.insert(0, str(ROOT / "tests"))

import small_warcs

SITE = "https://mill.example/"
WEBDEPOT = ROOT / ".venv" / "bin" / "webdepot"
_BITMAP = b"#define sail_width 8\n#define sail_height 2\nstatic unsigned char sail_bits[] = { 0x81, 0x18 };\n"
_PAGE = b'<!doctype html><html lang=en><title>The mill</title><p>It turns.<img src=sail.xbm><a href="/%s">more</a>'


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The archive and its exports that the tools read."""

    folder: Path
    warcs: tuple[Path, ...]
    """The containers of the archive that is served: a page of SITE in 2024, another and a revisit in 2025."""
    own: tuple[Path, ...]
    """Containers written by Webdepot: two harvests of a site on this machine, and a converted picture."""
    depot: Path
    """The OCFL storage root that they are in."""
    portal: str
    replay: str


def own(home: Path | str, *arguments: str | Path) -> str:
    """The output of a command of Webdepot, which must succeed."""
    command = [str(WEBDEPOT), "--home", str(home), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def make_served(folder: Path) -> tuple[Path, tuple[Path, ...]]:
    """The home of an archive with two imports, and exports of the second beside it."""
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    from webdepot import digest
    from webdepot.archive import Archive
    from webdepot.services import pipeline
    from webdepot.services.admin import setup
    from webdepot.services.depot import export
    from webdepot.services.depot.export import PackageForm

    page = b"<!doctype html><title>The mill</title><p>It turns."
    first, second = folder / "first.warc.gz", folder / "second.warc.gz"
    small_warcs.write_warc(first, {SITE: page}, when=datetime(2024, 1, 1, tzinfo=UTC))
    small_warcs.write_warc(
        second, {f"{SITE}news": b"<title>News</title>Still."}, when=datetime(2025, 1, 1, tzinfo=UTC)
    )
    with second.open("ab") as file:
        writer = WARCWriter(file, gzip=True)
        head = StatusAndHeaders("200 OK", [("Content-Type", "text/html")], protocol="HTTP/1.1")
        writer.write_record(
            writer.create_revisit_record(
                SITE,
                str(digest.sha1(page)),
                SITE,
                "2024-01-01T00:00:00Z",
                http_headers=head,
                warc_headers_dict={"WARC-Date": "2025-01-01T00:00:00Z"},
            )
        )
    home = folder / "home"
    setup.create(home)
    packages = []
    with Archive.open(home) as archive:
        for path in (first, second):
            pipeline.import_files(
                archive, [path], collection="mills", on_package=lambda report: packages.append(report.package)
            )
        later = packages[-1].id
        export.export(archive, later, PackageForm.WACZ, folder / "later.wacz")
        export.export(archive, later, PackageForm.BAGIT, folder / "bag")
        export.export(archive, later, PackageForm.OCFL, folder / "ocfl")
    return home, (first, second)


def make_own(folder: Path) -> tuple[Path, tuple[Path, ...]]:
    """The depot and containers of an archive that has harvested a site twice and converted its picture."""
    home = folder / "own"
    own(home, "init")
    with mill() as address:
        for _ in range(2):
            own(home, "archive", address, "--allow-private", "--delay", "0", "--browser", "never", "--quiet")
    for line in own(home, "package", "list", "--json").splitlines():
        package = json.loads(line)
        own(home, "package", "migrate", package["id"], "--tool", "xbitmap-to-png", "--quiet")
    depot = home / "depot"
    return depot, tuple(sorted(path for path in depot.rglob("*.warc.gz")))


class _Mill(BaseHTTPRequestHandler):
    """A site with what is hard in containers: a chunked and a compressed response, a redirect, an error."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        pages = {"/": _PAGE % b"chunked", "/chunked": _PAGE % b"packed", "/packed": _PAGE % b"moved"}
        if self.path == "/moved":
            self._send(302, b"", Location="/gone?a=b|c")
        elif self.path == "/sail.xbm":
            self._send(200, _BITMAP, **{"Content-Type": "image/x-xbitmap"})
        elif self.path == "/packed":
            body = gzip.compress(pages[self.path], mtime=0)
            self._send(200, body, **{"Content-Type": "text/html", "Content-Encoding": "gzip"})
        elif self.path == "/chunked":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in (pages[self.path][:40], pages[self.path][40:], b""):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        else:
            body = pages.get(self.path, b"")
            self._send(200 if body else 404, body or b"not found", **{"Content-Type": "text/html"})

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *words: object) -> None:
        pass


@contextmanager
def mill() -> Iterator[str]:
    """The address of a small site on this machine."""
    with _served(_Mill) as port:
        yield f"http://127.0.0.1:{port}/"


@contextmanager
def files(folder: Path) -> Iterator[str]:
    """The address of a server for the files of a folder."""
    with _served(partial(_Files, directory=str(folder))) as port:
        yield f"http://127.0.0.1:{port}/"


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        pass


@contextmanager
def _served(handler: object) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def serving(home: Path) -> Iterator[tuple[str, str]]:
    """The addresses of the portal and the replay host of an archive."""
    command = [str(WEBDEPOT), "--home", str(home), "serve", "--port", "0", "--replay-port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        urls = json.loads(process.stdout.readline())
        yield urls["portal"], urls["replay"]
    finally:
        process.terminate()
        process.wait(timeout=30)
