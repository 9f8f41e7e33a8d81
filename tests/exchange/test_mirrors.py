"""Folders of offline browsers become captures of a web site, with the addresses and dates that the folder contains."""

import os
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urljoin

import pytest

from small_sites import proxied_site
from webdepot.access.policy import ANYONE
from webdepot.depot import package
from webdepot.depot.bundle.submission import Submission, SubmissionKind
from webdepot.exchange import incoming
from webdepot.exchange.catalogue import RecordLevel
from webdepot.services.access import search
from webdepot.services.access.replay import replay
from webdepot.services.catalogue import records
from webdepot.services.intake import loose_objects, mirrors, submissions
from webdepot.url import find_canonical

WRITTEN = datetime(2009, 5, 1, tzinfo=UTC)
COMMENT = "<!-- Mirrored from www.uhren.example/{} by HTTrack Website Copier/3.x [XR&CO'2014], Sat, 12 Jun 2010 12:13:{} GMT -->"
LOG = """HTTrack3.49-2+htsswf+htsjava launched on Sat, 12 Jun 2010 12:13:00 at http://www.uhren.example/ +*.png
(httrack http://www.uhren.example/ )
"""
NEW = (
    "date\tsize'/'remotesize\tflags(request:Update,Range state:File response:Modified,Chunked,gZipped)\tstatuscode\t"
    "status ('servermsg')\tMIME\tEtag|Date\tURL\tlocalfile\t(from URL)\n"
    "12:13:20\t90/90\t---M--\t200\tadded ('OK')\ttext/html\t\twww.uhren.example/clock.php?id=7\t"
    "/home/a/sites/uhren/www.uhren.example/clock9f3a.html\t(from www.uhren.example/)\n"
    "broken line\n"
)
START = f'<html>{COMMENT.format("", 10)}<title>Uhren</title><a href="clock9f3a.html">Turmuhr</a></html>'
CLOCK = f"<html>{COMMENT.format('clock.php?id=7', 20)}<title>Turmuhr</title><p>Die Unruh der Turmuhr.</html>"
HTTRACK = {
    "index.html": "<html>Index of locally available sites</html>",
    "backblue.gif": "GIF89a",
    "hts-log.txt": LOG,
    "hts-cache/new.txt": NEW,
    "www.uhren.example/index.html": START,
    "www.uhren.example/clock9f3a.html": CLOCK,
    "www.uhren.example/img/a.png": "\x89PNG not a picture",
}


