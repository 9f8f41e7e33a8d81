"""Test Webdepot with other programs and print a table: python scripts/interop.py [--slow] [NAME...]

1. Install the tools: from PyPI into `.interop`, from npm and Maven below `.interop/` (`--slow`: also from Go and
   crates, which are compiled for minutes).
2. Make an archive with two harvests of a small site, of which the second has a page that did not change; export
   it as WACZ, bag and OCFL; serve it on this machine.
3. Run each tool and compare with what we know. A tool that cannot be installed is listed with the reason.

Exits 1 if a tool that could be run gave a different result.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import small_warcs  # noqa: E402 - a module of the tests

PLACE = ROOT / ".interop"
PYPI = [
    "bagit",
    "cdx_toolkit",
    "cdxj-indexer",
    "fastwarc",
    "feedparser",
    "har2warc",
    "memento_client",
    "ocfl-py",
    "openapi-spec-validator",
    "pymarc",
    "setuptools<81",
    "sickle",
    "wacz",
    "warcio",
    "waybackpy",
]
SITE = "https://mill.example/"
JS_WACZ = "@harvard-lil/js-wacz"
LIMIT_S = 120
COMPILE_LIMIT_S = 1800


class Unavailable(Exception):
    """A tool cannot be run; the message says why."""


class Different(Exception):
    """A tool gave a result other than the expected one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The archive and its exports that the tools read."""

    folder: Path
    warcs: tuple[Path, ...]
    portal: str
    replay: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    source: str
    what: str
    check: Callable[[World], str]
    """Runs a tool and returns its version; raises Unavailable or Different."""
    is_slow: bool = False


# --- the archive ---


def make_world(folder: Path) -> tuple[Path, tuple[Path, ...]]:
    """The home of an archive with two harvests, and its exports beside it."""
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


@contextmanager
def serving(home: Path) -> Iterator[tuple[str, str]]:
    command = [
        str(ROOT / ".venv/bin/webdepot"),
        "--home",
        str(home),
        "serve",
        "--port",
        "0",
        "--replay-port",
        "0",
    ]
    process = subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        urls = json.loads(process.stdout.readline())
        yield urls["portal"], urls["replay"]
    finally:
        process.terminate()
        process.wait(timeout=30)


# --- running tools ---


def run(command: list[str | Path], *, folder: Path | None = None, expected: str = "") -> str:
    """The output of a command that must succeed and contain this text."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            cwd=folder,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Different(f"did not end within {LIMIT_S} s") from None
    except OSError as error:
        raise Unavailable(str(error)) from error
    output = done.stdout + done.stderr
    if done.returncode or expected not in output:
        raise Different(f"exit {done.returncode}: {output.strip()[-200:]}")
    return output


def python(code: str, *arguments: object) -> str:
    """The output of a Python program in the environment of the tools."""
    return run([PLACE / "bin" / "python", "-W", "ignore", "-c", code, *map(str, arguments)]).strip()


def version_of(name: str) -> str:
    return python("import sys; from importlib.metadata import version; print(version(sys.argv[1]))", name)


def same(actual: object, expected: object) -> None:
    if actual != expected:
        raise Different(f"{actual!r} instead of {expected!r}")


def check_warcs(command: str, *arguments: str, world: World) -> str:
    for path in world.warcs:
        run([PLACE / "bin" / command, *arguments, path])
    return version_of(command)


def check_index(world: World) -> str:
    theirs = run([PLACE / "bin" / "cdxj-indexer", "--sort", *world.warcs]).splitlines()
    ours = urllib.request.urlopen(f"{world.replay}/all/cdx?url=mill.example/*").read().decode().splitlines()
    same([line.split(" ")[:2] for line in ours], [line.split(" ")[:2] for line in sorted(theirs)])
    return version_of("cdxj-indexer")


def check_wacz(world: World) -> str:
    run(
        [PLACE / "bin" / "wacz", "validate", "-f", world.folder / "later.wacz"],
        expected="Validation succeeded",
    )
    return version_of("wacz")


def check_wacz_pages(world: World) -> str:
    """Title and text of a list of pages in a WACZ that py-wacz has written."""
    folder = _crawled(world.folder / "py-wacz")
    create = [PLACE / "bin" / "wacz", "create", "-o", "app.wacz", "-p", "pages/pages.jsonl", "app.warc.gz"]
    run(create, folder=folder)
    _find_text_of_pages(folder)
    return version_of("wacz")


