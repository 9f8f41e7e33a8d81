"""A site of probes: each page under `probe/` tries a group of mechanisms of the web and writes down which of
them worked.

`harvested` archives it with our own harvester and turns the site off; what a browser shows afterwards comes
from the archive or not at all. Three answers to POST come from a container written by hand, as a recording
browser would have made it: our harvester asks by GET.
"""

import base64
import gzip
import hashlib
import io
import json
import struct
import threading
import wave
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from museum import Warc, iso

from webdepot.archive import Archive
from webdepot.services.admin import setup
from webdepot.services.harvest import runner
from webdepot.services.harvest.options import HarvestOptions
from webdepot.services.index import indexer, visible_harvests
from webdepot.services.intake import warc_files
from webdepot.services.progress import unwatched

FOLDER = Path(__file__).parent / "probe"
HOST, OTHER = "www.probe.example", "other.example"
GROUPS = {
    "attributes": 41,
    "styles": 20,
    "scripts": 36,
    "network": 23,
    "workers": 15,
    "frames": 22,
    "encodings": 12,
}
"""Pages of probes and how many each has: a script that broke off would tell less."""
COMPUTED = """
/js/module/lazy.js /js/module/lazy.js?whole /js/made.js /js/worker.js /js/imported.js /js/module-worker.js
/js/shared.js /js/where.js
/js/module/leaf.js /js/module/mapped.js /service.js /answer.wasm /events /moved /self
/jsonp.js?callback=called
/framed.html?q=clock /framed.html?refreshed /framed.html?jumped /framed.html?targeted /refresh-out.html
/data/fetch.json /data/request.json /data/object.json /data/xhr.json /data/sync.json /data/gone.json
/data/broken.json
/data/busted.json?_=1700000000000 /data/worker.json /data/gzip.json /data/twin-one.txt /data/twin-two.txt
/data/fetch.json?off
/long.wav /long.wav?stream /i/64.png /i/65.png /i/66.png /i/67.png /i/69.png /i/70.png /i/80.png /i/81.png
/i/83.png /i/84.png /i/85.png
/js/lib/dyn.js /js/lib/nested/deep.js /js/lib/early.js /js/nesting-worker.js /js/nesting-module-worker.js
/js/nested/one.js /js/nested/two.js /js/nested/three.js /js/module/through.js /js/module/late.js
/old/one.html?opened /old/one.html?set /old/found.html?q=clock&b=go /old/found.html?q=bell
/i/60.png?a=1,2 /i/86.png /i/87.png /i/88.png /i/89.png /i/90.png /i/92.png
""".split()  # noqa: SIM905
"""Addresses that only running scripts make; the site map names them, as sites do for crawlers."""
FAR = ("/i/82.png", "/js/far/far.js", "/data/far.json", "/framed.html?far", "/css/other.css", "/i/62.png")
"""What scripts ask of the other host."""
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "png": "image/png",
}
TYPES |= {
    "json": "application/json",
    "wav": "audio/wav",
    "vtt": "text/vtt",
    "ttf": "font/ttf",
    "txt": "text/plain",
    "wasm": "application/wasm",
}
Answer = tuple[int, dict[str, str], bytes]


def answer_to(host: str, target: str) -> Answer:
    """The answer of the site."""
    path = target.partition("?")[0]
    name, extension = path.removeprefix("/"), path.rpartition(".")[2]
    kind = {"Content-Type": TYPES.get(extension, TYPES["html"])}
    if host == HOST and target in SPECIAL:
        status, headers, body = SPECIAL[target]
        return status, {**kind, **headers}, body
    if host == OTHER and not path.startswith(("/i/", "/js/far/", "/data/far", "/framed.html", "/css/other")):
        return 404, {"Content-Type": "text/plain"}, b"not here"
    if host == OTHER:
        kind |= {"Access-Control-Allow-Origin": "*"}
    if path.startswith(("/i/", "/deep/")) and path.endswith(".png"):
        return 200, kind, png(int(path.rpartition("/")[2].removesuffix(".png")))
    if path in MADE:
        return 200, kind, MADE[path]
    file = FOLDER / name / "index.html" if not name or name.endswith("/") else FOLDER / name
    if file.is_file():
        data = file.read_bytes().replace(b"INTEGRITY", _integrity())
        more = ESCAPING_HEADERS if path == "/escapes.html" else {}
        return 200, {**kind, **more}, data
    return 404, {"Content-Type": "text/plain"}, b"not here"