def folder_of(path: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
        os.utime(path / name, (WRITTEN.timestamp(), WRITTEN.timestamp()))
    return path


def payload_of(folder: Path) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def test_a_folder_of_httrack_is_replayed_at_its_own_addresses_and_dates(archive, tmp_path):
    done = submissions.receive(archive, folder_of(tmp_path / "uhren", HTTRACK), collection="old")
    assert done.receipt.reasons == ()
    own = records.get(archive, done.package.urn)
    site = records.get(archive, own.parent)
    assert (site.level, site.title, site.addresses) == (
        RecordLevel.SITE,
        "www.uhren.example",
        ("http://www.uhren.example/",),
    )
    assert (own.level, own.part) == (RecordLevel.SLICE, "2010-06-12")
    for address, expected, moment in (
        ("http://www.uhren.example/", START, "20100612121310"),
        ("http://www.uhren.example/clock.php?id=7", CLOCK, "20100612121320"),
        ("http://www.uhren.example/clock9f3a.html", CLOCK, "20100612121320"),
        ("http://www.uhren.example/img/a.png", HTTRACK["www.uhren.example/img/a.png"], "20100612121300"),
    ):
        opened = replay.open_capture(archive, address, "2010", collection="all", reader=ANYONE)
        assert (opened.payload.read().decode(), opened.capture.timestamp) == (expected, moment), address
        opened.close()
    assert search.search(archive, "Unruh", reader=ANYONE).hits
    files = package.read(archive.store, done.package.id).inventory.files()
    assert {"metadata/submission/hts-cache/new.txt", "metadata/submission/index.html"} <= files.keys()


def test_comments_alone_and_a_folder_of_wget(tmp_path):
    only = {name: text for name, text in HTTRACK.items() if not name.startswith("hts-")}
    found = mirrors.find(payload_of(folder_of(tmp_path / "a", only)))
    assert (found.site, found.at) == (
        "http://www.uhren.example/",
        datetime(2010, 6, 12, 12, 13, 20, tzinfo=UTC),
    )
    assert found.urls["www.uhren.example/clock9f3a.html"] == "http://www.uhren.example/clock.php?id=7"
    wget = {"a.example.org_8080/x/index.html": "<html>", "a.example.org_8080/robots.txt": ""}
    found = mirrors.find(payload_of(folder_of(tmp_path / "b", wget)))
    assert found is None, "a port in the name is HTTrack's way"
    wget = {"a.example.org/x/index.html": "<html>", "a.example.org/robots.txt": ""}
    found = mirrors.find(payload_of(folder_of(tmp_path / "c", wget)))
    assert (found.site, found.at) == ("http://a.example.org/x/", WRITTEN)
    assert found.urls["a.example.org/robots.txt"] == "http://a.example.org/robots.txt"


@pytest.mark.parametrize(
    "files",
    [
        {"old.data/index.html": "<html>"},
        {"www.example.org/index.html": "<html>", "thesis.pdf": "x"},
        {"www.example.org/picture.png": "x"},
        {"hts-log.txt": LOG, "readme.txt": "x"},
    ],
)
def test_a_folder_that_is_not_a_mirror_stays_a_folder(tmp_path, files):
    assert mirrors.find(payload_of(folder_of(tmp_path / "a", files))) is None


@pytest.mark.parametrize(
    "files",
    [
        {"hts-log.txt": "HTTrack3 launched on Xxx, 99 Jun 2010 99:99:99 at file:///etc/passwd"},
        {"hts-log.txt": "HTTrack3 launched on Sat, 12 Jun 2010 12:13:00 at http://[bad/"},
        {"hts-cache/new.txt": "\t".join(["x"] * 7 + ["javascript:alert(1)", "www.uhren.example/index.html"])},
        {"hts-cache/new.txt": "\t".join(["x"] * 7 + ["www.uhren.example/", "../../etc/passwd"])},
    ],
)
def test_hostile_lists_give_no_addresses(tmp_path, files):
    found = mirrors.find(payload_of(folder_of(tmp_path / "a", {**HTTRACK, **files})))
    assert all(url.startswith("http://www.uhren.example/") for url in (found.site, *found.urls.values()))
    assert set(found.files) == {name for name in HTTRACK if name.startswith("www.")}


def test_times_of_httracks_list_are_those_of_its_machine(tmp_path):
    """Comments are in UTC, the list in the time of a machine two hours ahead; it has no days."""
    lines = NEW.replace("12:13:20", "14:13:20") + (
        "14:14:05\t9/9\t---M--\t200\tadded ('OK')\timage/x-png\t\twww.uhren.example/img/a.png\twww.uhren.example/img/a.png\t\n"
    )
    found = mirrors.find(payload_of(folder_of(tmp_path / "a", {**HTTRACK, "hts-cache/new.txt": lines})))
    picture = "www.uhren.example/img/a.png"
    assert found.dates[picture] == datetime(2010, 6, 12, 12, 14, 5, tzinfo=UTC)
    assert found.mimes[found.files[picture]] == "image/x-png"


SITE = "http://www.mill.example/"
REAL = {
    SITE: (
        "text/html",
        b'<title>Mills</title><link rel=stylesheet href=/style.css><a href="mill.php?id=7&amp;lang=de">Seven</a>'
        b'<a href=sub/>Sub</a><a href="gr%C3%BC%C3%9Fe.html">G</a><a href=gone.html>gone</a><a href=data/list>list</a>'
        b"<img src=http://bilder.mill.example/b.png>",
    ),
    f"{SITE}style.css": ("text/css", b"body{background:url(img/bg.png)}"),
    f"{SITE}mill.php?id=7&lang=de": ("text/html", b"<title>Seven</title><p>A post mill. <a href=/>home</a>"),
    f"{SITE}sub/": ("text/html", b"<title>Sub</title><a href=page.html>p</a>"),
    f"{SITE}sub/page.html": ("text/html", b"<title>Page</title>"),
    f"{SITE}gr%C3%BC%C3%9Fe.html": ("text/html", b"<title>G</title>"),
    f"{SITE}data/list": ("text/plain", b"a list of mills"),
    f"{SITE}img/bg.png": ("image/png", b"\x89PNG\r\n\x1a\n-"),
    "http://bilder.mill.example/b.png": ("image/png", b"\x89PNG\r\n\x1a\nB"),
}
WGET = ["wget", "-q", "-e", "robots=off", "-r", "-p", "-H", "-D", "mill.example", "-P", "{folder}", SITE]
PROGRAMS = {
    "httrack": [
        *["httrack", "-O", "{folder}", "-P", "{proxy}", "-s0", "-q", "--disable-security-limits", "-R0"],
        SITE,
        "+*.mill.example/*",
    ],
    "wget": WGET,
    "wget -k -E -K": [*WGET, "-k", "-E", "-K"],
    "wget for Windows": [*WGET, "--restrict-file-names=windows"],
    "wget with schemes": [*WGET, "--protocol-directories"],
}


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory):
    """The site of `REAL`, copied by real offline browsers, by their names."""
    top = tmp_path_factory.mktemp("mirrors")
    with proxied_site(REAL) as proxy:
        running = {}
        for name, command in PROGRAMS.items():
            if shutil.which(command[0]) is not None:
                folder = top / name.replace(" ", "")
                words = [word.format(folder=folder, proxy=proxy) for word in command]
                environment = {**os.environ, "http_proxy": f"http://{proxy}"}
                running[name] = (folder, subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL))
        for _, process in running.values():
            process.wait(timeout=120)
    return {name: folder for name, (folder, _) in running.items()}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_real_mirror_has_every_page_at_its_address(mirrored, program):
    if program not in mirrored:
        pytest.skip(f"{program.partition(' ')[0]} is not installed: apt-get install httrack wget")
    folder = mirrored[program]
    opened = Submission(path=folder, kind=SubmissionKind.FOLDER, root=folder)
    read = loose_objects.read(opened)
    found = {}
    for file in read.files:
        for number, url in enumerate(incoming.urls_of(file, read.delivered, read.files)):
            key = find_canonical(url) or url
            assert key not in found or number, f"two files have the address {url}"
            found.setdefault(key, file)
    assert read.delivered.is_web and read.delivered.levels[0].fields["addresses"] == (SITE,)
    for url, (mime, body) in REAL.items():
        file = found[find_canonical(url)]
        assert file.facts.mime_type == mime, url
        if mime != "text/html" or program == "wget":  # HTTrack rewrites pages
            assert file.path.read_bytes() == body, url
    assert find_canonical(f"{SITE}gone.html") not in found, "the page of an error is not a capture"
    dates = {file.facts.file_date_time for file in read.files}
    now = datetime.now(UTC)
    assert all(abs((now - datetime.fromisoformat(date)).total_seconds()) < 3600 for date in dates)


def test_a_page_of_httrack_leads_to_files_of_other_hosts_and_queries(archive, mirrored):
    if "httrack" not in mirrored:
        pytest.skip("httrack is not installed: apt-get install httrack")
    done = submissions.receive(archive, mirrored["httrack"], collection="old")
    assert done.receipt.reasons == ()
    page = mirrored["httrack"] / "www.mill.example/index.html"
    links = re.findall(rb"""(?:href|src)=["']?([^"'> ]+)""", page.read_bytes())
    local = [urljoin(SITE, link.decode().replace("&amp;", "&")) for link in links if b"gone" not in link]
    assert len(local) >= 6
    for url in local:
        opened = replay.open_capture(archive, url, "2030", collection="all", reader=ANYONE)
        assert opened.payload.read(), url
        opened.close()
