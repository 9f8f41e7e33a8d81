"""Harvests and files of other programs: are they taken in whole?"""

import json
import os
import zipfile
from pathlib import Path

import installing
from installing import PLACE
from running import Tool, python, run, same, version_of
from world import SITE, World, mill, own

import small_sites

HERITRIX = "3.13.0"
_PAGES = {
    f"http://www.mill.example/{path}": (mime, body)
    for path, mime, body in (
        ("", "text/html", b"<!doctype html><title>The mill</title><p>It turns.<a href=sails.html>Sails</a>"),
        (
            "sails.html",
            "text/html",
            b"<!doctype html><title>Sails</title><p>Canvas and spars.<img src=a.gif>",
        ),
        (
            "a.gif",
            "image/gif",
            b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;",
        ),
    )
}


def _har2warc(world: World) -> str:
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


def _wget(world: World) -> str:
    program, variables = installing.debian("wget", "wget")
    folder = _folder(world, "wget")
    with small_sites.proxied_site(_PAGES) as proxy:
        command = [program, "-r", "-p", "--warc-file=mill", "--warc-cdx", "-e", f"http_proxy=http://{proxy}/"]
        run([*command, "http://www.mill.example/"], folder=folder, variables=variables, codes=(0, 8))
    home = _imported(folder, folder / "mill.warc.gz")
    same(set(_PAGES) - set(_captures(home, "www.mill.example")), set())
    return run([program, "--version"]).split()[2]


def _httrack(world: World) -> str:
    """Its folder becomes a web site with the original addresses."""
    program, variables = installing.debian("httrack", "httrack", "libhttrack2")
    folder = _folder(world, "httrack")
    with small_sites.proxied_site(_PAGES) as proxy:
        command = [
            program,
            "http://www.mill.example/",
            "-O",
            folder / "copy",
            "-P",
            proxy,
            "-q",
            "-%v0",
            "-s0",
        ]
        run(command, variables=variables)
    home = _submitted(folder, folder / "copy")
    same(set(_PAGES) - set(_captures(home, "www.mill.example")), set())
    return run([program, "--version"], variables=variables).split()[2].partition("+")[0]


def _warcit(world: World) -> str:
    """A WARC file made of a folder: resource records, which we replay as the files they were."""
    folder = _folder(world, "warcit")
    (folder / "site").mkdir()
    (folder / "site" / "sails.html").write_bytes(_PAGES["http://www.mill.example/sails.html"][1])
    run([PLACE / "bin" / "warcit", "-o", "http://www.mill.example/", "site"], folder=folder)
    (made,) = folder.glob("*.warc.gz")
    home = _imported(folder, made)
    same("http://www.mill.example/sails.html" in _captures(home, "www.mill.example"), True)
    return version_of("warcit")


def _heritrix(world: World) -> str:
    """A job with its cxml becomes a profile, its containers become captures, its folder is kept."""
    packed = installing.maven_file(f"org.archive.heritrix:heritrix:{HERITRIX}:zip:dist")
    place = PLACE / f"heritrix-{HERITRIX}"
    if not place.is_dir():
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(PLACE)
    folder = _folder(world, "heritrix")
    job = folder / "jobs" / "mill"
    job.mkdir(parents=True)
    with mill() as address:
        (job / "crawler-beans.cxml").write_text(_job(place, address))
        run(
            ["sh", place / "bin" / "heritrix", "-a", "mill:mill", "-p", "0", "-j", job.parent, "-r", "mill"],
            folder=folder,
            variables={**os.environ, "FOREGROUND": "true", "HERITRIX_OUT": str(folder / "out.log")},
        )
        home = _imported(folder, job)
        found = _captures(home, address.split("/")[2])
        same(set(found) >= {address, f"{address}chunked", f"{address}packed", f"{address}sail.xbm"}, True)
        converted = own(home, "profile", "import", "mill", job)
        same(address in converted + own(home, "profile", "show", "mill"), True)
    return HERITRIX


def _job(place: Path, seed: str) -> str:
    """The profile that Heritrix has for new jobs, with a seed and an operator."""
    (engine,) = (place / "lib").glob("heritrix-engine-*.jar")
    with zipfile.ZipFile(engine) as jar:
        text = jar.read("org/archive/crawler/restlet/profile-crawler-beans.cxml").decode()
    return (
        text.replace(
            "ENTER_AN_URL_WITH_YOUR_CONTACT_INFO_HERE_FOR_WEBMASTERS_AFFECTED_BY_YOUR_CRAWL",
            "https://mill.example/",
        )
        .replace("http://example.example/example", seed)
        .replace("# URLS HERE", seed)
    )


def _folder(world: World, name: str) -> Path:
    folder = world.folder / name
    folder.mkdir()
    return folder


def _imported(folder: Path, path: Path) -> Path:
    """The home of a new archive with these containers."""
    own(folder / "home", "init")
    own(folder / "home", "import", path, "--quiet")
    return folder / "home"


def _submitted(folder: Path, path: Path) -> Path:
    """The home of a new archive with this submission."""
    own(folder / "home", "init")
    own(folder / "home", "package", "import", path)
    return folder / "home"


def _captures(home: Path, host: str) -> list[str]:
    lines = own(home, "cdx", f"{host}/*").splitlines()
    return sorted({json.loads(line[line.index("{") :])["url"] for line in lines})


TOOLS = (
    Tool(name="har2warc", source="PyPI", what="a HAR file becomes the same captures", check=_har2warc),
    Tool(name="warcit", source="PyPI", what="its WARC file is taken in", check=_warcit),
    Tool(name="wget", source="Debian", what="its WARC file is taken in", check=_wget),
    Tool(name="HTTrack", source="Debian", what="its folder becomes a site", check=_httrack),
    Tool(name="Heritrix", source="Maven", what="job, profile and WARC files", check=_heritrix, is_slow=True),
)