def check_js_wacz(world: World) -> str:
    """Title and text of a list of pages in a WACZ that js-wacz has written."""
    npm, place = shutil.which("npm"), PLACE / "js-wacz"
    if not npm:
        raise Unavailable("npm is not installed")
    program = place / "node_modules" / ".bin" / "js-wacz"
    if not program.exists():
        place.mkdir(exist_ok=True)
        (place / "package.json").write_text("{}")
        try:
            run([npm, "install", "--silent", "--ignore-scripts", "--no-audit", JS_WACZ], folder=place)
        except Different as error:
            raise Unavailable(f"npm: {error}") from error
    folder = _crawled(world.folder / "js-wacz")
    run([program, "create", "-f", "app.warc.gz", "-o", "app.wacz", "--pages", "pages"], folder=folder)
    _find_text_of_pages(folder)
    facts = place / "node_modules" / JS_WACZ / "package.json"
    return json.loads(facts.read_text())["version"]


def _crawled(folder: Path) -> Path:
    """A folder with a container and the list of its pages: a page without words has its text in the list."""
    (folder / "pages").mkdir(parents=True)
    pages = [
        {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"},
        {"url": f"{SITE}app", "ts": "2024-03-01T00:00:00Z", "title": "Sails", "text": "Canvas and spars"},
    ]
    (folder / "pages" / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    small_warcs.write_warc(
        folder / "app.warc.gz", {f"{SITE}app": b"<script></script>"}, when=datetime(2024, 3, 1, tzinfo=UTC)
    )
    return folder


def _find_text_of_pages(folder: Path) -> None:
    own = [ROOT / ".venv" / "bin" / "webdepot", "--home", folder / "home"]
    run([*own, "init"])
    run([*own, "import", folder / "app.wacz"])
    run([*own, "search", "canvas"], expected="Sails")


def check_bag(world: World) -> str:
    python("import bagit, sys; bagit.Bag(sys.argv[1]).validate()", world.folder / "bag")
    return version_of("bagit")


def check_ocfl(world: World) -> str:
    code = "import ocfl, sys; assert ocfl.StorageRoot(root=sys.argv[1]).validate(validate_objects=True)"
    python(code, world.folder / "ocfl")
    return version_of("ocfl-py")


def check_cdx_toolkit(world: World) -> str:
    code = (
        "import sys, cdx_toolkit\n"
        "client = cdx_toolkit.CDXFetcher(source=sys.argv[1])\n"
        "print(len(list(client.iter('mill.example/*', limit=1000))))"
    )
    same(python(code, f"{world.replay}/cdx/search/cdx"), "3")
    return version_of("cdx_toolkit")


def check_waybackpy(world: World) -> str:
    code = (
        "import sys\nfrom waybackpy import WaybackMachineCDXServerAPI as Api\n"
        "api = Api('https://mill.example/', 'interop')\napi.endpoint = sys.argv[1]\n"
        "import waybackpy.cdx_api as module\n"
        "api.sort, api.closest, api.limit = 'closest', '20240601', 1\n"
        "print(len(list(api.snapshots())))"
    )
    same(python(code, f"{world.replay}/cdx/search/cdx"), "1")
    return version_of("waybackpy")


def check_memento(world: World) -> str:
    code = (
        "import sys, datetime\nfrom memento_client import MementoClient\n"
        # It would ask the live web first whether the address is an archived one.
        "MementoClient.get_original_uri = staticmethod(lambda uri, *more, **named: uri)\n"
        "client = MementoClient(timegate_uri=sys.argv[1], check_native_timegate=False)\n"
        "got = client.get_memento_info('https://mill.example/', datetime.datetime(2024, 6, 1))\n"
        "print(sorted(got['mementos']))"
    )
    same(python(code, f"{world.replay}/all/"), "['closest', 'first', 'last', 'next']")
    return version_of("memento_client")


def check_sickle(world: World) -> str:
    code = (
        "import sys, io, sickle, pymarc\nclient = sickle.Sickle(sys.argv[1])\n"
        "records = list(client.ListRecords(metadataPrefix='marc21'))\n"
        "field = pymarc.parse_xml_to_array(io.StringIO(records[0].raw))[0]['008'].data\n"
        "print(len(records) > 0, len(field), field[23], field[39])"
    )
    same(python(code, f"{world.portal}/oai"), "True 40 o c")
    return f"{version_of('sickle')}, pymarc {version_of('pymarc')}"


def check_openapi(world: World) -> str:
    code = (
        "import json, sys, urllib.request\nfrom openapi_spec_validator import validate\n"
        "validate(json.load(urllib.request.urlopen(sys.argv[1])))"
    )
    python(code, f"{world.portal}/api/openapi.json")
    return version_of("openapi-spec-validator")


def check_feed(world: World) -> str:
    code = (
        "import sys, feedparser\nfeed = feedparser.parse(sys.argv[1])\n"
        "print(feed.bozo, len(feed.entries) > 0, any(link.rel == 'self' for link in feed.feed.links))"
    )
    same(python(code, f"{world.portal}/search.atom?q=turns"), "False True True")
    return version_of("feedparser")


def check_pywb_wacz(world: World) -> str:
    manager = ROOT / ".pywb" / "bin" / "wb-manager"
    if not manager.exists():
        raise Unavailable("make install-test installs it")
    run([manager, "init", "x"], folder=world.folder)
    run([manager, "add", "--unpack-wacz", "x", world.folder / "later.wacz"], folder=world.folder)
    (index,) = (world.folder / "collections" / "x" / "indexes").iterdir()
    same(len(index.read_text().splitlines()), 3)
    return _pywb_version()


def check_pywb_memento(world: World) -> str:
    interpreter = ROOT / ".pywb" / "bin" / "python"
    if not interpreter.exists():
        raise Unavailable("make install-test installs it")
    code = (
        "import sys\nfrom pywb.warcserver.index.indexsource import MementoIndexSource\n"
        "source = MementoIndexSource.init_from_string('memento+' + sys.argv[1])\n"
        "params = {'url': 'https://mill.example/', 'closest': '20240601000000', 'key': b'example,mill)/'}\n"
        "print([str(one['timestamp']) for one in source.load_index(params)][:1])"
    )
    output = run([interpreter, "-W", "ignore", "-c", code, f"{world.replay}/all/"]).strip().splitlines()[-1]
    same(output, "['20240101000000']")
    return _pywb_version()


def check_pywb_xmlquery(world: World) -> str:
    interpreter = ROOT / ".pywb" / "bin" / "python"
    if not interpreter.exists():
        raise Unavailable("make install-test installs it")
    code = (
        "import sys\nfrom pywb.warcserver.index.indexsource import XmlQueryIndexSource\n"
        "source = XmlQueryIndexSource(sys.argv[1])\n"
        "exact = source.load_index({'url': 'https://mill.example/'})\n"
        "prefix = source.load_index({'url': 'https://mill.example/', 'matchType': 'prefix'})\n"
        "print([len(list(exact)), len(list(prefix))])"
    )
    output = run([interpreter, "-W", "ignore", "-c", code, f"{world.replay}/all/xmlquery"]).strip()
    same(output.splitlines()[-1], "[2, 3]")
    return _pywb_version()


def check_har2warc(world: World) -> str:
    """Check that its WARC of a HAR file and ours have the same payloads."""
    from webdepot.container.conversion import har
    from webdepot.times import utc_now

    file, ours, theirs = (
        world.folder / "x.har",
        world.folder / "ours.warc.gz",
        world.folder / "theirs.warc.gz",
    )
    headers = [{"name": "Content-Type", "value": "text/html; charset=utf-8"}]
    answer = {"status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "headers": headers}
    answer |= {
        "content": {"text": "<p>It turns.", "mimeType": "text/html", "size": 12},
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": -1,
    }
    asked = {"method": "GET", "url": SITE, "httpVersion": "HTTP/1.1", "headers": [], "queryString": []}
    asked |= {"cookies": [], "headersSize": -1, "bodySize": 0}
    entry = {"startedDateTime": "2024-01-01T00:00:00Z", "time": 1, "request": asked, "response": answer}
    page = {"id": "page_1", "title": SITE, "startedDateTime": "2024-01-01T00:00:00Z"}
    log = {"version": "1.2", "creator": {"name": "x", "version": "1"}, "pages": [page]}
    file.write_text(json.dumps({"log": log | {"entries": [entry | {"pageref": "page_1"}]}}))
    run([PLACE / "bin" / "har2warc", file, theirs])
    with file.open("rb") as stream:
        har.to_warc(stream, ours, name=file.name, now=utc_now(), note=print)
    code = (
        "import sys\nfrom warcio.archiveiterator import ArchiveIterator\n"
        "print([(r.rec_headers['WARC-Target-URI'], r.rec_headers['WARC-Date'], r.content_stream().read())\n"
        "       for r in ArchiveIterator(open(sys.argv[1], 'rb')) if r.rec_type == 'response'])"
    )
    same(python(code, ours), python(code, theirs))
    return version_of("har2warc")


def _pywb_version() -> str:
    code = "from importlib.metadata import version; print(version('pywb'))"
    return run([ROOT / ".pywb" / "bin" / "python", "-c", code]).strip()


def check_replayweb(world: World) -> str:
    """Show the unchanged page of the later harvest in ReplayWeb.page in Chromium."""
    from playwright.sync_api import Error, sync_playwright

    npm = shutil.which("npm")
    if not npm:
        raise Unavailable("npm is not installed")
    folder = PLACE / "npm"
    if not (folder / "package").is_dir():
        folder.mkdir(exist_ok=True)
        run([npm, "pack", "--silent", "--ignore-scripts", "replaywebpage"], folder=folder)
        with tarfile.open(next(folder.glob("replaywebpage-*.tgz"))) as packed:
            packed.extractall(folder)
    site = world.folder / "player"
    (site / "replay").mkdir(parents=True)
    shutil.copy(folder / "package" / "ui.js", site)
    shutil.copy(folder / "package" / "sw.js", site / "replay")
    shutil.copy(world.folder / "later.wacz", site)
    (site / "index.html").write_text(
        '<!doctype html><script src="ui.js"></script>'
        f'<replay-web-page source="later.wacz" url="{SITE}" ts="20250101000000" style="height:600px">'
        "</replay-web-page>"
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietFiles, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            for _ in range(60):
                time.sleep(0.5)
                for frame in page.frames:
                    try:
                        if "It turns." in frame.content():
                            return json.loads((folder / "package" / "package.json").read_text())["version"]
                    except Error:
                        continue
            raise Different("the page was not shown within 30 s")
    finally:
        server.shutdown()
        server.server_close()


class _QuietFiles(SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        pass


def check_jwarc(world: World) -> str:
    jar, version = _jwarc()
    for path in world.warcs:
        run(["java", "-cp", jar, "org.netpreserve.jwarc.tools.WarcTool", "validate", path])
    return version


def check_jwarc_dedupe(world: World) -> str:
    """Check that fetching the same page again gives a revisit of our capture."""
    jar, version = _jwarc()
    shutil.copy(world.warcs[0], world.folder / "again.warc.gz")
    tool = ["java", "-cp", jar, "org.netpreserve.jwarc.tools.WarcTool", "dedupe", "--minimum-size", "0"]
    run([*tool, "--cdx-server", f"{world.replay}/outbackcdx/all", "again.warc.gz"], folder=world.folder)
    same(b"WARC-Type: revisit" in gzip.decompress((world.folder / "again-dedup.warc.gz").read_bytes()), True)
    return version


def _jwarc() -> tuple[Path, str]:
    if not shutil.which("mvn") or not shutil.which("java"):
        raise Unavailable("Maven and Java are not installed")
    version = "0.31.1"
    jar = PLACE / f"jwarc-{version}.jar"
    if not jar.exists():
        try:
            run(
                ["mvn", "-q", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
                 f"-Dartifact=org.netpreserve:jwarc:{version}", f"-DoutputDirectory={PLACE}"]
            )  # fmt: skip
        except Different as error:
            raise Unavailable(f"Maven: {error}") from error
    return jar, version


def compiled(command: list[str], **variables: str) -> None:
    """Compile a tool; Unavailable if that fails or takes too long."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=COMPILE_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"not compiled within {COMPILE_LIMIT_S // 60} minutes") from None
    if done.returncode:
        raise Unavailable(" ".join(done.stderr.split())[-200:])


def check_go(module: str, program: str, *arguments: str, world: World) -> str:
    if not shutil.which("go"):
        raise Unavailable("Go is not installed")
    target = PLACE / "go"
    if not (target / program).exists():
        compiled(["go", "install", f"{module}@latest"], GOBIN=str(target))
    for path in world.warcs:
        run([target / program, *arguments, path])
    return "latest"


def check_rocfl(world: World) -> str:
    if not shutil.which("cargo"):
        raise Unavailable("cargo is not installed")
    program = PLACE / "cargo" / "bin" / "rocfl"
    if not program.exists():
        root = str(PLACE / "cargo")
        compiled(["cargo", "install", "--quiet", "--root", root, "--no-default-features", "rocfl"])
    run([program, "-r", world.folder / "ocfl", "validate"])
    return run([program, "--version"]).split()[-1]


TOOLS = (
    Tool(name="warcio", source="PyPI", what="check WARC files", check=lambda w: check_warcs("warcio", "check", world=w)),
    Tool(name="fastwarc", source="PyPI", what="check WARC files", check=lambda w: check_warcs("fastwarc", "check", world=w)),
    Tool(name="cdxj-indexer", source="PyPI", what="same index as ours", check=check_index),
    Tool(name="py-wacz", source="PyPI", what="validate a WACZ export", check=check_wacz),
    Tool(name="py-wacz", source="PyPI", what="its list of pages is used", check=check_wacz_pages),
    Tool(name="bagit", source="PyPI", what="validate a bag", check=check_bag),
    Tool(name="ocfl-py", source="PyPI", what="validate an OCFL root", check=check_ocfl),
    Tool(name="cdx_toolkit", source="PyPI", what="all captures, and an end", check=check_cdx_toolkit),
    Tool(name="waybackpy", source="PyPI", what="closest capture, and an end", check=check_waybackpy),
    Tool(name="memento_client", source="PyPI", what="TimeGate: closest, first, next, last", check=check_memento),
    Tool(name="sickle, pymarc", source="PyPI", what="OAI-PMH, MARC 008", check=check_sickle),
    Tool(name="openapi-spec-validator", source="PyPI", what="description of the API", check=check_openapi),
    Tool(name="feedparser", source="PyPI", what="Atom feed of a search", check=check_feed),
    Tool(name="pywb", source="PyPI", what="take in a WACZ export", check=check_pywb_wacz),
    Tool(name="pywb", source="PyPI", what="our TimeGate as a source", check=check_pywb_memento),
    Tool(name="pywb", source="PyPI", what="our XML query as a source", check=check_pywb_xmlquery),
    Tool(name="har2warc", source="PyPI", what="a HAR file becomes the same captures", check=check_har2warc),
    Tool(name="js-wacz", source="npm", what="its list of pages is used", check=check_js_wacz),
    Tool(name="ReplayWeb.page", source="npm", what="replay a WACZ of a later harvest", check=check_replayweb),
    Tool(name="jwarc", source="Maven", what="validate WARC files", check=check_jwarc),
    Tool(name="jwarc", source="Maven", what="deduplicate against us (OutbackCDX)", check=check_jwarc_dedupe),
    Tool(name="warchaeology", source="Go", what="validate WARC files", is_slow=True,
         check=lambda w: check_go("github.com/nlnwa/warchaeology/v4/cmd/warc", "warc", "validate", world=w)),
    Tool(name="siegfried", source="Go", what="identify WARC files", is_slow=True,
         check=lambda w: check_go("github.com/richardlehane/siegfried/cmd/sf", "sf", world=w)),
    Tool(name="rocfl", source="crates", what="validate an OCFL root", check=check_rocfl, is_slow=True),
)  # fmt: skip
NOT_RUN = {
    "Heritrix, SolrWayback, Keycloak": "servers that are installed and configured by hand",
    "JWAT-Tools, JHOVE": "not in a package registry as programs",
    "OutbackCDX": "a server like ours, not a client",
    "HTTP::OAIPMH::Validator": "needs a portal that other machines reach",
}
"""Tools that are not run, and why."""


def install() -> None:
    if not (PLACE / "bin" / "pip").exists():
        subprocess.run([sys.executable, "-m", "venv", str(PLACE)], check=True)
    subprocess.run([str(PLACE / "bin" / "pip"), "install", "--quiet", *PYPI], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Test Webdepot with other programs.")
    parser.add_argument("--slow", action="store_true", help="also tools that are compiled first")
    parser.add_argument("names", nargs="*", help="only these tools")
    wanted = parser.parse_args()
    install()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="webdepot-interop-") as name:
        folder = Path(name)
        home, warcs = make_world(folder)
        with serving(home) as (portal, replay):
            world = World(folder=folder, warcs=warcs, portal=portal, replay=replay)
            print(f"{'tool':24}{'from':8}{'version':28}{'what':38}result")
            for tool in TOOLS:
                if wanted.names and tool.name not in wanted.names:
                    continue
                version, result = "", "ok"
                try:
                    if tool.is_slow and not wanted.slow:
                        raise Unavailable("takes minutes to compile: make interop SLOW=1")
                    version = tool.check(world)
                except Unavailable as reason:
                    result = f"not run: {reason}"
                except Different as difference:
                    result, failed = f"FAILED: {difference}", failed + 1
                print(f"{tool.name:24}{tool.source:8}{version:28}{tool.what:38}{result}", flush=True)
    for name, reason in NOT_RUN.items():
        print(f"{name:98}not run: {reason}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
