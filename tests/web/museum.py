"""Small archives made from handwritten WARC files and served on loopback, and a client for them."""

import base64
import gzip
import hashlib
import http.client
import json
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from webdepot.access.replay.site_hosts import label_of
from webdepot.archive import Archive
from webdepot.services.admin import setup
from webdepot.services.index import indexer
from webdepot.services.intake import warc_files
from webdepot.services.progress import unwatched

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
PASSWORD = "correct horse battery"
EDITIONS = ("20090312101500", "20120601120000", "20120601180000", "20190911080000")
SITE = "http://www.example.org"
SERVER = """
import json, sys
from datetime import datetime
from pathlib import Path
from webdepot.archive import Archive
from webdepot.times import utc_now
from webdepot.web.serve import serve
clock = (lambda: datetime.fromisoformat(Path(sys.argv[2]).read_text())) if sys.argv[2:] else utc_now
with Archive.open(Path(sys.argv[1]), clock=clock) as archive:
    told = []
    serve(archive, host="127.0.0.1", port=0, replay_port=0,
          ready=lambda *both: print(json.dumps([*both, *told]), flush=True),
          proxy_port=0 if sys.argv[3:] else None,
          proxy_ready=lambda address, certificate: told.append(address))
"""


@dataclass
class Warc:
    """Writes a container file record by record, so that a test decides about every byte."""

    path: Path
    records: list[bytes] = field(default_factory=list)

    def response(
        self,
        url: str,
        stamp: str,
        body: bytes,
        *,
        mime: str = "text/html",
        status: str = "200 OK",
        headers=(),
    ):
        lines = [
            f"HTTP/1.1 {status}",
            f"Content-Type: {mime}",
            *(f"{name}: {value}" for name, value in headers),
            "",
            "",
        ]
        return self.raw(
            url, stamp, "\r\n".join(lines).encode("latin-1") + body, {"WARC-Payload-Digest": digest_of(body)}
        )

    def revisit(self, url: str, stamp: str, of_body: bytes, *, of_url: str, of_stamp: str):
        fields = {
            "WARC-Type": "revisit",
            "WARC-Profile": "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
            "WARC-Payload-Digest": digest_of(of_body),
            "WARC-Refers-To-Target-URI": of_url,
            "WARC-Refers-To-Date": iso(of_stamp),
        }
        return self.raw(
            url, stamp, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Edition: revisit\r\n\r\n", fields
        )

    def raw(self, url: str, stamp: str, block: bytes, fields: dict[str, str] | None = None):
        head = {
            "WARC-Type": "response",
            "WARC-Record-ID": f"<urn:uuid:{uuid.uuid4()}>",
            "WARC-Target-URI": url,
            "WARC-Date": iso(stamp),
            "Content-Type": "application/http; msgtype=response",
            **(fields or {}),
            "Content-Length": str(len(block)),
        }
        lines = ["WARC/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        self.records.append(gzip.compress("\r\n".join(lines).encode() + block + b"\r\n\r\n"))
        return self

    def write(self) -> Path:
        self.path.write_bytes(b"".join(self.records))
        return self.path


def digest_of(body: bytes) -> str:
    return "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")


@dataclass(frozen=True)
class Served:
    """A running server and the home it serves; a test may change the home's database while it runs."""

    portal: str
    replay: str
    home: Path
    process: subprocess.Popen
    clock: Path | None = None
    proxy: str = ""
    """Where terminals ask, in proxy mode."""

    def set_clock(self, now: datetime) -> None:
        """Set the server's clock, if it was given one."""
        assert self.clock is not None
        written = self.clock.with_suffix(".new")
        written.write_text(now.isoformat())
        written.replace(self.clock)

    @property
    def frame(self) -> str:
        return self.portal.replace("127.0.0.1", "webdepot.localhost")

    def pages(self, url: str) -> str:
        """The origin on which pages of this archived site are shown."""
        return self.replay.replace("localhost", f"{label_of(url)}.webdepot.localhost")

    def archive(self) -> Archive:
        return Archive.open(self.home, clock=lambda: NOW)