def png(width: int) -> bytes:
    """A picture that can be recognised by its width."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = (b"\x00" + b"\x20\x80\xc0" * width) * (60 if width == 55 else 2)
    head = struct.pack(">IIBBBBB", width, 60 if width == 55 else 2, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def tone(seconds: int, rate: int = 8000) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as made:
        made.setnchannels(1)
        made.setsampwidth(2)
        made.setframerate(rate)
        made.writeframes(bytes(range(256)) * (seconds * rate * 2 // 256))
    return file.getvalue()


def font() -> bytes:
    """A font with one letter."""
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, 700), (900, 700), (900, 0)):
        pen.lineTo(corner)
    pen.closePath()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "i"])
    builder.setupCharacterMap({ord("i"): "i"})
    builder.setupGlyf({".notdef": pen.glyph(), "i": pen.glyph()})
    builder.setupHorizontalMetrics({".notdef": (1000, 0), "i": (1000, 0)})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": "Probe", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    file = io.BytesIO()
    builder.font.save(file)
    return file.getvalue()


def _json(words: str) -> bytes:
    return json.dumps({"answer": words}).encode()


def _integrity() -> bytes:
    return base64.b64encode(hashlib.sha256((FOLDER / "js/plain.js").read_bytes()).digest())


def _svg(name: str, width: int = 40) -> bytes:
    start = f'<svg xmlns="http://www.w3.org/2000/svg" id="{name}" width="{width}" height="20">'
    return f'{start}<rect width="5" height="5"/></svg>'.encode()


SITEMAP = "".join(f"<url><loc>http://{HOST}{path}</loc></url>" for path in COMPUTED).replace("&", "&amp;")
ESCAPING_HEADERS = {
    "Link": "<http://live.example/header-preload.css>; rel=preload; as=style",
    "Content-Security-Policy-Report-Only": "default-src 'none'; report-uri http://live.example/header-report",
    "NEL": '{"report_to": "x", "max_age": 60}',
    "Report-To": '{"group": "x", "max_age": 60, "endpoints": [{"url": "http://live.example/header-nel"}]}',
    "Set-Cookie": "session=stolen; Path=/",
}
SPECIAL: dict[str, Answer] = {
    "/robots.txt": (200, {}, f"User-agent: *\nAllow: /\nSitemap: http://{HOST}/sitemap.xml\n".encode()),
    "/sitemap.xml": (
        200,
        {"Content-Type": "application/xml"},
        f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{SITEMAP}</urlset>'.encode(),
    ),
    "/jsonp.js?callback=called": (200, {}, b'called({"answer": "jsonp"});'),
    "/moved": (302, {"Location": "/data/arrived.json"}, b""),
    "/to-framed": (302, {"Location": "/framed.html?redirected"}, b""),
    "/to-far": (302, {"Location": f"http://{OTHER}/framed.html?far"}, b""),
    "/data/gone.json": (404, {}, _json("gone")),
    "/data/broken.json": (503, {}, _json("broken")),
    "/data/gzip.json": (200, {"Content-Encoding": "gzip"}, gzip.compress(_json("gzip"), mtime=0)),
    "/data/twin-one.txt": (200, {}, b"the same words " * 100),
    "/data/twin-two.txt": (200, {}, b"the same words " * 100),
    "/data/busted.json?_=1700000000000": (200, {}, _json("busted")),
    "/data/fetch.json?off": (200, {}, _json("off")),
    "/data/worker.json": (200, {}, _json("fetched")),
    "/events": (200, {"Content-Type": "text/event-stream"}, b"data: hello\n\n"),
    "/latin.html": (
        200,
        {"Content-Type": "text/html; charset=windows-1252"},
        "<title>Latin</title>Käse – 5 €".encode("cp1252"),
    ),
    "/declared.html": (
        200,
        {"Content-Type": "text/html"},
        (
            "<title>Cyrillic</title>"
            "<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'>Привет"
        ).encode("cp1251"),
    ),
    "/wide.html": (
        200,
        {"Content-Type": "text/html"},
        "\ufeff<title>Wide</title>breite Zeichen äöü".encode("utf-16-le"),
    ),
    "/marked.html": (200, {"Content-Type": "text/html"}, "\ufeff<title>Marked</title>Grüße €".encode()),
    "/wide-big.html": (
        200,
        {"Content-Type": "text/html"},
        "\ufeff<title>Wide</title>Grüße €".encode("utf-16-be"),
    ),
    "/wide-untold.html": (
        200,
        {"Content-Type": "text/html; charset=utf-16be"},
        "<title>Wide</title>Grüße €".encode("utf-16-be"),
    ),
    "/jis.html": (
        200,
        {"Content-Type": "text/html; charset=iso-2022-jp"},
        "<title>JIS</title>時計と&lt;博物館&gt;".encode("iso-2022-jp"),
    ),
    "/latin-links.html": (
        200,
        {"Content-Type": "text/html; charset=iso-8859-1"},
        (
            "<title>Latin</title>Größe € <a id=link href=Größe.html>x</a><img id='picture' src='/i/Größe.png'>"
            '<a id="query" href="suche.html?wort=Größe&amp;x=1">x</a>'
            '<a id="entity" href="Gr&ouml;&szlig;e.html?entity">x</a>'
            '<input id="value" value="weiter &ndash; &Auml; &euro;">'
        ).encode("cp1252"),
    ),
    "/japanese.html": (
        200,
        {"Content-Type": "text/html"},
        (
            "<meta charset=shift_jis><title>Japanese</title>"
            '<a id="link" href="ソース.html">ソース</a><img id="picture" src="/i/時計.png">'
        ).encode("shift_jis"),
    ),
    "/Gr%C3%B6%C3%9Fe.html": (200, {}, "<title>Size</title><p>Seite über Größe</p>".encode()),
    "/Gr%C3%B6%C3%9Fe.html?entity": (200, {}, b"<title>Size</title>"),
    "/suche.html?wort=Gr%F6%DFe&x=1": (200, {}, b"<title>Searched</title>"),
    "/%E3%82%BD%E3%83%BC%E3%82%B9.html": (200, {}, b"<title>Source</title><p>page of the source</p>"),
    "/feed.rss": (
        200,
        {"Content-Type": "application/rss+xml"},
        (
            b'<?xml version="1.0"?><rss version="2.0"><channel><title><![CDATA[News & clocks]]></title>'
            b"<link>/searching.html</link><description>What happened</description>"
            b"<item><title>First entry</title><link>/old/one.html</link>"
            b"<pubDate>Mon, 01 Jun 2026 12:00:00 GMT</pubDate>"
            b"<description>&lt;p&gt;Words &lt;b&gt;of&lt;/b&gt; it&amp;nbsp;all&lt;/p&gt;</description></item>"
            b"</channel></rss>"
        ),
    ),
    "/feed.atom": (
        200,
        {"Content-Type": "application/atom+xml; charset=utf-8"},
        (
            b'<feed xmlns="http://www.w3.org/2005/Atom"><title>Atoms</title><link rel="self" href="/feed.atom"/>'
            b'<entry><title>Second entry</title><link href="/old/two.html"/><updated>2026-06-01T12:00:00Z</updated>'
            b"</entry></feed>"
        ),
    ),
    "/tree.xml": (
        200,
        {"Content-Type": "text/xml"},
        (
            b'<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="/missing.xsl"?><shelf n="1">'
            b"<book id='a'>Clocks</book><book><where>http://www.probe.example/old/one.html</where></book></shelf>"
        ),
    ),
    **{
        f"/data/{name}.json": (200, {}, _json(name))
        for name in ("fetch", "request", "object", "xhr", "sync", "arrived")
    },
}
SPECIAL["/i/Gr%C3%B6%C3%9Fe.png"] = (200, {}, png(71))
SPECIAL["/i/%E6%99%82%E8%A8%88.png"] = (200, {}, png(72))
MADE = {
    "/tone.wav": tone(2),
    "/long.wav": tone(24),
    "/probe.ttf": font(),
    "/words.vtt": b"WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n",
    "/words.txt": b"only words",
    "/drawing.svg": _svg("drawing"),
    "/object.svg": _svg("object-drawing"),
    "/embed.svg": _svg("embed-drawing", 43),
    "/sprite.svg": b'<svg xmlns="http://www.w3.org/2000/svg">'
    b'<symbol id="mark" viewBox="0 0 7 7" width="7" height="7">'
    b'<rect width="7" height="7"/></symbol></svg>',
    "/answer.wasm": bytes.fromhex(
        "0061736d010000000105016000017f03020100070a0106616e7377657200000a06010400412a0b"
    ),
    "/site.webmanifest": b'{"name": "Probe"}',
    "/data/far.json": _json("far"),
    "/self": b"<title>Self</title>the page itself",
}
POSTED = (
    ("/api", "application/json", b'{"q":"one"}', "application/json", _json("first")),
    ("/api", "application/json", b'{"q":"two"}', "application/json", _json("second")),
    ("/api", "application/x-www-form-urlencoded", b"q=three", "application/json", _json("by form")),
    (
        "/api/form",
        "application/x-www-form-urlencoded",
        b"q=clock",
        "text/html",
        b"<title>Posted</title><script>var asked = 'posted';</script>",
    ),
)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def do_GET(self) -> None:
        host = self.headers.get("Host", "").partition(":")[0]
        status, headers, body = answer_to(host, self.path)
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def site() -> Iterator[int]:
    """The site on a port of loopback, under every host name."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def posted(path: Path) -> Path:
    """A container with the answers to POST, as a recording browser writes it: request and response refer to
    each other.
    """
    warc = Warc(path)
    stamp = "20260501120000"
    for number, (where, question_type, question, mime, body) in enumerate(POSTED):
        url, name = f"http://{HOST}{where}", f"<urn:uuid:00000000-0000-4000-8000-00000000000{number}>"
        asked = (
            f"POST {where} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: {question_type}\r\n\r\n".encode()
            + question
        )
        said = f"HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n\r\n".encode() + body
        fields = {
            "WARC-Type": "request",
            "WARC-Concurrent-To": name,
            "Content-Type": "application/http; msgtype=request",
        }
        warc.raw(url, stamp, asked, fields)
        warc.raw(url, stamp, said, {"WARC-Record-ID": name, "WARC-Date": iso(stamp)})
    return warc.write()


