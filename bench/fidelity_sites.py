"""The sites of the fidelity benchmark: what to serve, and which pages to compare. Two are written here, the
others are built from published software (`fidelity_software`).
"""

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

SQUARE = "<svg xmlns='http://www.w3.org/2000/svg' width='120' height='60'><rect width='120' height='60' fill='{}'/></svg>"
WORDS = {
    "utf-8": "Größe, naïve, Ελλάδα, Ærø, 日本語 and čeština in one page",
    "utf-16": "Größe, Ελλάδα and 日本語 in two bytes a letter",
    "iso-8859-1": "Die Größe des Schlüssels, le garçon, el niño, smørrebrød",
    "windows-1252": "Curly “quotes”, an en dash – and the euro sign €",
    "iso-8859-2": "Příliš žluťoučký kůň úpěl ďábelské ódy",
    "iso-8859-7": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "windows-1251": "Съешь же ещё этих мягких французских булок",
    "koi8-r": "Широкая электрификация южных губерний",
    "shift_jis": "いろはにほへと ちりぬるを カタカナ 漢字",
    "euc-jp": "わかよたれそ つねならむ 日本の図書館",
    "gb18030": "天地玄黃 宇宙洪荒 图书馆",
    "big5": "圖書館 網站典藏 日月盈昃",
    "euc-kr": "다람쥐 헌 쳇바퀴에 타고파 도서관",
    "windows-1255": "דג סקרן שט בים מאוכזב ולפתע מצא חברה",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A folder of files, or a program that serves itself, with the paths of its pages; the first is the seed."""

    name: str
    pages: tuple[str, ...]
    folder: Path | None = None
    fallback: str = ""
    """The file that answers page addresses without a file, as web servers are set up for single-page apps."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Content types by path, where they differ from the usual one."""
    with_base: tuple[str, ...] = ()
    """Files in which `{base}` is replaced by the address of the site: some formats have no relative addresses."""
    command: tuple[str, ...] = ()
    """A server program; `{address}` in it is replaced by host and port, `{port}` by the port."""
    wget_rejects: str = ""
    """Addresses that wget must leave out, because otherwise it would not finish: it has no rules about
    software.
    """
    limit_pages: int = 0
    """For a site that is too large for a benchmark: all pages are seeds, and harvests end after this
    number.
    """
    content: tuple[str, ...] = ()
    """The paths of all pages with content, where software adds others: histories, edits, feeds, lists."""


def write_frames(folder: Path) -> Site:
    """A frameset whose navigation uses named frames, `_top`, `base target` and a named window."""
    folder.mkdir(parents=True)
    head = "<!doctype html><link rel=stylesheet href=style.css>"
    files = {
        "index.html": "<html><head><title>Harbour</title></head><frameset cols='240,*'><frame name=menu src=menu.html>"
        "<frameset rows='80,*'><frame name=top_bar src=bar.html><frame name=main src=welcome.html></frameset>"
        "</frameset></html>",
        "menu.html": f"{head}<base target=main><ul><li><a href=ships.html>Ships</a><li><a href=tides.html>Tides</a>"
        "<li><a href=welcome.html>Welcome</a><li><a href=about.html target=_top>About us</a>"
        "<li><a href=print.html target=printing>For printing</a></ul>",
        "bar.html": f"{head}<h1>The harbour office</h1>",
        "welcome.html": f"{head}<h2>Welcome</h2><p>Choose a subject on the left.<p><img src=harbour.svg alt=''>",
        "ships.html": f"{head}<h2>Ships</h2><p>Barges, tugs and a lightship. <a href=tides.html>When they sail</a>",
        "tides.html": f"{head}<h2>Tides</h2><p>High water at six and at half past six. <img src=tide.svg alt=''>",
        "about.html": f"{head}<title>About</title><h2>About us</h2><p>The whole window. <a href=index.html>Back to the frames</a>",
        "print.html": f"{head}<title>Print</title><h2>Ships and tides for printing</h2><p>In a window of its own.",
        "style.css": "@import 'colours.css'; body {font: 18px sans-serif}",
        "colours.css": "h1, h2 {color: #046} body {background: #eef url(tile.svg)}",
        "harbour.svg": SQUARE.format("teal"),
        "tide.svg": SQUARE.format("navy"),
        "tile.svg": SQUARE.format("#dde"),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    pages = ("/", "/welcome.html", "/ships.html", "/tides.html", "/about.html", "/print.html", "/menu.html")
    return Site(name="frameset", pages=pages, folder=folder)


def write_encodings(folder: Path) -> Site:
    """The same page in many encodings: declared by `meta`, only by the header, or only by a byte-order mark;
    with links and pictures whose names are not ASCII.
    """
    folder.mkdir(parents=True)
    types, pages = {}, []
    picture = "Größe.svg"
    (folder / picture).write_text(SQUARE.format("olive"))
    for number, (encoding, words) in enumerate(WORDS.items()):
        way = "bom" if encoding == "utf-16" else ("meta", "header")[number % 2]
        name = f"{encoding}-{way}.html"
        meta = f"<meta charset={encoding}>" if way == "meta" else ""
        types[f"/{name}"] = f"text/html; charset={encoding}" if way == "header" else "text/html"
        (folder / name).write_bytes(_page(name, words, meta).encode(encoding))
        pages.append(f"/{name}")
    (folder / "utf-8-bom.html").write_bytes(_page("utf-8-bom.html", WORDS["utf-8"], "").encode("utf-8-sig"))
    named = f"<p><img src='{picture}' alt=''><p><a href='Schlüssel.html'>Zum Schlüssel</a>"
    (folder / "names-latin.html").write_bytes(
        _page("names", named, "<meta charset=iso-8859-1>").encode("latin-1")
    )
    (folder / "names-utf-8.html").write_bytes(_page("names", named, "<meta charset=utf-8>").encode())
    (folder / "Schlüssel.html").write_bytes(
        _page("key", "Der Schlüssel paßt", "<meta charset=utf-8>").encode()
    )
    pages += ["/utf-8-bom.html", "/names-latin.html", "/names-utf-8.html", "/Schl%C3%BCssel.html"]
    links = "".join(f"<li><a href='{page}'>{page[1:]}</a>" for page in pages if "%" not in page)
    (folder / "index.html").write_text(
        _page("Encodings", f"<ul>{links}</ul>", "<meta charset=utf-8>"), encoding="utf-8"
    )
    return Site(name="encodings", pages=("/", *pages), folder=folder, types=types)


def _page(title: str, words: str, meta: str) -> str:
    return f"<!doctype html><html><head>{meta}<title>{title}</title></head><body><h1>{title}</h1><p>{words}</body></html>"


@contextmanager
def serve_files(site: Site) -> Iterator[str]:
    """Serve a folder on loopback; yields its base address without a slash at the end."""
    with _Server(("127.0.0.1", 0), partial(_Files, site)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a browser leaves when it has seen enough
            super().handle_error(request, client_address)


class _Files(SimpleHTTPRequestHandler):
    """The files of a folder, with the content types and the fallback of the site."""

    protocol_version = "HTTP/1.1"

    def __init__(self, site: Site, *given: object) -> None:
        self.site = site
        super().__init__(*given, directory=str(site.folder))

    def send_head(self) -> BytesIO | BinaryIO | None:
        path = self.path.partition("?")[0]
        file = Path(self.translate_path(path))
        absent = not file.exists() or (file.is_dir() and not (file / "index.html").exists())
        if absent and Path(self.translate_path(path + ".html")).is_file():
            self.path = path + ".html"
        elif absent and self.site.fallback and "." not in path.rpartition("/")[2]:
            self.path = self.site.fallback
        if path in self.site.with_base:
            return self._send_with_base(file)
        return super().send_head()

    def _send_with_base(self, file: Path) -> BytesIO:
        data = file.read_bytes().replace(b"{base}", f"http://{self.headers['Host']}".encode())
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        return BytesIO(data)

    def list_directory(self, path: object) -> None:
        """Refuse it, as web servers are set up: it would lead to files that no page names."""
        self.send_error(404)

    def do_POST(self) -> None:
        """Answer like a GraphQL server: with the file named after the operation, in the folder of the address."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = Path(self.translate_path(self.path)) / f"{asked['operationName']}.json"
        data = answer.read_bytes() if answer.is_file() else b"{}"
        self.send_response(200 if answer.is_file() else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def guess_type(self, path: object) -> str:
        return self.site.types.get(self.path.partition("?")[0]) or super().guess_type(str(path))

    def log_message(self, *given: object) -> None:
        pass