def iso(stamp: str) -> str:
    return f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:14]}Z"


def make_home(home: Path, *warcs: Path, collection: str = "museums", settings: str = "") -> Path:
    """A home with these containers imported and indexed."""
    setup.create(home, clock=lambda: NOW, settings=settings)
    with Archive.open(home, clock=lambda: NOW) as archive:
        for warc in warcs:
            taken = warc_files.take_files(archive, [warc], collection=collection, watch=unwatched)
            assert taken.harvest is not None
            indexer.index_harvest(archive, taken.harvest.id)
    return home


@contextmanager
def serving(
    home: Path, *, clock: Path | None = None, now: datetime = NOW, as_proxy: bool = False
) -> Iterator[Served]:
    """A server in its own process. With `clock`, a file, it takes its time from there, at first `now`."""
    if clock is not None:
        clock.write_text(now.isoformat())
    assert clock is not None or not as_proxy
    command = [
        sys.executable,
        "-c",
        SERVER,
        str(home),
        *([str(clock)] if clock else []),
        *(["proxy"] if as_proxy else []),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        portal, replay, *proxy = json.loads(process.stdout.readline())
        yield Served(portal, replay, home, process, clock, *proxy)
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(timeout=20)
        process.stdout.close()
    assert status == 0, "the server did not stop tidily"


def ask(
    url: str,
    method: str = "GET",
    *,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    source: str = "",
) -> Answer:
    """One request, without following redirects or decoding. Everything after the host is sent as it is.
    `source` is the address of the client.
    """
    parts = urlsplit(url)
    assert parts.hostname
    # Browsers resolve names below localhost themselves (RFC 6761, 6.3); not every system does.
    host = "127.0.0.1" if source or parts.hostname.endswith(".localhost") else parts.hostname
    connection = http.client.HTTPConnection(
        host, parts.port, timeout=30, source_address=(source, 0) if source else None
    )
    try:
        target = url.partition(parts.netloc)[2] or "/"
        given = {**({"Host": parts.netloc} if host != parts.hostname else {}), **(headers or {})}
        connection.putrequest(method, target, skip_host="Host" in given, skip_accept_encoding=True)
        if body is not None:
            given.setdefault("Content-Length", str(len(body)))
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        got = connection.getresponse()
        return Answer(got.status, got.headers, got.read())
    finally:
        connection.close()


def sign_in(served: Served, name: str) -> str:
    """The session cookie of a person, as a Cookie header."""
    form = f"name={name}&password={PASSWORD.replace(' ', '+')}&to=/".encode()
    answer = ask(
        f"{served.portal}/sign-in",
        "POST",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        body=form,
    )
    assert answer.status == 303, answer.text
    return answer.headers["Set-Cookie"].partition(";")[0]


def edition(number: int, stamp: str) -> bytes:
    return (
        f"<!doctype html><html><head><meta charset=utf-8><title>Museum of clocks {stamp[:4]}</title>"
        '<link rel="stylesheet" href="/style.css"></head><body>'
        f"<h1>Museum of clocks, edition {number}</h1><p>Every clock in the house still runs.</p>"
        '<img id="picture" src="/picture.png" alt="a clock"><p id="fetched"></p>'
        '<p><a id="news" href="/news.html">News</a> <a id="leaflet" href="/leaflet.pdf">Leaflet</a> '
        '<a id="gone" href="/gone.html">Gone</a>'
        ' <a id="outside" target="_blank" href="http://outside.example.net/">Outside</a></p>'
        '<img src="http://live.example.net/leak.png" alt=""><script src="/app.js"></script></body></html>'
    ).encode()


SCRIPT = b"""
fetch("/data.json").then((r) => r.json()).then((d) => {
  document.getElementById("fetched").textContent = "fetched " + d.words;
});
"""
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a73000000124944415408d763f8cfc0c0f01f8c190018fa03fd"
    "0b58a0d60000000049454e44ae426082"
)
PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj "
    b"3 0 obj<</Type/Page/MediaBox[0 0 300 200]/Parent 2 0 R>>endobj\ntrailer<</Root 1 0 R>>\n"
)