def harvested(home: Path, *, udp_port: int) -> Path:
    """A home with the probe site in it. The site itself is gone when this returns. Peer connections call that
    port.
    """
    MADE["/js/escapes.js"] = (
        (FOLDER / "js/escapes.js").read_bytes().replace(b"UDP_PORT", str(udp_port).encode())
    )
    with site() as port:
        where = "".join(f'"{name}" = "127.0.0.1:{port}"\n' for name in (HOST, OTHER))
        settings = f"[harvest]\ntries = 1\ndns_patience_s = 0\n[harvest.connect_to]\n{where}"
        setup.create(home, settings=settings)
        with Archive.open(home) as archive:
            options = replace(
                HarvestOptions.from_config(archive.config),
                delay_s=0.0,
                reject=("live[.]example",),
                limit_pages=1000,
            )
            seeds = [f"http://{HOST}/", *(f"http://{OTHER}{path}" for path in FAR)]
            harvest = runner.run(archive, runner.start_or_resume(archive, seeds, options))
            visible_harvests.show(archive, harvest)
            indexer.index_harvest(archive, harvest.id)
            taken = warc_files.take_files(
                archive, [posted(home.parent / "posted.warc.gz")], collection="default", watch=unwatched
            )
            assert taken.harvest is not None
            indexer.index_harvest(archive, taken.harvest.id)
    return home
