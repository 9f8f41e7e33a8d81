"""Folders of offline browsers become captures of a web site, with the addresses and dates that the folder tells."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from webdepot.access.policy import ANYONE
from webdepot.depot import package
from webdepot.exchange.catalogue import RecordLevel
from webdepot.services.access import replay, search
from webdepot.services.catalogue import records
from webdepot.services.intake import mirrors, submissions

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
    assert (found.site, found.at, found.is_rewritten) == ("http://a.example.org/x/", WRITTEN, False)
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
